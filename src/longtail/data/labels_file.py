"""The labels file: a name, ``name<TAB>text`` or an object of JSON a line; line number = id."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from longtail.data.columns import Columns
from longtail.data.files import decode_line, numbered_lines
from longtail.data.input_notes import InputNotes
from longtail.data.json_lines import JsonRows, keys_of, object_in
from longtail.data.label_names import is_list_text, remark_on_twins
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["read_labels_file"]

_TEXT_KEYS = ("text", "title", "name", "label")  # of JSON; the first of these that there is
_ID_KEYS = ("uid", "id")
_NAME_MISSING = "A label's name is missing. Write one name a line; its id is the line's number."
_SHAPE = "Write one name a line, or a name, a TAB and a text; a label's id is the line's number."
_OR_SHAPE = f"Or {_SHAPE[0].lower()}{_SHAPE[1:]}"
_NUMBERED = re.compile(r'"?(\d{1,9})"?[,;]')
_COUNTED = re.compile(r'"?(\d{1,9})"?$')
_QUOTED = re.compile(r'"[^"]+"')
_HEADER_ALONE = {"label", "labels", "name", "names", "label_name"}
_HEADER = _HEADER_ALONE | {"id", "uid", "label_id", "text", "texts", "label_text", "title"}
_HEADER |= {"description"}
_BRACKETS = {("[", "]"), ("{", "}")}  # of a JSON file in several lines
_FEWEST = 2  # lines, to tell another format: a single one may well be a name
_BETWEEN_CELLS = {",": "commas", ";": "semicolons"}  # of a CSV


def read_labels_file(
    path: str | Path, text_column: Sequence[str] = ()
) -> tuple[TextColumn, TextColumn]:
    r"""Return the names and the texts of a labels file, plain or gzip.

    It is one column twice where no text says more than its name. See `LabelSpace.read`. A label of
    JSON whose name is empty is called by its ``uid`` or ``id``. What is plainly another file, such
    as a table with a header or ids, or other JSON, is refused with DataFormatError.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.labels_file import read_labels_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.txt")
    ...     _ = path.write_text("bread\ndance\twaltz, tango\n")
    ...     read_labels_file(path)
    (TextColumn(['bread', 'dance']), TextColumn(['bread', 'waltz, tango']))
    """
    lines = numbered_lines(path)
    first = next(lines, (1, b""))
    keys = _text_keys_in(first[1], text_column)
    if keys:
        names, texts = _read_json_labels(chain([first], lines), keys, Path(path))
    else:
        names, texts = _named_in_lines(chain([first], lines), path)
        _refuse_json(names, path)
        _refuse_tables(names, texts, path)
        _remark_on(names, texts, path)
    return names, names if names == texts else texts


def _text_keys_in(line: bytes, named: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of a line's object that make up a label's text; none if it is no label."""
    there = object_in(line)
    if named and all(key in there for key in named):
        return tuple(named)
    return next(((key,) for key in _TEXT_KEYS if key in there), ())


def _read_json_labels(
    lines: Iterable[tuple[int, bytes]], keys: tuple[str, ...], path: Path
) -> tuple[TextColumn, TextColumn]:
    """Return the names and texts of labels that are an object a line."""
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
    name_column = names.finish()
    remark_on_twins(notes, name_column)
    notes.warn()
    return name_column, texts.finish()


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


def _named_in_lines(
    lines: Iterable[tuple[int, bytes]], path: str | Path
) -> tuple[TextColumn, TextColumn]:
    """Return the names and texts of lines that are one or both."""
    names, texts = TextColumnBuilder(), TextColumnBuilder()
    first_blank = 0
    for number, line in lines:
        said, _, more = decode_line(line, path=path, number=number).partition("\t")
        name, _, text = line.partition(b"\t")
        is_blank = not said.strip()
        if is_blank and not more.strip():
            first_blank = first_blank or number
        elif is_blank or first_blank:
            raise DataFormatError(_NAME_MISSING, path=path, line=first_blank or number)
        else:
            names.append(name)
            texts.append(text or name)
    if not len(names):
        raise DataFormatError("There is no name in it. Write one name a line.", path=path)
    return names.finish(), texts.finish()


