"""What training Astec costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.costs.estimate import INDEX, LOGIT, PROCESS, TEMPORARIES, VISIT
from longtail.surrogates.label_clusters import n_meta_labels

if TYPE_CHECKING:
    from longtail.costs.estimate import Machine, Workload
    from longtail.recipes.astec import Astec

__all__ = ["AstecCosts"]

# Core-seconds, as in `longtail.costs.estimate`.
CLUSTER = 1.5e-7  # a label of a point, times the entries of the point
SKETCH = 4.6e-10  # an entry of the features, times the dimension
BAG = 8e-10  # an entry of the features, times the dimension: forward, backward and step
SCORE = 1.4e-9  # re-scoring a shortlisted label, times the dimension
SHARED = 0.3  # share of the hard negatives drawn in a neighbourhood that are distinct


@dataclass(frozen=True)
class AstecCosts:
    """See `longtail.costs.estimate.CostModel`.

    Parameters
    ----------
    astec : Astec
        Its settings.
    """

    astec: Astec

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage, of all learners together."""
        of_one = self._learner_stages(workload, machine)
        return {stage: self.astec.n_learners * seconds for stage, seconds in of_one.items()}

    def _learner_stages(self, w: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage of one learner."""
        astec, threads = self.astec, machine.n_threads
        D = astec.sizes_for(w.n_points).dimension
        sketch = w.n_nonzero * D * SKETCH
        bags = w.n_nonzero * D * BAG / threads
        size = min(astec.shortlist_size, w.n_labels)
        n_visits = astec.n_near_labels + astec.n_near_points
        n_indexed = w.n_labels + (w.n_points if astec.n_near_points else 0)

        def products(width: float) -> float:
            """Return the seconds of an epoch against `width` labels."""
            logits = w.n_points * width
            return 6 * logits * D / machine.rate + logits * LOGIT / threads

        on_pool = products(self._pool_size(w))
        on_clusters = products(self._n_meta_labels(w))
        seconds = {
            "label clusters": w.n_label_pairs * w.n_nonzero / w.n_points * CLUSTER / threads,
            "module I": sketch + astec.surrogate_epochs * (on_clusters + bags),
            "module II": (n_indexed * INDEX + w.n_points * n_visits * VISIT) * D / threads,
            "module IV": astec.extreme_epochs * on_pool,
        }
        if astec.reranker:
            mining = w.n_points * size * D * SCORE / threads
            seconds["re-ranker"] = sketch + mining + astec.reranker_epochs * (on_pool + bags)
        return seconds

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: all tables, what is known of each point, and one batch."""
        w, astec = workload, self.astec
        D, batch_size, _ = astec.sizes_for(w.n_points)
        n_networks = 2 if astec.reranker else 1
        tables = 4 * D * (w.n_features + w.n_labels) * n_networks * astec.n_learners
        tables += 4 * D * (self._n_meta_labels(w) + w.n_features)  # and a table being made
        bags = 2 * 8 * w.n_nonzero  # all points, and the training part of them
        points = 3 * 4 * D * w.n_points  # features, unit features in the graph, a temporary
        shortlists = w.n_points * min(astec.shortlist_size, w.n_labels) * 8
        width = max(self._pool_size(w), self._n_meta_labels(w))
        batch = 3 * 4 * 2 * batch_size * width
        return PROCESS + TEMPORARIES * (tables + bags + points + shortlists + batch)

    def _n_meta_labels(self, w: Workload) -> int:
        """Return how many label clusters there will be."""
        return n_meta_labels(w.n_labels, self.astec.n_meta_labels)

    def _pool_size(self, w: Workload) -> float:
        """Return about how many labels a batch on shortlists is scored against."""
        n_points = 2 * self.astec.sizes_for(w.n_points).batch_size
        own = 0.5 * n_points * w.n_label_pairs / w.n_points
        return min(w.n_labels, own + SHARED * n_points * self.astec.n_hard + self.astec.n_random)
