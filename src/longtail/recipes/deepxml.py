"""The DeepXML framework: four modules, each exchangeable.

Dahiya et al., "DeepXML: A deep extreme multi-label learning framework applied to short text
documents", WSDM 2021, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from longtail.classifiers.shortlisted import ShortlistedOneVsAll
from longtail.errors import InputError, named
from longtail.estimators.estimator import LabelEstimator
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.negatives.nearest_labels import LabelShortlister, NearestLabels, ShortlistSizes
from longtail.recipes.fusion_learning import fusion_learnt
from longtail.recipes.learners import averaged_learners
from longtail.recipes.own_parts import (
    check_block,
    check_classifier,
    check_encoder,
    check_parts,
    check_ranker,
    check_shortlister,
    check_start,
    check_transform,
    checked_features,
    checked_shortlists,
    checked_surrogate,
)
from longtail.scorers.deepxml import DeepXMLScorer, Ranker
from longtail.scorers.fusion import ScoreFusion
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.one_vs_all import check_network
from longtail.transfer.bounded_residual import BoundedResidual

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.point_input import PointInput
    from longtail.features.architecture import FeatureArchitecture
    from longtail.features.encoder import Encoder
    from longtail.scorers.label_vectors import LabelVectors
    from longtail.scorers.protocols import Scorer
    from longtail.training.one_vs_all import FeatureNetwork
    from longtail.training.run import TrainingData, TrainingRun
    from longtail.transfer.block import TransferBlock

__all__ = [
    "Classifier",
    "DeepXML",
    "FineTuningClassifier",
    "NegativeSampler",
    "Reranking",
    "Surrogate",
    "Transfer",
]


class Surrogate(Protocol):
    """Module I: a simpler task on which features are learnt."""

    def learn(
        self, architecture: FeatureArchitecture, data: TrainingData, run: TrainingRun
    ) -> tuple[Encoder, NDArray[np.int32]]:
        """Learn features of the points by a task of few targets.

        Parameters
        ----------
        architecture : FeatureArchitecture
            What is to be learnt.
        data : TrainingData
        run : TrainingRun

        Returns
        -------
        encoder : Encoder
            The trained features, frozen.
        meta_labels : int32 (n_labels,)
            The target that stood for each label, -1 for none; kept for `longtail inspect`.
        """
        ...


class NegativeSampler(Protocol):
    """Module II: a structure over frozen features that finds the labels hardest to tell apart."""

    def build(
        self, features: NDArray[np.float32], labels: csr_array, *, seed: int, n_threads: int
    ) -> LabelShortlister:
        """Return what shortlists labels for predictions, and is kept in the model folder.

        Parameters
        ----------
        features : float32 (n_points, dimension)
            Of the training points, by the encoder of Module I.
        labels : csr_array of float32 (n_points, n_labels)
            Ones.
        seed, n_threads : int
        """
        ...

    def mine(
        self,
        shortlister: LabelShortlister,
        features: NDArray[np.float32],
        labels: csr_array,
        *,
        seed: int,
        n_threads: int,
    ) -> NDArray[np.int32]:
        """Return the negatives of the training points.

        Parameters
        ----------
        shortlister : LabelShortlister
            What `build` returned.
        features, labels, seed, n_threads
            As in `build`.

        Returns
        -------
        int32 (n_points, size)
            Padded with -1. True labels may be among them, and are no negatives to a classifier.
        """
        ...


class Transfer(Protocol):
    """Module III: from intermediate to final features."""

    def block(self, dimension: int, device: torch.device) -> TransferBlock:
        """Return a fresh block, trained in Module IV.

        It maps features (n_points, dimension) to as many numbers.
        """
        ...


class Classifier(Protocol):
    """Module IV: a classifier on shortlists."""

    def learn(
        self,
        features: NDArray[np.float32],
        block: TransferBlock,
        shortlists: NDArray[np.int32],
        labels: csr_array,
        run: TrainingRun,
    ) -> LabelVectors:
        """Train classifiers and block together.

        Parameters
        ----------
        features : float32 (n_points, dimension)
            Frozen.
        block : TransferBlock
            Of Module III; changed in place.
        shortlists : int32 (n_points, size)
            Of Module II, see `NegativeSampler.mine`.
        labels : csr_array of float32 (n_points, n_labels)
            Ones.
        run : TrainingRun

        Returns
        -------
        LabelVectors
            One vector (dimension,) and bias a label.
        """
        ...


class FineTuningClassifier(Classifier, Protocol):
    """Module IV as `fine_tune` needs it: it can train the features on."""

    def learn(
        self,
        features: NDArray[np.float32],
        block: TransferBlock,
        shortlists: NDArray[np.int32],
        labels: csr_array,
        run: TrainingRun,
        network: FeatureNetwork | None = None,
    ) -> LabelVectors:
        """Train classifiers, block and `network`, if any, which replaces the frozen `features`.

        All others are as in `Classifier.learn`.
        """
        ...


class Reranking(Protocol):
    """After Module IV: what re-orders the answers of the four modules."""

    def learn(
        self,
        data: TrainingData,
        shortlists: NDArray[np.int32],
        features: NDArray[np.float32],
        first: Ranker,
        run: TrainingRun,
    ) -> Ranker:
        """Train on what `first`, the network of the four modules, confuses.

        Parameters
        ----------
        data : TrainingData
        shortlists : int32 (n_points, size)
            Of Module II.
        features : float32 (n_points, dimension)
            Of Module I.
        first : Ranker
        run : TrainingRun
        """
        ...


@dataclass(kw_only=True, eq=False, repr=False)
class DeepXML(LabelEstimator):
    """Any algorithm of the DeepXML family, from its parts.

    Parameters
    ----------
    features : FeatureArchitecture
        What makes v of a point; Z^0 of Module I and Z of Module III are v and a residual block.
    surrogate : Surrogate
        Module I.
    negatives : NegativeSampler
        Module II.
    transfer : Transfer
        Module III.
    classifier : Classifier
        Module IV.
    reranker : Reranking or None
        Trained last, on what the others confuse, such as `Reranker`.
    prediction_sizes : ShortlistSizes or None
        How much of the structure of Module II a prediction looks at; None for as much as in
        training.
    fusion_as_in_code : bool
        Combine scores as the published code does, not as the paper says; see `ScoreFusion`.
    fine_tune : bool
        Let Module IV train the feature architecture on, from what Module I has learnt; the
        structure of Module II is then built anew over the features that result. The paper freezes
        them, which is quicker. The classifier must be a `FineTuningClassifier`.
    n_learners : int
        Models whose scores are averaged, each from its own random numbers.
    **kwargs
        Those of `LabelEstimator`.

    Examples
    --------
    >>> from longtail.recipes.deepxml import DeepXML
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = DeepXML().fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    features: FeatureArchitecture = field(default_factory=BagOfTokens)
    surrogate: Surrogate = field(default_factory=MetaLabelTask)
    negatives: NegativeSampler = field(default_factory=NearestLabels)
    transfer: Transfer = field(default_factory=BoundedResidual)
    classifier: Classifier = field(default_factory=ShortlistedOneVsAll)
    reranker: Reranking | None = None
    prediction_sizes: ShortlistSizes | None = None
    fusion_as_in_code: bool = False
    fine_tune: bool = False
    n_learners: int = 1

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        check_parts(self)

    def reads(self) -> PointInput:
        """Return what the feature architecture reads of a point."""
        return self.features.reads

    def looks_at_label_texts(self) -> bool:
        """See `LabelEstimator`: where a part of Module I has a method of this name that says so."""
        asked = (
            getattr(part, "looks_at_label_texts", None) for part in (self.features, self.surrogate)
        )
        return any(looks() for looks in asked if looks is not None)

    def _learn(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> Scorer:
        """See `LabelEstimator`."""
        return self.learn(data, held_out, run)

    def learn(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> Scorer:
        """Train all learners, each as `learn_one` does, and average their scores."""
        check_parts(self)  # a recipe may have put it together
        return averaged_learners(partial(self.learn_one, data, held_out), self.n_learners, run)

    def learn_one(
        self, data: TrainingData, held_out: TrainingData, run: TrainingRun
    ) -> DeepXMLScorer:
        """Train one learner: the four modules, in the order of the paper.

        Parameters
        ----------
        data : TrainingData
        held_out : TrainingData
            Points on which alpha and beta are chosen; none keeps their defaults.
        run : TrainingRun
        """
        encoder, clusters = self._encoder(data, run)  # Module I
        features = _encoded(encoder, data, run)
        shortlister, shortlists = self._mine(features, data.labels, run)  # Module II
        block = self._block(features.shape[1], run)  # Module III
        ranker = self._ranker(encoder, features, block, shortlists, data, run)  # Module IV
        if self.fine_tune:  # the features are others now
            features = _encoded(ranker.encoder, data, run, features.shape[1])
            shortlister, shortlists = self._mine(features, data.labels, run)
        reranker = self._reranked(ranker, features, shortlists, data, run)
        if self.prediction_sizes is not None:
            shortlister = shortlister.resized(self.prediction_sizes)
        scorer = DeepXMLScorer(
            ranker=ranker,
            shortlister=shortlister,
            reranker=reranker,
            label_clusters=clusters,
            fusion=ScoreFusion(as_in_code=self.fusion_as_in_code),
        )
        return replace(scorer, fusion=fusion_learnt(scorer, data, held_out, run))

    def _encoder(self, data: TrainingData, run: TrainingRun) -> tuple[Encoder, NDArray[np.int32]]:
        """Learn features by the surrogate task; return them, frozen, and the labels' clusters."""
        learnt = self.surrogate.learn(self.features, data, run)
        return checked_surrogate(learnt, data.features.shape[1], data.labels.shape[1])

    def _mine(
        self, features: NDArray[np.float32], labels: csr_array, run: TrainingRun
    ) -> tuple[LabelShortlister, NDArray[np.int32]]:
        """Build the structure of Module II, and mine the negatives of all training points."""
        with run.stage("module II"):
            seed = run.seed_for("module II")
            shortlister = self.negatives.build(features, labels, seed=seed, n_threads=run.n_threads)
            check_shortlister(shortlister, labels.shape[1])
            shortlists = self.negatives.mine(
                shortlister, features, labels, seed=seed, n_threads=run.n_threads
            )
        return shortlister.as_loaded(), checked_shortlists(shortlists, *labels.shape)

    def _block(self, dimension: int, run: TrainingRun) -> TransferBlock:
        """Return a fresh block between intermediate and final features."""
        block = self.transfer.block(dimension, run.torch_device)
        check_block(block)
        check_start(block, self, run.torch_device)
        return block

    def _ranker(
        self,
        encoder: Encoder,
        features: NDArray[np.float32],
        block: TransferBlock,
        shortlists: NDArray[np.int32],
        data: TrainingData,
        run: TrainingRun,
    ) -> Ranker:
        """Train block and classifiers on shortlists; with `fine_tune`, the features as well."""
        with run.stage("module IV"):
            if self.fine_tune:
                network = self._trained_on(encoder, data, run)
                tuning = cast("FineTuningClassifier", self.classifier)  # `check` has looked
                classifier = tuning.learn(
                    features, block, shortlists, data.labels, run, network=network
                )
                encoder = self.features.frozen(network)
                check_encoder(encoder, data.features.shape[1])
            else:
                classifier = self.classifier.learn(features, block, shortlists, data.labels, run)
        check_classifier(classifier, data.labels.shape[1], features.shape[1])
        transform = block.frozen()
        check_transform(transform, features.shape[1])
        return Ranker(encoder, transform, classifier)

    def _trained_on(self, encoder: Encoder, data: TrainingData, run: TrainingRun) -> FeatureNetwork:
        """Return the features that Module I has learnt as what Module IV can train on."""
        try:
            network = self.features.network(data, data.labels, run, start=encoder)
        except AttributeError as error:  # it looks for what its own encoders have
            raise InputError(
                f"fine_tune trains on what the surrogate returned, {named(encoder)}, and "
                f"{type(self.features).__name__} cannot start from that: {error}. Return an "
                "encoder of its own kind, or set fine_tune to False."
            ) from error
        check_network(network)
        return network

    def _reranked(
        self,
        ranker: Ranker,
        features: NDArray[np.float32],
        shortlists: NDArray[np.int32],
        data: TrainingData,
        run: TrainingRun,
    ) -> Ranker | None:
        """Train the re-ranker, if there is to be one, on what the first network confuses."""
        if self.reranker is None:
            return None
        with run.stage("re-ranker"):
            reranker = self.reranker.learn(data, shortlists, features, ranker, run)
        check_ranker(reranker, data.features.shape[1], data.labels.shape[1])
        return reranker


def _encoded(
    encoder: Encoder, data: TrainingData, run: TrainingRun, dimension: int | None = None
) -> NDArray[np.float32]:
    """Return the features of the training points, of the dimension that they must have."""
    found = encoder.encode(data.bags(), run.n_threads)
    return checked_features(found, data.labels.shape[0], dimension)
