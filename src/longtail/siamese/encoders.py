"""Points and label texts through one encoder: trained bags of tokens, or vectors that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch

from longtail.data.bags import Bags
from longtail.named_parts import with_prefix
from longtail.training.chosen_bags import ChosenBags
from longtail.training.dropped_rows import dropped_rows
from longtail.training.unit_rows import UnitRows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from torch import Tensor

    from longtail.features.token_tensors import TokenTensors
    from longtail.training.batches import Batch
    from longtail.training.dropped_rows import DroppedRows
    from longtail.training.state import State

__all__ = ["FrozenPairs", "LearntBags", "SiameseEncoder", "UnitPairs"]


class SiameseEncoder(Protocol):
    """Encodes points and label texts with shared weights."""

    def encode(self, batch: Batch) -> tuple[DroppedRows, UnitRows]:
        """Return the unit rows of a batch's points, and of the texts of its pool's labels."""
        ...

    def step(self, to_points: Tensor, to_texts: Tensor, learning_rate: float) -> None:
        """Learn from the gradients with respect to what `encode` returned last, unit rows."""
        ...

    def state(self) -> State:
        """Return the live tensors that a checkpoint keeps."""
        ...


class UnitPairs(NamedTuple):
    """Rows of points and of label texts scaled to length 1, and the way back to what they were.

    Examples
    --------
    A row that is four times as long turns a quarter as fast.

    >>> import torch
    >>> from longtail.siamese.encoders import UnitPairs
    >>> pairs = UnitPairs.of(torch.tensor([[0.0, 1.0], [4.0, 0.0]]), n_points=1, dropout=0.0)
    >>> pairs.points.unit.tolist(), pairs.texts.unit.tolist()
    ([[0.0, 1.0]], [[1.0, 0.0]])
    >>> pairs.backward(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])).tolist()
    [[1.0, 0.0], [0.0, 0.25]]
    """

    points: DroppedRows
    texts: UnitRows

    @classmethod
    def of(cls, rows: Tensor, n_points: int, dropout: float) -> UnitPairs:
        """Scale float32 rows (n, d), of points first; entries of the points are dropped before.

        In main memory the rows of points are written over; see `dropped_rows`.
        """
        points = dropped_rows(rows[:n_points], dropout, torch.float32)
        return cls(points, UnitRows.of(rows[n_points:]))

    def backward(self, to_points: Tensor, to_texts: Tensor) -> Tensor:
        """Return the gradient with respect to the rows, given those by the unit rows."""
        return torch.cat([self.points.backward(to_points, 1.0), self.texts.backward(to_texts)])


class LearntBags:
    """Bags of token vectors, trained: what the tables of points and labels share.

    Parameters
    ----------
    tokens : TokenTensors
    features : csr_array (n_points, n_tokens)
    label_features : csr_array (n_labels, n_tokens)
    dropout : float
        Of the sums of the points' token vectors.

    Examples
    --------
    The point and the label's text have no token in common; a step brings them together.

    >>> import numpy as np
    >>> import torch
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.token_table import TokenTable
    >>> from longtail.features.token_tensors import TokenTensors
    >>> from longtail.siamese.encoders import LearntBags
    >>> from longtail.training.batches import Batch
    >>> table = TokenTable(2, 2, seed=0, n_threads=1, start=np.eye(2, dtype=np.float32))
    >>> tokens = TokenTensors(table, torch.device("cpu"))
    >>> bags = LearntBags(tokens, csr_array([[1.0, 0.0]]), csr_array([[0.0, 1.0]]), 0.0)
    >>> first = np.array([0])
    >>> point, text = bags.encode(Batch(first, first, first, first))
    >>> bags.step(-text.unit, -point.unit, learning_rate=0.1)
    >>> point, text = bags.encode(Batch(first, first, first, first))
    >>> round((point.unit * text.unit).sum().item(), 1)
    0.3
    """

    def __init__(
        self, tokens: TokenTensors, features: csr_array, label_features: csr_array, dropout: float
    ) -> None:
        self._tokens = tokens
        self._features, self._label_features = Bags.of(features), Bags.of(label_features)
        self._dropout = dropout

    def encode(self, batch: Batch) -> tuple[DroppedRows, UnitRows]:
        """See `SiameseEncoder.encode`."""
        points = ChosenBags.of(self._features, batch.points)
        sums = self._tokens.sums(points, ChosenBags.of(self._label_features, batch.pool))
        self._pairs = UnitPairs.of(sums, len(batch.points), self._dropout)
        return self._pairs.points, self._pairs.texts

    def step(self, to_points: Tensor, to_texts: Tensor, learning_rate: float) -> None:
        """See `SiameseEncoder.step`."""
        self._tokens.step(self._pairs.backward(to_points, to_texts), learning_rate)

    def state(self) -> State:
        """See `SiameseEncoder.state`."""
        return with_prefix("tokens.", self._tokens.state())


class FrozenPairs:
    """Points and label texts encoded once and for all.

    Parameters
    ----------
    points : float32 (n_points, dimension)
    texts : float32 (n_labels, dimension)
        Unit rows, both.
    dropout : float
        Of the points' entries.
    device : torch.device

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from longtail.siamese.encoders import FrozenPairs
    >>> from longtail.training.batches import Batch
    >>> rows = np.array([[1, 0], [0, 1], [-1, 0]], np.float32)
    >>> pairs = FrozenPairs(rows, rows, dropout=0.0, device=torch.device("cpu"))
    >>> batch = Batch(np.array([1]), np.array([0, 2]), np.array([0]), np.array([1]))
    >>> points, texts = pairs.encode(batch)
    >>> points.unit.tolist(), texts.unit.tolist()  # of the labels of the pool
    ([[0.0, 1.0]], [[1.0, 0.0], [-1.0, 0.0]])
    """

    def __init__(
        self,
        points: NDArray[np.float32],
        texts: NDArray[np.float32],
        dropout: float,
        device: torch.device,
    ) -> None:
        self._points, self._texts = torch.from_numpy(points), torch.from_numpy(texts)
        self._dropout = dropout
        self._device = device

    def encode(self, batch: Batch) -> tuple[DroppedRows, UnitRows]:
        """See `SiameseEncoder.encode`."""
        points = self._points[torch.from_numpy(batch.points)].to(self._device)
        texts = self._texts[torch.as_tensor(batch.pool)].to(self._device)
        return dropped_rows(points, self._dropout, torch.float32), UnitRows.of(texts)

    def step(self, to_points: Tensor, to_texts: Tensor, learning_rate: float) -> None:
        """See `SiameseEncoder.step`; nothing is learnt."""

    def state(self) -> State:
        """See `SiameseEncoder.state`."""
        return {}
