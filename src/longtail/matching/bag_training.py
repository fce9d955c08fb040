"""A bag of token vectors while it is trained to match clusters of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.data.bags import Bags
from longtail.features.bag_encoder import UnitBagEncoder
from longtail.features.token_table import TokenTable
from longtail.features.token_tensors import TokenTensors
from longtail.matching.cluster_vectors import ClusterVectors
from longtail.matching.learnt_matcher import EncodedPoints, LearntMatcher, stopping_by_recall
from longtail.named_parts import joined_parts
from longtail.training.batches import AllLabels
from longtail.training.chosen_bags import ChosenBags
from longtail.training.dropped_rows import dropped_rows
from longtail.training.label_table import product_dtype
from longtail.training.loop import train

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.batches import Batch
    from longtail.training.early_stopping import HeldOut
    from longtail.training.run import TrainingData, TrainingRun
    from longtail.training.schedule import Schedule
    from longtail.training.state import State

    Floats = NDArray[np.float32]

__all__ = ["BagTraining"]


@dataclass(frozen=True, kw_only=True)
class BagTraining:
    """Learn an encoder and a linear classifier a cluster with the squared hinge loss.

    The loss is ``1/(N K) sum_ik max(0, 1 - m_ik g(x_i, k))^2`` with ``g = w_k . E(x) + b_k`` and
    m = 1 where a point has a label of the cluster, else -1 (Chang et al., "Taming pretrained
    transformers for extreme multi-label text classification", KDD 2020, section 3.2).

    Parameters
    ----------
    dimension : int
    schedule : Schedule
    batch_size : int
    dropout : float
        Of the sums of token vectors.
    n_best : int
        Clusters of a held-out point among which its true ones are looked for, by early stopping.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.matching.bag_training import BagTraining
    >>> from longtail.matching.cluster_scores import NeuralMatcher
    >>> from longtail.training.run import TrainingData, TrainingRun
    >>> from longtail.training.schedule import Schedule
    >>> schedule = Schedule(epochs=10, learning_rate=0.5)
    >>> sizes = {"dimension": 8, "batch_size": 2, "dropout": 0.0, "n_best": 1}
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> points, clusters = csr_array([[1.0, 0.0], [0.0, 1.0]]), csr_array([[0.0, 1.0], [1.0, 0.0]])
    >>> data = TrainingData(points, clusters)
    >>> encoded = BagTraining(schedule=schedule, **sizes).learn(data, clusters, run)
    >>> NeuralMatcher().match(encoded, data, clusters, run).best_clusters(points, 1).tolist()
    [[1], [0]]
    """

    dimension: int
    schedule: Schedule
    batch_size: int
    dropout: float
    n_best: int

    def learn(
        self,
        data: TrainingData,
        targets: csr_array,
        run: TrainingRun,
        held_out: HeldOut | None = None,
    ) -> EncodedPoints:
        """Train.

        Parameters
        ----------
        data : TrainingData
        targets : csr_array (n_points, n_clusters)
        run : TrainingRun
        held_out : HeldOut or None
            Stop by the recall of their clusters.

        Returns
        -------
        EncodedPoints
            With vectors of the clusters.
        """
        task = _BagTask(self, data.features, targets.shape[1], run)
        stopping = stopping_by_recall(task.so_far, held_out, self.n_best)
        batches = AllLabels(targets, self.batch_size)
        train(task, batches, self.schedule, run, "matcher", stopping)
        return task.learnt()


class _BagTask:
    """One step of the matcher against all clusters."""

    def __init__(
        self, settings: BagTraining, features: csr_array, n_clusters: int, run: TrainingRun
    ) -> None:
        self._bags, self._n_threads = Bags.of(features), run.n_threads
        self._dropout = settings.dropout
        self._dtype = product_dtype(run.torch_device)
        table = TokenTable(
            features.shape[1],
            settings.dimension,
            seed=run.seed_for("token vectors"),
            n_threads=run.n_threads,
        )
        self._tokens = TokenTensors(table, run.torch_device)
        self._clusters = ClusterVectors(n_clusters, settings.dimension, run.torch_device)

    def step(
        self,
        batch: Batch,
        learning_rate: float,
        share: float,  # noqa: ARG002 - the loop tells every task
        *,
        measure: bool,
    ) -> float | None:
        """See `longtail.training.loop.Task.step`."""
        sums = self._tokens.sums(ChosenBags.of(self._bags, batch.points))
        points = dropped_rows(sums, self._dropout, self._dtype)
        loss, gradient = self._clusters.learn(points.unit, batch, learning_rate)
        self._tokens.step(points.backward(gradient, 1.0), learning_rate)
        return loss if measure else None

    def state(self) -> State:
        """See `longtail.training.loop.Task.state`."""
        parts: dict[str, State] = {
            "tokens": self._tokens.state(),
            "clusters": self._clusters.state(),
        }
        return joined_parts(parts, ".")

    def learnt(self) -> EncodedPoints:
        """Return what was learnt."""
        encoder, points = self._encoded(self._bags)
        return EncodedPoints(encoder, points, *self._clusters.so_far())

    def so_far(self, data: TrainingData) -> LearntMatcher:
        """Return the matcher as it is now, for other points."""
        encoder, points = self._encoded(Bags.of(data.features))
        return LearntMatcher(encoder, *self._clusters.so_far(), points)

    def _encoded(self, bags: Bags) -> tuple[UnitBagEncoder, Floats]:
        """Return the encoder as it is now, and E(x) of some points."""
        encoder = UnitBagEncoder(self._tokens.table.vectors())
        return encoder, encoder.encode(bags, self._n_threads)
