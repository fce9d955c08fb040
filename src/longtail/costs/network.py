"""What training the recipes costs that are one network, or several, over bags or words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, NamedTuple

from longtail.costs.estimate import BAG, BAGS, CENTROIDS, LONGEST, WITH_TORCH
from longtail.features.convolutions import XMLCNN, KimCNN
from longtail.features.hashed_mlp import HashedMLP
from longtail.recipes.architectures import OfKimCNN, OfMLP, OfXMLCNN
from longtail.recipes.extremetext import ExtremeText
from longtail.recipes.one_vs_all import OneVsAll
from longtail.training.label_table import LOGITS_AT_ONCE

if TYPE_CHECKING:
    from longtail.costs.estimate import Machine, Workload
    from longtail.estimators.estimator import LabelEstimator
    from longtail.recipes.end_to_end import EndToEnd
    from longtail.recipes.mach import MACH

__all__ = [
    "ExtremeTextCosts",
    "MACHCosts",
    "NetworkCosts",
    "NetworkShape",
    "shape_of",
]

# Core-seconds, as in `longtail.costs.estimate`.
FILTER = 1.6e-10  # a word, times the numbers of the filters that slide over it
ALONG = 9e-11  # the same along the embedding, where all texts have as many words
PADDED = 1.6  # places of a batch, whose texts are padded to the longest, over its words

SAME_LEAF = 0.7  # n labels of a point are in about n to that power leaves of a tree


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
    n_words : int
        That are read of a text; 0 without convolutions.
    along_embedding : bool
        Whether filters slide along the embedding, over all `n_words` of a text at once.

    Examples
    --------
    >>> from longtail.costs.network import NetworkShape
    >>> shape = NetworkShape(n_rows=5_000, row_width=64, width=64)
    >>> shape.table  # in float32
    1280000.0
    """

    n_rows: int
    row_width: int
    width: int
    n_filters: int = 0
    filter_size: int = 0
    n_words: int = 0
    along_embedding: bool = False

    @classmethod
    def of_filters(
        cls, settings: OfKimCNN | OfXMLCNN, n_features: int, widths: tuple[int, ...]
    ) -> NetworkShape:
        """Return that of filters of some widths, without a layer between maxima and labels."""
        D, n_filters = settings.dimension, len(widths) * settings.n_filters
        filter_size = sum(widths) * settings.n_filters * D
        return cls(n_features, D, n_filters, n_filters, filter_size, settings.n_words)

    @property
    def table(self) -> float:
        """Bytes of the table of tokens."""
        return 4.0 * self.n_rows * self.row_width

    def reading(self, w: Workload) -> float:
        """Return the core-seconds of an epoch below the last layer."""
        if self.along_embedding:
            return self.n_words * w.n_points * self.filter_size * ALONG
        if self.n_filters:
            n_words = min(PADDED * w.n_words_read, self.n_words * w.n_points)
            return n_words * self.filter_size * FILTER
        return w.n_nonzero * self.row_width * BAG

    def words(self, w: Workload) -> float:
        """Return the bytes of all texts' words in order."""
        return 4.0 * self.n_words * w.n_points

    def maps(self, w: Workload, batch_size: int) -> float:
        """Return the bytes of the maps of the filters of a batch, and of what they slide over."""
        if self.along_embedding:
            return 4 * batch_size * self.row_width * (6 * self.n_filters + 4 * self.n_words)
        n_places = batch_size * min(LONGEST * w.n_words_read / w.n_points, self.n_words)
        return 4 * n_places * (6 * self.n_filters + 4 * self.row_width)


@singledispatch
def shape_of(settings: LabelEstimator, n_features: int) -> NetworkShape:
    """Return the shape that settings make over so many tokens.

    Examples
    --------
    Tokens of MACH share 100,000 rows, however many there are.

    >>> from longtail.costs.network import shape_of
    >>> from longtail.recipes.mach import MACH
    >>> from longtail.recipes.one_vs_all import OneVsAll
    >>> [shape_of(settings, n_features=10**7).n_rows for settings in (OneVsAll(), MACH())]
    [10000000, 100000]
    """
    raise NotImplementedError(f"{type(settings).__name__} is no network of a known shape.")


@shape_of.register(OneVsAll)
@shape_of.register(ExtremeText)
def _of_bags(settings: OneVsAll | ExtremeText, n_features: int) -> NetworkShape:
    """See `shape_of`."""
    return NetworkShape(n_features, settings.dimension, settings.dimension)


@shape_of.register
def _of_perceptron(settings: OfMLP, n_features: int) -> NetworkShape:
    """See `shape_of`; rows of tokens that fall together are one."""
    n_buckets = HashedMLP.n_token_buckets
    n_rows = round(n_buckets * -math.expm1(-n_features / n_buckets))
    return NetworkShape(n_rows, settings.dimension, settings.dimension)


@shape_of.register
def _of_kim_cnn(settings: OfKimCNN, n_features: int) -> NetworkShape:
    """See `shape_of`."""
    return NetworkShape.of_filters(settings, n_features, KimCNN.widths)


@shape_of.register
def _of_xml_cnn(settings: OfXMLCNN, n_features: int) -> NetworkShape:
    """See `shape_of`."""
    shape = NetworkShape.of_filters(settings, n_features, XMLCNN.widths)
    return shape._replace(width=settings.bottleneck, along_embedding=settings.along_embedding)


