"""Lines for people, on standard error. Imported before all else, so it imports next to nothing."""

from __future__ import annotations

import errno
import sys

__all__ = ["notice", "warning"]


def notice(line: str) -> None:
    """Write a line for people to standard error; to a terminal that was closed, to nobody."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError as error:
        if error.errno != errno.EIO:
            raise


def warning(line: str) -> None:
    """Write what a user should look at, marked as that; all else is as in `notice`."""
    notice(f"longtail: warning: {line}")
