"""Learning partitions and embeddings in which points with shared labels are near: AnnexML's.

Tagami, "AnnexML: Approximate nearest neighbor search for extreme multi-label classification", KDD
2017, sections 3.1 and 3.2. An epoch takes its random order and its random points from outside, so a
kernel does the same whichever thread runs it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.jit import fast_inlined_kernel, fast_kernel, kernel
from longtail.kernels.scoring import best_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.bags import Bags

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = [
    "Comparisons",
    "embedding_epoch",
    "encode_in_partitions",
    "partition_epoch",
    "points_sharing_labels",
]

MOST_EXPONENT = np.float32(60)  # 32 bits hold sums of such powers of e, but not far larger ones


class Comparisons(NamedTuple):
    """Which points an epoch goes through, and which others each is compared with.

    Attributes
    ----------
    order : int32 (n,)
    near : int32 (n_points, n_near)
        Points that share labels; a row of -1 where there are none.
    far : int32 (n_points, n_far)
        Random points.
    """

    order: Ids
    near: Ids
    far: Ids


@kernel
def points_sharing_labels(
    labels_of: tuple[Ids, Ids],
    points_of: tuple[Ids, Ids],
    is_used: NDArray[np.bool_],
    noise: Floats,
    start: int,
    stop: int,
    near: Ids,
) -> None:
    """Write the points with the most similar labels, for points `start` to `stop`.

    How similar j is to i is ``sum over the labels of both of 1 / number of labels of j``.

    Parameters
    ----------
    labels_of, points_of : pairs of int32 arrays
        CSR offsets and indices of the label matrix and of its transpose.
    is_used : bool (n_labels,)
        Others, too frequent to tell points apart, are looked over.
    noise : float32 (n_points,)
        Above 0 and small: parts points that are as similar, other ones in each learner.
    start, stop : int
    near : int32 (n_points, n_near)
        Written, best first: again from the first where there are fewer, -1 where there are none.
    """
    (label_starts, labels), (point_starts, points) = labels_of, points_of
    n_points = len(near)
    similarity = np.zeros(n_points, np.float32)  # 0 marks points that have not been met
    met = np.empty(n_points, np.int32)
    best_scores = np.empty((1, near.shape[1]), np.float32)
    for i in range(start, stop):
        n_met = 0
        for s in range(label_starts[i], label_starts[i + 1]):
            label = labels[s]
            if not is_used[label]:
                continue
            for t in range(point_starts[label], point_starts[label + 1]):
                j = points[t]
                if j == i:
                    continue
                if similarity[j] == 0:
                    similarity[j] = noise[j]
                    met[n_met] = j
                    n_met += 1
                similarity[j] += np.float32(1) / np.float32(label_starts[j + 1] - label_starts[j])
        found = met[:n_met]
        scores = similarity[found].reshape(1, -1)
        best_labels(found.copy().reshape(1, -1), scores, 0, 1, near[i : i + 1], best_scores)
        n_kept = min(n_met, near.shape[1])
        for place in range(n_kept, near.shape[1]):
            near[i, place] = near[i, place - n_kept] if n_kept else -1
        for j in found:
            similarity[j] = 0


@kernel
def partition_epoch(
    bags: Bags,
    compared: Comparisons,
    learning_rate: float,
    penalty: float,
    weights: Floats,
    squares: Floats,
    sums: Floats,
) -> None:
    """Pull the points that share labels with one into its partition, and push random ones out.

    The partition of a point is the one with the largest ``w . x``. There, logistic losses are
    lowered by FTRL-Proximal (McMahan et al., KDD 2013), which keeps the weights sparse.

    Parameters
    ----------
    bags : Bags
        Unit rows.
    compared : Comparisons
    learning_rate, penalty : float
        The latter of the sum of absolute weights.
    weights, squares, sums : float32 (n_features, n_partitions)
        w, and the optimiser's n and z; changed.
    """
    scores = np.empty(weights.shape[1], np.float32)
    rate, least = np.float32(learning_rate), np.float32(penalty)
    for i in compared.order:
        if compared.near[i, 0] < 0:
            continue
        scores[:] = 0
        for e in range(bags.row_starts[i], bags.row_starts[i + 1]):
            for p in range(len(scores)):
                scores[p] += bags.values[e] * weights[bags.columns[e], p]
        best = np.argmax(scores)
        own = weights[:, best], squares[:, best], sums[:, best]
        for j in compared.near[i]:
            _pull(bags, j, np.float32(1), rate, least, own)
        for j in compared.far[i]:
            _pull(bags, j, np.float32(0), rate, least, own)


@kernel
def _pull(
    bags: Bags,
    point: int,
    target: np.float32,
    rate: np.float32,
    penalty: np.float32,
    column: tuple[Floats, Floats, Floats],
) -> None:
    """Take one step of logistic regression on one partition's weights."""
    weights, squares, sums = column
    score = np.float32(0)
    for e in range(bags.row_starts[point], bags.row_starts[point + 1]):
        score += bags.values[e] * weights[bags.columns[e]]
    slope = target - np.float32(1 / (1 + math.exp(-score)))
    for e in range(bags.row_starts[point], bags.row_starts[point + 1]):
        feature, gain = bags.columns[e], slope * bags.values[e]
        before = math.sqrt(squares[feature])
        squares[feature] += gain * gain
        after = math.sqrt(squares[feature])
        sums[feature] += gain + (after - before) / rate * weights[feature]
        beyond = abs(sums[feature]) - penalty
        size = rate * beyond / after if beyond > 0 else 0
        weights[feature] = size if sums[feature] > 0 else -size


