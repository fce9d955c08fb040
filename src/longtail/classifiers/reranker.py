"""The re-ranker: a second network that learns from what the first one confuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longtail.classifiers.scorer import Ranker

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.classifiers.shortlisted import ShortlistTraining
    from longtail.surrogates.meta_label_task import FeatureArchitecture
    from longtail.training.run import TrainingData, TrainingRun
    from longtail.transfer.bounded_residual import BoundedResidual

__all__ = ["Reranker"]


@dataclass(frozen=True, kw_only=True)
class Reranker:
    """Train E~, R~ and W~ on each point's true labels and its best-scored false ones.

    DeepXML paper, section 4, "Re-ranking the labels". Nothing is frozen and nothing is shared with
    the first network.

    Parameters
    ----------
    architecture : FeatureArchitecture
        Of the same kind as the first network's.
    residual : BoundedResidual
    training : ShortlistTraining
    n_confused : int
        Best-scored labels of each training point that it is trained against.
    """

    architecture: FeatureArchitecture
    residual: BoundedResidual
    training: ShortlistTraining
    n_confused: int = 200

    def learn(
        self,
        data: TrainingData,
        confused: NDArray[np.int32],
        features: NDArray[np.float32],
        run: TrainingRun,
    ) -> Ranker:
        """Train the re-ranker.

        Parameters
        ----------
        data : TrainingData
        confused : int32 (n_points, n_confused)
            The first network's predictions for the training points.
        features : float32 (n_points, dimension)
            The first network's features; they only say which points are similar.
        run : TrainingRun

        Returns
        -------
        Ranker
        """
        network: Any = self.architecture.network(
            data.features, data.labels, run.within(run.scope + "re-ranker ")
        )
        block = self.residual.block(network.table.shape[1], run.device)
        batches = self.training.batches(data.labels, confused, features, run)
        classifier = self.training.fit(network, block, batches, run, "re-ranker")
        return Ranker(self.architecture.frozen(network), block.frozen(), classifier)
