"""The network that blends the scores of a point's candidates, one vector of candidates at a time.

The same numbers as `longtail.kernels.blend`, to rounding, laid out with candidates side by side: a
processor then weighs sixteen of them in one instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.blend import FAR_BEHIND, LARGEST_VIEW, N_VIEWS
from longtail.kernels.exponential import fast_exp
from longtail.kernels.instructions import LANES
from longtail.kernels.jit import fast_lean_kernel, lean_kernel
from longtail.kernels.lanes import dense_layer, falling_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["Network", "NetworkScratch", "blend_candidates"]


class Network(NamedTuple):
    """See `longtail.blend.score_network.ScoreNetwork`; the matrices have outputs first."""

    centre: Floats
    scale: Floats
    matrix1: Floats
    bias1: Floats
    matrix2: Floats
    bias2: Floats
    last: Floats
    level: Floats
    brevity: Floats
    for_order: Floats
    log_ranks: Floats


class NetworkScratch(NamedTuple):
    """Scratch of one thread, all of `size` columns: a multiple of 16 that holds any candidates."""

    views: Floats
    hidden1: Floats
    hidden2: Floats
    ranks: Ids
    log_ranks: Floats


@fast_lean_kernel
def _sum_of_exponents(values: Floats, n: int, best: np.float32) -> np.float32:
    """Return the sum of e to the power of each value behind the best."""
    total = np.float32(0)
    for c in range(n):
        total += fast_exp(max(values[c] - best, FAR_BEHIND))
    return total


@fast_lean_kernel
def _put_view(
    values: Floats, n: int, less: np.float32, v: int, network: Network, views: Floats
) -> None:
    """Write a view of all candidates, `less` taken away, and centred, scaled and cut."""
    centre, scale = less + network.centre[v], network.scale[v]
    for c in range(n):
        views[v, c] = min(max((values[c] - centre) * scale, -LARGEST_VIEW), LARGEST_VIEW)


@fast_lean_kernel
def _put_same(value: np.float32, n: int, v: int, network: Network, views: Floats) -> None:
    """Write a view that all candidates share."""
    shared = (value - network.centre[v]) * network.scale[v]
    shared = min(max(shared, -LARGEST_VIEW), LARGEST_VIEW)
    for c in range(n):
        views[v, c] = shared


@fast_lean_kernel
def _largest(values: Floats, n: int) -> np.float32:
    """Return the largest of the first `n`."""
    largest = np.float32(values[0])
    for c in range(1, n):
        largest = max(largest, values[c])
    return largest


@lean_kernel
def _view_source(
    values: Floats, n: int, first: int, network: Network, scratch: NetworkScratch
) -> None:
    """Write the five views of a source; see `longtail.kernels.blend.view_evidence`."""
    best, views = _largest(values, n), scratch.views
    spread = np.log(_sum_of_exponents(values, n, best))
    falling_ranks(values, n, scratch.ranks)
    for c in range(n):
        scratch.log_ranks[c] = network.log_ranks[scratch.ranks[c]]
    _put_view(values, n, np.float32(0), first, network, views)
    _put_view(values, n, best, first + 1, network, views)
    _put_same(best, n, first + 2, network, views)
    _put_view(scratch.log_ranks, n, np.float32(0), first + 3, network, views)
    _put_same(spread, n, first + 4, network, views)


@lean_kernel
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
    n_sources, views = len(evidence), scratch.views
    for s in range(n_sources):
        _view_source(evidence[s], n, N_VIEWS * s, network, scratch)
    context = N_VIEWS * n_sources
    most = _largest(commonness, n)
    _put_view(commonness, n, np.float32(0), context, network, views)
    _put_view(commonness, n, most, context + 1, network, views)
    _put_same(nearness, n, context + 2, network, views)
    n_padded = (n + LANES - 1) // LANES * LANES
    for view in views:
        view[n:n_padded] = 0
    n_blocks = n_padded // LANES
    dense_layer(network.matrix1, network.bias1, views, scratch.hidden1, n_blocks)
    dense_layer(network.matrix2, network.bias2, scratch.hidden1, scratch.hidden2, n_blocks)
    scores[:n] = 0
    for h in range(len(network.last)):
        for c in range(n):
            scores[c] += scratch.hidden2[h, c] * network.last[h]
    level = network.level[0]
    if level != 0:
        best = _largest(scores, n)
        total = best + np.log(_sum_of_exponents(scores, n, best))
        for c in range(n):
            scores[c] -= level * total