def _refuse_json(names: TextColumn, path: str | Path) -> None:
    """Raise DataFormatError if each line is an object of JSON, or all of them are one value."""
    if len(names) >= _FEWEST and all(object_in(name.encode()) for name in names):
        message = (
            "Each line is an object of JSON, but has none of the keys "
            f"{', '.join(map(repr, _TEXT_KEYS))}. Call the label's text so. {_OR_SHAPE}"
        )
        raise DataFormatError(message, path=path, line=1)
    ends = names[0].strip(), names[len(names) - 1].strip()
    is_long = len(names) > _FEWEST and ends in _BRACKETS
    is_short = len(names) == 1 and (is_list_text(names[0]) or len(object_in(names[0].encode())) > 1)
    if is_long or is_short:
        message = f"The file is JSON, of which each line would be a label's name. {_SHAPE}"
        raise DataFormatError(message, path=path, line=1)


def _refuse_tables(names: TextColumn, texts: TextColumn, path: str | Path) -> None:
    """Raise DataFormatError if the lines are rows of a CSV, or the first is a header."""
    has_text = texts[0] != names[0]
    if has_text and {names[0].strip().lower(), texts[0].strip().lower()} <= _HEADER:
        message = (
            f"{names[0]!r} and {texts[0]!r} look like a header, which a labels file has not: the "
            "ids of all labels would be one too high. Delete the line, and columns other than "
            "names and texts."
        )
        raise DataFormatError(message, path=path, line=1)
    for mark, marks in _BETWEEN_CELLS.items() if len(names) > _FEWEST else ():
        if mark not in names[0]:
            continue
        if _are_numbered(names, 1) and not _NUMBERED.match(names[0]):
            message = (
                f"This is a CSV file with ids: {names[0][:60]!r} is its header, and each line "
                f"after it begins with the next number, such as {names[1][:60]!r}. All of it would "
                f"be names. {_SHAPE}"
            )
            raise DataFormatError(message, path=path, line=1)
        is_csv = str(path).lower().removesuffix(".gz").endswith(".csv")
        if is_csv and all(mark in name for name in names):
            message = (
                f"This is a CSV file, of which each line, such as {names[0][:60]!r}, would be a "
                f"name. {_SHAPE} If {marks} are part of the names, call the file .txt."
            )
            raise DataFormatError(message, path=path, line=1)


def _remark_on(names: TextColumn, texts: TextColumn, path: str | Path) -> None:
    """Warn of a first name that may be a header, and of names that are in quotes or counted."""
    notes = InputNotes(path)
    remark_on_twins(notes, names)
    if len(names) > _FEWEST and names[0].strip().lower() in _HEADER_ALONE:
        notes.remark(
            f"the first label is called {names[0]!r}: if that is a header, delete the line, since "
            "a labels file has none"
        )
    if len(names) >= _FEWEST and all(_QUOTED.fullmatch(name) for name in names):
        notes.remark(
            f"each name is in quotes, such as {names[0][:60]}, which are taken as part of it: "
            "delete them if they are not"
        )
    if len(names) > _FEWEST and _are_numbered(names, 0):
        notes.remark(
            f"the names begin with numbers that count up, such as {names[0][:60]!r}, which are "
            "taken as part of them: delete them if they are ids, since a label's id is its line"
        )
    if len(names) > _FEWEST and texts[0] != names[0] and _are_numbered(names, 0, _COUNTED):
        notes.remark(
            "the names are numbers that count up: if these are ids, and the names stand behind "
            "them, delete the numbers, since a label's id is its line"
        )
    notes.warn()


def _are_numbered(names: TextColumn, start: int, beginning: re.Pattern[str] = _NUMBERED) -> bool:
    """Tell whether names from a line on begin with a number and a comma, from 0 or 1 upwards."""
    first = beginning.match(names[start])
    if first is None or int(first[1]) > 1:
        return False
    numbers = (beginning.match(names[i]) for i in range(start, len(names)))
    return all(
        found is not None and int(found[1]) == wanted
        for wanted, found in enumerate(numbers, start=int(first[1]))
    )