@fast_kernel
def embedding_epoch(
    bags: Bags,
    compared: Comparisons,
    learning_rate: float,
    gamma: float,
    table: Floats,
    squares: Floats,
) -> None:
    """Bring embeddings of points that share labels nearer than those of random points.

    Point i with near points p and random points n has the loss
    ``sum_p log(1 + sum_n exp(-gamma (cos(i, p) - cos(i, n))))``, lowered by Adagrad.

    Parameters
    ----------
    bags : Bags
    compared : Comparisons
    learning_rate, gamma : float
    table : float32 (n_features, dimension)
        Changed. A point's embedding is the weighted sum of its rows.
    squares : float32 (n_features,)
        Running sum of the mean square of each row's gradient; changed.
    """
    n_near, dimension = compared.near.shape[1], table.shape[1]
    n_others = n_near + compared.far.shape[1]
    vector, gradient = np.empty(dimension, np.float32), np.empty(dimension, np.float32)
    others, step = np.empty((n_others, dimension), np.float32), np.empty(dimension, np.float32)
    ids = np.empty(n_others, np.int32)
    cosines, lengths = np.empty(n_others, np.float32), np.empty(n_others, np.float32)
    rate = np.float32(learning_rate)
    for i in compared.order:
        length = _unit_embedding(bags, i, table, vector)
        if compared.near[i, 0] < 0 or length == 0:
            continue
        ids[:n_near], ids[n_near:] = compared.near[i], compared.far[i]
        for s in range(n_others):
            lengths[s] = _unit_embedding(bags, ids[s], table, others[s])
            cosines[s] = _product(vector, others[s])
        gains = loss_slopes(cosines, n_near, np.float32(gamma))
        gradient[:] = 0
        for s in range(n_others):
            if lengths[s] == 0:
                continue
            # d cos(a, b) / d a = (b - cos a) / |a| for unit a and b
            for d in range(dimension):
                gradient[d] += gains[s] * (others[s, d] - cosines[s] * vector[d]) / length
                step[d] = gains[s] * (vector[d] - cosines[s] * others[s, d]) / lengths[s]
            _climb(bags, ids[s], step, rate, table, squares)
        _climb(bags, i, gradient, rate, table, squares)


@kernel
def loss_slopes(cosines: Floats, n_near: int, gamma: np.float32) -> Floats:
    """Return minus the loss's derivative by each cosine, near points first."""
    gains = np.zeros(len(cosines), np.float32)
    for p in range(n_near):
        total = np.float32(1)
        for n in range(n_near, len(cosines)):
            total += math.exp(min(-gamma * (cosines[p] - cosines[n]), MOST_EXPONENT))
        for n in range(n_near, len(cosines)):
            exponent = min(-gamma * (cosines[p] - cosines[n]), MOST_EXPONENT)
            gain = gamma * math.exp(exponent) / total
            gains[p] += gain
            gains[n] -= gain
    return gains


@fast_inlined_kernel
def _product(left: Floats, right: Floats) -> np.float32:
    """Return the inner product."""
    total = np.float32(0)
    for d in range(len(left)):
        total += left[d] * right[d]
    return total


@fast_inlined_kernel
def _unit_embedding(bags: Bags, point: int, table: Floats, vector: Floats) -> np.float32:
    """Write a point's embedding, scaled to unit length, and return the length it had."""
    vector[:] = 0
    for e in range(bags.row_starts[point], bags.row_starts[point + 1]):
        row, value = table[bags.columns[e]], bags.values[e]
        for d in range(len(vector)):
            vector[d] += value * row[d]
    length = np.float32(math.sqrt(_product(vector, vector)))
    if length > 0:
        vector /= length
    return length


@fast_inlined_kernel
def _climb(
    bags: Bags, point: int, gradient: Floats, rate: np.float32, table: Floats, squares: Floats
) -> None:
    """Step the rows of a point's tokens along the gradient of its embedding."""
    mean_square = _product(gradient, gradient) / np.float32(len(gradient))
    for e in range(bags.row_starts[point], bags.row_starts[point + 1]):
        token, value = bags.columns[e], bags.values[e]
        squares[token] += value * value * mean_square
        size = rate * value / np.float32(math.sqrt(squares[token]))
        row = table[token]
        for d in range(len(gradient)):
            row[d] += size * gradient[d]


@fast_kernel
def encode_in_partitions(
    bags: Bags,
    partitions: Ids,
    starts: NDArray[np.int64],
    features: Ids,
    table: Floats,
    start: int,
    stop: int,
    vectors: Floats,
) -> None:
    """Write the unit embedding of each point by the tokens of its partition.

    Parameters
    ----------
    bags : Bags
    partitions : int32 (n,)
    starts, features : int64 (n_partitions + 1,), int32 (n_rows,)
        The tokens of each partition, ascending; others count for nothing.
    table : float32 (n_rows, dimension)
        Their vectors.
    start, stop : int
    vectors : float32 (n, dimension)
        Written; zeros for points of unknown tokens.
    """
    for i in range(start, stop):
        first, last = starts[partitions[i]], starts[partitions[i] + 1]
        vector, own = vectors[i], features[first:last]
        vector[:] = 0
        for e in range(bags.row_starts[i], bags.row_starts[i + 1]):
            place = np.searchsorted(own, bags.columns[e])
            if place < len(own) and own[place] == bags.columns[e]:
                row, value = table[first + place], bags.values[e]
                for d in range(len(vector)):
                    vector[d] += value * row[d]
        length = np.float32(math.sqrt(_product(vector, vector)))
        if length > 0:
            vector /= length
