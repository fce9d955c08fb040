"""What training X-Transformer costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.clustering.balanced import n_halvings
from longtail.costs.estimate import BAG, TEMPORARIES, WITH_TORCH
from longtail.costs.transformer import TRAIN, encoder_width, time_to_read, transformer_memory

if TYPE_CHECKING:
    from longtail.costs.estimate import Machine, Workload
    from longtail.recipes.xtransformer import XTransformer

__all__ = ["XTransformerCosts"]

# Core-seconds, as in `longtail.costs.estimate`.
HALVE = 6e-8  # an entry of the labels' centroids, each time that clusters are halved
RANK = 3e-9  # an entry of a point's joined features, for each label of which it is a negative
MATCH = 1.5e-8  # the same, for each cluster whose linear machine is solved


@dataclass(frozen=True)
class XTransformerCosts:
    """See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    With twice as many labels, there are twice as many clusters of them, none of them larger.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.xtransformer import XTransformerCosts
    >>> from longtail.recipes.xtransformer import XTransformer
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> few, many = (Workload(n_labels=n, **sizes) for n in (1_000, 2_000))
    >>> costs, machine = XTransformerCosts(XTransformer()), Machine(rate=1e11, n_threads=2)
    >>> seconds = [costs.stages(workload, machine)["ranker"] for workload in (few, many)]
    >>> round(seconds[1] / seconds[0], 1)
    1.0
    """

    settings: XTransformer

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage, of all members together."""
        stages: Counter[str] = Counter()
        for settings in self.settings.of_each_encoder():
            stages.update(XTransformerCosts(settings)._stages(workload, machine))
        return dict(stages)

    def _stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage around one encoder."""
        w, threads = workload, machine.n_threads
        K = self._n_clusters(w)
        of_each = self._n_negatives(w) * w.n_points * w.n_labels / K
        stages = {
            "label indexing": w.n_nonzero * HALVE * K.bit_length() / threads,
            "matcher": self._matcher(w, machine),
            "ranker": of_each * self._joined(w) * RANK / threads,
        }
        n_members = len(self.settings.indexers)
        stages = {stage: seconds * n_members for stage, seconds in stages.items()}
        if not self.settings.is_bag and not self.settings.fine_tune:  # points are read once
            stages["matcher"] -= (n_members - 1) * self._reading(w, threads)
        return stages

    def _matcher(self, w: Workload, machine: Machine) -> float:
        """Return the seconds of training the encoder and the clusters' vectors."""
        settings, threads = self.settings, machine.n_threads
        logits = w.n_points * self._n_clusters(w)
        products = machine.training(logits, self._dimension())
        is_trained = settings.is_bag or settings.fine_tune
        n_tokens = w.n_nonzero / w.n_points
        matcher = settings.cluster_matcher()
        entries = matcher.n_solved(n_tokens, self._dimension(), is_trained=is_trained)
        solving = logits * entries * MATCH / threads
        if settings.is_bag:
            bags = w.n_nonzero * settings.dimension * BAG / threads
            return settings.epochs * (products + bags) + solving
        reading = self._reading(w, threads)
        tuning = settings.epochs * (products + TRAIN * reading) if settings.fine_tune else 0.0
        return reading + solving + tuning

    def _reading(self, w: Workload, n_threads: int) -> float:
        """Return the seconds in which a transformer reads the points."""
        return w.n_points * time_to_read(self.settings, n_threads)

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak, which is that of the largest encoder."""
        each = map(XTransformerCosts, self.settings.of_each_encoder())
        return max(costs._memory(workload) for costs in each)

    def _memory(self, workload: Workload) -> float:
        """Return the bytes: tables, bags, joined points, negatives, one batch."""
        w, D = workload, self._dimension()
        settings = self.settings
        n_rows = self._n_clusters(w) + (w.n_features if settings.is_bag else 0)
        # Early stopping keeps the best tables, and makes encoders of those of today.
        tables = 4 * D * n_rows * (1 if settings.patience is None else 3)
        bags = 2 * 8 * w.n_nonzero
        joined = 8 * w.n_points * self._joined(w)
        negatives = 12 * w.n_points * self._n_negatives(w)
        batch_size = min(settings.batch_size, w.n_points)
        batch = 3 * 4 * batch_size * self._n_clusters(w)
        return (
            transformer_memory(settings, w, batch_size)
            + WITH_TORCH
            + TEMPORARIES * (tables + bags + joined + negatives + batch)
        )

    def _n_negatives(self, w: Workload) -> int:
        """Return about of how many clusters' labels a point is a negative."""
        settings = self.settings
        n_asked = settings.teacher_forcing * 2 + settings.matcher_aware * settings.beam_size
        return min(n_asked, self._n_clusters(w))

    def _joined(self, w: Workload) -> float:
        """Return how many entries a point has, its vector's among them."""
        return w.n_nonzero / w.n_points + self._dimension()

    def _n_clusters(self, w: Workload) -> int:
        """Return how many clusters the labels are halved into."""
        return int(2 ** n_halvings(w.n_labels, self.settings.leaf_size))

    def _dimension(self) -> int:
        """Return the length of the encoder's vectors."""
        return encoder_width(self.settings)
