"""Vectors in four bits a number, for searches that score again what they find.

A step apart for all rows of a table, sixteen values a number, two numbers a byte: an inner product
of 256 numbers reads two cache lines. A byte holds number ``t`` of its block of 128 and number
``t + 64``, so that halves of bytes become vectors of bytes without being moved. A row ends with
half a block where that is enough: its bytes hold numbers ``t`` and ``t + 32`` of 64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic

from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Packed = NDArray[np.uint8]

__all__ = [
    "BLOCK",
    "HALF_BLOCK",
    "MIDDLE",
    "half_packed_sums",
    "pack_rows",
    "packed_dots",
    "packed_sums",
    "packed_width",
    "put_code",
    "unpacked_rows",
]

binding.initialize_native_asmparser()

BLOCK = 64  # bytes: a cache line
HALF_BLOCK = BLOCK // 2
MIDDLE = np.float32(7.5)
_LARGEST = np.float32(2.7)  # standard deviations: what is beyond is cut
_BYTE, _NUMBER = ir.IntType(8), ir.IntType(32)
_BYTES = ir.VectorType(_BYTE, BLOCK)
_LANES = 16
_AHEAD = 8  # rows


def packed_width(dimension: int) -> int:
    """Return how many bytes a row takes: whole half blocks; a query has twice as many numbers."""
    return -(-dimension // BLOCK) * HALF_BLOCK


def pack_rows(vectors: Floats) -> tuple[Packed, Floats]:
    """Return the codes of all rows, uint8 (n_rows, packed_width(d)), and the step (1,) float32.

    Each row is on cache lines of its own.

    Parameters
    ----------
    vectors : float32 (n_rows, d)
    """
    shape = len(vectors), packed_width(vectors.shape[1])
    room = np.zeros(shape[0] * shape[1] + BLOCK, np.uint8)
    first = -room.ctypes.data % BLOCK
    codes = room[first : first + shape[0] * shape[1]].reshape(shape)
    return codes, np.array([_write_codes(vectors, codes)], np.float32)


def unpacked_rows(codes: Packed, step: Floats, dimension: int) -> Floats:
    """Return the vectors (n_rows, dimension) that codes stand for."""
    n_whole = codes.shape[1] // BLOCK * BLOCK
    parts = [_levels(codes[:, :n_whole], BLOCK), _levels(codes[:, n_whole:], HALF_BLOCK)]
    levels = np.concatenate(parts, axis=1)[:, :dimension]
    return (levels.astype(np.float32) - MIDDLE) * step


def _levels(codes: Packed, size: int) -> Packed:
    """Return the numbers of whole blocks of a size, in order."""
    blocks = codes.reshape(len(codes), codes.shape[1] // size, 1, size)
    return np.concatenate([blocks & 15, blocks >> 4], axis=2).reshape(len(codes), -1)


@kernel
def put_code(row: Packed, t: int, code: np.uint8) -> None:
    """Add the code of number `t` to a row that has none of it yet."""
    first = t // (2 * BLOCK) * BLOCK
    size = BLOCK if first + BLOCK <= len(row) else HALF_BLOCK
    place = t - 2 * first
    row[first + place % size] |= np.uint8(code << np.uint8(4 if place >= size else 0))


@kernel
def _write_codes(vectors: Floats, codes: Packed) -> np.float32:
    """Write the codes of all rows into zeros, and return the step."""
    total = 0.0
    for vector in vectors:
        for value in vector:
            total += value * value
    deviation = np.sqrt(total / max(vectors.size, 1))
    inverse = np.float32(MIDDLE / (_LARGEST * deviation)) if deviation > 0 else np.float32(0)
    for row in range(len(vectors)):
        for t in range(vectors.shape[1]):
            level = np.rint(vectors[row, t] * inverse + MIDDLE)
            code = np.uint8(min(max(level, np.float32(0)), np.float32(15)))
            put_code(codes[row], t, code)
    return np.float32(_LARGEST * deviation / MIDDLE)


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def packed_dots(_: Any, query: Any, codes: Any, row: Any) -> Any:
    """Return the inner product of a query with a row of codes, int32.

    Every code counts 7.5 too much, which adds the same to the product with any row.

    Parameters
    ----------
    query : int8 (2 * width,)
        See `longtail.kernels.rows.quantise`; zeros behind the vector.
    codes : uint8 (n_rows, width)
    row : int

    Notes
    -----
    Written out, since the compiler sees no vectors in a loop over halves of bytes.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [
            context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 1)
        ]
        place = context.cast(builder, arguments[2], signature.args[2], types.intp)
        width = cgutils.unpack_tuple(builder, arrays[1].shape)[1]
        own, rows = (builder.bitcast(array.data, _BYTE.as_pointer()) for array in arrays)
        own_row = builder.gep(rows, [builder.mul(place, width)])
        lanes = ir.VectorType(_NUMBER, BLOCK // 4 if _has_instruction(context) else BLOCK)
        sums = [cgutils.alloca_once_value(builder, ir.Constant(lanes, None)) for _ in "lh"]
        step = ir.Constant(width.type, BLOCK)
        with cgutils.for_range(builder, builder.udiv(width, step)) as loop:
            at = builder.mul(loop.index, step)
            both = _load_block(builder, own_row, at)
            low = builder.and_(both, ir.Constant(_BYTES, [15] * BLOCK))
            high = builder.lshr(both, ir.Constant(_BYTES, [4] * BLOCK))
            for half, total, offset in zip(
                (low, high), sums, (at, builder.add(at, step)), strict=True
            ):
                mine = _load_block(builder, own, builder.add(at, offset))
                builder.store(
                    _add_products(context, builder, builder.load(total), half, mine), total
                )
        behind = builder.mul(builder.udiv(width, step), step)
        with builder.if_then(builder.icmp_unsigned("<", behind, width)):
            halves = _unpacked_half(builder, own_row, behind)
            mine = _load_block(builder, own, builder.add(behind, behind))
            builder.store(
                _add_products(context, builder, builder.load(sums[0]), halves, mine), sums[0]
            )
        add = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_NUMBER, [lanes]),
            f"llvm.vector.reduce.add.v{lanes.count}i32",
        )
        return builder.call(add, [builder.add(*map(builder.load, sums))])

    return types.int32(query, codes, row), generate


