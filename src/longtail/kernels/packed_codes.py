"""Vectors in four bits a number, for searches that score again what they find.

A step apart for all rows of a table, sixteen values a number, two numbers a byte: an inner product
of 256 numbers reads two cache lines. A byte holds number ``t`` of its block of 128 and number
``t + 64``, so that halves of bytes become vectors of bytes without being moved. A row ends with
half a block where that is enough: its bytes hold numbers ``t`` and ``t + 32`` of 64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic

from longtail.kernels.byte_products import add_small_products, sums_of_each
from longtail.kernels.instructions import (
    LANES,
    LINE,
    first_lanes,
    has,
    in_lanes,
    load,
    looping,
    store,
)
from longtail.kernels.jit import fast_lean_kernel, lean_kernel, over_row_chunks
from longtail.kernels.prefetch import fetch_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Packed = NDArray[np.uint8]

__all__ = [
    "BLOCK",
    "HALF_BLOCK",
    "MIDDLE",
    "level_of",
    "pack_rows",
    "packed_products",
    "packed_width",
    "put_codes",
    "sum_packed",
    "unpacked_rows",
    "write_packed_codes",
]

BLOCK = LINE  # bytes
HALF_BLOCK = BLOCK // 2
MIDDLE = np.float32(7.5)
_LARGEST = np.float32(2.7)  # standard deviations: what is beyond is cut
_BYTE, _NUMBER, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BYTES = ir.VectorType(_BYTE, BLOCK)
_AHEAD = 8  # rows
_MOST_SUMMED = 5 * HALF_BLOCK  # bytes of each row, whose sums fill twenty registers
_MOST_IN_SHORT = 2 * HALF_BLOCK  # of half the length, of which there are half as many
_AT_ONCE = 4  # rows that one read of the query is multiplied with
_UNPACKED_AT_ONCE = 4096  # rows
_PACKED_AT_ONCE = 65_536  # rows, of whose vectors there may be a copy for so long


def packed_width(dimension: int) -> int:
    """Return how many bytes a row takes: whole half blocks; a query has twice as many numbers."""
    return -(-dimension // BLOCK) * HALF_BLOCK


def pack_rows(
    vectors: Floats,
    n_threads: int = 1,
    step: Floats | None = None,
    kept: Callable[[slice], Floats] | None = None,
) -> tuple[Packed, Floats]:
    """Return the codes of all rows, uint8 (n_rows, packed_width(d)), and the step (1,) float32.

    Each row is on cache lines of its own.

    Parameters
    ----------
    vectors : float32 (n_rows, d)
    n_threads : int
        The codes do not depend on it.
    step : float32 (1,) or None
        Between two codes; None, or a step of 0, for what fits the vectors.
    kept : callable or None
        What the vectors of some rows are as they are kept, of which codes are made in their place:
        so they are the same if they are made once more, of what is kept and with the same step.
    """
    shape = len(vectors), packed_width(vectors.shape[1])
    room = np.zeros(shape[0] * shape[1] + BLOCK, np.uint8)
    first = -room.ctypes.data % BLOCK
    codes = room[first : first + shape[0] * shape[1]].reshape(shape)
    if step is None or not step[0] > 0:
        step = np.array([_LARGEST * _deviation(vectors, n_threads) / MIDDLE], np.float32)
    inverse = np.float32(1 / step[0] if step[0] > 0 else 0)
    read = vectors.__getitem__ if kept is None else kept
    for first in range(0, len(vectors), _PACKED_AT_ONCE):
        some = slice(first, min(first + _PACKED_AT_ONCE, len(vectors)))
        _write_some(read(some), inverse, codes[some], n_threads)
    return codes, step


def _write_some(vectors: Floats, inverse: np.float32, codes: Packed, n_threads: int) -> None:
    """Write the codes of some rows."""
    over_row_chunks(
        lambda start, stop: write_packed_codes(vectors, start, stop, inverse, codes),
        len(vectors),
        n_threads=n_threads,
    )


def _deviation(vectors: Floats, n_threads: int) -> np.float64:
    """Return the standard deviation of all numbers, taken to be around 0."""
    squares = np.zeros(len(vectors))
    over_row_chunks(
        lambda start, stop: sum_squares(vectors, start, stop, squares),
        len(vectors),
        n_threads=n_threads,
    )
    return np.float64(np.sqrt(squares.sum() / max(vectors.size, 1)))


def unpacked_rows(codes: Packed, step: Floats, dimension: int) -> Floats:
    """Return the vectors (n_rows, dimension) that codes stand for."""
    n_whole = codes.shape[1] // BLOCK * BLOCK
    vectors = np.empty((len(codes), dimension), np.float32)
    for start in range(0, len(codes), _UNPACKED_AT_ONCE):  # what is between stays in the cache
        some = codes[start : start + _UNPACKED_AT_ONCE]
        parts = [_levels(some[:, :n_whole], BLOCK), _levels(some[:, n_whole:], HALF_BLOCK)]
        levels = np.concatenate(parts, axis=1)[:, :dimension].astype(np.float32)
        steps = step[start : start + _UNPACKED_AT_ONCE] if len(step) > 1 else step
        vectors[start : start + _UNPACKED_AT_ONCE] = (levels - MIDDLE) * steps
    return vectors


def _levels(codes: Packed, size: int) -> Packed:
    """Return the numbers of whole blocks of a size, in order."""
    blocks = codes.reshape(len(codes), codes.shape[1] // size, 1, size)
    levels = np.concatenate([blocks & 15, blocks >> 4], axis=2)
    return levels.reshape(len(codes), 2 * codes.shape[1])  # there may be no rows


@lean_kernel
def level_of(value: np.float32, inverse: np.float32) -> np.float32:
    """Return the nearest of sixteen levels, in steps of which `inverse` is 1 over the size."""
    level = np.rint(value * inverse + MIDDLE)
    return min(max(level, np.float32(0)), np.float32(15))


@lean_kernel
def put_codes(vector: Floats, inverse: np.float32, row: Packed) -> None:
    """Write the levels of a vector, two numbers a byte; see `level_of`."""
    row[:] = 0
    for first in range(0, len(row), BLOCK):
        size, place = min(BLOCK, len(row) - first), 2 * first
        n_left = len(vector) - place
        for i in range(min(size, n_left)):
            row[first + i] = np.uint8(level_of(vector[place + i], inverse))
        for i in range(min(size, n_left - size)):
            level = level_of(vector[place + size + i], inverse)
            row[first + i] |= np.uint8(level) << np.uint8(4)


@fast_lean_kernel
def sum_squares(vectors: Floats, start: int, stop: int, squares: NDArray[np.float64]) -> None:
    """Write the squared lengths of the rows from `start` to `stop`."""
    for row in range(start, stop):
        total = 0.0
        for t in range(vectors.shape[1]):
            total += vectors[row, t] * vectors[row, t]
        squares[row] = total


@lean_kernel
def write_packed_codes(
    vectors: Floats, start: int, stop: int, inverse: np.float32, codes: Packed
) -> None:
    """Write the codes of the rows from `start` to `stop`; see `put_codes`."""
    for row in range(start, stop):
        put_codes(vectors[row], inverse, codes[row])


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def packed_products(_: Any, query: Any, codes: Any, rows: Any, n_rows: Any, products: Any) -> Any:
    """Write the inner products of a query with some rows of codes, four at a time.

    Every code counts 7.5 too much, which adds the same to the product with any row.

    Parameters
    ----------
    query : int8 (2 * width,)
        See `longtail.kernels.rows.quantise`; zeros behind the vector.
    codes : uint8 (n_rows, width)
    rows : int32 (at least n_rows,)
    n_rows : int
        How many of `rows` are looked at.
    products : int32 (at least `n_rows` rounded up to a multiple of four,)
        Written.

    Notes
    -----
    Written out, since the compiler sees no vectors in a loop over halves of bytes.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        own, table, listed, target = (
            context.make_array(signature.args[i])(context, builder, arguments[i])
            for i in (0, 1, 2, 4)
        )
        width = cgutils.unpack_tuple(builder, table.shape)[1]
        end = context.cast(builder, arguments[3], signature.args[3], types.intp)
        last = builder.sub(end, _LONG(1))
        query_bytes, codes_bytes = (
            builder.bitcast(array.data, _BYTE.as_pointer()) for array in (own, table)
        )
        with cgutils.for_range_slice(builder, _LONG(0), end, _LONG(_AT_ONCE)) as (j, _count):
            starts = []
            for i in range(_AT_ONCE):
                place = builder.add(j, _LONG(i))
                place = builder.select(builder.icmp_signed("<", place, last), place, last)
                row = builder.zext(builder.load(builder.gep(listed.data, [place])), _LONG)
                starts.append(builder.gep(codes_bytes, [builder.mul(row, width)]))
            sums = _products_of_rows(context, builder, query_bytes, starts, width)
            store(builder, sums, builder.gep(target.data, [j]))
        return context.get_dummy_value()

    return types.void(query, codes, rows, n_rows, products), generate


