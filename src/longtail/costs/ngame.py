"""What training NGAME, DEXA and SiameseXML costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.costs.blend_sources import N_VIEWS, n_related, time_of_linear, time_of_relating
from longtail.costs.estimate import VISIT, WITH_TORCH
from longtail.costs.transformer import TRAIN, encoder_width, time_to_read, transformer_memory
from longtail.recipes.dexa import LABELS_OF_A_CLUSTER
from longtail.training.schedule import EPOCHS_AGAIN

if TYPE_CHECKING:
    from longtail.costs.estimate import Machine, Workload
    from longtail.recipes.ngame import NGAME

__all__ = ["DEXACosts", "NGAMECosts", "SiameseXMLCosts"]

# Core-seconds, as in `longtail.costs.estimate`.
BAG_ENTRY = 6e-10  # an entry of a point or of a label's text, times the dimension
HALVE = 2.5e-9  # an entry of a point's vector, each time that neighbourhoods are halved
HALVE_TEXTS = 4e-8  # an entry of a label's bag, each time that clusters of labels are halved
PUT = 7e-5 / 256  # a label's or point's vector into a graph, times the dimension
BLEND = 1.8e-5  # a candidate of a held-out point, in three trainings; they use one thread
OVER_KEPT = 1.3  # the peak over what is kept, as measured on two data sets
SHORTEST = 0.3  # to read the shortest text, over a usual one


@dataclass(frozen=True)
class NGAMECosts:
    """See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    In Module II, a batch is scored against shortlists, so that twice as many labels cost little.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.ngame import NGAMECosts
    >>> from longtail.recipes.ngame import NGAME
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> few, many = (Workload(n_labels=n, **sizes) for n in (1_000, 2_000))
    >>> costs, machine = NGAMECosts(NGAME()), Machine(rate=1e11, n_threads=2)
    >>> seconds = [costs.stages(workload, machine)["classifiers"] for workload in (few, many)]
    >>> round(seconds[1] / seconds[0], 1)
    1.0
    """

    settings: NGAME

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage."""
        w, settings = workload, self.settings
        D, threads = self._dimension(), machine.n_threads
        index = w.n_labels * PUT * D / threads
        points = w.n_points * PUT * D / threads if settings.n_near_points else 0.0
        mined = points if settings.mining_sizes().n_near_points else 0.0
        relations = time_of_relating(w, threads) if settings.relations else 0.0
        mining = w.n_points * settings.mining_beam_size * VISIT * D / threads
        n_minings = 1
        an_epoch = machine.training(w.n_points * self._hard_pool(w), D)
        on_pool = settings.classifier_epochs * an_epoch
        if not settings.freeze_encoder:
            n_minings = -(-settings.classifier_epochs // settings.refresh_every)
            on_pool += settings.classifier_epochs * self._bags(w, self._hard_pool(w)) / threads
            an_epoch_reads = self._n_reads(w, w.n_points, self._n_batches(w) * self._own_pool(w))
            on_pool += self._reading(w, machine, settings.classifier_epochs * an_epoch_reads)
        stages = {
            "relations": relations,
            "label clusters": self._clusters(w) / threads,
            "encoder": self._encoder(w, machine),
            "classifiers": n_minings * (index + mined + mining) + on_pool,
        }
        classifying = time_of_linear(w, w.n_word_entries, threads) if settings.linear else 0.0
        sources = {"search": index + points, "linear": classifying}
        n_held_out = w.n_held_out(settings)
        stages |= {**sources, "blend": n_held_out * self._n_candidates(w) * BLEND}
        if not n_held_out:
            return stages
        again = {"relations": relations, **sources}
        if settings.freeze_encoder and not settings.text_block:
            epochs = min(EPOCHS_AGAIN, settings.classifier_epochs)
            again["classifiers"] = index + mined + mining + epochs * an_epoch
        return stages | {f"again: {stage}": seconds for stage, seconds in again.items()}

    def _encoder(self, w: Workload, machine: Machine) -> float:
        """Return the seconds of Module I: texts, products, and neighbourhoods now and then."""
        settings, pool, D = self.settings, self._own_pool(w), self._dimension()
        epoch = machine.training(w.n_points * pool, D) + self._bags(w, pool) / machine.n_threads
        n_refreshes = math.ceil(settings.encoder_epochs / settings.refresh_every)
        halvings = _halvings(w.n_points) * w.n_points * D * HALVE
        halvings /= machine.n_threads
        an_epoch_reads = self._n_reads(w, w.n_points, self._n_batches(w) * pool)
        reading = self._reading(w, machine, settings.encoder_epochs * an_epoch_reads)
        return settings.encoder_epochs * epoch + n_refreshes * halvings + reading

    def _clusters(self, w: Workload) -> float:  # noqa: ARG002 - for `DEXACosts`
        """Return the core-seconds of clustering labels, which NGAME does not."""
        return 0.0

    def _bags(self, w: Workload, pool: float) -> float:
        """Return the core-seconds of an epoch of bags: points, and the texts of each pool."""
        of_texts = self._n_batches(w) * pool * self._n_text_entries(w) / max(w.n_labels, 1)
        return (w.n_nonzero + of_texts) * self._dimension() * BAG_ENTRY

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: tables, bags, points, one batch, the blend's views."""
        w, D, settings = workload, self._dimension(), self.settings
        length = max(self._length_of_label(w), 1.0)
        transformer = transformer_memory(settings, w, self._n_texts_of_batch(w), length)
        n_held_out = w.n_held_out(settings)
        goes_on = n_held_out > 0  # while it learns from held-out points, both are there
        n_tables = 7 if goes_on else 5  # texts, vectors, three heads
        tables = 4 * D * (w.n_features + n_tables * w.n_labels)
        bags = 2 * 8 * (w.n_nonzero + self._n_text_entries(w))
        n_copies = 2 + goes_on + (settings.n_near_points > 0)  # encoded, and in a graph
        points = n_copies * 4 * D * w.n_points
        batch = 3 * 4 * settings.batch_size_for(w.n_points) * self._hard_pool(w)
        views = 4 * n_held_out * self._n_candidates(w) * N_VIEWS
        # Word vectors are gone before there is more than the table that starts near them.
        start = w.known_words(D) + 2 * D * w.n_features
        trained = tables + points + batch + views
        return transformer + WITH_TORCH + OVER_KEPT * (bags + max(start, trained))

    def _reading(self, w: Workload, machine: Machine, n_trained: float) -> float:
        """Return the seconds of a transformer: all once, and as many as it is trained on."""
        n_read = self._n_reads(w, w.n_points, w.n_labels)
        n_read += self.settings.fine_tune * TRAIN * n_trained
        return n_read * time_to_read(self.settings, machine.n_threads)

    def _n_reads(self, w: Workload, n_points: float, n_texts: float) -> float:
        """Return how many points take as long to read as so many points and texts of labels."""
        return n_points + min(max(self._length_of_label(w), SHORTEST), 1.0) * n_texts

    def _length_of_label(self, w: Workload) -> float:
        """Return how long the text of a label is, over the length of a point."""
        return self._n_text_entries(w) / max(w.n_labels, 1) * w.n_points / max(w.n_nonzero, 1)

    def _n_texts_of_batch(self, w: Workload) -> float:
        """Return about how many points a batch is as long as, in what is trained of its texts."""
        settings = self.settings
        pool = self._own_pool(w) if settings.freeze_encoder else self._hard_pool(w)
        return self._n_reads(w, min(settings.batch_size_for(w.n_points), w.n_points), pool)

    def _n_batches(self, w: Workload) -> float:
        """Return how many batches an epoch over the points has."""
        return w.n_points / self.settings.batch_size_for(w.n_points)

    def _dimension(self) -> int:
        """Return the length of the encoder's vectors."""
        return encoder_width(self.settings)

    def _n_text_entries(self, w: Workload) -> float:
        """Return the entries of the labels' texts, for which their points may stand."""
        return w.n_label_entries or min(w.n_label_pairs / w.n_points * w.n_nonzero, w.n_nonzero)

    def _own_pool(self, w: Workload) -> float:
        """Return about how many labels the points of a batch have."""
        return w.pool_size(self.settings.batch_size_for(w.n_points))

    def _hard_pool(self, w: Workload) -> float:
        """Return about how many labels a batch is scored against in Module II."""
        settings = self.settings
        batch_size = settings.batch_size_for(w.n_points)
        return w.pool_size(batch_size, settings.n_hard, settings.n_random)

    def _n_candidates(self, w: Workload) -> int:
        """Return about how many labels of a point are scored."""
        n_more = n_related(w) if self.settings.relations else 0
        return self.settings.candidate_sizes().n_candidates(w.n_labels, n_more=n_more)


class DEXACosts(NGAMECosts):
    """Of DEXA, which clusters labels before; see `NGAMECosts`.

    Examples
    --------
    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.ngame import DEXACosts, NGAMECosts
    >>> from longtail.recipes.dexa import DEXA
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> workload = Workload(n_labels=1_000, **sizes)
    >>> machine = Machine(rate=1e11, n_threads=2)
    >>> both = DEXACosts(DEXA()), NGAMECosts(DEXA())
    >>> [costs.stages(workload, machine)["label clusters"] > 0 for costs in both]
    [True, False]
    """

    def _clusters(self, w: Workload) -> float:
        """Return the core-seconds of clustering labels by their texts."""
        halvings = _halvings(max(w.n_labels // LABELS_OF_A_CLUSTER, 2))
        return halvings * self._n_text_entries(w) * HALVE_TEXTS


class SiameseXMLCosts(NGAMECosts):
    """Of SiameseXML, whose batches in Module I are drawn over labels; see `NGAMECosts`.

    Examples
    --------
    An epoch of Module I draws each label about once, so twice as many take twice as long.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.ngame import SiameseXMLCosts
    >>> from longtail.recipes.siamesexml import SiameseXML
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> few, many = (
    ...     Workload(n_labels=n, n_label_entries=50 * n, **sizes) for n in (5_000, 10_000)
    ... )
    >>> costs, machine = SiameseXMLCosts(SiameseXML()), Machine(rate=1e11, n_threads=2)
    >>> seconds = [costs.stages(workload, machine)["encoder"] for workload in (few, many)]
    >>> round(seconds[1] / seconds[0], 1)
    2.0
    """

    def _encoder(self, w: Workload, machine: Machine) -> float:
        """Return the seconds of Module I: of each batch some labels, and one point of each."""
        settings, n_labels = self.settings, max(w.n_trained_labels, 1)
        batch_size = settings.batch_size_for(w.n_points)
        n_batches = -(-n_labels // batch_size)
        pool = _n_distinct(batch_size, n_labels)
        n_points = n_batches * _n_distinct(pool, w.n_points)
        n_texts = n_batches * pool
        entries = n_points * w.n_nonzero / w.n_points
        entries += n_texts * self._n_text_entries(w) / max(w.n_labels, 1)
        bags = entries * self._dimension() * BAG_ENTRY / machine.n_threads
        products = machine.training(n_points * pool, self._dimension())
        n_reads = self._n_reads(w, n_points, n_texts)
        reading = self._reading(w, machine, settings.encoder_epochs * n_reads)
        return settings.encoder_epochs * (products + bags) + reading

    def _n_texts_of_batch(self, w: Workload) -> float:
        """Return the same; a batch of Module I has as many labels and no more points."""
        batch_size = self.settings.batch_size_for(w.n_points)
        own = self._n_reads(w, min(batch_size, w.n_points), min(batch_size, w.n_labels))
        return max(own, super()._n_texts_of_batch(w))


def _n_distinct(n_drawn: float, n_all: float) -> float:
    """Return about how many different ones so many draws with replacement bring."""
    return n_all * -math.expm1(-n_drawn / n_all)


def _halvings(n_rows: int) -> float:
    """Return how often rows are halved until each is alone."""
    return math.log2(max(n_rows, 2))