def _has_instruction(context: Any) -> bool:
    """Tell whether the processor adds up products of bytes by one instruction."""
    return "+avx512vnni" in context.codegen().magic_tuple()[2]


def _add_products(context: Any, builder: Any, total: Any, numbers: Any, query: Any) -> Any:
    """Add products of unsigned with signed bytes to 32-bit sums."""
    own = _add_at_once if _has_instruction(context) else _add_widened
    return own(builder, total, numbers, query)


def _load_block(builder: Any, start: Any, at: Any, kind: Any = _BYTES) -> Any:
    """Load a block of bytes."""
    there = builder.bitcast(builder.gep(start, [at]), kind.as_pointer())
    return builder.load(there, align=1)


def _unpacked_half(builder: Any, start: Any, at: Any) -> Any:
    """Load half a block, and return its numbers as a block of bytes."""
    kind = ir.VectorType(_BYTE, HALF_BLOCK)
    both = _load_block(builder, start, at, kind)
    low = builder.and_(both, ir.Constant(kind, [15] * HALF_BLOCK))
    high = builder.lshr(both, ir.Constant(kind, [4] * HALF_BLOCK))
    every = ir.Constant(ir.VectorType(_NUMBER, BLOCK), list(range(BLOCK)))
    return builder.shuffle_vector(low, high, every)


def _add_at_once(builder: Any, total: Any, half: Any, query: Any) -> Any:
    """Add products of unsigned with signed bytes, four to a lane, by the instruction for it."""
    kind = ir.FunctionType(total.type, [total.type, _BYTES, _BYTES])
    return builder.asm(kind, "vpdpbusd $3, $2, $0", "=v,0,v,v", [total, half, query], False)


def _add_widened(builder: Any, total: Any, half: Any, query: Any) -> Any:
    """Add the same products by instructions that any processor has."""
    product = builder.mul(builder.zext(half, total.type), builder.sext(query, total.type))
    return builder.add(total, product)


