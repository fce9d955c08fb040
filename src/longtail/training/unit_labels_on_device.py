"""Label vectors on the unit sphere while they are trained, on a GPU or by several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from longtail.training.label_table import product_dtype
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.unit_labels import LEAST_SLOPE
from longtail.training.unit_rows import PoolRows, UnitRows
from longtail.training.units import SMALLEST_LENGTH, factor_of_kept, random_bytes
from longtail.training.vectors_with_bias import VectorsWithBias

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from longtail.training.batches import Batch

    Floats = NDArray[np.float32]

__all__ = ["UnitLabelsOnDevice", "decoupled_softmax"]

TINY = torch.finfo(torch.float32).tiny  # keeps divisions and logarithms of exponents finite


class UnitLabelsOnDevice(VectorsWithBias[RowwiseAdagrad]):
    """What `UnitLabels` is, by tensor operations; sums and their gradients are in main memory.

    What is random is drawn there, too, so that a seed leaves out and samples the same on all
    devices.

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
        self.draw_anew(0)

    def draw_anew(self, seed: int) -> None:
        """See `UnitLabels.draw_anew`."""
        self._random = np.random.default_rng(seed)

    def learn(
        self, points: Floats, texts: Floats | None, batch: Batch, learning_rate: float
    ) -> float:
        """See `UnitLabels.learn`."""
        pool, rows, columns = (
            torch.as_tensor(part).to(self._device)
            for part in (batch.pool, batch.positive_rows, batch.positive_columns)
        )
        kept = self._kept_units((len(points), points.shape[1]))
        dropped = UnitRows.of(torch.from_numpy(points).to(self._device) * kept)
        units = None
        if texts is not None:
            units = UnitRows.of(torch.from_numpy(texts).to(self._device))
        own = self._some_without_own(pool, units)
        labels = PoolRows(self.vectors, own, units, self._dtype)

        x, w = dropped.unit.to(self._dtype), labels.unit
        logits = (x @ w.T).float().mul_(self._scale).add_(self.bias[pool, 0])  # (n, n_pool)
        loss, slope = decoupled_softmax(logits, rows, columns, self._scale)
        offsets = torch.from_numpy(self._random.random(len(points), np.float32))
        some = sampled(slope, LEAST_SLOPE, offsets.to(self._device)).to(self._dtype)

        to_points = (some @ w).float().mul_(self._scale)
        to_texts = labels.step(self.of_vectors, some.T @ x, self._scale, learning_rate)
        self.step_bias(pool, slope.sum(dim=0), learning_rate)
        points[:] = (dropped.backward(to_points) * kept).cpu().numpy()
        if texts is not None and to_texts is not None:
            texts[:] = to_texts.cpu().numpy()
        return loss

    def _kept_units(self, shape: tuple[int, int]) -> Tensor:
        """Draw a factor for each unit: 0 for those that are left out, and more for the others."""
        drawn, n_dropped = random_bytes(shape, self._dropout, self._random)
        if not n_dropped:
            return torch.ones(1, device=self._device)
        factors = (drawn >= n_dropped) * np.float32(factor_of_kept(n_dropped))
        return torch.from_numpy(factors).to(self._device)

    def _some_without_own(self, pool: Tensor, texts: UnitRows | None) -> Tensor:
        """Return the pool with -1 for labels whose text stands alone in this step."""
        if texts is None or self._texts_alone == 0:
            return pool
        lots = torch.from_numpy(self._random.random(len(pool), np.float32)).to(pool.device)
        says_something = texts.lengths[:, 0] > SMALLEST_LENGTH
        return pool.masked_fill((lots < self._texts_alone) & says_something, -1)


def sampled(slopes: Tensor, least: float, offsets: Tensor) -> Tensor:
    """Return slopes of which the small positive ones are sampled: see `SampledSlopes`.

    Parameters
    ----------
    slopes : float32 Tensor (n, n_pool)
        Below 0 for true labels.
    least : float
    offsets : float32 Tensor (n,)
        Uniform from 0 to 1.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.unit_labels_on_device import sampled
    >>> sampled(torch.tensor([[-0.75, 0.25, 0.5, 0.25]]), 0.5, torch.tensor([0.5]))
    tensor([[-0.7500,  0.5000,  0.5000,  0.0000]])
    """
    is_small = (slopes >= 0) & (slopes < least)
    sums = torch.where(is_small, slopes, 0).double().cumsum(dim=1) / least + offsets[:, None]
    passed = sums.floor().diff(dim=1, prepend=torch.zeros_like(sums[:, :1]))
    return torch.where(is_small, (passed * least).float(), slopes)


def decoupled_softmax(
    logits: Tensor, rows: Tensor, columns: Tensor, largest: float
) -> tuple[float, Tensor]:
    """Return the mean loss of a point, and the slope of the points' sum; logits are overwritten.

    See `longtail.kernels.softmax.sample_slopes`. All exponents are taken less `largest`, which
    keeps them small and changes neither.

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
