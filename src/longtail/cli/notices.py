"""Lines for people, on standard error. Imported before all else, so it imports next to nothing."""

from __future__ import annotations

import sys

__all__ = ["notice"]


def notice(line: str) -> None:
    """Write a line for people to standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
