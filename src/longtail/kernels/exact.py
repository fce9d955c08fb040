"""Exact top-k inner products, and the blocked products that all index kernels share.

A similarity is always summed in one order, whatever the tile it falls into: ragged edges repeat
the last row instead of taking another code path. So a row alone and in a batch agree to the bit,
which BLAS does not promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import fast_kernel, kernel, lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["dot", "dots_1x4", "exact_topk", "insert_sorted", "products_of_four"]

_QUERY_BLOCK = 32
_VECTOR_BLOCK = 64


@fast_kernel
def dot(a: NDArray[np.float32], b: NDArray[np.float32]) -> np.float32:
    """Return the inner product of two vectors."""
    total = np.float32(0)
    for t in range(a.shape[0]):
        total += a[t] * b[t]
    return total


@fast_kernel
def dots_1x4(
    query: NDArray[np.float32], vectors: NDArray[np.float32], j0: int, j1: int, j2: int, j3: int
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """Return the inner products of `query` with four rows: four reads from memory under way."""
    s0 = s1 = s2 = s3 = np.float32(0)
    for t in range(query.shape[0]):
        a = query[t]
        s0 += a * vectors[j0, t]
        s1 += a * vectors[j1, t]
        s2 += a * vectors[j2, t]
        s3 += a * vectors[j3, t]
    return s0, s1, s2, s3


@fast_kernel
def _dots_4x4(
    queries: NDArray[np.float32],
    i: tuple[int, int, int, int],
    vectors: NDArray[np.float32],
    j: int,
    products: NDArray[np.float32],
    at: int,
) -> None:
    """Write a 4 x 4 tile of the product into the columns from `at` on of `products` (4, any)."""
    last = vectors.shape[0] - 1
    i0, i1, i2, i3 = i
    j1, j2, j3 = min(j + 1, last), min(j + 2, last), min(j + 3, last)
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = np.float32(0)
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = np.float32(0)
    for t in range(queries.shape[1]):
        a0, a1, a2, a3 = queries[i0, t], queries[i1, t], queries[i2, t], queries[i3, t]
        b0, b1, b2, b3 = vectors[j, t], vectors[j1, t], vectors[j2, t], vectors[j3, t]
        s00 += a0 * b0
        s01 += a0 * b1
        s02 += a0 * b2
        s03 += a0 * b3
        s10 += a1 * b0
        s11 += a1 * b1
        s12 += a1 * b2
        s13 += a1 * b3
        s20 += a2 * b0
        s21 += a2 * b1
        s22 += a2 * b2
        s23 += a2 * b3
        s30 += a3 * b0
        s31 += a3 * b1
        s32 += a3 * b2
        s33 += a3 * b3
    products[0, at], products[0, at + 1] = s00, s01
    products[0, at + 2], products[0, at + 3] = s02, s03
    products[1, at], products[1, at + 1] = s10, s11
    products[1, at + 2], products[1, at + 3] = s12, s13
    products[2, at], products[2, at + 1] = s20, s21
    products[2, at + 2], products[2, at + 3] = s22, s23
    products[3, at], products[3, at + 1] = s30, s31
    products[3, at + 2], products[3, at + 3] = s32, s33


@kernel
def products_of_four(
    queries: NDArray[np.float32],
    i: tuple[int, int, int, int],
    vectors: NDArray[np.float32],
    first: int,
    last: int,
    products: NDArray[np.float32],
) -> None:
    """Fill ``products[:, :last - first]`` (4, at least 3 more) for four queries and some vectors.

    To look at the products in a loop of its own is faster than tile by tile.
    """
    for j in range(first, last, 4):
        _dots_4x4(queries, i, vectors, j, products, j - first)


@lean_kernel
def insert_sorted(
    ids: NDArray[np.int32],
    similarities: NDArray[np.float32],
    size: int,
    new: int,
    value: np.float32,
) -> int:
    """Insert into a descending list (ties by smaller id); return the place, -1 if it falls off.

    The list holds `size` entries and has room for ``len(ids)``; the worst falls off a full one.
    """
    place = size
    while place > 0:
        here = similarities[place - 1]
        if here > value or (here == value and ids[place - 1] < new):
            break
        place -= 1
        if place + 1 < len(ids):
            ids[place + 1] = ids[place]
            similarities[place + 1] = here
    if place == len(ids):
        return -1
    ids[place] = new
    similarities[place] = value
    return place


@kernel
def _is_worse(value: np.float32, row: int, other: np.float32, other_row: int) -> bool:
    """Order of the heap: a lower similarity is worse, then a larger id."""
    return bool(value < other or (value == other and row > other_row))


@kernel
def _sink(ids: NDArray[np.int32], similarities: NDArray[np.float32], size: int) -> None:
    """Let the root of a heap whose root is the worst entry sink to its place."""
    row, value, place = ids[0], similarities[0], 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        right = child + 1
        if right < size and _is_worse(
            similarities[right], ids[right], similarities[child], ids[child]
        ):
            child = right
        if not _is_worse(similarities[child], ids[child], value, row):
            break
        ids[place], similarities[place] = ids[child], similarities[child]
        place = child
    ids[place], similarities[place] = row, value


@kernel
def _sort_heap(ids: NDArray[np.int32], similarities: NDArray[np.float32]) -> None:
    """Turn the heap into a descending list, by taking the worst to the end again and again."""
    for last in range(len(ids) - 1, 0, -1):
        ids[0], ids[last] = ids[last], ids[0]
        similarities[0], similarities[last] = similarities[last], similarities[0]
        _sink(ids, similarities, last)


@kernel
def _offer_block(
    queries: NDArray[np.float32],
    first: int,
    after: int,
    vectors: NDArray[np.float32],
    bias: NDArray[np.float32],
    block: int,
    ids: NDArray[np.int32],
    similarities: NDArray[np.float32],
) -> None:
    """Offer one block of vectors to the heaps of the queries `first` to `after` (exclusive)."""
    block_end = min(block + _VECTOR_BLOCK, vectors.shape[0])
    products = np.empty((4, _VECTOR_BLOCK + 3), np.float32)
    for i in range(first, after, 4):
        four = i, min(i + 1, after - 1), min(i + 2, after - 1), min(i + 3, after - 1)
        products_of_four(queries, four, vectors, block, block_end, products)
        for row in range(i, min(i + 4, after)):
            for j in range(block_end - block if len(bias) else 0):
                products[row - i, j] += bias[block + j]
            worst = similarities[row, 0]
            for j in range(block_end - block):
                if products[row - i, j] > worst:
                    ids[row, 0], similarities[row, 0] = block + j, products[row - i, j]
                    _sink(ids[row], similarities[row], ids.shape[1])
                    worst = similarities[row, 0]


@kernel
def exact_topk(
    queries: NDArray[np.float32],
    vectors: NDArray[np.float32],
    bias: NDArray[np.float32],
    start: int,
    stop: int,
    ids: NDArray[np.int32],
    similarities: NDArray[np.float32],
) -> None:
    """Fill rows `start` to `stop` of `ids` and `similarities` with the k largest inner products.

    Parameters
    ----------
    queries : float32 (n_queries, d), C order
    vectors : float32 (n_vectors, d), C order
    bias : float32 (n_vectors,) or (0,)
        Is added to the inner products with each vector, if there is any.
    start, stop : int
        The rows of `queries` to answer.
    ids : int32 (n_queries, k)
        Out: vector ids, best first, ties by smaller id, padded with -1.
    similarities : float32 (n_queries, k)
        Out: the inner products, padded with -inf.
    """
    ids[start:stop] = -1
    similarities[start:stop] = -np.inf
    for first in range(start, stop, _QUERY_BLOCK):
        after = min(first + _QUERY_BLOCK, stop)
        for block in range(0, vectors.shape[0], _VECTOR_BLOCK):
            _offer_block(queries, first, after, vectors, bias, block, ids, similarities)
    for row in range(start, stop):
        _sort_heap(ids[row], similarities[row])
