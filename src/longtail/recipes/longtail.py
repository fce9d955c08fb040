"""The default recipe: what we measured to be best on short texts, on a CPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast, get_args

from longtail.blend.blend import Blend
from longtail.blend.candidates import CandidateSearch, SearchSizes
from longtail.blend.further_scale import learn_further_scale, learn_further_text_scale
from longtail.blend.held_out_lesson import HeldOutLesson
from longtail.blend.label_head import LabelHead
from longtail.blend.linear_source import (
    Pieces,
    linear_source,
    n_pieces_a_word,
    n_words_known,
)
from longtail.blend.near_voters import MOST_ASKED, with_voters_for
from longtail.blend.relations import LabelRelations
from longtail.blend.shared_space import LearntSpace, SharedSpace, SpaceTables
from longtail.compiled.blended import BlendedScorer
from longtail.compiled.scorer import CompiledScorer, StorageType, as_storage
from longtail.data.rows import evenly_spaced
from longtail.errors import InputError
from longtail.estimators.estimator import VERY_FEW_POINTS
from longtail.estimators.holding_out import LEAST_HELD_OUT, unseen_if_any
from longtail.estimators.symbol_trial import symbols_tell
from longtail.kernels.jit import in_background, n_usable_threads
from longtail.recipes.reranked import RerankedEstimator
from longtail.row_store import RowStore
from longtail.training.batches import fitting_batch_size
from longtail.training.products import one_blas_thread
from longtail.training.schedule import Schedule
from longtail.training.threads import meanwhile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.data.dataset import Dataset
    from longtail.scorers.calibration import Calibration
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["LongtailClassifier"]


FEW_POINTS, MANY_POINTS = 50_000, 200_000
FREQUENT = 20  # points a label, on average, from which its own vector learns enough
VERY_FREQUENT, FEW_LABELS = 50, 5_000  # labels that smaller logits rank better
NOT_RARE = 5  # from which what its points' words have in common tells more than chance does
FEW_WORDS = 4  # and pairs of a text: with fewer, all their pieces take no time worth naming
MANY_PIECES = 80  # of a word: those of twenty characters
FOUND_OF_STRINGS = 150  # labels, in place of 30
MANY_HELD_OUT = 9_000
LEAST_OF_MANY, MOST_OF_MANY = 2_500, 10_000
TAIL_WITH_TEXTS, TAIL_WITHOUT_TEXTS = 0.3, 0.5
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
    min_df : int or None
        How many texts of points and labels a token must be in to be kept. None takes 1, and of
        pairs of words 2 for up to 50,000 points.
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
        with, such as ``<wine``, or all. None takes some where labels have more than 20 points on
        average, or more than 5 and there are at most 50,000 points; of rarer labels they tell
        nothing, and else too little for their time. It takes all of them, of any number of points,
        where labels have more than 5 on average and fewer than 4 words and pairs of a text are
        known: of short texts, and of scripts without spaces between words.
    n_found : int or None
        Labels with the largest logits of their vectors, which are scored by all sources. None takes
        30, and 150 where words have 80 pieces and more: of strings, vectors tell little.
    n_near_points : int or None
        Training points that vote for their labels; 0 for no votes. None takes 20, and 10 or 100
        where the labels with the most of so many votes are clearly more often true of held-out
        points.
    n_near_labels : int
        Most labels that only near points bring, beside those found. Another thing than Astec's.
    beam : int
        Width of the search: a wider one finds more, and takes longer.
    symbols : bool or None
        Whether runs of symbols, such as ``:`` between two digits, are words, too. None looks, of up
        to 300 labels with 10 points and more on average, whether they tell these apart.
    tail : float or None
        That times the logarithm of a label's inverse propensity is added to its score. A little
        gains PSP@k for next to nothing of P@k; about 1 ranks for PSP@k. None takes .3 where labels
        have texts, and .5 where they have none.
    held_out : float
        Share of the points on which the blend is learnt: at most 9,000 of up to 50,000 points,
        where the sources then learn from them too; beyond, a fiftieth, from 2,500 to 10,000. Of 60
        points and more at least 20. With none it is a weighted sum, learnt from trained-on points.
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
    n_found: int | None = None
    n_near_points: int | None = None
    n_near_labels: int = SearchSizes.n_near_labels
    beam: int = SearchSizes.beam
    held_out: float = 0.2
    storage: str = "int8"

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        for name, choices in {
            "storage": get_args(StorageType),
            "pieces": (None, *get_args(Pieces)),
        }.items():
            if (given := getattr(self, name)) not in choices:
                allowed = ", ".join(map(repr, choices))
                raise InputError(f"{name} must be one of {allowed}, got {given!r}.")

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
        return self._learn_calibrated(data, held_out, run)[0]

    @one_blas_thread()  # more of numpy's own would wait busily for what is next
    def _learn_calibrated(
        self, data: TrainingData, held_out: TrainingData, run: TrainingRun
    ) -> tuple[CompiledScorer, Calibration]:
        """See `LabelEstimator`.

        The sources are trained, and asked of held-out points. What these teach, a blend learns,
        while the sources learn from the held-out points, too, if these are few.
        """
        space = self._space_for(data, held_out.labels.shape[0])
        n_asked = held_out.labels.shape[0] if self._learns_again(data, held_out) else None
        pieces = self._pieces_read(data, held_out)
        scorer, tables = self._sources(space, data, run, pieces=pieces, n_asked=n_asked)
        with run.stage("evidence"):
            scorer, lesson, further = self._taught_by(scorer, data, held_out, n_asked, run)
        blend = partial(lesson.learn, scorer.tail_weights, run)
        with meanwhile(blend, run.n_threads) as blended:
            if tables is not None:
                relations, sizes = scorer.relations, scorer.search.sizes
                del scorer  # the second would not fit beside it where the first just did
                every = data.with_points_of(held_out)
                again = run.within("again: ")
                scorer = self._again(space, tables, relations, every, again, pieces)
                del tables, every
                scorer = replace(scorer, search=replace(scorer.search, sizes=sizes))
            elif scorer.relations is not None:  # what is not trained costs next to nothing
                more = (held_out.features, held_out.labels, run.n_threads)
                scorer = replace(scorer, relations=scorer.relations.linked_also_by(*more))
            with run.stage("blend"):
                compiled = CompiledScorer.of(scorer, as_storage(self.storage), run.n_threads)
                network, calibration = blended.result()
        return compiled.with_network(network).with_further_scales(*further), calibration

    def _with_voters(
        self, scorer: BlendedScorer, data: TrainingData, held_out: TrainingData, run: TrainingRun
    ) -> BlendedScorer:
        """Return the scorer with as many near points voting as tell held-out points most."""
        if self.n_near_points is not None:
            return scorer
        n_points = held_out.labels.shape[0]
        asked = held_out.of_points(evenly_spaced(min(MOST_ASKED, n_points), n_points))
        points = scorer.encoder.encode(asked.bags(), run.n_threads)
        search = with_voters_for(scorer.search, points, asked.judged_labels, data.labels)
        return replace(scorer, search=search)

    def _taught_by(
        self,
        scorer: BlendedScorer,
        data: TrainingData,
        held_out: TrainingData,
        n_asked: int | None,
        run: TrainingRun,
    ) -> tuple[BlendedScorer, HeldOutLesson, tuple[float, float]]:
        """Return what held-out points teach: who votes, a blend, and how labels that follow rank.

        `n_asked` are the points that the sources will learn from, too; None if they will not.
        """
        shown = unseen_if_any(held_out, data)
        points = scorer.encoder.encode(shown.bags(), run.n_threads)
        further = in_background(partial(_further_scales, scorer, shown, points), run.n_threads)
        scorer = self._with_voters(scorer, data, held_out, run)
        lesson = HeldOutLesson.of(
            scorer,
            shown,
            points,
            data.labels,
            is_unseen=shown is held_out,
            n_threads=run.n_threads,
        )
        if n_asked is None or n_asked + data.labels.shape[0] <= VERY_FEW_POINTS:
            lesson = lesson.without_own_labels(shown.labels, run)
        return scorer, lesson, further.result()

    def _sources(
        self,
        space: SharedSpace,
        data: TrainingData,
        run: TrainingRun,
        start: SpaceTables | None = None,
        relations: LabelRelations | None = None,
        *,
        pieces: Pieces,
        n_asked: int | None = None,
    ) -> tuple[BlendedScorer, SpaceTables | None]:
        """Train everything that scores a candidate; return also what training can go on from.

        Where the scorer is for `n_asked` points only, since the sources then learn again: its
        search is built in less time, and their tables are kept. When they learn again, `start` are
        these tables, and `relations` those of the same labels to fewer points.
        """
        with run.stage("shared space"):
            store = RowStore(as_storage(self.storage), run.n_threads)
            learnt = space.learn(data, run, start, store=store, goes_on=n_asked is not None)
        with run.stage("search"):
            scorer = self._searching(learnt, relations, data, run, n_asked)
        tables = learnt.tables
        del learnt  # the search has its own vectors where some labels have none
        with run.stage("linear"):
            linear, is_read = linear_source(data, scorer.search, self.cost, run, pieces=pieces)
            return replace(scorer, linear=linear, is_read=is_read), tables

    def _again(
        self,
        first: SharedSpace,
        tables: SpaceTables,
        relations: LabelRelations | None,
        data: TrainingData,
        run: TrainingRun,
        pieces: Pieces,
    ) -> BlendedScorer:
        """Train the sources on the held-out points too; the space goes on from where it was."""
        usual = self._space_for(data)
        # More points may be given shorter vectors and smaller logits, but these have their length,
        # and the blend has learnt from logits of the first scale.
        again = usual.schedule.again()
        space = replace(usual, schedule=again, dimension=first.dimension, scale=first.scale)
        return self._sources(space, data, run, tables, relations, pieces=pieces)[0]

    def _learns_again(self, data: TrainingData, held_out: TrainingData) -> bool:
        """Return whether the sources shall see the held-out points too, once the blend is learnt.

        Where points are few, each counts; where they are many, it would double the time for little.
        """
        n_held_out: int = held_out.labels.shape[0]
        return bool(0 < n_held_out <= FEW_POINTS - data.labels.shape[0])

    def _pieces_read(self, data: TrainingData, held_out: TrainingData) -> Pieces:
        """Return which pieces of words linear classifiers read; the same if they learn again."""
        n_points, n_labels = data.labels.shape
        n_label_pairs = data.labels.nnz + held_out.labels.nnz
        n_in_all = n_points + held_out.labels.shape[0]
        return self.pieces_for(n_in_all, n_labels, n_label_pairs, n_words_known(data))

    def _space_for(self, data: TrainingData, n_held_out: int = 0) -> SharedSpace:
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
        most = min(n_points // 40, MOST_IN_POOL * n_points // max(n_label_pairs, 1))
        fitting = fitting_batch_size(most, n_batches=1, most=1024)
        usual = usual_dimension(n_points, has_pieces=has_pieces, is_unspaced=is_unspaced)
        return SharedSpace(
            dimension=self.dimension or usual,
            schedule=Schedule(
                epochs=self.epochs_for(n_points),
                learning_rate=self.learning_rate_for(n_points + n_held_out),
            ),
            batch_size=self.batch_size or fitting,
            n_random=self.n_random,
            dropout=self.dropout,
            scale=self.scale_for(n_labels, n_label_pairs),
            texts_alone=self.texts_alone_for(n_labels, n_label_pairs),
        )

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
        self, n_points: int, n_labels: int, n_label_pairs: int, n_words: float
    ) -> Pieces:
        """Return which pieces of words are looked at, unless that is set.

        `n_words` are the words and pairs of a text, on average.
        """
        if self.pieces is not None:
            return cast("Pieces", self.pieces)
        has_few_words = n_words < FEW_WORDS
        least = NOT_RARE if n_points <= FEW_POINTS or has_few_words else FREQUENT
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
        usual = FOUND_OF_STRINGS if n_pieces >= MANY_PIECES else SearchSizes.n_found
        usual_near = SearchSizes.n_near_points
        return SearchSizes(
            n_found=usual if self.n_found is None else self.n_found,
            n_near_points=usual_near if self.n_near_points is None else self.n_near_points,
            n_near_labels=self.n_near_labels,
            beam=self.beam,
        )

    def _searching(
        self,
        space: LearntSpace,
        relations: LabelRelations | None,
        data: TrainingData,
        run: TrainingRun,
        n_asked: int | None,
    ) -> BlendedScorer:
        """Return a scorer whose search works; its linear part and its blend are yet to come."""
        search = CandidateSearch.build(
            space.heads[0].vectors,
            space.points,
            data.labels,
            sizes=self.candidate_sizes(n_pieces_a_word(data)),
            seed=run.seed_for("search"),
            n_threads=run.n_threads,
            n_asked=n_asked,
            bias=space.heads[0].bias_of_cosine(),
        )
        first, *others = space.heads
        usual = TAIL_WITHOUT_TEXTS if data.label_features is None else TAIL_WITH_TEXTS
        blend = Blend.untaught(
            search,
            (LabelHead.of_search(search, first.bias, first.scale), *others),
            LabelRelations.of_data(data, run.n_threads, relations),
            data.labels,
            tail=usual if self.tail is None else self.tail,
        )
        return BlendedScorer(encoder=space.encoder, **blend.parts())


def _further_scales(
    scorer: BlendedScorer, shown: TrainingData, points: NDArray[np.float32]
) -> tuple[float, float]:
    """Return how labels that follow the candidates are ranked: by vectors, and by texts."""
    of_points = (points, scorer.heads[0], shown.judged_labels)
    scale = learn_further_scale(*of_points)
    texts = (shown.features, scorer.relations)
    return scale, learn_further_text_scale(*of_points, scale, *texts)


def usual_dimension(n_points: int, *, has_pieces: bool, is_unspaced: bool) -> int:
    """Return how long the vectors for so many training points are, unless that is set."""
    if n_points <= FEW_POINTS and not has_pieces:
        return 512
    return 192 if VERY_FEW_POINTS < n_points <= MANY_POINTS and not is_unspaced else 256
