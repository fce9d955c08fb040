"""Astec, the accelerated short text extreme classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.classifiers.reranker import Reranker
from longtail.classifiers.shortlisted import ShortlistedOneVsAll, ShortlistTraining
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.negatives.nearest_labels import NearestLabels
from longtail.recipes.deepxml import DeepXML
from longtail.recipes.estimator import LabelEstimator
from longtail.surrogates.label_clusters import LabelClusters
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.optimisers import LazyAdam, RowwiseAdagrad
from longtail.training.schedule import Schedule
from longtail.transfer.bounded_residual import BoundedResidual

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from longtail.classifiers.scorer import Scorer
    from longtail.training.optimisers import RowOptimiser
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["Astec", "Astec3"]


@dataclass(kw_only=True, eq=False, repr=False)
class Astec(LabelEstimator):
    """Astec (Dahiya et al., "DeepXML", WSDM 2021, section 4 and appendix).

    The objectives are the paper's. By default they are organised for two CPU cores: batches are
    neighbourhoods that share one pool of labels, so that every heavy step is a matrix product,
    tables are trained by row-wise Adagrad, and classifiers start from their labels' log-odds. With
    ``as_in_code=True`` training follows the published code where that differs.

    Parameters
    ----------
    dimension : int
        D, the length of token and label vectors (300 in the published settings).
    n_meta_labels : int
        L^, the number of label clusters of the surrogate task. Shrinks by itself to the largest
        power of two that is at most half the number of labels.
    label_correlation : bool
        Cluster labels by centroids mixed along the label-correlation random walk (appendix A.2).
    dropout : float
        After each ReLU, in training.
    max_norm : float
        lambda, the bound on the spectral norm of R0 and R.
    surrogate_epochs, surrogate_learning_rate
        Of Module I.
    extreme_epochs, extreme_learning_rate
        Of Module IV.
    reranker_epochs, reranker_learning_rate
        Of the re-ranker.
    batch_size : int
        Of Module I; batches on shortlists are twice as large.
    n_near_labels, n_near_points, shortlist_size
        Taken from ANNS^mu, from ANNS^x, and kept of both (Module II); 0 near points leave ANNS^x
        out, which is Slice's shortlist.
    n_representatives, head_frequency
        Further k-means centres of each label that has that many points (appendix A.4).
    n_hard, n_random : int
        Hard negatives drawn from a point's shortlist in each epoch, and random labels in a batch.
    reranker : bool
        Train a re-ranker.
    n_confused : int
        Best labels of each training point that the re-ranker is trained against.
    n_learners : int
        Astec-3 has three.
    as_in_code : bool
        Follow the published code: raw centroids, clusters from random pairs of labels, no
        correlation where a label is more frequent than 5,000, mean instead of summed loss in
        Module I, random starts, Adam with its rates halved, batches of 255 random points each
        against its own shortlist and 150 random labels, R always divided by its norm, 300
        representatives for labels with 7,500 points, and its score fusion. Overrides the rates,
        epochs and sizes above.
    **kwargs
        Those of `LabelEstimator`.

    Examples
    --------
    >>> from longtail import Astec
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> Astec().fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """

    dimension: int = 256
    n_meta_labels: int = 8192
    label_correlation: bool = True
    dropout: float = 0.2
    max_norm: float = 1.0
    surrogate_epochs: int = 20
    surrogate_learning_rate: float = 0.05
    extreme_epochs: int = 10
    extreme_learning_rate: float = 0.05
    reranker_epochs: int = 10
    reranker_learning_rate: float = 0.05
    batch_size: int = 512
    n_near_labels: int = 300
    n_near_points: int = 100
    shortlist_size: int = 500
    n_representatives: int = 0
    head_frequency: int = 7500
    n_hard: int = 20
    n_random: int = 500
    reranker: bool = True
    n_confused: int = 200
    n_learners: int = 1
    as_in_code: bool = False

    def deepxml(self) -> DeepXML:
        """Return the framework with Astec's parts."""
        if self.as_in_code:
            return _as_in_code(self)
        return self._assembled(
            clusters=LabelClusters(
                n_meta_labels=self.n_meta_labels, label_correlation=self.label_correlation
            ),
            surrogate_schedule=_schedule(self.surrogate_epochs, self.surrogate_learning_rate),
            residual=BoundedResidual(max_norm=self.max_norm, dropout=self.dropout),
            extreme=self._on_shortlists(self.extreme_epochs, self.extreme_learning_rate),
            reranking=self._on_shortlists(self.reranker_epochs, self.reranker_learning_rate),
        )

    def _learn(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> Scorer:
        """See `LabelEstimator`."""
        return self.deepxml()._learn(data, held_out, run)

    def _on_shortlists(self, epochs: int, learning_rate: float) -> ShortlistTraining:
        """Return how the classifier, or the re-ranker, is trained."""
        return ShortlistTraining(
            schedule=_schedule(epochs, learning_rate),
            batch_size=2 * self.batch_size,
            n_hard=self.n_hard,
            n_random=self.n_random,
        )

    def _assembled(
        self,
        *,
        clusters: LabelClusters,
        surrogate_schedule: Schedule,
        residual: BoundedResidual,
        extreme: ShortlistTraining,
        reranking: ShortlistTraining,
        n_representatives: int | None = None,
        make_optimiser: Callable[[Tensor], RowOptimiser] = RowwiseAdagrad,
    ) -> DeepXML:
        """Put the parts of the four modules together."""
        features = BagOfTokens(
            dimension=self.dimension, dropout=residual.dropout, make_optimiser=make_optimiser
        )
        if n_representatives is None:
            n_representatives = self.n_representatives
        return DeepXML(
            features=features,
            surrogate=MetaLabelTask(
                clusters=clusters,
                schedule=surrogate_schedule,
                batch_size=255 if self.as_in_code else self.batch_size,
                residual=residual,
                mean_loss=self.as_in_code,
                make_optimiser=make_optimiser,
            ),
            negatives=NearestLabels(
                n_near_labels=self.n_near_labels,
                n_near_points=self.n_near_points,
                size=self.shortlist_size,
                n_representatives=n_representatives,
                head_frequency=self.head_frequency,
            ),
            transfer=residual,
            classifier=ShortlistedOneVsAll(training=extreme),
            reranker=Reranker(
                architecture=features,
                residual=residual,
                training=reranking,
                n_confused=self.n_confused,
            )
            if self.reranker
            else None,
            fusion_as_in_code=self.as_in_code,
            n_learners=self.n_learners,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class Astec3(Astec):
    """Astec-3: the mean of three Astecs (DeepXML paper, section 5). Parameters as for `Astec`."""

    n_learners: int = 3


def _schedule(epochs: int, learning_rate: float, halve_at: tuple[int, ...] = ()) -> Schedule:
    """Return a schedule; the learning rate falls in a straight line unless it is halved."""
    return Schedule(epochs=epochs, learning_rate=learning_rate, halve_at=halve_at)


def _as_in_code(astec: Astec) -> DeepXML:
    """Return Astec as its authors' code has it, with the settings it gives most data sets."""
    extreme = ShortlistTraining(
        schedule=_schedule(15, 0.002, (14,)),
        batch_size=255,
        n_hard=astec.shortlist_size,
        n_random=150,
        own_only=True,
        neighbourhood_size=0,
        random_start=True,
        make_optimiser=LazyAdam,
    )
    reranking = ShortlistTraining(
        schedule=_schedule(12, 0.002, (8, 10)),
        batch_size=255,
        n_hard=astec.n_confused,
        n_random=0,
        own_only=True,
        neighbourhood_size=0,
        random_start=True,
        make_optimiser=LazyAdam,
    )
    return astec._assembled(
        clusters=LabelClusters(
            n_meta_labels=2**16,
            normalise_points=False,
            plus_plus=False,
            label_correlation=astec.label_correlation,
            max_label_frequency=5000,
        ),
        surrogate_schedule=_schedule(20, 0.01, (14,)),
        residual=BoundedResidual(always_divide=True, dropout=0.5, learning_rate=0.002),
        extreme=extreme,
        reranking=reranking,
        n_representatives=300,
        make_optimiser=LazyAdam,
    )
