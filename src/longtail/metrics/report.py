"""All metrics of one set of predictions, and where on the long tail they come from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.errors import InputError
from longtail.metrics.at_k import coverage, dcg_by_point, gain_by_point, ratio, recall_by_point
from longtail.metrics.hits import (
    USUAL_PLACES,
    USUAL_RECALL_PLACES,
    Floats,
    Hits,
    Integers,
    as_binary_csr,
    best_hits,
    check_ids,
    check_k,
    deepest_place,
    find_hits,
)
from longtail.metrics.predictions import in_rank_order
from longtail.metrics.predictions import set_aside as without_pairs
from longtail.metrics.propensity import USUAL_PROPENSITY, inverse_propensities

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import csr_array

    ByPoint = Callable[[Hits, int, Floats], Floats]

__all__ = ["FrequencyBin", "by_frequency_quantile", "by_point", "evaluate"]


def evaluate(
    ids: Integers,
    scores: Floats,
    truth: csr_array,
    *,
    train_label_counts: ArrayLike,
    n_train_points: int,
    ks: Sequence[int] = USUAL_PLACES,
    recall_ks: Sequence[int] = USUAL_RECALL_PLACES,
    propensity: tuple[float, float] = USUAL_PROPENSITY,
    set_aside: csr_array | None = None,
) -> dict[str, float]:
    """Return every metric, in percent, under the names that published tables use.

    Parameters
    ----------
    ids : ndarray of int, shape (n_points, k)
        Predicted labels, -1 where there is none.
    scores : ndarray of float, shape (n_points, k)
        Their scores, -inf where there is none; they set the order, equal ones by the smaller id.
    truth : sparse matrix, shape (n_points, n_labels)
        True labels. It may have more columns than training had labels: those were never seen.
    train_label_counts : array-like, shape (n_train_labels,)
        How many training points have each label.
    n_train_points : int
        How many training points there were.
    ks : sequence of int
        Places for P, nDCG, PSP, PSnDCG and coverage.
    recall_ks : sequence of int
        Places for R.
    propensity : (float, float)
        A and B: (.5, .4) for WikiTitles-500K and Wikipedia-500K, (.6, 2.6) for Amazon's
        sets, (.55, 1.5) elsewhere, as for WikiSeeAlsoTitles.
    set_aside : sparse matrix, shape (n_points, n_labels), optional
        Pairs (point, label) to remove from the predictions, from a published filter file.

    Returns
    -------
    dict of str to float
        Keys ``P@1``, ``nDCG@3``, ``PSP@5``, ``PSnDCG@5``, ``coverage@5``, ``R@10`` and so on.

    Raises
    ------
    InputError
        Where shapes disagree, `ks` are no whole numbers, k is above what `ids` holds, a row names a
        true label twice, or counts and `propensity` are out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import evaluate
    >>> truth = csr_array([[1, 0, 1], [0, 1, 0]])
    >>> ids, scores = np.array([[2, 0], [0, 1]]), np.array([[0.9, 0.8], [0.7, 0.1]])
    >>> report = evaluate(ids, scores, truth, train_label_counts=[9, 4, 1], n_train_points=12,
    ...                   ks=[1, 2], recall_ks=[2])
    >>> {name: round(report[name], 1) for name in ("P@1", "P@2", "nDCG@2", "PSnDCG@2", "R@2")}
    {'P@1': 50.0, 'P@2': 75.0, 'nDCG@2': 81.5, 'PSnDCG@2': 82.5, 'R@2': 100.0}
    """
    counts = train_label_counts, n_train_points, propensity
    judged = _judged(ids, scores, truth, *counts, (ks, recall_ks), set_aside)
    fractions = _means(judged.by_point(ks))
    fractions |= {f"coverage@{k}": coverage(judged.hits, k, judged.best) for k in ks}
    fractions |= _means(judged.recall_by_point(recall_ks))
    return {name: 100.0 * value for name, value in fractions.items()}


def by_point(
    ids: Integers,
    scores: Floats,
    truth: csr_array,
    *,
    train_label_counts: ArrayLike,
    n_train_points: int,
    ks: Sequence[int] = USUAL_PLACES,
    recall_ks: Sequence[int] = USUAL_RECALL_PLACES,
    propensity: tuple[float, float] = USUAL_PROPENSITY,
    set_aside: csr_array | None = None,
) -> dict[str, Floats]:
    """Return what each point adds: the means of these are what `evaluate` returns.

    Takes and raises what `evaluate` does. Coverage, which is no mean over points, is not there.

    Returns
    -------
    dict of str to float64 (n_points,)
        In percent.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import by_point
    >>> truth = csr_array([[1, 0, 1], [0, 1, 0]])
    >>> ids, scores = np.array([[2, 0], [0, 1]]), np.array([[0.9, 0.8], [0.7, 0.1]])
    >>> by_point(ids, scores, truth, train_label_counts=[9, 4, 1], n_train_points=12,
    ...          ks=[1, 2], recall_ks=[2])["P@2"].tolist()
    [100.0, 50.0]
    """
    counts = train_label_counts, n_train_points, propensity
    judged = _judged(ids, scores, truth, *counts, (ks, recall_ks), set_aside)
    fractions = judged.by_point(ks) | judged.recall_by_point(recall_ks)
    return {name: 100.0 * of_points for name, of_points in fractions.items()}


class _Judged(NamedTuple):
    """The true labels among answers, the best that could be, and what a label is worth."""

    hits: Hits
    best: Hits
    weights: Floats

    def by_point(self, ks: Sequence[int]) -> dict[str, Floats]:
        """Return what each metric is at each point, as fractions, metric by metric."""
        hits, best, weights = self
        ones = np.ones_like(weights)

        def scored(metric: ByPoint, k: int) -> Floats:
            return metric(hits, k, weights) * ratio(1.0, metric(best, k, weights).mean())

        return (
            {f"P@{k}": gain_by_point(hits, k, ones) for k in ks}
            | {f"nDCG@{k}": dcg_by_point(hits, k, ones) for k in ks}
            | {f"PSP@{k}": scored(gain_by_point, k) for k in ks}
            | {f"PSnDCG@{k}": scored(dcg_by_point, k) for k in ks}
        )

    def recall_by_point(self, ks: Sequence[int]) -> dict[str, Floats]:
        """Return which share of its labels each point has in so many places."""
        return {f"R@{k}": recall_by_point(self.hits, k) for k in ks}


def _means(by_point: Mapping[str, Floats]) -> dict[str, float]:
    """Return the mean over the points of each metric."""
    return {name: float(of_points.mean()) for name, of_points in by_point.items()}


def _judged(
    ids: Integers,
    scores: Floats,
    truth: csr_array,
    train_label_counts: ArrayLike,
    n_train_points: int,
    propensity: tuple[float, float],
    places: tuple[Sequence[int], Sequence[int]],
    set_aside: csr_array | None,
) -> _Judged:
    """Hold answers against the truth; see `evaluate`."""
    truth = as_binary_csr(truth, "truth")
    ids = check_ids(ids, truth.shape[0])
    deepest = deepest_place(*places)
    for k in chain(*places):
        check_k(k, ids.shape[1])
    ids = in_rank_order(ids, scores)
    if set_aside is not None:
        ids, _ = without_pairs(ids, np.zeros(ids.shape), set_aside)
    counts = _counts_of_all_labels(train_label_counts, truth.shape[1])
    weights = inverse_propensities(counts, n_train_points, *_pair(propensity))
    return _Judged(find_hits(ids, truth, deepest), best_hits(truth, weights), weights)


@dataclass(frozen=True)
class FrequencyBin:
    """What the labels of one frequency bin add to P@k and to PSP@k.

    Parameters
    ----------
    n_labels : int
        Labels in the bin.
    mean_frequency : float
        Training points a label, mean over the bin.
    precision, ps_precision : float
        Contributions, as fractions: over all bins they add up to P@k and PSP@k.

    Examples
    --------
    >>> from longtail.metrics import FrequencyBin
    >>> FrequencyBin(n_labels=20, mean_frequency=4.5, precision=0.1, ps_precision=0.2).n_labels
    20
    """

    n_labels: int
    mean_frequency: float
    precision: float
    ps_precision: float


def by_frequency_quantile(
    ids: Integers,
    truth: csr_array,
    k: int,
    *,
    train_label_counts: ArrayLike,
    n_train_points: int,
    n_bins: int = 5,
    propensity: tuple[float, float] = USUAL_PROPENSITY,
) -> list[FrequencyBin]:
    """Return how much head, body and tail labels contribute to P@k and PSP@k.

    The labels are sorted by training frequency and cut into bins of equal numbers of labels, the
    most frequent first (DeepXML, figure 3). Labels unseen in training belong to the last bin.

    Parameters
    ----------
    ids : ndarray of int, shape (n_points, at least k)
        Predicted labels, best first; -1 where there is none.
    truth : sparse matrix, shape (n_points, n_labels)
        True labels.
    k : int
        How many places to look at.
    train_label_counts, n_train_points, propensity
        As in `evaluate`.
    n_bins : int
        How many bins; the paper has 5.

    Returns
    -------
    list of FrequencyBin
        From the most to the least frequent labels.

    Raises
    ------
    InputError
        As `evaluate`, and where there are fewer labels than bins.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import by_frequency_quantile
    >>> truth = csr_array([[1, 0, 0, 1], [0, 1, 0, 0]])
    >>> head, tail = by_frequency_quantile(np.array([[0], [2]]), truth, 1, n_train_points=20,
    ...                                    train_label_counts=[9, 5, 2, 1], n_bins=2)
    >>> head.mean_frequency, head.precision, tail.precision
    (7.0, 0.5, 0.0)
    """
    truth = as_binary_csr(truth, "truth")
    counts = _counts_of_all_labels(train_label_counts, truth.shape[1])
    weights = inverse_propensities(counts, n_train_points, *_pair(propensity))
    bins = _frequency_bins(counts, n_bins)
    bin_of_label = np.empty(len(counts), dtype=np.intp)
    for number, labels in enumerate(bins):
        bin_of_label[labels] = number
    hits = find_hits(ids, truth, k)
    places = hits.n_points * k
    best = float(gain_by_point(best_hits(truth, weights), k, weights).mean())
    bin_of_hit = bin_of_label[hits.labels]
    precision = np.bincount(bin_of_hit, minlength=n_bins) / places
    gain = np.bincount(bin_of_hit, weights=weights[hits.labels], minlength=n_bins) / places
    return [
        FrequencyBin(
            n_labels=len(labels),
            mean_frequency=float(counts[labels].mean()),
            precision=float(precision[number]),
            ps_precision=ratio(float(gain[number]), best),
        )
        for number, labels in enumerate(bins)
    ]


def _pair(propensity: Any) -> tuple[float, float]:
    """Return A and B, or raise InputError if these are not two numbers."""
    wrong = f"`propensity` must be A and B, such as {USUAL_PROPENSITY}, got {propensity!r}."
    try:
        a, b = propensity
    except (TypeError, ValueError) as error:
        raise InputError(wrong) from error
    if not (isinstance(a, Real) and isinstance(b, Real)):
        raise InputError(wrong)
    return float(a), float(b)


def _frequency_bins(counts: NDArray[np.float64], n_bins: int) -> list[NDArray[np.intp]]:
    """Labels of each bin, the most frequent first, equal counts by label id."""
    if not 1 <= n_bins <= len(counts):
        raise InputError(
            f"n_bins is {n_bins}, but {len(counts)} labels can be cut into 1 to {len(counts)} bins."
        )
    return np.array_split(np.argsort(-counts, kind="stable"), n_bins)


def _counts_of_all_labels(train_label_counts: ArrayLike, n_labels: int) -> NDArray[np.float64]:
    """Give the labels that only the truth has their count, 0."""
    counts = np.asarray(train_label_counts, dtype=np.float64).ravel()
    return np.pad(counts, (0, max(n_labels - len(counts), 0)))
