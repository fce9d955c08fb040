"""What training Slice costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.costs.estimate import BAGS, WITH_TORCH

if TYPE_CHECKING:
    from longtail.costs.estimate import Machine, Workload
    from longtail.recipes.slice import Slice

__all__ = ["SliceCosts"]

# Core-seconds, as in `longtail.costs.estimate`.
FACTOR = 8e-10  # a row that is made orthonormal, times the squared dimension
SEARCH = 1.7e-6  # a point, times the dimension
TRAIN = 2.3e-9  # a label of a shortlist, times the dimension

FACTORED = 8 * 4  # bytes of a number while it is made orthonormal, in double precision
LISTED = 40  # bytes of a label of a shortlist


@dataclass(frozen=True)
class SliceCosts:
    """See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    A point is scored against its shortlist, however many labels there are.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.slice import SliceCosts
    >>> from longtail.recipes.slice import Slice
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> few, many = (Workload(n_labels=n, **sizes) for n in (1_000, 2_000))
    >>> costs, machine = SliceCosts(Slice()), Machine(rate=1e11, n_threads=2)
    >>> seconds = [costs.stages(workload, machine)["classifiers"] for workload in (few, many)]
    >>> round(seconds[1] / seconds[0], 1)
    1.0
    """

    settings: Slice

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage."""
        w, D, threads = workload, self._dimension(workload), machine.n_threads
        n_listed = w.n_points * min(self.settings.shortlist_size, w.n_labels)
        factored = (w.n_points + w.n_features) * D**2 if w.n_features > D else 0
        return {
            "vectors": factored * FACTOR / threads,
            "shortlists": w.n_points * D * SEARCH / threads,
            "classifiers": n_listed * D * TRAIN / threads,
        }

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: of the vectors, or of the shortlists and classifiers."""
        w, D = workload, self._dimension(workload)
        factoring = FACTORED * D * w.n_features if w.n_features > D else 0
        n_listed = w.n_points * min(self.settings.shortlist_size, w.n_labels)
        vectors = 4 * D * (w.n_features + 3 * w.n_points + 3 * w.n_labels)
        return WITH_TORCH + BAGS * w.n_nonzero + max(factoring, vectors + LISTED * n_listed)

    def _dimension(self, w: Workload) -> int:
        """Return the length of the vectors."""
        return min(self.settings.dimension, w.n_features)
