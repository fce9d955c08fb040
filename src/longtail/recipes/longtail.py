"""The default recipe: what we measured to be best on short texts, on a CPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from longtail.blend.candidates import SearchSizes
from longtail.blend.linear_source import Pieces
from longtail.blend.shared_space import SharedSpace
from longtail.blend.token_traits import n_words_known
from longtail.compiled.scorer import StorageType
from longtail.errors import require_one_of
from longtail.estimators.estimator import VERY_FEW_POINTS
from longtail.estimators.holding_out import LEAST_HELD_OUT
from longtail.estimators.symbol_trial import symbols_tell
from longtail.kernels.jit import n_usable_threads
from longtail.recipes.longtail_training import LongtailTraining
from longtail.recipes.reranked import RerankedEstimator
from longtail.training.batches import fitting_batch_size
from longtail.training.schedule import Schedule

if TYPE_CHECKING:
    from longtail.compiled.scorer import CompiledScorer
    from longtail.data.dataset import Dataset
    from longtail.scorers.calibration import Calibration
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["LongtailClassifier"]


FEW_POINTS, MANY_POINTS = 50_000, 200_000
FREQUENT = 20  # points a label, on average, from which its own vector learns enough
VERY_FREQUENT, FEW_LABELS = 50, 5_000  # labels that smaller logits rank better
NOT_RARE = 5  # from which what its points' words have in common tells more than chance does
MORE_THAN_A_PAIR = 2  # the same of pieces, where most words are in no other text
FEW_WORDS_AND_PAIRS = 4  # of a text: with fewer, all their pieces take no time worth naming
MANY_PIECES = 80  # of a word: those of twenty characters
FOUND_OF_STRINGS = 150  # labels, in place of 30
MANY_HELD_OUT = 9_000
LEAST_OF_MANY, MOST_OF_MANY = 2_500, 10_000
MOST_IN_POOL = 10_000  # true labels of a batch's points: the products grow with them


@dataclass(kw_only=True, eq=False, repr=False)
class LongtailClassifier(RerankedEstimator):
    """Dense, sparse and nearest-neighbour scores, blended by what held-out points teach.

    Modules I and IV are one: token vectors and unit label vectors, to which those of the labels'
    texts are added, are trained together (`SharedSpace`). Module II searches labels
    and training points (`CandidateSearch`) and what label texts name (`LabelRelations`). Sparse
    linear one-vs-rest classifiers score what is found (`SparseOneVsRest`), and a small network,
    learnt on held-out training points, blends all scores (`ScoreNetwork`).

    Parameters
    ----------
    tail : float or None
        How much rare labels are preferred: this times ``log(1 / propensity)`` is added to a label's
        score. A little gains PSP@k for next to nothing of P@k; about 1 ranks for PSP@k. It changes
        the order, and no probability. None takes .3 where labels have texts, and .5 where they have
        none.
    min_df : int or None
        How many texts of points and labels a token must be in to be kept. None takes 1, but 2 of
        pairs of words for up to 50,000 points, and of pieces of strings, if most of the longest
        are in one.
    dimension : int or None
        Length of token and label vectors. None takes 512 for up to 50,000 points of ready-made
        features or without pieces of words, where training is short; else 256 for up to 20,000
        points, 192 for up to 200,000, and 256 beyond, where there is more to learn, and in scripts
        without spaces. Points that are held out do not count.
    epochs : int or None
        None takes 7 for up to 20,000 points that are not held out, and 3 beyond. Up to 50,000 in
        all, 2 more follow with the points that the blend was learnt from.
    learning_rate : float or None
        Of row-wise Adagrad, in units of the vectors' entries; falls in a straight line. None takes
        .02 for up to 50,000 points, and .04 beyond.
    batch_size : int or None
        None takes 1,024, and less where that would leave fewer than about forty batches an epoch,
        or where so many points have more than 10,000 labels to be scored against.
    dropout : float
        Of the points' vectors, in training.
    scale : float or None
        Logits of label vectors are this times the cosine with the point, in training: the inverse
        of the softmax's temperature. None takes 16, and 10 for up to 5,000 labels with more than 50
        points on average. Points that are held out do not count.
    n_random : int
        Random labels in a batch's pool.
    label_texts : bool
        Learn from the labels' texts, or names where they have none.
    texts_alone : float or None
        Share of a batch's labels that are their text alone in a step, without their own vector.
        None takes .4, and 0 where labels have more than 20 points on average and so hardly need
        their texts.
    cost : float
        C of the linear classifiers: how much an error counts against the length of the weights.
    pieces : {"no", "beginnings", "all"} or None
        Which pieces of words linear classifiers look at, beside words and pairs: what words begin
        with, such as ``<wine``, or all. None takes beginnings where labels have more than 20 points
        on average, or more than 5 of up to 50,000 points: of rarer labels, pieces tell nothing. It
        takes all where labels have more than 5 and texts have fewer than 4 known words and pairs,
        as short texts and scripts without spaces have; more than 2 do where most of their words are
        in no other text.
    n_near_labels : int or None
        Labels with the largest logits of their vectors, which are scored by all sources. None takes
        30, and 150 where words have 80 pieces and more: of strings, vectors tell little.
    n_near_points : int or None
        Training points that vote for their labels; 0 for no votes. None takes 20, and 10 or 100
        where the labels with the most of so many votes are clearly more often true of held-out
        points.
    n_voted : int
        Most labels that only their votes bring, beside the nearest ones.
    beam_size : int
        Width of the search: a wider one finds more, and takes longer.
    symbols : bool or None
        Whether runs of symbols, such as ``:`` between two digits, are words, too. None tries, where
        there are up to 1,000 labels with 10 points or more on average, whether they tell these
        apart.
    word_vectors : str or None
        A text file of word vectors that were learnt elsewhere, as fastText, GloVe and word2vec
        write them, plain or gzip. Vectors of tokens start near these, and not at random, which
        gains where points are few, and finds more labels by their texts. The model needs no such
        file.
    held_out : float
        Share of the points that are held out for the blend to learn from: of up to 50,000 points at
        most 9,000, from which the sources learn in the end, too; of more points a fiftieth, from
        2,500 to 10,000. Of 60 points and more at least 20. With 0 the blend is a weighted sum,
        learnt from points that the sources have seen.
    storage : {"int8", "float16", "float32"}
        How the model keeps its numbers: see `Predictor.compressed`. float16 answers as float32
        does; int8 needs half of its bytes, and moves P@1 by about .1.
    **kwargs
        Those of `RerankedEstimator`.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> LongtailClassifier().fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """

    min_df: int | None = None
    max_features: int | None = 800_000
    dimension: int | None = None
    epochs: int | None = None
    learning_rate: float | None = None
    batch_size: int | None = None
    dropout: float = 0.2
    scale: float | None = None
    n_random: int = 100
    label_texts: bool = True
    texts_alone: float | None = None
    cost: float = 1.0
    pieces: str | None = None
    symbols: bool | None = None
    tail: float | None = None
    feature_power: float | None = None
    n_near_labels: int | None = None
    n_near_points: int | None = None
    n_voted: int = SearchSizes.n_voted
    beam_size: int = SearchSizes.beam_size
    word_vectors: str | None = None
    held_out: float = 0.2
    storage: str = "int8"

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        require_one_of("storage", self.storage, get_args(StorageType))
        require_one_of("pieces", self.pieces, (None, *get_args(Pieces)))

    def learns_from_fragments(self) -> bool:
        """See `LabelEstimator`; a blend learns how far to trust its answers to these."""
        return True

    def word_vectors_file(self) -> Path | None:
        """See `LabelEstimator`."""
        return None if self.word_vectors is None else Path(self.word_vectors)

    def looks_at_label_texts(self) -> bool:
        """See `LabelEstimator`."""
        return self.label_texts

    def reads_symbols(self, dataset: Dataset) -> bool:
        """See `LabelEstimator`."""
        if self.symbols is not None:
            return self.symbols
        return symbols_tell(dataset, n_usable_threads(self.n_threads))

    def min_df_for(self, n_points: int) -> int | tuple[int, int, int]:
        """See `LabelEstimator`; of few points, a pair in one text tells no more than its words."""
        if self.min_df is not None:
            return super().min_df_for(n_points)
        return 1 if n_points > FEW_POINTS else (1, min(2, max(1, n_points // 20)), 1)

    def n_held_out(self, n_points: int) -> float:
        """See `LabelEstimator`: many, where the sources learn from them again.

        And if there are any, no fewer than a blend takes, where that leaves two thirds.
        """
        of_many = min(max(n_points // 50, LEAST_OF_MANY), MOST_OF_MANY)
        most = MANY_HELD_OUT if n_points <= FEW_POINTS else of_many
        least = LEAST_HELD_OUT if self.held_out and n_points >= 3 * LEAST_HELD_OUT else 0
        return max(min(self.held_out * n_points, most), least)

    def _learn(
        self, data: TrainingData, held_out: TrainingData, run: TrainingRun
    ) -> CompiledScorer:
        """See `LabelEstimator`."""
        return self._learn_alone(data, held_out, run)[0]

    def _learn_alone(
        self, data: TrainingData, held_out: TrainingData, run: TrainingRun
    ) -> tuple[CompiledScorer, Calibration]:
        """See `RerankedEstimator`; `LongtailTraining` has the steps."""
        pieces = self.pieces_of(data, held_out)
        return LongtailTraining(settings=self, pieces=pieces, run=run).learn(data, held_out)

    def learns_again(self, data: TrainingData, held_out: TrainingData) -> bool:
        """Return whether the sources shall see the held-out points too, once the blend is learnt.

        Where points are few, each counts; where they are many, it would double the time for little.
        """
        n_held_out: int = held_out.labels.shape[0]
        return bool(0 < n_held_out <= FEW_POINTS - data.labels.shape[0])

    def pieces_of(self, data: TrainingData, held_out: TrainingData) -> Pieces:
        """Return which pieces of words linear classifiers read; the same if they learn again."""
        n_points, n_labels = data.labels.shape
        n_label_pairs = data.labels.nnz + held_out.labels.nnz
        n_in_all = n_points + held_out.labels.shape[0]
        n_words = n_words_known(data)
        return self.pieces_for(
            n_in_all, n_labels, n_label_pairs, n_words, is_unknown=data.is_unknown
        )

    def space_for(self, data: TrainingData, n_held_out: int = 0) -> SharedSpace:
        """Return how the points, labels and texts of a training set are trained."""
        n_points, n_labels = data.labels.shape
        has_pieces = data.is_word is not None and not data.is_word.all()
        return self.shared_space(
            n_points,
            n_labels,
            data.labels.nnz,
            n_held_out=n_held_out,
            has_pieces=has_pieces,
            is_unspaced=data.is_unspaced,
        )

    def shared_space(
        self,
        n_points: int,
        n_labels: int,
        n_label_pairs: int,
        *,
        n_held_out: int = 0,
        has_pieces: bool = True,
        is_unspaced: bool = False,
    ) -> SharedSpace:
        """Return how points, labels and texts are trained, for a training set of such a size.

        `n_held_out` are the points beside it; `has_pieces` tells bags with pieces of words, which
        are long, from others, and `is_unspaced` texts in scripts without spaces.
        """
        return SharedSpace(
            dimension=self.dimension_for(n_points, has_pieces=has_pieces, is_unspaced=is_unspaced),
            schedule=Schedule(
                epochs=self.epochs_for(n_points),
                learning_rate=self.learning_rate_for(n_points + n_held_out),
            ),
            batch_size=self.batch_size_for(n_points, n_label_pairs),
            n_random=self.n_random,
            dropout=self.dropout,
            scale=self.scale_for(n_labels, n_label_pairs),
            texts_alone=self.texts_alone_for(n_labels, n_label_pairs),
        )

    def dimension_for(self, n_points: int, *, has_pieces: bool, is_unspaced: bool) -> int:
        """Return how long the vectors for so many training points are, unless that is set."""
        if self.dimension is not None:
            return self.dimension
        if n_points <= FEW_POINTS and not has_pieces:
            return 512
        return 192 if VERY_FEW_POINTS < n_points <= MANY_POINTS and not is_unspaced else 256

    def batch_size_for(self, n_points: int, n_label_pairs: int) -> int:
        """Return how many points a batch has, unless that is set."""
        if self.batch_size is not None:
            return self.batch_size
        most = min(n_points // 40, MOST_IN_POOL * n_points // max(n_label_pairs, 1))
        return fitting_batch_size(most, n_batches=1, most=1024)

    def scale_for(self, n_labels: int, n_label_pairs: int) -> float:
        """Return what cosines are multiplied by, unless that is set."""
        if self.scale is not None:
            return self.scale
        are_known_well = n_label_pairs > VERY_FREQUENT * n_labels
        return 10.0 if are_known_well and n_labels <= FEW_LABELS else 16.0

    def texts_alone_for(self, n_labels: int, n_label_pairs: int) -> float:
        """Return the share of texts that stand alone in a step, unless that is set."""
        if self.texts_alone is not None:
            return self.texts_alone
        return 0.4 if n_label_pairs <= FREQUENT * n_labels else 0.0

    def pieces_for(
        self,
        n_points: int,
        n_labels: int,
        n_label_pairs: int,
        n_words: float,
        *,
        is_unknown: bool = False,
    ) -> Pieces:
        """Return which pieces of words are looked at, unless that is set.

        `n_words` are the words and pairs of a text, on average. Where most are in no other text,
        `is_unknown`, these tell nothing, and pieces that few points share are better than nothing.
        """
        if self.pieces is not None:
            return cast("Pieces", self.pieces)
        has_few_words = n_words < FEW_WORDS_AND_PAIRS
        least = NOT_RARE if n_points <= FEW_POINTS or has_few_words else FREQUENT
        if is_unknown and has_few_words:
            least = MORE_THAN_A_PAIR
        if n_label_pairs <= least * n_labels:
            return "no"
        return "all" if has_few_words else "beginnings"

    def epochs_for(self, n_points: int) -> int:
        """Return how many epochs so many training points are given, unless that is set."""
        if self.epochs is not None:
            return self.epochs
        return 7 if n_points <= VERY_FEW_POINTS else 3

    def learning_rate_for(self, n_points: int) -> float:
        """Return the rate at the first step for so many points in all, unless that is set."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 0.02 if n_points <= FEW_POINTS else 0.04

    def candidate_sizes(self, n_pieces: float) -> SearchSizes:
        """Return how the labels that the blend orders are looked for, by the pieces of a word."""
        usual = FOUND_OF_STRINGS if n_pieces >= MANY_PIECES else SearchSizes.n_near_labels
        usual_near = SearchSizes.n_near_points
        return SearchSizes(
            n_near_labels=usual if self.n_near_labels is None else self.n_near_labels,
            n_near_points=usual_near if self.n_near_points is None else self.n_near_points,
            n_voted=self.n_voted,
            beam_size=self.beam_size,
        )
