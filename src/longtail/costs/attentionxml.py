"""What training AttentionXML costs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from longtail.classifiers.label_attention import ROWS_AT_ONCE
from longtail.costs.estimate import LONGEST, WITH_TORCH

if TYPE_CHECKING:
    from longtail.costs.estimate import Machine, Workload
    from longtail.recipes.attentionxml import AttentionXML

__all__ = ["AttentionXMLCosts"]

# Core-seconds, as in `longtail.costs.estimate`.
STATE = 4e-10  # a word, times the weights that its states are made of: forward, backward and step
LOOK = 4e-10  # a candidate and a word, times the width of what is compared and mixed
SECOND = 1.5e-10  # a candidate, times the weights of a second shared layer

# Numbers that are kept of a batch until its gradients have been computed, as measured: of a word,
# for each number of its vector and each state of one direction, and of a candidate and a word.
OF_WORD, OF_STATE, OF_LOOK = 8, 30, 3


@dataclass(frozen=True)
class AttentionXMLCosts:
    """See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    No more labels than the first level may have nodes are scored without a tree.

    >>> from longtail.costs.attentionxml import AttentionXMLCosts
    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.recipes.attentionxml import AttentionXML
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> few, many = (Workload(n_labels=n, **sizes) for n in (1_000, 2_000))
    >>> costs, machine = AttentionXMLCosts(AttentionXML(first_level=1_000)), Machine(1e11, 2)
    >>> [list(costs.stages(workload, machine)) for workload in (few, many)]
    [['level 1'], ['level 1', 'level 2']]
    """

    settings: AttentionXML

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each level, of all learners together."""
        settings, n_words = self.settings, self._n_words(workload)
        n_weights = 2 * 4 * settings.n_hidden * (settings.dimension + settings.n_hidden)
        states = n_words * n_weights * STATE
        n_visits = settings.n_learners * settings.epochs * workload.n_points / machine.n_threads
        return {
            f"level {depth}": n_visits * (states + n_candidates * self._looking(n_words))
            for depth, (_, n_candidates) in enumerate(self._levels(workload), start=1)
        }

    def _looking(self, n_words: float) -> float:
        """Return the core-seconds of one candidate of one point."""
        first, *second = self.settings.shared_widths()
        seconds = n_words * (2 * self.settings.n_hidden + first) * LOOK
        return seconds + sum(first * width * SECOND for width in second)

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: tables of all levels, bags, one batch, what is followed.

        With patience also those of the best epoch of a level, with a mean of weights also that, and
        a copy of the weights while it is in their place.
        """
        w, settings = workload, self.settings
        levels = self._levels(w)
        # What is learnt is there twice, but only once of the learners that are ready.
        n_tables = 2 + (settings.n_learners - 1)
        words = n_tables * 4 * settings.dimension * w.n_features * len(levels)
        nodes = n_tables * 4 * 2 * settings.n_hidden * sum(n_nodes for n_nodes, _ in levels)
        kept = self._n_kept() * (words + nodes) / (n_tables * len(levels))
        bags = 2 * 8 * w.n_nonzero + 4 * settings.n_words * w.n_points
        most = max(n_candidates for _, n_candidates in levels)
        followed = 24 * w.n_points * most
        # Words are fewer than tokens, by about as much as temporaries add.
        return WITH_TORCH + words + nodes + kept + bags + self._reading(w, most) + followed

    def _reading(self, w: Workload, n_candidates: float) -> float:
        """Return the bytes of one batch, or of the states of many points at once before training.

        All texts of a batch are padded to the length of its longest.
        """
        settings = self.settings
        longest = min(LONGEST * w.n_words_read / w.n_points, settings.n_words)
        of_word = OF_WORD * settings.dimension + OF_STATE * settings.n_hidden
        widths = 4 * settings.n_hidden + 2 * sum(settings.shared_widths())
        of_point = longest * (of_word + OF_LOOK * n_candidates) + widths * n_candidates
        batch = min(settings.batch_size, w.n_points) * of_point
        n_before = min(ROWS_AT_ONCE, w.n_points) * longest
        return 4 * max(batch, n_before * (settings.dimension + 5 * settings.n_hidden))

    def _n_kept(self) -> int:
        """Return how often a level's weights are there beside the ones in training."""
        best = int(self.settings.patience is not None)
        mean = int(self.settings.average_after is not None)
        return best + mean + 2 * best * mean

    def _n_words(self, w: Workload) -> float:
        """Return how many words of a text are read."""
        return min(w.n_words_read / w.n_points, self.settings.n_words)

    def _levels(self, w: Workload) -> list[tuple[int, float]]:
        """Return how many nodes each level has, and how many of them a point is scored against."""
        settings, n_labels = self.settings, w.n_trained_labels
        sizes = [*(2**n for n in settings.halvings_of_levels(n_labels)), n_labels]
        below = [min(settings.beam_size, upper) * lower / upper for upper, lower in pairwise(sizes)]
        return list(zip(sizes, [float(sizes[0]), *below], strict=True))
