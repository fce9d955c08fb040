"""A bidirectional LSTM over the words of a text, and labels that each look at its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.exact import dot
from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["AttentionWeights", "score_candidates"]


class AttentionWeights(NamedTuple):
    """What a level of AttentionXML has learnt; D is a word's dimension, H that of a direction.

    Attributes
    ----------
    words : float32 (n_tokens, D)
    inputs : float32 (2, 4 H, D)
        Of the gates, forwards and then backwards: input, forget, cell, output.
    states : float32 (2, 4 H, H)
    gates : float32 (2, 4 H)
        Their biases.
    labels : float32 (n_nodes, 2 H)
        What each node looks for.
    hidden, hidden_bias : float32 (F, 2 H), (F,)
        The layer that all nodes share.
    output : float32 (F + 1,)
        From it, or from the second one, to a logit, and the bias behind.
    second, second_bias : float32 (G, F), (G,)
        A second layer that all nodes share; G is 0 where there is none.
    """

    words: Floats
    inputs: Floats
    states: Floats
    gates: Floats
    labels: Floats
    hidden: Floats
    hidden_bias: Floats
    output: Floats
    second: Floats
    second_bias: Floats


@kernel
def _sigmoid(x: np.float32) -> np.float32:
    """Return 1 / (1 + exp(-x)), without overflow."""
    value: np.float32 = np.float32(0.5) + np.float32(0.5) * np.tanh(np.float32(0.5) * x)
    return value


@kernel
def _run_lstm(
    sequence: Floats, inputs: Floats, states: Floats, gates: Floats, first: int, out: Floats
) -> None:
    """Write the hidden states of one direction, which starts at the word `first`."""
    n_words, size = len(sequence), states.shape[1]
    step = 1 if first == 0 else -1
    hidden, cell = np.zeros(size, np.float32), np.zeros(size, np.float32)
    sums = np.empty(4 * size, np.float32)
    for t in range(n_words):
        place = first + step * t
        for g in range(4 * size):
            sums[g] = gates[g] + dot(inputs[g], sequence[place]) + dot(states[g], hidden)
        for j in range(size):
            kept = _sigmoid(sums[size + j]) * cell[j]
            cell[j] = kept + _sigmoid(sums[j]) * np.tanh(sums[2 * size + j])
            hidden[j] = _sigmoid(sums[3 * size + j]) * np.tanh(cell[j])
        out[place] = hidden


@kernel
def _logit(
    label: Floats,
    states: Floats,
    projected: Floats,
    weights: AttentionWeights,
    share: Floats,
    hidden: Floats,
) -> np.float32:
    """Return what a node says of a text: softmax over words, shared layers, ReLU, output.

    To which is added how well the words fit what it looks for, ``sum_t a_t (h_t . w_l)``.
    """
    n_words = len(states)
    largest = np.float32(-np.inf)
    for t in range(n_words):
        share[t] = dot(label, states[t])
        largest = max(largest, share[t])
    total, fits = np.float32(0), np.float32(0)
    for t in range(n_words):
        fit = share[t]
        share[t] = np.exp(fit - largest)
        total += share[t]
        fits += share[t] * fit
    bias, output = weights.hidden_bias, weights.output
    logit: np.float32 = output[-1] + fits / total
    for f in range(len(bias)):
        value = np.float32(0)
        for t in range(n_words):
            value += share[t] * projected[t, f]
        hidden[f] = max(value / total + bias[f], np.float32(0))
    if len(weights.second) == 0:
        for f in range(len(bias)):
            logit += output[f] * hidden[f]
    for g in range(len(weights.second)):
        value = dot(weights.second[g], hidden) + weights.second_bias[g]
        logit += output[g] * max(value, np.float32(0))
    return logit


@kernel
def score_candidates(
    words: NDArray[np.int32],
    weights: AttentionWeights,
    candidates: NDArray[np.int32],
    start: int,
    stop: int,
    out: Floats,
) -> None:
    """Write the probabilities of the candidates of some texts.

    Parameters
    ----------
    words : int32 (n, n_words)
        Padded with -1.
    weights : AttentionWeights
    candidates : int32 (n, n_candidates)
        Nodes; padded with -1.
    start, stop : int
        The texts to compute.
    out : float32 (n, n_candidates)
        -inf where there is no candidate, or no word.
    """
    size, n_hidden = weights.states.shape[2], len(weights.hidden)
    for i in range(start, stop):
        n_words = 0
        while n_words < words.shape[1] and words[i, n_words] >= 0:
            n_words += 1
        out[i] = -np.inf
        if n_words == 0:
            continue
        sequence = np.empty((n_words, weights.words.shape[1]), np.float32)
        for t in range(n_words):
            sequence[t] = weights.words[words[i, t]]
        states = np.empty((n_words, 2 * size), np.float32)
        for d in range(2):
            own = states[:, d * size : (d + 1) * size]
            first = 0 if d == 0 else n_words - 1
            _run_lstm(sequence, weights.inputs[d], weights.states[d], weights.gates[d], first, own)
        # The shared layer is linear up to its ReLU: once a word, not once a candidate and word.
        projected = np.empty((n_words, n_hidden), np.float32)
        for t in range(n_words):
            for f in range(n_hidden):
                projected[t, f] = dot(weights.hidden[f], states[t])
        share, hidden = np.empty(n_words, np.float32), np.empty(n_hidden, np.float32)
        for c in range(candidates.shape[1]):
            if candidates[i, c] >= 0:
                label = weights.labels[candidates[i, c]]
                logit = _logit(label, states, projected, weights, share, hidden)
                out[i, c] = _sigmoid(logit)
