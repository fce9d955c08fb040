"""Labels files of JSON lines, as those of the Extreme Classification Repository's raw texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from longtail.data.columns import Columns
from longtail.data.input_notes import InputNotes
from longtail.data.json_lines import JsonRows, keys_of
from longtail.data.paths import decode_line
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["TEXT_KEYS", "object_in", "read_json_labels", "text_keys_in"]

TEXT_KEYS = ("text", "title", "name", "label")
_ID_KEYS = ("uid", "id")


def object_in(line: bytes) -> dict[str, msgspec.Raw]:
    """Return the object of JSON that a line is; nothing if it is none.

    Examples
    --------
    >>> from longtail.data.json_labels import object_in
    >>> list(object_in(b'{"uid": 17, "title": "red wine"}')), object_in(b"red wine")
    (['uid', 'title'], {})
    """
    if not line.lstrip().startswith(b"{"):
        return {}
    try:
        return keys_of(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def text_keys_in(line: bytes, named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the keys of a line's object that make up a label's text; none if it is no label.

    Parameters
    ----------
    line : bytes
    named : sequence of str
        Those of the points' texts, which count if all of them are there; else ``text``, ``title``,
        ``name`` or ``label``, the first of these that there is.

    Examples
    --------
    >>> from longtail.data.json_labels import text_keys_in
    >>> line = b'{"uid": "B00", "title": "Tutu", "content": "three layers"}'
    >>> text_keys_in(line), text_keys_in(line, ["title", "content"]), text_keys_in(b"Tutu")
    (('title',), ('title', 'content'), ())
    """
    there = object_in(line)
    if named and all(key in there for key in named):
        return tuple(named)
    return next(((key,) for key in TEXT_KEYS if key in there), ())


def read_json_labels(
    lines: Iterable[tuple[int, bytes]], keys: tuple[str, ...], path: Path
) -> tuple[TextColumn, TextColumn]:
    r"""Return the names and the texts of labels that are an object a line.

    Parameters
    ----------
    lines : iterable of (int, bytes)
        With their numbers; a label's id is the place of its line, so none is blank, but at the end.
    keys : tuple of str
        Of the text. The first is the name, too; where it is empty, ``uid`` or ``id`` is.
    path : Path
        The file, for messages.

    Returns
    -------
    names, texts : TextColumn

    Raises
    ------
    DataFormatError
        If a line is no such object, or a label has neither name nor id.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.data.json_labels import read_json_labels
    >>> line = b'{"uid": "B00", "title": "Tutu", "content": "three layers"}'
    >>> read_json_labels([(1, line)], ("title", "content"), Path("lbl.json"))
    (TextColumn(['Tutu']), TextColumn(['Tutu three layers']))
    """
    names, texts, notes = TextColumnBuilder(), TextColumnBuilder(), InputNotes(path)
    rows = JsonRows(Columns(keys), path, points_only=True)
    titles = JsonRows(Columns(keys[:1]), path, points_only=True)
    for number, line in _without_blanks(lines, path):
        text, _ = rows.read(line, number)
        name = text if len(keys) == 1 else titles.read(line, number)[0]
        if not name.strip():
            name = _id_in(line, path, number)
            notes.add("labels without a name (called by their id)", line=number)
        names.append(name)
        texts.append(text)
    notes.warn()
    return names.finish(), texts.finish()


def _without_blanks(lines: Iterable[tuple[int, bytes]], path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield lines up to the blank ones at the end, and refuse a blank one before another."""
    first_blank = 0
    for number, line in lines:
        if not line.strip():
            first_blank = first_blank or number
        elif first_blank:
            message = "A blank line is no label. Delete it; a label's id is the line's number."
            raise DataFormatError(message, path=path, line=first_blank)
        else:
            yield number, line


def _id_in(line: bytes, path: Path, number: int) -> str:
    """Return what a label without a name is called."""
    decode_line(line, path=path, number=number)  # keys that nothing has read yet
    there = keys_of(line)
    for key in _ID_KEYS:
        if key in there and (name := str(msgspec.json.decode(there[key])).strip()):
            return name
    message = "The label has no name, and no 'uid' or 'id' to be called by. Give it one."
    raise DataFormatError(message, path=path, line=number)
