"""Inference in an energy over a point's labels, by gradients written by hand; one row at a time."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.jit import fast_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["EnergyLayers", "Moves", "PointTerms", "descend_rows", "energy_and_gradient"]


class Moves(IntEnum):
    """What the steps of an inference move; see `longtail.energy.descent`."""

    ENTROPY = 0
    LOGIT = 1
    PROJECTED = 2


ENTROPY, LOGIT, PROJECTED = int(Moves.ENTROPY), int(Moves.LOGIT), int(Moves.PROJECTED)


class EnergyLayers(NamedTuple):
    """What all points share.

    Attributes
    ----------
    label_vectors : float32 (n_layers, n_labels, n_hidden)
    couplings : float32 (n_layers - 1, n_hidden, n_hidden)
    """

    label_vectors: Floats
    couplings: Floats


class PointTerms(NamedTuple):
    """What each point has of its own; see `longtail.energy.terms.EnergyTerms`.

    Attributes
    ----------
    labels : int32 (n, size)
        The point's labels as rows of `EnergyLayers.label_vectors`, padded with -1.
    unaries : float32 (n, size)
        Of padding they do not matter.
    offsets, path_gates : float32 (n, n_layers, n_hidden)
    label_gates : float32 (n, n_layers, size), or (n, 0, size)
        The second stands for ones.
    """

    labels: NDArray[np.int32]
    unaries: Floats
    offsets: Floats
    path_gates: Floats
    label_gates: Floats


@fast_kernel
def _softplus(x: np.float32) -> np.float32:
    """Return log(1 + exp(x))."""
    value: np.float32 = max(x, np.float32(0)) + np.log1p(np.exp(-abs(x)))
    return value


@fast_kernel
def _sigmoid(x: np.float32) -> np.float32:
    """Return 1 / (1 + exp(-x)), without overflow."""
    odds = np.exp(-abs(x))
    small = odds / (np.float32(1) + odds)
    share: np.float32 = np.float32(1) - small if x >= 0 else small
    return share


@fast_kernel
def energy_and_gradient(
    point: int,
    relaxed: Floats,
    terms: PointTerms,
    layers: EnergyLayers,
    sums: Floats,
    gradient: Floats,
) -> np.float32:
    """Return E(y) of one point's relaxed labels (size,), and write its gradient (size,).

    `sums` is scratch (n_layers + 2, n_hidden).
    """
    ids, unaries = terms.labels[point], terms.unaries[point]
    path_gates = terms.path_gates[point]
    n_layers, n_hidden = path_gates.shape
    upper, slope = sums[n_layers], sums[n_layers + 1]
    for k in range(n_layers):
        _add_up(point, k, relaxed, terms, layers, sums)
    energy = _energy(ids, relaxed, unaries, path_gates[n_layers - 1], sums[n_layers - 1])
    for j in range(len(ids)):
        gradient[j] = -unaries[j]
    for h in range(n_hidden):
        upper[h] = path_gates[n_layers - 1, h]
    for k in range(n_layers - 1, -1, -1):
        for h in range(n_hidden):
            slope[h] = upper[h] * _sigmoid(sums[k, h])
        _go_down(point, k, slope, terms, layers, gradient)
        if k > 0:
            for g in range(n_hidden):
                above = np.float32(0)
                for h in range(n_hidden):
                    above += slope[h] * layers.couplings[k - 1, g, h]
                upper[g] = above * path_gates[k - 1, g]
    return energy


@fast_kernel
def _energy(
    ids: NDArray[np.int32], relaxed: Floats, unaries: Floats, gates: Floats, top: Floats
) -> np.float32:
    """Return the energy of the labels, given the sums inside the softplus of the top layer."""
    energy = np.float32(0)
    for j in range(len(ids)):
        if ids[j] >= 0:
            energy -= relaxed[j] * unaries[j]
    for h in range(len(top)):
        energy += gates[h] * _softplus(top[h])
    return energy


@fast_kernel
def _add_up(
    point: int, k: int, relaxed: Floats, terms: PointTerms, layers: EnergyLayers, sums: Floats
) -> None:
    """Write the sums inside the softplus of layer k, given those of the layer below."""
    ids, gates, total = terms.labels[point], terms.label_gates[point], sums[k]
    n_hidden = terms.offsets.shape[2]
    for h in range(n_hidden):
        total[h] = terms.offsets[point, k, h]
    for j in range(len(ids)):
        if ids[j] >= 0:
            weight = relaxed[j] * gates[k, j] if len(gates) else relaxed[j]
            vector = layers.label_vectors[k, ids[j]]
            for h in range(n_hidden):
                total[h] += weight * vector[h]
    if k > 0:
        for g in range(n_hidden):
            below = _softplus(sums[k - 1, g]) * terms.path_gates[point, k - 1, g]
            for h in range(n_hidden):
                total[h] += below * layers.couplings[k - 1, g, h]


@fast_kernel
def _go_down(
    point: int, k: int, slope: Floats, terms: PointTerms, layers: EnergyLayers, gradient: Floats
) -> None:
    """Add what the labels' gradient gets through layer k."""
    ids, gates = terms.labels[point], terms.label_gates[point]
    for j in range(len(ids)):
        if ids[j] >= 0:
            vector = layers.label_vectors[k, ids[j]]
            down = np.float32(0)
            for h in range(len(slope)):
                down += slope[h] * vector[h]
            gradient[j] += down * gates[k, j] if len(gates) else down


