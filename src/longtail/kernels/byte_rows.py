"""Inner products of one vector with rows of eight bits a number, four rows at a time.

The vector is held in fifteen bits, as two numbers of eight: products are exact for them, and what
they miss of the vector is small beside what rows of eight bits miss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic

from longtail.kernels.byte_products import (
    add_products,
    multiplies_pairs,
    pairs_of_shorts,
    picked,
    sixteen_bytes,
    sums_of_each,
)
from longtail.kernels.instructions import LANES, LINE, in_lanes, load, load_first, store
from longtail.kernels.jit import fast_lean_kernel
from longtail.kernels.prefetch import fetch_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["SplitQuery", "products_of_bytes", "split_query", "split_width"]

_AT_ONCE, _AHEAD = 4, 8  # rows
_LARGEST = np.float32(16256)  # 128 times 127: both numbers fit in eight bits
_FIRST_BIT = 128
_BYTE, _INT, _LONG, _FLOAT = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()
_BYTES, _INTS = ir.VectorType(_BYTE, LINE), ir.VectorType(_INT, LANES)
_SHORTS, _EIGHT_INTS = ir.VectorType(ir.IntType(16), LANES), ir.VectorType(_INT, LANES // 2)
_FOUR_INTS, _FOUR_FLOATS = ir.VectorType(_INT, _AT_ONCE), ir.VectorType(_FLOAT, _AT_ONCE)


class SplitQuery(NamedTuple):
    """A vector in two numbers of eight bits a place, ``128 * codes[0] + codes[1]`` times a scale.

    ``codes`` is int8 (2, width); ``excess`` (2,) int32 holds 128 times the sum of each half, and
    ``scale`` (1,) float32.
    """

    codes: NDArray[np.int8]
    excess: NDArray[np.int32]
    scale: Floats


def split_width(dimension: int) -> int:
    """Return how many numbers a half of a query of such a dimension takes: whole cache lines."""
    return -(-dimension // LINE) * LINE


@fast_lean_kernel
def split_query(vector: Floats, query: SplitQuery) -> None:
    """Write a vector to a query that has zeros behind it."""
    codes, excess, scale = query
    largest = np.float32(0)
    for t in range(len(vector)):
        largest = max(largest, abs(vector[t]))
    inverse = _LARGEST / largest if largest > 0 else np.float32(0)
    scale[0] = largest / _LARGEST
    sum_high = sum_low = np.int32(0)
    for t in range(len(vector)):
        level = np.int32(np.rint(vector[t] * inverse))
        high = (level + np.int32(64)) >> np.int32(7)  # so that the rest is from -64 to 63
        low = level - (high << np.int32(7))
        codes[0, t], codes[1, t] = high, low
        sum_high += high
        sum_low += low
    excess[0], excess[1] = np.int32(_FIRST_BIT) * sum_high, np.int32(_FIRST_BIT) * sum_low


def _row_line(context: Any, builder: Any, start: Any, offset: Any, n_bytes: Any) -> Any:
    """Load a cache line of a row of signed bytes, 128 added to each; zeros behind its end."""
    n_left = builder.trunc(builder.sub(n_bytes, offset), _INT)
    bytes_ = load_first(context, builder, builder.gep(start, [offset]), _BYTES, n_left)
    return builder.xor(bytes_, ir.Constant(_BYTES, [_FIRST_BIT] * LINE))


def _sums(
    context: Any, builder: Any, query: Any, width: Any, starts: Any, n_bytes: Any, excess: Any
) -> Any:
    """Return the sums of products of both halves of a query with four rows."""
    if multiplies_pairs(context):
        return _sums_of_pairs(context, builder, query, width, starts, n_bytes)
    zeros = ir.Constant(_INTS, None)
    totals = [[cgutils.alloca_once_value(builder, zeros) for _ in starts] for _half in range(2)]
    with cgutils.for_range_slice(builder, _LONG(0), width, _LONG(LINE)) as (offset, _):
        lines = [_row_line(context, builder, start, offset, n_bytes) for start in starts]
        for half in range(2):
            there = builder.gep(query, [builder.add(offset, builder.mul(_LONG(half), width))])
            own = load(builder, there, _BYTES)
            for line, total in zip(lines, totals[half], strict=True):
                more = add_products(context, builder, builder.load(total), line, own)
                builder.store(more, total)
    sums = [sums_of_each(builder, [builder.load(total) for total in half]) for half in totals]
    return [builder.sub(own, too_much) for own, too_much in zip(sums, excess, strict=True)]


def _sums_of_pairs(
    context: Any, builder: Any, query: Any, width: Any, starts: Any, n_bytes: Any
) -> Any:
    """Return what `_sums` does, by products of sixteen bits: a whole query fits in those.

    Of the sum of products with it, what 128 divides and the rest are added up apart. Of rows of
    8,320 numbers or more, a sum might not fit.
    """
    totals = [cgutils.alloca_once_value(builder, ir.Constant(_EIGHT_INTS, None)) for _ in starts]
    low_half = builder.gep(query, [width])
    shift = ir.Constant(_SHORTS, [7] * LANES)

    def add(offset: Any, rows: list[Any]) -> None:
        """Add the products of one cache line of each row."""
        for k in range(0, LINE, LANES):
            at, part = builder.add(offset, _LONG(k)), list(range(k, k + LANES))
            high, low = (
                builder.sext(sixteen_bytes(builder, half, at), _SHORTS)
                for half in (query, low_half)
            )
            own = builder.add(builder.shl(high, shift), low)
            for row, total in zip(rows, totals, strict=True):
                levels = builder.sext(picked(builder, row, row, part), _SHORTS)
                more = pairs_of_shorts(builder, levels, own)
                builder.store(builder.add(builder.load(total), more), total)

    n_whole = builder.and_(n_bytes, _LONG(-LINE))
    with cgutils.for_range_slice(builder, _LONG(0), n_whole, _LONG(LINE)) as (offset, _):
        add(offset, [load(builder, builder.gep(start, [offset]), _BYTES) for start in starts])
    n_left = builder.trunc(builder.sub(n_bytes, n_whole), _INT)
    with builder.if_then(builder.icmp_signed(">", n_left, _INT(0))):
        there = [builder.gep(start, [n_whole]) for start in starts]
        add(n_whole, [load_first(context, builder, one, _BYTES, n_left) for one in there])
    sums = [builder.load(total) for total in totals]
    seven, most = (ir.Constant(_EIGHT_INTS, [n] * _EIGHT_INTS.count) for n in (7, _FIRST_BIT - 1))
    parts = (
        [builder.ashr(own, seven) for own in sums],
        [builder.and_(own, most) for own in sums],
    )
    return [sums_of_each(builder, part) for part in parts]


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def products_of_bytes(
    _: Any, query: Any, values: Any, scales: Any, rows: Any, n: Any, products: Any
) -> Any:
    """Write the inner products of a query with some rows.

    Parameters
    ----------
    query : SplitQuery
    values, scales : int8 (n_rows, d), float32 (n_rows,)
        See `longtail.kernels.rows.Rows`.
    rows : int32 (at least n,)
        Rows that there are.
    n : int
    products : float32 (at least `n` rounded up to a multiple of four,)
        Written.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        halves, excess, unit = (
            context.make_array(kinds[0][i])(
                context, builder, builder.extract_value(arguments[0], i)
            )
            for i in range(3)
        )
        table, factors, listed, target = (
            context.make_array(kinds[i])(context, builder, arguments[i]) for i in (1, 2, 3, 5)
        )
        end = context.cast(builder, arguments[4], kinds[4], types.int64)
        last = builder.sub(end, _LONG(1))
        n_bytes = cgutils.unpack_tuple(builder, table.shape)[1]
        width = cgutils.unpack_tuple(builder, halves.shape)[1]
        first = builder.bitcast(table.data, _BYTE.as_pointer())
        codes = builder.bitcast(halves.data, _BYTE.as_pointer())
        too_much = [
            in_lanes(builder, builder.load(builder.gep(excess.data, [_LONG(i)])), _FOUR_INTS)
            for i in range(2)
        ]
        step = in_lanes(builder, builder.load(unit.data), _FOUR_FLOATS)

        def row_at(place: Any) -> Any:
            place = builder.select(builder.icmp_signed("<", place, last), place, last)
            return builder.sext(builder.load(builder.gep(listed.data, [place])), _LONG)

        def start_of(row: Any) -> Any:
            return builder.gep(first, [builder.mul(row, n_bytes)])

        with cgutils.for_range(builder, _LONG(_AHEAD)) as loop:
            fetch_row(builder, start_of(row_at(loop.index)), n_bytes)
        with cgutils.for_range_slice(builder, _LONG(0), end, _LONG(_AT_ONCE)) as (j, _i):
            for i in range(_AHEAD, _AHEAD + _AT_ONCE):
                fetch_row(builder, start_of(row_at(builder.add(j, _LONG(i)))), n_bytes)
            some = [row_at(builder.add(j, _LONG(i))) for i in range(_AT_ONCE)]
            starts = [start_of(row) for row in some]
            sums = _sums(context, builder, codes, width, starts, n_bytes, too_much)
            high, low = (builder.sitofp(own, _FOUR_FLOATS) for own in sums)
            shift = ir.Constant(_FOUR_FLOATS, [float(_FIRST_BIT)] * _AT_ONCE)
            total = builder.fadd(builder.fmul(high, shift), low)
            scale = ir.Constant(_FOUR_FLOATS, ir.Undefined)
            for i, row in enumerate(some):
                own = builder.load(builder.gep(factors.data, [row]))
                scale = builder.insert_element(scale, own, _INT(i))
            total = builder.fmul(builder.fmul(total, step), scale)
            store(builder, total, builder.gep(target.data, [j]))
        return context.get_dummy_value()

    return types.void(query, values, scales, rows, n, products), generate
