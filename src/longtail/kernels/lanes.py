"""Loops over candidates side by side, written out as vectors of sixteen.

What the compiler makes of such loops by itself keeps its sums in memory, and takes what is left of
a row, up to sixty numbers, one by one: it is four times slower. A processor without vectors of
sixteen gets halves or quarters of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic

from longtail.kernels.instructions import LANES, LINE, has, in_lanes, load, store
from longtail.kernels.prefetch import fetch_line

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "KEYS_AT_ONCE",
    "N_ABOVE",
    "dense_layer",
    "falling_ranks",
    "first_above",
    "insert_key",
    "ranks_of_keys",
    "sum_lanes",
]

_OUTPUTS_AT_ONCE = 8  # sums kept in registers, fed by one read of the inputs
_OUTPUTS_IN_SHORT = 4  # of half the length, of which there are half as many
_SUMS_AT_ONCE = (20, 8, 4, 1)  # blocks of sixteen whose sums stay in registers
_SUMS_IN_SHORT = _SUMS_AT_ONCE[1:]
_FLOAT, _INT, _LONG = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_FLOATS, _INTS = ir.VectorType(_FLOAT, LANES), ir.VectorType(_INT, LANES)
_FUSED = ("contract",)
_HALVES = ir.VectorType(ir.IntType(16), LANES)
_AHEAD = 8  # entries whose rows of bfloat16 are fetched in advance; with float32 nothing is gained
KEYS_AT_ONCE = 8
N_ABOVE = 4 * LANES
_KEYS = ir.VectorType(_LONG, KEYS_AT_ONCE)


class _Table:
    """An array of numbers in the order of rows, as generated code reads and writes it.

    They have 32 bits, or 16 where they are bfloat16s (see `longtail.kernels.half_numbers`).
    """

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.builder = builder
        self.shape = cgutils.unpack_tuple(builder, array.shape)
        self.data = array.data
        self.is_half = kind.dtype == types.uint16

    def _at(self, row: Any, column: Any) -> Any:
        """Return where a number is."""
        builder = self.builder
        first = builder.mul(row, self.shape[-1]) if len(self.shape) > 1 else row
        return builder.gep(self.data, [builder.add(first, column)])

    def number(self, row: Any, column: Any = None) -> Any:
        """Return one number."""
        return self.builder.load(self._at(row, _LONG(0) if column is None else column))

    def lanes(self, row: Any, column: Any, kind: Any = _FLOATS) -> Any:
        """Return numbers side by side."""
        return load(self.builder, self._at(row, column), kind, align=4)

    def floats(self, row: Any, column: Any) -> Any:
        """Return numbers side by side as float32, whichever kind they are."""
        if not self.is_half:
            return self.lanes(row, column)
        builder = self.builder
        bits = builder.zext(load(builder, self._at(row, column), _HALVES, align=2), _INTS)
        upper = builder.shl(bits, ir.Constant(_INTS, [16] * LANES))
        return builder.bitcast(upper, _FLOATS)

    def fetch(self, row: Any, column: Any, n_lines: int) -> None:
        """Ask for the cache lines from a number on, and go on."""
        builder = self.builder
        start = builder.bitcast(self._at(row, column), ir.IntType(8).as_pointer())
        for line in range(n_lines):
            fetch_line(builder, builder.gep(start, [_LONG(LINE * line)]))

    def write(self, value: Any, row: Any, column: Any) -> None:
        """Write numbers side by side."""
        store(self.builder, value, self._at(row, column))


def _tables(context: Any, builder: Any, kinds: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Return arguments that are arrays as tables."""
    pairs = zip(kinds, values, strict=True)
    return [_Table(context, builder, kind, value) for kind, value in pairs]


