"""What training the recipes costs that are one network, or several, over bags or words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from longtail.recipes.architectures import OfKimCNN, OfMLP, OfXMLCNN
from longtail.recipes.extremetext import ExtremeText
from longtail.recipes.mach import MACH
from longtail.training.estimate import LOGIT, PROCESS

if TYPE_CHECKING:
    from longtail.recipes.end_to_end import EndToEnd
    from longtail.recipes.energy_classifier import EnergyClassifier
    from longtail.recipes.estimator import LabelEstimator
    from longtail.recipes.one_vs_all import OneVsAll
    from longtail.training.estimate import Machine, Workload

__all__ = [
    "BAGS",
    "CENTROIDS",
    "EnergyCosts",
    "NetworkCosts",
    "NetworkShape",
    "entries_of_labels",
    "words_and_maps",
]

# Core-seconds, as in `longtail.training.estimate`.
BAG = 8e-10  # an entry of the features, times the dimension: forward, backward and step
ENERGY = 1e-8  # a label of a point in a step of inference, looked through
SLOWER = 3.0  # products in float32, over those of half the precision that most recipes use
FILTER = 1.2e-10  # a word, times the numbers of the filters that slide over it

BAGS = 4 * 8  # bytes an entry of the features: as read, as unit rows, a part of them, and a batch
SAME_TOKENS = 0.6  # a label's points to that power have as many tokens as there are different ones
CENTROIDS = 16  # bytes an entry of the labels' centroids, with those of a block
HASHED = 100_000  # rows of MACH's table
WIDTHS_KIM, WIDTHS_XMLCNN = (3, 4, 5), (2, 4, 8)
LONGEST = 5.0  # the longest text of a batch over the mean, in words
LOGITS_AT_ONCE = 2**26
SAME_LEAF = 0.7  # a point's labels to that power are about the leaves of a tree that they are in
CHECKED = 512  # points whose energies are looked at together
STATES_LEARNT, STATES_CHECKED = 8, 2  # numbers that are kept of a label in a step of inference


def entries_of_labels(w: Workload) -> float:
    """Return about how many entries the labels' centroids have."""
    n_points_each = max(w.n_label_pairs / max(w.n_trained_labels, 1), 1.0)
    different: float = n_points_each**SAME_TOKENS
    own = min(w.n_nonzero / w.n_points * different, float(w.n_features))
    return w.n_trained_labels * own


class NetworkShape(NamedTuple):
    """How large a network is.

    Attributes
    ----------
    n_rows, row_width : int
        Of the table of tokens.
    width : int
        Of the last layer.
    n_filters : int
        Of all widths together; 0 without convolutions.
    filter_size : int
        Numbers of all filters together.
    """

    n_rows: int
    row_width: int
    width: int
    n_filters: int = 0
    filter_size: int = 0

    @classmethod
    def of(cls, settings: LabelEstimator, n_features: int) -> NetworkShape:
        """Return the shape that settings make over so many tokens."""
        if isinstance(settings, OfKimCNN | OfXMLCNN):
            D, n_each = settings.dimension, settings.n_filters
            is_kim = isinstance(settings, OfKimCNN)
            widths = WIDTHS_KIM if is_kim else WIDTHS_XMLCNN
            n_filters = len(widths) * n_each
            width = n_filters if isinstance(settings, OfKimCNN) else settings.bottleneck
            return cls(n_features, D, width, n_filters, sum(widths) * n_each * D)
        D = settings.dimension  # type: ignore[attr-defined]  # as all others have
        n_rows = n_features
        if isinstance(settings, OfMLP):  # rows of tokens that fall together are one
            n_rows = round(HASHED * -math.expm1(-n_features / HASHED))
        return cls(n_rows, D, D)

    @property
    def table(self) -> float:
        """Bytes of the table of tokens."""
        return 4.0 * self.n_rows * self.row_width


def words_and_maps(
    settings: LabelEstimator, w: Workload, shape: NetworkShape
) -> tuple[float, float]:
    """Return the bytes of all texts' words in order, and of the maps of the filters of a batch."""
    if not isinstance(settings, OfKimCNN | OfXMLCNN):
        return 0.0, 0.0
    batch_size: int = settings.batch_size  # type: ignore[union-attr]  # of all that are trained
    n_places = batch_size * min(LONGEST * w.n_word_entries / w.n_points, settings.n_words)
    maps = 4 * n_places * (6 * shape.n_filters + 4 * shape.row_width)
    return 4.0 * settings.n_words * w.n_points, maps


