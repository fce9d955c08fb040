"""Trained trees of labels, as Parabel and Bonsai grow them: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from longtail.held_arrays import read_only_parts
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.label_tree import TrainedTree, tree_beam_search
from longtail.named_parts import with_prefix

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers
    from longtail.scorers.sparse_label_vectors import SparseLabelVectors

__all__ = ["LabelTreeScorer", "as_kernels_take", "laid_out", "tree_from"]

_DTYPES: Mapping[str, type[np.generic]] = MappingProxyType(
    {
        "child_starts": np.int32,
        "labels": np.int32,
        "bias": np.float32,
        "feature_starts": np.int64,
        "features": np.int32,
        "weight_starts": np.int64,
        "children": np.int32,
        "weights": np.float32,
    }
)


@dataclass(frozen=True)
class LabelTreeScorer:
    """One trained tree: a sparse linear classifier a node, followed down the best branches.

    The score of a label is the product of ``exp(-max(0, 1 - margin)^2)`` over the nodes from the
    root to it (Parabel, WWW 2018, section 4.3, with the squared hinge loss of its classifiers).

    Parameters
    ----------
    tree : TrainedTree
        Made by `of`.
    beam_size : int
        Nodes of a level that are followed; all, if it has fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.label_tree import LabelTreeScorer
    >>> from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    >>> from longtail.data.bags import Bags
    >>> nodes = SparseLabelVectors(np.array([0, 1, 2]), np.array([0, 1]), np.ones(2), np.zeros(2))
    >>> scorer = LabelTreeScorer.of(np.array([1, 3]), np.array([8, 5]), nodes, beam_size=10)
    >>> bag = Bags.one(np.array([1], np.int32), np.array([1], np.float32))
    >>> ids, scores = scorer.top_k(bag, 2)
    >>> ids.tolist(), scores.round(2).tolist()
    ([[5, 8]], [[1.0, 0.3700000047683716]])
    """

    scores_are_shares: ClassVar[bool] = True  # see `ScoresShares`

    tree: TrainedTree
    beam_size: int

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held."""
        object.__setattr__(self, "tree", as_kernels_take(self.tree))

    @classmethod
    def of(
        cls,
        child_starts: NDArray[np.int32],
        labels: NDArray[np.int32],
        nodes: SparseLabelVectors,
        *,
        beam_size: int,
        n_threads: int = 1,
    ) -> LabelTreeScorer:
        """Lay the classifiers of a tree out for fast search.

        Parameters
        ----------
        child_starts, labels, nodes
            See `laid_out`.
        beam_size, n_threads : int
        """
        return cls(laid_out(child_starts, labels, nodes, n_threads), beam_size)

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""
        points = bags.for_kernels()
        ids = np.empty((bags.n_rows, k), np.int32)
        scores = np.empty((bags.n_rows, k), np.float32)
        beam_size = min(self.beam_size, len(self.tree.labels))  # no level has more nodes

        def search(start: int, stop: int) -> None:
            tree_beam_search(points, self.tree, beam_size, start, stop, ids, scores)

        over_row_chunks(search, bags.n_rows, n_threads=n_threads, chunk=256)
        return ids, scores

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        return with_prefix("tree/", self.tree._asdict())

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {"kind": "label-tree", "beam_size": self.beam_size}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> LabelTreeScorer:
        """Make it again from `config` and `to_arrays`."""
        return cls(tree_from(arrays), config["beam_size"])


def tree_from(arrays: Arrays) -> TrainedTree:
    """Return a tree that was saved as the arrays ``tree/...``.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.label_tree import laid_out, tree_from
    >>> from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    >>> nodes = SparseLabelVectors(np.array([0, 1, 2]), np.array([0, 1]), np.ones(2), np.zeros(2))
    >>> tree = laid_out(np.array([1, 3]), np.array([8, 5]), nodes)
    >>> saved = {f"tree/{name}": array for name, array in tree._asdict().items()}
    >>> tree_from(saved).labels.tolist()
    [8, 5]
    """
    return TrainedTree(**{name: arrays[f"tree/{name}"] for name in TrainedTree._fields})


def laid_out(
    child_starts: NDArray[np.int32],
    labels: NDArray[np.int32],
    nodes: SparseLabelVectors,
    n_threads: int = 1,
) -> TrainedTree:
    """Sort the weights of a tree's classifiers by parent and feature, for fast search.

    Parameters
    ----------
    child_starts : int32 (n_inner + 1,)
        Nodes are numbered level by level from the root, 0; the children of node v are those from
        ``child_starts[v]`` to ``child_starts[v + 1]``; the labels, all in one level, come last.
    labels : int32 (n_leaves,)
        The label that each node of the last level stands for.
    nodes : SparseLabelVectors
        Of all nodes but the root.
    n_threads : int

    Examples
    --------
    Both children of the root have a weight for feature 1, which are neighbours now.

    >>> import numpy as np
    >>> from longtail.scorers.label_tree import laid_out
    >>> from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    >>> features, weights = np.array([0, 1, 1]), np.array([0.1, 0.2, 0.3])
    >>> nodes = SparseLabelVectors(np.array([0, 2, 3]), features, weights, np.zeros(2))
    >>> tree = laid_out(np.array([1, 3]), np.array([8, 5]), nodes)
    >>> tree.features.tolist(), tree.weight_starts.tolist()
    ([0, 1], [0, 1, 3])
    >>> tree.children.tolist()
    [0, 0, 1]
    """
    first_weights = nodes.starts[child_starts.astype(np.int64) - 1]  # of children of a node
    order = np.empty(len(nodes.features), np.int64)

    def sort(start: int, stop: int) -> None:
        for node in range(start, stop):
            entries = slice(first_weights[node], first_weights[node + 1])
            order[entries] = entries.start + np.argsort(nodes.features[entries], kind="stable")

    n_inner = len(child_starts) - 1
    over_row_chunks(sort, n_inner, n_threads=n_threads, chunk=64)
    features = nodes.features[order]
    parents = np.repeat(np.arange(n_inner, dtype=np.int32), np.diff(first_weights))
    is_first = np.ones(len(features), np.bool_)
    is_first[1:] = (features[1:] != features[:-1]) | (parents[1:] != parents[:-1])
    places = np.flatnonzero(is_first)
    children = np.repeat(np.arange(nodes.n_labels, dtype=np.int32), np.diff(nodes.starts))
    return TrainedTree(
        child_starts=child_starts,
        labels=labels,
        bias=nodes.bias,
        feature_starts=np.searchsorted(places, first_weights),
        features=features[places],
        weight_starts=np.append(places, len(features)),
        children=children[order] + np.int32(1) - child_starts[parents],
        weights=nodes.weights[order],
    )


def as_kernels_take(tree: TrainedTree) -> TrainedTree:
    """Return a tree with the types of `_DTYPES`, all arrays as memory maps are."""
    return TrainedTree(**read_only_parts(tree._asdict(), _DTYPES))
