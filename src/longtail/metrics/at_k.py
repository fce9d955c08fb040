"""One function a metric, as fractions; `longtail.metrics.evaluate` gives them all, in percent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.errors import InputError
from longtail.metrics.hits import Floats, Hits, Integers, best_hits, find_hits

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = [
    "coverage",
    "coverage_at_k",
    "dcg_by_point",
    "gain_by_point",
    "ndcg_at_k",
    "precision_at_k",
    "ps_ndcg_at_k",
    "ps_precision_at_k",
    "ratio",
    "recall_at_k",
    "recall_by_point",
]


def precision_at_k(ids: Integers, truth: csr_array, k: int) -> float:
    """Return P@k: the share of the first k places that hold a true label.

    Parameters
    ----------
    ids : ndarray of int, shape (n_points, at least k)
        Predicted labels, best first; -1 where there is none.
    truth : sparse matrix, shape (n_points, n_labels)
        True labels; every stored value that is not zero counts as one.
    k : int
        How many places to look at.

    Raises
    ------
    InputError
        Where shapes disagree, k is out of range, or a row names a true label twice.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import precision_at_k
    >>> truth = csr_array([[1, 0, 1], [0, 1, 0]])
    >>> precision_at_k(np.array([[2, 0], [0, 1]]), truth, k=2)
    0.75
    """
    return float(gain_by_point(find_hits(ids, truth, k), k, _ones(truth)).mean())


def ndcg_at_k(ids: Integers, truth: csr_array, k: int) -> float:
    """Return nDCG@k: gains discounted by log2(place + 1), over the best min(k, n_true) places.

    Parameters and errors are those of `precision_at_k`; a point without labels counts as 0.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import ndcg_at_k
    >>> round(ndcg_at_k(np.array([[1, 0]]), csr_array([[1, 0, 0]]), k=2), 4)
    0.6309
    """
    return float(dcg_by_point(find_hits(ids, truth, k), k, _ones(truth)).mean())


def recall_at_k(ids: Integers, truth: csr_array, k: int) -> float:
    """Return R@k: the share of a point's true labels in the first k places, mean over the points.

    Parameters and errors are those of `precision_at_k`; a point without labels counts as 0.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import recall_at_k
    >>> recall_at_k(np.array([[1, 0]]), csr_array([[1, 0, 1]]), k=2)
    0.5
    """
    return float(recall_by_point(find_hits(ids, truth, k), k).mean())


def coverage_at_k(ids: Integers, truth: csr_array, k: int) -> float:
    """Return the share of labels that are predicted rightly, in the first k places, at least once.

    Of the distinct labels that some point of `truth` has; labels without a point do not count.
    Parameters and errors are those of `precision_at_k`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import coverage_at_k
    >>> truth = csr_array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]])
    >>> round(coverage_at_k(np.array([[0], [0], [2]]), truth, k=1), 4)  # 0 and 2 of 0, 1, 2
    0.6667
    """
    return coverage(find_hits(ids, truth, k), k, best_hits(truth, _ones(truth)))


def ps_precision_at_k(
    ids: Integers, truth: csr_array, k: int, inverse_propensities: Floats
) -> float:
    """Return PSP@k: P@k with each hit worth 1/p_l, over the best attainable mean.

    Takes and raises what `precision_at_k` does, and one value a label:

    Parameters
    ----------
    inverse_propensities : ndarray, shape (at least n_labels,)
        1/p_l of each label, from `longtail.metrics.inverse_propensities`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import ps_precision_at_k
    >>> truth = csr_array([[1, 1, 0], [0, 0, 1]])
    >>> ps_precision_at_k(np.array([[0], [2]]), truth, 1, np.array([1.0, 3.0, 2.0]))  # 3 of 5
    0.6
    """
    weights = _checked_weights(inverse_propensities, truth)
    reached = gain_by_point(find_hits(ids, truth, k), k, weights)
    return ratio(reached.sum(), gain_by_point(best_hits(truth, weights), k, weights).sum())


def ps_ndcg_at_k(ids: Integers, truth: csr_array, k: int, inverse_propensities: Floats) -> float:
    """Return PSnDCG@k: nDCG@k with each hit worth 1/p_l, over the best attainable mean.

    Parameters and errors are those of `ps_precision_at_k`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics import ps_ndcg_at_k
    >>> truth = csr_array([[1, 1, 0]])
    >>> round(ps_ndcg_at_k(np.array([[0, 1]]), truth, 2, np.array([1.0, 3.0, 2.0])), 4)
    0.7967
    """
    weights = _checked_weights(inverse_propensities, truth)
    reached = dcg_by_point(find_hits(ids, truth, k), k, weights)
    return ratio(reached.sum(), dcg_by_point(best_hits(truth, weights), k, weights).sum())


def gain_by_point(hits: Hits, k: int, weights: Floats) -> Floats:
    """Return the summed weights of each point's hits in k places, over k.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.at_k import gain_by_point
    >>> from longtail.metrics.hits import find_hits
    >>> hits = find_hits(np.array([[2, 0], [0, 1]]), csr_array([[1, 0, 1], [0, 0, 1]]), k=2)
    >>> gain_by_point(hits, 2, np.array([1.0, 1.0, 4.0])).tolist()  # (4 + 1) / 2
    [2.5, 0.0]
    """
    hits = hits.up_to(k)
    return hits.summed(weights[hits.labels] / k)


def dcg_by_point(hits: Hits, k: int, weights: Floats) -> Floats:
    """Return each point's discounted gain, over that of min(k, n_true) unweighted hits.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.at_k import dcg_by_point
    >>> from longtail.metrics.hits import find_hits
    >>> hits = find_hits(np.array([[0, 1], [1, 0]]), csr_array([[1, 1], [1, 0]]), k=2)
    >>> dcg_by_point(hits, 2, np.ones(2)).round(4).tolist()
    [1.0, 0.6309]
    """
    hits = hits.up_to(k)
    discounts = 1.0 / np.log2(np.arange(k) + 2.0)
    best = np.cumsum(discounts)[np.minimum(hits.n_true[hits.points], k) - 1]
    return hits.summed(weights[hits.labels] * discounts[hits.ranks] / best)


def recall_by_point(hits: Hits, k: int) -> Floats:
    """Return which share of its true labels each point has in k places.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.at_k import recall_by_point
    >>> from longtail.metrics.hits import find_hits
    >>> truth = csr_array([[1, 0, 1], [0, 0, 0]])  # the second point has no label to find
    >>> recall_by_point(find_hits(np.array([[1, 0], [0, 1]]), truth, k=2), 2).tolist()
    [0.5, 0.0]
    """
    hits = hits.up_to(k)
    return hits.summed(1.0 / hits.n_true[hits.points])


def coverage(hits: Hits, k: int, best: Hits) -> float:
    """Distinct labels among the hits in k places, over those of the truth (in `best`).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.at_k import coverage
    >>> from longtail.metrics.hits import best_hits, find_hits
    >>> truth = csr_array([[1, 0, 0], [1, 1, 0]])
    >>> hits = find_hits(np.array([[0], [0]]), truth, k=1)
    >>> coverage(hits, 1, best_hits(truth, np.ones(3)))  # 0 of 0 and 1
    0.5
    """
    return ratio(len(np.unique(hits.up_to(k).labels)), len(np.unique(best.labels)))


def ratio(reached: float, attainable: float) -> float:
    """`reached` over `attainable`; 0 where nothing was attainable (no point has a label).

    Examples
    --------
    >>> from longtail.metrics.at_k import ratio
    >>> ratio(3, 4), ratio(0, 0)
    (0.75, 0.0)
    """
    return float(reached / attainable) if attainable else 0.0


def _ones(truth: csr_array) -> NDArray[np.float64]:
    """Weights that make every hit count the same."""
    return np.ones(np.shape(truth)[-1])


def _checked_weights(inverse_propensities: Floats, truth: csr_array) -> Floats:
    """Say which label has no weight here, before it is an index error far from its cause."""
    n_labels = np.shape(truth)[-1]
    weights = np.asarray(inverse_propensities)
    if weights.ndim != 1 or len(weights) < n_labels:
        raise InputError(
            f"`inverse_propensities` has shape {weights.shape} but `truth` has {n_labels} labels. "
            f"Pass one value a label; a label unseen in training has the count 0."
        )
    return weights
