"""Vectors that correct what texts cannot say: DEXA's auxiliary ones, and those of each label."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from longtail.kernels.corrections import add_up_groups, shorten_rows
from longtail.kernels.unit_rows import write_units
from longtail.named_parts import with_prefix
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.scratch import Scratch
from longtail.training.threads import in_threads
from longtail.training.unit_rows import UnitRows
from longtail.training.units import SMALLEST_LENGTH

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from longtail.siamese.text_block import TextBlock
    from longtail.training.state import State

__all__ = ["Corrections"]


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
        They learn at so many times the rate of the encoder.
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
    >>> from longtail.siamese.corrections import Corrections
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
