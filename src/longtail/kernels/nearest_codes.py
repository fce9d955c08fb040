"""Which of many vectors are nearest to some, by products in seven bits a number.

A key holds a similarity, a whole number of `longtail.kernels.byte_codes`, above what makes the
smaller of two row numbers the larger key: so lists of candidates are falling lists of numbers.
Lists begin at their second place; see `insert_key`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.best_keys import (
    GROUPS_A_KEY,
    HIGHEST,
    LOWEST,
    BestKeys,
    cut_full,
    empty_best_keys,
    least_of_groups,
    write_best,
)
from longtail.kernels.byte_codes import (
    N_AT_ONCE,
    N_MASKED,
    ByteCodes,
    ByteQueries,
    at_least,
    lowest_bit,
    new_queries,
    products_of_range,
    write_query,
)
from longtail.kernels.jit import kernel, lean_kernel, over_row_chunks
from longtail.kernels.lanes import KEYS_AT_ONCE
from longtail.kernels.tile_products import (
    MOST_TILED,
    N_TILED,
    begin_tiles,
    end_tiles,
    has_tiles,
    products_of_tiles,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Keys = NDArray[np.int64]
    Starts = NDArray[np.int64]

__all__ = [
    "LOWEST",
    "empty_keys",
    "join_clusters",
    "key_of",
    "nearest_keys",
    "nearest_rows",
    "row_of",
    "rows_in",
    "similarity_in",
]

_BITS, _LAST = np.int64(32), np.int64((1 << 31) - 1)
# Rows that are compared with as many others as a run holds, and then these products are looked at.
_ROWS_AT_ONCE, _RUN = 16, 1024
# Rows that one thread takes, and that share one reading of the others: those of millions are far
# from the processor. Few are shared out, too.
_CHUNK = 64


def empty_keys(n_rows: int, capacity: int) -> Keys:
    """Return empty lists for at least so many keys each, (n_rows, 1 + a multiple of eight)."""
    keys = np.full((n_rows, 1 + -(-capacity // KEYS_AT_ONCE) * KEYS_AT_ONCE), LOWEST)
    keys[:, 0] = HIGHEST
    return keys


def nearest_keys(
    vectors: ByteCodes, others: ByteCodes, n_wanted: int, n_threads: int, first: int = 0
) -> Keys:
    """Return lists of the nearest of `others` to each row from `first` on; see `nearest_rows`."""
    n_rows = len(vectors.factors) - first
    keys = empty_keys(n_rows, n_wanted)

    def work(start: int, stop: int) -> None:
        nearest_rows(vectors, first + start, first + stop, others, keys[start:stop], has_tiles())

    over_row_chunks(work, n_rows, n_threads=n_threads, chunk=_CHUNK)
    return keys


@lean_kernel
def key_of(similarity: int, row: int) -> np.int64:
    """Return the key of a row."""
    return np.int64(similarity) << _BITS | (_LAST - np.int64(row))


@kernel
def row_of(key: Any) -> Any:
    """Return the row that a key is of, or the rows of an array of keys."""
    return _LAST - (key & _LAST)


def rows_in(keys: Keys) -> Ids:
    """Return the rows that keys are of, -1 for `LOWEST`."""
    return np.where(keys != LOWEST, row_of(keys), -1).astype(np.int32)


@kernel
def similarity_in(key: Any) -> Any:
    """Return the similarity that a key holds, or those of an array of keys."""
    return key >> _BITS


class _Panel(NamedTuple):
    """Scratch: queries, some of them, their products, and these in blocks of sixty-four.

    ``by_tiles`` tells how products are made, and ``tiles_before`` is for `begin_tiles`.
    """

    queries: ByteQueries
    some: Ids
    products: Ids
    blocks: Ids
    by_tiles: bool
    tiles_before: NDArray[np.uint8]


@kernel
def _new_panel(n_queries: int, width: int, shape: tuple[int, int], by_tiles: bool) -> _Panel:
    """Return scratch for so many queries, and products of a shape; at first, `some` is all."""
    some = np.empty(n_queries + N_AT_ONCE, np.int32)
    for place in range(len(some)):
        some[place] = min(place, n_queries - 1)
    products = np.empty(shape, np.int32)
    queries, by_tiles = new_queries(n_queries, width), by_tiles and width <= MOST_TILED
    blocks, tiles_before = products.reshape(-1, N_MASKED), np.zeros(64, np.uint8)
    return _Panel(queries, some, products, blocks, by_tiles, tiles_before)


@lean_kernel
def _multiply(
    panel: _Panel, i: int, vectors: ByteCodes, start: int, stop: int, products: Ids
) -> None:
    """Write the products of four of some queries, from the i-th on, with consecutive rows."""
    if panel.by_tiles and stop - start >= N_TILED:
        products_of_tiles(panel.queries, panel.some, i, vectors, start, stop, products)
    else:
        products_of_range(panel.queries, panel.some, i, vectors, start, stop, products)


@lean_kernel
def _write_queries(vectors: ByteCodes, start: int, n_queries: int, panel: _Panel) -> None:
    """Write consecutive rows as queries."""
    for i in range(n_queries):
        write_query(vectors, start + i, panel.queries, i)


@lean_kernel
def _offer_block(
    panel: _Panel,
    block: int,
    first: int,
    n: int,
    lists: BestKeys,
    which: int,
    n_wanted: int,
    itself: int,
) -> None:
    """Offer `n` rows from the `first` on, whose products are a block, to a list.

    The row `itself` is left out.
    """
    size, least = lists.sizes[which], lists.least[which]
    n_behind = np.uint64(N_MASKED - n)
    mask = at_least(panel.blocks, block, np.int32(similarity_in(least))) << n_behind >> n_behind
    if mask == np.uint64(0):
        return  # as most often
    while mask != np.uint64(0):
        j = lowest_bit(mask)
        mask &= mask - np.uint64(1)
        key = key_of(panel.blocks[block, j], first + j)
        lists.keys[which, size] = key
        size += 1 if key > least and first + j != itself else 0
    lists.sizes[which] = size
    cut_full(lists, which, n_wanted)


@lean_kernel
def _offer_cluster(
    panel: _Panel,
    n_some: int,
    vectors: ByteCodes,
    start: int,
    stop: int,
    lists: BestKeys,
    n_wanted: int,
    itself: int,
) -> None:
    """Offer consecutive rows to the lists of some queries.

    Row ``itself + i`` is query i itself, and left out.
    """
    for first in range(start, stop, N_MASKED):
        end = min(first + N_MASKED, stop)
        for i in range(0, n_some, N_AT_ONCE):
            _multiply(panel, i, vectors, first, end, panel.products)
            for place in range(i, min(i + N_AT_ONCE, n_some)):
                query = panel.some[place]
                _offer_block(
                    panel, place - i, first, end - first, lists, query, n_wanted, itself + query
                )


@lean_kernel
def _offer_run(
    panel: _Panel,
    row: int,
    n_rows: int,
    others: ByteCodes,
    start: int,
    lists: BestKeys,
    groups: Keys,
) -> None:
    """Offer a run of rows to the lists of some queries, from the `row`-th on."""
    stop, n_wanted = min(start + _RUN, len(others.factors)), len(groups) // GROUPS_A_KEY
    for i in range(0, n_rows, N_AT_ONCE):
        _multiply(panel, row + i, others, start, stop, panel.products[i : i + N_AT_ONCE])
    for i in range(n_rows):
        if start == 0:  # a bound of what is wanted, before a key is written down
            least = least_of_groups(panel.products[i, : stop - start], n_wanted, groups)
            lists.least[row + i] = (least << _BITS) - 1
        for first in range(start, stop, N_MASKED):
            block = i * (_RUN // N_MASKED) + (first - start) // N_MASKED
            n = min(N_MASKED, stop - first)
            _offer_block(panel, block, first, n, lists, row + i, n_wanted, -1)


@kernel
def nearest_rows(
    vectors: ByteCodes, start: int, stop: int, others: ByteCodes, keys: Keys, by_tiles: bool
) -> None:
    """Find the nearest of `others` to each row from `start` to `stop`.

    Parameters
    ----------
    vectors, others : ByteCodes
    start, stop : int
    keys : int64 (stop - start, 1 + n_wanted)
        Written: see `empty_keys`.
    by_tiles : bool
        Only if `has_tiles`; what is found is the same.
    """
    shape, width = (_ROWS_AT_ONCE, _RUN), vectors.codes.shape[1]
    n_at_once, n_wanted = min(stop - start, _CHUNK), keys.shape[1] - 1
    panel = _new_panel(n_at_once, width, shape, by_tiles)
    if panel.by_tiles:
        begin_tiles(panel.tiles_before)
    lists = empty_best_keys(n_at_once, n_wanted, N_MASKED)
    groups = np.empty(GROUPS_A_KEY * n_wanted, np.int64)
    for first in range(start, stop, _CHUNK):
        n_rows = min(_CHUNK, stop - first)
        _write_queries(vectors, first, n_rows, panel)
        for begin in range(0, len(others.factors), _RUN):
            for row in range(0, n_rows, _ROWS_AT_ONCE):
                n_some = min(_ROWS_AT_ONCE, n_rows - row)
                _offer_run(panel, row, n_some, others, begin, lists, groups)
        for i in range(n_rows):
            write_best(lists, i, keys[first - start + i])
    if panel.by_tiles:
        end_tiles(panel.tiles_before)


class _Links(NamedTuple):
    """Scratch: for each cluster the first of a chain of queries, and how the chains go on."""

    heads: Ids
    following: Ids
    clusters: Ids


@kernel
def _new_links(n_clusters: int, n_links: int) -> _Links:
    """Return empty chains."""
    heads = np.full(n_clusters, np.int32(-1), np.int32)
    return _Links(heads, np.empty(n_links, np.int32), np.empty(n_links, np.int32))


@lean_kernel
def _link_probes(probes: Keys, n_queries: int, links: _Links) -> int:
    """Chain the queries that are compared with the same cluster; return how many clusters."""
    n_probes, n_clusters = probes.shape[1] - 1, 0
    for rank in range(n_probes):  # nearest first: then the others find few that are nearer
        for query in range(n_queries):
            key = probes[query, 1 + rank]
            if key == LOWEST:
                continue
            cluster = row_of(key)
            if links.heads[cluster] < 0:
                links.clusters[n_clusters] = cluster
                n_clusters += 1
            links.following[query * n_probes + rank] = links.heads[cluster]
            links.heads[cluster] = query * n_probes + rank
    return n_clusters


@lean_kernel
def _take_chain(cluster: int, n_probes: int, links: _Links, some: Ids) -> int:
    """Write the queries of a chain, empty it, and return how many there are."""
    n_some, link = 0, links.heads[cluster]
    while link >= 0:
        some[n_some] = link // n_probes
        n_some += 1
        link = links.following[link]
    some[n_some : n_some + N_AT_ONCE - 1] = some[0]
    links.heads[cluster] = -1
    return n_some


@kernel
def join_clusters(
    vectors: ByteCodes, starts: Starts, probes: Keys, first: int, keys: Keys, by_tiles: bool
) -> None:
    """Find the nearest to each of consecutive rows in some clusters, itself left out.

    Parameters
    ----------
    vectors : ByteCodes
    starts : int64 (n_clusters + 1,)
        Cluster c is the rows ``starts[c]`` to ``starts[c + 1]``.
    probes : int64 (n_rows, 1 + n_probes)
        Lists of the clusters that each row is compared with.
    first : int
        The first of the rows.
    keys : int64 (n_rows, 1 + n_wanted)
        Written: see `empty_keys`.
    by_tiles : bool
        See `nearest_rows`.

    Notes
    -----
    Rows side by side are compared with much the same clusters, and share the reading of them: the
    more rows, the more.
    """
    n_rows, n_probes, n_wanted = len(keys), probes.shape[1] - 1, keys.shape[1] - 1
    shape, width = (N_AT_ONCE, N_MASKED), vectors.codes.shape[1]
    panel = _new_panel(n_rows, width, shape, by_tiles)
    if panel.by_tiles:
        begin_tiles(panel.tiles_before)
    lists = empty_best_keys(n_rows, n_wanted, N_MASKED)
    links = _new_links(len(starts) - 1, n_rows * n_probes)
    _write_queries(vectors, first, n_rows, panel)
    for place in range(_link_probes(probes, n_rows, links)):
        cluster = links.clusters[place]
        n_some = _take_chain(cluster, n_probes, links, panel.some)
        start, stop = starts[cluster], starts[cluster + 1]
        _offer_cluster(panel, n_some, vectors, start, stop, lists, n_wanted, first)
    if panel.by_tiles:
        end_tiles(panel.tiles_before)
    for i in range(n_rows):
        write_best(lists, i, keys[i])
