"""NGAME: a siamese encoder of points and label texts, then a classifier a label."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.blend.blend import Blend
from longtail.blend.candidates import SearchSizes
from longtail.blend.held_out_lesson import HeldOutLesson
from longtail.blend.label_head import LabelHead
from longtail.blend.linear_source import linear_source
from longtail.blend.relations import LabelRelations
from longtail.compiled.blended import scorer_around
from longtail.errors import InputError
from longtail.estimators.holding_out import unseen_if_any
from longtail.recipes.own_parts import check_part
from longtail.recipes.part_words import LOSSES, part_of
from longtail.recipes.text_encoders import OfTextEncoder
from longtail.siamese.learnt_modules import LearntModules
from longtail.siamese.modules import ClassifierModule, EncodedPairs, EncoderModule, search_labels
from longtail.siamese.networks import BagArchitecture, Side
from longtail.siamese.pair_losses import PairLoss, TripletLoss
from longtail.siamese.texts import TransformerArchitecture
from longtail.surrogates.label_clusters import label_centroids
from longtail.training.batches import fitting_batch_size
from longtail.training.early_stopping import HeldOut
from longtail.training.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.blend.encoded import EncodedScorer
    from longtail.blend.score_network import ScoreNetwork
    from longtail.compiled.blended import BlendedScorer
    from longtail.data.rows import Rows
    from longtail.estimators.holding_out import Shown
    from longtail.scorers.calibration import Calibration
    from longtail.siamese.networks import SiameseArchitecture, SiameseNetwork
    from longtail.siamese.task import Corrections
    from longtail.training.run import TrainingData, TrainingRun

    Floats = NDArray[np.float32]

__all__ = ["NGAME"]

LEAST_SHOWN, MOST_SHOWN = 40, 9_000  # points that a blend is learnt from
MAP_RATE = 3e-4  # of Adam, for the map of a transformer's vectors
SCALE = 20.0  # cosines times this are what the blend sees
MAX_ENTRIES = 256  # of a text made of a label's points
MINING_BEAM = 64  # a missed negative costs nothing, a missed candidate an answer


@dataclass(kw_only=True, eq=False, repr=False)
class NGAME(OfTextEncoder):
    """NGAME (Dahiya et al., "NGAME: negative mining-aware mini-batching", WSDM 2023).

    Module I trains one encoder for points and label texts, a bag of token vectors or a transformer,
    on batches of neighbours, whose labels are each other's hard negatives. Module II adds a free
    vector to each label's text, trained on hard negatives. A learned blend of both scores orders
    the labels that a graph search finds, in O(D log L) a point. A label without training points
    is found by its text alone. In the end all but the encoder and the blend learn from the held-out
    points, too.

    Where labels have no texts, the features of a label's points stand for its text; a transformer
    needs texts. Of one that is not fine-tuned, Module I trains a linear map of its vectors; see
    `TransformerArchitecture`.

    Parameters
    ----------
    min_df : int or None
        How many texts of points and labels a token must be in to be kept. None takes 1 for up to
        20,000 points, and 2 beyond.
    max_features : int or None
        Most tokens that are kept, those in the most texts; None keeps all. Rare words of label
        texts tell labels apart, so there are as many as in the default recipe.
    encoder_epochs, classifier_epochs : int
        Epochs of Module I, which trains the encoder, and of Module II, which trains a vector for
        each label.
    encoder_learning_rate, classifier_learning_rate : float
        Their rates of row-wise Adagrad, which fall in a straight line, after the warm-up.
    patience : int or None
        Stop Module I after so many epochs without a gain in the share of held-out points' labels
        that are among the ten nearest, and go back to the best epoch. None trains for all epochs.
    batch_size : int or None
        None takes 1,024, and less where that would leave fewer than about forty batches an epoch.
    encoder_loss, classifier_loss : PairLoss or str
        The losses of Module I and Module II; see `longtail.siamese.pair_losses`. A word stands for
        one with its usual numbers: "triplet", "softmax", "contrast" or "contrast-of-labels".
    cluster_size : int
        Most points of a neighbourhood. In Module I batches are random at first, and neighbourhoods
        double each time that they are made anew, up to that: 16 points in the last two of the ten
        epochs by default. Module II starts with so many.
    refresh_every : int
        After how many epochs neighbourhoods are made anew; and hard negatives in Module II, if the
        encoder is trained on there.
    freeze_encoder : bool
        Whether Module II leaves the encoder as it is.
    text_block : bool
        Whether Module II puts DECAF's block between a label's text and its vector; see `TextBlock`.
    shortlist_size : int
        Hard negatives of a point in Module II.
    n_random : int
        Random labels in a batch's pool in Module II.
    n_found : int
        Labels with the nearest vectors that the blend scores.
    beam : int
        Width of the search for them: a wider one finds more, and takes longer. Label vectors of one
        cluster lie in knots, above all with an auxiliary vector in common, and a short beam stays
        in one of them.
    n_near_points : int
        Nearest training points, which vote for their labels; 0 for no votes.
    n_near_labels : int
        Most labels that only near points bring, beside those found. Another thing than Astec's.
    relations : bool
        Whether the blend also looks at words that points share with label texts, and at links
        between labels; see `LabelRelations`.
    linear : bool
        Whether it also looks at linear classifiers on words, trained against the labels of near
        points. The papers' fusion has neither of these, nor near points.
    cost : float
        C of the linear classifiers.
    tail : float
        That times the logarithm of a label's inverse propensity is added to its blended score. A
        little gains PSP@k for next to nothing of P@k; more of it finds more labels that have few
        training points, or none.
    held_out : float
        Share of the points on which the blend is learnt: at most 9,000 points, and none where that
        would be fewer than 40. The encoder does not learn from them, all else does in the end.
    **kwargs
        Those of `OfTextEncoder`.

    Examples
    --------
    >>> from longtail.recipes.ngame import NGAME
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> NGAME(dimension=16).fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """

    min_df: int | None = 1
    max_features: int | None = 800_000
    encoder_epochs: int = 10
    encoder_learning_rate: float = 0.01
    classifier_epochs: int = 5
    classifier_learning_rate: float = 0.005
    batch_size: int | None = None
    encoder_loss: PairLoss | str = field(default_factory=TripletLoss)
    classifier_loss: PairLoss | str = field(default_factory=TripletLoss)
    cluster_size: int = 64
    refresh_every: int = 2
    freeze_encoder: bool = True
    text_block: bool = False
    shortlist_size: int = 10
    n_random: int = 500
    n_found: int = 50
    beam: int = 256
    n_near_points: int = SearchSizes.n_near_points
    n_near_labels: int = SearchSizes.n_near_labels
    relations: bool = True
    linear: bool = True
    cost: float = 1.0
    tail: float = 0.3
    held_out: float = 0.2

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        for name in ("encoder_loss", "classifier_loss"):
            loss = part_of(name, getattr(self, name), LOSSES)
            check_part(name, loss, ["slope"], "TripletLoss()")
        if self.linear and not self.n_near_points:
            raise InputError(
                "The linear classifiers learn from the labels of near points, but n_near_points is "
                "0. Set linear to False, or n_near_points to at least 1."
            )

    def n_held_out(self, n_points: int) -> float:
        """See `LabelEstimator`: many, since nearly all learns from them in the end, or none."""
        wanted = min(self.held_out * n_points, MOST_SHOWN)
        return wanted if wanted >= LEAST_SHOWN else 0

    def auxiliary_clusters(
        self,
        labels: csr_array,  # noqa: ARG002 - for recipes that have some
        texts: Callable[[], Rows],  # noqa: ARG002 - as is this
        run: TrainingRun,  # noqa: ARG002 - and this
    ) -> NDArray[np.int64] | None:
        """Return which auxiliary vector each label has; NGAME has none.

        Parameters
        ----------
        labels : csr_array (n_points, n_labels)
        texts : callable
            Returns what the labels' texts are like, (n_labels, any width), and may take long.
        run : TrainingRun

        Returns
        -------
        int64 (n_labels,) or None
        """
        return None

    def architecture(self, n_points: int) -> SiameseArchitecture:
        """Return how points and label texts are encoded."""
        if self.is_bag:
            return BagArchitecture(dimension=self.dimension, dropout=self.dropout)
        transformer = self.transformer(self.batch_size_for(n_points))
        rate = self.fine_tune_rate if self.fine_tune else MAP_RATE
        speed = rate / self.encoder_learning_rate
        return TransformerArchitecture(transformer=transformer, speed=speed, dropout=self.dropout)

    def encoder_module(self, n_points: int) -> EncoderModule:
        """Return Module I."""
        return EncoderModule(
            schedule=Schedule(
                epochs=self.encoder_epochs,
                learning_rate=self.encoder_learning_rate,
                warm_up=self.warm_up_of_encoder(),
            ),
            loss=part_of("encoder_loss", self.encoder_loss, LOSSES),
            batch_size=self.batch_size_for(n_points),
            cluster_size=self.cluster_size,
            refresh_every=self.refresh_every,
        )

    def classifier_module(self, n_points: int) -> ClassifierModule:
        """Return Module II."""
        return ClassifierModule(
            schedule=Schedule(
                epochs=self.classifier_epochs, learning_rate=self.classifier_learning_rate
            ),
            loss=part_of("classifier_loss", self.classifier_loss, LOSSES),
            batch_size=self.batch_size_for(n_points),
            dropout=self.dropout,
            cluster_size=self.cluster_size,
            sizes=self.mining_sizes(),
            n_random=self.n_random,
            freeze_encoder=self.freeze_encoder,
            refresh_every=self.refresh_every,
            text_block=self.text_block,
        )

    def batch_size_for(self, n_points: int) -> int:
        """Return the largest power of two that leaves about forty batches an epoch, or 1,024."""
        return self.batch_size or fitting_batch_size(n_points, n_batches=40, most=1024)

    @property
    def mining_beam(self) -> int:
        """Length of the beam that looks for hard negatives."""
        return min(self.beam, MINING_BEAM)

    def mining_sizes(self) -> SearchSizes:
        """Return how hard negatives are looked for: among label vectors alone."""
        return SearchSizes(
            n_found=self.shortlist_size, n_near_points=0, n_near_labels=0, beam=self.mining_beam
        )

    def candidate_sizes(self) -> SearchSizes:
        """Return how the labels that the blend orders are looked for."""
        return SearchSizes(
            n_found=self.n_found,
            n_near_points=self.n_near_points,
            n_near_labels=self.n_near_labels if self.n_near_points else 0,
            beam=self.beam,
        )

    def _learn_calibrated(
        self, data: TrainingData, held_out: TrainingData, run: TrainingRun
    ) -> tuple[BlendedScorer | EncodedScorer, Calibration]:
        """See `LabelEstimator`; all but the encoder learn from the held-out points in the end."""
        used, _ = data.of_used_labels()
        watched = HeldOut.of(held_out, held_out.labels[:, used], self.patience)
        with run.stage("relations"):
            relations = LabelRelations.of_data(data, run.n_threads) if self.relations else None
        if data.label_features is None:
            data = data._replace(label_features=_points_as_texts(data, run))
        with run.stage("encoder"):
            network = self.architecture(data.labels.shape[0]).start(data, held_out, run)
        modules = self._modules(network, data, used, watched, run)
        encoder = network.frozen()
        scorer = scorer_around(encoder, self._sources(modules, data, relations, run))
        shown = unseen_if_any(held_out, data)
        with run.stage("blend"):
            points, taught, calibration = _taught(scorer, shown, data.labels, run)
        if shown.are_unseen:
            del scorer  # the second need not fit beside it
            run = run.within("again: ")
            every = data.with_points_of(held_out)
            modules = self._again(modules, points, network, every, run)
            with run.stage("relations"):
                if relations is not None:
                    relations = relations.linked_by(every.features, every.labels, run.n_threads)
            scorer = scorer_around(encoder, self._sources(modules, every, relations, run))
        return replace(scorer, network=taught), calibration

    def _modules(
        self,
        network: SiameseNetwork,
        data: TrainingData,
        used: NDArray[np.int32],
        watched: HeldOut | None,
        run: TrainingRun,
    ) -> LearntModules:
        """Train both modules on the labels with points."""
        n_points, n_labels = data.labels.shape
        with run.stage("label clusters"):
            read = partial(network.vectors, Side.LABELS)
            like = (lambda: data.label_features) if self.is_bag else read
            clusters = _checked_clusters(self.auxiliary_clusters(data.labels, like, run), n_labels)
        seen = data.of_labels(used)
        with run.stage("encoder"):
            auxiliary = self.encoder_module(n_points).learn(
                seen, network, used, clusters, watched, run
            )
            encoded = EncodedPairs(network.vectors(Side.POINTS), network.vectors(Side.LABELS))
        added = None
        if auxiliary is not None and clusters is not None:
            added = _auxiliary_of_labels(auxiliary, clusters, encoded.texts, used)
        nothing = np.zeros((n_labels, network.dimension), np.float32)
        modules = LearntModules(encoded, added, nothing if added is None else added)
        with run.stage("classifiers"):
            modules = self._classified(
                self.classifier_module(n_points), modules, network, used, seen, run
            )
            if not self.freeze_encoder:
                encoded = EncodedPairs(network.vectors(Side.POINTS), network.vectors(Side.LABELS))
        return modules._replace(encoded=encoded)

    def _classified(
        self,
        module: ClassifierModule,
        modules: LearntModules,
        network: SiameseNetwork,
        used: NDArray[np.int32],
        seen: TrainingData,
        run: TrainingRun,
    ) -> LearntModules:
        """Train Module II from where it is, on the labels with points."""
        known = modules.encoded._replace(texts=modules.encoded.texts[used])
        added = modules.added.copy()
        added[used], block = module.learn(seen, network, used, known, added[used], run)
        return modules._replace(added=added, block=block)

    def _again(
        self,
        modules: LearntModules,
        points: Floats,
        network: SiameseNetwork,
        every: TrainingData,
        run: TrainingRun,
    ) -> LearntModules:
        """Go on with Module II from all points, unless the encoder would have to go on with it."""
        encoded = modules.encoded
        both = encoded._replace(points=np.concatenate([encoded.points, points]))
        modules = modules._replace(encoded=both)
        if self.text_block or not self.freeze_encoder:
            return modules
        module = self.classifier_module(every.labels.shape[0])
        module = replace(module, schedule=module.schedule.again())
        with run.stage("classifiers"):
            return self._classified(module, modules, network, *every.of_used_labels(), run)

    def _sources(
        self,
        modules: LearntModules,
        data: TrainingData,
        relations: LabelRelations | None,
        run: TrainingRun,
    ) -> Blend:
        """Let all labels be found, and train the linear classifiers."""
        with run.stage("search"):
            blend = self._blend(
                modules.heads(), modules.encoded.points, data.labels, relations, run
            )
        if not self.linear:
            return blend
        with run.stage("linear"):
            linear, is_read = linear_source(data, blend.search, self.cost, run)
            return replace(blend, linear=linear, is_read=is_read)

    def _blend(
        self,
        heads: list[Floats],
        points: Floats,
        labels: csr_array,
        relations: LabelRelations | None,
        run: TrainingRun,
    ) -> Blend:
        """Return a search and what it finds is scored by; the network is yet to come."""
        search = search_labels(heads[0], points, labels, self.candidate_sizes(), run)
        no_bias = np.zeros(len(heads[0]), np.float32)
        first = LabelHead.of_search(search, no_bias, SCALE)
        others = [LabelHead.of(vectors, no_bias, SCALE) for vectors in heads[1:]]
        return Blend.untaught(search, [first, *others], relations, labels, tail=self.tail)


def _taught(
    scorer: BlendedScorer | EncodedScorer, shown: Shown, seen: csr_array, run: TrainingRun
) -> tuple[Floats, ScoreNetwork, Calibration]:
    """Return vectors of points, and a blend and its probabilities that are learnt from them."""
    points = scorer.encoder.encode(shown.points.bags(), run.n_threads)
    lesson = HeldOutLesson.of(
        scorer,
        shown.points,
        points,
        seen,
        is_unseen=shown.are_unseen,
        n_threads=run.n_threads,
    )
    lesson = lesson.without_own_labels(shown.points.labels, run)
    return points, *lesson.learn(scorer.tail_weights, run)


def _auxiliary_of_labels(
    auxiliary: Corrections, clusters: NDArray[np.int64], texts: Floats, used: NDArray[np.int32]
) -> Floats:
    """Return the auxiliary vector of each label; zeros where it has neither points nor a text."""
    added: Floats = auxiliary.vectors.cpu().numpy()[clusters]
    is_known = np.any(texts, axis=1)
    is_known[used] = True
    added[~is_known] = 0  # its cluster says nothing of it
    return added


def _points_as_texts(data: TrainingData, run: TrainingRun) -> csr_array:
    """Return for each label the summed features of its points; nothing where it has none."""
    return label_centroids(
        data.features,
        data.labels,
        max_entries=MAX_ENTRIES,
        n_threads=run.n_threads,
    )


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