def _weigh(
    builder: Any, n: int, output: Any, column: Any, tables: Sequence[_Table], n_inputs: Any
) -> None:
    """Write `n` outputs, from `output` on, of the candidates from `column` on."""
    matrix, bias, inputs, outputs = tables
    rows = [builder.add(output, _LONG(k)) for k in range(n)]
    sums = [
        cgutils.alloca_once_value(builder, in_lanes(builder, bias.number(row), _FLOATS))
        for row in rows
    ]
    with cgutils.for_range(builder, n_inputs) as loop:
        own = inputs.lanes(loop.index, column)
        for row, total in zip(rows, sums, strict=True):
            weight = in_lanes(builder, matrix.number(row, loop.index), _FLOATS)
            product = builder.fmul(weight, own, flags=_FUSED)
            builder.store(builder.fadd(builder.load(total), product, flags=_FUSED), total)
    zero = ir.Constant(_FLOATS, [0.0] * LANES)
    for row, total in zip(rows, sums, strict=True):
        value = builder.load(total)
        positive = builder.fcmp_ordered(">", value, zero)
        outputs.write(builder.select(positive, value, zero), row, column)


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def dense_layer(_: Any, matrix: Any, bias: Any, inputs: Any, outputs: Any, n_blocks: Any) -> Any:
    """Write ``ReLU(matrix . inputs + bias)`` of the first ``16 * n_blocks`` columns.

    Parameters
    ----------
    matrix : float32 (n_outputs, n_inputs)
    bias : float32 (n_outputs,)
    inputs, outputs : float32 (n_inputs, size), (n_outputs, size)
    n_blocks : int
        At most ``size // 16``.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tables = _tables(context, builder, signature.args[:4], arguments[:4])
        n_outputs, n_inputs = tables[0].shape
        at_once = _OUTPUTS_AT_ONCE if has(context, "avx512f") else _OUTPUTS_IN_SHORT
        n_groups = builder.udiv(n_outputs, _LONG(at_once))
        n_grouped = builder.mul(n_groups, _LONG(at_once))
        n_columns = context.cast(builder, arguments[4], n_blocks, types.intp)
        with cgutils.for_range(builder, n_columns) as block:
            column = builder.mul(block.index, _LONG(LANES))
            with cgutils.for_range(builder, n_groups) as group:
                output = builder.mul(group.index, _LONG(at_once))
                _weigh(builder, at_once, output, column, tables, n_inputs)
            with cgutils.for_range(builder, builder.sub(n_outputs, n_grouped)) as rest:
                output = builder.add(n_grouped, rest.index)
                _weigh(builder, 1, output, column, tables, n_inputs)
        return context.get_dummy_value()

    return types.void(matrix, bias, inputs, outputs, n_blocks), generate


def _add_rows(
    builder: Any, n: int, start: Any, tables: Sequence[_Table], entries: tuple[Any, Any]
) -> None:
    """Write `n` blocks of the weighted sum of rows, from the number `start` on."""
    columns, values, table, total = tables
    zero = ir.Constant(_FLOATS, [0.0] * LANES)
    places = [builder.add(start, _LONG(LANES * k)) for k in range(n)]
    sums = [cgutils.alloca_once_value(builder, zero) for _ in places]
    last = builder.sub(columns.shape[0], _LONG(1))
    with cgutils.for_range_slice(builder, *entries, _LONG(1)) as (entry, _):
        row = builder.sext(columns.number(entry), _LONG)
        weight = in_lanes(builder, values.number(entry), _FLOATS)
        if table.is_half:
            ahead = builder.add(entry, _LONG(_AHEAD))
            ahead = builder.select(builder.icmp_signed("<", ahead, last), ahead, last)
            later = builder.sext(columns.number(ahead), _LONG)
            table.fetch(later, start, -(-2 * LANES * n // LINE))
        for place, one in zip(places, sums, strict=True):
            product = builder.fmul(weight, table.floats(row, place), flags=_FUSED)
            builder.store(builder.fadd(builder.load(one), product, flags=_FUSED), one)
    for place, one in zip(places, sums, strict=True):
        total.write(builder.load(one), place, _LONG(0))


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def sum_lanes(
    _: Any, columns: Any, values: Any, table: Any, first: Any, last: Any, total: Any
) -> Any:
    """Write the whole blocks of sixteen of ``sum_j values[j] * table[columns[j]]``.

    Parameters
    ----------
    columns : int32 (nnz,)
    values : float32 (nnz,)
    table : float32, or the uint16 of bfloat16's bits, (n_columns, dimension)
    first, last : int
        The entries j from the first to before the last.
    total : float32 (dimension,)
        Written, up to the last whole block.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of_arrays = (0, 1, 2, 5)
        kinds = [signature.args[i] for i in of_arrays]
        tables = _tables(context, builder, kinds, [arguments[i] for i in of_arrays])
        entries = [
            context.cast(builder, arguments[i], signature.args[i], types.intp) for i in (3, 4)
        ]
        start: Any = _LONG(0)
        for n in _SUMS_AT_ONCE if has(context, "avx512f") else _SUMS_IN_SHORT:
            size = _LONG(LANES * n)
            times = builder.udiv(builder.sub(tables[3].shape[0], start), size)
            with cgutils.for_range(builder, times) as loop:
                place = builder.add(start, builder.mul(loop.index, size))
                _add_rows(builder, n, place, tables, (entries[0], entries[1]))
            start = builder.add(start, builder.mul(times, size))
        return context.get_dummy_value()

    return types.void(columns, values, table, first, last, total), generate


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def falling_ranks(_: Any, values: Any, n: Any, ranks: Any) -> Any:
    """Write the place of each of `n` numbers in falling order, of equal ones in their own order.

    Each is compared with all: fewer steps than a sort, and none that has to be foreseen.

    Parameters
    ----------
    values : float32 (size,)
        Of whole blocks of sixteen; what stands behind the first `n` counts for nothing.
    n : int
    ranks : int32 (size,)
        Written; behind the first `n`, up to the end of a block, it means nothing.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers, places = _tables(
            context, builder, (signature.args[0], signature.args[2]), (arguments[0], arguments[2])
        )
        n_numbers = context.cast(builder, arguments[1], n, types.intp)
        last = _LONG(LANES - 1)
        n_blocks = builder.udiv(builder.add(n_numbers, last), _LONG(LANES))
        with cgutils.for_range(builder, n_blocks) as block:
            first = builder.mul(block.index, _LONG(LANES))
            after = builder.add(first, _LONG(LANES))
            is_over = builder.icmp_signed("<", n_numbers, after)
            after = builder.select(is_over, n_numbers, after)
            own = numbers.lanes(first, _LONG(0))
            total = cgutils.alloca_once_value(builder, ir.Constant(_INTS, [0] * LANES))

            def count(position: Any, relation: str, own: Any = own) -> Any:
                other = in_lanes(builder, numbers.number(position), _FLOATS)
                return builder.fcmp_ordered(relation, other, own), other

            def add(is_ahead: Any, total: Any = total) -> None:
                # A comparison that holds is -1 as a number.
                more = builder.sext(is_ahead, _INTS)
                builder.store(builder.sub(builder.load(total), more), total)

            with cgutils.for_range_slice(builder, _LONG(0), first, _LONG(1)) as (position, _count):
                add(count(position, ">=")[0])
            with cgutils.for_range_slice(builder, first, after, _LONG(1)) as (position, _count):
                larger, other = count(position, ">")
                place = builder.trunc(builder.sub(position, first), _INT)
                behind = builder.icmp_signed(
                    ">", ir.Constant(_INTS, list(range(LANES))), in_lanes(builder, place, _INTS)
                )
                equal = builder.fcmp_ordered("==", other, own)
                add(builder.or_(larger, builder.and_(equal, behind)))
            with cgutils.for_range_slice(builder, after, n_numbers, _LONG(1)) as (position, _count):
                add(count(position, ">")[0])
            places.write(builder.load(total), first, _LONG(0))
        return context.get_dummy_value()

    return types.void(values, n, ranks), generate


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def ranks_of_keys(_: Any, keys: Any, n: Any, ranks: Any) -> Any:
    """Write how many of `n` keys are larger than each: `falling_ranks`, of distinct numbers.

    Parameters
    ----------
    keys : int64 (size,)
        Of whole blocks of eight; what stands behind the first `n` counts for nothing.
    n : int
    ranks : int64 (size,)
        Written; behind the first `n`, up to the end of a block, it means nothing.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers, places = _tables(
            context, builder, (signature.args[0], signature.args[2]), (arguments[0], arguments[2])
        )
        n_keys = context.cast(builder, arguments[1], n, types.intp)
        size = _LONG(KEYS_AT_ONCE)
        with cgutils.for_range_slice(builder, _LONG(0), n_keys, size) as (first, _count):
            own = numbers.lanes(first, _LONG(0), _KEYS)
            total = cgutils.alloca_once_value(builder, ir.Constant(_KEYS, [0] * KEYS_AT_ONCE))
            with cgutils.for_range(builder, n_keys) as loop:
                other = in_lanes(builder, numbers.number(loop.index), _KEYS)
                is_larger = builder.icmp_signed(">", other, own)
                # A comparison that holds is -1 as a number.
                more = builder.sext(is_larger, _KEYS)
                builder.store(builder.sub(builder.load(total), more), total)
            places.write(builder.load(total), first, _LONG(0))
        return context.get_dummy_value()

    return types.void(keys, n, ranks), generate


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def first_above(_: Any, numbers: Any, start: Any, least: Any) -> Any:
    """Return where the first block of sixty-four begins that holds a number above `least`.

    If there is none, where the last whole block ends.

    Parameters
    ----------
    numbers : float32 (size,)
    start : int
        Where the first block begins.
    least : float32
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (table,) = _tables(context, builder, signature.args[:1], arguments[:1])
        size = _LONG(N_ABOVE)
        begin = context.cast(builder, arguments[1], start, types.intp)
        limit = context.cast(builder, arguments[2], least, types.float32)
        limit = in_lanes(builder, limit, _FLOATS)
        n_left = builder.sub(table.shape[0], begin)
        n_blocks = builder.sdiv(n_left, size)
        found = cgutils.alloca_once_value(builder, builder.add(begin, builder.mul(n_blocks, size)))
        with cgutils.for_range(builder, n_blocks) as loop:
            first = builder.add(begin, builder.mul(loop.index, size))
            is_above = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [0] * LANES)
            for k in range(0, N_ABOVE, LANES):
                own = table.lanes(builder.add(first, _LONG(k)), _LONG(0))
                is_above = builder.or_(is_above, builder.fcmp_ordered(">", own, limit))
            which = builder.bitcast(is_above, ir.IntType(LANES))
            with builder.if_then(builder.icmp_unsigned("!=", which, which.type(0))):
                builder.store(first, found)
                loop.do_break()
        return builder.load(found)

    return types.intp(numbers, start, least), generate


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def insert_key(_: Any, keys: Any, key: Any) -> Any:
    """Insert into a falling list, from whose end the smallest drops; return the place.

    Each number, from the end up to the place, becomes the larger of itself and the smaller of the
    one before it and the new one: eight at a time, and no search.

    Parameters
    ----------
    keys : int64 (8 * any + 1,)
        The list begins at its second place; the first holds the largest number there is.
    key : int64
        Other than all there; the place is returned as if the list began at the first.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (table,) = _tables(context, builder, signature.args[:1], arguments[:1])
        n_blocks = builder.udiv(table.shape[0], _LONG(KEYS_AT_ONCE))
        new = in_lanes(builder, context.cast(builder, arguments[1], key, types.int64), _KEYS)
        place = cgutils.alloca_once_value(builder, _LONG(0))
        count = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.IntType(8), [ir.IntType(8)]), "llvm.ctpop.i8"
        )
        with cgutils.for_range(builder, n_blocks) as loop:
            block = builder.sub(builder.sub(n_blocks, loop.index), _LONG(1))  # the last one first
            before = builder.mul(block, _LONG(KEYS_AT_ONCE))
            here = builder.add(before, _LONG(1))
            previous = table.lanes(before, _LONG(0), _KEYS)
            own = table.lanes(here, _LONG(0), _KEYS)
            smaller = builder.select(builder.icmp_signed("<", previous, new), previous, new)
            is_ahead = builder.icmp_signed(">", own, new)
            larger = builder.select(builder.icmp_signed(">", own, smaller), own, smaller)
            table.write(larger, here, _LONG(0))
            ahead = builder.call(count, [builder.bitcast(is_ahead, ir.IntType(8))])
            with builder.if_then(builder.icmp_unsigned("!=", ahead, ahead.type(0))):
                builder.store(builder.add(before, builder.zext(ahead, _LONG)), place)
                loop.do_break()  # all before are ahead, and stay where they are
        return builder.load(place)

    return types.intp(keys, key), generate
