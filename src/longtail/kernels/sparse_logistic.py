"""Logistic regression with few weights (an L1 penalty), for two groups of sparse points.

Cyclic coordinate descent, a feature at a time, each step held to a region in which the curvature
is bounded, so that it needs no line search: Genkin, Lewis and Madigan, "Large-scale Bayesian
logistic regression for text categorization", Technometrics 2007, sections 3 and 4. After a pass
over all features, further passes see those with a weight alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.jit import fast_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.sparse_points import Points

    Columns = NDArray[np.uint32]
    Floats = NDArray[np.float32]
    Offsets = NDArray[np.int64]

__all__ = ["Regression", "separate"]

_PASSES_OVER_WEIGHTS = 10  # at most, after each pass over all features


class Regression(NamedTuple):
    """The loss, and when it is low enough.

    Attributes
    ----------
    cost : float
        C: what the loss counts against the sizes of the weights.
    tolerance : float
        Stop where the conditions of an optimum are violated by that share of the first violation.
    max_passes : int
        Over all features.
    """

    cost: float
    tolerance: float
    max_passes: int


class _State(NamedTuple):
    """Where the descent stands: of each point its sign, cost, margin and slope of the loss."""

    signs: Floats
    costs: Floats
    margins: Floats
    slopes: Floats


@kernel
def separate(points: Points, signs: Floats, regression: Regression, weights: Floats) -> float:
    """Minimise ``|w|_1 + |b| + sum_i c_i log(1 + exp(-y_i (w . x_i + b)))``.

    The cost c_i is C over the share of the points that have the sign of i, so that both groups
    count alike.

    Parameters
    ----------
    points : Points
    signs : float32 (n_points,)
        y, 1 or -1.
    regression : Regression
    weights : float32 (n_features,)
        Output: w; zero to begin with.

    Returns
    -------
    float
        b.
    """
    starts, rows, values = _by_feature(points, len(signs))
    n_features = points.n_features
    share = np.float32(max((signs > 0).sum(), 1)) / np.float32(len(signs))
    other = np.float32(1) - share + np.float32(1e-6)
    cost = np.float32(regression.cost)
    costs = np.where(signs > 0, cost / share, cost / other).astype(np.float32)
    zeros = np.zeros(len(signs), np.float32)
    state = _State(signs, costs, zeros, (np.float32(-0.5) * signs * costs).astype(np.float32))
    regions = np.ones(n_features + 1, np.float32)
    both = np.zeros(n_features + 1, np.float32)  # w and, last, b
    first = np.float32(0)
    for number in range(regression.max_passes):
        violation = np.float32(0)
        for j in range(n_features, -1, -1):
            own = slice(starts[j], starts[j + 1])
            violation += _descend(rows[own], values[own], state, both, regions, j)
        if number == 0:
            first = violation
        least = np.float32(regression.tolerance) * first
        if violation <= least:
            break
        for _ in range(_PASSES_OVER_WEIGHTS):
            violation = np.float32(0)
            for j in range(n_features, -1, -1):
                if both[j] != 0:
                    own = slice(starts[j], starts[j + 1])
                    violation += _descend(rows[own], values[own], state, both, regions, j)
            if violation <= least:
                break
    weights[:] = both[:-1]
    return float(both[-1])


@kernel
def _by_feature(points: Points, n_points: int) -> tuple[Offsets, Columns, Floats]:
    """Return the points of each feature and its values there; last, a feature of ones for b."""
    n_entries = points.row_starts[n_points]
    starts = np.zeros(points.n_features + 2, np.int64)
    for j in range(n_entries):
        starts[points.columns[j] + np.uint32(1)] += 1
    starts[-1] = n_points
    starts = np.cumsum(starts)
    rows = np.empty(n_entries + n_points, np.uint32)
    values = np.ones(n_entries + n_points, np.float32)
    place = starts.copy()
    for i in range(n_points):
        for j in range(points.row_starts[i], points.row_starts[i + 1]):
            column = points.columns[j]
            rows[place[column]], values[place[column]] = i, points.values[j]
            place[column] += 1
        rows[n_entries + i] = i
    return starts, rows, values


@kernel
def _descend(
    rows: Columns, values: Floats, state: _State, both: Floats, regions: Floats, j: int
) -> np.float32:
    """Take a step along one weight; return by how much it violated the conditions of an optimum."""
    slope = _slope(rows, values, state.slopes)
    weight, one = both[j], np.float32(1)
    if weight == 0:
        violation = abs(slope) - one
        if violation <= 0:
            return np.float32(0)
    else:
        violation = abs(slope + one) if weight > 0 else abs(slope - one)
    curvature = _curvature(rows, values, state, regions[j])
    if slope + one < curvature * weight:
        step = -(slope + one) / curvature
    elif slope - one > curvature * weight:
        step = -(slope - one) / curvature
    else:
        step = -weight
    step = min(max(step, -regions[j]), regions[j])
    regions[j] = max(np.float32(2) * abs(step), regions[j] / np.float32(2))
    if step != 0:
        both[j] = weight + step
        _move(rows, values, step, state)
    return violation


@fast_kernel
def _slope(rows: Columns, values: Floats, slopes: Floats) -> np.float32:
    """Return how the loss changes with the weight."""
    total = np.float32(0)
    for j in range(len(rows)):
        total += values[j] * slopes[rows[j]]
    return total


@kernel
def _curvature(rows: Columns, values: Floats, state: _State, region: np.float32) -> np.float32:
    """Return a bound of the second derivative, wherever the weight goes in its region."""
    total = np.float32(1e-6)
    for j in range(len(rows)):
        i = rows[j]
        beyond = abs(state.margins[i]) - region * abs(values[j])
        bound = np.float32(0.25)
        if beyond > 0:
            size = np.float32(math.exp(beyond))
            bound = np.float32(1) / (np.float32(2) + size + np.float32(1) / size)
        total += values[j] * values[j] * state.costs[i] * bound
    return total


@kernel
def _move(rows: Columns, values: Floats, step: np.float32, state: _State) -> None:
    """Change a weight in the margins of its points, and in the slopes of their losses."""
    for j in range(len(rows)):
        i = rows[j]
        state.margins[i] += step * values[j]
        chance = np.float32(1) / (
            np.float32(1) + np.float32(math.exp(state.signs[i] * state.margins[i]))
        )
        state.slopes[i] = -state.signs[i] * state.costs[i] * chance
