"""How long training will take and how much memory, from the arithmetic, before it starts."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from longtail.data.characters import are_unspaced
from longtail.data.point_input import InputKind, words_in_table
from longtail.data.text_column import NO_TEXTS
from longtail.data.token_counts import document_frequencies, kinds_of
from longtail.data.vectorizer import TextVectorizer, TokenKind
from longtail.data.word_vectors import size_of_file
from longtail.estimators.holding_out import can_hold_out
from longtail.estimators.text_traits import sample_of
from longtail.estimators.vocabulary import WORDS, label_texts_of, vectorizer_for, vocabulary_texts
from longtail.kernels.jit import n_usable_threads
from longtail.kernels.token_tables import build_table
from longtail.training.products import one_blas_thread, write_product
from longtail.training.threads import torch_threads, training_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from longtail.data.dataset import Dataset
    from longtail.data.text_column import TextColumn
    from longtail.estimators.estimator import LabelEstimator
    from longtail.kernels.text import TokenRules

__all__ = [
    "CostModel",
    "Estimate",
    "Machine",
    "Workload",
    "estimate_training",
    "indexing",
    "product_rate",
    "rate_of_torch",
    "workload_of",
]

SAMPLE = 6_000  # texts that are looked at to learn how long bags are
FEW = 1_000  # texts whose words are counted
# Core-seconds for what is bound by memory, measured with 256 dimensions on two cores of a server.
VECTORISE = 1.6e-7  # an entry of the features
BAG = 8e-10  # an entry of the features, times the dimension: forward, backward and step
LOGIT = 3.5e-9  # loss and slope of one logit
INDEX = 7.5e-5 / 256  # putting a vector into a graph, times the dimension: see `indexing`
MANY_INDEXED = 262_144  # vectors, of which each is compared with more: see `GraphIndex.build`
VISIT = 1.8e-6 / 256  # a neighbour asked for, times the dimension
MEASURED_SECONDS = 0.04  # of products, to learn how fast this machine is
START = 1.5  # seconds: reading compiled code, threads
PROCESS = 250e6  # bytes: interpreter, compiled code
WITH_TORCH = 450e6  # the same where torch is loaded
BAGS = 4 * 8  # bytes an entry of the features: as read, as unit rows, a part of them, and a copy
CENTROIDS = 16  # bytes an entry of the labels' centroids, made in blocks and put together
DISTINCT = 0.5  # share of the true labels of a batch that are distinct
SHARED = 0.3  # share of the hard negatives of a batch of neighbours that are distinct
LONGEST = 5.0  # the longest text of a batch over the mean, in words
SAME_TOKENS = 0.6  # n points of a label have n to that power times the different tokens of one
TEMPORARIES = 2.0  # the peak over what is kept, as measured on three data sets


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The size of a training set as training sees it.

    Parameters
    ----------
    n_points, n_features, n_labels : int
    n_nonzero : int
        Entries of the feature matrix.
    n_label_pairs : int
        Entries of the label matrix.
    n_word_entries : int
        How many of the entries are words or pairs of words; all of ready-made features.
    n_label_entries : int
        Entries of the bags of the labels' texts; 0 where the recipe does not look at any.
    n_used_labels : int or None
        Labels that some point has; None for all.
    n_most_labels : int
        Labels of the point that has the most.
    n_ordered_words : int or None
        Words of all texts that are read in their order, one that comes again counted again. None
        for `n_word_entries`.
    holds_out : bool
        Whether points are held out, if the recipe wants some of so many.
    is_unspaced : bool
        Whether the texts are in scripts without spaces between words.
    n_known_words, n_numbers : int
        Words of the texts that word vectors are read of, at most, and numbers of such a vector; 0
        where training starts from none.

    Examples
    --------
    Of three labels, one has no points, and most recipes leave it out.

    >>> from longtail.costs.estimate import Workload
    >>> points = {"n_points": 2, "n_features": 4, "n_nonzero": 6, "n_word_entries": 6}
    >>> Workload(n_labels=3, n_label_pairs=2, n_used_labels=2, **points).n_trained_labels
    2
    """

    n_points: int
    n_features: int
    n_labels: int
    n_nonzero: int
    n_label_pairs: int
    n_word_entries: int
    n_label_entries: int = 0
    n_used_labels: int | None = None
    n_most_labels: int = 1
    n_ordered_words: int | None = None
    holds_out: bool = True
    is_unspaced: bool = False
    n_known_words: int = 0
    n_numbers: int = 0

    @property
    def n_trained_labels(self) -> int:
        """Labels of which a recipe learns that leaves out those without points."""
        return self.n_labels if self.n_used_labels is None else self.n_used_labels

    @property
    def n_words_read(self) -> int:
        """Words that are read by a recipe that reads them in order."""
        return self.n_word_entries if self.n_ordered_words is None else self.n_ordered_words

    @property
    def n_centroid_entries(self) -> float:
        """Entries of the sums of all labels' points, about: the same tokens come again."""
        n_labels = max(self.n_trained_labels, 1)
        n_different: float = max(self.n_label_pairs / n_labels, 1.0) ** SAME_TOKENS
        of_point = self.n_nonzero / self.n_points
        return n_labels * min(of_point * n_different, float(self.n_features))

    def known_words(self, dimension: int) -> float:
        """Return the bytes of word vectors while a table of such vectors of tokens starts there.

        They are there as read, of unit length, and turned into numbers of the table.
        """
        return 4.0 * self.n_known_words * (2 * self.n_numbers + dimension)

    def n_held_out(self, settings: LabelEstimator) -> float:
        """Return about how many points a recipe with such settings holds out."""
        return settings.n_held_out(self.n_points) if self.holds_out else 0.0

    def pool_size(self, batch_size: int, n_hard: int = 0, n_random: int = 0) -> float:
        """Return about how many labels a batch of a `SharedPool` is scored against."""
        true = DISTINCT * batch_size * self.n_label_pairs / self.n_points
        return min(self.n_labels, true + SHARED * batch_size * n_hard + n_random)


