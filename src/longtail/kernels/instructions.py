"""What written-out code is made of: numbers side by side, and what the processor has for them.

Kernels are written for vectors of sixteen numbers. Not every processor has those, nor loads of some
bytes of a vector alone: what stands here, or asks here, does the same without them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba.core import cgutils

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "LANES",
    "LINE",
    "each_lane",
    "first_lanes",
    "has",
    "in_lanes",
    "load",
    "load_first",
    "looping",
    "store",
]

LANES = 16  # numbers of 32 bits in the longest vectors
LINE = 64  # bytes of a cache line
_INT = ir.IntType(32)


def has(context: Any, feature: str) -> bool:
    """Tell whether the processor that code is generated for has some instructions."""
    return f"+{feature}" in context.codegen().magic_tuple()[2].split(",")


def in_lanes(builder: Any, number: Any, kind: Any) -> Any:
    """Return a number in all lanes."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, _INT(0))
    zeros = ir.Constant(ir.VectorType(_INT, kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, one, zeros)


def first_lanes(builder: Any, n: Any, count: int) -> Any:
    """Return which of `count` lanes are among the first `n`."""
    kind = ir.VectorType(n.type, count)
    return builder.icmp_signed(
        "<", ir.Constant(kind, list(range(count))), in_lanes(builder, n, kind)
    )


def load(builder: Any, start: Any, kind: Any, align: int = 1) -> Any:
    """Load the numbers that lie side by side from an address on, as one value."""
    return builder.load(builder.bitcast(start, kind.as_pointer()), align=align)


def store(builder: Any, numbers: Any, start: Any, align: int = 4) -> None:
    """Store numbers side by side from an address on."""
    builder.store(numbers, builder.bitcast(start, numbers.type.as_pointer()), align=align)


def load_first(context: Any, builder: Any, start: Any, kind: Any, n: Any) -> Any:
    """Load the first `n` numbers of a vector, at least one, and zeros behind them.

    Nothing else is read. Without instructions for it, numbers are read one by one.
    """
    zeros = ir.Constant(kind, None)
    if not has(context, "avx512bw"):
        room = cgutils.alloca_once(builder, kind)
        builder.store(zeros, room)
        numbers, own = (builder.bitcast(at, kind.element.as_pointer()) for at in (start, room))
        most = n.type(kind.count)
        n = builder.select(builder.icmp_signed("<", n, most), n, most)
        with cgutils.for_range(builder, n) as loop:
            number = builder.load(builder.gep(numbers, [loop.index]), align=1)
            builder.store(number, builder.gep(own, [loop.index]))
        return builder.load(room)
    mask, there = first_lanes(builder, n, kind.count), builder.bitcast(start, kind.as_pointer())
    own = ir.FunctionType(kind, [there.type, _INT, mask.type, kind])
    name = f"llvm.masked.load.v{kind.count}{str(kind.element).replace('float', 'f32')}.p0"
    load = cgutils.get_or_insert_function(builder.module, own, name)
    return builder.call(load, [there, _INT(1), mask, zeros])


@contextmanager
def looping(builder: Any, is_on: Callable[[], Any]) -> Iterator[None]:
    """Generate a body that is run as long as something holds."""
    head, body, done = (builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    builder.cbranch(is_on(), body, done)
    builder.position_at_end(body)
    yield
    builder.branch(head)
    builder.position_at_end(done)


@contextmanager
def each_lane(builder: Any, mask: Any) -> Iterator[Any]:
    """Generate a body that is run for each lane of a mask that is set, and is given its number."""
    kind = ir.IntType(mask.type.count)
    left = cgutils.alloca_once_value(builder, builder.bitcast(mask, kind))
    with looping(builder, lambda: builder.icmp_unsigned("!=", builder.load(left), kind(0))):
        bits = builder.load(left)
        lane = builder.zext(builder.cttz(bits, ir.IntType(1)(0)), ir.IntType(64))
        builder.store(builder.and_(bits, builder.sub(bits, kind(1))), left)
        yield lane
