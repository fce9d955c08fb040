"""What training DeepXML with the features of another paper costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.costs.astec import CLUSTER, clustering_memory
from longtail.costs.estimate import BAGS, VISIT, WITH_TORCH, indexing
from longtail.costs.network import shape_of
from longtail.surrogates.label_clusters import n_meta_labels

if TYPE_CHECKING:
    from longtail.costs.estimate import Machine, Workload
    from longtail.recipes.deepxml_with import DeepXMLWith

__all__ = ["DeepXMLWithCosts"]

SEARCH = 0.5  # time a dimension, beside that in Astec's graphs, whose vectors are longer


@dataclass(frozen=True)
class DeepXMLWithCosts:
    """See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    >>> from longtail.costs.deepxml import DeepXMLWithCosts
    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.recipes.deepxml_with import DeepXMLMACH
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> workload = Workload(n_labels=1_000, **sizes)
    >>> stages = DeepXMLWithCosts(DeepXMLMACH()).stages(workload, Machine(rate=1e11, n_threads=2))
    >>> list(stages)  # Module III sets up what Module IV trains, in no time
    ['label clusters', 'module I', 'module II', 'module IV']
    """

    settings: DeepXMLWith

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each module."""
        w, settings, threads = workload, self.settings, machine.n_threads
        shape = shape_of(settings, w.n_features)
        n_meta = n_meta_labels(w.n_labels, settings.n_meta_labels)
        on_clusters = machine.training(w.n_points * n_meta, shape.width)
        on_pool = machine.training(w.n_points * self._pool_size(w), shape.width)
        reading = shape.reading(w) / threads
        n_visits = settings.n_near_labels + settings.n_near_points
        graphs = indexing(w.n_trained_labels) + indexing(w.n_points)
        searching = graphs + w.n_points * n_visits * VISIT
        return {
            "label clusters": w.n_label_pairs * w.n_nonzero / w.n_points * CLUSTER / threads,
            "module I": settings.surrogate_epochs * (on_clusters + reading),
            "module II": SEARCH * searching * shape.width / threads,
            "module IV": settings.extreme_epochs * on_pool,
        }

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: of clusters of labels, of Module I, or of Module IV."""
        w, settings = workload, self.settings
        shape = shape_of(settings, w.n_features)
        n_meta, batch = n_meta_labels(w.n_labels, settings.n_meta_labels), settings.batch_size
        kept = BAGS * w.n_nonzero + shape.words(w)
        module_1 = 3 * shape.table + 4 * 4 * n_meta * shape.width + 12 * batch * n_meta
        module_1 += shape.maps(w, batch)
        n_vectors = 3 * w.n_points + 2 * (w.n_labels + w.n_trained_labels)
        vectors = 4 * shape.width * n_vectors
        shortlists = 8 * w.n_points * min(settings.shortlist_size, w.n_labels)
        module_4 = shape.table + vectors + shortlists + 24 * batch * self._pool_size(w)
        return WITH_TORCH + kept + max(clustering_memory(w), module_1, module_4)

    def _pool_size(self, w: Workload) -> float:
        """Return about how many labels a batch on shortlists is scored against."""
        settings = self.settings
        return w.pool_size(2 * settings.batch_size, settings.n_hard, settings.n_random)