class Machine(NamedTuple):
    """What training runs on.

    Attributes
    ----------
    rate : float
        Floating-point operations a second of its matrix products, on all threads.
    n_threads : int
    rate_of_float32 : float or None
        The same of numbers that stay of 32 bits, as some recipes keep them; None if unknown.

    Examples
    --------
    >>> from longtail.costs.estimate import Machine
    >>> from longtail.recipes.astec import Astec
    >>> machine = Machine.measured(Astec(n_threads=1))
    >>> machine.n_threads, machine.rate > 1e6
    (1, True)
    """

    rate: float
    n_threads: int
    rate_of_float32: float | None = None

    @classmethod
    def measured(cls, settings: LabelEstimator) -> Machine:
        """Return this machine, with the device and the threads that the settings say."""
        n_threads, device = n_usable_threads(settings.n_threads), settings.device
        of_float32 = product_rate(device, n_threads)
        if device != "cpu" or "torch" in sys.modules:
            return cls(rate_of_torch(device, n_threads), n_threads, of_float32)
        return cls(of_float32, n_threads, of_float32)

    def training(self, n_logits: float, dimension: float) -> float:
        """Return the seconds in which vectors are trained on so many products of two of them.

        A product, and two more on the way back, of a multiplication and an addition a number; and
        the loss of each logit, with its slope.
        """
        return 6 * n_logits * dimension / self.rate + n_logits * LOGIT / self.n_threads


class CostModel(Protocol):
    """What a recipe, with its settings, costs."""

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage after the texts have become bags; none if unknown."""
        ...

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak."""
        ...


@dataclass(frozen=True)
class Estimate:
    """What training will take, within a factor of about two; on a GPU, at most.

    Parameters
    ----------
    stages : mapping of str to float
        Seconds of each stage; empty where nobody has measured them.
    memory : int
        Bytes at the peak.

    Examples
    --------
    >>> from longtail.costs.estimate import Estimate
    >>> Estimate({"trees": 3.0, "calibration": 1.5}, 10**9).seconds
    4.5
    >>> Estimate({}, 10**9).seconds is None
    True
    """

    stages: Mapping[str, float]
    memory: int

    @property
    def seconds(self) -> float | None:
        """Wall seconds of all stages; None where they are unknown."""
        return sum(self.stages.values()) if self.stages else None


def indexing(n_vectors: float) -> float:
    """Return the core-seconds of a graph of so many vectors, over their dimension.

    Examples
    --------
    >>> from longtail.costs.estimate import indexing
    >>> indexing(4_000_000) / indexing(1_000_000)
    8.0
    """
    return n_vectors * INDEX * max(1.0, math.sqrt(n_vectors / MANY_INDEXED))


