"""Asking for memory before it is needed, so that the wait for it overlaps other work."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = ["prefetch_line", "prefetch_pair", "prefetch_row", "prefetch_whole"]

_LINE = 64  # bytes


def _prefetching(*offsets: int) -> Any:
    """Return what asks for the cache lines of some bytes of a row of an array, and goes on.

    The row may lie outside: what cannot be read is not fetched.
    """

    @intrinsic  # type: ignore[untyped-decorator]  # numba has no types
    def prefetch(_: Any, table: Any, row: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            stride = cgutils.unpack_tuple(builder, array.strides)[0]
            place = context.cast(builder, arguments[1], signature.args[1], types.intp)
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            start = builder.bitcast(array.data, byte)
            start = builder.gep(start, [builder.mul(place, stride)])
            fetch = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.VoidType(), [byte, number, number, number]),
                "llvm.prefetch.p0",
            )
            for offset in offsets:
                there = builder.gep(start, [ir.Constant(ir.IntType(64), offset)])
                builder.call(fetch, [there, number(0), number(3), number(1)])  # to read, keep, data
            return context.get_dummy_value()

        return types.void(table, row), generate

    return prefetch


prefetch_line = _prefetching(0)
# What comes after is fetched by the processor itself.
prefetch_row = _prefetching(0, _LINE, 2 * _LINE, 3 * _LINE)
# A row of two lines; in a file it may begin in the middle of one, and end in a third.
prefetch_pair = _prefetching(0, _LINE, 2 * _LINE - 1)


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def prefetch_whole(_: Any, table: Any, row: Any) -> Any:
    """Ask for all cache lines of a row; it may lie outside."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        place = context.cast(builder, arguments[1], signature.args[1], types.intp)
        byte, number, long = ir.IntType(8).as_pointer(), ir.IntType(32), ir.IntType(64)
        start = builder.gep(builder.bitcast(array.data, byte), [builder.mul(place, stride)])
        fetch = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, number, number, number]),
            "llvm.prefetch.p0",
        )
        how = number(0), number(3), number(1)  # to read, keep, data
        n_lines = builder.udiv(builder.add(stride, long(_LINE - 1)), long(_LINE))
        with cgutils.for_range(builder, n_lines) as loop:
            there = builder.gep(start, [builder.mul(loop.index, long(_LINE))])
            builder.call(fetch, [there, *how])
        # A row that begins in the middle of a line may end in one more.
        builder.call(fetch, [builder.gep(start, [builder.sub(stride, long(1))]), *how])
        return context.get_dummy_value()

    return types.void(table, row), generate
