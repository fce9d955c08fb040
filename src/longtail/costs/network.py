"""What training the recipes costs that are one network, or several, over bags or words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from longtail.costs.estimate import BAGS, CENTROIDS, LOGIT, PROCESS
from longtail.features.convolutions import XMLCNN, KimCNN
from longtail.features.hashed_mlp import HashedMLP
from longtail.recipes.architectures import OfKimCNN, OfMLP, OfXMLCNN
from longtail.recipes.extremetext import ExtremeText
from longtail.recipes.mach import MACH
from longtail.training.label_table import LOGITS_AT_ONCE

if TYPE_CHECKING:
    from longtail.costs.estimate import Machine, Workload
    from longtail.estimators.estimator import LabelEstimator
    from longtail.recipes.end_to_end import EndToEnd
    from longtail.recipes.one_vs_all import OneVsAll

__all__ = ["BAG", "FILTER", "NetworkCosts", "NetworkShape", "words_and_maps"]

# Core-seconds, as in `longtail.costs.estimate`.
BAG = 8e-10  # an entry of the features, times the dimension: forward, backward and step
FILTER = 1.6e-10  # a word, times the numbers of the filters that slide over it

LONGEST = 5.0  # the longest text of a batch over the mean, in words
SAME_LEAF = 0.7  # a point's labels to that power are about the leaves of a tree that they are in


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
            widths = KimCNN.widths if is_kim else XMLCNN.widths
            n_filters = len(widths) * n_each
            width = n_filters if isinstance(settings, OfKimCNN) else settings.bottleneck
            return cls(n_features, D, width, n_filters, sum(widths) * n_each * D)
        D = settings.dimension  # type: ignore[attr-defined]  # as all others have
        n_rows = n_features
        if isinstance(settings, OfMLP):  # rows of tokens that fall together are one
            n_buckets = HashedMLP.n_buckets
            n_rows = round(n_buckets * -math.expm1(-n_features / n_buckets))
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
    """See `longtail.costs.estimate.CostModel`.

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
            longest = min(self._n_asked(w.n_most_labels), w.n_trained_labels)
            kept += 4 * w.n_points * longest  # all rows are as long
            sketched = max(sketched, CENTROIDS * w.n_centroid_entries)
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
        n_asked: float = n_leaves * getattr(self.settings, "leaf_size", 1)
        return n_asked
