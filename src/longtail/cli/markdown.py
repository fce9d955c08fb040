"""Markdown with YAML in front of it, of any text: what is in a name stays a name."""

from __future__ import annotations

import json
import re
import unicodedata
from itertools import groupby
from typing import TYPE_CHECKING, Any

from longtail.cli.output import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["code", "escaped", "front_matter", "table"]

# All that may mean something in CommonMark, in GitHub's tables or formulas, or to who mentions
# people. Dashes, dots and digits do at the start of a line alone, where no name is put.
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$:@^=\"])")
_WEB = re.compile(r"(?i)\b(www)\.")
# They turn letters round as far as they reach, which may be beyond the name.
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
_HALVES = re.compile("[\ud800-\udfff]")  # as Python holds names of files that are not UTF-8
_FROM_THE_RIGHT = {"R", "AL"}
_ISOLATE, _END_OF_ISOLATE = "\u2068", "\u2069"


def escaped(text: str) -> str:
    r"""Return any text as one line that Markdown shows as it is, cut to what a table has room for.

    Line ends and other control characters, and those that turn letters round, are shown as escapes
    of Python. Letters that are read from the right turn nothing round that stands beside them.

    Examples
    --------
    >>> from longtail.cli.markdown import escaped
    >>> print(escaped("<b>|a_b|"), escaped("two\nlines"))
    \<b\>\|a\_b\| two\\nlines
    """
    plain = _TURNING.sub(_as_escape, _HALVES.sub("\N{REPLACEMENT CHARACTER}", short(text)))
    shown = _WEB.sub(r"\1\.", _MARKUP.sub(r"\\\1", plain))
    if any(unicodedata.bidirectional(sign) in _FROM_THE_RIGHT for sign in plain):
        return f"{_ISOLATE}{shown}{_END_OF_ISOLATE}"
    return shown


def _as_escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a table: the first column to the left, the others to the right.

    Examples
    --------
    >>> from longtail.cli.markdown import table
    >>> print(table(["label", "points"], [["a|b", "20"]]))
    | label | points |
    |---|--:|
    | a\|b | 20 |
    """
    lines = [[escaped(cell) for cell in row] for row in (head, *rows)]
    rule = f"|---|{'--:|' * (len(head) - 1)}"
    first, *others = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([first, rule, *others])


def code(language: str, text: str) -> str:
    """Return a block of code, behind more backticks than it has.

    Examples
    --------
    >>> from longtail.cli.markdown import code
    >>> print(code("sh", "longtail --version"))
    ```sh
    longtail --version
    ```
    """
    runs = [len(list(run)) for sign, run in groupby(text) if sign == "`"]
    fence = "`" * max(3, 1 + max(runs, default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def front_matter(content: Mapping[str, Any]) -> str:
    """Return the block of YAML that model hubs read at the start of a page.

    Parameters
    ----------
    content : mapping
        Strings, numbers, and lists and mappings of them, none of which is empty.

    Examples
    --------
    >>> from longtail.cli.markdown import front_matter
    >>> print(front_matter({"library_name": "longtail", "tags": ["a: b"]}))
    ---
    library_name: "longtail"
    tags:
      - "a: b"
    ---
    """
    return "\n".join(["---", *_yaml(content), "---"])


def _yaml(value: Any) -> list[str]:
    """Return the lines of a value."""
    if isinstance(value, dict):
        return [line for key, part in value.items() for line in _named(key, _yaml(part), part)]
    if isinstance(value, list):
        return [line for part in value for line in _listed(_yaml(part))]
    return [_quoted(value) if isinstance(value, str) else json.dumps(value)]


def _named(key: str, lines: list[str], value: Any) -> list[str]:
    if not isinstance(value, dict | list):
        return [f"{key}: {lines[0]}"]
    return [f"{key}:", *(f"  {line}" for line in lines)]


def _listed(lines: list[str]) -> list[str]:
    return [f"- {lines[0]}", *(f"  {line}" for line in lines[1:])]


def _quoted(text: str) -> str:
    r"""Return a string of YAML, in which odd characters are escapes.

    >>> print(_quoted('a "b": \x85 \N{BUG}'))
    "a \"b\": \u0085 🐛"
    """
    whole = _HALVES.sub("\N{REPLACEMENT CHARACTER}", text)
    return "".join(
        sign
        if sign.isprintable()
        else f"\\U{ord(sign):08x}"
        if ord(sign) > 0xFFFF
        else f"\\u{ord(sign):04x}"
        for sign in whole.replace("\\", "\\\\").replace('"', '\\"')
    ).join('""')
