"""X-Transformer's neural matcher: which clusters of labels a text is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.data.bags import Bags
from longtail.features.bag_encoder import UnitBagEncoder
from longtail.features.token_table import TokenTable
from longtail.features.token_tensors import TokenTensors
from longtail.matching.cluster_vectors import ClusterVectors
from longtail.metrics import recall_at_k
from longtail.named_parts import joined_parts
from longtail.training.batches import AllLabels
from longtail.training.chosen_bags import ChosenBags
from longtail.training.dropped_rows import dropped_rows
from longtail.training.early_stopping import EarlyStopping
from longtail.training.label_table import product_dtype
from longtail.training.loop import train

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.features.encoder import UnitEncoder
    from longtail.training.batches import Batch
    from longtail.training.early_stopping import HeldOut
    from longtail.training.run import TrainingRun
    from longtail.training.schedule import Schedule
    from longtail.training.state import State

    Floats = NDArray[np.float32]

__all__ = ["LearntMatcher", "MatcherTraining"]

SCORES_AT_ONCE = 2**23  # of points and clusters


class LearntMatcher(NamedTuple):
    """What training leaves.

    Attributes
    ----------
    encoder : UnitEncoder
        phi.
    vectors : float32 (n_clusters, dimension)
        w.
    bias : float32 (n_clusters,)
    points : float32 (n_points, dimension)
        phi of the training points, or of those that are asked about.
    tokens : csr_array of float32 (n_clusters, n_tokens) or None
        u, for a matcher that also reads the bag x itself: ``w_k . phi(x) + u_k . x + b_k``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.bag_encoder import UnitBagEncoder
    >>> from longtail.matching.cluster_matcher import LearntMatcher
    >>> bags, tokens = csr_array([[1.0, 0.0], [0.0, 1.0]]), np.eye(2, dtype=np.float32)
    >>> bias, encoder = np.zeros(2, np.float32), UnitBagEncoder(tokens)
    >>> matcher = LearntMatcher(encoder, tokens[::-1], bias, points=tokens)
    >>> matcher.best_clusters(bags, 1).tolist()
    [[1], [0]]
    >>> matcher.recall(bags, csr_array([[0, 1], [0, 1]]), n_best=1)
    0.5
    """

    encoder: UnitEncoder
    vectors: Floats
    bias: Floats
    points: Floats
    tokens: csr_array | None = None

    def best_clusters(self, features: csr_array, n_best: int) -> NDArray[np.int64]:
        """Return the clusters with the greatest scores for `points`, int64 (n, n_best)."""
        n_best = min(n_best, len(self.bias))
        best = np.empty((len(self.points), n_best), np.int64)
        n_at_once = max(SCORES_AT_ONCE // max(len(self.bias), 1), 1)
        for start in range(0, len(self.points), n_at_once):
            some = slice(start, start + n_at_once)
            scores = self.points[some] @ self.vectors.T + self.bias
            if self.tokens is not None:
                scores += (features[some] @ self.tokens.T).toarray()
            np.negative(scores, out=scores)
            best[some] = np.argpartition(scores, n_best - 1, axis=1)[:, :n_best]
        return best

    def recall(self, features: csr_array, targets: csr_array, n_best: int) -> float:
        """Return the share of a point's clusters among its `n_best`, mean over `points`.

        At most half of all clusters are looked at: among all of them, every true one is found.
        """
        n_best = min(n_best, max(len(self.bias) // 2, 1))
        return recall_at_k(self.best_clusters(features, n_best), targets, n_best)


@dataclass(frozen=True, kw_only=True)
class MatcherTraining:
    """Learn an encoder and a linear classifier a cluster with the squared hinge loss.

    The loss is ``1/(N K) sum_ik max(0, 1 - m_ik g(x_i, k))^2`` with ``g = w_k . phi(x) + b_k`` and
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
    >>> from longtail.matching.cluster_matcher import MatcherTraining
    >>> from longtail.training.run import TrainingRun
    >>> from longtail.training.schedule import Schedule
    >>> schedule = Schedule(epochs=10, learning_rate=0.5)
    >>> sizes = {"dimension": 8, "batch_size": 2, "dropout": 0.0, "n_best": 1}
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> points, clusters = csr_array([[1.0, 0.0], [0.0, 1.0]]), csr_array([[0.0, 1.0], [1.0, 0.0]])
    >>> matcher = MatcherTraining(schedule=schedule, **sizes).learn(points, clusters, run)
    >>> matcher.best_clusters(points, 1).tolist()
    [[1], [0]]
    """

    dimension: int
    schedule: Schedule
    batch_size: int
    dropout: float
    n_best: int

    def learn(
        self,
        features: csr_array,
        targets: csr_array,
        run: TrainingRun,
        held_out: HeldOut | None = None,
    ) -> LearntMatcher:
        """Train.

        Parameters
        ----------
        features : csr_array (n_points, n_tokens)
        targets : csr_array (n_points, n_clusters)
        run : TrainingRun
        held_out : HeldOut or None
            Stop by the recall of their clusters.
        """
        task = _MatcherTask(self, features, targets.shape[1], run)
        stopping = None
        if held_out is not None:
            points, clusters = held_out.data.features, held_out.targets
            stopping = EarlyStopping(
                lambda: task.so_far(points, run.n_threads).recall(points, clusters, self.n_best),
                held_out.patience,
            )
        batches = AllLabels(targets, self.batch_size)
        train(task, batches, self.schedule, run, "matcher", stopping)
        return task.learnt(run.n_threads)


class _MatcherTask:
    """One step of the matcher against all clusters."""

    def __init__(
        self, settings: MatcherTraining, features: csr_array, n_clusters: int, run: TrainingRun
    ) -> None:
        self._bags = Bags.of(features)
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

    def learnt(self, n_threads: int) -> LearntMatcher:
        """Return what was learnt."""
        return self._matcher(self._bags, n_threads)

    def so_far(self, features: csr_array, n_threads: int) -> LearntMatcher:
        """Return the matcher as it is now, for other points."""
        return self._matcher(Bags.of(features), n_threads)

    def _matcher(self, bags: Bags, n_threads: int) -> LearntMatcher:
        """Return the matcher as it is now, with phi of some points."""
        encoder = UnitBagEncoder(self._tokens.table.vectors())
        points = encoder.encode(bags, n_threads)
        return LearntMatcher(encoder, *self._clusters.so_far(), points)
