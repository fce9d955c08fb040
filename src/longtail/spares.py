"""What threads work in, each for a moment: kept for the next, since making it takes too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Spares"]

Spare = TypeVar("Spare")


class Spares(Generic[Spare]):
    """Scratch that nobody uses now, as many pieces as threads have worked at once.

    Pickles and copies have none: unpickled as a memory map it could not be written to.

    Examples
    --------
    >>> from longtail.spares import Spares
    >>> spares = Spares()
    >>> scratch = spares.taken(lambda: [0, 0, 0])
    >>> spares.keep(scratch)  # all zeros again; not after an error, when nobody knows
    >>> spares.taken(lambda: [0, 0, 0]) is scratch
    True
    """

    __slots__ = ("_free",)

    def __init__(self) -> None:
        self._free: list[Spare] = []

    def taken(self, make: Callable[[], Spare]) -> Spare:
        """Return a spare piece, for the caller alone, or else a new one."""
        try:
            return self._free.pop()  # one call: no other thread gets the same
        except IndexError:
            return make()

    def keep(self, spare: Spare) -> None:
        """Take a piece back that is as it was."""
        self._free.append(spare)

    def __reduce__(self) -> Any:
        """Leave the pieces to this process."""
        return type(self), ()
