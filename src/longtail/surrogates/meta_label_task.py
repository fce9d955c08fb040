"""Module I: learn features by predicting which clusters a point's labels are in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from longtail.errors import InputError, require_positive
from longtail.surrogates.label_clusters import LabelClusters, meta_labels
from longtail.training.batches import AllLabels
from longtail.training.label_table import LabelTable
from longtail.training.loop import train
from longtail.training.one_vs_all import OneVsAllTask, check_network
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.schedule import Schedule
from longtail.transfer.bounded_residual import BoundedResidual

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from torch import Tensor

    from longtail.features.architecture import FeatureArchitecture
    from longtail.features.encoder import Encoder
    from longtail.training.one_vs_all import FeatureNetwork
    from longtail.training.optimisers import RowOptimiser
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["LabelAssignment", "MetaLabelTask", "classification_task"]


class LabelAssignment(Protocol):
    """Which labels are one meta-label."""

    def assign(
        self, features: csr_array, labels: csr_array, *, seed: int, n_threads: int
    ) -> NDArray[np.int32]:
        """Return the meta-label of each label, int32 (n_labels,), from 0; -1 for none."""
        ...


@dataclass(frozen=True, kw_only=True)
class MetaLabelTask:
    """Surrogate task: full 1-vs-All classification into meta-labels.

    Equation 1 of the DeepXML paper, with biases: ``sum_i sum_k log(1 + exp(-y_ik (w_k . x_i +
    b_k)))`` over all points i and all meta-labels k, y being 1 or -1 and ``x_i = v_i + ReLU(R0 v_i
    + b)``. The architecture, which gives v, is trained together with R0 and the classifiers w. Both
    of these are then thrown away.

    Parameters
    ----------
    clusters : LabelAssignment
        What the meta-labels are.
    schedule : Schedule
    batch_size : int
    residual : BoundedResidual
        R0.
    mean_loss : bool
        Take the mean over meta-labels and the points of a batch, as the published code does, not
        the sum. Then classifiers start from small random values too.
    make_optimiser : callable
        For the classifiers.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.surrogates.label_clusters import LabelClusters
    >>> from longtail.surrogates.meta_label_task import MetaLabelTask
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> task = MetaLabelTask(clusters=LabelClusters(label_correlation=False))
    >>> model = DeepXML(surrogate=task).fit(texts, labels)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    clusters: LabelAssignment = field(default_factory=LabelClusters)
    schedule: Schedule = field(default_factory=lambda: Schedule(epochs=20, learning_rate=0.05))
    batch_size: int = 512
    residual: BoundedResidual = field(default_factory=BoundedResidual)
    mean_loss: bool = False
    make_optimiser: Callable[[Tensor], RowOptimiser] = RowwiseAdagrad

    def learn(
        self, architecture: FeatureArchitecture, data: TrainingData, run: TrainingRun
    ) -> tuple[Encoder, NDArray[np.int32]]:
        """Train the architecture to predict meta-labels; see `Surrogate.learn`."""
        require_positive("batch_size", self.batch_size)
        with run.stage("label clusters"):
            seed = run.seed_for("label clusters")
            assignment = _checked(
                self.clusters.assign(data.features, data.labels, seed=seed, n_threads=run.n_threads)
            )
            targets = meta_labels(data.labels, assignment, int(assignment.max()) + 1)
        with run.stage("module I"):
            network = architecture.network(data, targets, run)
            task = classification_task(
                network,
                targets,
                run,
                residual=self.residual,
                mean_of=self.batch_size if self.mean_loss else None,
                make_optimiser=self.make_optimiser,
            )
            train(task, AllLabels(targets, self.batch_size), self.schedule, run, "module I")
        return architecture.frozen(network), assignment


MOST_PER_LABEL, MANY_META_LABELS = 10, 1_000_000


def _checked(found: Any) -> NDArray[np.int32]:
    """Return what `LabelAssignment.assign` found as an array, or raise InputError."""
    assignment = np.asarray(found)
    if assignment.dtype.kind not in "iu" or (assignment.size and int(assignment.max()) < 0):
        raise InputError(
            "`assign` must return the meta-label of each label as whole numbers from 0, or -1 for "
            f"none, and not -1 for all; got {assignment.dtype} {assignment.shape}."
        )
    most = max(MOST_PER_LABEL * assignment.size, MANY_META_LABELS)
    if assignment.size and not -1 <= int(assignment.min()) <= int(assignment.max()) < most:
        raise InputError(
            f"`assign` returned meta-labels from {assignment.min()} to {assignment.max()}. Number "
            "them from 0, since each takes memory, used or not; -1 is none."
        )
    return assignment.astype(np.int32, copy=False)


def classification_task(
    network: FeatureNetwork,
    targets: csr_array,
    run: TrainingRun,
    *,
    residual: BoundedResidual,
    mean_of: int | None = None,
    make_optimiser: Callable[[Tensor], RowOptimiser] = RowwiseAdagrad,
) -> OneVsAllTask:
    """Put a feature network, R0 and the targets' classifiers together.

    Parameters
    ----------
    network : FeatureNetwork
    targets : csr_array (n_points, n_targets)
    run : TrainingRun
    residual, make_optimiser
        See `MetaLabelTask`.
    mean_of : int or None
        Points of a batch, where the loss is the mean over these and the targets, and classifiers
        start from small random values. None for the sum, and a start from the targets' log-odds.
    """
    n_points, n_targets = targets.shape
    check_network(network)
    table = LabelTable(
        n_targets,
        network.dimension,
        frequencies=targets.sum(axis=0) / n_points if mean_of is None else None,
        make_optimiser=make_optimiser,
        reduction=1.0 if mean_of is None else 1 / (n_targets * mean_of),
        seed=run.seed_for("module I", "classifiers"),
        device=run.torch_device,
    )
    block = residual.block(network.dimension, run.torch_device)
    return OneVsAllTask(network, block, table, block_learning_rate=block.learning_rate)
