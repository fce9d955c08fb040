"""Astec, the accelerated short text extreme classifier: DeepXML with the parts of its paper.

What `as_in_code` exchanges is in `longtail.recipes.astec_as_published`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from longtail.classifiers.reranker import Reranker
from longtail.classifiers.shortlisted import ShortlistedOneVsAll, ShortlistTraining
from longtail.estimators.estimator import LabelEstimator
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.negatives.nearest_labels import NearestLabels, ShortlistSizes
from longtail.recipes.astec_as_published import published_astec
from longtail.recipes.deepxml import DeepXML
from longtail.surrogates.label_clusters import LabelClusters
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.batches import fitting_batch_size
from longtail.training.run import TrainingData
from longtail.training.schedule import Schedule
from longtail.transfer.bounded_residual import BoundedResidual

if TYPE_CHECKING:
    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingRun

__all__ = ["Astec", "Astec3", "Sizes"]

FEW_POINTS = 50_000


class Sizes(NamedTuple):
    """What Astec fits to the number of training points.

    Examples
    --------
    >>> from longtail import Astec
    >>> Astec().sizes_for(20_000)
    Sizes(dimension=512, batch_size=64, dropout=0.5)
    >>> Astec(dropout=0.2).sizes_for(2_000_000)
    Sizes(dimension=256, batch_size=512, dropout=0.2)
    """

    dimension: int
    batch_size: int
    dropout: float


@dataclass(kw_only=True, eq=False, repr=False)
class Astec(LabelEstimator):
    """Astec (Dahiya et al., "DeepXML", WSDM 2021, section 4 and appendix).

    The objectives are the paper's. By default they are organised for two CPU cores: batches are
    neighbourhoods that share one pool of labels, so that every heavy step is a matrix product,
    tables are trained by row-wise Adagrad, and classifiers start from their labels' log-odds. With
    ``as_in_code=True`` training follows the published code where that differs.

    Parameters
    ----------
    dimension : int or None
        D, the length of token and label vectors (300 in the published settings for titles and 512
        for full texts). None takes 512 for up to 50,000 points and 256 beyond: where training is
        short, a richer space costs little.
    n_meta_labels : int
        L^, the number of label clusters of the surrogate task. Shrinks by itself to the largest
        power of two that is at most half the number of labels.
    label_correlation : bool
        Cluster labels by centroids mixed along the label-correlation random walk (appendix A.2).
    dropout : float or None
        After each ReLU, in training. None takes .5, as the paper, for up to 50,000 points, and .4
        beyond.
    max_norm : float
        lambda, the bound on the spectral norm of the residual blocks of Modules I and III.
    surrogate_epochs, surrogate_learning_rate : int, float
        Epochs of Module I, the surrogate task, and the learning rate at their first step.
    extreme_epochs, extreme_learning_rate : int, float
        Epochs of Module IV, the classifiers of all labels, and the rate at their first step.
    reranker_epochs, reranker_learning_rate : int, float
        Epochs of the re-ranker, and the learning rate at their first step.
    batch_size : int or None
        Points of a step of Module I; batches on shortlists are twice as large. None takes 512, and
        less where that would leave fewer than about two hundred batches an epoch.
    n_near_labels : int
        Labels with the nearest centres that Module II finds for a training point (ANNS^mu).
    n_near_points : int
        Nearest training points whose labels it adds (ANNS^x); 0 leaves these out, as Slice does.
    shortlist_size : int
        Most labels that it keeps of both: what the point's hard negatives are drawn from.
    predict_near_labels, predict_near_points, predict_shortlist_size : int
        `n_near_labels`, `n_near_points` and `shortlist_size` of a prediction, which needs fewer:
        quicker, at about the same accuracy.
    n_representatives, head_frequency : int
        Further k-means centres of each label that has that many points (appendix A.4).
    n_hard, n_random : int
        Hard negatives drawn from a point's shortlist in each epoch, and random labels in a batch.
    reranker : bool
        Train a second network on what the first confuses, and let it score the shortlist, too.
    n_confused : int
        Best labels of each training point that the re-ranker is trained against.
    n_learners : int
        Models whose scores are averaged, each from its own random numbers; Astec-3 has three.
    label_texts : bool
        Learn from the labels' texts, too: each is one more training point, of its own label alone.
        A label without training points can then be found. That costs much P@k where there are more
        texts than points, since each counts as much as a point, or where points are texts of labels
        themselves. The default recipe and `ngame` learn from texts without that.
    as_in_code : bool
        Follow the published code: clusters from random pairs of labels, no correlation where a
        label is more frequent than 5,000, mean instead of summed loss in Module I, random starts,
        Adam with its rates halved, batches of 255 random points each against its own shortlist and
        150 random labels, R always divided by its norm, 300 representatives for labels with 7,500
        points, and its score fusion. Of the settings above, `dimension`, `label_correlation`,
        `n_near_labels`, `n_near_points`, `shortlist_size`, `head_frequency`, `reranker`,
        `n_confused`, `n_learners` and `label_texts` still count; all others are the code's own.
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

    dimension: int | None = None
    n_meta_labels: int = 8192
    label_correlation: bool = LabelClusters.label_correlation
    dropout: float | None = None
    max_norm: float = 1.0
    surrogate_epochs: int = 25
    surrogate_learning_rate: float = 0.05
    extreme_epochs: int = 20
    extreme_learning_rate: float = 0.1
    reranker_epochs: int = 8
    reranker_learning_rate: float = 0.1
    batch_size: int | None = None
    n_near_labels: int = NearestLabels.n_near_labels
    n_near_points: int = NearestLabels.n_near_points
    shortlist_size: int = NearestLabels.size
    predict_near_labels: int = ShortlistSizes.n_near_labels
    predict_near_points: int = ShortlistSizes.n_near_points
    predict_shortlist_size: int = ShortlistSizes.size
    n_representatives: int = NearestLabels.n_representatives
    head_frequency: int = NearestLabels.head_frequency
    n_hard: int = ShortlistTraining.n_hard
    n_random: int = ShortlistTraining.n_random
    reranker: bool = True
    n_confused: int = Reranker.n_confused
    n_learners: int = 1
    label_texts: bool = False
    as_in_code: bool = False

    def looks_at_label_texts(self) -> bool:
        """See `LabelEstimator`."""
        return self.label_texts

    def deepxml(self, n_points: int) -> DeepXML:
        """Return the framework with Astec's parts, sized for so many training points."""
        if self.as_in_code:
            return published_astec(self)
        dimension, batch_size, dropout = self.sizes_for(n_points)
        features = BagOfTokens(dimension=dimension, dropout=dropout)
        residual = BoundedResidual(max_norm=self.max_norm, dropout=dropout)
        return DeepXML(
            features=features,
            surrogate=self._surrogate(residual, batch_size),
            negatives=self.shortlister(self.n_representatives),
            transfer=residual,
            classifier=ShortlistedOneVsAll(
                training=self._on_shortlists(
                    self.extreme_epochs, self.extreme_learning_rate, batch_size
                )
            ),
            reranker=self._reranker(features, residual, batch_size) if self.reranker else None,
            prediction_sizes=ShortlistSizes(
                n_near_labels=self.predict_near_labels,
                n_near_points=self.predict_near_points,
                size=self.predict_shortlist_size,
            ),
            n_learners=self.n_learners,
        )

    def _surrogate(self, residual: BoundedResidual, batch_size: int) -> MetaLabelTask:
        """Return Module I."""
        return MetaLabelTask(
            clusters=LabelClusters(
                n_meta_labels=self.n_meta_labels, label_correlation=self.label_correlation
            ),
            schedule=Schedule(
                epochs=self.surrogate_epochs, learning_rate=self.surrogate_learning_rate
            ),
            batch_size=batch_size,
            residual=residual,
        )

    def shortlister(self, n_representatives: int) -> NearestLabels:
        """Return Module II."""
        return NearestLabels(
            n_near_labels=self.n_near_labels,
            n_near_points=self.n_near_points,
            size=self.shortlist_size,
            n_representatives=n_representatives,
            head_frequency=self.head_frequency,
        )

    def _on_shortlists(
        self, epochs: int, learning_rate: float, batch_size: int
    ) -> ShortlistTraining:
        """Return how Module IV is trained, or the re-ranker."""
        return ShortlistTraining(
            schedule=Schedule(epochs=epochs, learning_rate=learning_rate),
            batch_size=2 * batch_size,
            n_hard=self.n_hard,
            n_random=self.n_random,
        )

    def _reranker(
        self, features: BagOfTokens, residual: BoundedResidual, batch_size: int
    ) -> Reranker:
        """Return what re-orders the answers of the modules."""
        return Reranker(
            architecture=features,
            transfer=residual,
            training=self._on_shortlists(
                self.reranker_epochs, self.reranker_learning_rate, batch_size
            ),
            n_confused=self.n_confused,
        )

    def sizes_for(self, n_points: int) -> Sizes:
        """Return what depends on the number of training points, unless it is given."""
        few = n_points <= FEW_POINTS
        fitting = fitting_batch_size(n_points, n_batches=200, most=512)
        return Sizes(
            dimension=self.dimension or (512 if few else 256),
            batch_size=self.batch_size or fitting,
            dropout=(0.5 if few else 0.4) if self.dropout is None else self.dropout,
        )

    def _learn(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> Scorer:
        """See `LabelEstimator`."""
        if data.label_features is not None:
            data = data.with_points_of(_texts_as_points(data.label_features))
        return self.deepxml(data.features.shape[0]).learn(data, held_out, run)


@dataclass(kw_only=True, eq=False, repr=False)
class Astec3(Astec):
    """Astec-3: the mean of three Astecs (Dahiya et al., "DeepXML", WSDM 2021, section 5).

    Parameters
    ----------
    **kwargs
        Those of `Astec`.

    Examples
    --------
    >>> from longtail import Astec3
    >>> Astec3().n_learners
    3
    """

    n_learners: int = 3


def _texts_as_points(label_features: csr_array) -> TrainingData:
    """Return the labels' texts as points, of one label each; a text of no known token is none."""
    known = np.flatnonzero(np.diff(label_features.indptr))
    ones = np.ones(len(known), np.float32)
    shape = (len(known), label_features.shape[0])
    own = csr_array((ones, (np.arange(len(known)), known)), shape)
    return TrainingData(label_features[known], own)
