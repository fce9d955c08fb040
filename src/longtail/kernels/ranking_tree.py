"""Trees whose nodes part points so that each half ranks its labels well: FastXML's.

Prabhu and Varma, "FastXML: A fast, accurate and stable tree-classifier for extreme multi-label
learning", KDD 2014, algorithm 2; with gains weighted by inverse propensities as in Jain, Prabhu and
Varma, "Extreme multi-label loss functions", KDD 2016, section 5. Random numbers come from a
counter, so a tree does not depend on which thread grew it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from longtail.kernels.growing import grown
from longtail.kernels.jit import kernel
from longtail.kernels.random_bits import first_random, next_random
from longtail.kernels.sparse_logistic import separate
from longtail.kernels.sparse_points import Points, copied, margin_of, take_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.sparse_logistic import Regression

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Offsets = NDArray[np.int64]

__all__ = ["Gains", "discounted_gains", "grow_tree"]

Scalar = TypeVar("Scalar", bound=np.generic)

_MAX_ROUNDS = 30  # of re-ranking and re-assigning; a few are enough
_MOST_NODES = 2_000_003  # of a tree, for random numbers; in larger ones some nodes share them


class Gains(NamedTuple):
    """What a right label is worth: the labels of each point, and their share of its ideal nDCG.

    Attributes
    ----------
    row_starts : int64 (n_points + 1,)
    labels : int32 (n_entries,)
    values : float32 (n_entries,)
        Inverse propensity over the point's ideal discounted gain.
    n_labels : int
    """

    row_starts: Offsets
    labels: Ids
    values: Floats
    n_labels: int


@kernel
def grow_tree(
    points: Points, gains: Gains, regression: Regression, leaf_size: int, seed: int, tree: int
) -> tuple[Any, ...]:
    """Grow one tree, and return the arrays of its `Forest`.

    Parameters
    ----------
    points : Points
        Unit rows.
    gains : Gains
    regression : Regression
        Of the separators.
    leaf_size : int
        A node with no more points is a leaf.
    seed, tree : int
        For the random numbers of the tree.
    """
    n_points = len(points.squared_norms)
    order = np.arange(n_points, dtype=np.int32)
    place_of_feature = np.full(points.n_features, -1, np.int32)
    scratch = np.zeros((2, gains.n_labels), np.float32)
    most = max(2 * n_points, 1)
    children, bias = np.full((most, 2), -1, np.int32), np.zeros(most, np.float32)
    starts, leaf_starts = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    first, last = np.zeros(most, np.int64), np.zeros(most, np.int64)
    features: Ids = np.empty(4096, np.int32)
    weights: Floats = np.empty(4096, np.float32)
    leaf_labels: Ids = np.empty(4096, np.int32)
    leaf_scores: Floats = np.empty(4096, np.float32)
    node, n_nodes = 0, 1
    last[0] = n_points
    while node < n_nodes:
        own = order[first[node] : last[node]]
        n_weights, n_scores = starts[node], leaf_starts[node]
        n_left = 0
        if len(own) > leaf_size:
            random = first_random(seed, tree * _MOST_NODES + node)
            signs = _signs(gains, own, random, scratch)
            near, used = copied(points, own, place_of_feature)
            features = _with_room(features, n_weights + len(used))
            weights = _with_room(weights, n_weights + len(used))
            room = features[n_weights:], weights[n_weights:]
            bias[node], n_new, n_left = _separate(near, used, signs, regression, own, *room)
            n_weights += n_new if 0 < n_left < len(own) else 0
        if 0 < n_left < len(own):
            children[node, 0], children[node, 1] = n_nodes, n_nodes + 1
            first[n_nodes], last[n_nodes] = first[node], first[node] + n_left
            first[n_nodes + 1], last[n_nodes + 1] = first[node] + n_left, last[node]
            n_nodes += 2
        else:
            bias[node] = 0
            n_entries = 0
            for point in own:
                n_entries += gains.row_starts[point + 1] - gains.row_starts[point]
            leaf_labels = _with_room(leaf_labels, n_scores + n_entries)
            leaf_scores = _with_room(leaf_scores, n_scores + n_entries)
            room = leaf_labels[n_scores:], leaf_scores[n_scores:]
            n_scores += _mean_labels(gains, own, scratch[0], *room)
        node += 1
        starts[node], leaf_starts[node] = n_weights, n_scores
    return (
        np.zeros(1, np.int32),
        children[:n_nodes].copy(),
        bias[:n_nodes].copy(),
        starts[: n_nodes + 1].copy(),
        features[: starts[n_nodes]].copy(),
        weights[: starts[n_nodes]].copy(),
        leaf_starts[: n_nodes + 1].copy(),
        leaf_labels[: leaf_starts[n_nodes]].copy(),
        leaf_scores[: leaf_starts[n_nodes]].copy(),
    )


@kernel
def _signs(gains: Gains, own: Ids, random: np.uint64, scratch: Floats) -> Floats:
    """Part points at random, then give each to the half whose ranking suits it, again and again."""
    signs = np.empty(len(own), np.float32)
    for i in range(len(own)):
        random = next_random(random)
        signs[i] = 1 if random & np.uint64(1) else -1
    labels = _labels_of(gains, own)
    for _ in range(_MAX_ROUNDS):
        discounted_gains(gains, own, signs, labels, scratch)
        n_changed = 0
        for i in range(len(own)):
            better = np.float32(0)
            for j in range(gains.row_starts[own[i]], gains.row_starts[own[i] + 1]):
                label = gains.labels[j]
                better += gains.values[j] * (scratch[1, label] - scratch[0, label])
            if better * signs[i] < 0:
                signs[i] = -signs[i]
                n_changed += 1
        if n_changed * 1000 <= len(own):
            break
    for label in labels:
        scratch[0, label] = scratch[1, label] = 0
    return signs


@kernel
def _labels_of(gains: Gains, own: Ids) -> Ids:
    """List the labels of some points, ascending."""
    n_entries = 0
    for point in own:
        n_entries += gains.row_starts[point + 1] - gains.row_starts[point]
    labels = np.empty(n_entries, np.int32)
    place = 0
    for point in own:
        for j in range(gains.row_starts[point], gains.row_starts[point + 1]):
            labels[place] = gains.labels[j]
            place += 1
    return np.unique(labels)


@kernel
def discounted_gains(gains: Gains, own: Ids, signs: Floats, labels: Ids, discounts: Floats) -> None:
    """Write the discount ``1 / log2(2 + rank)`` of each label in the ranking of each half.

    A half ranks labels by the summed gains of its points, which makes its nDCG the largest; labels
    that it does not have get no gain there.

    Parameters
    ----------
    gains : Gains
    own : int32 (n,)
        Points.
    signs : float32 (n,)
        -1 for those of half 0, 1 for those of half 1.
    labels : int32 (n_own_labels,)
        Those of the points.
    discounts : float32 (2, n_labels)
        Output, at `labels`.
    """
    for label in labels:
        discounts[0, label] = discounts[1, label] = 0
    for i in range(len(own)):
        half = 1 if signs[i] > 0 else 0
        for j in range(gains.row_starts[own[i]], gains.row_starts[own[i] + 1]):
            discounts[half, gains.labels[j]] += gains.values[j]
    totals = np.empty(len(labels), np.float32)
    for half in range(2):
        for place in range(len(labels)):
            totals[place] = -discounts[half, labels[place]]
        for rank, place in enumerate(np.argsort(totals, kind="mergesort")):
            if totals[place] < 0:
                discounts[half, labels[place]] = 1.0 / math.log2(2.0 + rank)


@kernel
def _separate(
    near: Points,
    used: Ids,
    signs: Floats,
    regression: Regression,
    own: Ids,
    features: Ids,
    weights: Floats,
) -> tuple[float, int, int]:
    """Train a separator of two halves, write it, and bring points into its order.

    Returns its bias, how many weights it has, and how many points, now in front, are on the side
    of margins below zero.
    """
    if not len(used):  # points without features cannot be told apart
        return 0.0, 0, 0
    dense = np.zeros(len(used), np.float32)
    bias = separate(near, signs, regression, dense)
    is_left = np.empty(len(own), np.bool_)
    for i in range(len(own)):
        start, stop = near.row_starts[i], near.row_starts[i + 1]
        is_left[i] = margin_of(near.columns, near.values, start, stop, dense) + bias < 0
    ordered = np.concatenate((own[is_left], own[~is_left]))
    own[:] = ordered
    return bias, take_weights(dense, used, 0.0, features, weights), int(is_left.sum())


@kernel
def _mean_labels(gains: Gains, own: Ids, totals: Floats, labels: Ids, scores: Floats) -> int:
    """Write the labels of a leaf and the shares of its points with each; return how many."""
    found = _labels_of(gains, own)
    for point in own:
        for j in range(gains.row_starts[point], gains.row_starts[point + 1]):
            totals[gains.labels[j]] += np.float32(1)
    for place in range(len(found)):
        labels[place], scores[place] = found[place], totals[found[place]] / len(own)
        totals[found[place]] = 0
    return len(found)


@kernel
def _with_room(array: NDArray[Scalar], size: int) -> NDArray[Scalar]:
    """Return the array, or a longer copy where it is too short."""
    return array if size <= len(array) else grown(array, len(array), 2 * size)
