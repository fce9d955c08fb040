"""One argument for many arrays: what a compiled call is given is looked at once, not every time.

Numba inspects each array that Python hands to a kernel, for about half a microsecond; a model is
made of some fifty. A `Handle` holds a named tuple of arrays on the compiled side, and costs as much
as a single argument. It keeps the arrays alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import types as numba_types
from numba.experimental import structref
from numba.extending import overload

from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Handle", "handle_of"]

types: Any = numba_types  # numba has no types of its own


@structref.register
class _HandleType(types.StructRef):  # type: ignore[misc]  # numba has no types
    """The type of a handle, as the compiler sees it."""

    def preprocess_fields(self, fields: Iterable[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
        """Hold values, not constants."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Handle(structref.StructRefProxy):  # type: ignore[misc]  # numba has no types
    """What Python sees of a handle: nothing. Compiled code reads ``handle.parts``."""


structref.define_boxing(_HandleType, Handle)


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
