"""Linear support vector machines, one a label, by dual coordinate descent.

The solver of LIBLINEAR for the squared hinge loss (its solver 1): Hsieh, Chang, Lin, Keerthi and
Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML 2008, algorithm 3
with random order and shrinking. Random numbers come from a counter, started anew for every label,
so that no result depends on which thread computed what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.growing import grown
from longtail.kernels.jit import kernel
from longtail.kernels.random_bits import first_random, next_random
from longtail.kernels.sparse_points import add_row, copied, margin_of_row, take_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longtail.kernels.sparse_points import Points

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Offsets = NDArray[np.int64]

__all__ = ["Problems", "Stopping", "points_of_label", "solve", "solver", "train_machines"]


class Problems(NamedTuple):
    """Which points each machine is to tell apart, as lists of ascending points.

    Attributes
    ----------
    positive_starts, positives : int64 (n_labels + 1,), int32
        The points that carry each label.
    candidate_starts, candidates : int64 (n_groups + 1,), int32
        The points of each group: those of them that do not carry a label are its negatives.
    group_of_label : int32 (n_labels,)
    """

    positive_starts: Offsets
    positives: Ids
    candidate_starts: Offsets
    candidates: Ids
    group_of_label: Ids


class Stopping(NamedTuple):
    """The loss, and when a machine is good enough; see `SparseOneVsRest`."""

    cost: float
    tolerance: float
    max_passes: int
    prune: float
    seed: int


@kernel
def train_machines(
    points: Points,
    problems: Problems,
    stopping: Stopping,
    first: int,
    last: int,
    bias: Floats,
    n_kept: Offsets,
) -> tuple[Ids, Floats]:
    """Train the machines of the labels `first` to `last`.

    Label l minimises ``|w|^2 / 2 + b^2 / 2 + cost * sum_i max(0, 1 - y_i (w . x_i + b))^2`` over
    its positives (y = 1) and its negatives (y = -1). Then weights smaller than `prune` are dropped,
    the bias apart.

    Parameters
    ----------
    points : Points
    problems : Problems
    stopping : Stopping
    first, last : int
    bias, n_kept : float32, int64 (n_labels,)
        Output: b, and how many weights are left, of labels `first` to `last`. A label without
        positives gets a bias of -1 and no weights.

    Returns
    -------
    features : int32 (sum of n_kept,)
        Ascending within each label.
    weights : float32, the same length
    """
    kept_features, kept_weights = np.empty(1024, np.int32), np.empty(1024, np.float32)
    place_of_point = np.empty(len(points.squared_norms), np.int32)
    place_of_feature = np.full(points.n_features, -1, np.int32)
    n_all, label = 0, first
    while label < last:
        stop = _end_of_group(problems, label, last)
        own = _points_of_group(problems, label, stop)
        for place in range(len(own)):
            place_of_point[own[place]] = place
        near, features = copied(points, own, place_of_feature)
        dense = np.zeros(len(features), np.float32)  # w of one label at a time
        while label < stop:
            rows, signs = points_of_label(problems, label)
            for i in range(len(rows)):
                rows[i] = place_of_point[rows[i]]
            bias[label] = solve(near, rows, signs, stopping, label, dense)
            if n_all + len(features) > len(kept_features):
                kept_features = grown(kept_features, n_all, 2 * (n_all + len(features)))
                kept_weights = grown(kept_weights, n_all, 2 * (n_all + len(features)))
            room = kept_features[n_all:], kept_weights[n_all:]
            n_kept[label] = take_weights(dense, features, stopping.prune, *room)
            n_all += n_kept[label]
            label += 1
    return kept_features[:n_all].copy(), kept_weights[:n_all].copy()


@kernel
def _end_of_group(problems: Problems, label: int, last: int) -> int:
    """Return the first of the next labels that is in another group."""
    stop = label + 1
    while stop < last and problems.group_of_label[stop] == problems.group_of_label[label]:
        stop += 1
    return stop


@kernel
def _points_of_group(problems: Problems, label: int, stop: int) -> Ids:
    """List, ascending, all points of the labels `label` to `stop`, which share a group."""
    positives = problems.positives[problems.positive_starts[label] : problems.positive_starts[stop]]
    return _union(np.unique(positives), _candidates_of(problems, label))[0]


@kernel
def points_of_label(problems: Problems, label: int) -> tuple[Ids, Floats]:
    """List a label's points, ascending, and 1 or -1 for each; none if none is positive."""
    candidates = _candidates_of(problems, label)
    positives = problems.positives[
        problems.positive_starts[label] : problems.positive_starts[label + 1]
    ]
    return _union(positives, candidates if len(positives) else candidates[:0])


