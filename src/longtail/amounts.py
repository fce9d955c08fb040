"""Counts, sizes and durations as people read them."""

from __future__ import annotations

__all__ = ["bytes_text", "counted", "time_text"]


def counted(number: int, thing: str) -> str:
    """Return a number and what it counts, in the plural unless there is one.

    Examples
    --------
    >>> from longtail.amounts import counted
    >>> counted(1, "label"), counted(2000, "label")
    ('1 label', '2,000 labels')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def bytes_text(n_bytes: float) -> str:
    """Return a size as people read it.

    Examples
    --------
    >>> from longtail.amounts import bytes_text
    >>> bytes_text(900), bytes_text(3.3e9)
    ('900 B', '3.3 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.1f} TB"


def time_text(seconds: float) -> str:
    """Return a duration as people read it.

    Examples
    --------
    >>> from longtail.amounts import time_text
    >>> time_text(4.2), time_text(200), time_text(9000)
    ('4 s', '3 min 20 s', '2 h 30 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