def estimate_training(workload: Workload, costs: CostModel, machine: Machine) -> Estimate:
    """Return what training will take.

    Examples
    --------
    >>> from longtail import Astec
    >>> from longtail.costs.of_recipe import costs_of
    >>> from longtail.costs.estimate import Machine, Workload, estimate_training
    >>> small = Workload(
    ...     n_points=10_000,
    ...     n_features=5_000,
    ...     n_labels=1_000,
    ...     n_nonzero=10**6,
    ...     n_label_pairs=20_000,
    ...     n_word_entries=10**5,
    ... )
    >>> machine = Machine(rate=1e11, n_threads=2)
    >>> once = estimate_training(small, costs_of(Astec()), machine)
    >>> thrice = estimate_training(small, costs_of(Astec(n_learners=3)), machine)
    >>> round(thrice.stages["module I"] / once.stages["module I"])
    3
    """
    n_entries = workload.n_nonzero + workload.n_label_entries
    vectoriser = START + n_entries * VECTORISE / machine.n_threads
    stages = costs.stages(workload, machine)
    if stages:  # the vectoriser alone would pass for the whole
        stages = {"vectoriser": vectoriser, **stages}
    return Estimate(stages, int(costs.memory(workload)))


def workload_of(dataset: Dataset, settings: LabelEstimator) -> Workload:
    """Return the size of a data set; of texts, from the tokens of a sample.

    Parameters
    ----------
    dataset : Dataset
    settings : LabelEstimator
        Says how texts become bags, and whether it looks at those of labels.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import Dataset
    >>> from longtail.costs.estimate import workload_of
    >>> from longtail.recipes.astec import Astec
    >>> dataset = Dataset.of(np.eye(2, 5), [["drink", "wine"], ["vehicle"]])
    >>> size = workload_of(dataset, Astec())
    >>> size.n_features, size.n_nonzero, size.n_labels, size.n_label_pairs, size.n_most_labels
    (5, 2, 3, 3, 2)
    """
    if dataset.features is not None:
        bags = _Bags(dataset.features.shape[1], int(dataset.features.nnz), dataset.features.nnz, 0)
    else:
        bags = _bags_of_texts(dataset, settings)
    n_wanted = settings.n_held_out(dataset.n_points)
    reads_label_texts = bags.n_label_entries > 0
    return Workload(
        n_points=max(dataset.n_points, 1),
        n_labels=dataset.n_labels,
        n_label_pairs=int(dataset.labels.nnz),
        n_used_labels=len(np.unique(dataset.labels.indices)),
        n_most_labels=int(np.diff(dataset.labels.indptr).max(initial=1)),
        holds_out=can_hold_out(dataset.labels, n_wanted, reads_label_texts=reads_label_texts),
        is_unspaced=are_unspaced(sample_of(dataset.texts or NO_TEXTS)),
        **bags._asdict(),
    )


class _Bags(NamedTuple):
    """The part of a workload that depends on the vectoriser."""

    n_features: int
    n_nonzero: int
    n_word_entries: int
    n_label_entries: int
    n_ordered_words: int | None = None
    n_known_words: int = 0
    n_numbers: int = 0


def _bags_of_texts(dataset: Dataset, settings: LabelEstimator) -> _Bags:
    """Count features and entries, by the growth of the vocabulary (Heaps' law)."""
    texts = dataset.texts or NO_TEXTS
    some, share = _sample(texts, SAMPLE)
    vectorizer = vectorizer_for(settings, dataset)
    keys, frequencies = document_frequencies(some, vectorizer.token_rules())
    if not keys.size:
        return _Bags(0, 0, 0, 0)
    n_word_entries = frequencies[kinds_of(keys) != TokenKind.CHARACTERS].sum()
    known = vocabulary_texts(settings, dataset)
    return _Bags(
        _n_features(known, vectorizer),
        int(frequencies.sum() / share),
        int(n_word_entries / share),
        _n_label_entries(dataset, settings, vectorizer.token_rules()),
        _n_ordered_words(texts, settings),
        *_size_of_word_vectors(known, vectorizer, settings.word_vectors_file()),
    )


