"""The labels file: a name, ``name<TAB>text`` or an object of JSON a line; line number = id."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.data.input_notes import InputNotes
from longtail.data.json_labels import TEXT_KEYS, object_in, read_json_labels, text_keys_in
from longtail.data.label_names import is_list_text, remark_on_twins
from longtail.data.paths import decode_line, numbered_lines
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["read_labels_file"]

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
_FEWEST = 2  # lines of another format; a single one may be an honest name
_BETWEEN_CELLS = {",": "commas", ";": "semicolons"}  # of a CSV


def read_labels_file(
    path: str | Path, text_column: Sequence[str] = ()
) -> tuple[TextColumn, TextColumn]:
    r"""Return the names and the texts of a labels file, plain or gzip.

    Parameters
    ----------
    path : str or Path
        The labels file.
    text_column : sequence of str
        Keys that are the text, in JSON lines; see `text_keys_in`.

    Returns
    -------
    names, texts : TextColumn
        One column twice where no text says more than its name.

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If it is empty, not UTF-8, has a line without a name or a header of two cells, or is a CSV
        file or JSON other than an object with a name a line; blank lines at the very end are fine.

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
    keys = text_keys_in(first[1], text_column)
    if keys:
        names, texts = read_json_labels(chain([first], lines), keys, Path(path))
        notes = InputNotes(path)
        remark_on_twins(notes, names)
        notes.warn()
    else:
        names, texts = _named_in_lines(chain([first], lines), path)
        _refuse_json(names, path)
        _refuse_tables(names, texts, path)
        _remark_on(names, texts, path)
    return names, names if names == texts else texts


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
            f"{', '.join(map(repr, TEXT_KEYS))}. Call the label's text so. {_OR_SHAPE}"
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
        if _is_csv(path) and all(mark in name for name in names):
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


def _is_csv(path: str | Path) -> bool:
    """Tell by a file's name whether it is a CSV."""
    return str(path).lower().removesuffix(".gz").endswith(".csv")


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
