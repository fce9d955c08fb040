"""What training Astec costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longtail.costs.estimate import BAG, BAGS, CENTROIDS, VISIT, WITH_TORCH, indexing
from longtail.surrogates.label_clusters import LabelClusters, n_meta_labels

if TYPE_CHECKING:
    from longtail.costs.estimate import Machine, Workload
    from longtail.recipes.astec import Astec

__all__ = ["AstecCosts", "clustering_memory"]

# Core-seconds, as in `longtail.costs.estimate`.
CLUSTER = 1.5e-7  # a label of a point, times the entries of the point
SKETCH = 4.6e-10  # an entry of the features, times the dimension
SCORE = 1.4e-9  # re-scoring a shortlisted label, times the dimension


@dataclass(frozen=True)
class AstecCosts:
    """See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    A batch is scored against the shortlists of its points, however many labels there are.

    >>> from longtail.costs.astec import AstecCosts
    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.recipes.astec import Astec
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> few, many = (Workload(n_labels=n, **sizes) for n in (1_000, 2_000))
    >>> costs, machine = AstecCosts(Astec()), Machine(rate=1e11, n_threads=2)
    >>> seconds = [costs.stages(workload, machine)["module IV"] for workload in (few, many)]
    >>> round(seconds[1] / seconds[0], 1)
    1.0
    """

    settings: Astec

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage, of all learners together."""
        of_one = self._learner_stages(self._with_texts(workload), machine)
        return {stage: self.settings.n_learners * seconds for stage, seconds in of_one.items()}

    def _learner_stages(self, w: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage of one learner."""
        settings, threads = self.settings, machine.n_threads
        D = settings.sizes_for(w.n_points).dimension
        sketch = w.n_nonzero * D * SKETCH
        bags = w.n_nonzero * D * BAG / threads
        size = min(settings.shortlist_size, w.n_labels)
        n_visits = settings.n_near_labels + settings.n_near_points
        of_points = indexing(w.n_points) if settings.n_near_points else 0.0
        searching = indexing(w.n_labels) + of_points + w.n_points * n_visits * VISIT
        on_pool = machine.training(w.n_points * self._pool_size(w), D)
        n_meta = n_meta_labels(w.n_labels, settings.n_meta_labels)
        on_clusters = machine.training(w.n_points * n_meta, D)
        seconds = {
            "label clusters": w.n_label_pairs * w.n_nonzero / w.n_points * CLUSTER / threads,
            "module I": sketch + settings.surrogate_epochs * (on_clusters + bags),
            "module II": searching * D / threads,
            "module IV": settings.extreme_epochs * on_pool,
        }
        if settings.reranker:
            mining = w.n_points * size * D * SCORE / threads
            seconds["re-ranker"] = sketch + mining + settings.reranker_epochs * (on_pool + bags)
        return seconds

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: of clusters of labels, or of the network trained last."""
        w, settings = self._with_texts(workload), self.settings
        D, batch_size, _ = settings.sizes_for(w.n_points)
        n_networks = 2 if settings.reranker else 1
        tables, points = 4 * D * (w.n_features + w.n_labels), 4 * D * w.n_points
        # The network in training is there twice; Adam has two numbers more for each of its own.
        n_tables = n_networks + 1 + 2 * settings.as_in_code
        n_meta = n_meta_labels(w.n_labels, settings.n_meta_labels)
        width = max(self._pool_size(w), n_meta)
        trained: float = n_tables * tables + 4 * 4 * D * n_meta
        trained += 3 * points  # features, unit features in the graph, a temporary
        trained += 2 * 4 * w.n_points * min(settings.shortlist_size, w.n_labels)
        trained += 3 * 4 * 2 * batch_size * width
        ready = n_networks * tables + points + 4 * D * w.n_labels
        kept = BAGS * w.n_nonzero + (settings.n_learners - 1) * ready
        return WITH_TORCH + kept + max(clustering_memory(w), trained)

    def _with_texts(self, w: Workload) -> Workload:
        """Return the workload with the labels' texts as further points, where they are."""
        if not (self.settings.label_texts and w.n_label_entries):
            return w
        return replace(
            w,
            n_points=w.n_points + w.n_labels,
            n_nonzero=w.n_nonzero + w.n_label_entries,
            n_label_pairs=w.n_label_pairs + w.n_labels,
            n_used_labels=None,
        )

    def _pool_size(self, w: Workload) -> float:
        """Return about how many labels a batch on shortlists is scored against."""
        batch_size = 2 * self.settings.sizes_for(w.n_points).batch_size
        return w.pool_size(batch_size, self.settings.n_hard, self.settings.n_random)


def clustering_memory(w: Workload) -> float:
    """Return the bytes of the centroids by which labels are clustered, cut as `LabelClusters` does.

    Examples
    --------
    >>> from longtail.costs.astec import clustering_memory
    >>> from longtail.costs.estimate import Workload
    >>> points = {"n_points": 100, "n_nonzero": 10**5, "n_word_entries": 10**5}
    >>> clustering_memory(Workload(n_labels=10, n_label_pairs=100, n_features=10**5, **points))
    40960.0
    """
    most = LabelClusters.max_entries or w.n_features
    return CENTROIDS * min(w.n_centroid_entries, float(most * w.n_trained_labels))
