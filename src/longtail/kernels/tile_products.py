"""Products of many vectors in seven bits a number by tiles of bytes, where a processor has any.

A tile is sixteen rows of 64 bytes, and one instruction multiplies sixteen rows with up to sixteen
others (Intel's AMX). Sums are whole numbers, so products are those of `products_of_range` to the
bit; they take a third of the time.

The system must grant a process the use of tiles, and each thread must say how large its own are.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic

from longtail.kernels.byte_codes import N_AT_ONCE, CodedRows, range_asked, scaled
from longtail.kernels.byte_products import picked
from longtail.kernels.instructions import LINE, has, in_lanes, load, store

__all__ = [
    "MOST_TILED",
    "N_TILED",
    "begin_tiles",
    "end_tiles",
    "has_tiles",
    "products_of_tiles",
]

N_TILED = 16  # rows
MOST_TILED = 2048  # bytes of a row: queries are written down for each call
_NUMBER_BYTES = 4
_QUERY_BYTES = N_TILED * N_AT_ONCE * _NUMBER_BYTES  # of a line of all queries
# Numbers of tiles. Two blocks of rows are worked on at once.
_SUMS, _ROWS, _QUERIES = (0, 1), (2, 3), 4
_BYTE, _INT, _LONG = (ir.IntType(n) for n in (8, 32, 64))
_POINTER = _BYTE.as_pointer()
_INTS = ir.VectorType(_INT, N_TILED)
_ALL_INTS = ir.VectorType(_INT, N_TILED * N_AT_ONCE)
_FLOATS = ir.VectorType(ir.FloatType(), N_TILED)
_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18  # of Linux on x86-64


@cache
def has_tiles() -> bool:
    """Return whether this process may use tiles, once it has asked the system for it."""
    is_linux = sys.platform == "linux" and platform.machine() == "x86_64"
    if not is_linux or not binding.get_host_cpu_features().get("amx-int8", False):
        return False
    system: Any = ctypes.CDLL(None)
    return bool(system.syscall(_ARCH_PRCTL, _REQUEST, _TILE_DATA) == 0)


def _shapes() -> bytes:
    """Return what tells a processor how many rows, and bytes a row, each tile has."""
    shapes = bytearray(64)
    shapes[0] = 1
    for tile in (*_SUMS, *_ROWS, _QUERIES):
        width = LINE if tile in _ROWS else N_AT_ONCE * _NUMBER_BYTES
        shapes[16 + 2 * tile], shapes[48 + tile] = width, N_TILED
    return bytes(shapes)


def _call(builder: Any, name: str, *arguments: Any) -> None:
    """Generate one of the instructions for tiles."""
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.{name}")
    builder.call(function, arguments)


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def begin_tiles(_: Any, before: Any) -> Any:
    """Say how large this thread's tiles are, before `products_of_tiles`; only if `has_tiles`.

    Parameters
    ----------
    before : uint8 (64,)
        Written: how large they were. Torch's products use tiles, too, and a library that has said
        so once on a thread may rely on it.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if has(context, "amx-int8"):
            saved = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            shapes = cgutils.global_constant(
                builder, "shapes_of_tiles", cgutils.make_bytearray(_shapes())
            )
            _call(builder, "sttilecfg", builder.bitcast(saved, _POINTER))
            _call(builder, "ldtilecfg", builder.bitcast(shapes, _POINTER))
        return context.get_dummy_value()

    return types.void(before), generate


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def end_tiles(_: Any, before: Any) -> Any:
    """Let this thread's tiles be as they were before `begin_tiles`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if has(context, "amx-int8"):
            saved = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            _call(builder, "ldtilecfg", builder.bitcast(saved, _POINTER))
        return context.get_dummy_value()

    return types.void(before), generate


def _write_queries(builder: Any, queries: CodedRows, asking: list[Any], room: Any) -> None:
    """Write queries line by line, four numbers of each in turn, as tiles want them."""
    firsts = [queries.at(query) for query in asking]
    with cgutils.for_range_slice(builder, _LONG(0), queries.width, _LONG(LINE)) as (offset, _i):
        lines = [builder.bitcast(queries.line(first, offset), _INTS) for first in firsts]
        every = list(range(2 * N_TILED))
        halves = [picked(builder, lines[i], lines[i + 1], every) for i in (0, 2)]
        places = [q * N_TILED + k for k in range(N_TILED) for q in range(N_AT_ONCE)]
        numbers = picked(builder, halves[0], halves[1], places)
        there = builder.gep(room, [builder.mul(offset, _LONG(_QUERY_BYTES // LINE))])
        store(builder, numbers, there, align=LINE)


def _multiply(builder: Any, rows: CodedRows, starts: list[Any], queries: Any, sums: Any) -> None:
    """Write the sums of some blocks of rows with all queries, sixteen times four of each block."""
    for tile in _SUMS:
        _call(builder, "tilezero", _BYTE(tile))
    with cgutils.for_range_slice(builder, _LONG(0), rows.width, _LONG(LINE)) as (offset, _i):
        there = builder.gep(queries, [builder.mul(offset, _LONG(_QUERY_BYTES // LINE))])
        short = _LONG(N_AT_ONCE * _NUMBER_BYTES)
        _call(builder, "tileloadd64", _BYTE(_QUERIES), there, short)
        for total, tile, start in zip(_SUMS, _ROWS, starts, strict=True):
            line = builder.gep(start, [offset])
            _call(builder, "tileloadd64", _BYTE(tile), line, rows.width)
            _call(builder, "tdpbusd", _BYTE(total), _BYTE(tile), _BYTE(_QUERIES))
    for block, tile in enumerate(_SUMS):
        there = builder.gep(sums, [_LONG(block * _QUERY_BYTES)])
        _call(builder, "tilestored64", _BYTE(tile), there, _LONG(N_AT_ONCE * _NUMBER_BYTES))


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def products_of_tiles(
    _: Any, queries: Any, which: Any, first: Any, vectors: Any, start: Any, stop: Any, products: Any
) -> Any:
    """Write what `products_of_range` does, between `begin_tiles` and `end_tiles`.

    Parameters
    ----------
    queries, which, first, vectors
        Of codes of at most `MOST_TILED` bytes.
    start, stop : int
        At least `N_TILED` vectors.
    products : int32 (4, at least ``stop - start``)
        Written.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not has(context, "amx-int8"):
            return context.get_dummy_value()  # it is not called
        own, asking, table, begin, end, target = range_asked(context, builder, signature, arguments)
        n_columns = cgutils.unpack_tuple(builder, target.shape)[1]
        room, sums = (
            builder.bitcast(_aligned_room(builder, n_bytes), _POINTER)
            for n_bytes in (MOST_TILED // LINE * _QUERY_BYTES, len(_SUMS) * _QUERY_BYTES)
        )
        _write_queries(builder, own, asking, room)
        last = builder.sub(end, _LONG(N_TILED))
        step = _LONG(len(_SUMS) * N_TILED)
        with cgutils.for_range_slice(builder, begin, end, step) as (j, _i):
            places = []
            for block in range(len(_SUMS)):  # the last ones overlap, so that all are whole
                place = builder.add(j, _LONG(block * N_TILED))
                is_inside = builder.icmp_signed("<", place, last)
                places.append(builder.select(is_inside, place, last))
            _multiply(builder, table, [table.at(place) for place in places], room, sums)
            for block, place in enumerate(places):
                there = builder.gep(sums, [_LONG(block * _QUERY_BYTES)])
                numbers = load(builder, there, _ALL_INTS, align=LINE)
                of_rows = table.further_from(place, _FLOATS)
                column = builder.sub(place, begin)
                for i, query in enumerate(asking):
                    mine = list(range(i, N_TILED * N_AT_ONCE, N_AT_ONCE))
                    total = picked(builder, numbers, numbers, mine)
                    total = builder.sub(total, in_lanes(builder, own.excess(query), _INTS))
                    total = scaled(builder, total, own.further([query]), of_rows)
                    goal = builder.add(builder.mul(_LONG(i), n_columns), column)
                    store(builder, total, builder.gep(target.data, [goal]))
        return context.get_dummy_value()

    own_type = types.void(queries, which, first, vectors, start, stop, products)
    return own_type, generate


def _aligned_room(builder: Any, n_bytes: int) -> Any:
    """Return scratch that begins on a cache line."""
    room = cgutils.alloca_once(builder, ir.ArrayType(_BYTE, n_bytes))
    room.align = LINE
    return room
