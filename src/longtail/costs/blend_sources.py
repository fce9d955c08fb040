"""What sources of a blend cost, in the default recipe and in NGAME's family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.blend.candidates import LEAST_CONFUSED, MOST_FAR, N_CONFUSED_LABELS, SearchSizes
from longtail.blend.relations import RelationSizes

if TYPE_CHECKING:
    from longtail.costs.estimate import Workload

__all__ = ["N_VIEWS", "n_related", "time_of_linear", "time_of_relating"]

# Core-seconds, as in `longtail.costs.estimate`.
VISITS = 4.5e-7  # a point that trains a support vector machine, in all passes
DESCENT = 1.25e-8  # an entry of it
# Labels that a point of one label is told apart from, where each has one point; and how that grows
# with a point's labels, and shrinks with a label's points, as measured on eight data sets.
CONFUSED, OF_MORE_LABELS, OF_MORE_POINTS = 42.0, 0.4, -0.15
RELATE = 1.3e-7  # an entry of a point, compared with label texts through their inverted index
N_VIEWS = 40  # of a candidate, about; see `longtail.blend.score_network`


def time_of_relating(w: Workload, n_threads: int) -> float:
    """Return the seconds of comparing points with label texts word by word, if there are any.

    Examples
    --------
    >>> from longtail.costs.blend_sources import time_of_relating
    >>> from longtail.costs.estimate import Workload
    >>> points = {"n_points": 10_000, "n_nonzero": 10**7, "n_word_entries": 10**7}
    >>> sizes = {"n_features": 5_000, "n_labels": 1_000, "n_label_pairs": 20_000, **points}
    >>> without, with_texts = (Workload(n_label_entries=n, **sizes) for n in (0, 5_000))
    >>> [time_of_relating(workload, n_threads=2) > 0 for workload in (without, with_texts)]
    [False, True]
    """
    return w.n_nonzero * RELATE / n_threads if w.n_label_entries else 0.0


def time_of_linear(w: Workload, n_entries: float, n_threads: int) -> float:
    """Return the seconds of the linear classifiers, which read so many entries of the points.

    Examples
    --------
    A point trains the classifiers of the labels that are mistaken for its own. Near points have
    the same ones where labels are few.

    >>> from longtail.costs.blend_sources import time_of_linear
    >>> from longtail.costs.estimate import Workload
    >>> points = {"n_points": 10_000, "n_nonzero": 10**7, "n_word_entries": 10**7}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> few, many = (Workload(n_labels=n, **sizes) for n in (1_000, 10**6))
    >>> times = time_of_linear(many, 10**7, n_threads=2) / time_of_linear(few, 10**7, n_threads=2)
    >>> round(times, 1)
    1.4
    """
    n_own = w.n_label_pairs / w.n_points
    n_of_label = max(w.n_label_pairs / max(w.n_trained_labels, 1), 1.0)
    confused: float = CONFUSED * n_own**OF_MORE_LABELS * n_of_label**OF_MORE_POINTS
    n_popular = SearchSizes.n_popular * min(1.0, MOST_FAR / w.n_points)
    n_negatives = min(max(confused, LEAST_CONFUSED), N_CONFUSED_LABELS) + n_popular
    n_visits = w.n_points * (n_own + min(n_negatives, w.n_labels))
    return n_visits * (VISITS + DESCENT * n_entries / w.n_points) / n_threads


def n_related(w: Workload) -> int:
    """Return how many labels of a point the words of their texts bring, at most.

    Examples
    --------
    >>> from longtail.costs.blend_sources import n_related
    >>> from longtail.costs.estimate import Workload
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_labels": 1_000, "n_label_pairs": 20_000, **points}
    >>> n_related(Workload(n_label_entries=0, **sizes))
    0
    """
    return RelationSizes().n_candidates if w.n_label_entries else 0
