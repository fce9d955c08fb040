"""Forests of trees with a linear separator at each node: which leaves a point falls into."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.jit import kernel
from longtail.kernels.scoring import best_labels
from longtail.kernels.sparse_scoring import spread_out, sweep

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.bags import Bags

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Offsets = NDArray[np.int64]

__all__ = ["Forest", "best_of_forest", "leaf_scores"]


class Forest(NamedTuple):
    """Trees, their nodes numbered on: a linear separator at each inner node, scores at each leaf.

    Attributes
    ----------
    roots : int32 (n_trees,)
    children : int32 (n_nodes, 2)
        Of a node, for margins below zero and others; both -1 at a leaf.
    bias : float32 (n_nodes,)
    starts, features, weights : int64 (n_nodes + 1,), int32, float32
        The separators.
    leaf_starts, leaf_labels, leaf_scores : int64 (n_nodes + 1,), int32, float32
        Labels, ascending, and scores; none at inner nodes.
    """

    roots: Ids
    children: Ids
    bias: Floats
    starts: Offsets
    features: Ids
    weights: Floats
    leaf_starts: Offsets
    leaf_labels: Ids
    leaf_scores: Floats


@kernel
def leaf_scores(
    columns: Ids, values: Floats, forest: Forest, dense: Floats, totals: Floats, touched: Ids
) -> int:
    """Add up the scores of the leaf that a point falls into in each tree.

    Parameters
    ----------
    columns, values : int32, float32 (n,)
        The point.
    forest : Forest
    dense : float32 (n_features,)
        Scratch, zero and left so.
    totals : float32 (n_labels,)
        Zero to begin with; output at the labels listed in `touched`.
    touched : int32 (n_labels,)
        Output.

    Returns
    -------
    int
        How many labels there are.
    """
    n_touched = 0
    spread_out(columns, values, dense)
    for root in forest.roots:
        node = root
        while forest.children[node, 0] >= 0:
            margin = forest.bias[node]
            for j in range(forest.starts[node], forest.starts[node + 1]):
                margin += forest.weights[j] * dense[forest.features[j]]
            node = forest.children[node, 0 if margin < 0 else 1]
        for j in range(forest.leaf_starts[node], forest.leaf_starts[node + 1]):
            label = forest.leaf_labels[j]
            if totals[label] == 0:
                touched[n_touched] = label
                n_touched += 1
            totals[label] += forest.leaf_scores[j]
    sweep(columns, dense)
    return n_touched


@kernel
def best_of_forest(
    bags: Bags,
    forest: Forest,
    n_features: int,
    n_labels: int,
    start: int,
    stop: int,
    best_ids: Ids,
    best_scores: Floats,
) -> None:
    """Write the labels with the largest mean leaf scores of each row, padded with -1 and -inf."""
    dense = np.zeros(n_features, np.float32)
    totals = np.zeros((1, n_labels), np.float32)
    touched = np.empty(n_labels, np.int32)
    share = np.float32(1) / np.float32(len(forest.roots))
    for i in range(start, stop):
        row = slice(bags.row_starts[i], bags.row_starts[i + 1])
        columns, values = bags.columns[row], bags.values[row]
        n_found = 0
        if len(columns):
            n_found = leaf_scores(columns, values, forest, dense, totals[0], touched)
        labels, scores = np.empty((1, n_found), np.int32), np.empty((1, n_found), np.float32)
        for place in range(n_found):
            labels[0, place] = touched[place]
            scores[0, place] = totals[0, touched[place]] * share
            totals[0, touched[place]] = 0
        best_labels(labels, scores, 0, 1, best_ids[i : i + 1], best_scores[i : i + 1])
