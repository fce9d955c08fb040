"""Linear classifiers of labels, trained together with the features that they stand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from longtail.scorers.label_vectors import LabelVectors
from longtail.training.label_table import LabelTable
from longtail.training.loop import train
from longtail.training.one_vs_all import OneVsAllTask
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from longtail.training.batches import LabelledBatches
    from longtail.training.one_vs_all import FeatureNetwork
    from longtail.training.optimisers import RowOptimiser
    from longtail.training.run import TrainingRun
    from longtail.transfer.block import TransferBlock

__all__ = ["ClassifierTraining"]


@dataclass(frozen=True, kw_only=True)
class ClassifierTraining:
    """How one vector a label is trained, whatever labels the points of a batch are scored against.

    Parameters
    ----------
    schedule : Schedule
    random_start : bool
        Start from small random classifiers, as the published code does, not from the labels'
        log-odds.
    make_optimiser : callable
        From a table to its `RowOptimiser`.

    Examples
    --------
    Point i has label i, and feature i.

    >>> import numpy as np
    >>> import torch
    >>> from scipy.sparse import csr_array
    >>> from longtail.classifiers.classifier_training import ClassifierTraining
    >>> from longtail.training.batches import AllLabels
    >>> from longtail.training.one_vs_all import FrozenFeatures
    >>> from longtail.training.run import TrainingRun
    >>> from longtail.training.schedule import Schedule
    >>> from longtail.transfer.plain import Identity
    >>> features, device = np.eye(3, dtype=np.float32), torch.device("cpu")
    >>> network = FrozenFeatures(features, dropout=0.0, device=device)
    >>> block = Identity().block(3, device)
    >>> batches = AllLabels(csr_array(features), batch_size=3)
    >>> training = ClassifierTraining(schedule=Schedule(epochs=10, learning_rate=0.1))
    >>> labels = training.fit(network, block, batches, TrainingRun(seed=0, n_threads=1), "labels")
    >>> (features @ labels.vectors.T).argmax(axis=1).tolist()
    [0, 1, 2]
    """

    schedule: Schedule = field(default_factory=lambda: Schedule(epochs=10, learning_rate=0.05))
    random_start: bool = False
    make_optimiser: Callable[[Tensor], RowOptimiser] = RowwiseAdagrad

    def fit(
        self,
        network: FeatureNetwork,
        block: TransferBlock,
        batches: LabelledBatches,
        run: TrainingRun,
        stage: str,
        start: LabelVectors | None = None,
    ) -> LabelVectors:
        """Train block, classifiers (from `start` on) and, unless it is frozen, network.

        Returns
        -------
        LabelVectors
            The classifiers; block and network have changed in place.
        """
        labels = batches.labels
        table = LabelTable(
            labels.shape[1],
            block.dimension,
            frequencies=None if self.random_start else labels.sum(axis=0) / labels.shape[0],
            make_optimiser=self.make_optimiser,
            seed=run.seed_for(stage, "classifiers"),
            device=run.torch_device,
        )
        if start is not None:
            table.vectors.copy_(torch.tensor(start.vectors))
            table.bias[:, 0].copy_(torch.tensor(start.bias))
        task = OneVsAllTask(network, block, table, block_learning_rate=block.learning_rate)
        train(task, batches, self.schedule, run, stage)
        return LabelVectors(
            table.vectors.cpu().numpy(), np.ascontiguousarray(table.bias.cpu().numpy()[:, 0])
        )
