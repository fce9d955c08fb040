"""Trees of labels: the probabilistic label trees of Parabel and Bonsai, before any is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.clustering.balanced import balanced_clusters, n_halvings
from longtail.clustering.members import members_of
from longtail.clustering.sparse_k_means import sparse_k_means
from longtail.errors import require_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.rows import Rows

__all__ = ["LabelTree", "balanced_tree", "k_means_tree"]


@dataclass(frozen=True)
class LabelTree:
    """A tree whose leaves, all at the same depth, are sets of labels.

    Parameters
    ----------
    nodes : int32 (depth, n_labels)
        The node above each label, numbered from 0 in each level: the root, which is all zeros,
        comes first and the leaves come last. Children of a node have consecutive numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.surrogates.label_tree import LabelTree
    >>> tree = LabelTree.of_paths(np.array([[0, 0, 0, 0], [7, 7, 2, 2], [1, 2, 3, 3]]))
    >>> tree.nodes.tolist()
    [[0, 0, 0, 0], [1, 1, 0, 0], [1, 2, 0, 0]]
    >>> tree.parents(2).tolist()
    [0, 1, 1]
    """

    nodes: NDArray[np.int32]

    @classmethod
    def of_paths(cls, paths: NDArray[np.integer]) -> LabelTree:
        """Make a tree whose nodes are the labels with the same numbers in all rows so far."""
        nodes = np.zeros(paths.shape, np.int32)
        for level in range(1, len(paths)):
            pairs = np.stack([nodes[level - 1], paths[level]])
            nodes[level] = np.unique(pairs, axis=1, return_inverse=True)[1].ravel()
        return cls(nodes)

    @property
    def depth(self) -> int:
        """Number of levels above the labels."""
        return len(self.nodes)

    def n_nodes(self, level: int) -> int:
        """Return the number of nodes of a level; below the leaves come the labels."""
        if level == self.depth:
            return len(self.nodes[0])
        return 1 + int(self.nodes[level].max(initial=0))

    def parents(self, level: int) -> NDArray[np.int32]:
        """Return the node, one level up, above each node of a level, or above each label."""
        if level == self.depth:
            leaves: NDArray[np.int32] = self.nodes[-1]
            return leaves
        parents = np.zeros(self.n_nodes(level), np.int32)
        parents[self.nodes[level]] = self.nodes[level - 1]
        return parents

    def in_leaf_order(self) -> tuple[LabelTree, NDArray[np.int64]]:
        """Return the tree of labels in the order of their leaves, and that order of the labels.

        So labels of a leaf are neighbours, as children of a node are.
        """
        order = np.argsort(self.nodes[-1], kind="stable")
        return LabelTree(self.nodes[:, order]), order

    def child_starts(self) -> NDArray[np.int32]:
        """Return where the children of each node begin, all nodes numbered from the root on.

        The labels come last, and must already be in the order of their leaves: `in_leaf_order`.
        """
        n_children = [self._n_children(level) for level in range(self.depth)]
        return np.cumsum(np.concatenate([[1], *n_children])).astype(np.int32)

    def child_starts_of(self, level: int) -> NDArray[np.int32]:
        """Return the same for the nodes of one level alone, whose children count from 0."""
        return np.cumsum(np.concatenate([[0], self._n_children(level)])).astype(np.int32)

    def _n_children(self, level: int) -> NDArray[np.int64]:
        """Return how many children each node of a level has."""
        return np.bincount(self.parents(level + 1), minlength=self.n_nodes(level))

    def nodes_of_labels(self, level: int) -> NDArray[np.int32]:
        """Return the node of a level above each label; below the leaves, each label itself."""
        if level == self.depth:
            return np.arange(len(self.nodes[0]), dtype=np.int32)
        nodes: NDArray[np.int32] = self.nodes[level]
        return nodes


def balanced_tree(centroids: Rows, *, leaf_size: int, seed: int, n_threads: int) -> LabelTree:
    """Halve the labels by balanced 2-means until a leaf has at most `leaf_size` of them.

    Prabhu et al., "Parabel: Partitioned label trees for extreme classification with application
    to dynamic search advertising", WWW 2018, section 4.1.

    Parameters
    ----------
    centroids : csr_array or ndarray of float32 (n_labels, n_features)
    leaf_size : int
    seed, n_threads : int

    Raises
    ------
    InputError
        If `leaf_size` is below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.surrogates.label_tree import balanced_tree
    >>> centroids = csr_array(np.repeat(np.eye(2, dtype=np.float32), 3, axis=0))
    >>> tree = balanced_tree(centroids, leaf_size=3, seed=0, n_threads=1)
    >>> np.ptp(tree.nodes[-1].reshape(2, 3), axis=1).tolist()
    [0, 0]
    """
    require_positive("leaf_size", leaf_size)
    depth = n_halvings(centroids.shape[0], leaf_size)
    leaves = balanced_clusters(centroids, 2**depth, seed=seed, n_threads=n_threads)
    return LabelTree.of_paths(leaves >> np.arange(depth, -1, -1)[:, np.newaxis])


def k_means_tree(
    centroids: csr_array,
    *,
    n_children: int,
    leaf_size: int,
    depth: int,
    seed: int,
    n_threads: int,
) -> LabelTree:
    """Part the labels by k-means, without balance, until a leaf has few of them.

    Khandagale, Xiao and Babbar, "Bonsai: diverse and shallow trees for extreme multi-label
    classification", Machine Learning 2020, section 3.2: with many children a node, few levels.

    Parameters
    ----------
    centroids : csr_array of float32 (n_labels, n_features)
        Unit rows.
    n_children : int
        Most children of a node; there are fewer where a cluster ran empty.
    leaf_size : int
        A node with so few labels is a leaf, and an only child in the levels below.
    depth : int
        Most levels of parting.
    seed, n_threads : int

    Raises
    ------
    InputError
        If a number is below 1.

    Examples
    --------
    Five labels of nearly one direction stay together, which `balanced_tree` would not allow.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.surrogates.label_tree import k_means_tree
    >>> angles = np.radians([0, 1, 2, 3, 4, 90])
    >>> rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    >>> tree = k_means_tree(
    ...     csr_array(rows), n_children=2, leaf_size=5, depth=2, seed=0, n_threads=1
    ... )
    >>> sorted(np.bincount(tree.nodes[-1]).tolist())
    [1, 5]
    """
    for name, value in {"n_children": n_children, "leaf_size": leaf_size, "depth": depth}.items():
        require_positive(name, value)
    paths = [np.zeros(centroids.shape[0], np.int32)]
    for level in range(depth):
        tree = LabelTree.of_paths(np.stack(paths))
        clusters = np.zeros(centroids.shape[0], np.int32)
        for node, own in enumerate(members_of(tree.nodes[-1])):
            if len(own) > leaf_size:
                random = np.random.default_rng([seed, level, node])
                clusters[own] = sparse_k_means(
                    centroids[own], n_children, random=random, n_threads=n_threads
                )
        if not clusters.any():
            break
        paths.append(clusters)
    return LabelTree.of_paths(np.stack(paths))