def _products_of_rows(context: Any, builder: Any, query: Any, starts: list[Any], width: Any) -> Any:
    """Return the inner products of a query with the four rows that begin somewhere."""
    step = _LONG(BLOCK)
    n_whole = builder.udiv(width, step)
    zeros = ir.Constant(ir.VectorType(_NUMBER, LANES), None)
    totals = [cgutils.alloca_once_value(builder, zeros) for _ in starts]
    with cgutils.for_range(builder, n_whole) as loop:
        at = builder.mul(loop.index, step)
        first = builder.add(at, at)
        places = [builder.add(first, _LONG(k)) for k in (0, BLOCK)]
        mine = [load(builder, builder.gep(query, [place]), _BYTES) for place in places]
        for start, total in zip(starts, totals, strict=True):
            halves = _both_halves(builder, start, at, BLOCK)
            more = add_small_products(context, builder, builder.load(total), halves, mine)
            builder.store(more, total)
    behind = builder.mul(n_whole, step)
    with builder.if_then(builder.icmp_unsigned("<", behind, width)):
        own = load(builder, builder.gep(query, [builder.add(behind, behind)]), _BYTES)
        for start, total in zip(starts, totals, strict=True):
            levels = [_unpacked_half(builder, start, behind)]
            more = add_small_products(context, builder, builder.load(total), levels, [own])
            builder.store(more, total)
    return sums_of_each(builder, [builder.load(total) for total in totals])