@dataclass(frozen=True)
class NetworkCosts:
    """See `longtail.training.estimate.CostModel`.

    Parameters
    ----------
    settings : OneVsAll, ExtremeText or EndToEnd
        MACH among them.
    """

    settings: OneVsAll | ExtremeText | EndToEnd | MACH

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage: of training the networks, one after the other."""
        w, own = workload, self.settings
        shape = NetworkShape.of(own, w.n_features)
        logits = w.n_points * self._width_of_batch(w)
        in_memory = logits * LOGIT + w.n_nonzero * shape.row_width * BAG
        if shape.n_filters:
            in_memory = logits * LOGIT + w.n_word_entries * shape.filter_size * FILTER
        epoch = in_memory / machine.n_threads + 6 * logits * shape.width / machine.rate
        return {"network": own.epochs * self._n_networks() * epoch}

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: of what the network starts from, or of training it."""
        w, own = workload, self.settings
        shape = NetworkShape.of(own, w.n_features)
        n_outputs, n_finished = self._n_outputs(w), self._n_networks() - 1
        labels = 4 * n_outputs * shape.width
        of_words, maps = words_and_maps(own, w, shape)
        logits = min(own.batch_size * self._width_of_batch(w), LOGITS_AT_ONCE)
        kept = BAGS * w.n_nonzero + of_words + n_finished * (shape.table + labels)
        sketched = 4 * n_outputs * shape.row_width + 3 * shape.table
        trained = shape.table + 4 * labels + 12 * logits + maps
        if isinstance(own, ExtremeText):
            kept += 4 * w.n_points * self._n_asked(w.n_most_labels)
            sketched = max(sketched, CENTROIDS * entries_of_labels(w))
        return PROCESS + kept + max(sketched, trained)

    def _n_networks(self) -> int:
        """Return how many networks there are."""
        return self.settings.n_hashes if isinstance(self.settings, MACH) else 1

    def _n_outputs(self, w: Workload) -> int:
        """Return how many outputs a network has."""
        if isinstance(self.settings, MACH):
            return min(self.settings.buckets_for(w.n_trained_labels), w.n_trained_labels)
        return w.n_trained_labels

    def _width_of_batch(self, w: Workload) -> float:
        """Return how many outputs each point of a batch is scored against."""
        if not isinstance(self.settings, ExtremeText):
            return self._n_outputs(w)
        pool = self._n_asked(w.n_label_pairs / w.n_points) * self.settings.batch_size
        return min(w.n_trained_labels, pool)

    def _n_asked(self, n_labels: float) -> float:
        """Return about how many nodes of its tree a point of so many labels is asked about."""
        n_leaves: float = n_labels**SAME_LEAF
        return n_leaves * getattr(self.settings, "leaf_size", 1)


@dataclass(frozen=True)
class EnergyCosts:
    """See `longtail.training.estimate.CostModel`.

    Parameters
    ----------
    settings : EnergyClassifier
    """

    settings: EnergyClassifier

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage."""
        w, own = workload, self.settings
        n_inner = own.n_hidden * getattr(own, "n_layers", 1)
        logits = w.n_points * w.n_trained_labels
        bags = w.n_nonzero * own.dimension * BAG / machine.n_threads
        rate, in_memory = machine.rate / SLOWER, ENERGY / machine.n_threads
        unaries = logits * (6 * own.dimension / rate + in_memory)
        steps = own.n_steps * logits * (12 * n_inner / rate + in_memory)
        return {
            "unaries": own.unary_epochs * (unaries + bags),
            "energy": own.energy_epochs * (unaries + steps),
            "everything": own.joint_epochs * (unaries + steps + bags),
        }

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: parameters, their moments, and all steps of a batch."""
        w, own = workload, self.settings
        shape = NetworkShape.of(own, w.n_features)
        n_layers = getattr(own, "n_layers", 1)
        parameters = w.n_trained_labels * (own.dimension + n_layers * own.n_hidden)
        n_steps = own.n_steps + 1
        learnt = own.batch_size * (STATES_LEARNT * w.n_trained_labels + 4 * n_layers * own.n_hidden)
        checked = CHECKED * STATES_CHECKED * w.n_trained_labels
        numbers = 4 * parameters + n_steps * max(learnt, checked)
        return PROCESS + BAGS * w.n_nonzero + 3 * shape.table + 4 * numbers
