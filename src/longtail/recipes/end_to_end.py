"""Feature architectures alone: one network up to the scores of all labels, as their papers have it.

What DeepXML is held against in Table 4 of its paper: the output layer is as wide as there are
labels, and each step pays for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from longtail.classifiers.classifier_training import ClassifierTraining
from longtail.recipes.architectures import OfArchitecture, OfKimCNN, OfXMLCNN
from longtail.scorers.one_vs_all import OneVsAllScorer
from longtail.training.batches import AllLabels
from longtail.training.schedule import Schedule
from longtail.transfer.plain import Identity

if TYPE_CHECKING:
    from longtail.features.architecture import FeatureArchitecture
    from longtail.features.encoder import Encoder
    from longtail.scorers.label_vectors import LabelVectors
    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["EndToEnd", "KimCNNClassifier", "XMLCNNClassifier", "learn_end_to_end"]


@dataclass(kw_only=True, eq=False, repr=False)
class EndToEnd(OfArchitecture):
    """Base of the recipes that are one network: features, and a linear classifier a label.

    Binary cross-entropy over all labels; the table of classifiers by row-wise Adagrad, as in all
    of longtail, what is below it by Adam.

    Parameters
    ----------
    epochs : int
        Over the training points.
    learning_rate : float
        Of the tables, of classifiers and word vectors.
    batch_size : int
        Points of a step.
    **kwargs
        Those of `OfArchitecture`.
    """

    stage: ClassVar[str] = "network"  # progress, checkpoints and random numbers know it by this
    as_probability: ClassVar[bool] = True  # what is scored: see `OneVsAllScorer`
    epochs: int = 15
    learning_rate: float = 0.05
    batch_size: int = 256

    def _learn(
        self,
        data: TrainingData,
        held_out: TrainingData,  # noqa: ARG002 - there is nothing to choose
        run: TrainingRun,
    ) -> Scorer:
        """See `LabelEstimator`."""
        used, data = data.of_used_labels()
        schedule = Schedule(epochs=self.epochs, learning_rate=self.learning_rate)
        with run.stage(self.stage):
            encoder, labels = learn_end_to_end(
                self.architecture(),
                data,
                run,
                schedule=schedule,
                batch_size=self.batch_size,
                stage=self.stage,
            )
        return OneVsAllScorer(encoder, labels.with_bias(), used, self.as_probability)


def learn_end_to_end(
    architecture: FeatureArchitecture,
    data: TrainingData,
    run: TrainingRun,
    *,
    schedule: Schedule,
    batch_size: int,
    stage: str,
) -> tuple[Encoder, LabelVectors]:
    """Train features and the classifiers of all labels together.

    Parameters
    ----------
    architecture : FeatureArchitecture
    data : TrainingData
    run : TrainingRun
    schedule : Schedule
    batch_size : int
    stage : str
        What progress, checkpoints and random numbers know this training by.

    Returns
    -------
    encoder : Encoder
    classifiers : LabelVectors

    Examples
    --------
    Points of label i have feature i.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.bag_of_tokens import BagOfTokens
    >>> from longtail.recipes.end_to_end import learn_end_to_end
    >>> from longtail.training.run import TrainingData, TrainingRun
    >>> from longtail.training.schedule import Schedule
    >>> rows, bags = csr_array(np.eye(3, dtype=np.float32)), BagOfTokens(dimension=8)
    >>> data, schedule = TrainingData(rows, rows), Schedule(epochs=20, learning_rate=0.1)
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> settings = {"schedule": schedule, "batch_size": 3, "stage": "network"}
    >>> encoder, labels = learn_end_to_end(bags, data, run, **settings)
    >>> logits = labels.logits(encoder.encode(data.bags()), np.tile(np.arange(3), (3, 1)))
    >>> logits.argmax(axis=1).tolist()
    [0, 1, 2]
    """
    network = architecture.network(data, data.labels, run)
    block = Identity().block(network.dimension, run.torch_device)
    batches = AllLabels(data.labels, batch_size)
    classifiers = ClassifierTraining(schedule=schedule).fit(network, block, batches, run, stage)
    return architecture.frozen(network), classifiers


@dataclass(kw_only=True, eq=False, repr=False)
class KimCNNClassifier(OfKimCNN, EndToEnd):
    """Kim's convolutional network with an output a label.

    Kim, "Convolutional neural networks for sentence classification", EMNLP 2014.

    Parameters
    ----------
    **kwargs
        Those of `OfKimCNN` and `EndToEnd`.

    Examples
    --------
    >>> from longtail.recipes.end_to_end import KimCNNClassifier
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> KimCNNClassifier().fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """


@dataclass(kw_only=True, eq=False, repr=False)
class XMLCNNClassifier(OfXMLCNN, EndToEnd):
    """XML-CNN: convolutions, a bottleneck, and an output a label.

    Liu et al., "Deep learning for extreme multi-label text classification", SIGIR 2017.

    Parameters
    ----------
    **kwargs
        Those of `OfXMLCNN` and `EndToEnd`.

    Examples
    --------
    >>> from longtail.recipes.end_to_end import XMLCNNClassifier
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> XMLCNNClassifier().fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """
