"""A neighbour graph over 4-bit codes, and the scratch of those who walk it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.arrays import read_only
from longtail.kernels.instructions import LANES
from longtail.kernels.jit import lean_kernel
from longtail.kernels.lanes import KEYS_AT_ONCE
from longtail.kernels.packed_ids import N_SPARE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.rows import Rows

    Packed = NDArray[np.uint8]
    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Keys = NDArray[np.int64]

__all__ = [
    "AT_ONCE",
    "HIGHEST_KEY",
    "IS_OPEN",
    "KEY_BITS",
    "LAST_NODE",
    "LOWEST_KEY",
    "NODE_BITS",
    "NO_BIAS",
    "NO_CODES",
    "CodedGraph",
    "Walk",
    "n_edges",
    "new_keys",
    "new_walk",
]

NO_BIAS, NO_CODES = read_only(np.zeros(0), np.float32), read_only(np.zeros((0, 0)), np.uint8)
# A key of a beam: a similarity in whole numbers, above a node, above whether it is still open.
KEY_BITS, NODE_BITS = np.int64(32), np.int64(1)  # below the similarity, and below the node
IS_OPEN = np.int64(1)  # the last bit: a node keeps its place when it is closed
LAST_NODE = np.int64((1 << 31) - 1)
LOWEST_KEY, HIGHEST_KEY = np.int64(-(1 << 62)), np.int64(1 << 62)  # of no node
AT_ONCE = 2  # nodes whose edges are followed together: waits for memory overlap


class CodedGraph(NamedTuple):
    """A neighbour graph with codes; see `longtail.index.graph.GraphIndex` for the rest.

    ``codes`` is (n_nodes, width) uint8, and ``step`` (1,) what lies between two of them, see
    `longtail.kernels.packed_codes`. ``rows`` holds the vectors themselves; without any,
    similarities are those of the codes. ``neighbours`` are as many ids a node, of `pack_ids`. An
    index without edges is scanned: its entries are all. ``bias`` is what each node adds to its
    similarity, (n_nodes,) float32, or (0,) for nothing.

    ``entry_codes`` and ``entry_bias`` are those of the entries once more, side by side, for every
    walk without starts looks at all of them; (0, 0) and (0,) where the entries are all nodes.
    """

    codes: Packed
    step: Floats
    rows: Rows
    neighbours: Packed
    entries: Ids
    member_starts: Ids
    members: Ids
    bias: Floats = NO_BIAS
    entry_codes: Packed = NO_CODES
    entry_bias: Floats = NO_BIAS


class Walk(NamedTuple):
    """Scratch of one thread: which nodes were seen under which stamp, and the beam.

    ``stamps`` is (n_nodes + 1,), zeros at first; its last element counts the walks. ``fresh`` and
    ``coming`` have room for what is looked at together, ``products`` for what comes of it, and
    ``keys`` for the beam, see `insert_key`. ``log`` begins with how many keys follow: those of all
    nodes compared, but for entries that do not come into the beam, as far as there is room.
    """

    stamps: Ids
    fresh: Ids
    coming: Ids
    products: Ids
    keys: Keys
    log: Keys


def new_walk(graph: CodedGraph, beam: int, n_starts: int = 0, n_logged: int = 0) -> Walk:
    """Return scratch for walks of a graph, from at most so many starts.

    The beam is rounded up to a multiple of eight. `n_logged` nodes are remembered, for a walk that
    goes on with a longer beam.
    """
    n_fresh = max(AT_ONCE * n_edges(graph), len(graph.entries) + n_starts, 1)
    n_fresh = -(-n_fresh // LANES) * LANES + LANES  # what is written behind them is no node
    return Walk(
        np.zeros(len(graph.codes) + 1, np.int32),
        np.zeros(n_fresh, np.int32),
        np.zeros(n_fresh, np.int32),
        np.zeros(n_fresh, np.int32),
        new_keys(beam),
        np.zeros(1 + n_logged, np.int64),
    )


def new_keys(beam: int) -> Keys:
    """Return room for the keys of a beam."""
    return np.empty(-(-beam // KEYS_AT_ONCE) * KEYS_AT_ONCE + 1, np.int64)


@lean_kernel
def n_edges(graph: CodedGraph) -> int:
    """Return how many edges each node has room for."""
    return (len(graph.neighbours) - N_SPARE) // max(len(graph.codes), 1)
