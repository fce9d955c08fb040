"""Vectors in seven bits a number, and products of many of them with many.

For work that compares vectors of one table with each other by the million. A row is as many bytes
as there are numbers, rounded up to whole cache lines; a byte is a number of steps of the row, 64
too much, since processors multiply bytes without a sign with bytes that have one. Of seven bits,
two sums of two products fit in sixteen, which is quicker where a processor has no instruction for
sums of four.

Each row has a factor, and a product is multiplied with those of both rows. A factor is such that
the product of a row with its own vector is right: so products of vectors that are alike, which
tell them apart only by their last digits, err in proportion to how far they are from each other.

A bias of each row is one further number of its vector, kept as it is: the largest numbers of a row
say how long its steps are, and a bias may be larger than all of them.

Sums are whole numbers, so that a product is the same to the bit from either side, in any company,
and by whichever instructions.
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
    pairs_of_bytes,
    pairs_of_shorts,
    picked,
    sums_of_each,
    sums_of_sixteen,
)
from longtail.kernels.instructions import LANES, LINE, in_lanes, load, store
from longtail.kernels.jit import fast_kernel, kernel, lean_kernel, over_row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = [
    "MAX_DIMENSION",
    "MIDDLE",
    "N_AT_ONCE",
    "N_MASKED",
    "ByteCodes",
    "ByteQueries",
    "CodedRows",
    "at_least",
    "byte_codes",
    "code_unit",
    "lowest_bit",
    "new_queries",
    "products_of_listed",
    "products_of_range",
    "range_asked",
    "scaled",
    "sums_of_ranges",
    "write_query",
]

N_AT_ONCE = 4  # queries, and rows: sixteen sums stay in registers
_QUERIES_OF_PAIRS = 2  # of a processor with half as many registers, half as long
N_MASKED = 64
MIDDLE, _LARGEST = 64, np.float32(63)
_LARGEST_PRODUCT = np.float32(1 << 28)
MAX_DIMENSION = 1 << 16
_BYTE, _SHORT, _INT, _LONG = (ir.IntType(n) for n in (8, 16, 32, 64))
_FLOAT = ir.FloatType()
_BYTES, _INTS = ir.VectorType(_BYTE, LINE), ir.VectorType(_INT, LANES)
_HALF_BYTES = ir.VectorType(_BYTE, LINE // 2)
_SHORTS, _EIGHT_INTS = ir.VectorType(_SHORT, LANES), ir.VectorType(_INT, LANES // 2)


class ByteCodes(NamedTuple):
    """Some vectors: ``codes`` (n, width) uint8, ``factors`` and ``biases`` (n,) float32."""

    codes: NDArray[np.uint8]
    factors: Floats
    biases: Floats


class ByteQueries(NamedTuple):
    """Room for vectors that others are multiplied with.

    ``codes`` (n, width) int8, ``factors`` and ``biases`` (n,) float32; ``excess`` (n,) int32 is
    what the product with codes of `ByteCodes` is too much.
    """

    codes: NDArray[np.int8]
    excess: Ids
    factors: Floats
    biases: Floats


@fast_kernel
def code_unit(vectors: Floats, bias: Floats) -> np.float32:
    """Return what to multiply vectors with, so that their products fill whole numbers well.

    Parameters
    ----------
    vectors : float32 (n_rows, d)
        Finite.
    bias : float32 (n_rows,) or (0,)
        As in `byte_codes`.
    """
    largest = np.float32(0)
    for row in range(vectors.shape[0]):
        square = bias[row] * bias[row] if len(bias) else np.float32(0)
        for t in range(vectors.shape[1]):
            square += vectors[row, t] * vectors[row, t]
        largest = max(largest, square)
    return np.float32(np.sqrt(_LARGEST_PRODUCT / largest)) if largest > 0 else np.float32(0)


def byte_codes(
    vectors: Floats, bias: Floats, unit: np.float32, rows: Ids, n_threads: int = 1
) -> ByteCodes:
    """Return the codes of some rows, each d bytes rounded up to a multiple of 64.

    Parameters
    ----------
    vectors : float32 (n_rows, d)
        Of at most `MAX_DIMENSION` numbers: products of more would not fit in 32 bits.
    bias : float32 (n_rows,) or (0,)
        A further number of each vector; (0,) for none.
    unit : float32
        See `code_unit`: products of codes with the same unit can be compared.
    rows : int32 (n,)
    n_threads : int
    """
    width = -(-vectors.shape[1] // LINE) * LINE
    room = np.empty(len(rows) * width + LINE, np.uint8)
    first = -room.ctypes.data % LINE  # each row on cache lines of its own
    codes = room[first : first + len(rows) * width].reshape(len(rows), width)
    factors, biases = np.empty(len(rows), np.float32), np.zeros(len(rows), np.float32)
    arrays = vectors, bias, rows, np.float32(unit), codes, factors, biases
    over_row_chunks(
        lambda start, stop: write_unit_codes(*arrays, start, stop), len(rows), n_threads=n_threads
    )
    return ByteCodes(codes, factors, biases)


@fast_kernel
def write_unit_codes(
    vectors: Floats,
    bias: Floats,
    rows: Ids,
    unit: np.float32,
    codes: NDArray[np.uint8],
    factors: Floats,
    biases: Floats,
    start: int,
    stop: int,
) -> None:
    """Write the nearest whole numbers of steps, and what else there is, of rows from `start` on."""
    d = vectors.shape[1]
    for i in range(start, stop):
        largest = np.float32(0)
        for t in range(d):
            largest = max(largest, abs(vectors[rows[i], t]))
        inverse = _LARGEST / largest if largest > 0 else np.float32(0)
        for t in range(d):
            codes[i, t] = np.uint8(np.int32(np.rint(vectors[rows[i], t] * inverse)) + MIDDLE)
        codes[i, d:] = MIDDLE
        square, product = np.float32(0), np.float32(0)
        for t in range(d):
            value = vectors[rows[i], t]
            square += value * value
            product += value * np.float32(np.int32(codes[i, t]) - MIDDLE)
        factors[i] = unit * square / product if product > 0 else np.float32(0)
        if len(bias):
            biases[i] = unit * bias[rows[i]]


@kernel
def sums_of_ranges(vectors: ByteCodes, starts: NDArray[np.int64], sums: Floats) -> None:
    """Write the sum of each of some ranges of vectors, as their codes tell it.

    Range i is the rows ``starts[i]`` to ``starts[i + 1]``; `sums` is float32 (n_ranges, 1 + width),
    the first column for biases.
    """
    for group in range(len(sums)):
        sums[group] = 0
        for row in range(starts[group], starts[group + 1]):
            factor = vectors.factors[row]
            sums[group, 0] += vectors.biases[row]
            for t in range(sums.shape[1] - 1):
                level = np.int32(vectors.codes[row, t]) - MIDDLE
                sums[group, 1 + t] += factor * np.float32(level)


@kernel
def new_queries(n_queries: int, width: int) -> ByteQueries:
    """Return room for queries."""
    return ByteQueries(
        np.empty((n_queries, width), np.int8),
        np.empty(n_queries, np.int32),
        np.empty(n_queries, np.float32),
        np.empty(n_queries, np.float32),
    )


@lean_kernel
def write_query(vectors: ByteCodes, row: int, queries: ByteQueries, place: int) -> None:
    """Write a row to a place among queries."""
    total = np.int32(0)
    for t in range(vectors.codes.shape[1]):
        level = np.int32(vectors.codes[row, t]) - np.int32(MIDDLE)
        queries.codes[place, t] = np.int8(level)
        total += level
    queries.excess[place] = total * MIDDLE
    queries.factors[place] = vectors.factors[row]
    queries.biases[place] = vectors.biases[row]


class Further(NamedTuple):
    """Factors and biases of some rows, as vectors of generated code."""

    factors: Any
    biases: Any


class CodedRows:
    """A tuple of `ByteCodes` or `ByteQueries`, as generated code reads it."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self.builder = builder
        arrays = [
            context.make_array(kind[i])(context, builder, builder.extract_value(value, i))
            for i in range(len(kind))
        ]
        self.width = cgutils.unpack_tuple(builder, arrays[0].shape)[-1]
        self.codes = builder.bitcast(arrays[0].data, _BYTE.as_pointer())
        self.numbers = [array.data for array in arrays[1:]]

    def at(self, row: Any) -> Any:
        """Return where the codes of a row begin."""
        return self.builder.gep(self.codes, [self.builder.mul(row, self.width)])

    def line(self, start: Any, offset: Any) -> Any:
        """Load a cache line of the row that begins somewhere."""
        return load(self.builder, self.builder.gep(start, [offset]), _BYTES)

    def excess(self, row: Any) -> Any:
        """Return what products are too much."""
        return self.builder.load(self.builder.gep(self.numbers[0], [row]))

    def further_from(self, row: Any, kind: Any) -> Further:
        """Return the factors and biases of consecutive rows, of which `row` is the first."""
        builder, last = self.builder, self.numbers[-2:]
        return Further(*(load(builder, builder.gep(own, [row]), kind, align=4) for own in last))

    def further(self, rows: list[Any]) -> Further:
        """Return the factors and biases of some rows."""
        builder, found = self.builder, []
        for own in self.numbers[-2:]:
            values = ir.Constant(ir.VectorType(_FLOAT, len(rows)), ir.Undefined)
            for i, row in enumerate(rows):
                number = builder.load(builder.gep(own, [row]))
                values = builder.insert_element(values, number, _INT(i))
            found.append(values)
        return Further(*found)


