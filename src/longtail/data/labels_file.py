"""The labels file: one label a line, a name or ``name<TAB>text``; the id is the line's number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.data.paths import decode_line, numbered_lines
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_labels_file"]

_NAME_MISSING = "A label's name is missing. Write one name a line; its id is the line's number."


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
        If it is empty, not UTF-8, or has a line without a name; blank lines at the very end
        are fine.

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
    return name_column, name_column if name_column == text_column else text_column
