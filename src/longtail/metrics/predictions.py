"""Bring predictions into the form (ids, scores): top k, in rank order, set-aside pairs removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.data.csr import csr_of_chosen, rows_of_entries, with_entries
from longtail.data.foreign import UNREADABLE
from longtail.errors import InputError
from longtail.metrics.hits import (
    Floats,
    Integers,
    as_binary_csr,
    is_whole,
    row_chunks,
    stored_in,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = [
    "in_rank_order",
    "places_to_predict",
    "score_matrix",
    "set_aside",
    "top_k",
    "truth_without",
]


def top_k(
    scores: csr_array, k: int, *, exclude: csr_array | None = None
) -> tuple[Integers, Floats]:
    """Return the k best labels of each row of a sparse score matrix.

    Published predictions come as such a matrix. As in pyxclib, a stored zero is no prediction.

    Parameters
    ----------
    scores : sparse matrix, shape (n_points, n_labels)
        Scores of the predicted labels; may be negative.
    k : int
        How many to keep a point.
    exclude : sparse matrix, optional
        Pairs (point, label) that may not be predicted, as listed in a published filter file.

    Returns
    -------
    ids : ndarray of int, shape (n_points, k)
        Best first, equal scores by the smaller id; -1 where a row has no more.
    scores : ndarray of float, shape (n_points, k)
        Their scores; -inf where a row has no more.

    Raises
    ------
    InputError
        For a dense matrix, a k that is no whole number or below 1, or a score that is not a number.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import top_k
    >>> ids, scores = top_k(csr_array([[0.2, 0.0, 0.9], [0.5, 0.5, 0.0]]), k=2)
    >>> ids.tolist(), scores.tolist()
    ([[2, 0], [0, 1]], [[0.9, 0.2], [0.5, 0.5]])
    """
    scores = as_binary_csr(scores, "scores")
    if not is_whole(k):
        raise InputError(f"k must be a whole number, got {k!r}.")
    if k < 1:
        raise InputError(f"k is {k}, but at least one label a point is kept. Pass 1 or more.")
    if np.isnan(scores.data).any():
        raise InputError("`scores` holds NaN, which has no rank. Remove or replace those entries.")
    if exclude is not None:
        exclude = _checked_pairs(exclude, scores.shape[0])
    ids = np.full((scores.shape[0], k), -1, dtype=scores.indices.dtype)
    dtype = np.result_type(scores.dtype, np.float32)
    values = np.full((scores.shape[0], k), -np.inf, dtype=dtype)
    for chunk in row_chunks(scores.shape[0]):
        barred = None if exclude is None else exclude[chunk]
        _fill_top_k(scores[chunk], barred, ids[chunk], values[chunk])
    return ids, values


def score_matrix(ids: Integers, scores: Floats, n_labels: int) -> csr_array:
    """Return predictions as a sparse matrix, of which `top_k` makes such predictions again.

    Parameters
    ----------
    ids : ndarray of int, shape (n_points, k)
        Predicted labels, -1 where there is none.
    scores : ndarray of float, shape (n_points, k)
        Their scores.
    n_labels : int
        How many columns the matrix has.

    Returns
    -------
    csr_array, shape (n_points, n_labels)
        Of the dtype of `scores`, the ids of each row ascending.

    Raises
    ------
    InputError
        If the shapes differ, these are no ids and numbers, or an id is not below `n_labels`.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.metrics import score_matrix
    >>> ids, scores = np.array([[2, 0], [1, -1]]), np.array([[0.9, 0.2], [0.5, -np.inf]])
    >>> score_matrix(ids, scores, n_labels=3).toarray().tolist()
    [[0.2, 0.0, 0.9], [0.0, 0.5, 0.0]]
    """
    ids, scores = _as_array(ids, "ids"), _as_array(scores, "scores")
    _check_same_shape(ids, scores)
    if ids.dtype.kind not in "iu":
        raise InputError(f"`ids` must hold label ids as integers, got an array of {ids.dtype}.")
    _check_numbers(scores)
    if not is_whole(n_labels):
        raise InputError(f"n_labels must be a whole number, got {n_labels!r}.")
    if ids.size and ids.max() >= n_labels:
        raise InputError(f"There is a label {ids.max()} among {n_labels:,} labels. Pass them all.")
    return csr_of_chosen(ids, scores, ids >= 0, n_labels)


def _fill_top_k(scores: csr_array, barred: csr_array | None, ids: Integers, values: Floats) -> None:
    """Sort the entries of some rows and write the best into `ids` and `values`, in place."""
    points = rows_of_entries(scores)
    labels, data = scores.indices, scores.data.astype(values.dtype)
    if barred is not None:
        kept = ~stored_in(barred, points, labels)
        points, labels, data = points[kept], labels[kept], data[kept]
    order = np.lexsort((-data, points))  # stable, so equal scores stay sorted by label
    n_before = np.searchsorted(points, np.arange(scores.shape[0]))
    ranks = np.arange(len(points)) - n_before[points]
    near = ranks < ids.shape[1]
    ids[points[near], ranks[near]] = labels[order][near]
    values[points[near], ranks[near]] = data[order][near]


def places_to_predict(deepest: int, pairs: csr_array | None, most: int) -> int:
    """Return how many labels to predict, so that enough are left once pairs are set aside.

    Parameters
    ----------
    deepest : int
        The largest place that is measured.
    pairs : csr_array (n_points, n_labels) or None
        See `set_aside`.
    most : int
        As many as there are labels, or as can be asked for.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.predictions import places_to_predict
    >>> pairs = csr_array([[0, 1, 0], [1, 0, 1]])
    >>> places_to_predict(5, pairs, most=100), places_to_predict(5, None, most=100)
    (7, 5)
    """
    if pairs is None:
        return deepest
    n_pairs = int(np.diff(as_binary_csr(pairs, "pairs").indptr).max(initial=0))
    return max(deepest, min(deepest + n_pairs, most))


def set_aside(ids: Integers, scores: Floats, pairs: csr_array) -> tuple[Integers, Floats]:
    """Remove pairs (point, label) from predictions; what follows moves up.

    Published sets with label text list pairs that would give the answer away (a page and itself,
    reciprocal links); the tables are made with these predictions removed and the truth untouched.
    Predict a few labels more than the k to be measured, since removed ones leave padding behind.

    Parameters
    ----------
    ids : ndarray of int, shape (n_points, k)
    scores : ndarray of float, shape (n_points, k)
    pairs : sparse matrix, shape (n_points, n_labels)
        The pairs to remove; every stored value that is not zero counts.

    Returns
    -------
    ids, scores : ndarray, shape (n_points, k)
        New arrays, padded with -1 and -inf.

    Raises
    ------
    InputError
        Where the numbers of rows disagree.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import set_aside
    >>> set_aside(np.array([[4, 1]]), np.array([[0.9, 0.3]]), csr_array([[0, 0, 0, 0, 1]]))
    (array([[ 1, -1]]), array([[ 0.3, -inf]]))
    """
    ids, scores = np.array(ids), np.array(scores)
    _check_same_shape(ids, scores)
    if ids.dtype.kind == "u":
        ids = ids.astype(np.int64)  # room for the padding
    scores = scores.astype(np.promote_types(scores.dtype, np.float32))
    pairs = _checked_pairs(pairs, len(ids))
    for chunk in row_chunks(len(ids)):
        local = np.arange(chunk.stop - chunk.start)[:, np.newaxis]
        barred = stored_in(pairs[chunk], local, ids[chunk])
        kept_first = np.argsort(barred, axis=1, kind="stable")
        ids[chunk] = np.take_along_axis(np.where(barred, -1, ids[chunk]), kept_first, axis=1)
        values = np.where(barred, -np.inf, scores[chunk])
        scores[chunk] = np.take_along_axis(values, kept_first, axis=1)
    return ids, scores


def truth_without(truth: csr_array, pairs: csr_array) -> csr_array:
    """Return true labels without some pairs (point, label).

    Parameters
    ----------
    truth : csr_array (n_points, n_labels)
    pairs : csr_array (n_points, n_labels)
        Sorted; every stored value counts.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.predictions import truth_without
    >>> truth_without(csr_array([[1, 1], [0, 1]]), csr_array([[0, 1], [1, 0]])).toarray().tolist()
    [[1, 0], [0, 1]]
    """
    return with_entries(truth, ~stored_in(pairs, rows_of_entries(truth), truth.indices))


def in_rank_order(ids: Integers, scores: Floats) -> Integers:
    """Return `ids` with each row by falling score, equal scores by the smaller id.

    Parameters
    ----------
    ids : ndarray of int, shape (n_points, k)
    scores : ndarray of float, shape (n_points, k)

    Returns
    -------
    ndarray of int, shape (n_points, k)
        The array itself where it was in order already.

    Raises
    ------
    InputError
        Where the shapes disagree or a score is not a number.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.metrics import in_rank_order
    >>> in_rank_order(np.array([[7, 3, 5]]), np.array([[0.5, 0.5, 0.9]]))
    array([[5, 3, 7]])
    """
    ids, scores = _as_array(ids, "ids"), _as_array(scores, "scores")
    _check_same_shape(ids, scores)
    _check_numbers(scores)
    if scores.dtype.kind != "f":  # the negatives of whole numbers without a sign are no negatives
        scores = scores.astype(np.float64)
    if np.isnan(scores).any():
        point = int(np.isnan(scores).any(axis=1).argmax())
        raise InputError(f"Row {point} of `scores` holds NaN, which has no rank. Pass numbers.")
    wrong = ~_rows_in_order(ids, scores)
    if wrong.any():
        order = np.lexsort((ids[wrong], -scores[wrong]), axis=1)
        ids = ids.copy()
        ids[wrong] = np.take_along_axis(ids[wrong], order, axis=1)
    return ids


def _rows_in_order(ids: Integers, scores: Floats) -> NDArray[np.bool_]:
    """Find the rows that need no sorting: most come sorted, and looking is far cheaper."""
    left, right = scores[:, :-1], scores[:, 1:]
    ordered = (left > right) | ((left == right) & (ids[:, :-1] <= ids[:, 1:]))
    return np.asarray(ordered.all(axis=1))


def _as_array(values: Any, name: str) -> NDArray[Any]:
    """Return lists, too, as an array, or raise InputError."""
    try:
        return np.asarray(values)
    except UNREADABLE as error:
        raise InputError(f"`{name}` cannot be read as an array: {error}") from error


def _check_numbers(scores: Floats) -> None:
    """Raise InputError for scores that are no numbers."""
    if scores.dtype.kind not in "fiub":
        raise InputError(f"`scores` must hold numbers, got an array of {scores.dtype}.")


def _check_same_shape(ids: Integers, scores: Floats) -> None:
    """Both arrays speak of the same places."""
    if ids.ndim != 2 or ids.shape != scores.shape:
        raise InputError(
            f"`ids` has shape {ids.shape} but `scores` has {scores.shape}. "
            f"Pass two arrays of the same shape (n_points, k)."
        )


def _checked_pairs(pairs: csr_array, n_points: int) -> csr_array:
    """Pairs of other points would remove the wrong predictions without a word."""
    pairs = as_binary_csr(pairs, "pairs")
    if pairs.shape[0] != n_points:
        raise InputError(
            f"The pairs to set aside are for {pairs.shape[0]} points, the predictions for "
            f"{n_points}. Pass the filter file that belongs to this test set."
        )
    return pairs
