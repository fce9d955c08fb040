"""Entries of sparse rows: sums gathered from their columns, sixteen at a time, and added to them.

Columns are looked up wherever they lie; a processor without instructions that read sixteen places
at once goes from place to place. Sums are written one by one everywhere: processors that can write
to sixteen places by one instruction (AMD's of 2022, for one) take longer for that. Columns of one
row are distinct.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic

from longtail.kernels.instructions import LANES, each_lane, first_lanes, has, in_lanes, load_first
from longtail.kernels.packed_ids import ID_WIDTHS, id_there

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    _Entry = tuple[Any, Callable[[], Any]]
    _Block = tuple[Any, Callable[[], Any], Any]

__all__ = [
    "N_MORE_SLOTS",
    "add_scaled",
    "add_to_slots",
    "gathered",
    "gathered_sum",
    "has_instructions",
    "packed_columns",
]

N_MORE_SLOTS = 2  # behind those of labels: two are read at once, and one stays empty
_BYTE, _SHORT, _INT, _LONG = (ir.IntType(n) for n in (8, 16, 32, 64))
_FLOAT = ir.FloatType()
_INTS, _FLOATS = ir.VectorType(_INT, LANES), ir.VectorType(_FLOAT, LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_ZEROS = ir.Constant(_FLOATS, [0.0] * LANES)
_SIZES = {_SHORT: 2, _INT: 4, _FLOAT: 4}  # bytes
_UP_BY_112 = 2.0**112  # between the exponents' offsets of float16 and float32


def has_instructions(context: Any) -> bool:
    """Tell whether the processor reads and writes sixteen places at once."""
    return has(context, "avx512f")


def gathered(builder: Any, base: Any, places: Any, kind: Any) -> Any:
    """Return the 32 bits that begin at each of sixteen places of an array."""
    start, size = builder.bitcast(base, _BYTE.as_pointer()), _SIZES[base.type.pointee]
    name = "dpi" if kind == _INTS else "dps"
    own = ir.FunctionType(kind, [kind, start.type, _INTS, _MASK, _INT])
    take = cgutils.get_or_insert_function(
        builder.module, own, f"llvm.x86.avx512.mask.gather.{name}.512"
    )
    every, nothing = ir.Constant(_MASK, [1] * LANES), ir.Constant(kind, None)
    return builder.call(take, [nothing, start, places, every, _INT(size)])


def packed_columns(
    context: Any, builder: Any, ids: Any, place: Any, n_left: Any, n_bytes: int
) -> Any:
    """Return sixteen ids of so many bytes each, from a place on; nothing behind `n_left` is read.

    0 bytes stand for int32.
    """
    start = builder.bitcast(ids, _BYTE.as_pointer())
    there = builder.gep(start, [builder.mul(place, _LONG(n_bytes or 4))])
    if n_bytes == 2:
        kind = ir.VectorType(_SHORT, LANES)
        return builder.zext(load_first(context, builder, there, kind, n_left), _INTS)
    if n_bytes != 3:
        return load_first(context, builder, there, _INTS, n_left)
    kind = ir.VectorType(_BYTE, 4 * LANES)
    most = _INT(3 * LANES)
    n_wanted = builder.mul(n_left, _INT(3))
    n_wanted = builder.select(builder.icmp_signed("<", n_wanted, most), n_wanted, most)
    there_all = load_first(context, builder, there, kind, n_wanted)
    zeros = ir.Constant(kind, None)
    which = [3 * (t // 4) + t % 4 if t % 4 < 3 else 4 * LANES for t in range(4 * LANES)]
    chosen = ir.Constant(ir.VectorType(_INT, 4 * LANES), which)
    return builder.bitcast(builder.shuffle_vector(there_all, zeros, chosen), _INTS)


class _Entries:
    """The columns and weights of sparse rows, as generated code reads them."""

    def __init__(self, context: Any, builder: Any, kinds: Any, values: Any) -> None:
        self.context, self.builder = context, builder
        self.ids, self.weights = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(kinds, values, strict=True)
        )
        self.is_packed = kinds[0].ndim > 1

    def each(self, first: Any, after: Any) -> Iterator[_Block]:
        """Loop over blocks of sixteen entries; yields columns, what reads weights, which count.

        The body is generated once for each width of ids.
        """
        for n_bytes in self._widths():
            yield from self._blocks(first, after, n_bytes)

    def each_alone(self, first: Any, after: Any) -> Iterator[_Entry]:
        """Loop over entries; yields a column and what reads its weight, for `each` width of ids."""
        builder = self.builder
        for n_bytes in self._widths():
            with cgutils.for_range_slice(builder, first, after, _LONG(1)) as (place, _):
                column = id_there(builder, self.ids.data, place, n_bytes or 4)
                yield column, partial(self._weight, place)

    def _widths(self) -> Iterator[int]:
        """Yield the widths of ids that there can be, within what is run for those."""
        if not self.is_packed:
            yield 0
            return
        builder = self.builder
        width = cgutils.unpack_tuple(builder, self.ids.shape)[1]
        for n_bytes in ID_WIDTHS:
            with builder.if_then(builder.icmp_unsigned("==", width, width.type(n_bytes))):
                yield n_bytes

    def _blocks(self, first: Any, after: Any, n_bytes: int) -> Iterator[_Block]:
        builder = self.builder
        with cgutils.for_range_slice(builder, first, after, _LONG(LANES)) as (place, _):
            n_left = builder.trunc(builder.sub(after, place), _INT)
            columns = packed_columns(self.context, builder, self.ids.data, place, n_left, n_bytes)
            mask = first_lanes(builder, n_left, LANES)
            yield columns, partial(self._weights, place, n_left), mask

    def _weight(self, place: Any) -> Any:
        """Return a weight as float32."""
        own = self.builder.load(self.builder.gep(self.weights.data, [place]))
        return _as_floats(self.builder, own)

    def _weights(self, place: Any, n_left: Any) -> Any:
        """Return sixteen weights as float32; nothing behind `n_left` is read."""
        there = self.builder.gep(self.weights.data, [place])
        kind = ir.VectorType(there.type.pointee, LANES)
        own = load_first(self.context, self.builder, there, kind, n_left)
        return _as_floats(self.builder, own)


def _as_floats(builder: Any, weights: Any) -> Any:
    """Return one or sixteen stored weights as float32; see `longtail.kernels.rows.widen`."""
    is_one = not isinstance(weights.type, ir.VectorType)
    kind = weights.type if is_one else weights.type.element
    if kind == _FLOAT:
        return weights
    ints, floats = (_INT, _FLOAT) if is_one else (_INTS, _FLOATS)
    if kind == _BYTE:
        return builder.sitofp(builder.sext(weights, ints), floats)

    def every(number: Any, kind: Any = ints) -> Any:
        return kind(number) if is_one else ir.Constant(kind, [number] * LANES)

    halves = builder.zext(weights, ints)
    bits = builder.shl(builder.and_(halves, every(0x7FFF)), every(13))
    magnitude = builder.fmul(builder.bitcast(bits, floats), every(_UP_BY_112, floats))
    sign = builder.shl(builder.and_(halves, every(0x8000)), every(16))
    return builder.bitcast(builder.or_(builder.bitcast(magnitude, ints), sign), floats)


def _at(builder: Any, base: Any, place: Any) -> Any:
    """Return where a number of an array is, whose place is small and has no sign."""
    return builder.gep(base, [builder.zext(place, _LONG)])


def _lesser(builder: Any, one: Any, other: Any) -> Any:
    """Return the smaller of numbers without a sign."""
    return builder.select(builder.icmp_unsigned("<", one, other), one, other)


def _add_one(builder: Any, base: Any, place: Any, value: Any) -> None:
    """Add to a number of an array."""
    there = _at(builder, base, place)
    builder.store(builder.fadd(builder.load(there), value), there)


def _add_product(builder: Any, total: Any, one: Any, other: Any) -> None:
    """Add a product, or sixteen, to a total."""
    product = builder.fmul(one, other, flags=("contract",))
    builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)


def _span(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[Any, Any]:
    """Return the third and fourth argument, where entries begin and end."""
    first, after = (
        context.cast(builder, arguments[i], signature.args[i], types.int64) for i in (2, 3)
    )
    return first, after


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def add_scaled(
    _: Any, ids: Any, weights: Any, first: Any, after: Any, scale: Any, sums: Any
) -> Any:
    """Add the weights of some entries, times a scale, to the sums of their columns.

    Columns that have no sum are passed over.

    Parameters
    ----------
    ids : int32 (n,) or of `pack_ids`
    weights : float32, uint16 (the bits of float16) or int8 (n,)
    first, after : int
        The entries; no column is there twice.
    scale : float32
    sums : float32 (n_columns,)
        Added to.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        entries = _Entries(context, builder, signature.args[:2], arguments[:2])
        target = context.make_array(signature.args[5])(context, builder, arguments[5])
        n_sums = builder.trunc(cgutils.unpack_tuple(builder, target.shape)[0], _INT)
        factor = context.cast(builder, arguments[4], scale, types.float32)
        span = _span(context, builder, signature, arguments)
        for column, value in entries.each_alone(*span):
            with builder.if_then(builder.icmp_unsigned("<", column, n_sums), likely=True):
                _add_one(builder, target.data, column, builder.fmul(factor, value()))
        return context.get_dummy_value()

    return types.void(ids, weights, first, after, scale, sums), generate


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def gathered_sum(_: Any, ids: Any, weights: Any, first: Any, after: Any, dense: Any) -> Any:
    """Return the sum of the weights of some entries times the numbers of their columns.

    Parameters
    ----------
    ids, weights, first, after
        See `add_scaled`.
    dense : float32 (n_columns,)
        At least one; what is beyond counts as the last.

    Returns
    -------
    float32
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        entries = _Entries(context, builder, signature.args[:2], arguments[:2])
        table = context.make_array(signature.args[4])(context, builder, arguments[4])
        last = builder.trunc(cgutils.unpack_tuple(builder, table.shape)[0], _INT)
        last = builder.sub(last, _INT(1))
        span = _span(context, builder, signature, arguments)
        if not has_instructions(context):
            total = cgutils.alloca_once_value(builder, _FLOAT(0.0))
            for column, value in entries.each_alone(*span):
                own = builder.load(_at(builder, table.data, _lesser(builder, column, last)))
                _add_product(builder, total, own, value())
            return builder.load(total)
        last = in_lanes(builder, last, _INTS)
        total = cgutils.alloca_once_value(builder, _ZEROS)
        for columns, values, _mask in entries.each(*span):
            places = _lesser(builder, columns, last)
            own = gathered(builder, table.data, places, _FLOATS)
            _add_product(builder, total, own, values())
        add = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_FLOAT, [_FLOAT, _FLOATS]),
            f"llvm.vector.reduce.fadd.v{LANES}f32",
        )
        return builder.call(add, [_FLOAT(0.0), builder.load(total)], fastmath=("reassoc",))

    return types.float32(ids, weights, first, after, dense), generate


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def add_to_slots(
    _: Any, ids: Any, weights: Any, first: Any, after: Any, scale: Any, slots: Any, sums: Any
) -> Any:
    """Add the weights of some entries, times a scale, to the sums of the columns that have a slot.

    Parameters
    ----------
    ids, weights, first, after, scale
        See `add_scaled`.
    slots : uint16 (n_columns + 2,)
        One more than the place of a column's sum; 0 where it has none, and behind the columns.
    sums : float32 (n,)
        Added to.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        entries = _Entries(context, builder, signature.args[:2], arguments[:2])
        marks, target = (
            context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (5, 6)
        )
        last = builder.trunc(cgutils.unpack_tuple(builder, marks.shape)[0], _INT)
        last = builder.sub(last, _INT(N_MORE_SLOTS))
        factor = context.cast(builder, arguments[4], scale, types.float32)
        span = _span(context, builder, signature, arguments)
        if not has_instructions(context):
            for column, weight in entries.each_alone(*span):
                slot = builder.load(_at(builder, marks.data, _lesser(builder, column, last)))
                with builder.if_then(builder.icmp_unsigned("!=", slot, _SHORT(0)), likely=False):
                    place = builder.sub(slot, _SHORT(1))
                    _add_one(builder, target.data, place, builder.fmul(factor, weight()))
            return context.get_dummy_value()
        last, factors = in_lanes(builder, last, _INTS), in_lanes(builder, factor, _FLOATS)
        low_half, none = (ir.Constant(_INTS, [n] * LANES) for n in (0xFFFF, 0))
        slots_of, products = (cgutils.alloca_once(builder, kind) for kind in (_INTS, _FLOATS))
        slots_there, products_there = (
            builder.bitcast(room, ir.ArrayType(kind, LANES).as_pointer())
            for room, kind in ((slots_of, _INT), (products, _FLOAT))
        )
        for columns, weights_of, mask in entries.each(*span):
            places = _lesser(builder, columns, last)
            own = builder.and_(gathered(builder, marks.data, places, _INTS), low_half)
            marked = builder.and_(builder.icmp_unsigned("!=", own, none), mask)
            any_bit = builder.icmp_unsigned("!=", builder.bitcast(marked, _SHORT), _SHORT(0))
            with builder.if_then(any_bit):
                builder.store(own, slots_of)
                builder.store(builder.fmul(factors, weights_of()), products)
                with each_lane(builder, marked) as lane:
                    slot, product = (
                        builder.load(builder.gep(room, [_LONG(0), lane]))
                        for room in (slots_there, products_there)
                    )
                    _add_one(builder, target.data, builder.sub(slot, _INT(1)), product)
        return context.get_dummy_value()

    return types.void(ids, weights, first, after, scale, slots, sums), generate
