"""A pretrained transformer, as it is or trained on, that is to match clusters of labels."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from longtail.features.transformer import FrozenTexts, Transformer, TransformerNetwork
from longtail.matching.cluster_vectors import ClusterVectors
from longtail.matching.learnt_matcher import EncodedPoints, LearntMatcher, stopping_by_recall
from longtail.named_parts import joined_parts
from longtail.training.batches import AllLabels
from longtail.training.loop import train

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from torch import Tensor

    from longtail.features.transformer_encoder import TransformerEncoder
    from longtail.training.batches import Batch
    from longtail.training.early_stopping import HeldOut
    from longtail.training.run import TrainingData, TrainingRun
    from longtail.training.schedule import Schedule

__all__ = ["ReadOnce", "TransformerTraining"]


@dataclass(frozen=True, kw_only=True)
class ReadOnce(Transformer):
    """A transformer that, as it is, reads the training points once for several matchers."""

    @classmethod
    def of(cls, transformer: Transformer) -> ReadOnce:
        """Return one with the settings of another."""
        return cls(**{part.name: getattr(transformer, part.name) for part in fields(transformer)})

    def read(self) -> TransformerEncoder:
        """See `Transformer.read`; always the same one."""
        return self._encoder

    def network(
        self,
        data: TrainingData,
        targets: csr_array,
        run: TrainingRun,
        start: TransformerEncoder | None = None,
    ) -> FrozenTexts | TransformerNetwork:
        """See `Transformer.network`; the points must be the same each time."""
        if self.fine_tune:
            return super().network(data, targets, run, start)
        if not self._read:
            self._read.append(super().network(data, targets, run, start))
        return self._read[0]

    @cached_property
    def _encoder(self) -> TransformerEncoder:
        return super().read()

    @cached_property
    def _read(self) -> list[FrozenTexts | TransformerNetwork]:
        return []


@dataclass(frozen=True)
class TransformerTraining:
    """Read the points by a transformer, which is trained on first where it is fine-tuned.

    Then transformer and vectors of the clusters learn together, with the loss of `BagTraining`.

    Parameters
    ----------
    transformer : Transformer
    schedule : Schedule
        Of fine-tuning; its rate is that of the cluster vectors.
    batch_size : int
        Of fine-tuning.
    n_best : int
        Clusters of a held-out point among which its true ones are looked for, by early stopping.
    """

    transformer: Transformer
    schedule: Schedule
    batch_size: int
    n_best: int

    def learn(
        self,
        data: TrainingData,
        targets: csr_array,
        run: TrainingRun,
        held_out: HeldOut | None = None,
    ) -> EncodedPoints:
        """Train; see `BagTraining.learn`. A transformer as it is leaves no vectors of clusters."""
        network = self.transformer.network(data, targets, run)
        trained: tuple[NDArray[np.float32], NDArray[np.float32]] | tuple[None, None] = (None, None)
        if isinstance(network, TransformerNetwork):
            trained = self._fine_tune(network, targets, run, held_out)
        encoder = self.transformer.frozen(network)
        return EncodedPoints(encoder, network.vectors(data), *trained)

    def _fine_tune(
        self,
        network: TransformerNetwork,
        targets: csr_array,
        run: TrainingRun,
        held_out: HeldOut | None,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Train the transformer on, together with vectors of the clusters; return these."""
        task = _FineTuning(network, targets.shape[1], run.torch_device)
        stopping = stopping_by_recall(task.so_far, held_out, self.n_best)
        batches = AllLabels(targets, self.batch_size)
        train(task, batches, self.schedule, run, "matcher", stopping)
        return task.clusters.so_far()


class _FineTuning:
    """One step of a transformer and of the vectors of all clusters."""

    def __init__(self, network: TransformerNetwork, n_clusters: int, device: torch.device) -> None:
        self._network = network
        self.clusters = ClusterVectors(n_clusters, network.dimension, device)

    def step(
        self, batch: Batch, learning_rate: float, share: float, *, measure: bool
    ) -> float | None:
        """See `longtail.training.loop.Task.step`."""
        points = self._network.forward(batch.points)
        loss, gradient = self.clusters.learn(points.detach(), batch, learning_rate)
        torch.autograd.backward(points, gradient)
        self._network.step(learning_rate, share)
        return loss if measure else None

    def so_far(self, data: TrainingData) -> LearntMatcher:
        """Return the matcher as it is now, for other points."""
        points = self._network.read(data.bags())
        return LearntMatcher(self._network.encoder(), *self.clusters.so_far(), points)

    def state(self) -> dict[str, Tensor]:
        """See `longtail.training.loop.Task.state`."""
        parts = {"network": self._network.state(), "clusters": self.clusters.state()}
        return joined_parts(parts, ".")
