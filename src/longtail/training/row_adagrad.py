"""Adagrad with one accumulator a row, for tables in main memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import eye_array

from longtail.data.bags import Bags
from longtail.kernels.half_numbers import of_bfloat16
from longtail.kernels.optimisers import adagrad_of_sums, adagrad_rows
from longtail.kernels.unit_rows import adagrad_of_units
from longtail.training.processes import add_up_arrays, processes
from longtail.training.threads import in_threads, n_training_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.training.units import Units

    Floats = NDArray[np.float32]

__all__ = ["EPSILON", "RowAdagrad"]

EPSILON = 1e-8  # added to roots that steps are divided by


class RowAdagrad:
    """Adagrad with one accumulator a row: memory for a table is the table.

    The accumulator is the running sum of the mean square of the row's gradient (Duchi et al.,
    "Adaptive subgradient methods", 2011, with the diagonal averaged over the row).

    Attributes
    ----------
    sums : float32 (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.row_adagrad import RowAdagrad
    >>> table = np.zeros((3, 2), np.float32)
    >>> gradient = np.array([[5, -5]], np.float32)
    >>> RowAdagrad(len(table)).step(table, np.array([1]), gradient, 0.1)
    >>> table.round(4)  # the first step is as long as the rate, whatever the gradient's length
    array([[ 0. ,  0. ],
           [-0.1,  0.1],
           [ 0. ,  0. ]], dtype=float32)
    """

    def __init__(self, n_rows: int) -> None:
        self.sums = np.zeros(n_rows, np.float32)

    def step(
        self, table: Floats, rows: NDArray[np.int64], gradient: Floats, learning_rate: float
    ) -> None:
        """Step ``table[rows]``, distinct rows (n,), against a gradient (n, dimension)."""
        arrays = (table, self.sums, rows, gradient, learning_rate, EPSILON)
        in_threads(lambda start, stop: adagrad_rows(*arrays, start, stop), len(rows))

    def step_by_bags(
        self,
        table: NDArray[np.uint16],
        rows: NDArray[np.int64],
        bags: Bags,
        slopes: NDArray[np.uint16],
        learning_rate: float,
        seed: int,
    ) -> None:
        """Step ``table[rows]``, whose gradient is the weighted sums ``bags.times(slopes)``.

        In one process, they are summed up row by row, where they are needed; several processes add
        theirs up first.

        Parameters
        ----------
        table : uint16 (n_rows, dimension)
            The bits of bfloat16s, which are rounded at random.
        rows : int64 (n,)
        bags : Bags
            n of them.
        slopes : uint16 (n_slopes, dimension)
            The bits of bfloat16s.
        learning_rate : float
        seed : int
            Of what is rounded at random, another one for each step.
        """
        read: NDArray[Any] = slopes
        if processes().count > 1:
            of_process = bags.times(of_bfloat16(slopes), n_training_threads())
            rows, summed = add_up_arrays(len(table), rows, of_process)
            bags, read = Bags.of(eye_array(len(rows), dtype=np.float32, format="csr")), summed
        arrays = (table, self.sums, rows, *bags[:3], read, learning_rate, EPSILON, seed)
        in_threads(lambda start, stop: adagrad_of_sums(*arrays, start, stop), len(rows))

    def step_by_units(
        self,
        table: Floats,
        rows: NDArray[np.int64],
        texts: Units,
        lengths: Floats,
        gradient: Floats,
        scale: float,
        learning_rate: float,
    ) -> None:
        """Step ``table[rows]``, given `scale` times the gradient by unit vectors made of them.

        The gradient by the texts takes the place of their unit vectors; see
        `longtail.kernels.unit_rows.adagrad_of_units`.
        """
        read = (rows, texts.unit, lengths, gradient, scale, learning_rate, EPSILON, texts.lengths)
        in_threads(
            lambda start, stop: adagrad_of_units(table, self.sums, *read, start, stop, texts.unit),
            len(rows),
        )

    def state(self) -> dict[str, Floats]:
        """Return the live array that a checkpoint keeps."""
        return {"sums": self.sums}
