"""Asking for memory before it is needed, so that the wait for it overlaps other work."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils, types
from numba.extending import intrinsic

from longtail.kernels.instructions import LINE

__all__ = [
    "fetch_line",
    "fetch_row",
    "prefetch_line",
    "prefetch_pair",
    "prefetch_row",
    "prefetch_whole",
]

_BYTE, _NUMBER, _LONG = (ir.IntType(n) for n in (8, 32, 64))


def fetch_line(builder: Any, there: Any) -> None:
    """Generate what asks for the cache line of an address, and goes on."""
    kind = ir.FunctionType(ir.VoidType(), [there.type, _NUMBER, _NUMBER, _NUMBER])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(fetch, [there, _NUMBER(0), _NUMBER(3), _NUMBER(1)])  # to read, keep, data


def fetch_row(builder: Any, start: Any, n_bytes: Any) -> None:
    """Generate what asks for all cache lines of a row, and goes on."""
    with cgutils.for_range_slice(builder, _LONG(0), n_bytes, _LONG(LINE)) as (offset, _):
        fetch_line(builder, builder.gep(start, [offset]))
    # A row that begins in the middle of a line may end in one more.
    fetch_line(builder, builder.gep(start, [builder.sub(n_bytes, _LONG(1))]))


def _row_of(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[Any, Any]:
    """Return the address of a row of an array, and how many bytes a row takes."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    stride = cgutils.unpack_tuple(builder, array.strides)[0]
    place = context.cast(builder, arguments[1], signature.args[1], types.intp)
    start = builder.bitcast(array.data, _BYTE.as_pointer())
    return builder.gep(start, [builder.mul(place, stride)]), stride


def _prefetching(*offsets: int) -> Any:
    """Return what asks for the cache lines of some bytes of a row of an array, and goes on.

    The row may lie outside: what cannot be read is not fetched.
    """

    @intrinsic  # type: ignore[untyped-decorator]  # numba has no types
    def prefetch(_: Any, table: Any, row: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            start, _ = _row_of(context, builder, signature, arguments)
            for offset in offsets:
                fetch_line(builder, builder.gep(start, [_LONG(offset)]))
            return context.get_dummy_value()

        return types.void(table, row), generate

    return prefetch


prefetch_line = _prefetching(0)
# What comes after is fetched by the processor itself.
prefetch_row = _prefetching(0, LINE, 2 * LINE, 3 * LINE)
# A row of two lines; in a file it may begin in the middle of one, and end in a third.
prefetch_pair = _prefetching(0, LINE, 2 * LINE - 1)


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def prefetch_whole(_: Any, table: Any, row: Any) -> Any:
    """Ask for all cache lines of a row; it may lie outside."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        fetch_row(builder, *_row_of(context, builder, signature, arguments))
        return context.get_dummy_value()

    return types.void(table, row), generate
