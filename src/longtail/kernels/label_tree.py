"""Beam search down a tree of labels, one row at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.jit import kernel
from longtail.kernels.scoring import best_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.bags import Bags

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Offsets = NDArray[np.int64]

__all__ = ["TrainedTree", "add_margins", "tree_beam_search"]


class TrainedTree(NamedTuple):
    """A tree of labels with a linear classifier a node, the root apart.

    Nodes are numbered level by level: the root is 0, the labels come last, and the children of a
    node are neighbours. All labels are in the same level.

    Attributes
    ----------
    child_starts : int32 (n_inner + 1,)
        The children of node v are ``child_starts[v]`` to ``child_starts[v + 1]``.
    labels : int32 (n_nodes - n_inner,)
        The label that each node of the last level stands for.
    bias : float32 (n_nodes - 1,)
        That of node v is in place v - 1.
    feature_starts, features : int64 (n_inner + 1,), int32
        The features, ascending, for which any child of each inner node has a weight.
    weight_starts : int64 (n of `features` + 1,)
        Where the weights for each of those begin.
    children, weights : int32, float32
        Each weight, and its child, counted from the first child on.
    """

    child_starts: Ids
    labels: Ids
    bias: Floats
    feature_starts: Offsets
    features: Ids
    weight_starts: Offsets
    children: Ids
    weights: Floats


@kernel
def tree_beam_search(
    bags: Bags,
    tree: TrainedTree,
    beam_size: int,
    start: int,
    stop: int,
    best_ids: Ids,
    best_scores: Floats,
) -> None:
    """Write the best ``best_ids.shape[1]`` labels of each row, padded with -1 and -inf.

    The score of a node is the product of ``exp(-max(0, 1 - margin)^2)`` over the path to it, and
    only the best `beam_size` nodes of a level are followed. A row without entries gets no labels.
    """
    for i in range(start, stop):
        first, last = bags.row_starts[i], bags.row_starts[i + 1]
        columns, values = bags.columns[first:last], bags.values[first:last]
        if not len(columns):
            best_ids[i], best_scores[i] = -1, -np.inf
            continue
        labels, totals = _followed(columns, values, tree, beam_size)
        best_labels(labels, totals, 0, 1, best_ids[i : i + 1], best_scores[i : i + 1])
        for j in range(min(best_ids.shape[1], labels.shape[1])):
            best_scores[i, j] = math.exp(best_scores[i, j])


@kernel
def _followed(
    columns: Ids, values: Floats, tree: TrainedTree, beam_size: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the labels at the end of the best branches, and logarithms of scores, as one row."""
    n_inner = len(tree.child_starts) - 1
    nodes, scores = np.zeros((1, 1), np.int32), np.zeros((1, 1), np.float32)
    children, totals = _children(columns, values, tree, nodes[0], scores[0])
    while children[0, 0] < n_inner:
        nodes = np.empty((1, beam_size), np.int32)
        scores = np.empty((1, beam_size), np.float32)
        best_labels(children, totals, 0, 1, nodes, scores)
        children, totals = _children(columns, values, tree, nodes[0], scores[0])
    for j in range(children.shape[1]):
        children[0, j] = tree.labels[children[0, j] - n_inner]
    return children, totals


@kernel
def _children(
    columns: Ids, values: Floats, tree: TrainedTree, nodes: Ids, scores: Floats
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return all children of some nodes, and the logarithms of their scores, as one row each."""
    n_children = 0
    for node in nodes:
        if node >= 0:
            n_children += tree.child_starts[node + 1] - tree.child_starts[node]
    children = np.empty((1, n_children), np.int32)
    totals = np.empty((1, n_children), np.float32)
    place = 0
    for j in range(len(nodes)):
        if nodes[j] < 0:
            break
        first, last = tree.child_starts[nodes[j]], tree.child_starts[nodes[j] + 1]
        margins = totals[0, place : place + last - first]
        margins[:] = tree.bias[first - 1 : last - 1]
        add_margins(columns, values, tree, nodes[j], margins)
        for child in range(last - first):
            gap = max(np.float32(1) - margins[child], np.float32(0))
            children[0, place], totals[0, place] = first + child, scores[j] - gap * gap
            place += 1
    return children, totals


@kernel
def add_margins(
    columns: Ids, values: Floats, tree: TrainedTree, node: int, margins: Floats
) -> None:
    """Add the products of a point with the weights of all children of a node.

    The point's features are looked up once for all children (Etter et al., "Accelerating inference
    for sparse extreme multi-label ranking trees", WWW 2022).
    """
    first, last = tree.feature_starts[node], tree.feature_starts[node + 1]
    for j in range(len(columns)):
        place = _first_not_below(tree.features, first, last, columns[j])
        if place < np.uint64(last) and tree.features[place] == columns[j]:
            start, stop = tree.weight_starts[place], tree.weight_starts[place + np.uint64(1)]
            for w in range(np.uint64(start), np.uint64(stop)):
                margins[np.uint64(tree.children[w])] += values[j] * tree.weights[w]


@kernel
def _first_not_below(features: Ids, first: int, last: int, feature: int) -> np.uint64:
    """Return the first place from `first` to `last` that holds at least `feature`, by bisection.

    Unsigned places, because numba tests signed ones for being negative.
    """
    place, n_left = np.uint64(first), np.uint64(last - first)
    while n_left > 0:
        half = n_left >> np.uint64(1)
        is_below = features[place + half] < feature
        place = place + half + np.uint64(1) if is_below else place
        n_left = n_left - half - np.uint64(1) if is_below else half
    return place
