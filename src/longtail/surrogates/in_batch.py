"""Module I on the labels themselves, told apart from those of the other points of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from longtail.surrogates.meta_label_task import classification_task
from longtail.training.batches import SharedPool
from longtail.training.loop import train
from longtail.training.schedule import Schedule
from longtail.transfer.bounded_residual import BoundedResidual

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.features.architecture import FeatureArchitecture
    from longtail.features.encoder import Encoder
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["InBatchTask"]


@dataclass(frozen=True, kw_only=True)
class InBatchTask:
    """Surrogate task: the labels of a point against the labels of the others in its batch.

    Section 3.1 of the DeepXML paper names it, "mini-batch negative sampling". The labels are
    themselves the targets. A point's negatives are not searched for: they are the labels of the
    other points of its batch, and the random ones that fill the pool up to a multiple of 64. Most
    of them are easy to tell apart.

    Parameters
    ----------
    schedule : Schedule
    batch_size : int
        Also decides how many negatives there are.
    residual : BoundedResidual
        R0.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.surrogates.in_batch import InBatchTask
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = DeepXML(surrogate=InBatchTask()).fit(texts, labels)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    schedule: Schedule = field(default_factory=lambda: Schedule(epochs=20, learning_rate=0.05))
    batch_size: int = 512
    residual: BoundedResidual = field(default_factory=BoundedResidual)

    def learn(
        self, architecture: FeatureArchitecture, data: TrainingData, run: TrainingRun
    ) -> tuple[Encoder, NDArray[np.int32]]:
        """Train the architecture; see `Surrogate.learn`. There are no meta-labels."""
        with run.stage("module I"):
            network = architecture.network(data, data.labels, run)
            batches = SharedPool.in_batch(data.labels, batch_size=self.batch_size)
            task = classification_task(network, data.labels, run, residual=self.residual)
            train(task, batches, self.schedule, run, "module I")
        return architecture.frozen(network), np.full(data.labels.shape[1], -1, np.int32)
