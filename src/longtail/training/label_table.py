"""1-vs-All classifiers while they are trained: the loss and its gradient as matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from longtail.training.batches import label_chunks
from longtail.training.optimisers import RowOptimiser, RowwiseAdagrad
from longtail.training.vectors_with_bias import VectorsWithBias

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    from longtail.training.batches import Batch

__all__ = ["LabelTable", "product_dtype"]

LOGITS_AT_ONCE = 2**26  # of a batch against all labels: 256 MB in float32


def product_dtype(device: torch.device) -> torch.dtype:
    """Return bfloat16 where the hardware multiplies it, else float32.

    The tables, their gradients' sums and all else stay float32.
    """
    if device.type == "cpu":
        can = torch.cpu.get_capabilities()
        return torch.bfloat16 if can.get("avx512_bf16") or can.get("amx_bf16") else torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32


class LabelTable(VectorsWithBias[RowOptimiser]):
    """One linear classifier a label, trained with binary cross-entropy on pools of labels.

    The gradient of the loss with respect to the logits is ``sigmoid(z) - y``; it is formed in
    place and two more products give those of the classifiers and of the features. Nothing is kept
    for automatic differentiation, and nothing is gathered point by point.

    Parameters
    ----------
    n_labels, dimension : int
    frequencies : float array (n_labels,) or None
        Share of the points that have each label: the bias starts at its log-odds, so that the
        first steps are not spent on learning that most labels are rare. None starts all vectors
        and biases from small random values, as the published code does.
    make_optimiser : callable
        From a table to its `RowOptimiser`.
    reduction : float
        Factor of the loss of one point, which is a sum over labels.
    seed : int
        Of the random start.
    device : torch.device

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from longtail.training.batches import Batch
    >>> from longtail.training.label_table import LabelTable
    >>> table = LabelTable(2, 3, frequencies=np.array([0.5, 0.1]), device=torch.device("cpu"))
    >>> batch = Batch(np.array([0]), None, np.array([0]), np.array([1]))  # it has label 1
    >>> points = torch.ones(1, 3)
    >>> losses = [table.learn(points, batch, 0.5, measure=True)[0] for _ in range(3)]
    >>> losses[0] > losses[1] > losses[2]
    True
    """

    def __init__(
        self,
        n_labels: int,
        dimension: int,
        *,
        frequencies: NDArray[np.float64] | None,
        make_optimiser: Callable[[Tensor], RowOptimiser] = RowwiseAdagrad,
        reduction: float = 1.0,
        seed: int = 0,
        device: torch.device,
    ) -> None:
        vectors = torch.zeros(n_labels, dimension, device=device)
        bias = torch.zeros(n_labels, 1, device=device)
        if frequencies is None:
            bound = dimension**-0.5
            random = torch.Generator().manual_seed(seed)  # the same numbers on every device
            for table in (vectors, bias):
                table.copy_(torch.empty(table.shape).uniform_(-bound, bound, generator=random))
        else:
            share = np.clip(frequencies, 1e-7, 1 - 1e-7)
            odds = torch.from_numpy(np.log(share / (1 - share)).astype(np.float32))
            bias[:, 0] = odds.to(device)
        super().__init__(vectors, bias, make_optimiser)
        self._reduction = reduction
        self._dtype = product_dtype(device)
        self._every = torch.arange(n_labels, device=device)

    def learn(
        self, features: Tensor, batch: Batch, learning_rate: float, *, measure: bool
    ) -> tuple[float | None, Tensor]:
        """Step the classifiers of the batch's pool.

        Parameters
        ----------
        features : float32 Tensor (n, dimension)
        batch : Batch
        learning_rate : float
        measure : bool
            Whether the value of the loss is wanted; its gradient does not need it.

        Returns
        -------
        loss : float or None
            Mean over the points of the sum over labels.
        gradient : float32 Tensor (n, dimension)
            Of the loss, summed over the points, with respect to the features.
        """
        n_labels, at_once = len(self.vectors), max(LOGITS_AT_ONCE // max(len(features), 1), 1)
        if batch.pool is not None or batch.in_loss is not None or n_labels <= at_once:
            return self._learn_pool(features, batch, learning_rate, measure=measure)
        total, gradients = 0.0, torch.zeros_like(features)
        for part in label_chunks(batch, n_labels, at_once):
            loss, gradient = self._learn_pool(features, part, learning_rate, measure=measure)
            total += loss or 0.0
            gradients += gradient
        return total if measure else None, gradients

    def _learn_pool(
        self, features: Tensor, batch: Batch, learning_rate: float, *, measure: bool
    ) -> tuple[float | None, Tensor]:
        """See `learn`; all logits are held at once."""
        device = features.device
        pool = self._every if batch.pool is None else torch.from_numpy(batch.pool).to(device)
        vectors = self.vectors if batch.pool is None else self.vectors[pool]
        bias = self.bias if batch.pool is None else self.bias[pool]
        rows = torch.from_numpy(batch.positive_rows).to(device)
        columns = torch.from_numpy(batch.positive_columns).to(device)

        x, w = features.to(self._dtype), vectors.to(self._dtype)
        logits = (x @ w.T).float().add_(bias[:, 0])  # (n, n_pool)
        loss = _loss(logits, rows, columns, batch) if measure else None
        slope = logits.sigmoid_()
        slope[rows, columns] -= 1
        if batch.in_loss is not None:
            slope *= torch.from_numpy(batch.in_loss).to(device)
        slope *= self._reduction

        narrow = slope.to(self._dtype)
        gradient = (narrow @ w).float()
        self.step(pool, (narrow.T @ x).float(), slope.sum(dim=0), learning_rate)
        return loss, gradient


def _loss(logits: Tensor, rows: Tensor, columns: Tensor, batch: Batch) -> float:
    """Return the mean over points of the summed binary cross-entropy."""
    of_negatives = torch.nn.functional.softplus(logits)
    if batch.in_loss is not None:
        of_negatives = of_negatives * torch.from_numpy(batch.in_loss).to(logits.device)
    return float(of_negatives.sum() - logits[rows, columns].sum()) / len(logits)