def _unpacked_half(builder: Any, start: Any, at: Any) -> Any:
    """Load half a block, and return its numbers as a block of bytes."""
    kind = ir.VectorType(_BYTE, HALF_BLOCK)
    both = load(builder, builder.gep(start, [at]), kind)
    low = builder.and_(both, ir.Constant(kind, [15] * HALF_BLOCK))
    high = builder.lshr(both, ir.Constant(kind, [4] * HALF_BLOCK))
    every = ir.Constant(ir.VectorType(_NUMBER, BLOCK), list(range(BLOCK)))
    return builder.shuffle_vector(low, high, every)


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def sum_packed(_: Any, table: Any, columns: Any, values: Any, scales: Any, total: Any) -> Any:
    """Write the weighted sum of some rows of codes that have a scale each.

    Parameters
    ----------
    table : uint8 (n_rows, width)
    columns, values : int32, float32 (n,)
        Rows, and what each is multiplied with.
    scales : float32 (n_rows,)
    total : float32 (d,)
        Written; d is at most twice the width.

    Notes
    -----
    All sums of 320 numbers stay in registers; see also `packed_products`.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [
            context.make_array(kind)(context, builder, argument)
            for kind, argument in zip(signature.args, arguments, strict=True)
        ]
        width = cgutils.unpack_tuple(builder, arrays[0].shape)[1]
        first = cgutils.alloca_once_value(builder, _LONG(0))
        most = _MOST_SUMMED if has(context, "avx512f") else _MOST_IN_SHORT
        at_once = most // BLOCK * BLOCK
        with looping(builder, lambda: _is_more(builder, width, first, most)):
            _sum_part(builder, arrays, builder.load(first), at_once)
            builder.store(builder.add(builder.load(first), _LONG(at_once)), first)
        n_left = builder.sub(width, builder.load(first))
        for n_bytes in range(HALF_BLOCK, most + 1, HALF_BLOCK):
            with builder.if_then(builder.icmp_signed("==", n_left, _LONG(n_bytes))):
                _sum_part(builder, arrays, builder.load(first), n_bytes)
        return context.get_dummy_value()

    return types.void(table, columns, values, scales, total), generate


def _is_more(builder: Any, width: Any, first: Any, most: int) -> Any:
    """Tell whether more bytes of a row are left than can be summed at once."""
    n_left = builder.sub(width, builder.load(first))
    return builder.icmp_signed(">", n_left, _LONG(most))


def _sum_part(builder: Any, arrays: list[Any], first: Any, n_bytes: int) -> None:
    """Write the sums of some bytes of all rows, from a byte on."""
    table, columns, values, scales, total = arrays
    n_rows = cgutils.unpack_tuple(builder, columns.shape)[0]
    width = cgutils.unpack_tuple(builder, table.shape)[1]
    codes = builder.gep(builder.bitcast(table.data, _BYTE.as_pointer()), [first])
    floats = ir.VectorType(ir.FloatType(), LANES)
    zeros = ir.Constant(floats, None)
    sums = [cgutils.alloca_once_value(builder, zeros) for _ in range(2 * n_bytes // LANES)]
    of_weights = cgutils.alloca_once_value(builder, ir.FloatType()(0.0))

    def row_at(place: Any) -> Any:
        return builder.sext(builder.load(builder.gep(columns.data, [place])), width.type)

    with cgutils.for_range(builder, n_rows) as loop:
        coming = builder.add(loop.index, _LONG(_AHEAD))
        with builder.if_then(builder.icmp_signed("<", coming, n_rows)):
            there = builder.gep(codes, [builder.mul(row_at(coming), width)])
            for offset in (*range(0, n_bytes, BLOCK), n_bytes - 1):
                fetch_line(builder, builder.gep(there, [_LONG(offset)]))
        row = row_at(loop.index)
        weight = builder.fmul(
            builder.load(builder.gep(values.data, [loop.index])),
            builder.load(builder.gep(scales.data, [row])),
        )
        builder.store(builder.fadd(builder.load(of_weights), weight), of_weights)
        weights = in_lanes(builder, weight, floats)
        numbers = _numbers_of(builder, codes, builder.mul(row, width), n_bytes)
        for one, some in zip(sums, numbers, strict=True):
            product = builder.fmul(weights, some, flags=("contract",))
            builder.store(builder.fadd(builder.load(one), product, flags=("contract",)), one)
    too_much = builder.fmul(builder.load(of_weights), ir.FloatType()(float(MIDDLE)))
    too_much = in_lanes(builder, too_much, floats)
    for k, one in enumerate(sums):
        place = builder.add(builder.add(first, first), _LONG(k * LANES))
        _store_within(builder, builder.fsub(builder.load(one), too_much), total, place)


def _numbers_of(builder: Any, codes: Any, at: Any, n_bytes: int) -> list[Any]:
    """Return the numbers of some bytes, sixteen at a time."""
    blocks = []
    for first in range(0, n_bytes, BLOCK):
        size = min(BLOCK, n_bytes - first)
        blocks += _both_halves(builder, codes, builder.add(at, _LONG(first)), size)
    floats = ir.VectorType(ir.FloatType(), LANES)
    numbers = []
    for block in blocks:
        for begin in range(0, BLOCK, LANES):
            which = ir.Constant(ir.VectorType(_NUMBER, LANES), list(range(begin, begin + LANES)))
            some = builder.shuffle_vector(block, block, which)
            wide = builder.zext(some, ir.VectorType(_NUMBER, LANES))
            numbers.append(builder.sitofp(wide, floats))
    return numbers


def _store_within(builder: Any, numbers: Any, array: Any, place: Any) -> None:
    """Store numbers side by side, as far as the array goes."""
    size = cgutils.unpack_tuple(builder, array.shape)[0]
    n_left = builder.trunc(builder.sub(size, place), _NUMBER)
    mask = first_lanes(builder, n_left, LANES)
    there = builder.gep(array.data, [place])
    there = builder.bitcast(there, numbers.type.as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [numbers.type, there.type, _NUMBER, mask.type])
    name = f"llvm.masked.store.v{LANES}f32.p0"
    store = cgutils.get_or_insert_function(builder.module, kind, name)
    builder.call(store, [numbers, there, _NUMBER(4), mask])


def _both_halves(builder: Any, codes: Any, at: Any, n_bytes: int) -> list[Any]:
    """Return the numbers of a block, or of half a block, as blocks of bytes."""
    if n_bytes == HALF_BLOCK:
        return [_unpacked_half(builder, codes, at)]
    both = load(builder, builder.gep(codes, [at]), _BYTES)
    low = builder.and_(both, ir.Constant(_BYTES, [15] * BLOCK))
    return [low, builder.lshr(both, ir.Constant(_BYTES, [4] * BLOCK))]