def _tile(
    context: Any, builder: Any, queries: CodedRows, asking: list[Any], codes: CodedRows, rows: Any
) -> list[Any]:
    """Return sums of some queries with four rows, each a vector: those of one, then others."""
    if multiplies_pairs(context):
        some = range(0, len(asking), _QUERIES_OF_PAIRS)
        parts = [asking[i : i + _QUERIES_OF_PAIRS] for i in some]
        return [t for own in parts for t in _tile_of_pairs(builder, queries, own, codes, rows)]
    totals = []
    for query in asking:
        begin = ir.Constant(_INTS, None)
        begin = builder.insert_element(begin, builder.neg(queries.excess(query)), _INT(0))
        totals += [cgutils.alloca_once_value(builder, begin) for _ in rows]
    firsts = [queries.at(query) for query in asking]
    starts = [codes.at(row) for row in rows]
    n_lines = builder.udiv(codes.width, _LONG(LINE))
    with cgutils.for_range(builder, n_lines) as loop:
        offset = builder.mul(loop.index, _LONG(LINE))
        own = [queries.line(first, offset) for first in firsts]
        for j, start in enumerate(starts):
            line = codes.line(start, offset)
            for i, query in enumerate(own):
                total = totals[i * len(starts) + j]
                more = add_products(context, builder, builder.load(total), line, query)
                builder.store(more, total)
    return [builder.load(total) for total in totals]