@fast_kernel
def _relaxed(state: np.float32, moves: int) -> np.float32:
    """Return the label in [0, 1] that a state stands for."""
    if moves == PROJECTED:
        return min(max(state, np.float32(0)), np.float32(1))
    return _sigmoid(state)


@fast_kernel
def _step(
    ids: NDArray[np.int32],
    state: Floats,
    relaxed: Floats,
    gradient: Floats,
    move: Floats,
    step: np.float32,
    momentum: np.float32,
    moves: int,
) -> np.float32:
    """Move the states of a point's labels, and return how far the farthest label went."""
    furthest = np.float32(0)
    for j in range(len(ids)):
        if ids[j] < 0:
            continue
        y, base, against = relaxed[j], state[j], gradient[j]
        if moves == ENTROPY:
            against += base
        elif moves == LOGIT:
            against *= y * (np.float32(1) - y)
        else:
            base = y
        move[j] = momentum * move[j] - step * against
        state[j] = base + move[j]
        relaxed[j] = _relaxed(state[j], moves)
        furthest = max(furthest, abs(relaxed[j] - y))
    return furthest


@fast_kernel
def descend_rows(
    terms: PointTerms,
    layers: EnergyLayers,
    n_steps: int,
    step: np.float32,
    momentum: np.float32,
    tolerance: np.float32,
    moves: int,
    start: int,
    stop: int,
    states: Floats,
    trace: Floats,
) -> None:
    """Write the state of each label after the last step into `states` (n, size).

    The steps of a point end early once none of its labels has moved by `tolerance`.
    `trace` is (n, n_steps + 1) for the energies before and after each step, less the entropy of the
    labels where the steps see it, or (n, 0).
    """
    size, n_hidden = terms.labels.shape[1], terms.offsets.shape[2]
    sums = np.empty((terms.offsets.shape[1] + 2, n_hidden), np.float32)
    relaxed, gradient = np.empty(size, np.float32), np.empty(size, np.float32)
    move = np.empty(size, np.float32)
    for i in range(start, stop):
        for j in range(size):
            unary, move[j] = terms.unaries[i, j], np.float32(0)
            states[i, j] = _sigmoid(unary) if moves == PROJECTED else unary
            relaxed[j] = _relaxed(states[i, j], moves)
        for t in range(n_steps):
            energy = energy_and_gradient(i, relaxed, terms, layers, sums, gradient)
            if trace.shape[1]:
                trace[i, t:] = energy - _entropy(relaxed, terms.labels[i], moves)
            furthest = _step(
                terms.labels[i], states[i], relaxed, gradient, move, step, momentum, moves
            )
            if furthest < tolerance:
                break
        if trace.shape[1]:
            energy = energy_and_gradient(i, relaxed, terms, layers, sums, gradient)
            trace[i, t + 1 :] = energy - _entropy(relaxed, terms.labels[i], moves)


@fast_kernel
def _entropy(relaxed: Floats, ids: NDArray[np.int32], moves: int) -> np.float32:
    """Return the entropy of independent labels, or 0 where the steps do not see it."""
    entropy = np.float32(0)
    if moves == ENTROPY:
        for j in range(len(ids)):
            y = relaxed[j]
            if ids[j] >= 0 and np.float32(0) < y < np.float32(1):
                entropy -= y * np.log(y) + (np.float32(1) - y) * np.log(np.float32(1) - y)
    return entropy
