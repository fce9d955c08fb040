"""Vectors that come ready-made as a feature architecture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longtail.data.point_input import InputKind, PointInput
from longtail.features.row_encoder import RowEncoder
from longtail.training.one_vs_all import FrozenFeatures

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["Precomputed"]


@dataclass(frozen=True, kw_only=True)
class Precomputed:
    """Dense vectors from elsewhere: of fastText, a sentence encoder, an image network.

    They are scaled to unit length and else left alone: what Module I learns on them is thrown away
    with its classifiers, so let the surrogate train for no epoch.

    Parameters
    ----------
    dropout : float
        Of the vectors, in training.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import DeepXML
    >>> from longtail.features.precomputed import Precomputed
    >>> from longtail.surrogates.meta_label_task import MetaLabelTask
    >>> from longtail.training.schedule import Schedule
    >>> rows = np.array([[1, 0, 0.2], [0.9, 0.1, 0], [0, 1, 0], [0.2, 1, 0.1]] * 5, np.float32)
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> untrained = MetaLabelTask(schedule=Schedule(epochs=0, learning_rate=0.05))
    >>> model = DeepXML(features=Precomputed(), surrogate=untrained).fit(rows, labels)
    >>> model.predictor_.predict(np.array([[1, 0.1, 0]]), k=1)[0][0][0]
    'drink'
    """

    dropout: float = 0.0

    @property
    def reads(self) -> PointInput:
        """Dense rows."""
        return PointInput(InputKind.ROWS)

    def network(
        self,
        data: TrainingData,
        targets: csr_array,  # noqa: ARG002 - nothing is learnt
        run: TrainingRun,
        start: Any = None,  # noqa: ARG002
    ) -> FrozenFeatures:
        """Return the vectors; see `FeatureArchitecture.network`."""
        vectors = RowEncoder(data.features.shape[1]).encode(data.bags())
        return FrozenFeatures(vectors, dropout=self.dropout, device=run.torch_device)

    def frozen(self, network: FrozenFeatures) -> RowEncoder:
        """Return the encoder as a trained model keeps it."""
        return RowEncoder(network.dimension)
