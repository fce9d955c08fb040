"""Tables with a row for each pair of a point and a label, and the points that they are about.

A query and a product that was bought after it, a title and one of its subjects: what a data base
joins, or a log counts, has the same text in many rows, each with another label. Read as they are,
these rows contradict each other, for whatever a row does not have counts as wrong for it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.data.csr import rows_of_entries, with_int32_indices
from longtail.data.dataset import Dataset
from longtail.data.input_notes import warn
from longtail.data.rows import binary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

__all__ = ["joined_points", "numbers_of_points", "said_of_pairs"]

LEAST_REPEATED = 0.05  # of the rows: fewer may be chance
MOST_LABELS = 1.1  # labels of a row, on average, in a table of pairs


def joined_points(
    dataset: Dataset, pairs: csr_array | None = None, text_of: Rows | None = None
) -> tuple[Dataset, csr_array | None]:
    """Return a table of pairs as one point for each text or row of features, with all its labels.

    It is joined with an `InputWarning`, and other data is returned as is: see `_are_pairs`.
    A pair that comes several times has as many points: so each label keeps its number of points,
    and a text has a point with all its labels, one with those that come twice or more, and so on.

    Parameters
    ----------
    dataset : Dataset
    pairs : csr_array (n_points, n_labels), optional
        Further pairs of the same rows. A point has those of any of its text's rows.
    text_of : int64 (n_points,), optional
        `numbers_of_points` of the data set, where they are known.

    Returns
    -------
    dataset : Dataset
        Points in the order of their first rows.
    pairs : csr_array or None

    Examples
    --------
    >>> import warnings
    >>> from longtail import Dataset
    >>> from longtail.data.pair_table import joined_points
    >>> texts, labels = ["rye", "rye", "spelt", "rye"], ["bread", "grain", "grain", "bread"]
    >>> table = Dataset.of(texts, [[label] for label in labels])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     points, _ = joined_points(table)
    >>> list(points.texts), points.labels.toarray().astype(int).tolist()
    (['rye', 'spelt', 'rye'], [[1, 1], [0, 1], [1, 0]])
    >>> print(caught[0].message)
    training data: 4 rows are joined to 3 points, each with all labels that its text has as often.
    """
    text_of = numbers_of_points(dataset) if text_of is None else text_of
    if not _are_pairs(dataset, text_of):
        return dataset, pairs
    first_rows, labels = _layers(text_of, dataset.labels)
    if len(first_rows) == len(text_of):
        return dataset, pairs
    n_points = f"{len(first_rows):,} point{'s' * (len(first_rows) > 1)}"
    warn(
        f"training data: {len(text_of):,} rows are joined to {n_points}, each with all labels that "
        "its text has as often."
    )
    some = dataset.take(first_rows)
    joined = Dataset(some.texts, some.features, labels, dataset.label_space, some.rows)
    if pairs is None:
        return joined, None
    every = np.arange(len(text_of))
    rows_of = csr_array((np.ones(len(every)), (text_of, every)))
    return joined, with_int32_indices(binary((rows_of @ pairs)[text_of[first_rows]]))


def _are_pairs(dataset: Dataset, text_of: Rows) -> bool:
    """Tell a table of pairs by its `numbers_of_points`.

    More than a twentieth of its rows have the text of another row, and these have one label each,
    but not all that share a text the same.
    """
    is_repeated = (np.bincount(text_of) > 1)[text_of]
    n_repeated = np.count_nonzero(is_repeated)
    if n_repeated <= LEAST_REPEATED * len(text_of):
        return False
    labels = dataset.labels[is_repeated]
    if labels.nnz > MOST_LABELS * n_repeated:
        return False
    texts = np.repeat(text_of[is_repeated], np.diff(labels.indptr))
    n_pairs = len(np.unique(texts * labels.shape[1] + labels.indices))
    return n_pairs > len(np.unique(texts))  # else one question, asked often


def said_of_pairs(dataset: Dataset, name: str) -> str:
    """Return what to say of a test set that is a table of pairs; nothing of other data.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.data.pair_table import said_of_pairs
    >>> table = Dataset.of(["rye", "rye", "spelt"], [["bread"], ["grain"], ["grain"]])
    >>> said_of_pairs(table, "test.csv").partition(",")[0]
    'test.csv has 3 points with 2 different texts'
    >>> said_of_pairs(Dataset.of(["rye", "spelt"], [["bread"], ["grain"]]), "test.csv")
    ''
    """
    text_of = numbers_of_points(dataset)
    if not _are_pairs(dataset, text_of):
        return ""
    n_texts = len(np.unique(text_of))
    what = "texts" if dataset.texts is not None else "rows of features"
    return (
        f"{name} has {dataset.n_points:,} points with {n_texts:,} different {what}, and each is "
        "measured by its own labels: an answer that only another point of the same has counts as "
        "wrong, which keeps precision low. A training joins such rows."
    )


def _layers(text_of: Rows, labels: csr_array) -> tuple[Rows, csr_array]:
    """Return one row of the table for each point, and the labels of each point.

    The first time that a text has a label, that goes to the first point of the text, the second
    time to the second one. A row without labels is a point by itself.
    """
    n_rows, n_labels_of = len(text_of), np.diff(labels.indptr)
    rows = rows_of_entries(labels)
    order = np.lexsort((rows, labels.indices, text_of[rows]))
    rows, ids = rows[order], labels.indices[order]
    pairs = text_of[rows] * labels.shape[1] + ids
    starts = np.flatnonzero(np.diff(pairs, prepend=-1))
    time = np.arange(len(pairs)) - np.repeat(starts, np.diff(starts, append=len(pairs)))
    none = np.flatnonzero(n_labels_of == 0)
    keys = np.concatenate([text_of[rows] + n_rows * time, -1 - none])
    _, point_of = np.unique(keys, return_inverse=True)
    first_rows = np.full(point_of.max() + 1, n_rows)
    np.minimum.at(first_rows, point_of, np.concatenate([rows, none]))
    place = np.empty_like(first_rows)
    by_row = np.argsort(first_rows, kind="stable")
    place[by_row] = np.arange(len(by_row))
    ones = np.ones(len(ids), np.float32)
    points = place[point_of[: len(ids)]]
    joined = csr_array((ones, (points, ids)), shape=(len(by_row), labels.shape[1]))
    return first_rows[by_row], with_int32_indices(binary(joined))


def numbers_of_points(dataset: Dataset) -> Rows:
    """Return the number of the text, or of the features, of each row.

    By 64-bit hashes, since there may be more texts than a dictionary of them would leave memory
    for. Two of a million texts have the same with a probability of 3 in 10^8. Of rows that say
    nothing, none is about what another is.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.data.pair_table import numbers_of_points
    >>> table = Dataset.of(["rye", "spelt", "rye"], [["bread"], ["grain"], ["grain"]])
    >>> first, second, third = numbers_of_points(table).tolist()
    >>> first == third, first == second
    (True, False)
    """
    keys = _feature_keys(dataset.features) if dataset.texts is None else dataset.texts
    hashes = np.fromiter((hash(key) for key in keys), np.int64, dataset.n_points)
    _, text_of = np.unique(hashes, return_inverse=True)
    silent = np.flatnonzero(hashes == hash(""))
    text_of[silent] = dataset.n_points + np.arange(len(silent))
    _, text_of = np.unique(text_of, return_inverse=True)  # numbered from 0 without gaps
    numbers: Rows = text_of.astype(np.int64)
    return numbers


def _feature_keys(features: csr_array | None) -> Iterator[bytes]:
    """Yield what tells rows of features apart; nothing where there are none."""
    if features is None:
        return
    for start, stop in pairwise(features.indptr):
        indices, values = features.indices[start:stop], features.data[start:stop]
        is_said = values != 0  # a zero that is stored says no more than one that is not
        yield indices[is_said].tobytes() + values[is_said].tobytes()
