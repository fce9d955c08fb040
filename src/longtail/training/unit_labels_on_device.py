"""Label vectors on the unit sphere while they are trained, on a GPU or by several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from longtail.training.dropped_rows import dropped_rows
from longtail.training.label_table import product_dtype
from longtail.training.loop import seed_torch
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.unit_rows import PoolRows, UnitRows
from longtail.training.units import SMALLEST_LENGTH
from longtail.training.vectors_with_bias import VectorsWithBias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from longtail.training.batches import Batch

    Floats = NDArray[np.float32]

__all__ = ["UnitLabelsOnDevice", "decoupled_softmax"]

TINY = torch.finfo(torch.float32).tiny  # keeps divisions and logarithms of exponents finite


class UnitLabelsOnDevice(VectorsWithBias[RowwiseAdagrad]):
    """What `UnitLabels` is, by tensor operations; sums and their gradients are in main memory.

    Parameters
    ----------
    start, bias, scale, dropout, texts_alone
        See `UnitLabels`.
    device : torch.device

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from longtail.training.batches import Batch
    >>> from longtail.training.unit_labels_on_device import UnitLabelsOnDevice
    >>> start, bias = np.eye(2, dtype=np.float32), np.zeros(2, np.float32)
    >>> labels = UnitLabelsOnDevice(start, bias, scale=20, device=torch.device("cpu"))
    >>> batch = Batch(np.array([0]), np.array([0, 1]), np.array([0]), np.array([0]))
    >>> points = [np.array([[0, 1]], np.float32) for _ in range(3)]  # near 1, but it has label 0
    >>> losses = [labels.learn(point, None, batch, 0.5) for point in points]
    >>> losses[0] > losses[1] > losses[2]
    True
    """

    def __init__(
        self,
        start: Floats,
        bias: Floats,
        *,
        scale: float,
        device: torch.device,
        dropout: float = 0.0,
        texts_alone: float = 0.0,
    ) -> None:
        vectors = torch.from_numpy(start).to(device)
        super().__init__(vectors, torch.tensor(bias, device=device)[:, None], RowwiseAdagrad)
        self._dropout, self._texts_alone, self._scale = dropout, texts_alone, scale
        self._device, self._dtype = device, product_dtype(device)

    def draw_anew(self, seed: int) -> None:
        """See `UnitLabels.draw_anew`."""
        seed_torch(seed)

    def learn(
        self, points: Floats, texts: Floats | None, batch: Batch, learning_rate: float
    ) -> float:
        """See `UnitLabels.learn`."""
        pool, rows, columns = (
            torch.as_tensor(part).to(self._device)
            for part in (batch.pool, batch.positive_rows, batch.positive_columns)
        )
        sums = torch.from_numpy(points).to(self._device)
        dropped = dropped_rows(sums, self._dropout, self._dtype)
        units = None
        if texts is not None:
            units = UnitRows.of(torch.from_numpy(texts).to(self._device))
        own = self._some_without_own(pool, units)
        labels = PoolRows(self.vectors, own, units, self._dtype)

        x, w = dropped.unit, labels.unit
        logits = (x @ w.T).float().mul_(self._scale).add_(self.bias[pool, 0])  # (n, n_pool)
        loss, slope = decoupled_softmax(logits, rows, columns, self._scale)
        narrow = slope.to(self._dtype)

        to_points = narrow @ w
        to_texts = labels.step(self.of_vectors, narrow.T @ x, self._scale, learning_rate)
        self.step_bias(pool, slope.sum(dim=0), learning_rate)
        points[:] = dropped.backward(to_points, self._scale).cpu().numpy()
        if texts is not None and to_texts is not None:
            texts[:] = to_texts.cpu().numpy()
        return loss

    def _some_without_own(self, pool: Tensor, texts: UnitRows | None) -> Tensor:
        """Return the pool with -1 for labels whose text stands alone in this step."""
        if texts is None or self._texts_alone == 0:
            return pool
        is_alone = torch.rand(len(pool)).to(pool.device) < self._texts_alone
        says_something = texts.lengths[:, 0] > SMALLEST_LENGTH
        return pool.masked_fill(is_alone & says_something, -1)


def decoupled_softmax(
    logits: Tensor, rows: Tensor, columns: Tensor, largest: float
) -> tuple[float, Tensor]:
    """Return the mean loss of a point, and the slope of the points' sum; logits are overwritten.

    What `longtail.training.unit_labels.write_slopes` does, on any device. All exponents are taken
    less `largest`, which keeps them small and changes neither.

    Examples
    --------
    Of three labels that score alike, two are true: they do not push each other away.

    >>> import torch
    >>> from longtail.training.unit_labels_on_device import decoupled_softmax
    >>> rows, columns = torch.tensor([0, 0]), torch.tensor([0, 1])
    >>> loss, slope = decoupled_softmax(torch.zeros(1, 3), rows, columns, largest=0.0)
    >>> round(loss, 2), slope.tolist()
    (1.39, [[-0.5, -0.5, 1.0]])
    """
    exponents = logits.sub_(largest).exp_()
    of_true = exponents[rows, columns]
    exponents[rows, columns] = 0
    of_negatives = exponents.sum(dim=1)[rows]
    totals = (of_true + of_negatives).clamp_min(TINY)
    inverse = torch.zeros(len(logits), device=logits.device).index_add_(0, rows, 1 / totals)
    slope = exponents.mul_(inverse[:, None])
    slope[rows, columns] = -of_negatives / totals
    losses = totals.log() - of_true.clamp_min(TINY).log()
    return float(losses.sum()) / len(logits), slope
