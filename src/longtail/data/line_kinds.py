"""What kind of points the first lines of a file tell, where its name does not."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from longtail.data.fasttext import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PLAIN", "SPARSE", "Lines", "told_by_first"]

PLAIN, SPARSE = "text", "sparse"
# Sparse lines as of the repository's files: their header, and `label,label id:value id:value`.
_HEADER = re.compile(rb"\s*\d+[ \t]+\d+(?:[ \t]+\d+)?\s*")
_ENTRY = rb"\d++:[-+.\deE]++"
_LINE = re.compile(
    rb"(?:\d+(?:,\d+)*[ \t]+|[ \t]*)" + _ENTRY + rb"((?:[ \t]+" + _ENTRY + rb")*)\s*"
)


class Lines(NamedTuple):
    """Lines of a file, and what the first ones tell.

    Attributes
    ----------
    kind : str
        ``"json-lines"``, ``"fasttext"``, ``"sparse"`` or ``"text"``.
    has_header : bool
        Whether sparse lines come behind one of the repository's headers.
    first : list of bytes
        At most two lines that are not blank.
    numbered : iterator of (int, bytes)
        All lines.
    """

    kind: str
    has_header: bool
    first: list[bytes]
    numbered: Iterator[tuple[int, bytes]]


def told_by_first(lines: Iterator[tuple[int, bytes]]) -> Lines:
    """Tell the kind of points by the first lines that are not blank, and return all lines again.

    Of sparse lines it takes two to tell: a text may be two numbers, or a time of day.

    Examples
    --------
    >>> from longtail.data.line_kinds import told_by_first
    >>> for first in ([b'{"text": "a"}'], [b"12 20", b"a floor"], [b"2 3", b"", b"0:1 2:0.5"]):
    ...     told = told_by_first(iter(enumerate(first, start=1)))
    ...     told.kind, len(list(told.numbered))
    ('json-lines', 1)
    ('text', 2)
    ('sparse', 3)
    """
    seen: list[tuple[int, bytes]] = []
    filled: list[bytes] = []
    for number, line in lines:
        seen.append((number, line))
        if line.strip():
            filled.append(line)
        if len(filled) == 2 or (filled and _by_beginning(filled[0]) != PLAIN):
            break
    kind = _by_beginning(filled[0]) if filled else PLAIN
    has_header = len(filled) == 2 and _HEADER.fullmatch(filled[0]) is not None
    if len(filled) == 2 and _are_sparse(*filled, has_header=has_header):
        kind = SPARSE
    return Lines(kind, has_header, filled, chain(seen, lines))


def _by_beginning(line: bytes) -> str:
    """Tell the format of lines that begin as no text does."""
    if line.lstrip().startswith(b"{"):
        return "json-lines"
    return "fasttext" if line.startswith(PREFIX.encode()) else PLAIN


def _are_sparse(first: bytes, second: bytes, *, has_header: bool) -> bool:
    """Tell a header and a line of features, or two such lines, from two texts."""
    entries = _LINE.fullmatch(second)
    if entries is None or has_header:
        return entries is not None
    before = _LINE.fullmatch(first)  # one entry alone may be the time of day
    return before is not None and bool(before[1]) and bool(entries[1])
