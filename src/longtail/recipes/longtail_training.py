"""The default recipe's training: sources, what held-out points say of them, sources once more."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from longtail.blend.blend import Blend
from longtail.blend.candidates import CandidateSearch
from longtail.blend.further_scale import learn_further_scale, learn_further_text_scale
from longtail.blend.held_out_lesson import NEARNESS_ASKED, HeldOutLesson
from longtail.blend.label_head import LabelHead
from longtail.blend.linear_source import linear_source
from longtail.blend.near_voters import MOST_ASKED, with_voters_for
from longtail.blend.relations import LabelRelations
from longtail.blend.token_traits import n_pieces_a_word
from longtail.compiled.blended import BlendedScorer
from longtail.compiled.scorer import CompiledScorer, as_storage
from longtail.data.rows import evenly_spaced
from longtail.estimators.estimator import VERY_FEW_POINTS
from longtail.estimators.holding_out import shown_to_blend
from longtail.kernels.jit import in_background
from longtail.row_store import RowStore
from longtail.training.products import one_blas_thread
from longtail.training.threads import meanwhile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.blend.candidates import SearchSizes
    from longtail.blend.linear_source import Pieces
    from longtail.blend.score_network import ScoreNetwork
    from longtail.blend.shared_space import LearntSpace, SharedSpace, SpaceTables
    from longtail.recipes.longtail import LongtailClassifier
    from longtail.scorers.calibration import Calibration
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["LongtailTraining"]

TAIL_WITH_TEXTS, TAIL_WITHOUT_TEXTS = 0.3, 0.5


class _FirstSources(NamedTuple):
    """What the sources' first training leaves for a second one, with the held-out points too.

    Attributes
    ----------
    space : SharedSpace
        How it was trained.
    tables : SpaceTables
        From which the second goes on.
    relations : LabelRelations or None
        Of the same labels, to fewer points.
    sizes : SearchSizes
        With as many near points voting as the blend has learnt from.
    """

    space: SharedSpace
    tables: SpaceTables
    relations: LabelRelations | None
    sizes: SearchSizes


@dataclass(frozen=True, kw_only=True)
class LongtailTraining:
    """One training of the default recipe, in the order of `learn`.

    Parameters
    ----------
    settings : LongtailClassifier
    pieces : {"no", "beginnings", "all"}
        Which pieces of words linear classifiers read: the same if they learn again.
    run : TrainingRun
    """

    settings: LongtailClassifier
    pieces: Pieces
    run: TrainingRun

    @one_blas_thread()  # more of numpy's own would wait busily for what is next
    def learn(
        self, data: TrainingData, held_out: TrainingData
    ) -> tuple[CompiledScorer, Calibration]:
        """Return the trained model, and how probable its answers are.

        The sources are trained, and asked of held-out points. What these teach, a blend learns,
        while the sources learn from the held-out points, too, if these are few.
        """
        run, n_held_out = self.run, held_out.labels.shape[0]
        space = self.settings.space_for(data, n_held_out)
        n_asked = n_held_out if self.settings.learns_again(data, held_out) else None
        scorer, tables = self._sources(space, data, n_asked=n_asked)
        with run.stage("evidence"):
            scorer, lesson, further = self._taught_by(scorer, data, held_out, n_asked)
        tail_weights, nearness = scorer.tail_weights, None
        learn_blend = partial(self._blend_of, lesson, tail_weights)
        with meanwhile(learn_blend, run.n_threads) as blend:
            if tables is None:  # the sources do not learn again
                scorer = _linked_also_by(scorer, held_out, run.n_threads)
            else:
                first = _FirstSources(space, tables, scorer.relations, scorer.search.sizes)
                del scorer  # the second would not fit beside it where the first just did
                del tables  # `first` alone holds them, until it goes
                scorer = self._again(first, data.with_points_of(held_out))
                del first
                nearness = self._nearness_to_others(scorer, held_out)
            with run.stage("blend"):
                storage = as_storage(self.settings.storage)
                compiled = CompiledScorer.of(scorer, storage, run.n_threads, is_last=True)
                network, calibration = blend.result()
            if nearness is not None:
                told = (network, calibration, tail_weights, nearness, n_held_out, run.n_threads)
                calibration = lesson.with_more_points(*told)
        return compiled.with_network(network).with_further_scales(*further), calibration

    def _blend_of(
        self, lesson: HeldOutLesson, tail_weights: NDArray[np.float32]
    ) -> tuple[ScoreNetwork, Calibration]:
        """Learn a blend: beside the sources' second training, or else in a stage of its own."""
        is_alone = self.run.n_threads == 1
        with self.run.stage("blend") if is_alone else nullcontext():
            return lesson.learn(tail_weights, self.run)

    def _sources(
        self,
        space: SharedSpace,
        data: TrainingData,
        *,
        n_asked: int | None = None,
        first: _FirstSources | None = None,
    ) -> tuple[BlendedScorer, SpaceTables | None]:
        """Train everything that scores a candidate; return also what training can go on from.

        With `n_asked`, the scorer is for so many points only, since the sources learn again after
        that: its search is built in less time, and their tables are kept. Sources that learn again
        go on from `first`.
        """
        run, start, relations = self.run, None, None
        if first is not None:
            start, relations = first.tables, first.relations
        with run.stage("shared space"):
            store = RowStore(as_storage(self.settings.storage), run.n_threads)
            learnt = space.learn(data, run, start, store=store, goes_on=n_asked is not None)
        with run.stage("search"):
            scorer = self._searching(learnt, relations, data, n_asked)
        tables = learnt.tables
        del learnt  # the search has its own vectors where some labels have none
        with run.stage("linear"):
            linear, is_read = linear_source(
                data, scorer.search, self.settings.cost, run, pieces=self.pieces
            )
            return replace(scorer, linear=linear, is_read=is_read), tables

    def _searching(
        self,
        space: LearntSpace,
        relations: LabelRelations | None,
        data: TrainingData,
        n_asked: int | None,
    ) -> BlendedScorer:
        """Return a scorer whose search works; its linear part and its blend are yet to come."""
        run, settings = self.run, self.settings
        search = CandidateSearch.build(
            space.heads[0].vectors,
            space.points,
            data.labels,
            sizes=settings.candidate_sizes(n_pieces_a_word(data)),
            seed=run.seed_for("search"),
            n_threads=run.n_threads,
            n_asked=n_asked,
            bias=space.heads[0].bias_of_cosine(),
            in_place=True,  # nobody asks for the space's points any more
            training_rows=data.rows,
        )
        first, *others = space.heads
        usual = TAIL_WITHOUT_TEXTS if data.label_features is None else TAIL_WITH_TEXTS
        blend = Blend.untaught(
            search,
            (LabelHead.of_search(search, first.bias, first.scale), *others),
            LabelRelations.of_data(data, run.n_threads, relations),
            data.labels,
            tail=usual if settings.tail is None else settings.tail,
        )
        return BlendedScorer(encoder=space.encoder, **blend.parts())

    def _taught_by(
        self,
        scorer: BlendedScorer,
        data: TrainingData,
        held_out: TrainingData,
        n_asked: int | None,
    ) -> tuple[BlendedScorer, HeldOutLesson, tuple[float, float]]:
        """Return what held-out points teach: who votes, a blend, and how labels that follow rank.

        `n_asked` are the points that the sources will learn from, too; None if they will not.
        """
        run = self.run
        shown, are_unseen = shown_to_blend(held_out, data)
        points = scorer.encoder.encode(shown.bags(), run.n_threads)
        further = in_background(partial(_further_scales, scorer, shown, points), run.n_threads)
        scorer = self._with_voters(scorer, data, held_out)
        lesson = HeldOutLesson.of(
            scorer,
            shown,
            points,
            data.labels,
            is_unseen=are_unseen,
            n_threads=run.n_threads,
        )
        if n_asked is None or n_asked + data.labels.shape[0] <= VERY_FEW_POINTS:
            lesson = lesson.without_own_labels(shown.labels, run)
        return scorer, lesson, further.result()

    def _with_voters(
        self, scorer: BlendedScorer, data: TrainingData, held_out: TrainingData
    ) -> BlendedScorer:
        """Return the scorer with as many near points voting as tell held-out points most."""
        if self.settings.n_near_points is not None:
            return scorer
        n_points = held_out.labels.shape[0]
        asked = held_out.of_points(evenly_spaced(min(MOST_ASKED, n_points), n_points))
        points = scorer.encoder.encode(asked.bags(), self.run.n_threads)
        search = with_voters_for(scorer.search, points, asked.judged_labels, data.labels)
        return replace(scorer, search=search)

    def _again(self, first: _FirstSources, data: TrainingData) -> BlendedScorer:
        """Train the sources on the held-out points too; the space goes on from where it was."""
        usual = self.settings.space_for(data)
        # More points may be given shorter vectors and smaller logits, but these have their length,
        # and the blend has learnt from logits of the first scale.
        space = replace(
            usual,
            schedule=usual.schedule.again(),
            dimension=first.space.dimension,
            scale=first.space.scale,
        )
        again = replace(self, run=self.run.within("again: "))
        scorer, _ = again._sources(space, data, first=first)
        return replace(scorer, search=replace(scorer.search, sizes=first.sizes))

    def _nearness_to_others(
        self, scorer: BlendedScorer, held_out: TrainingData
    ) -> NDArray[np.float32]:
        """Return how near the nearest other training point is to some held-out points, (n,).

        The scorer's sources have learnt from these, as the last of their points.
        """
        n_held_out = held_out.labels.shape[0]
        rows = evenly_spaced(min(NEARNESS_ASKED, n_held_out), n_held_out)
        asked = held_out.of_points(rows)
        points = scorer.encoder.encode(asked.bags(), self.run.n_threads)
        n_before = len(scorer.search.label_starts) - 1 - n_held_out
        return scorer.search.nearness_to_others(points, n_before + rows)


def _linked_also_by(scorer: BlendedScorer, held_out: TrainingData, n_threads: int) -> BlendedScorer:
    """Return the scorer with the links of held-out points: what is not trained costs little."""
    if scorer.relations is None:
        return scorer
    more = (held_out.features_to_learn, held_out.labels, n_threads)
    return replace(scorer, relations=scorer.relations.linked_also_by(*more))


def _further_scales(
    scorer: BlendedScorer, shown: TrainingData, points: NDArray[np.float32]
) -> tuple[float, float]:
    """Return how labels that follow the candidates are ranked: by vectors, and by texts."""
    of_points = (points, scorer.heads[0], shown.judged_labels)
    scale = learn_further_scale(*of_points)
    texts = (shown.features, scorer.relations)
    return scale, learn_further_text_scale(*of_points, scale, *texts)
