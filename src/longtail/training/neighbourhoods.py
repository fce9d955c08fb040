"""Groups of similar points, which share a batch and so their negatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longtail.clustering.balanced import balanced_clusters, n_halvings
from longtail.clustering.members import members_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]

__all__ = ["like_points", "neighbourhoods", "points_of_clusters"]

# Of mean cosine in an iteration of clustering: to go on for less takes as long again, and batches
# need points that are alike, not the most alike there are.
LEAST_GAIN = 1e-3


def neighbourhoods(
    features: NDArray[np.float32], size: int, *, seed: int, n_threads: int
) -> list[Ids]:
    """Cut points into groups of about `size` similar ones.

    Parameters
    ----------
    features : float32 (n_points, dimension)
    size : int
        Most points of a group.
    seed, n_threads : int

    Returns
    -------
    list of int64 arrays
        Each point is in one of them.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.neighbourhoods import neighbourhoods
    >>> features = np.array([[1, 0], [0, 1], [0.9, 0.1], [0.1, 0.9]], np.float32)
    >>> near = neighbourhoods(features, 2, seed=0, n_threads=1)
    >>> sorted(points.tolist() for points in near)
    [[0, 2], [1, 3]]
    """
    return points_of_clusters(like_points(features, size, seed=seed, n_threads=n_threads))


def like_points(
    features: NDArray[np.float32], size: int, *, seed: int, n_threads: int
) -> NDArray[np.int32]:
    """Return the cluster of each point, int32 (n_points,); see `neighbourhoods`.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.neighbourhoods import like_points
    >>> features = np.array([[1, 0], [0, 1], [0.9, 0.1], [0.1, 0.9]], np.float32)
    >>> clusters = like_points(features, 2, seed=0, n_threads=1)
    >>> (clusters == clusters[0]).tolist()
    [True, False, True, False]
    """
    n_clusters = 2 ** n_halvings(len(features), size)
    return balanced_clusters(
        features, n_clusters, seed=seed, n_threads=n_threads, tolerance=LEAST_GAIN
    )


def points_of_clusters(clusters: NDArray[np.integer[Any]]) -> list[Ids]:
    """Return the points of each cluster that has any, ascending.

    Examples
    --------
    No point is of cluster 2.

    >>> import numpy as np
    >>> from longtail.training.neighbourhoods import points_of_clusters
    >>> [points.tolist() for points in points_of_clusters(np.array([1, 0, 1, 3]))]
    [[1], [0, 2], [3]]
    """
    return [points for points in members_of(clusters) if len(points)]
