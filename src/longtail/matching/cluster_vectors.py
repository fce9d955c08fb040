"""Linear classifiers of clusters while they are trained: the squared hinge against all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.vectors_with_bias import VectorsWithBias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from longtail.training.batches import Batch

__all__ = ["ClusterVectors", "squared_hinge"]


class ClusterVectors(VectorsWithBias[RowwiseAdagrad]):
    """One linear classifier a cluster, ``w_k . E(x) + b_k``, all of which learn in every step.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from longtail.matching.cluster_vectors import ClusterVectors
    >>> from longtail.training.batches import Batch
    >>> clusters = ClusterVectors(2, 3, torch.device("cpu"))
    >>> batch = Batch(np.array([0]), None, np.array([0]), np.array([1]))  # it is in cluster 1
    >>> losses = [clusters.learn(torch.ones(1, 3), batch, 0.1)[0] for _ in range(3)]
    >>> losses[0] > losses[1] > losses[2]
    True
    """

    def __init__(self, n_clusters: int, dimension: int, device: torch.device) -> None:
        vectors = torch.zeros(n_clusters, dimension, device=device)
        # A point is in few clusters: from -1 on, the first steps learn which they are.
        bias = torch.full((n_clusters, 1), -1.0, device=device)
        super().__init__(vectors, bias, RowwiseAdagrad)
        self._every = torch.arange(n_clusters, device=device)

    def learn(self, points: Tensor, batch: Batch, learning_rate: float) -> tuple[float, Tensor]:
        """Step all clusters.

        Parameters
        ----------
        points : Tensor (n, dimension)
            Their vectors, in the dtype of products.
        batch : Batch
            Without a pool.
        learning_rate : float

        Returns
        -------
        loss : float
            Mean over points and clusters; see `squared_hinge`.
        gradient : Tensor (n, dimension)
            Of the sum, with respect to `points`, of their dtype.
        """
        w = self.vectors.to(points.dtype)
        scores = (points @ w.T).float().add_(self.bias[:, 0])  # (n, n_clusters)
        loss, slope = squared_hinge(scores, batch)
        narrow = slope.to(points.dtype)
        gradient = narrow @ w
        self.step(self._every, (narrow.T @ points).float(), slope.sum(dim=0), learning_rate)
        return loss, gradient

    def so_far(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the vectors (n_clusters, dimension) and their bias (n_clusters,) as they are."""
        return self.vectors.cpu().numpy(), self.bias[:, 0].cpu().numpy()


def squared_hinge(scores: Tensor, batch: Batch) -> tuple[float, Tensor]:
    """Return the loss, a mean over points and clusters, and the slope of the sum over both.

    The factor 1 / (N K) between them changes no step of Adagrad. The scores are overwritten.

    Examples
    --------
    The point is in cluster 0, which should score 1 or more, and all others -1 or less.

    >>> import numpy as np
    >>> import torch
    >>> from longtail.matching.cluster_vectors import squared_hinge
    >>> from longtail.training.batches import Batch
    >>> batch = Batch(np.array([0]), None, np.array([0]), np.array([0]))
    >>> loss, slope = squared_hinge(torch.tensor([[0.5, -0.5, -2.0]]), batch)
    >>> round(loss, 3), slope.tolist()
    (0.167, [[-1.0, 1.0, 0.0]])
    """
    rows = torch.from_numpy(batch.positive_rows).to(scores.device)
    columns = torch.from_numpy(batch.positive_columns).to(scores.device)
    of_true = (1 - scores[rows, columns]).clamp_min_(0)
    gaps = scores.add_(1).clamp_min_(0)
    gaps[rows, columns] = -of_true
    loss = float(gaps.square().sum()) / gaps.numel()
    return loss, gaps.mul_(2)
