"""Importing much, such as torch, in less time."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["quick_imports"]


@contextmanager
def quick_imports() -> Iterator[None]:
    """Do not look for garbage meanwhile: modules are none, and torch's take a fifth longer.

    Nor later, among what has been imported: to look through all of torch takes a tenth of a second.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