def _summing(n_bytes: int) -> Any:
    """Return what writes weighted sums of a block, or of half a block, of some rows of codes.

    All sums stay in registers; see also `packed_dots`.
    """

    @intrinsic  # type: ignore[untyped-decorator]  # numba has no types
    def sums_of(
        _: Any, table: Any, first: Any, columns: Any, values: Any, scales: Any, sums: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            arrays = {
                i: context.make_array(signature.args[i])(context, builder, arguments[i])
                for i in (0, 2, 3, 4, 5)
            }
            n_rows = cgutils.unpack_tuple(builder, arrays[2].shape)[0]
            width = cgutils.unpack_tuple(builder, arrays[0].shape)[1]
            offset = context.cast(builder, arguments[1], first, types.intp)
            codes = builder.gep(builder.bitcast(arrays[0].data, _BYTE.as_pointer()), [offset])
            floats = ir.VectorType(ir.FloatType(), _LANES)
            n_sums = 2 * n_bytes // _LANES
            zeros = ir.Constant(floats, None)
            totals = [cgutils.alloca_once_value(builder, zeros) for _ in range(n_sums)]

            def row_at(place: Any) -> Any:
                return builder.sext(builder.load(builder.gep(arrays[2].data, [place])), width.type)

            with cgutils.for_range(builder, n_rows) as loop:
                coming = builder.add(loop.index, ir.Constant(width.type, _AHEAD))
                with builder.if_then(builder.icmp_signed("<", coming, n_rows)):
                    _fetch(builder, builder.gep(codes, [builder.mul(row_at(coming), width)]))
                row = row_at(loop.index)
                at = builder.mul(row, width)
                numbers = _both_halves(builder, codes, at, n_bytes)
                weight = builder.fmul(
                    builder.load(builder.gep(arrays[3].data, [loop.index])),
                    builder.load(builder.gep(arrays[4].data, [row])),
                )
                one = builder.insert_element(ir.Constant(floats, ir.Undefined), weight, _NUMBER(0))
                weights = builder.shuffle_vector(
                    one, one, ir.Constant(ir.VectorType(_NUMBER, _LANES), [0] * _LANES)
                )
                for k, total in enumerate(totals):
                    half, begin = numbers[k * _LANES // BLOCK], k * _LANES % BLOCK
                    which = list(range(begin, begin + _LANES))
                    some = builder.shuffle_vector(
                        half, half, ir.Constant(ir.VectorType(_NUMBER, _LANES), which)
                    )
                    wide = builder.zext(some, ir.VectorType(_NUMBER, _LANES))
                    product = builder.fmul(
                        weights, builder.sitofp(wide, floats), flags=("contract",)
                    )
                    added = builder.fadd(builder.load(total), product, flags=("contract",))
                    builder.store(added, total)
            for k, total in enumerate(totals):
                there = builder.gep(arrays[5].data, [ir.Constant(width.type, k * _LANES)])
                there = builder.bitcast(there, floats.as_pointer())
                builder.store(builder.load(total), there, align=4)
            return context.get_dummy_value()

        return types.void(table, first, columns, values, scales, sums), generate

    return sums_of


def _both_halves(builder: Any, codes: Any, at: Any, n_bytes: int) -> list[Any]:
    """Return the numbers of a block, or of half a block, as blocks of bytes."""
    if n_bytes == HALF_BLOCK:
        return [_unpacked_half(builder, codes, at)]
    both = _load_block(builder, codes, at)
    low = builder.and_(both, ir.Constant(_BYTES, [15] * BLOCK))
    return [low, builder.lshr(both, ir.Constant(_BYTES, [4] * BLOCK))]


# Each writes the sums of the codes as they are, `MIDDLE` too much each, of uint8 (n_rows, width)
# from a byte on: given the table, the byte, int32 and float32 (n,) rows and what each is multiplied
# with, float32 (n_rows,) another factor of each row, and float32 (128,) to write to.
packed_sums = _summing(BLOCK)
half_packed_sums = _summing(HALF_BLOCK)


def _fetch(builder: Any, there: Any) -> None:
    """Ask for a cache line."""
    kind = ir.FunctionType(ir.VoidType(), [there.type, _NUMBER, _NUMBER, _NUMBER])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(fetch, [there, _NUMBER(0), _NUMBER(3), _NUMBER(1)])  # to read, keep, data
