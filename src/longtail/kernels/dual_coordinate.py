"""Linear support vector machines, one a label, by dual coordinate descent.

The solver of LIBLINEAR for the squared hinge loss (its solver 1): Hsieh, Chang, Lin, Keerthi and
Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML 2008, algorithm 3
with random order and shrinking. Random numbers come from a counter, started anew for every label,
so that no result depends on which thread computed what.

The bias goes its own way. LIBLINEAR has it as the weight of one more feature, which all points
share: then each step for a point moves the margins of all others, and a third to two fifths of
the visits to points are spent on what these undo of each other. Here the bias stays while a pass
changes w, and takes a step of Newton's method between passes.
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

_LONGEST_STEP = np.float32(0.2)  # of the bias, whose curvature is guessed


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


class _Dual(NamedTuple):
    """Where the descent is: what may change is in arrays.

    Attributes
    ----------
    alpha : float32 (n,)
        One number a point: w is the sum of ``y_i alpha_i x_i``.
    active : int32 (n,)
        The points in some order, those that are not shrunk first.
    n_active : int64 (1,)
        How many these are.
    largest : float32 (1,)
        A point without weight is shrunk if its gradient is larger.
    random : uint64 (1,)
    diagonal : float32
        What the loss adds to the curvature of each alpha.
    """

    alpha: Floats
    active: Ids
    n_active: Offsets
    largest: Floats
    random: NDArray[np.uint64]
    diagonal: np.float32


@kernel
def _new_dual(n: int, stopping: Stopping, label: int) -> _Dual:
    """Return where a descent begins."""
    return _Dual(
        np.zeros(n, np.float32),
        np.arange(n, dtype=np.int32),
        np.full(1, n, np.int64),
        np.full(1, np.inf, np.float32),
        np.full(1, first_random(stopping.seed, label), np.uint64),
        np.float32(0.5 / stopping.cost),
    )


@kernel
def _first_bias(signs: Floats, own: np.float32) -> np.float32:
    """Return the bias of points that have nothing in common, each with the same curvature."""
    total = np.float32(0)
    for sign in signs:
        total += sign
    return total / (own + np.float32(len(signs)))


@kernel
def _slope(bias: np.float32, signs: Floats, alpha: Floats) -> tuple[np.float32, np.float32]:
    """Return the objective's slope in the bias, if w is the best for it, and how many support it.

    It is ``b - sum_i y_i alpha_i``. With the bias, alpha of each of n supporting points moves by
    ``-y_i / (curvature of its own + (n - 1) * its product with another)``, if all products are the
    same: that is what the curvature is guessed from.
    """
    n_support = np.float32(0)
    for i in range(len(signs)):
        bias -= signs[i] * alpha[i]
        n_support += np.float32(1) if alpha[i] > 0 else np.float32(0)
    return bias, n_support


def _pass_with(
    margin_of_row: Callable[..., np.float32], add_row: Callable[..., None]
) -> Callable[..., tuple[np.float32, np.float32]]:
    """Return what passes over the points once, for those of one kind: see `solver`."""

    @kernel
    def one_pass(
        points: Any, rows: Ids, signs: Floats, bias: np.float32, dual: _Dual, dense: Floats
    ) -> tuple[np.float32, np.float32]:
        """Take a step for each active point; return the ends of their projected gradients."""
        alpha, active = dual.alpha, dual.active
        random, n_active, most = dual.random[0], dual.n_active[0], dual.largest[0]
        largest, smallest = np.float32(-np.inf), np.float32(np.inf)
        place = 0
        while place < n_active:
            # Shuffles as it goes: a point that was not yet visited takes this place.
            random = next_random(random)
            other = place + np.int64((random * np.uint64(n_active - place)) >> np.uint64(32))
            i = active[other]
            active[other] = active[place]
            active[place] = i
            margin = margin_of_row(points, rows[i], dense) + bias
            gradient = signs[i] * margin - np.float32(1) + dual.diagonal * alpha[i]
            if alpha[i] == 0 and gradient > 0:
                if gradient > most:  # shrink: so far beyond its margin it will rarely move
                    n_active -= 1
                    active[place] = active[n_active]
                    active[n_active] = i
                    continue
                gradient = np.float32(0)
            place += 1
            largest = max(largest, gradient)
            smallest = min(smallest, gradient)
            if abs(gradient) > 1e-12:
                curvature = points.squared_norms[rows[i]] + dual.diagonal
                previous = alpha[i]
                alpha[i] = max(previous - gradient / curvature, np.float32(0))
                add_row(points, rows[i], (alpha[i] - previous) * signs[i], dense)
        dual.random[0], dual.n_active[0] = random, n_active
        return smallest, largest

    return one_pass


def _product_with(add_row: Callable[..., None]) -> Callable[..., tuple[np.float32, np.float32]]:
    """Return what tells how much points of one kind have in common: see `solver`."""

    @kernel
    def product_of_two(points: Any, rows: Ids, dense: Floats) -> tuple[np.float32, np.float32]:
        """Return the mean product of a point with itself, and that with another one."""
        n, own, total = np.float32(len(rows)), np.float32(0), np.float32(0)
        for row in rows:
            own += points.squared_norms[row]
            add_row(points, row, np.float32(1), dense)
        for place in range(len(dense)):
            total += dense[place] * dense[place]
            dense[place] = 0
        n_others = max(n - np.float32(1), np.float32(1))
        return own / n, max(total - own, np.float32(0)) / (n * n_others)

    return product_of_two


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
    one_pass, product_of_two = _pass_with(margin_of_row, add_row), _product_with(add_row)

    @kernel
    def solve(
        points: Any, rows: Ids, signs: Floats, stopping: Stopping, label: int, dense: Floats
    ) -> float:
        """Leave w in `dense`, which must be zero, and return b; -1 if there are no points."""
        if not len(rows):
            return -1.0
        dual = _new_dual(len(rows), stopping, label)
        with_itself, with_others = product_of_two(points, rows, dense)
        own = with_itself + dual.diagonal
        bias = _first_bias(signs, own)
        step = slope = least = np.float32(0)
        for _ in range(stopping.max_passes):
            smallest, largest = one_pass(points, rows, signs, bias, dual, dense)
            before, (slope, n_support) = slope, _slope(bias, signs, dual.alpha)
            n_others = n_support - np.float32(1)
            curvature = np.float32(1) + n_support / (own + n_others * with_others)
            if slope * before < 0:  # the last step was too long
                most = np.float32(1) + n_support / dual.diagonal
                least = max(least, min((before - slope) / step, most))
            step = slope / max(curvature, least)
            step = min(max(step, -_LONGEST_STEP), _LONGEST_STEP)
            bias -= step
            if largest - smallest + np.float32(2) * abs(step) > stopping.tolerance:
                dual.largest[0] = largest if largest > 0 else np.float32(np.inf)
            elif dual.n_active[0] == len(rows):
                break
            else:  # done with those that are left: look at all of them again
                dual.n_active[0], dual.largest[0] = len(rows), np.float32(np.inf)
        return float(bias)

    return solve


solve = solver(margin_of_row, add_row)
