"""The bundle-entropy method: exact inference in an energy that is convex in the labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.energy import EnergyLayers, PointTerms, energy_and_gradient
from longtail.kernels.jit import fast_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["bundle_rows"]

MOST_EXCHANGES = 40  # of weight between two cuts, a round
SECANTS = 8
LEAST_SLOPE = 1e-5


@fast_kernel
def bundle_rows(
    terms: PointTerms,
    layers: EnergyLayers,
    n_rounds: int,
    tolerance: np.float32,
    start: int,
    stop: int,
    states: Floats,
    trace: Floats,
) -> None:
    """Minimise E(y) - H(y), E convex, and write the logits of y into `states` (n, size).

    (Amos, Xu and Kolter, 2017, section 4.2.) Each round adds the tangent plane of E at y to a
    bundle, whose maximum lies below E, and minimises that maximum less the entropy. Its dual has
    one weight a plane: y = sigmoid(-G^T w), w >= 0, sum of w = 1. The rounds of a point end once
    the bundle is within `tolerance` of E at y. `trace` is as in `descend_rows`, (n, n_rounds + 1).
    """
    size = terms.labels.shape[1]
    sums = np.empty((terms.offsets.shape[1] + 2, terms.offsets.shape[2]), np.float32)
    relaxed, slopes = np.empty(size, np.float32), np.empty((n_rounds, size), np.float32)
    heights, weights = np.empty(n_rounds, np.float32), np.empty(n_rounds, np.float32)
    for i in range(start, stop):
        ids, state = terms.labels[i], states[i]
        state[:] = np.float32(0)
        _relax(state, relaxed, ids)
        for t in range(n_rounds):
            energy = energy_and_gradient(i, relaxed, terms, layers, sums, slopes[t])
            heights[t], weights[t] = energy, np.float32(0)
            for j in range(size):
                if ids[j] < 0:
                    slopes[t, j] = np.float32(0)
                heights[t] -= slopes[t, j] * relaxed[j]
            if trace.shape[1]:
                trace[i, t:] = energy - _entropy_of(relaxed, ids)
            if t == 0:
                weights[0] = np.float32(1)
                for j in range(size):
                    state[j] = -slopes[0, j]
            elif energy - _highest(relaxed, slopes, heights, t) <= tolerance:
                break
            else:
                _reweigh(state, relaxed, ids, slopes, heights, weights, t + 1)
            _relax(state, relaxed, ids)
        if trace.shape[1]:
            energy = energy_and_gradient(i, relaxed, terms, layers, sums, slopes[n_rounds - 1])
            trace[i, t + 1 :] = energy - _entropy_of(relaxed, ids)


@fast_kernel
def _relax(state: Floats, relaxed: Floats, ids: NDArray[np.int32]) -> None:
    """Write the sigmoid of each label's logit; 0 for padding."""
    for j in range(len(ids)):
        x = min(max(state[j], np.float32(-80)), np.float32(80))
        relaxed[j] = np.float32(1) / (np.float32(1) + np.exp(-x)) if ids[j] >= 0 else np.float32(0)


@fast_kernel
def _entropy_of(relaxed: Floats, ids: NDArray[np.int32]) -> np.float32:
    """Return the entropy of independent labels."""
    entropy = np.float32(0)
    for j in range(len(ids)):
        y = relaxed[j]
        if ids[j] >= 0 and np.float32(0) < y < np.float32(1):
            entropy -= y * np.log(y) + (np.float32(1) - y) * np.log(np.float32(1) - y)
    return entropy


@fast_kernel
def _height(relaxed: Floats, slope: Floats, height: np.float32) -> np.float32:
    """Return the value of one plane."""
    total = height
    for j in range(len(relaxed)):
        total += slope[j] * relaxed[j]
    return total


@fast_kernel
def _highest(relaxed: Floats, slopes: Floats, heights: Floats, n_planes: int) -> np.float32:
    """Return the value of the bundle."""
    highest = _height(relaxed, slopes[0], heights[0])
    for p in range(1, n_planes):
        highest = max(highest, _height(relaxed, slopes[p], heights[p]))
    return highest


@fast_kernel
def _reweigh(
    state: Floats,
    relaxed: Floats,
    ids: NDArray[np.int32],
    slopes: Floats,
    heights: Floats,
    weights: Floats,
    n_planes: int,
) -> None:
    """Move weight from the lowest plane that has some to the highest, until they are level.

    The slope of the dual along a plane's weight is the plane's height at y.
    """
    for _ in range(MOST_EXCHANGES):
        _relax(state, relaxed, ids)
        highest, lowest, best, worst = np.float32(-1e30), np.float32(1e30), 0, 0
        for p in range(n_planes):
            value = _height(relaxed, slopes[p], heights[p])
            if value > highest:
                highest, best = value, p
            if weights[p] > 0 and value < lowest:
                lowest, worst = value, p
        if highest - lowest <= np.float32(LEAST_SLOPE) * (np.float32(1) + abs(highest)):
            return
        moved = _exchange(state, ids, slopes, heights, best, worst, weights[worst])
        weights[best] += moved
        weights[worst] = max(weights[worst] - moved, np.float32(0))
        for j in range(len(state)):
            state[j] -= moved * (slopes[best, j] - slopes[worst, j])


@fast_kernel
def _exchange(
    state: Floats,
    ids: NDArray[np.int32],
    slopes: Floats,
    heights: Floats,
    best: int,
    worst: int,
    most: np.float32,
) -> np.float32:
    """Return how much weight, up to `most`, levels two planes: secants between two brackets."""
    low, high = np.float32(0), most
    at_low = _lead(state, ids, slopes, heights, best, worst, low)
    at_high = _lead(state, ids, slopes, heights, best, worst, high)
    if at_high >= 0:
        return high
    for _ in range(SECANTS):
        middle = low + (high - low) * at_low / (at_low - at_high)
        lead = _lead(state, ids, slopes, heights, best, worst, middle)
        if lead >= 0:
            low, at_low = middle, lead
            at_high *= np.float32(0.5)  # the Illinois rule: neither bracket stays for good
        else:
            high, at_high = middle, lead
            at_low *= np.float32(0.5)
    half: np.float32 = np.float32(0.5) * (low + high)
    return half


@fast_kernel
def _lead(
    state: Floats,
    ids: NDArray[np.int32],
    slopes: Floats,
    heights: Floats,
    best: int,
    worst: int,
    moved: np.float32,
) -> np.float32:
    """Return how far one plane is above another once some weight is moved."""
    lead = heights[best] - heights[worst]
    for j in range(len(ids)):
        if ids[j] < 0:
            continue
        apart = slopes[best, j] - slopes[worst, j]
        x = min(max(state[j] - moved * apart, np.float32(-80)), np.float32(80))
        lead += apart / (np.float32(1) + np.exp(-x))
    total: np.float32 = lead
    return total