def _n_features(texts: TextColumn, vectorizer: TextVectorizer) -> int:
    """Count the tokens that are kept of some texts, and go on as their number grows."""
    some, share = _sample(texts, SAMPLE)
    n_tokens, n_of_half = (_n_kept(part, vectorizer) for part in (some, some[::2]))
    growth = math.log2(n_tokens / n_of_half) if n_of_half else 1.0
    n_features = n_tokens * share ** -min(max(growth, 0.0), 0.9)
    return int(min(n_features, vectorizer.max_features or n_features))


def _size_of_word_vectors(
    texts: TextColumn, vectorizer: TextVectorizer, path: Path | None
) -> tuple[int, int]:
    """Count the words of texts that a file may have vectors of, and the numbers of one."""
    if path is None:
        return 0, 0
    size = size_of_file(path)
    n_words = _n_features(texts, replace(vectorizer, word_ngrams=1, char_ngrams=None))
    return min(n_words, n_words if size.n_words is None else size.n_words), size.n_numbers


def _n_kept(texts: TextColumn, vectorizer: TextVectorizer) -> int:
    """Count the tokens that are in enough texts."""
    keys, frequencies = document_frequencies(texts, vectorizer.token_rules())
    return int((frequencies >= vectorizer.least_frequencies()[kinds_of(keys)]).sum())


def _n_ordered_words(texts: TextColumn, settings: LabelEstimator) -> int | None:
    """Count the words that are read in their order; None where the recipe reads bags."""
    reads = settings.reads()
    if reads.kind is not InputKind.WORDS:
        return None
    some, share = _sample(texts, FEW)
    keys, _ = document_frequencies(some, WORDS.token_rules())
    words = words_in_table(build_table(keys), some, reads.n_words)
    return int((words >= 0).sum() / share)


def _n_label_entries(dataset: Dataset, settings: LabelEstimator, rules: TokenRules) -> int:
    """Count the entries of the labels' texts, or else names, where the recipe looks at them."""
    texts = label_texts_of(dataset)
    if texts is None or not settings.looks_at_label_texts():
        return 0
    some, share = _sample(texts, SAMPLE)
    return int(document_frequencies(some, rules)[1].sum() / share)


def _sample(texts: TextColumn, size: int) -> tuple[TextColumn, float]:
    """Return evenly spaced texts, and which share of all they are."""
    some = texts[:: max(1, len(texts) // size)]
    return some, len(some) / max(len(texts), 1)


def product_rate(device: str, n_threads: int) -> float:
    """Measure products of float32 matrices, in floating-point operations a second.

    Examples
    --------
    >>> from longtail.costs.estimate import product_rate
    >>> product_rate("cpu", n_threads=1) > 1e6
    True
    """
    if device != "cpu":
        return rate_of_torch(device, n_threads, narrow=False)
    left, right = np.ones((512, 256), np.float32), np.ones((256, 4096), np.float32)
    out = np.empty((len(left), right.shape[1]), np.float32)
    with training_threads(n_threads), one_blas_thread():
        n = _products_a_second(lambda: write_product(left, right, out))
    return 2.0 * n * left.size * right.shape[1]


def rate_of_torch(device: str, n_threads: int, *, narrow: bool = True) -> float:
    """Do the same with torch; `narrow`, with numbers of the type that label tables are trained in.

    Examples
    --------
    >>> from longtail.costs.estimate import rate_of_torch
    >>> rate_of_torch("cpu", n_threads=1) > 1e6
    True
    """
    import torch  # noqa: PLC0415 - not needed by recipes that train without it

    from longtail.training.label_table import product_dtype  # noqa: PLC0415 - imports torch

    dtype = product_dtype(torch.device(device)) if narrow else torch.float32
    left = torch.ones(512, 256, dtype=dtype, device=device)
    right = torch.ones(256, 4096, dtype=dtype, device=device)
    with torch_threads(n_threads):
        n = _products_a_second(lambda: float((left @ right)[0, 0]))
    return 2.0 * n * left.numel() * right.shape[1]


def _products_a_second(multiply: Callable[[], object]) -> float:
    """Return how many products a second are done."""
    multiply()  # the first product prepares the library, and on a GPU waits for it
    n_products, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < MEASURED_SECONDS:
        multiply()
        n_products += 1
    return n_products / elapsed
