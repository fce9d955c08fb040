"""What training the default recipe costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longtail.costs.blend_sources import N_VIEWS, n_related, time_of_linear, time_of_relating
from longtail.costs.estimate import INDEX, MANY_INDEXED, PROCESS, indexing
from longtail.estimators.holding_out import LARGEST_HELD_OUT
from longtail.recipes.longtail import FEW_POINTS
from longtail.training.schedule import EPOCHS_AGAIN

if TYPE_CHECKING:
    from longtail.blend.shared_space import SharedSpace
    from longtail.costs.estimate import Machine, Workload
    from longtail.recipes.longtail import LongtailClassifier

__all__ = ["LongtailCosts"]

# Core-seconds, as in `longtail.costs.estimate`.
BAG_OF_HALVES = 5e-10  # an entry of a point or of a label's text, times the dimension
# The same where the vectors of all tokens stay near the processor; and bytes: up to which they all
# do, and from which on hardly any.
BAG_NEARBY, NEARBY, FAR = 1.4e-10, 8e6, 64e6
ENTRY = 4e-8  # such an entry, laid out by its token
LOGIT_AND_SLOPE = 8e-9  # of one logit, and whether the slope is one of those passed back
# A slope that is passed back to its point and its label, times the dimension; and about how many
# there are for a true label: 8 to 9 on bibtex and delicious, 3 to 6 of texts.
SLOPE, SLOPES_OF_TRUE = 1.35e-10, 9
# A point or a label of a batch, times the dimension: made a unit vector, and that passed back.
ROW = 2.9e-9
BATCH = 1.1e-3  # what Python and numpy do around a batch, on one thread
LEAST_DISTINCT = 0.4  # least share of the true labels of a batch that are distinct
OF_BEGINNINGS = 1.6  # the entries of words and of their beginnings, over those of words
INDEX_VECTOR, INDEX_NUMBER = 4.8e-5, 4.3e-8  # putting a vector into a graph; a number of it
EVIDENCE = 6e-6  # a candidate of a held-out point, scored by all sources
WALK = 5e-4  # a held-out point, searched for in the graphs of many points and labels
BLEND = 1.2e-5  # a candidate of a held-out point, in three trainings; they use one thread
HALF_AND_CODES, HALF_AND_NUMBERS = 2.5, 8  # bytes a number of a token, as trained and as stored
CODES_OF_TOKEN = 0.5  # bytes a number of a token, stored
OF_BUILDING = 1_000  # bytes a label: edges, those back, and the relations of its text
OF_GRAPH = 600  # bytes a label, of these: what stays once the graph is built
OF_LINKS, OF_CONFUSED = 450, 250  # bytes a point: which labels it may be, or may be taken to have
OF_EDGES = 130  # bytes a point
# Of a linear classifier, for each of a label's points: of long ones, few weigh enough to be kept.
WEIGHTS_OF_ENTRY, MOST_WEIGHTS_OF_POINT = 1.2, 16
OF_WEIGHT = 16  # bytes: there once as the threads leave them, and once laid end to end
OVER_KEPT = 1.05  # the peak over what is kept, as measured on five data sets
BYTES = {"int8": 1, "float16": 2, "float32": 4}  # a number of a stored vector
MOST_VIEWED = 8_000  # held-out points at once: half of them, and of all half the candidates


@dataclass(frozen=True)
class LongtailCosts:
    """See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    What the blend is learnt from has to be trained again, then on all points.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.longtail import LongtailCosts
    >>> from longtail.recipes.longtail import LongtailClassifier
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> workload = Workload(n_labels=1_000, **sizes)
    >>> stages = LongtailCosts(LongtailClassifier()).stages(workload, Machine(1e11, n_threads=2))
    >>> [stage for stage in stages if f"again: {stage}" in stages]
    ['shared space', 'search', 'linear']
    """

    settings: LongtailClassifier

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage."""
        share = 1 - workload.n_held_out(self.settings) / workload.n_points
        n_entries = self._n_linear_entries(workload)
        n_held_out = workload.n_held_out(self.settings)
        learns_again = n_held_out > 0 and workload.n_points <= FEW_POINTS
        shown = _with_share_of_points(workload, share)
        sources = self._sources(shown, machine, share * n_entries, is_kept=not learns_again)
        n_asked = n_held_out or min(workload.n_points, LARGEST_HELD_OUT)
        n_scored = n_asked * self._n_candidates(workload)
        blend = n_scored * BLEND if n_held_out else 0.0  # else all scores are weighed alike
        evidence = n_scored * EVIDENCE
        if workload.n_points > FEW_POINTS:
            evidence += n_asked * WALK * max(1.0, math.sqrt(workload.n_labels / MANY_INDEXED))
        stages = {**sources, "evidence": evidence / machine.n_threads}
        if learns_again:  # once more, with the held-out points
            again = self._sources(workload, machine, n_entries, is_kept=True)
            again["shared space"] = EPOCHS_AGAIN * self._epoch(workload, machine)
            again["shared space"] += self._around_epochs(workload, machine)
            stages |= {f"again: {stage}": seconds for stage, seconds in again.items()}
            if machine.n_threads > 1:  # the blend is learnt meanwhile
                blend = max(blend - sum(again.values()), 0.0)
        return {**stages, "blend": blend}

    def _sources(
        self, w: Workload, machine: Machine, n_linear: float, *, is_kept: bool
    ) -> dict[str, float]:
        """Return the seconds of each stage before the scores are blended.

        Linear classifiers read `n_linear` of the points' entries. Without `is_kept`, labels are
        found for the held-out points alone, so these are compared with all of them: see
        `longtail.blend.search_indices.index_of_labels`.
        """
        D, threads = self._space(w).dimension, machine.n_threads
        epochs = self._space(w).schedule.epochs
        n_found = w.n_labels if w.n_label_entries else w.n_trained_labels
        n_indexed = w.n_points + is_kept * indexing(n_found) / INDEX
        graphs = n_indexed * (INDEX_VECTOR + D * INDEX_NUMBER) / threads
        return {
            "shared space": epochs * self._epoch(w, machine) + self._around_epochs(w, machine),
            "search": time_of_relating(w, threads) + graphs,
            "linear": time_of_linear(w, n_linear, threads),
        }

    def _n_linear_entries(self, w: Workload) -> float:
        """Return how many entries of the points linear classifiers read, about."""
        sizes = (w.n_points, w.n_labels, w.n_label_pairs)
        n_words = 0.0 if w.is_unspaced else w.n_word_entries / w.n_points
        pieces = self.settings.pieces_for(*sizes, n_words)
        if pieces == "all":
            return w.n_nonzero
        times = OF_BEGINNINGS if pieces == "beginnings" else 1.0
        return min(w.n_word_entries * times, w.n_nonzero)

    def _epoch(self, w: Workload, machine: Machine) -> float:
        """Return the seconds of an epoch in the shared space."""
        D, pool = self._space(w).dimension, self._pool_size(w)
        n_batches = w.n_points / self._space(w).batch_size
        n_entries = w.n_nonzero + n_batches * pool * w.n_label_entries / max(w.n_labels, 1)
        bags = n_entries * (D * self._bag_of_halves(w) + ENTRY) / machine.n_threads
        n_logits = w.n_points * pool
        n_slopes = w.n_points * min(SLOPES_OF_TRUE * w.n_label_pairs / w.n_points, pool)
        n_rows = w.n_points + n_batches * pool * (1 + bool(w.n_label_entries))
        # Where points have few entries and many labels, these cost more than the bags.
        vectors = D * (n_slopes * SLOPE + n_rows * ROW)
        products = 2 * n_logits * D / machine.rate
        around = n_batches * BATCH
        return bags + products + around + (n_logits * LOGIT_AND_SLOPE + vectors) / machine.n_threads

    def _around_epochs(self, w: Workload, machine: Machine) -> float:
        """Return the seconds of encoding: of points before and after, of label texts after."""
        n_numbers = (2 * w.n_nonzero + w.n_label_entries) * self._space(w).dimension
        return n_numbers * self._bag_of_halves(w) / machine.n_threads

    def _bag_of_halves(self, w: Workload) -> float:
        """Return what an entry takes, times the dimension: less where vectors are few."""
        n_bytes = max(2 * w.n_features * self._space(w).dimension, 1)
        farness = min(max(math.log(n_bytes / NEARBY) / math.log(FAR / NEARBY), 0.0), 1.0)
        return BAG_NEARBY + farness * (BAG_OF_HALVES - BAG_NEARBY)

    def memory(self, workload: Workload) -> float:
        """Return the bytes when vectors start, when they have been learnt, or are searched.

        At first there may be word vectors; then there are tables, bags, points, and one batch.
        Later there are graphs, linear classifiers and evidence, but vectors of tokens are stored.
        """
        return max(
            self._memory_of_start(workload),
            self._memory_of_space(workload),
            self._memory_of_search(workload),
            self._memory_of_linear(workload),
        )

    def _memory_of_start(self, w: Workload) -> float:
        """Return the bytes when vectors of tokens start from those of words: these, and bags."""
        D, bags = self._space(w).dimension, 8 * (2 * w.n_nonzero + w.n_label_entries)
        return PROCESS + OVER_KEPT * (w.known_words(D) + 2 * D * w.n_features + bags)

    def _memory_of_search(self, w: Workload) -> float:
        """Return the bytes while labels are linked: vectors, codes, edges, and lists of points."""
        of_point = OF_LINKS if w.n_label_entries else OF_CONFUSED
        kept = self._stored(w) + OF_BUILDING * w.n_labels + of_point * w.n_points
        return PROCESS + OVER_KEPT * kept

    def _memory_of_linear(self, w: Workload) -> float:
        """Return the bytes when linear classifiers are put together, of the features they read."""
        n_read = self._n_linear_entries(w)
        copied = 8 * n_read * (n_read < w.n_nonzero)
        of_point = OF_EDGES + OF_CONFUSED
        kept = self._stored(w) + OF_GRAPH * w.n_labels + of_point * w.n_points + copied
        of_pair = min(WEIGHTS_OF_ENTRY * n_read / w.n_points, MOST_WEIGHTS_OF_POINT)
        n_weights = min(of_pair * w.n_label_pairs, float(w.n_trained_labels) * w.n_features)
        return PROCESS + OVER_KEPT * kept + OF_WEIGHT * n_weights

    def _stored(self, w: Workload) -> float:
        """Return the bytes of bags, and of all vectors once they are learnt."""
        D, is_code = self._space(w).dimension, self.settings.storage == "int8"
        of_texts = 2 * BYTES[self.settings.storage] * bool(w.n_label_entries)
        labels = w.n_labels * D * (4 + 1 + of_texts)
        tokens = w.n_features * D * (CODES_OF_TOKEN if is_code else 4)
        return labels + tokens + 4 * D * w.n_points + 8 * (2 * w.n_nonzero + w.n_label_entries)

    def _memory_of_space(self, workload: Workload) -> float:
        """Return the bytes when vectors have been learnt: tables, bags, points, and one batch."""
        w, D = workload, self._space(workload).dimension
        n_held_out = w.n_held_out(self.settings)
        goes_on = n_held_out > 0 and w.n_points <= FEW_POINTS
        # Of labels: what was learnt, their texts, and two heads of these and of points, stored.
        n_tables = (
            1 + goes_on + (1 + 2 * BYTES[self.settings.storage] / 4) * bool(w.n_label_entries)
        )
        stores_codes = self.settings.storage == "int8"
        of_token = HALF_AND_CODES if stores_codes else HALF_AND_NUMBERS
        tables = D * (of_token * w.n_features + 4 * n_tables * w.n_labels)
        bags = 8 * ((2 + goes_on) * w.n_nonzero + w.n_label_entries)
        points = 4 * D * w.n_points
        batch = 3 * 4 * self._space(w).batch_size * self._pool_size(w)
        views = 4 * min(n_held_out, MOST_VIEWED) * self._n_candidates(w) * N_VIEWS
        return PROCESS + OVER_KEPT * (tables + bags + points + batch + views * goes_on)

    def _space(self, w: Workload) -> SharedSpace:
        """Return how points, labels and texts are trained."""
        return self.settings.shared_space(
            w.n_points,
            w.n_labels,
            w.n_label_pairs,
            has_pieces=w.n_word_entries < w.n_nonzero,
            is_unspaced=w.is_unspaced,
        )

    def _pool_size(self, w: Workload) -> float:
        """Return about how many labels a batch is scored against."""
        distinct = min(max(LEAST_DISTINCT, w.n_trained_labels / max(w.n_label_pairs, 1)), 1.0)
        own = distinct * self._space(w).batch_size * w.n_label_pairs / w.n_points
        return min(w.n_labels, own + self.settings.n_random)

    def _n_candidates(self, w: Workload) -> int:
        """Return about how many labels of a point are scored."""
        n_pieces = (w.n_nonzero - w.n_word_entries) / max(w.n_word_entries, 1)
        sizes = self.settings.candidate_sizes(n_pieces)
        return sizes.n_candidates(w.n_labels, n_more=n_related(w))


def _with_share_of_points(w: Workload, share: float) -> Workload:
    """Return the workload of a share of the points."""
    return replace(
        w,
        n_points=max(round(share * w.n_points), 1),
        n_nonzero=round(share * w.n_nonzero),
        n_label_pairs=round(share * w.n_label_pairs),
        n_word_entries=round(share * w.n_word_entries),
    )
