"""Full one-versus-all over learnt embeddings: every point against every label, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.classifiers.shortlisted import ShortlistTraining
from longtail.estimators.estimator import LabelEstimator
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.scorers.dense_one_vs_all import DenseOneVsAllScorer
from longtail.training.batches import AllLabels
from longtail.training.schedule import Schedule
from longtail.transfer.plain import Identity

if TYPE_CHECKING:
    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["OneVsAll"]


@dataclass(kw_only=True, eq=False, repr=False)
class OneVsAll(LabelEstimator):
    """Token vectors and one linear classifier a label, trained together against all labels.

    The simple way, which is among the most accurate where it can be afforded: no meta-labels, no
    shortlists, no search (after Jain et al., "Renee: End-to-end training of extreme classification
    models", MLSys 2023, with a bag of tokens in place of a transformer). For some ten thousand
    labels on a CPU, and for more with ``device="cuda"``.

    Parameters
    ----------
    dimension : int
        Length of token and label vectors.
    epochs : int
        Over the training points.
    learning_rate : float
        Of token and label vectors, at the first step.
    batch_size : int
        Points of a step.
    dropout : float
        Of the embeddings, in training.
    **kwargs
        Those of `LabelEstimator`.

    Examples
    --------
    >>> from longtail.recipes.one_vs_all import OneVsAll
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = OneVsAll().fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    held_out: float = 0.02  # for the calibration alone
    dimension: int = 512
    epochs: int = 60
    learning_rate: float = 0.03
    batch_size: int = 256
    dropout: float = 0.5

    def _learn(
        self,
        data: TrainingData,
        held_out: TrainingData,  # noqa: ARG002 - there is nothing to choose
        run: TrainingRun,
    ) -> Scorer:
        """See `LabelEstimator`."""
        used, data = data.of_used_labels()
        architecture = BagOfTokens(dimension=self.dimension, dropout=self.dropout)
        network = architecture.network(data, data.labels, run)
        schedule = Schedule(epochs=self.epochs, learning_rate=self.learning_rate)
        training = ShortlistTraining(schedule=schedule)
        batches = AllLabels(data.labels, self.batch_size)
        with run.stage("one versus all"):
            block = Identity().block(self.dimension, run.device)
            labels = training.fit(network, block, batches, run, "one versus all")
        return DenseOneVsAllScorer(
            encoder=architecture.frozen(network), classifiers=labels.with_bias(), labels=used
        )
