"""Label vectors on the unit sphere while they are trained: decoupled softmax over a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from longtail.kernels.jit import over_row_chunks
from longtail.kernels.softmax import decoupled_slopes
from longtail.training.label_table import product_dtype
from longtail.training.optimisers import RowwiseAdagrad, numbers_of
from longtail.training.scratch import Scratch, empty_tensor
from longtail.training.unit_rows import SMALLEST_LENGTH, UnitRows, pool_rows
from longtail.training.vectors_with_bias import VectorsWithBias

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from longtail.training.batches import Batch

__all__ = ["UnitLabelTable", "decoupled_softmax"]

BLOCK = 4_096  # rows that are made unit ones at a time, as copies of millions would count
TINY = torch.finfo(torch.float32).tiny  # keeps divisions and logarithms of exponents finite


class UnitLabelTable(VectorsWithBias[RowwiseAdagrad]):
    """One vector a label, compared with points by angle.

    The label's vector is ``w_l = unit(u_l + unit(E(text of l)))``, the second part only where
    texts are given, and its logit ``scale * (w_l . x) + b_l``. The loss of a point is the decoupled
    softmax of DEXML (Gupta et al., ICLR 2024): each true label against all labels of the pool that
    are not true, ``-log(e^z_p / (e^z_p + sum_n e^z_n))``; other true labels do not count against
    it. Its gradient with respect to the logits is written by hand, and two products do the rest.

    Parameters
    ----------
    start : float32 array (n_labels, dimension)
        Vectors u to start from.
    bias : float32 array (n_labels,)
        b to start from.
    scale : float
        The inverse of the softmax's temperature.
    device : torch.device
    texts_alone : float
        Share of a pool's labels that are ``w_l = unit(E(text of l))`` in a step, drawn anew for
        each: as dropout does it, but of u_l as a whole.

    Attributes
    ----------
    vectors : float32 Tensor (n_labels, dimension)
        u as it is now.
    bias : float32 Tensor (n_labels, 1)

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from longtail.training.batches import Batch
    >>> from longtail.training.unit_labels import UnitLabelTable
    >>> start = np.eye(2, dtype=np.float32)
    >>> bias = np.zeros(2, np.float32)
    >>> table = UnitLabelTable(start, bias, scale=20, device=torch.device("cpu"))
    >>> points = torch.tensor([[0.0, 1.0]])  # near label 1, but it has label 0
    >>> batch = Batch(np.array([0]), np.array([0, 1]), np.array([0]), np.array([0]))
    >>> losses = [table.learn(points, None, batch, 0.5)[0] for _ in range(3)]
    >>> losses[0] > losses[1] > losses[2]
    True
    """

    def __init__(
        self,
        start: NDArray[np.float32],
        bias: NDArray[np.float32],
        *,
        scale: float,
        device: torch.device,
        texts_alone: float = 0.0,
    ) -> None:
        vectors = empty_tensor(start.shape).copy_(torch.from_numpy(start)).to(device)
        super().__init__(vectors, torch.tensor(bias, device=device)[:, None], RowwiseAdagrad)
        self._texts_alone = texts_alone
        self._scratch = Scratch()
        self._scale = scale
        self._dtype = product_dtype(device)

    def learn(
        self, points: Tensor, texts: UnitRows | None, batch: Batch, learning_rate: float
    ) -> tuple[float, Tensor, Tensor | None]:
        """Step the labels of the batch's pool.

        Parameters
        ----------
        points : Tensor (n, dimension)
            Unit rows x, in the dtype of products or wider.
        texts : UnitRows or None
            Of the texts of the pool's labels, (n_pool, dimension); their unit vectors may be
            written over.
        batch : Batch
            With a pool.
        learning_rate : float

        Returns
        -------
        loss : float
            Mean over the points of the sum over their labels.
        to_points : Tensor (n, dimension)
            Gradient of the loss, summed over the points, with respect to `points`, less the factor
            `scale`; in the dtype of products.
        to_texts : float32 Tensor (n_pool, dimension) or None
            The same with respect to the texts before they were scaled, with that factor.
        """
        device = points.device
        pool = torch.as_tensor(batch.pool).to(device)
        rows = torch.from_numpy(batch.positive_rows).to(device)
        columns = torch.from_numpy(batch.positive_columns).to(device)
        own = pool if texts is None else self._some_without_own(pool, texts)
        labels = pool_rows(self.vectors, own, texts, self._dtype)

        x, w = points.to(self._dtype), labels.unit
        products = self._product("products", x, w.T)
        loss, slope, to_bias = self._slopes(products, self.bias[pool, 0], rows, columns)

        to_points = slope @ w
        to_labels = self._product("to labels", slope.T, x)
        to_texts = labels.step(self.of_vectors, to_labels, self._scale, learning_rate)
        self.step_bias(pool, to_bias, learning_rate)
        return loss, to_points, to_texts

    def _some_without_own(self, pool: Tensor, texts: UnitRows) -> Tensor:
        """Return the pool with -1 for labels whose text stands alone in this step."""
        if self._texts_alone == 0:
            return pool
        is_alone = torch.rand(len(pool)).to(pool.device) < self._texts_alone
        says_something = texts.lengths[:, 0] > SMALLEST_LENGTH
        return pool.masked_fill(is_alone & says_something, -1)

    def _product(self, name: str, left: Tensor, right: Tensor) -> Tensor:
        """Return the product of two matrices, in place of the last one of that name."""
        if left.device.type != "cpu":
            return left @ right
        shape = (left.shape[0], right.shape[1])
        return torch.mm(left, right, out=self._scratch.tensor(name, shape, left.dtype))

    def _slopes(
        self, products: Tensor, bias: Tensor, rows: Tensor, columns: Tensor
    ) -> tuple[float, Tensor, Tensor]:
        """Return the mean loss, its slope by the logits as `products` are, and that by the bias."""
        if products.device.type == "cpu":
            return slopes_in_place(products, bias, self._scale, rows, columns)
        logits = products.float().mul_(self._scale).add_(bias)  # (n, n_pool)
        loss, slope = decoupled_softmax(logits, rows, columns, self._scale)
        return loss, slope.to(products.dtype), slope.sum(dim=0)

    def learnt(
        self,
        texts: NDArray[np.float32] | None,
        has_points: NDArray[np.bool_],
        *,
        in_place: bool = False,
    ) -> NDArray[np.float32]:
        """Return the unit vectors w of the labels, texts added where there are any.

        A label without points was only ever a negative, so its own vector is left out: what is
        left is its text, or nothing. With `in_place`, they take the place of what was trained.

        Parameters
        ----------
        texts : float32 (n_labels, dimension) or None
            Unit rows.
        has_points : bool (n_labels,)
        in_place : bool

        Returns
        -------
        float32 (n_labels, dimension)
            A row of zeros for a label of which nothing is known.
        """
        own = self.vectors.cpu()
        unit = own if in_place else torch.empty_like(own)
        for start in range(0, len(own), BLOCK):
            part = slice(start, start + BLOCK)
            sums = own[part] * torch.from_numpy(has_points[part])[:, None]
            if texts is not None:
                sums += torch.from_numpy(texts[part])
            unit[part] = UnitRows.of(sums).unit
        vectors: NDArray[np.float32] = unit.numpy()
        return vectors


def slopes_in_place(
    products: Tensor, bias: Tensor, scale: float, rows: Tensor, columns: Tensor
) -> tuple[float, Tensor, Tensor]:
    """Do what `decoupled_softmax` does, on a CPU and in one pass: a tenth of its memory traffic.

    Parameters
    ----------
    products : float32 or bfloat16 Tensor (n, n_pool)
        Changed in place to the slopes.
    bias : float32 Tensor (n_pool,)
    scale : float
    rows, columns : int64 Tensor (n_positives,)
        The true labels, by ascending row.

    Returns
    -------
    loss : float
    slope : Tensor (n, n_pool)
        Of the dtype of `products`.
    to_bias : float32 Tensor (n_pool,)
        Its sum over the points.
    """
    n, n_pool = products.shape
    arrays = (numbers_of(products), bias.numpy(), scale)
    starts = np.searchsorted(rows.numpy(), np.arange(n + 1))
    n_threads = torch.get_num_threads()
    chunk = max(1, -(-n // n_threads))
    sums = np.zeros((-(-n // chunk), n_pool), np.float32)
    losses = np.zeros(len(sums))

    def work(start: int, stop: int) -> None:
        own_sums = sums[start // chunk]
        losses[start // chunk] = decoupled_slopes(
            *arrays, starts, columns.numpy(), start, stop, own_sums
        )

    over_row_chunks(work, n, n_threads=n_threads, chunk=chunk)
    return float(losses.sum()) / n, products, torch.from_numpy(sums.sum(axis=0))


def decoupled_softmax(
    logits: Tensor, rows: Tensor, columns: Tensor, largest: float
) -> tuple[float, Tensor]:
    """Return the mean loss of a point, and the slope of the points' sum; logits are overwritten.

    With Z the sum of e^z over a point's negatives, a true label's slope is -Z / (e^z_p + Z), and a
    negative's is e^z times the sum over the true labels of 1 / (e^z_p + Z). All exponents are taken
    less `largest`, which keeps them small and changes neither.

    Examples
    --------
    Of three labels that score alike, two are true: they do not push each other away.

    >>> import torch
    >>> from longtail.training.unit_labels import decoupled_softmax
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
