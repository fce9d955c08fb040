"""Answers as Parquet: made of the JSON lines that are written first, so that a run is resumed."""

from __future__ import annotations

import math
import re
from typing import IO, TYPE_CHECKING, Any

import msgspec

from longtail.data.files import replacing
from longtail.data.parquet import arrow, write_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["parquet_from_lines", "replace_by_parquet"]

_WHOLE = re.compile(rb"-?\d+")
_MOST_DIGITS = 20  # of what 64 bits hold, with a sign
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_OF_ANSWERS = {"text": "string", "labels": "strings", "scores": "floats"}
_ROWS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def replace_by_parquet(lines: Path, target: Path) -> None:
    """Write a file of answers in JSON lines as Parquet, and remove it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.cli.answer_parquet import replace_by_parquet
    >>> from longtail.data.parquet import names_of_columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines, target = (pathlib.Path(folder, name) for name in ("a.jsonl", "a.parquet"))
    ...     _ = lines.write_text('{"id": 7, "text": "rye", "labels": ["bread"], "scores": [0.5]}')
    ...     replace_by_parquet(lines, target)
    ...     lines.exists(), names_of_columns(target)
    (False, ['id', 'text', 'labels', 'scores'])
    """
    with lines.open("rb") as answers, replacing(target) as stream:
        parquet_from_lines(answers, stream)
    lines.unlink()


def parquet_from_lines(lines: IO[bytes], stream: IO[bytes]) -> None:
    """Write answers in JSON lines as Parquet.

    What is kept of points is a column of whole numbers, numbers or truth values where all points
    have such, and else of strings, which hold other values as JSON.

    Parameters
    ----------
    lines : binary stream
        That can be read twice.
    stream : binary stream

    Examples
    --------
    >>> from io import BytesIO
    >>> from longtail.cli.answer_parquet import parquet_from_lines
    >>> stream = BytesIO()
    >>> parquet_from_lines(BytesIO(b'{"labels": ["bread"], "scores": [0.5]}'), stream)
    >>> stream.getvalue()[:4]
    b'PAR1'
    """
    pa = arrow()
    kinds = _kinds_in(lines)
    lists = {"strings": pa.list_(pa.string()), "floats": pa.list_(pa.float32())}
    types = {name: lists.get(kind) or pa.type_for_alias(kind) for name, kind in kinds.items()}
    lines.seek(0)
    write_rows(stream, types, _values_in(lines, kinds))


def _kinds_in(lines: IO[bytes]) -> dict[str, str]:
    """Return what the columns hold, in their order."""
    found: dict[str, set[str]] = {}
    for row in map(_ROWS.decode, lines):
        for name, value in row.items():
            found.setdefault(name, set()).add(_OF_ANSWERS.get(name) or _kind_of(bytes(value)))
    return {name: _common(kinds - {"null"}) for name, kinds in found.items()}


def _kind_of(value: bytes) -> str:
    """Return which type of pyarrow holds a value of JSON."""
    if value in {b"null", b"true", b"false"}:
        return "null" if value == b"null" else "bool"
    if _WHOLE.fullmatch(value):  # as numbers of another kind, large ids would be rounded
        is_held = len(value) <= _MOST_DIGITS and -(2**63) <= int(value) < 2**63
        return "int64" if is_held else "string"
    is_number = _NUMBER.fullmatch(value) is not None and math.isfinite(float(value))
    return "double" if is_number else "string"


def _common(kinds: set[str]) -> str:
    """Return what holds values of all these kinds."""
    if kinds == {"int64", "double"}:
        return "double"
    return next(iter(kinds)) if len(kinds) == 1 else "string"


def _values_in(lines: IO[bytes], kinds: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield answers as objects of Python."""
    for row in map(_ROWS.decode, lines):
        yield {name: _value(value, kinds[name]) for name, value in row.items()}


def _value(value: msgspec.Raw, kind: str) -> Any:
    """Return a value of JSON for a column; of strings, what is none as it is written."""
    written = bytes(value)
    if kind == "string" and not written.startswith((b'"', b"null")):
        return written.decode()
    decoded = msgspec.json.decode(value)
    return float(decoded) if kind == "double" and decoded is not None else decoded
