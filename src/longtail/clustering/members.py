"""Which rows each cluster has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["members_of"]


def members_of(clusters: NDArray[np.integer[Any]]) -> list[NDArray[np.int64]]:
    """Return the rows of each cluster, ascending; none where a cluster is empty.

    Parameters
    ----------
    clusters : int (n_rows,)
        The cluster of each row, from 0.

    Returns
    -------
    list of int64 arrays
        Up to the last cluster that has any rows.

    Examples
    --------
    No row is of cluster 2.

    >>> import numpy as np
    >>> from longtail.clustering.members import members_of
    >>> [rows.tolist() for rows in members_of(np.array([1, 0, 1, 3]))]
    [[1], [0, 2], [], [3]]
    """
    order = np.argsort(clusters, kind="stable")
    return np.split(order, np.cumsum(np.bincount(clusters))[:-1])
