"""The network that blends the scores of a point's candidates, one vector of candidates at a time.

The same numbers as `longtail.kernels.blend`, to rounding, laid out with candidates side by side: a
processor then weighs sixteen of them in one instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.blend import FAR_BEHIND, LARGEST_VIEW, N_VIEWS
from longtail.kernels.jit import fast_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["Network", "NetworkScratch", "blend_candidates"]


class Network(NamedTuple):
    """See `longtail.classifiers.score_network.ScoreNetwork`; the matrices have outputs first."""

    centre: Floats
    scale: Floats
    matrix1: Floats
    bias1: Floats
    matrix2: Floats
    bias2: Floats
    last: Floats
    log_ranks: Floats


class NetworkScratch(NamedTuple):
    """Scratch of one thread, all of `size` columns: a multiple of 16 that holds any candidates."""

    views: Floats
    hidden1: Floats
    hidden2: Floats
    ranks: Floats


@fast_kernel
def _write_ranks(values: Floats, n: int, ranks: Floats) -> None:
    """Write the place of each of `n` in falling order, of equal ones in their own order.

    Each is compared with all, a vector of sixteen at once: fewer steps than a sort, and none that
    has to be foreseen. What is written behind the first `n` means nothing.
    """
    size = (n + 15) // 16 * 16
    for c in range(size):
        ranks[c] = 0
    for j in range(n):
        other = values[j]
        for c in range(size):
            value = values[c]
            ranks[c] += np.float32((other > value) | ((other == value) & (j < c)))


@kernel
def _view_source(
    values: Floats, n: int, first: int, network: Network, scratch: NetworkScratch
) -> None:
    """Write the five views of a source; see `longtail.kernels.blend.view_evidence`."""
    best = values[0]
    for c in range(1, n):
        best = max(best, values[c])
    total = np.float32(0)
    for c in range(n):
        total += np.exp(max(values[c] - best, FAR_BEHIND))
    spread = np.log(total)
    ranks = scratch.ranks
    _write_ranks(values, n, ranks)
    views = scratch.views
    for c in range(n):
        views[first, c] = values[c]
        views[first + 1, c] = values[c] - best
        views[first + 2, c] = best
        views[first + 3, c] = network.log_ranks[np.int64(ranks[c])]
        views[first + 4, c] = spread


@fast_kernel
def _normalise(network: Network, n_padded: int, views: Floats) -> None:
    """Centre, scale and cut the views."""
    for v in range(len(network.centre)):
        centre, scale = network.centre[v], network.scale[v]
        for c in range(n_padded):
            value = (views[v, c] - centre) * scale
            views[v, c] = min(max(value, -LARGEST_VIEW), LARGEST_VIEW)


@fast_kernel
def _layer(inputs: Floats, n_padded: int, matrix: Floats, bias: Floats, outputs: Floats) -> None:
    """Write ``ReLU(matrix . inputs + bias)``, four inputs at a time."""
    n_inputs = matrix.shape[1]
    for h in range(len(bias)):
        for c in range(n_padded):
            outputs[h, c] = bias[h]
        v = 0
        while v + 4 <= n_inputs:
            m0, m1, m2, m3 = matrix[h, v], matrix[h, v + 1], matrix[h, v + 2], matrix[h, v + 3]
            for c in range(n_padded):
                outputs[h, c] += (m0 * inputs[v, c] + m1 * inputs[v + 1, c]) + (
                    m2 * inputs[v + 2, c] + m3 * inputs[v + 3, c]
                )
            v += 4
        while v < n_inputs:
            m0 = matrix[h, v]
            for c in range(n_padded):
                outputs[h, c] += m0 * inputs[v, c]
            v += 1
        for c in range(n_padded):
            outputs[h, c] = max(outputs[h, c], np.float32(0))


@kernel
def blend_candidates(
    evidence: Floats,
    n: int,
    commonness: Floats,
    nearness: np.float32,
    network: Network,
    scratch: NetworkScratch,
    scores: Floats,
) -> None:
    """Write the score of each of one point's candidates.

    Parameters
    ----------
    evidence : float32 (n_sources, size)
    n : int
        Candidates, at least 1.
    commonness : float32 (size,)
        Of each candidate.
    nearness : float
        Similarity of the nearest training point.
    network : Network
    scratch : NetworkScratch
    scores : float32 (size,)
        Written up to `n`.
    """
    n_sources = len(evidence)
    for s in range(n_sources):
        _view_source(evidence[s], n, N_VIEWS * s, network, scratch)
    context = N_VIEWS * n_sources
    most = commonness[:n].max()
    for c in range(n):
        scratch.views[context, c] = commonness[c]
        scratch.views[context + 1, c] = commonness[c] - most
        scratch.views[context + 2, c] = nearness
    n_padded = (n + 15) // 16 * 16
    scratch.views[:, n:n_padded] = 0
    _normalise(network, n_padded, scratch.views)
    _layer(scratch.views, n_padded, network.matrix1, network.bias1, scratch.hidden1)
    _layer(scratch.hidden1, n_padded, network.matrix2, network.bias2, scratch.hidden2)
    scores[:n] = 0
    for h in range(len(network.last)):
        for c in range(n):
            scores[c] += scratch.hidden2[h, c] * network.last[h]
