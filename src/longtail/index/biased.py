"""A bias of each vector as a further number of it, so that an inner product has it in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.data.rows import unit_vectors
from longtail.errors import InputError
from longtail.kernels.arrays import read_only

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float32]

__all__ = ["as_bias", "directions", "some_of", "with_biased"]

# A vector of large bias is among the best of queries that are far from it, too, and few edges lead
# from these to it: a walk misses it unless it begins there.
BIASED_PER_ROOT = 2


def as_bias(bias: ArrayLike | None, n_vectors: int) -> Floats:
    """Return the bias of each vector as read-only float32 (n_vectors,), or (0,) for none.

    Raises
    ------
    InputError
        If there is another number of them.

    Examples
    --------
    >>> from longtail.index.biased import as_bias
    >>> as_bias([0.5, 1], 2).tolist(), as_bias(None, 2).tolist()
    ([0.5, 1.0], [])
    """
    own = read_only(np.zeros(0) if bias is None else bias, np.float32)
    if own.shape not in ((0,), (n_vectors,)):
        raise InputError(f"An index of {n_vectors} vectors needs as many biases, got {own.shape}.")
    return own


def some_of(bias: Floats, rows: NDArray[np.integer]) -> Floats:
    """Return the bias of some vectors; none of none.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index.biased import as_bias, some_of
    >>> some_of(as_bias([0.5, 1], 2), np.array([1])).tolist()
    [1.0]
    >>> some_of(as_bias(None, 2), np.array([1])).tolist()
    []
    """
    return bias[rows] if len(bias) else bias


def directions(vectors: Floats, bias: Floats) -> tuple[Floats, Floats]:
    """Return vectors, with their bias as a further number, at unit length; zeros as they are.

    Parameters
    ----------
    vectors : float32 (n, d)
    bias : float32 (n,) or (0,)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index.biased import directions
    >>> vectors, bias = np.float32([[0, 3], [0, 0]]), np.float32([4, 0])
    >>> unit, of_bias = directions(vectors, bias)
    >>> unit
    array([[0. , 0.6],
           [0. , 0. ]], dtype=float32)
    >>> of_bias
    array([0.8, 0. ], dtype=float32)
    """
    if not len(bias):
        return unit_vectors(vectors), bias
    unit = unit_vectors(np.column_stack([vectors, bias]))
    return unit[:, :-1], unit[:, -1]


def with_biased(entries: NDArray[np.int32], bias: Floats) -> NDArray[np.int32]:
    """Return the entries of a graph, and those of the nodes with the largest biases.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index.biased import as_bias, with_biased
    >>> with_biased(np.array([2, 0], np.int32), as_bias([0, 1, 0, 3], 4)).tolist()
    [2, 0, 1, 3]
    """
    n_more = int(BIASED_PER_ROOT * len(bias) ** 0.5)
    more = np.argsort(-bias, kind="stable")[:n_more].astype(np.int32)
    return np.concatenate([entries, np.setdiff1d(more, entries)])
