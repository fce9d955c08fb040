"""NGAME's training: its two modules, the sources of the blend, what held-out points say of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.blend.blend import Blend
from longtail.blend.held_out_lesson import NEARNESS_ASKED, HeldOutLesson
from longtail.blend.label_head import LabelHead
from longtail.blend.linear_source import linear_source
from longtail.blend.relations import LabelRelations
from longtail.compiled.blended import scorer_around
from longtail.data.rows import evenly_spaced
from longtail.errors import InputError
from longtail.estimators.holding_out import shown_to_blend
from longtail.recipes.own_parts import (
    check_part,
    check_siamese,
    check_unit_encoder,
    checked_vectors,
)
from longtail.siamese.modules import EncodedPairs, LearntModules, search_labels
from longtail.siamese.networks import BagArchitecture, Side
from longtail.surrogates.label_clusters import label_centroids
from longtail.training.early_stopping import HeldOut

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.blend.encoded import EncodedScorer
    from longtail.compiled.blended import BlendedScorer
    from longtail.estimators.holding_out import Shown
    from longtail.recipes.ngame import NGAME
    from longtail.scorers.calibration import Calibration
    from longtail.siamese.corrections import Corrections
    from longtail.siamese.modules import ClassifierModule
    from longtail.siamese.networks import SiameseNetwork
    from longtail.training.run import TrainingData, TrainingRun

    Floats = NDArray[np.float32]

__all__ = ["NGAMETraining"]

SCALE = 20.0  # cosines times this are what the blend sees
MAX_ENTRIES = 256  # of a text made of a label's points


@dataclass(frozen=True)
class NGAMETraining:
    """The training of NGAME, DEXA and SiameseXML, in the order of its methods."""

    settings: NGAME
    run: TrainingRun

    def learn(
        self, data: TrainingData, held_out: TrainingData
    ) -> tuple[BlendedScorer | EncodedScorer, Calibration]:
        """Train; all but the encoder learn from the held-out points in the end."""
        run = self.run
        used, _ = data.of_used_labels()
        watched = HeldOut.of(held_out, held_out.labels[:, used], self.settings.patience)
        with run.stage("relations"):
            of_texts = self.settings.relations
            relations = LabelRelations.of_data(data, run.n_threads) if of_texts else None
        if data.label_features is None:
            points_as_texts = label_centroids(
                data.features, data.labels, max_entries=MAX_ENTRIES, n_threads=run.n_threads
            )
            data = data._replace(label_features=points_as_texts)
        with run.stage("encoder"):
            architecture = self.settings.architecture(data.labels.shape[0])
            check_part("what `architecture` returns", architecture, ["start"], BagArchitecture)
            siamese = architecture.start(data, held_out, run)
            check_siamese(siamese)
        modules = self._modules(siamese, data, used, watched)
        encoder = siamese.frozen()
        check_unit_encoder(encoder, data.features.shape[1], siamese.dimension)
        scorer = scorer_around(encoder, self._sources(modules, data, relations))
        shown = shown_to_blend(held_out, data)
        with run.stage("blend"):
            points, lesson = _shown_to(scorer, shown, data.labels, run)
            tail_weights = scorer.tail_weights
            network, calibration = lesson.learn(tail_weights, run)
        if shown.are_unseen:
            del scorer  # the second need not fit beside it
            again = replace(self, run=run.within("again: "))
            every, n_held_out = data.with_points_of(held_out), held_out.labels.shape[0]
            modules = again._further_classified(modules, points[:n_held_out], siamese, every)
            with again.run.stage("relations"):
                if relations is not None:
                    relations = relations.linked_by(every.features, every.labels, run.n_threads)
            scorer = scorer_around(encoder, again._sources(modules, every, relations))
            rows = evenly_spaced(min(NEARNESS_ASKED, n_held_out), n_held_out)
            own = data.labels.shape[0] + rows
            nearness = scorer.search.nearness_to_others(points[rows], own)
            told = (network, calibration, tail_weights, nearness, n_held_out, run.n_threads)
            calibration = lesson.with_more_points(*told)
        return replace(scorer, network=network), calibration

    def _modules(
        self,
        siamese: SiameseNetwork,
        data: TrainingData,
        used: NDArray[np.int32],
        watched: HeldOut | None,
    ) -> LearntModules:
        """Train both modules on the labels with points."""
        n_points, n_labels = data.labels.shape
        clusters = self._auxiliary_clusters(siamese, data)
        seen = data.of_labels(used)
        with self.run.stage("encoder"):  # Module I
            corrections = self.settings.encoder_module(n_points).learn(
                seen, siamese, used, clusters, watched, self.run
            )
            encoded = _encoded_pairs(siamese, n_points, n_labels)
        auxiliary = None
        if corrections is not None and clusters is not None:
            auxiliary = _auxiliary_of_labels(corrections, clusters, encoded.texts, used)
        nothing = np.zeros((n_labels, siamese.dimension), np.float32)
        modules = LearntModules(encoded, auxiliary, nothing if auxiliary is None else auxiliary)
        with self.run.stage("classifiers"):  # Module II
            module = self.settings.classifier_module(n_points)
            modules = self._classified(module, modules, siamese, used, seen)
            if self.settings.freeze_encoder:
                return modules
            return modules._replace(encoded=_encoded_pairs(siamese, n_points, n_labels))

    def _auxiliary_clusters(
        self, siamese: SiameseNetwork, data: TrainingData
    ) -> NDArray[np.int64] | None:
        """Return which auxiliary vector each label has, by what its text is like; None for none."""
        with self.run.stage("label clusters"):
            read = partial(siamese.vectors, Side.LABELS)
            like = (lambda: data.label_features) if self.settings.is_bag else read
            clusters = self.settings.auxiliary_clusters(data.labels, like, self.run)
            return _checked_clusters(clusters, data.labels.shape[1])

    def _classified(
        self,
        module: ClassifierModule,
        modules: LearntModules,
        siamese: SiameseNetwork,
        used: NDArray[np.int32],
        seen: TrainingData,
    ) -> LearntModules:
        """Train Module II from where it is, on the labels with points."""
        known = modules.encoded._replace(texts=modules.encoded.texts[used])
        added = modules.added.copy()
        added[used], block = module.learn(seen, siamese, used, known, added[used], self.run)
        return modules._replace(added=added, block=block)

    def _further_classified(
        self, modules: LearntModules, points: Floats, siamese: SiameseNetwork, every: TrainingData
    ) -> LearntModules:
        """Go on with Module II from all points, unless the encoder would have to go on with it."""
        encoded = modules.encoded
        both = encoded._replace(points=np.concatenate([encoded.points, points]))
        modules = modules._replace(encoded=both)
        if self.settings.text_block or not self.settings.freeze_encoder:
            return modules
        module = self.settings.classifier_module(every.labels.shape[0])
        module = replace(module, schedule=module.schedule.again())
        with self.run.stage("classifiers"):
            return self._classified(module, modules, siamese, *every.of_used_labels())

    def _sources(
        self, modules: LearntModules, data: TrainingData, relations: LabelRelations | None
    ) -> Blend:
        """Let all labels be found, and train the linear classifiers."""
        with self.run.stage("search"):
            blend = self._untaught(modules, data, relations)
        if not self.settings.linear:
            return blend
        with self.run.stage("linear"):
            linear, is_read = linear_source(data, blend.search, self.settings.cost, self.run)
            return replace(blend, linear=linear, is_read=is_read)

    def _untaught(
        self, modules: LearntModules, data: TrainingData, relations: LabelRelations | None
    ) -> Blend:
        """Return a search and what it finds is scored by; the network is yet to come."""
        vectors, *others = modules.heads()
        labels, sizes = data.labels, self.settings.candidate_sizes()
        points = modules.encoded.points
        search = search_labels(vectors, points, labels, sizes, self.run, data.rows)
        no_bias = np.zeros(len(vectors), np.float32)
        heads = [LabelHead.of_search(search, no_bias, SCALE)]
        heads += [LabelHead.of(head, no_bias, SCALE) for head in others]
        return Blend.untaught(search, heads, relations, labels, tail=self.settings.tail)


def _encoded_pairs(siamese: SiameseNetwork, n_points: int, n_labels: int) -> EncodedPairs:
    """Return the vectors of points and label texts by the encoder as it is now."""
    dimension = siamese.dimension
    return EncodedPairs(
        checked_vectors(siamese.vectors(Side.POINTS), n_points, dimension),
        checked_vectors(siamese.vectors(Side.LABELS), n_labels, dimension),
    )


def _shown_to(
    scorer: BlendedScorer | EncodedScorer, shown: Shown, seen: csr_array, run: TrainingRun
) -> tuple[Floats, HeldOutLesson]:
    """Return vectors of points, and what they teach a blend."""
    points = scorer.encoder.encode(shown.points.bags(), run.n_threads)
    lesson = HeldOutLesson.of(
        scorer,
        shown.points,
        points,
        seen,
        is_unseen=shown.are_unseen,
        n_threads=run.n_threads,
    )
    return points, lesson.without_own_labels(shown.points.labels, run)


def _auxiliary_of_labels(
    corrections: Corrections, clusters: NDArray[np.int64], texts: Floats, used: NDArray[np.int32]
) -> Floats:
    """Return the auxiliary vector of each label; zeros where it has neither points nor a text."""
    auxiliary: Floats = corrections.vectors.cpu().numpy()[clusters]
    is_known = np.any(texts, axis=1)
    is_known[used] = True
    auxiliary[~is_known] = 0  # its cluster says nothing of it
    return auxiliary


def _checked_clusters(found: Any, n_labels: int) -> NDArray[np.int64] | None:
    """Return what `auxiliary_clusters` found, int64 (n_labels,), or raise InputError."""
    if found is None:
        return None
    clusters = np.asarray(found)
    if clusters.shape != (n_labels,) or clusters.dtype.kind not in "iu" or clusters.min() < 0:
        raise InputError(
            "`auxiliary_clusters` must return whole numbers from 0, one for each of the "
            f"{n_labels} labels, or None, got {clusters.dtype} {clusters.shape}."
        )
    return clusters.astype(np.int64, copy=False)
