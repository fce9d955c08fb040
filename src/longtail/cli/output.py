"""How results look on standard output: lines and tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from unicodedata import category

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["one_line", "result", "short", "table"]

MOST_SHOWN = 60  # letters of a name in a table
_CONTROLS = {"Cc", "Zl", "Zp"}  # of Unicode: control characters, line and paragraph separators


def result(line: str) -> None:
    """Write a line of the result to standard output."""
    sys.stdout.write(f"{line}\n")


def one_line(name: str) -> str:
    r"""Return a name with its line ends and other control characters as escapes.

    Examples
    --------
    >>> from longtail.cli.output import one_line
    >>> one_line("two\nlines")
    'two\\nlines'
    """
    return "".join(
        sign.encode("unicode_escape").decode() if category(sign) in _CONTROLS else sign
        for sign in name
    )


def short(name: str) -> str:
    r"""Return a name in one line, as `one_line` does, cut to what a table has room for.

    Examples
    --------
    >>> from longtail.cli.output import short
    >>> short("two\nlines"), short(70 * "a") == 59 * "a" + "\N{HORIZONTAL ELLIPSIS}"
    ('two\\nlines', True)
    """
    line = one_line(name[: MOST_SHOWN + 1])  # a name may be as long as a book
    return line if len(line) <= MOST_SHOWN else f"{line[: MOST_SHOWN - 1]}\N{HORIZONTAL ELLIPSIS}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows under a head: the first column to the left, the others to the right.

    Examples
    --------
    >>> from longtail.cli.output import table
    >>> table(["", "@1", "@5"], [["P", "51.2", "8.4"]]).splitlines()
    ['     @1   @5', 'P  51.2  8.4']
    """
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
