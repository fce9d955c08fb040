"""Which answers of a model are worth a look, and which labels it misses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.data.csr import rows_of_entries
from longtail.data.rows import evenly_spaced
from longtail.metrics.hits import true_among

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.metrics.hits import Floats, Integers

    Points = NDArray[np.int64]

__all__ = [
    "Confusion",
    "MissedLabel",
    "most_confused",
    "most_missed",
    "spread_out",
    "sure_and_wrong",
    "without_hit",
]


class MissedLabel(NamedTuple):
    """A label, how many points have it, and how many of these were answered with it."""

    label: int
    n_points: int
    n_found: int


class Confusion(NamedTuple):
    """A wrong first answer, a true label that was not answered, and at how many points."""

    answered: int
    missed: int
    n_points: int


def sure_and_wrong(ids: Integers, probabilities: Floats, truth: csr_array, n: int) -> Points:
    """Return points whose first answer is wrong, the most probable first.

    Often the answer is right, and the label was forgotten.

    Parameters
    ----------
    ids : int array (n_points, k)
        Answers, best first, padded with -1.
    probabilities : float array (n_points, k)
    truth : csr_array (n_points, n_labels)
    n : int
        At most so many points.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.report.mistakes import sure_and_wrong
    >>> ids, probabilities = np.array([[0], [0], [1]]), np.array([[0.5], [0.75], [0.625]])
    >>> sure_and_wrong(ids, probabilities, csr_array([[0, 1], [1, 0], [1, 0]]), 5).tolist()
    [2, 0]
    """
    first = ids[:, :1]
    is_wrong = (first >= 0) & ~true_among(first, truth)
    points = np.flatnonzero(is_wrong)
    return points[np.argsort(-probabilities[points, 0], kind="stable")[:n]]


def without_hit(ids: Integers, truth: csr_array, n: int) -> Points:
    """Return points that have labels, none of which is among the answers.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.report.mistakes import without_hit
    >>> without_hit(np.array([[0], [0], [1]]), csr_array([[1, 0], [0, 1], [0, 0]]), 5).tolist()
    [1]
    """
    n_true = np.diff(truth.indptr)
    points = np.flatnonzero((n_true > 0) & ~true_among(ids, truth).any(axis=1))
    return points[spread_out(len(points), n)]


def spread_out(n_points: int, n: int) -> Points:
    """Return at most `n` of the points, from all over."""
    return np.asarray(evenly_spaced(min(n, n_points), n_points), np.int64)


def most_missed(ids: Integers, truth: csr_array, n: int) -> list[MissedLabel]:
    """Return the labels that most points have without being answered with them.

    Parameters
    ----------
    ids : int array (n_points, k)
        Answers, padded with -1.
    truth : csr_array (n_points, n_labels)
    n : int
        At most so many labels.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.report.mistakes import most_missed
    >>> most_missed(np.array([[0], [0], [1]]), csr_array([[1, 0], [0, 1], [0, 1]]), 5)
    [MissedLabel(label=1, n_points=2, n_found=1)]
    """
    n_points, n_found = (
        np.bincount(labels, minlength=truth.shape[1])
        for labels in (truth.indices, ids[true_among(ids, truth)])
    )
    n_missed = n_points - n_found
    worst = np.argsort(-n_missed, kind="stable")[:n]
    return [
        MissedLabel(int(label), int(n_points[label]), int(n_found[label]))
        for label in worst
        if n_missed[label]
    ]


def most_confused(ids: Integers, truth: csr_array, n: int) -> list[Confusion]:
    """Return which wrong first answers stand most often where which true label was missed.

    Pairs that occur once are chance, and left out.

    Parameters
    ----------
    ids : int array (n_points, k)
        Answers, best first, padded with -1.
    truth : csr_array (n_points, n_labels)
    n : int
        At most so many pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.report.mistakes import most_confused
    >>> most_confused(np.array([[0], [0], [1]]), csr_array([[0, 1], [0, 1], [0, 1]]), 5)
    [Confusion(answered=0, missed=1, n_points=2)]
    """
    first = ids[:, 0].astype(np.int64)
    is_wrong = (first >= 0) & ~true_among(ids[:, :1], truth)[:, 0]
    points, labels = rows_of_entries(truth), truth.indices
    is_missed = is_wrong[points] & ~(ids[points] == labels[:, np.newaxis]).any(axis=1)
    points, labels = points[is_missed], labels[is_missed]
    pairs, counts = np.unique(first[points] * truth.shape[1] + labels, return_counts=True)
    commonest = np.argsort(-counts, kind="stable")[:n]
    commonest = commonest[counts[commonest] > 1]
    answered, missed = np.divmod(pairs[commonest], truth.shape[1])
    columns = (answered.tolist(), missed.tolist(), counts[commonest].tolist())
    return [Confusion(*row) for row in zip(*columns, strict=True)]
