"""Layers of small networks, one row at a time: a row is the same whatever batch it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.exact import products_of_four
from longtail.kernels.jit import fast_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["affine_rows", "convolve_texts"]


@kernel
def affine_rows(
    rows: NDArray[np.float32],
    matrix: NDArray[np.float32],
    bias: NDArray[np.float32],
    start: int,
    stop: int,
    out: NDArray[np.float32],
) -> None:
    """Write ``out[i, j] = matrix[j] . rows[i] + bias[j]`` for some rows.

    Parameters
    ----------
    rows : float32 (n, dimension), C order
    matrix, bias : float32 (n_outputs, dimension), C order, and (n_outputs,)
    start, stop : int
        The rows to compute.
    out : float32 (n, n_outputs)
    """
    n_outputs = matrix.shape[0]
    products = np.empty((4, n_outputs + 3), np.float32)
    for i in range(start, stop, 4):
        four = i, min(i + 1, stop - 1), min(i + 2, stop - 1), min(i + 3, stop - 1)
        products_of_four(rows, four, matrix, 0, n_outputs, products)
        for row in range(i, min(i + 4, stop)):
            out[row] = products[row - i, :n_outputs] + bias


@fast_kernel
def _windows_2x4(
    flat: NDArray[np.float32], at0: int, at1: int, filters: NDArray[np.float32], j: int
) -> tuple[np.float32, ...]:
    """Return the products of two stretches of `flat` with four filters, kept in registers."""
    last = filters.shape[0] - 1
    j1, j2, j3 = min(j + 1, last), min(j + 2, last), min(j + 3, last)
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = np.float32(0)
    for t in range(filters.shape[1]):
        a0, a1 = flat[at0 + t], flat[at1 + t]
        b0, b1, b2, b3 = filters[j, t], filters[j1, t], filters[j2, t], filters[j3, t]
        s00 += a0 * b0
        s01 += a0 * b1
        s02 += a0 * b2
        s03 += a0 * b3
        s10 += a1 * b0
        s11 += a1 * b1
        s12 += a1 * b2
        s13 += a1 * b3
    return s00, s01, s02, s03, s10, s11, s12, s13


@kernel
def _keep_largest(
    value: np.float32, place: int, n_places: int, n_chunks: int, largest: NDArray[np.float32]
) -> None:
    """Take a value into the maxima of the chunks, which may overlap, that its place is in."""
    for chunk in range(n_chunks):
        first = chunk * n_places // n_chunks
        after = -(-(chunk + 1) * n_places // n_chunks)
        if first <= place < after:
            largest[chunk] = max(largest[chunk], value)


@kernel
def _convolve(
    matrix: NDArray[np.float32],
    filters: NDArray[np.float32],
    bias: NDArray[np.float32],
    n_chunks: int,
    pooled: NDArray[np.float32],
) -> None:
    """Slide filters down the rows of a matrix; write the maxima of each chunk, not below 0."""
    n_filters, n_columns = filters.shape[0], matrix.shape[1]
    flat = matrix.reshape(-1)
    n_places = matrix.shape[0] - filters.shape[1] // n_columns + 1
    pooled[:] = 0
    for i in range(0, n_places, 2):
        second = min(i + 1, n_places - 1)
        for j in range(0, n_filters, 4):
            tile = _windows_2x4(flat, i * n_columns, second * n_columns, filters, j)
            for t in range(8):
                place, f = i + t // 4, j + t % 4
                if place < n_places and f < n_filters:
                    largest = pooled[f * n_chunks : (f + 1) * n_chunks]
                    _keep_largest(tile[t] + bias[f], place, n_places, n_chunks, largest)


@kernel
def convolve_texts(
    words: NDArray[np.int32],
    vectors: NDArray[np.float32],
    filters: NDArray[np.float32],
    bias: NDArray[np.float32],
    n_chunks: int,
    n_words: int,
    start: int,
    stop: int,
    pooled: NDArray[np.float32],
) -> None:
    """Write ``max over a chunk of ReLU(filter . window + bias)`` for some texts.

    Along the words a text with n words has n windows, words beyond its ends being zeros; along the
    embedding there is one for each place of a word's vector.

    Parameters
    ----------
    words : int32 (n, length)
        The words of each text, padded with -1.
    vectors : float32 (n_tokens, dimension)
    filters, bias : float32 (n_filters, width * dimension) and (n_filters,)
        Filters along the words; ``(n_filters, width * n_words)`` along the embedding.
    n_chunks : int
    n_words : int
        Words that filters along the embedding see; 0 for filters along the words.
    start, stop : int
        The texts to compute.
    pooled : float32 (n, n_filters * n_chunks)
        Out: all chunks of one filter, then those of the next.
    """
    dimension = vectors.shape[1]
    for i in range(start, stop):
        n = 0
        while n < words.shape[1] and words[i, n] >= 0:
            n += 1
        if n == 0:
            pooled[i] = 0
        elif n_words > 0:
            across = np.zeros((dimension, n_words), np.float32)
            for place in range(n):
                across[:, place] = vectors[words[i, place]]
            _convolve(across, filters, bias, n_chunks, pooled[i])
        else:
            width = filters.shape[1] // dimension
            along = np.zeros((n + width - 1, dimension), np.float32)
            for place in range(n):
                along[place + (width - 1) // 2] = vectors[words[i, place]]
            _convolve(along, filters, bias, n_chunks, pooled[i])