def _tile_of_pairs(
    builder: Any, queries: CodedRows, asking: list[Any], codes: CodedRows, rows: Any
) -> list[Any]:
    """Return what `_tile` does, of few queries, whose sums stay in eight short registers."""
    totals = []
    for query in asking:
        begin = ir.Constant(_EIGHT_INTS, None)
        begin = builder.insert_element(begin, builder.neg(queries.excess(query)), _INT(0))
        totals += [cgutils.alloca_once_value(builder, begin) for _ in rows]
    firsts = [queries.at(query) for query in asking]
    starts = [codes.at(row) for row in rows]
    ones = ir.Constant(_SHORTS, [1] * LANES)
    with cgutils.for_range_slice(builder, _LONG(0), codes.width, _LONG(LINE)) as (line, _i):
        offsets = [line, builder.add(line, _LONG(LINE // 2))]
        own = [[_half_line(builder, first, offset) for offset in offsets] for first in firsts]
        for j, start in enumerate(starts):
            row = [_half_line(builder, start, offset) for offset in offsets]
            for i, query in enumerate(own):
                total = totals[i * len(starts) + j]
                halves = [pairs_of_bytes(builder, *both) for both in zip(row, query, strict=True)]
                # Four products of 127 and 63 fit in sixteen bits.
                more = pairs_of_shorts(builder, builder.add(*halves), ones)
                builder.store(builder.add(builder.load(total), more), total)
    return [builder.load(total) for total in totals]


def _half_line(builder: Any, start: Any, offset: Any) -> Any:
    """Load half a cache line of the row that begins somewhere."""
    return load(builder, builder.gep(start, [offset]), _HALF_BYTES)


def scaled(builder: Any, sums: Any, of_queries: Further, of_rows: Further) -> Any:
    """Return sums as whole numbers of units: in the order of queries, then of rows."""
    n_rows, n_sums = of_rows.factors.type.count, sums.type.count
    products = []
    for own, others in zip(of_queries, of_rows, strict=True):
        lefts = picked(builder, own, own, [i // n_rows for i in range(n_sums)])
        rights = picked(builder, others, others, [i % n_rows for i in range(n_sums)])
        # These first: so the product is the same from either side.
        products.append(builder.fmul(lefts, rights))
    factors, biases = products
    wide = builder.sitofp(sums, ir.VectorType(_FLOAT, n_sums))
    return builder.fptosi(builder.fadd(builder.fmul(wide, factors), biases), sums.type)


def _smaller(builder: Any, one: Any, other: Any) -> Any:
    """Return the smaller of two numbers."""
    return builder.select(builder.icmp_signed("<", one, other), one, other)


def range_asked(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[Any, ...]:
    """Return what the arguments of `products_of_range` are to generated code.

    Queries, which four of them, vectors, where the range begins and ends, and the products.
    """
    kinds = signature.args
    own, table = (CodedRows(context, builder, kinds[i], arguments[i]) for i in (0, 3))
    listed, target = (context.make_array(kinds[i])(context, builder, arguments[i]) for i in (1, 6))
    at, begin, end = (context.cast(builder, arguments[i], kinds[i], types.intp) for i in (2, 4, 5))
    asking = []
    for i in range(N_AT_ONCE):
        query = builder.load(builder.gep(listed.data, [builder.add(at, _LONG(i))]))
        asking.append(builder.sext(query, _LONG))
    return own, asking, table, begin, end, target


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def products_of_range(
    _: Any, queries: Any, which: Any, first: Any, vectors: Any, start: Any, stop: Any, products: Any
) -> Any:
    """Write the inner products of four queries with consecutive vectors.

    Parameters
    ----------
    queries : ByteQueries
    which, first : int32, int
        The four are ``which[first : first + 4]``.
    vectors : ByteCodes
    start, stop : int
    products : int32 (4, at least ``stop - start`` rounded up to a multiple of four)
        Written.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        own, asking, table, begin, end, target = range_asked(context, builder, signature, arguments)
        n_columns = cgutils.unpack_tuple(builder, target.shape)[1]
        of_queries = own.further(asking)
        last = builder.sub(end, _LONG(1))
        with cgutils.for_range_slice(builder, begin, end, _LONG(N_AT_ONCE)) as (j, _count):
            rows = [_smaller(builder, builder.add(j, _LONG(i)), last) for i in range(N_AT_ONCE)]
            totals = _tile(context, builder, own, asking, table, rows)
            sums = sums_of_sixteen(builder, totals)
            sums = scaled(builder, sums, of_queries, table.further(rows))
            for i in range(N_AT_ONCE):
                four = picked(builder, sums, sums, list(range(4 * i, 4 * i + 4)))
                column = builder.add(builder.mul(_LONG(i), n_columns), builder.sub(j, begin))
                store(builder, four, builder.gep(target.data, [column]))
        return context.get_dummy_value()

    own_type = types.void(queries, which, first, vectors, start, stop, products)
    return own_type, generate


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def products_of_listed(
    _: Any, queries: Any, vectors: Any, rows: Any, n_rows: Any, products: Any
) -> Any:
    """Write the inner products of the first query with some vectors.

    Parameters
    ----------
    queries : ByteQueries
    vectors : ByteCodes
    rows : int32 (at least n_rows,)
    n_rows : int
        How many of `rows` are looked at.
    products : int32 (at least `n_rows` rounded up to a multiple of four,)
        Written.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        own, table = (CodedRows(context, builder, kinds[i], arguments[i]) for i in (0, 1))
        listed, target = (
            context.make_array(kinds[i])(context, builder, arguments[i]).data for i in (2, 4)
        )
        end = context.cast(builder, arguments[3], n_rows, types.intp)
        of_query = own.further([_LONG(0)])
        last = builder.sub(end, _LONG(1))
        with cgutils.for_range_slice(builder, _LONG(0), end, _LONG(N_AT_ONCE)) as (j, _count):
            some = []
            for i in range(N_AT_ONCE):
                place = _smaller(builder, builder.add(j, _LONG(i)), last)
                row = builder.load(builder.gep(listed, [place]))
                some.append(builder.sext(row, _LONG))
            sums = sums_of_each(builder, _tile(context, builder, own, [_LONG(0)], table, some))
            sums = scaled(builder, sums, of_query, table.further(some))
            store(builder, sums, builder.gep(target, [j]))
        return context.get_dummy_value()

    return types.void(queries, vectors, rows, n_rows, products), generate


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def at_least(_: Any, numbers: Any, row: Any, least: Any) -> Any:
    """Return which of the first sixty-four numbers of a row are at least so large, bit by bit.

    Parameters
    ----------
    numbers : int32 (n_rows, at least 64)
    row : int
    least : int32

    Returns
    -------
    uint64
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        array = context.make_array(kinds[0])(context, builder, arguments[0])
        n_columns = cgutils.unpack_tuple(builder, array.shape)[1]
        first = builder.mul(context.cast(builder, arguments[1], row, types.intp), n_columns)
        limit = context.cast(builder, arguments[2], least, types.int32)
        wide = ir.VectorType(_INT, N_MASKED)
        own = load(builder, builder.gep(array.data, [first]), wide, align=4)
        reach = builder.icmp_signed(">=", own, in_lanes(builder, limit, wide))
        return builder.bitcast(reach, _LONG)

    return types.uint64(numbers, row, least), generate


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def lowest_bit(_: Any, mask: Any) -> Any:
    """Return which bit of a uint64 other than zero is the lowest that is set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(mask), generate
