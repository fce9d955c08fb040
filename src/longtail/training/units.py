"""Rows scaled to unit length while they are trained, in main memory, and the way back.

Each is one pass over what is there, and writes nothing in between: see
`longtail.kernels.unit_rows`. `longtail.training.unit_rows` has the same for any device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from longtail.kernels.unit_rows import slopes_of_dropped, write_dropped, write_units
from longtail.training.threads import in_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.training.row_adagrad import RowAdagrad

    Floats = NDArray[np.float32]

__all__ = [
    "SMALLEST_LENGTH",
    "DroppedUnits",
    "PoolUnits",
    "Units",
    "factor_of_kept",
    "n_bytes_dropped",
    "random_bytes",
]

SMALLEST_LENGTH = 1e-6  # shorter rows are taken to be so long


class Units(NamedTuple):
    """Rows at length 1.

    Attributes
    ----------
    unit : float32 (n, dimension)
    lengths : float32 (n,)
        What they were before.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.units import Units
    >>> rows = np.array([[3, 4]], np.float32)
    >>> Units.in_place(rows).lengths, rows.round(2)
    (array([5.], dtype=float32), array([[0.6, 0.8]], dtype=float32))
    """

    unit: Floats
    lengths: Floats

    @classmethod
    def in_place(cls, rows: Floats) -> Self:
        """Scale rows, which are changed; those of zeros stay so."""
        units = DroppedUnits(rows, np.empty((len(rows), 0), np.uint8), 0, np.float32)
        return cls(rows, units.lengths)


class DroppedUnits:
    """Rows after dropout, at length 1.

    Parameters
    ----------
    rows : float32 (n, dimension)
        Changed, and written over with what `backward` returns.
    drawn : uint8 (n, dimension), or (n, 0) where no unit is left out
        Random bytes.
    n_dropped : int
        Units whose byte is below are left out.
    dtype : float32, or uint16 for the bits of bfloat16s
        Of the products.

    Attributes
    ----------
    unit : (n, dimension)
        Of that dtype.
    lengths : float32 (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.units import DroppedUnits
    >>> none = np.empty((1, 0), np.uint8)
    >>> rows = DroppedUnits(np.array([[3, 4]], np.float32), none, 0, np.float32)
    >>> rows.unit.round(2)
    array([[0.6, 0.8]], dtype=float32)
    >>> rows.backward(np.array([[0.8, -0.6]], np.float32), 10.0).round(2)
    array([[ 1.6, -1.2]], dtype=float32)
    """

    def __init__(
        self, rows: Floats, drawn: NDArray[np.uint8], n_dropped: int, dtype: type[Any]
    ) -> None:
        self._rows, self._drawn = rows, (drawn, n_dropped)
        self.lengths = np.empty(len(rows), np.float32)
        self.unit: NDArray[Any] = rows
        written = np.empty((len(rows), 0), np.float32)
        if dtype != np.float32:
            self.unit = written = np.empty(rows.shape, dtype)
        read, out = (rows, *self._drawn, SMALLEST_LENGTH), (self.lengths, written)
        in_threads(lambda start, stop: write_dropped(*read, start, stop, *out), len(rows))

    def backward(self, gradient: NDArray[Any], scale: float) -> Floats:
        """Return the gradient with respect to the rows as they were given, in their place.

        Parameters
        ----------
        gradient : (n, dimension)
            With respect to `unit`, but for the factor `scale`; of its dtype.
        scale : float
        """
        read = (self._rows, *self._drawn, self.lengths, gradient, scale)
        in_threads(lambda start, stop: slopes_of_dropped(*read, start, stop), len(self._rows))
        return self._rows


class PoolUnits:
    """Some rows of a table, to each of which a text may be added, at length 1.

    Parameters
    ----------
    table : float32 (n_rows, dimension)
    rows : int64 (n,)
        -1 where the text stands alone: then no row is stepped.
    texts : Units (n, dimension) or None
        Written over with the gradient with respect to the texts before they were scaled.

    Attributes
    ----------
    unit : float32 (n, dimension)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.row_adagrad import RowAdagrad
    >>> from longtail.training.units import PoolUnits
    >>> table = np.array([[3, 4], [0, 2]], np.float32)
    >>> rows = PoolUnits(table, np.array([1]), None)
    >>> rows.unit
    array([[0., 1.]], dtype=float32)
    >>> rows.step(RowAdagrad(2), np.array([[1, 0]], np.float32), 1.0, 0.1)
    >>> table[1].round(4)  # turned away
    array([-0.1414,  2.    ], dtype=float32)
    """

    def __init__(self, table: Floats, rows: NDArray[np.int64], texts: Units | None) -> None:
        self._table, self._rows = table, rows
        none = Units(np.empty((len(rows), 0), np.float32), np.empty(0, np.float32))
        self._texts = none if texts is None else texts
        self._lengths = np.empty(len(rows), np.float32)
        self.unit = np.empty((len(rows), table.shape[1]), np.float32)
        read, out = (table, rows, self._texts.unit, SMALLEST_LENGTH), (self._lengths, self.unit)
        in_threads(lambda start, stop: write_units(*read, start, stop, *out), len(rows))

    def step(
        self, optimiser: RowAdagrad, gradient: Floats, scale: float, learning_rate: float
    ) -> None:
        """Step the table against `scale` times the gradient with respect to `unit`."""
        read = (self._rows, self._texts, self._lengths, gradient)
        optimiser.step_by_units(self._table, *read, scale, learning_rate)


def n_bytes_dropped(share: float) -> int:
    """Return below which byte a unit is left out, for about that share; some are always kept.

    Examples
    --------
    >>> from longtail.training.units import n_bytes_dropped
    >>> n_bytes_dropped(0.25), n_bytes_dropped(1.0)
    (64, 255)
    """
    return min(round(share * 256), 255)


def factor_of_kept(n_dropped: int) -> float:
    """Return what units that are kept are multiplied by, where those of so many bytes are not.

    Examples
    --------
    >>> from longtail.training.units import factor_of_kept
    >>> factor_of_kept(128)
    2.0
    """
    return 256 / (256 - n_dropped)


def random_bytes(
    shape: tuple[int, int], dropout: float, random: np.random.Generator
) -> tuple[NDArray[np.uint8], int]:
    """Return a random byte for each unit, and below which it is left out: see `DroppedUnits`.

    To the nearest 256th, bytes are enough, drawn eight at a time, for drawing takes longer than
    what is done with them.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.units import random_bytes
    >>> drawn, n_dropped = random_bytes((100, 100), 0.25, np.random.default_rng(0))
    >>> drawn.shape, drawn.dtype.name, n_dropped
    ((100, 100), 'uint8', 64)
    """
    n_dropped = n_bytes_dropped(dropout)
    if not n_dropped:
        return np.empty((shape[0], 0), np.uint8), 0
    size = shape[0] * shape[1]
    words = random.integers(2**64, size=-(-size // 8), dtype=np.uint64)
    return words.view(np.uint8)[:size].reshape(shape), n_dropped
