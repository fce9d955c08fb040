"""One argument for many arrays: what a compiled call is given is looked at once, not every time.

Numba inspects each array that Python hands to a kernel, for about half a microsecond; a model is
made of some fifty. A `Handle` holds a named tuple of arrays on the compiled side, and costs as much
as a single argument. It keeps the arrays alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import types as numba_types
from numba.core import cgutils as numba_cgutils
from numba.experimental import structref
from numba.extending import NativeValue, box, overload, unbox

from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Handle", "handle_of"]

cgutils: Any = numba_cgutils  # numba has no types of its own
types: Any = numba_types


@structref.register
class _HandleType(types.StructRef):  # type: ignore[misc]  # numba has no types
    """The type of a handle, as the compiler sees it."""

    def preprocess_fields(self, fields: Iterable[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
        """Hold values, not constants."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Handle(structref.StructRefProxy):  # type: ignore[misc]  # numba has no types
    """What Python sees of a handle: nothing. Compiled code reads ``handle.parts``."""


@unbox(_HandleType)  # type: ignore[untyped-decorator]  # numba has no types
def _unboxed(kind: Any, handle: Any, c: Any) -> Any:
    """Return what compiled code has of a Python object, as `structref.define_boxing` does."""
    info = c.pyapi.object_getattr_string(handle, "_meminfo")
    reference = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    reference.meminfo = c.unbox(types.MemInfoPointer(types.voidptr), info).value
    c.pyapi.decref(info)
    return NativeValue(reference._getvalue())


@box(_HandleType)  # type: ignore[untyped-decorator]  # numba has no types
def _boxed(kind: Any, value: Any, c: Any) -> Any:
    """Return the Python object of a handle; compiled code only.

    As `structref.define_boxing` does, but this ends where a step fails. Two of its steps run lines
    of Python, in which Ctrl-C may come, or what the handler of another signal raises. numba goes on
    with what is not there, and so raises a TypeError in place of it.
    """
    reference = cgutils.create_struct_proxy(kind)(c.context, c.builder, value=value)
    pointer = types.MemInfoPointer(types.voidptr)
    result = cgutils.alloca_once_value(c.builder, c.context.get_constant_null(types.pyobject))

    def unpickled(part: Any) -> Any:
        return c.pyapi.unserialize(c.pyapi.serialize_object(part))

    boxed = c.box(pointer, reference.meminfo)
    with cgutils.if_likely(c.builder, cgutils.is_not_null(c.builder, boxed)):
        make = unpickled(Handle._numba_box_)
        with cgutils.if_likely(c.builder, cgutils.is_not_null(c.builder, make)):
            of_kind = unpickled(kind)
            with cgutils.if_likely(c.builder, cgutils.is_not_null(c.builder, of_kind)):
                c.builder.store(c.pyapi.call_function_objargs(make, [of_kind, boxed]), result)
                c.pyapi.decref(of_kind)
            c.pyapi.decref(make)
        c.pyapi.decref(boxed)
    return c.builder.load(result)


def _hold(parts: Any) -> Any:
    """Return a new handle; compiled code only."""
    raise NotImplementedError


@overload(_hold)  # type: ignore[untyped-decorator]  # numba has no types
def _hold_compiled(parts: Any) -> Any:
    kind = _HandleType((("parts", parts),))

    def hold(parts: Any) -> Any:
        handle = structref.new(kind)
        handle.parts = parts
        return handle

    return hold


@kernel
def handle_of(parts: Any) -> Any:
    """Return a handle of a named tuple of arrays, of numbers and of other named tuples."""
    return _hold(parts)
