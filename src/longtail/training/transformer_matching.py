"""X-Transformer's matcher around a pretrained transformer."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.sparse import csr_array

from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.features.transformer import FrozenTexts, Transformer, TransformerNetwork
from longtail.named_parts import joined_parts
from longtail.scorers.joined_features import HALF_LENGTH, JoinedFeatures
from longtail.training.batches import AllLabels
from longtail.training.cluster_matcher import LearntMatcher, squared_hinge
from longtail.training.early_stopping import EarlyStopping
from longtail.training.loop import train
from longtail.training.optimisers import RowwiseAdagrad

if TYPE_CHECKING:
    from torch import Tensor

    from longtail.features.transformer_encoder import TransformerEncoder
    from longtail.training.batches import Batch
    from longtail.training.early_stopping import HeldOut
    from longtail.training.run import TrainingData, TrainingRun
    from longtail.training.schedule import Schedule

__all__ = ["ReadOnce", "TransformerMatching"]


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
class TransformerMatching:
    """Match clusters by a transformer's vector joined with TF-IDF.

    Where it is fine-tuned, transformer and cluster vectors first learn together, with the loss of
    `MatcherTraining`. Then, as a frozen encoder needs, and as XR-Transformer does (Zhang et al.,
    "Fast multi-resolution transformer fine-tuning", NeurIPS 2021, section 3), a linear machine a
    cluster, with the same squared hinge, is solved on TF-IDF joined with the vectors.

    Parameters
    ----------
    transformer : Transformer
    schedule : Schedule
        Of fine-tuning; its rate is that of the cluster vectors.
    batch_size : int
        Of fine-tuning.
    n_best : int
        Clusters of a held-out point among which its true ones are looked for, by early stopping.
    head : SparseOneVsRest
    """

    transformer: Transformer
    schedule: Schedule
    batch_size: int
    n_best: int
    head: SparseOneVsRest = field(default_factory=lambda: SparseOneVsRest(prune=0.02))

    def learn(
        self,
        data: TrainingData,
        targets: csr_array,
        run: TrainingRun,
        held_out: HeldOut | None = None,
    ) -> LearntMatcher:
        """Train.

        Parameters
        ----------
        data : TrainingData
            With texts.
        targets : csr_array (n_points, n_clusters)
        run : TrainingRun
        held_out : HeldOut or None
            Stop fine-tuning by the recall of their clusters; a frozen transformer has nothing to
            stop.

        Returns
        -------
        LearntMatcher
        """
        network = self.transformer.network(data, targets, run)
        if isinstance(network, TransformerNetwork):
            self._fine_tune(network, targets, run, held_out)
        encoder = self.transformer.frozen(network)
        points = network.vectors(data, run.n_threads)
        bags, join = data.bags(), JoinedFeatures(encoder, data.features.shape[1])
        n_points, n_clusters = targets.shape
        machines = self.head.learn_among(
            join.joined(bags, points).matrix(join.n_features),
            targets,
            csr_array(np.ones((1, n_points), np.float32)),
            np.zeros(n_clusters, np.int32),
            seed=run.seed_for("matcher"),
            n_threads=run.n_threads,
        )
        weights = csr_array(
            (machines.weights, machines.features, machines.starts), (n_clusters, join.n_features)
        )
        weights = weights * HALF_LENGTH
        tokens, vectors = weights[:, : join.n_tokens], weights[:, join.n_tokens :].toarray()
        return LearntMatcher(encoder, vectors, machines.bias, points, tokens)

    def _fine_tune(
        self,
        network: TransformerNetwork,
        targets: csr_array,
        run: TrainingRun,
        held_out: HeldOut | None,
    ) -> None:
        """Train the transformer on, together with vectors of the clusters."""
        task = _FineTuning(network, targets.shape[1], run.device)
        stopping = None
        if held_out is not None:
            data, clusters = held_out.data, held_out.targets
            stopping = EarlyStopping(
                lambda: task.so_far(data).recall(data.features, clusters, self.n_best),
                held_out.patience,
            )
        batches = AllLabels(targets, self.batch_size)
        train(task, batches, self.schedule, run, "matcher", stopping)


class _FineTuning:
    """One step of a transformer and of the vectors of all clusters."""

    def __init__(self, network: TransformerNetwork, n_clusters: int, device: torch.device) -> None:
        self._network = network
        self._vectors = torch.zeros(n_clusters, network.dimension, device=device)
        self._bias = torch.full((n_clusters, 1), -1.0, device=device)
        self._optimisers = (RowwiseAdagrad(self._vectors), RowwiseAdagrad(self._bias))
        self._every = torch.arange(n_clusters, device=device)

    def step(
        self, batch: Batch, learning_rate: float, share: float, *, measure: bool
    ) -> float | None:
        """See `longtail.training.loop.Task.step`."""
        points = self._network.forward(batch.points)
        x = points.detach()
        loss, slope = squared_hinge((x @ self._vectors.T).add_(self._bias[:, 0]), batch)
        torch.autograd.backward(points, slope @ self._vectors)
        self._network.step(learning_rate, share)
        vectors, bias = self._optimisers
        vectors.step(self._vectors, self._every, slope.T @ x, learning_rate)
        bias.step(self._bias, self._every, slope.sum(dim=0)[:, None], learning_rate)
        return loss if measure else None

    def so_far(self, data: TrainingData) -> LearntMatcher:
        """Return the matcher as it is now, for other points."""
        vectors, bias = self._vectors.cpu().numpy(), self._bias[:, 0].cpu().numpy()
        points = self._network.read(data.bags())
        return LearntMatcher(self._network.encoder(), vectors, bias, points)

    def state(self) -> dict[str, Tensor]:
        """See `longtail.training.loop.Task.state`."""
        parts = {"network": self._network.state()}
        for name, optimiser in zip(("vectors", "bias"), self._optimisers, strict=True):
            parts[name] = optimiser.state()
        return {"vectors": self._vectors, "bias": self._bias, **joined_parts(parts, ".")}
