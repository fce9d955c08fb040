"""Entries of sparse rows sixteen at a time: sums gathered from, and scattered to, their columns.

Columns are looked up wherever they lie, so a processor needs instructions that read and write
sixteen places at once; one without them goes from place to place. Columns of one row are distinct.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    _Block = tuple[Any, Callable[[], Any], Any]

__all__ = [
    "LANES",
    "N_MORE_SLOTS",
    "add_scaled",
    "add_to_slots",
    "first_lanes",
    "gathered",
    "gathered_sum",
    "has_instructions",
    "in_lanes",
    "packed_columns",
    "scatter",
]

LANES = 16
N_MORE_SLOTS = 2  # behind those of labels: two are read at once, and one stays empty
_BYTE, _SHORT, _INT, _LONG = (ir.IntType(n) for n in (8, 16, 32, 64))
_FLOAT = ir.FloatType()
_INTS, _FLOATS = ir.VectorType(_INT, LANES), ir.VectorType(_FLOAT, LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_ZEROS = ir.Constant(_FLOATS, [0.0] * LANES)
_SIZES = {_SHORT: 2, _INT: 4, _FLOAT: 4}  # bytes
_UP_BY_112 = 2.0**112  # between the exponents' offsets of float16 and float32
_ID_WIDTHS = (2, 3, 4)  # bytes, see `longtail.kernels.packed_ids`


def in_lanes(builder: Any, number: Any, kind: Any) -> Any:
    """Return a number in all lanes."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, _INT(0))
    zeros = ir.Constant(ir.VectorType(_INT, kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, one, zeros)


def first_lanes(builder: Any, n: Any, count: int = LANES) -> Any:
    """Return which lanes are among the first `n`."""
    kind = ir.VectorType(n.type, count)
    return builder.icmp_signed(
        "<", ir.Constant(kind, list(range(count))), in_lanes(builder, n, kind)
    )


def _masked_load(builder: Any, there: Any, kind: Any, mask: Any) -> Any:
    """Load the lanes of a mask, and zeros: nothing else is read."""
    letter = {_BYTE: "i8", _SHORT: "i16", _INT: "i32", _FLOAT: "f32"}[kind.element]
    pointer = kind.as_pointer()
    own = ir.FunctionType(kind, [pointer, _INT, mask.type, kind])
    name = f"llvm.masked.load.v{kind.count}{letter}.p0"
    load = cgutils.get_or_insert_function(builder.module, own, name)
    zeros = ir.Constant(kind, None)
    return builder.call(load, [builder.bitcast(there, pointer), _INT(1), mask, zeros])


def has_instructions(context: Any) -> bool:
    """Tell whether the processor reads and writes sixteen places at once."""
    return "+avx512f" in context.codegen().magic_tuple()[2]


def gathered(context: Any, builder: Any, base: Any, places: Any, kind: Any) -> Any:
    """Return the 32 bits that begin at each of sixteen places of an array."""
    start, size = builder.bitcast(base, _BYTE.as_pointer()), _SIZES[base.type.pointee]
    if has_instructions(context):
        name = "dpi" if kind == _INTS else "dps"
        own = ir.FunctionType(kind, [kind, start.type, _INTS, _MASK, _INT])
        take = cgutils.get_or_insert_function(
            builder.module, own, f"llvm.x86.avx512.mask.gather.{name}.512"
        )
        every, nothing = ir.Constant(_MASK, [1] * LANES), ir.Constant(kind, None)
        return builder.call(take, [nothing, start, places, every, _INT(size)])
    found = ir.Constant(kind, ir.Undefined)
    for lane in range(LANES):
        place = builder.zext(builder.extract_element(places, _INT(lane)), _LONG)
        there = builder.gep(start, [builder.mul(place, _LONG(size))])
        own = builder.load(builder.bitcast(there, kind.element.as_pointer()), align=1)
        found = builder.insert_element(found, own, _INT(lane))
    return found


def scatter(context: Any, builder: Any, base: Any, places: Any, mask: Any, values: Any) -> None:
    """Write the lanes of a mask to their places."""
    if has_instructions(context):
        pointer = _BYTE.as_pointer()
        own = ir.FunctionType(ir.VoidType(), [pointer, _MASK, _INTS, values.type, _INT])
        name = "dpi" if values.type == _INTS else "dps"
        put = cgutils.get_or_insert_function(
            builder.module, own, f"llvm.x86.avx512.mask.scatter.{name}.512"
        )
        builder.call(put, [builder.bitcast(base, pointer), mask, places, values, _INT(4)])
        return
    for lane in range(LANES):
        with builder.if_then(builder.extract_element(mask, _INT(lane))):
            place = builder.zext(builder.extract_element(places, _INT(lane)), _LONG)
            value = builder.extract_element(values, _INT(lane))
            builder.store(value, builder.gep(base, [place]))


def packed_columns(builder: Any, ids: Any, place: Any, n_left: Any, mask: Any, n_bytes: int) -> Any:
    """Return sixteen ids of so many bytes each, from a place on; nothing behind `n_left` is read.

    0 bytes stand for int32.
    """
    start = builder.bitcast(ids, _BYTE.as_pointer())
    there = builder.gep(start, [builder.mul(place, _LONG(n_bytes or 4))])
    if n_bytes == 2:
        kind = ir.VectorType(_SHORT, LANES)
        return builder.zext(_masked_load(builder, there, kind, mask), _INTS)
    if n_bytes != 3:
        return _masked_load(builder, there, _INTS, mask)
    kind = ir.VectorType(_BYTE, 4 * LANES)
    of_bytes = first_lanes(builder, builder.mul(n_left, _INT(3)), 4 * LANES)
    of_block = ir.Constant(of_bytes.type, [lane < 3 * LANES for lane in range(4 * LANES)])
    there_all = _masked_load(builder, there, kind, builder.and_(of_bytes, of_block))
    zeros = ir.Constant(kind, None)
    which = [3 * (t // 4) + t % 4 if t % 4 < 3 else 4 * LANES for t in range(4 * LANES)]
    chosen = ir.Constant(ir.VectorType(_INT, 4 * LANES), which)
    return builder.bitcast(builder.shuffle_vector(there_all, zeros, chosen), _INTS)


class _Entries:
    """The columns and weights of sparse rows, as generated code reads them."""

    def __init__(self, context: Any, builder: Any, kinds: Any, values: Any) -> None:
        self.builder = builder
        self.ids, self.weights = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(kinds, values, strict=True)
        )
        self.is_packed = kinds[0].ndim > 1
        self.dtype = kinds[1].dtype

    def each(self, first: Any, after: Any) -> Iterator[_Block]:
        """Loop over blocks of entries; yields columns, what reads weights, which lanes count.

        The body is generated once for each width of ids.
        """
        builder = self.builder
        if not self.is_packed:
            yield from self._blocks(first, after, 0)
            return
        width = cgutils.unpack_tuple(builder, self.ids.shape)[1]
        for n_bytes in _ID_WIDTHS:
            with builder.if_then(builder.icmp_unsigned("==", width, width.type(n_bytes))):
                yield from self._blocks(first, after, n_bytes)

    def _blocks(self, first: Any, after: Any, n_bytes: int) -> Iterator[_Block]:
        builder = self.builder
        with cgutils.for_range_slice(builder, first, after, _LONG(LANES)) as (place, _):
            n_left = builder.trunc(builder.sub(after, place), _INT)
            mask = first_lanes(builder, n_left)
            columns = packed_columns(builder, self.ids.data, place, n_left, mask, n_bytes)

            def weights(place: Any = place, mask: Any = mask) -> Any:
                return self._weights(place, mask)

            yield columns, weights, mask

    def _weights(self, place: Any, mask: Any) -> Any:
        """Return sixteen weights as float32."""
        builder = self.builder
        there = builder.gep(self.weights.data, [place])
        if self.dtype == types.float32:
            return _masked_load(builder, there, _FLOATS, mask)
        if self.dtype == types.int8:
            some = _masked_load(builder, there, ir.VectorType(_BYTE, LANES), mask)
            return builder.sitofp(builder.sext(some, _INTS), _FLOATS)
        some = _masked_load(builder, there, ir.VectorType(_SHORT, LANES), mask)
        return _widened_halves(builder, builder.zext(some, _INTS))


def _widened_halves(builder: Any, halves: Any) -> Any:
    """Return the bits of float16 as float32; see `longtail.kernels.rows.widen`."""

    def every(number: int) -> Any:
        return ir.Constant(_INTS, [number] * LANES)

    bits = builder.shl(builder.and_(halves, every(0x7FFF)), every(13))
    factor = ir.Constant(_FLOATS, [_UP_BY_112] * LANES)
    magnitude = builder.fmul(builder.bitcast(bits, _FLOATS), factor)
    sign = builder.shl(builder.and_(halves, every(0x8000)), every(16))
    return builder.bitcast(builder.or_(builder.bitcast(magnitude, _INTS), sign), _FLOATS)


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
        n_sums = in_lanes(builder, n_sums, _INTS)
        factor = context.cast(builder, arguments[4], scale, types.float32)
        factors = in_lanes(builder, factor, _FLOATS)
        none = ir.Constant(_INTS, [0] * LANES)
        for columns, values, mask in entries.each(*_span(context, builder, signature, arguments)):
            inside = builder.and_(mask, builder.icmp_unsigned("<", columns, n_sums))
            places = builder.select(inside, columns, none)
            own = gathered(context, builder, target.data, places, _FLOATS)
            own = builder.fadd(own, builder.fmul(factors, values()))
            scatter(context, builder, target.data, places, inside, own)
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
        last = in_lanes(builder, builder.sub(last, _INT(1)), _INTS)
        total = cgutils.alloca_once_value(builder, _ZEROS)
        for columns, values, _mask in entries.each(*_span(context, builder, signature, arguments)):
            is_there = builder.icmp_unsigned("<", columns, last)
            places = builder.select(is_there, columns, last)
            own = gathered(context, builder, table.data, places, _FLOATS)
            product = builder.fmul(own, values(), flags=("contract",))
            added = builder.fadd(builder.load(total), product, flags=("contract",))
            builder.store(added, total)
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
        last = in_lanes(builder, builder.sub(last, _INT(N_MORE_SLOTS)), _INTS)
        factor = context.cast(builder, arguments[4], scale, types.float32)
        factors = in_lanes(builder, factor, _FLOATS)
        low_half, one = (ir.Constant(_INTS, [n] * LANES) for n in (0xFFFF, 1))
        none = ir.Constant(_INTS, [0] * LANES)
        for columns, weights_of, mask in entries.each(
            *_span(context, builder, signature, arguments)
        ):
            is_there = builder.icmp_unsigned("<", columns, last)
            places = builder.select(is_there, columns, last)
            own = builder.and_(gathered(context, builder, marks.data, places, _INTS), low_half)
            marked = builder.and_(builder.icmp_unsigned("!=", own, none), mask)
            any_bit = builder.icmp_unsigned("!=", builder.bitcast(marked, _SHORT), _SHORT(0))
            with builder.if_then(any_bit):
                slots_of = builder.select(marked, builder.sub(own, one), none)
                sums_of = gathered(context, builder, target.data, slots_of, _FLOATS)
                sums_of = builder.fadd(sums_of, builder.fmul(factors, weights_of()))
                scatter(context, builder, target.data, slots_of, marked, sums_of)
        return context.get_dummy_value()

    return types.void(ids, weights, first, after, scale, slots, sums), generate
