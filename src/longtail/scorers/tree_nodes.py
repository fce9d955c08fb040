"""The nodes below some nodes of a tree, whose levels are numbered through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["children_of"]


def children_of(
    nodes: NDArray[np.int32], child_starts: NDArray[np.int32], *, same_width: bool = True
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the children of some nodes, and the place of the parent of each.

    Parameters
    ----------
    nodes : int32 (n, size)
        Padded with -1.
    child_starts : int32 (n_nodes + 1,)
        The children of a node are numbered from its entry to that of the next.
    same_width : bool
        Leave each node as many columns as any of the tree has children, so that all batches have
        one shape: how products are rounded depends on it. Otherwise as many as any of those given
        has.

    Returns
    -------
    children : int32 (n, size * width)
        Padded with -1 behind the children of each node.
    places : int64 (size * width,)
        From 0 to size - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.tree_nodes import children_of
    >>> nodes, places = children_of(np.array([[1, -1]], np.int32), np.array([0, 1, 3], np.int32))
    >>> nodes.tolist(), places.tolist()
    ([[1, 2, -1, -1]], [0, 0, 1, 1])
    """
    first = np.where(nodes >= 0, child_starts[nodes], 0)
    after = np.where(nodes >= 0, child_starts[nodes + 1], 0)
    n_children = np.diff(child_starts) if same_width else after - first
    width = int(n_children.max(initial=0))
    children = first[:, :, np.newaxis] + np.arange(width)
    children = np.where(children < after[:, :, np.newaxis], children, -1)
    places = np.repeat(np.arange(nodes.shape[1]), width)
    return children.reshape(len(nodes), len(places)).astype(np.int32), places
