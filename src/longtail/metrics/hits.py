"""Which predictions are right: a ranking reduced to its true labels.

Every metric here is a sum over the hits, so a ranking of n points by k places becomes three short
arrays (point, rank, label) once, and nothing as wide as the label set is ever built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from longtail.data.csr import check_indices, rows_of_entries
from longtail.errors import InputError, named

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "USUAL_PLACES",
    "USUAL_RECALL_PLACES",
    "Floats",
    "Hits",
    "Integers",
    "as_binary_csr",
    "best_hits",
    "check_ids",
    "check_k",
    "deepest_place",
    "find_hits",
    "is_whole",
    "row_chunks",
    "stored_in",
    "true_among",
]

Integers: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.floating[Any]]

USUAL_PLACES = (1, 3, 5)  # the k of P@k and the like, as in published tables
USUAL_RECALL_PLACES = (10, 100)  # the k of R@k
_CHUNK = 4096  # points at a time: the sorted keys of one chunk stay in the processor's cache


@dataclass(frozen=True)
class Hits:
    """The true labels in a ranking.

    Parameters
    ----------
    points, ranks, labels : ndarray of int, shape (n_hits,)
        Point, place in the ranking (from 0) and label of each hit.
    n_true : ndarray of int, shape (n_points,)
        How many labels each point really has.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.hits import find_hits
    >>> hits = find_hits(np.array([[2, 0]]), csr_array([[1, 1, 0]]), k=2)
    >>> hits.ranks.tolist(), hits.labels.tolist(), hits.n_true.tolist()
    ([1], [0], [2])
    """

    points: Integers
    ranks: Integers
    labels: Integers
    n_true: Integers

    @property
    def n_points(self) -> int:
        """How many points were ranked, with or without a hit."""
        return len(self.n_true)

    def up_to(self, k: int) -> Hits:
        """Return the hits in the first k places."""
        near = self.ranks < k
        return Hits(self.points[near], self.ranks[near], self.labels[near], self.n_true)

    def summed(self, values: Floats) -> Floats:
        """Return the sum for each point of what its hits are worth, one value a hit."""
        sums: Floats = np.bincount(self.points, values, minlength=self.n_points).astype(float)
        return sums


def row_chunks(n_rows: int, size: int = _CHUNK) -> Iterator[slice]:
    """Yield consecutive slices, of at most so many rows, that together cover `n_rows` rows.

    Examples
    --------
    >>> from longtail.metrics.hits import row_chunks
    >>> list(row_chunks(5000))
    [slice(0, 4096, None), slice(4096, 5000, None)]
    """
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def as_binary_csr(matrix: csr_array, name: str) -> csr_array:
    """Return `matrix` as sorted CSR without stored zeros; the caller's own is left as it is.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.hits import as_binary_csr
    >>> truth = csr_array(([1, 0], ([0, 0], [2, 1])), shape=(1, 3))  # stores a zero
    >>> as_binary_csr(truth, "truth").indices.tolist(), truth.nnz
    ([2], 2)
    """
    if not issparse(matrix):
        if issparse(getattr(matrix, "labels", None)):  # a Dataset, whose ids may be its own
            raise InputError(
                f"`{name}` is {named(matrix)}, not its labels. Pass those, with the model's ids: "
                "dataset.relabelled(model.label_space).labels."
            )
        raise InputError(
            f"`{name}` is {named(matrix)}, not a sparse matrix. "
            f"Pass a scipy sparse matrix of shape (n_points, n_labels), such as a csr_array."
        )
    check_indices(f"`{name}`", matrix)
    csr = csr_array(matrix)
    if not csr.has_canonical_format or not csr.data.all():
        csr = csr.copy()
        csr.sum_duplicates()
        csr.eliminate_zeros()
    return csr


def is_whole(number: object) -> bool:
    """Tell a whole number, numpy's too, from all else; True is one to Python alone.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.metrics.hits import is_whole
    >>> [is_whole(number) for number in (3, np.int64(3), 3.0, True)]
    [True, True, False, False]
    """
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def deepest_place(*ks: Sequence[int]) -> int:
    """Return the largest of the places that metrics look at, or say why they are none.

    Examples
    --------
    >>> from longtail.metrics.hits import deepest_place
    >>> deepest_place((1, 3, 5), (10, 100))
    100
    """
    for places in ks:
        is_sequence = isinstance(places, Sequence | np.ndarray) and not isinstance(places, str)
        if not is_sequence or not all(map(is_whole, places)):
            raise InputError(f"ks must be whole numbers such as {USUAL_PLACES}, got {places!r}.")
    return max((int(k) for places in ks for k in places), default=1)


def check_k(k: int, n_places: int) -> None:
    """Raise where k is no whole number, or no place in a ranking of `n_places`.

    Examples
    --------
    >>> from longtail.metrics.hits import check_k
    >>> check_k(5, n_places=5)
    >>> check_k(0, n_places=5)
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: k is 0, but a metric looks at the first k places. Pass 1 or more.
    """
    if not is_whole(k):
        raise InputError(f"k must be a whole number, got {k!r}.")
    if k < 1:
        raise InputError(f"k is {k}, but a metric looks at the first k places. Pass 1 or more.")
    if k > n_places:
        raise InputError(
            f"`ids` holds {n_places} predictions a point, but k={k} was asked for. "
            f"Predict at least {k} labels a point, or ask for a k of at most {n_places}."
        )


def check_ids(ids: Integers, n_points: int) -> Integers:
    """Return `ids` as an integer array (n_points, k), or say what is wrong with it.

    Examples
    --------
    >>> from longtail.metrics.hits import check_ids
    >>> check_ids([[2, 0], [1, -1]], n_points=2).shape
    (2, 2)
    """
    if issparse(ids):
        raise InputError(
            "`ids` is a sparse matrix. Pass ids and scores, as longtail.metrics.top_k(matrix, k) "
            "returns them."
        )
    ids = np.asarray(ids)
    if ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer):
        raise InputError(
            f"`ids` has shape {ids.shape} and dtype {ids.dtype}. "
            f"Pass label ids as integers, of shape (n_points, k), -1 where there is none."
        )
    if len(ids) != n_points:
        raise InputError(
            f"`ids` has {len(ids)} rows but `truth` has {n_points}. Pass one row a point in both."
        )
    if n_points == 0:
        raise InputError("There are no points, so there is no mean. Pass at least one point.")
    return ids


def stored_in(matrix: csr_array, points: Integers, labels: Integers) -> NDArray[np.bool_]:
    """Tell which (point, label) pairs `matrix` stores; `points` and `labels` broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.hits import stored_in
    >>> points, labels = np.array([[0], [1]]), np.array([[0, 1, -1, 7]])
    >>> stored_in(csr_array([[1, 0], [0, 1]]), points, labels).tolist()
    [[True, False, False, False], [False, True, False, False]]
    """
    n_labels = matrix.shape[1]
    # One int64 key a pair; -1, which no stored pair has, for padding and for unknown labels.
    inside = (labels >= 0) & (labels < n_labels)
    keys = np.where(inside, points * np.int64(n_labels) + labels, np.int64(-1))
    stored = rows_of_entries(matrix) * np.int64(n_labels) + matrix.indices
    if stored.size == 0:
        return np.zeros(keys.shape, dtype=np.bool_)
    nearest = np.minimum(np.searchsorted(stored, keys), stored.size - 1)
    return np.asarray(stored[nearest] == keys)


def true_among(ids: Integers, truth: csr_array) -> NDArray[np.bool_]:
    """Tell which of some labels of each point are true.

    Parameters
    ----------
    ids : int (n, k)
        Padded with -1, which is never true.
    truth : csr_array (n, n_labels)
        Sorted; what it stores is true.

    Returns
    -------
    bool (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.hits import true_among
    >>> true_among(np.array([[2, 0, -1], [1, 0, 2]]), csr_array([[1, 0, 0], [0, 1, 1]]))
    array([[False,  True, False],
           [ True, False,  True]])
    """
    is_true = np.empty(ids.shape, np.bool_)
    for chunk in row_chunks(len(ids)):
        some = ids[chunk]
        is_true[chunk] = stored_in(truth[chunk], np.arange(len(some))[:, np.newaxis], some)
    return is_true


def find_hits(ids: Integers, truth: csr_array, k: int) -> Hits:
    """Return the true labels in the first k places of each row of `ids`.

    Raises
    ------
    InputError
        Where shapes disagree, k is out of range, or a row names a true label twice.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.hits import find_hits
    >>> hits = find_hits(np.array([[2, 0], [1, -1]]), csr_array([[1, 1, 0], [0, 1, 0]]), k=2)
    >>> hits.points.tolist(), hits.ranks.tolist(), hits.labels.tolist()
    ([0, 1], [1, 0], [0, 1])
    """
    truth = as_binary_csr(truth, "truth")
    ids = check_ids(ids, truth.shape[0])
    check_k(k, ids.shape[1])
    point, rank = np.nonzero(true_among(ids[:, :k], truth))
    hits = Hits(point, rank, ids[point, rank], np.diff(truth.indptr))
    _check_no_label_twice(hits, truth.shape[1])
    return hits


def best_hits(truth: csr_array, weights: Floats) -> Hits:
    """Return the hits of the ranking that nothing can beat: true labels, heaviest first.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.hits import best_hits
    >>> hits = best_hits(csr_array([[1, 1, 0], [0, 0, 1]]), np.array([1.0, 3.0, 2.0]))
    >>> hits.points.tolist(), hits.ranks.tolist(), hits.labels.tolist()
    ([0, 0, 1], [0, 1, 0], [1, 0, 2])
    """
    truth = as_binary_csr(truth, "truth")
    points = rows_of_entries(truth)
    order = np.lexsort((-weights[truth.indices], points))
    ranks = np.arange(truth.nnz) - truth.indptr[points]  # points are sorted already
    return Hits(points, ranks, truth.indices[order], np.diff(truth.indptr))


def _check_no_label_twice(hits: Hits, n_labels: int) -> None:
    """Stop a label from counting twice, which would lift every metric."""
    keys = np.sort(hits.points * np.int64(n_labels) + hits.labels)
    twice = keys[1:][keys[1:] == keys[:-1]]
    if twice.size:
        point, label = divmod(int(twice[0]), n_labels)
        raise InputError(
            f"Row {point} of `ids` names label {label} twice. Predict each label once a point."
        )