@kernel
def _candidates_of(problems: Problems, label: int) -> Ids:
    """Return the candidates of a label's group."""
    group = problems.group_of_label[label]
    return problems.candidates[
        problems.candidate_starts[group] : problems.candidate_starts[group + 1]
    ]


@kernel
def _union(positives: Ids, candidates: Ids) -> tuple[Ids, Floats]:
    """Merge two ascending lists; 1 stands for what is in the first, -1 for the rest."""
    merged = np.empty(len(positives) + len(candidates), np.int32)
    signs = np.empty(len(merged), np.float32)
    i = j = n = 0
    while i < len(positives) or j < len(candidates):
        is_positive = j == len(candidates) or (i < len(positives) and positives[i] <= candidates[j])
        if is_positive:
            merged[n], signs[n] = positives[i], 1
            if j < len(candidates) and candidates[j] == positives[i]:
                j += 1
            i += 1
        else:
            merged[n], signs[n] = candidates[j], -1
            j += 1
        n += 1
    return merged[:n], signs[:n]


def solver(
    margin_of_row: Callable[..., np.float32], add_row: Callable[..., None]
) -> Callable[..., float]:
    """Return the solver for points of one kind: sparse ones, or dense ones.

    Parameters
    ----------
    margin_of_row : kernel
        From points, the number of a row, and w to their product.
    add_row : kernel
        Takes points, the number of a row, a step, and w, and adds the step times the row to w.

    Returns
    -------
    kernel
        It takes points with `squared_norms`, the rows of a label's points, 1 or -1 for each, a
        `Stopping`, the label, and w, which must be zero; it leaves w there and returns b, which is
        -1 if there are no points.
    """

    @kernel
    def solve(
        points: Any, rows: Ids, signs: Floats, stopping: Stopping, label: int, dense: Floats
    ) -> float:
        """Leave w in `dense`, which must be zero, and return b; -1 if there are no points."""
        if not len(rows):
            return -1.0
        diagonal = np.float32(0.5 / stopping.cost)
        active, n_active = np.arange(len(rows), dtype=np.int32), len(rows)
        alpha = np.zeros(len(rows), np.float32)
        bias, largest = np.float32(0), np.float32(np.inf)
        random = first_random(stopping.seed, label)
        for _ in range(stopping.max_passes):
            new_largest, new_smallest = np.float32(-np.inf), np.float32(np.inf)
            place = 0
            while place < n_active:
                # Shuffles as it goes: a point that was not yet visited takes this place.
                random = next_random(random)
                other = place + np.int64((random * np.uint64(n_active - place)) >> np.uint64(32))
                i = active[other]
                active[other] = active[place]
                active[place] = i
                margin = margin_of_row(points, rows[i], dense) + bias
                gradient = signs[i] * margin - np.float32(1) + diagonal * alpha[i]
                if alpha[i] == 0 and gradient > 0:
                    if gradient > largest:  # shrink: so far beyond its margin it will rarely move
                        n_active -= 1
                        active[place] = active[n_active]
                        active[n_active] = i
                        continue
                    gradient = np.float32(0)
                place += 1
                new_largest = max(new_largest, gradient)
                new_smallest = min(new_smallest, gradient)
                if abs(gradient) > 1e-12:
                    curvature = points.squared_norms[rows[i]] + np.float32(1) + diagonal
                    previous = alpha[i]
                    alpha[i] = max(previous - gradient / curvature, np.float32(0))
                    step = (alpha[i] - previous) * signs[i]
                    add_row(points, rows[i], step, dense)
                    bias += step
            if new_largest - new_smallest <= stopping.tolerance:
                if n_active == len(rows):
                    break
                # Done with those that are left: look at all of them again.
                n_active, largest = len(rows), np.float32(np.inf)
            else:
                largest = new_largest if new_largest > 0 else np.float32(np.inf)
        return float(bias)

    return solve


solve = solver(margin_of_row, add_row)
