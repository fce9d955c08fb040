"""What is learnt in matching: an encoder with vectors of clusters, then scores of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.metrics import recall_at_k
from longtail.training.early_stopping import EarlyStopping

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.features.encoder import UnitEncoder
    from longtail.training.early_stopping import HeldOut
    from longtail.training.run import TrainingData

    Floats = NDArray[np.float32]

__all__ = ["EncodedPoints", "LearntMatcher", "stopping_by_recall"]

SCORES_AT_ONCE = 2**23  # of points and clusters


class EncodedPoints(NamedTuple):
    """An encoder that was trained, or came as it is, and what it makes of the training points.

    Attributes
    ----------
    encoder : UnitEncoder
        E.
    points : float32 (n_points, dimension)
        E(x).
    vectors : float32 (n_clusters, dimension) or None
        w, where vectors of the clusters were trained together with the encoder.
    bias : float32 (n_clusters,) or None
        b, of these.
    """

    encoder: UnitEncoder
    points: Floats
    vectors: Floats | None = None
    bias: Floats | None = None


class LearntMatcher(NamedTuple):
    """What training leaves.

    Attributes
    ----------
    encoder : UnitEncoder
        E.
    vectors : float32 (n_clusters, dimension)
        w.
    bias : float32 (n_clusters,)
    points : float32 (n_points, dimension)
        E(x) of the training points, or of those that are asked about.
    tokens : csr_array of float32 (n_clusters, n_tokens) or None
        u, for a matcher that also reads the bag x itself: ``w_k . E(x) + u_k . x + b_k``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.bag_encoder import UnitBagEncoder
    >>> from longtail.matching.learnt_matcher import LearntMatcher
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


def stopping_by_recall(
    so_far: Callable[[TrainingData], LearntMatcher], held_out: HeldOut | None, n_best: int
) -> EarlyStopping | None:
    """Return what stops the training of an encoder by the recall of held-out points' clusters.

    Parameters
    ----------
    so_far : callable
        Returns the matcher as it is now, for some points.
    held_out : HeldOut or None
        None stops nothing.
    n_best : int
        Clusters of a held-out point among which its true ones are looked for.
    """
    if held_out is None:
        return None
    data, clusters = held_out.data, held_out.targets
    return EarlyStopping(
        lambda: so_far(data).recall(data.features, clusters, n_best), held_out.patience
    )
