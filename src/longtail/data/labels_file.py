"""The labels file: one label a line, a name or ``name<TAB>text``; the id is the line's number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from longtail.data.json_lines import keys_of
from longtail.data.paths import decode_line, numbered_lines
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_labels_file"]

_NAME_MISSING = "A label's name is missing. Write one name a line; its id is the line's number."
_SHAPE = "Write one name a line, or a name, a TAB and a text; a label's id is the line's number."
_NUMBERED = re.compile(r'"?(\d{1,9})"?,')
_FEWEST = 2  # lines of another format; a single one may be an honest name


def read_labels_file(path: str | Path) -> tuple[TextColumn, TextColumn]:
    r"""Return the names and the texts of a labels file, plain or gzip.

    Parameters
    ----------
    path : str or Path
        The labels file.

    Returns
    -------
    names, texts : TextColumn
        One column twice where no text says more than its name.

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If it is empty, not UTF-8, has a line without a name, or is JSON lines or a CSV file with
        ids and a header; blank lines at the very end are fine.

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
    names, texts = TextColumnBuilder(), TextColumnBuilder()
    first_blank = 0
    for number, line in numbered_lines(path):
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
        raise DataFormatError(_NAME_MISSING, path=path, line=1)
    name_column, text_column = names.finish(), texts.finish()
    _refuse_other_formats(name_column, path)
    return name_column, name_column if name_column == text_column else text_column


def _refuse_other_formats(names: TextColumn, path: str | Path) -> None:
    """Raise DataFormatError if each line is an object of JSON, or a row of a CSV with ids."""
    if len(names) >= _FEWEST and all(map(_is_object, names)):
        message = f"Each line is an object of JSON, which would be the label's name. {_SHAPE}"
        raise DataFormatError(message, path=path, line=1)
    if len(names) > _FEWEST and "," in names[0] and _are_numbered(names):
        message = (
            f"This is a CSV file with ids: {names[0][:60]!r} is its header, and each line after it "
            f"begins with the next number, such as {names[1][:60]!r}. All of it would be names. "
            f"{_SHAPE}"
        )
        raise DataFormatError(message, path=path, line=1)


def _is_object(line: str) -> bool:
    """Tell whether a line is an object of JSON."""
    if not line.lstrip().startswith("{"):
        return False
    try:
        keys_of(line.encode())
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _are_numbered(names: TextColumn) -> bool:
    """Tell whether all names but the first begin with a number and a comma, from 0 or 1 upwards."""
    first = _NUMBERED.match(names[1])
    if first is None or int(first[1]) > 1 or _NUMBERED.match(names[0]):
        return False
    numbers = (_NUMBERED.match(names[i]) for i in range(1, len(names)))
    return all(
        found is not None and int(found[1]) == wanted
        for wanted, found in enumerate(numbers, start=int(first[1]))
    )
