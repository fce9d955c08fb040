"""Module I by regression: a projection of the label vector to few numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from longtail.named_parts import joined_parts
from longtail.training.batches import AllLabels
from longtail.training.loop import train
from longtail.training.module_adam import ModuleAdam
from longtail.training.one_vs_all import check_network
from longtail.training.schedule import Schedule
from longtail.training.state import state_of
from longtail.transfer.bounded_residual import BoundedResidual

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from torch import Tensor

    from longtail.features.architecture import FeatureArchitecture
    from longtail.features.encoder import Encoder
    from longtail.training.batches import Batch
    from longtail.training.one_vs_all import FeatureNetwork
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["LowRankProjection"]


@dataclass(frozen=True, kw_only=True)
class LowRankProjection:
    """Surrogate task: regression on ``y^ = P y / |y|``, with a squared loss.

    P is random and normal, which keeps the angles between label vectors (Hsu et al., "Multi-label
    prediction via compressed sensing", 2009). Section 3.1 of the DeepXML paper names it, without a
    figure, for a P of any kind; that label vectors y are scaled to unit length is ours.

    Parameters
    ----------
    dimension : int
        L^, the numbers that stand for a label vector.
    schedule : Schedule
    batch_size : int
    residual : BoundedResidual
        R0.
    head_learning_rate : float
        Of Adam, for the layer from features to the projection.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.surrogates.low_rank import LowRankProjection
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = DeepXML(surrogate=LowRankProjection(dimension=16)).fit(texts, labels)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    dimension: int = 512
    schedule: Schedule = field(default_factory=lambda: Schedule(epochs=20, learning_rate=0.05))
    batch_size: int = 512
    residual: BoundedResidual = field(default_factory=BoundedResidual)
    head_learning_rate: float = 1e-3

    def learn(
        self, architecture: FeatureArchitecture, data: TrainingData, run: TrainingRun
    ) -> tuple[Encoder, NDArray[np.int32]]:
        """Train the architecture; see `Surrogate.learn`. There are no meta-labels."""
        n_labels = data.labels.shape[1]
        with run.stage("module I"):
            network = architecture.network(data, data.labels, run)
            check_network(network)
            task = _RegressionTask(self, network, data.labels, run)
            train(task, AllLabels(data.labels, self.batch_size), self.schedule, run, "module I")
        return architecture.frozen(network), np.full(n_labels, -1, np.int32)


class _RegressionTask:
    """One step: encode, transfer, and move towards the projected label vectors."""

    def __init__(
        self,
        settings: LowRankProjection,
        network: FeatureNetwork,
        labels: csr_array,
        run: TrainingRun,
    ) -> None:
        self._settings = settings
        self._network = network
        self._device = run.torch_device
        random = np.random.default_rng(run.seed_for("projection"))
        projection = random.standard_normal((labels.shape[1], settings.dimension), np.float32)
        lengths = np.sqrt(np.maximum(np.diff(labels.indptr), 1)).astype(np.float32)
        self._targets = (labels @ projection) / lengths[:, None]  # unit label vectors
        torch.manual_seed(run.seed_for("head"))
        self._block = settings.residual.block(network.dimension, run.torch_device)
        self._head = torch.nn.Linear(network.dimension, settings.dimension).to(run.torch_device)
        self._adams = (ModuleAdam(self._block), ModuleAdam(self._head))

    def step(
        self, batch: Batch, learning_rate: float, share: float, *, measure: bool
    ) -> float | None:
        """See `longtail.training.loop.Task.step`."""
        targets = torch.from_numpy(self._targets[batch.points]).to(self._device)
        found = self._head(self._block(self._network.forward(batch.points)))
        loss = 0.5 * (found - targets).square().sum()
        loss.backward()
        self._adams[0].step(self._block.learning_rate * share)
        self._adams[1].step(self._settings.head_learning_rate * share)
        self._network.step(learning_rate, share)
        return float(loss.detach()) / len(targets) if measure else None

    def state(self) -> dict[str, Tensor]:
        """See `longtail.training.loop.Task.state`."""
        parts = {
            "network": state_of(self._network),
            "block": dict(self._block.state_dict()),
            "head": dict(self._head.state_dict()),
            "adam0": self._adams[0].state(),
            "adam1": self._adams[1].state(),
        }
        return joined_parts(parts, ".")