@dataclass(frozen=True)
class NetworkCosts:
    """Of one network whose outputs are the labels.

    See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    Each epoch takes as long as the one before.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.network import NetworkCosts
    >>> from longtail.recipes.end_to_end import XMLCNNClassifier
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> workload, machine = Workload(n_labels=1_000, **sizes), Machine(rate=1e11, n_threads=2)
    >>> both = (NetworkCosts(XMLCNNClassifier(epochs=n)) for n in (10, 20))
    >>> seconds = [costs.stages(workload, machine)["network"] for costs in both]
    >>> seconds[1] / seconds[0]
    2.0
    """

    settings: EndToEnd | ExtremeText | MACH

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage: of training the networks, one after the other."""
        w, settings = workload, self.settings
        shape = shape_of(settings, w.n_features)
        logits = w.n_points * self._width_of_batch(w)
        epoch = machine.training(logits, shape.width) + shape.reading(w) / machine.n_threads
        return {settings.stage: settings.epochs * self._n_networks() * epoch}

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: of what the network starts from, or of training it."""
        w, batch_size = workload, self.settings.batch_size
        shape = shape_of(self.settings, w.n_features)
        n_outputs, n_finished = self._n_outputs(w), self._n_networks() - 1
        labels = 4 * n_outputs * shape.width
        logits = min(batch_size * self._width_of_batch(w), LOGITS_AT_ONCE)
        kept = BAGS * w.n_nonzero + shape.words(w) + n_finished * (shape.table + labels)
        kept += self._lists(w)
        sketched = 4 * n_outputs * shape.row_width + 3 * shape.table
        trained = shape.table + 4 * labels + 12 * logits + shape.maps(w, batch_size)
        return WITH_TORCH + kept + max(self._before(w), sketched, trained)

    def _n_networks(self) -> int:
        """Return how many networks there are."""
        return 1

    def _n_outputs(self, w: Workload) -> int:
        """Return how many outputs a network has."""
        return w.n_trained_labels

    def _width_of_batch(self, w: Workload) -> float:
        """Return how many outputs each point of a batch is scored against."""
        return self._n_outputs(w)

    def _lists(self, w: Workload) -> float:  # noqa: ARG002 - for recipes that keep some
        """Return the bytes of lists of the outputs that each point is scored against."""
        return 0.0

    def _before(self, w: Workload) -> float:  # noqa: ARG002 - for recipes that have some
        """Return the bytes at the peak of a stage before the network."""
        return 0.0


@dataclass(frozen=True)
class MACHCosts(NetworkCosts):
    """Of MACH's networks, whose outputs are buckets; see `NetworkCosts`.

    Examples
    --------
    The labels share 500 buckets, however many they are.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.network import MACHCosts
    >>> from longtail.recipes.mach import MACH
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> few, many = (Workload(n_labels=n, **sizes) for n in (1_000, 2_000))
    >>> costs, machine = MACHCosts(MACH(n_buckets=500)), Machine(rate=1e11, n_threads=2)
    >>> seconds = [costs.stages(workload, machine)["network"] for workload in (few, many)]
    >>> round(seconds[1] / seconds[0], 1)
    1.0
    """

    settings: MACH

    def _n_networks(self) -> int:
        """Return how many networks there are."""
        return self.settings.n_hashes

    def _n_outputs(self, w: Workload) -> int:
        """Return how many outputs a network has."""
        return min(self.settings.buckets_for(w.n_trained_labels), w.n_trained_labels)


@dataclass(frozen=True)
class ExtremeTextCosts(NetworkCosts):
    """Of a network whose outputs are a tree of labels; see `NetworkCosts`.

    Examples
    --------
    A batch is scored against few nodes of the tree, where other networks score all labels.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.network import ExtremeTextCosts, NetworkCosts
    >>> from longtail.recipes.extremetext import ExtremeText
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> workload, machine = Workload(n_labels=10**6, **sizes), Machine(rate=1e11, n_threads=2)
    >>> both = [costs(ExtremeText()) for costs in (ExtremeTextCosts, NetworkCosts)]
    >>> seconds = [sum(costs.stages(workload, machine).values()) for costs in both]
    >>> seconds[0] < seconds[1] / 10
    True
    """

    settings: ExtremeText

    def _width_of_batch(self, w: Workload) -> float:
        """Return how many outputs each point of a batch is scored against."""
        pool = self._n_asked(w.n_label_pairs / w.n_points) * self.settings.batch_size
        return min(w.n_trained_labels, pool)

    def _lists(self, w: Workload) -> float:
        """Return the bytes of the nodes that each point is asked about: all rows are as long."""
        longest = min(self._n_asked(w.n_most_labels), w.n_trained_labels)
        return 4 * w.n_points * longest

    def _before(self, w: Workload) -> float:
        """Return the bytes of the labels' centroids, from which the tree is made."""
        return CENTROIDS * w.n_centroid_entries

    def _n_asked(self, n_labels: float) -> float:
        """Return about how many nodes of its tree a point of so many labels is asked about."""
        n_leaves: float = n_labels**SAME_LEAF
        return n_leaves * self.settings.leaf_size
