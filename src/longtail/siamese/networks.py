"""Module I's encoder of points and label texts, while it is trained.

`SiameseArchitecture` is the seam. Bags of token vectors are here, transformers in
`longtail.siamese.transformers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from longtail.features.bag_encoder import UnitBagEncoder
from longtail.features.token_table import TokenTable
from longtail.features.token_tensors import TokenTensors
from longtail.siamese.encoders import LearntBags

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.features.encoder import UnitEncoder
    from longtail.siamese.encoders import SiameseEncoder
    from longtail.training.run import TrainingData, TrainingRun

    Floats = NDArray[np.float32]

__all__ = ["BagArchitecture", "BagNetwork", "SiameseArchitecture", "SiameseNetwork", "Side"]


class Side(Enum):
    """What is encoded: training points, labels' texts, or points that nothing is learnt from."""

    POINTS = "points"
    LABELS = "labels"
    HELD_OUT = "held-out points"


class SiameseNetwork(Protocol):
    """One encoder of training points and label texts.

    Attributes
    ----------
    dimension : int
        Of its vectors.
    """

    dimension: int

    def pairs(self, labels: NDArray[np.integer]) -> SiameseEncoder:
        """Return what encodes batches of points and of these labels, and learns from them."""
        ...

    def vectors(self, side: Side) -> Floats:
        """Return unit vectors (n, dimension) of all of one side by the encoder as it is now."""
        ...

    def frozen(self) -> UnitEncoder:
        """Return the encoder as a trained model keeps it; it is not trained any more."""
        ...


class SiameseArchitecture(Protocol):
    """How points and labels are encoded."""

    def start(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> SiameseNetwork:
        """Return a network to be trained on the points and label texts of `data`."""
        ...


@dataclass(frozen=True, kw_only=True)
class BagArchitecture:
    """Sums of token vectors, scaled to unit length: what a CPU trains in seconds.

    Parameters
    ----------
    dimension : int
    dropout : float
        Of the points' sums, in training.

    Examples
    --------
    Points and label texts share their token vectors: what says the same is near from the start.

    >>> from scipy.sparse import csr_array
    >>> from longtail.siamese.networks import BagArchitecture, Side
    >>> from longtail.training.run import TrainingData, TrainingRun
    >>> text = csr_array([[1.0, 1.0]])
    >>> data = TrainingData(features=text, labels=csr_array([[1.0]]), label_features=text)
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> network = BagArchitecture(dimension=4, dropout=0.0).start(data, data, run)
    >>> round((network.vectors(Side.POINTS) @ network.vectors(Side.LABELS).T).item(), 3)
    1.0
    """

    dimension: int
    dropout: float

    def start(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> BagNetwork:
        """See `SiameseArchitecture.start`."""
        tokens = TokenTable(
            data.features.shape[1],
            self.dimension,
            seed=run.seed_for("token vectors"),
            n_threads=run.n_threads,
            toward=data.directions.taken() if data.directions else None,
        )
        tensors = TokenTensors(tokens, run.torch_device)
        return BagNetwork(tensors, data, held_out, self.dropout)


class BagNetwork:
    """A table of token vectors, and the bags that are summed up from it.

    Parameters
    ----------
    tokens : TokenTensors
    data : TrainingData
        With the bags of the labels' texts.
    held_out : TrainingData
    dropout : float

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.token_table import TokenTable
    >>> from longtail.features.token_tensors import TokenTensors
    >>> from longtail.siamese.networks import BagNetwork, Side
    >>> from longtail.training.run import TrainingData
    >>> table = TokenTable(2, 2, seed=0, n_threads=1, start=2 * np.eye(2, dtype=np.float32))
    >>> tokens = TokenTensors(table, torch.device("cpu"))
    >>> first, second = csr_array([[3.0, 0.0]]), csr_array([[0.0, 1.0]])
    >>> data = TrainingData(features=first, labels=csr_array([[1.0]]), label_features=second)
    >>> network = BagNetwork(tokens, data, data, dropout=0.0)
    >>> network.vectors(Side.POINTS).tolist(), network.vectors(Side.LABELS).tolist()
    ([[1.0, 0.0]], [[0.0, 1.0]])
    """

    def __init__(
        self, tokens: TokenTensors, data: TrainingData, held_out: TrainingData, dropout: float
    ) -> None:
        self.dimension = tokens.table.dimension
        self._tokens, self._dropout = tokens, dropout
        self._bags = {
            Side.POINTS: data.features,
            Side.LABELS: data.label_features,
            Side.HELD_OUT: held_out.features,
        }

    def pairs(self, labels: NDArray[np.integer]) -> LearntBags:
        """See `SiameseNetwork.pairs`."""
        texts = self._bags[Side.LABELS][labels]
        return LearntBags(self._tokens, self._bags[Side.POINTS], texts, self._dropout)

    def vectors(self, side: Side) -> Floats:
        """See `SiameseNetwork.vectors`."""
        return self._tokens.table.encode(self._bags[side])

    def frozen(self) -> UnitBagEncoder:
        """See `SiameseNetwork.frozen`."""
        return UnitBagEncoder(self._tokens.table.vectors())
