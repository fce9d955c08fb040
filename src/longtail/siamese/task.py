"""Points and label texts through one encoder, with vectors that correct what texts cannot say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import torch

from longtail.data.bags import Bags
from longtail.kernels.corrections import add_up_groups, shorten_rows
from longtail.kernels.unit_rows import write_units
from longtail.named_parts import with_prefix
from longtail.siamese.pair_losses import checked_slope
from longtail.training.chosen_bags import ChosenBags
from longtail.training.dropped_rows import dropped_rows
from longtail.training.label_table import product_dtype
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.scratch import Scratch
from longtail.training.threads import in_threads
from longtail.training.unit_rows import UnitRows
from longtail.training.units import SMALLEST_LENGTH

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from torch import Tensor

    from longtail.features.token_tensors import TokenTensors
    from longtail.siamese.pair_losses import PairLoss
    from longtail.siamese.text_block import TextBlock
    from longtail.training.batches import Batch
    from longtail.training.dropped_rows import DroppedRows
    from longtail.training.state import State

__all__ = [
    "Corrections",
    "FrozenPairs",
    "LearntBags",
    "SiameseEncoder",
    "SiameseTask",
    "UnitPairs",
]


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

    Attributes
    ----------
    points : DroppedRows
    texts : UnitRows

    Examples
    --------
    A row that is four times as long turns a quarter as fast.

    >>> import torch
    >>> from longtail.siamese.task import UnitPairs
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
    >>> from longtail.siamese.task import LearntBags
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
    >>> from longtail.siamese.task import FrozenPairs
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


class Corrections:
    """What is added to label texts: ``w_l = unit(E(z_l) + a_k)`` for a label of cluster k.

    DEXA's auxiliary vectors, a label to a cluster, or its free vectors eta, a cluster to a label.

    Parameters
    ----------
    start : float32 (n_clusters, dimension)
        Vectors to start from.
    cluster_of_label : int (n_labels,)
    device : torch.device
    speed : float
        Times the learning rate of the encoder is theirs.
    longest : float
        Longer vectors are cut to this length; that of a text is 1.
    block : TextBlock or None
        Texts go through it first.

    Attributes
    ----------
    vectors : float32 Tensor (n_clusters, dimension)

    Examples
    --------
    Two labels have the same text; that of cluster 0 learns that it means something else.

    >>> import numpy as np
    >>> import torch
    >>> from longtail.siamese.task import Corrections
    >>> start = np.array([[-1, 1], [0, 0]], np.float32)
    >>> corrections = Corrections(start, np.array([0, 1]), torch.device("cpu"))
    >>> texts = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> corrections.add(texts, torch.tensor([0, 1])).unit.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    def __init__(
        self,
        start: NDArray[np.float32],
        cluster_of_label: NDArray[np.integer],
        device: torch.device,
        speed: float = 1.0,
        longest: float = math.inf,
        block: TextBlock | None = None,
    ) -> None:
        self.vectors = torch.tensor(start, device=device)
        self._speed = speed
        self._longest = longest
        self._block = block
        self._cluster_of_label = torch.as_tensor(cluster_of_label, dtype=torch.int64).to(device)
        self._optimiser = RowwiseAdagrad(self.vectors)
        self._scratch = Scratch()

    def add(self, texts: Tensor, pool: Tensor) -> UnitRows:
        """Return the label vectors of a pool, given its unit texts."""
        combined = texts if self._block is None else self._block.forward(texts)
        labels = self._units(combined, self._cluster_of_label[pool])
        # Of a row without a direction yet, the gradient would be a million times as long: Adagrad
        # would take a single step against it, and hardly any after that.
        labels.lengths[labels.lengths <= SMALLEST_LENGTH] = 1
        return labels

    def _units(self, texts: Tensor, groups: Tensor) -> UnitRows:
        """Return the unit sums of texts and of the vectors of their groups."""
        vectors = self.vectors
        if texts.device.type != "cpu":
            return UnitRows.of(texts + vectors[groups])
        unit = torch.from_numpy(self._scratch.array("labels", tuple(texts.shape)))
        labels = UnitRows(unit, torch.empty(len(texts), 1))
        read = (vectors.numpy(), groups.numpy(), texts.numpy(), SMALLEST_LENGTH)
        out = (labels.lengths.view(-1).numpy(), labels.unit.numpy())
        in_threads(lambda start, stop: write_units(*read, start, stop, *out), len(texts))
        return labels

    def step(
        self, pool: Tensor, labels: UnitRows, gradient: Tensor, learning_rate: float
    ) -> Tensor:
        """Learn from the gradient with respect to the unit rows that `add` returned.

        Parameters
        ----------
        pool : int64 Tensor (n_pool,)
        labels : UnitRows (n_pool, dimension)
        gradient : float32 Tensor (n_pool, dimension)
            May be overwritten.
        learning_rate : float

        Returns
        -------
        Tensor (n_pool, dimension)
            The gradient with respect to the texts.
        """
        clusters, summed, gradient = self._of_clusters(pool, labels, gradient)
        self._optimiser.step(self.vectors, clusters, summed, self._speed * learning_rate)
        if math.isfinite(self._longest):
            self._shorten(clusters)
        if self._block is None:
            return gradient
        return self._block.backward(gradient, learning_rate)

    def _of_clusters(
        self, pool: Tensor, labels: UnitRows, gradient: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return clusters, the gradient of each one's vector, and that of the sums."""
        groups = self._cluster_of_label[pool]
        if gradient.device.type != "cpu":
            gradient = labels.backward(gradient)
            clusters, places = torch.unique(groups, return_inverse=True)
            summed = torch.zeros(len(clusters), gradient.shape[1], device=gradient.device)
            return clusters, summed.index_add_(0, places, gradient), gradient
        order = np.argsort(groups.numpy(), kind="stable")
        in_order = groups.numpy()[order]
        starts = np.flatnonzero(np.diff(in_order, prepend=-1, append=-1))
        shape = len(starts) - 1, gradient.shape[1]
        summed = torch.from_numpy(self._scratch.array("summed", shape))
        gradient = gradient.contiguous()
        rows = (labels.unit.numpy(), labels.lengths.numpy(), gradient.numpy())
        out = (order, starts, summed.numpy())
        in_threads(lambda *part: add_up_groups(*rows, *out, *part), len(summed))
        return torch.from_numpy(in_order[starts[:-1]]), summed, gradient

    def _shorten(self, clusters: Tensor) -> None:
        """Cut vectors that have grown too long."""
        if self.vectors.device.type == "cpu":
            table = (self.vectors.numpy(), clusters.numpy(), self._longest)
            in_threads(lambda *part: shorten_rows(*table, *part), len(clusters))
            return
        stepped = self.vectors[clusters]
        lengths = stepped.norm(dim=1, keepdim=True).clamp_min(self._longest)
        self.vectors[clusters] = stepped * (self._longest / lengths)

    def of_labels(self) -> NDArray[np.float32]:
        """Return the vector of each label, (n_labels, dimension)."""
        vectors: NDArray[np.float32] = self.vectors[self._cluster_of_label].cpu().numpy()
        return vectors

    def state(self) -> State:
        """Return the live tensors that a checkpoint keeps."""
        block = {} if self._block is None else self._block.state()
        return {
            "corrections": self.vectors,
            **self._optimiser.state(),
            **with_prefix("block.", block),
        }


@dataclass(frozen=True, kw_only=True)
class SiameseTask:
    """One step: encode both sides, compare them by angle, and change everything.

    Parameters
    ----------
    encoder : SiameseEncoder
    corrections : Corrections or None
        None leaves the texts alone, as NGAME does.
    loss : PairLoss

    Examples
    --------
    The point is near the text of label 0, but has label 1.

    >>> import numpy as np
    >>> import torch
    >>> from longtail.siamese.pair_losses import TripletLoss
    >>> from longtail.siamese.task import Corrections, FrozenPairs, SiameseTask
    >>> from longtail.training.batches import Batch
    >>> cpu, rows, zero = torch.device("cpu"), np.eye(2, dtype=np.float32), np.array([0])
    >>> encoder = FrozenPairs(rows[:1], rows, dropout=0.0, device=cpu)
    >>> corrections = Corrections(0 * rows, np.arange(2), cpu)
    >>> task = SiameseTask(encoder=encoder, corrections=corrections, loss=TripletLoss(n_hardest=1))
    >>> batch = Batch(zero, np.arange(2), zero, np.array([1]))
    >>> [round(task.step(batch, 0.5, 1.0, measure=True), 1) for _ in range(4)]
    [1.3, 0.7, 0.5, 0.4]
    """

    encoder: SiameseEncoder
    corrections: Corrections | None
    loss: PairLoss

    def step(
        self,
        batch: Batch,
        learning_rate: float,
        share: float,  # noqa: ARG002 - the loop tells every task
        *,
        measure: bool,
    ) -> float | None:
        """See `longtail.training.loop.Task.step`."""
        points, texts = self.encoder.encode(batch)
        device = points.unit.device
        rows = torch.from_numpy(batch.positive_rows).to(device)
        columns = torch.from_numpy(batch.positive_columns).to(device)
        pool = torch.as_tensor(batch.pool).to(device)
        labels = texts
        if self.corrections is not None:
            labels = self.corrections.add(texts.unit, pool)
        dtype = product_dtype(device)
        x, w = points.unit.to(dtype), labels.unit.to(dtype)
        loss, slope = checked_slope(self.loss, (x @ w.T).float(), rows, columns)
        narrow = slope.to(dtype)
        to_labels = (narrow.T @ x).float()
        if self.corrections is not None:
            to_labels = self.corrections.step(pool, labels, to_labels, learning_rate)
        self.encoder.step((narrow @ w).float(), to_labels, learning_rate)
        return loss if measure else None

    def state(self) -> State:
        """See `longtail.training.loop.Task.state`."""
        corrections = {} if self.corrections is None else self.corrections.state()
        return {**self.encoder.state(), **corrections}
