r"""TSV and CSV: a column of texts and a column of label names.

One rule for a labels cell: where it holds a ``|`` it is split there, else the whole cell is one
label; blanks around a label do not count, and an empty cell means no labels. A first row with the
cells ``text`` and ``labels`` or ``label`` (in any order, among others) is a header; without one,
the first column of two is the text.
"""

from __future__ import annotations

import csv
from typing import IO, TYPE_CHECKING, NamedTuple

from longtail.data.paths import decode_line, raw_lines, replacing
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longtail.data.dataset import Dataset
    from longtail.data.label_rows import LabelRows

__all__ = ["read_delimited", "split_labels", "write_delimited"]

_SEPARATOR = "|"
# What columns of texts are often called; only a cell "text" makes a header.
_HEADINGS = {"text", "title", "name", "query", "sentence", "question", "content", "description"}


class _Columns(NamedTuple):
    """Where a row's text and labels are, and how many cells it has."""

    text: int
    labels: int
    n_columns: int


def split_labels(cell: str) -> list[str]:
    """Return the label names in a labels cell.

    Examples
    --------
    >>> split_labels("cats | dogs, small"), split_labels("dogs, small"), split_labels("")
    (['cats', 'dogs, small'], ['dogs, small'], [])
    """
    return [name for part in cell.split(_SEPARATOR) if (name := part.strip())]


def read_delimited(path: Path, labels: LabelRows, *, delimiter: str) -> TextColumn:
    """Read a TSV or CSV file, quoted as the `csv` module and spreadsheets do.

    Labels are names, also where they look like numbers. Blank lines are skipped and counted.

    Parameters
    ----------
    path : Path
        The file, plain or gzip.
    labels : LabelRows
        Takes the labels.
    delimiter : str
        What is between two cells.

    Returns
    -------
    TextColumn
        The texts.

    Raises
    ------
    DataFormatError
        If a row has the wrong number of cells or broken quotes, or a line is not UTF-8.
    """
    texts = TextColumnBuilder()
    columns: _Columns | None = None
    for number, row in _rows(path, delimiter):
        if not row:
            labels.notes.add("blank lines (skipped)", line=number)
            continue
        if columns is None:
            columns = _header(row)
            if columns is not None:
                _check_names(row, columns, path, number)
                continue
            columns = _Columns(0, 1, 2)
            if row[0].strip().lower() in _HEADINGS:
                labels.notes.add(
                    "a first row like a header, but without 'text' and 'labels' (kept as a point)",
                    line=number,
                )
        if len(row) != columns.n_columns:
            message = (
                f"The row has {len(row)} cells (separated by {delimiter!r}), not "
                f"{columns.n_columns}. Write text and labels, labels separated by '|', and quote "
                "a cell that holds the separator; name the columns in a header if there are more."
            )
            if number == 1 and row[0].count(";") == 1:  # as spreadsheets of many languages save
                message += " If ';' is what separates the cells here, save the file with TABs."
            raise DataFormatError(message, path=path, line=number)
        labels.add_names(split_labels(row[columns.labels]), line=number)
        if not row[columns.text]:
            labels.notes.add("empty texts (kept)", line=number)
        texts.append(row[columns.text])
    return texts.finish()


def write_delimited(path: Path, dataset: Dataset, *, delimiter: str) -> None:
    """Write a data set of texts as TSV or CSV, with a header.

    Raises
    ------
    InputError
        If the data set has features instead of texts.
    DataFormatError
        If a label's name is empty, shared with another label, holds a ``|``, or begins or ends
        with a blank, or a cell is too long to be read back; the line is that of the point.
    """
    if dataset.texts is None:
        raise InputError("TSV and CSV hold texts, and this data set has features.")
    space = dataset.label_space
    with replacing(path) as stream:
        writer = csv.writer(_UnixLines(stream), delimiter=delimiter)
        writer.writerow(("text", "labels"))
        for row, (text, ids) in enumerate(zip(dataset.texts, dataset.label_lists(), strict=True)):
            names = [space.name(label) for label in ids]
            for label, name in zip(ids, names, strict=True):
                if split_labels(name) != [name] or space.id_of(name) != label:
                    message = (
                        f"The label {name!r} of point {row} cannot be written here: a name may "
                        "not be empty or shared, hold '|', or begin or end with a blank. "
                        "Use JSON lines."
                    )
                    raise DataFormatError(message, path=path, line=row + 2)
            cells = text, _SEPARATOR.join(names)
            if max(map(len, cells)) > csv.field_size_limit():
                message = (
                    f"Point {row} has a cell of {max(map(len, cells)):,} characters, and at most "
                    f"{csv.field_size_limit():,} can be read back. Use JSON lines."
                )
                raise DataFormatError(message, path=path, line=row + 2)
            writer.writerow(cells)


class _UnixLines:
    r"""Ends rows in ``\n``; the csv module quotes a lone ``\r`` only when told ``\r\n``."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, row: str) -> None:
        self._stream.write(row.removesuffix("\r\n").encode() + b"\n")


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the number of the line that each ends on."""
    lines = (
        decode_line(line, path=path, number=number)
        for number, line in enumerate(raw_lines(path), start=1)
    )
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        if "new-line character" in str(error):  # the csv module's words for a lone carriage return
            message = "Lines end in a carriage return alone. Save the file with Unix line ends."
            raise DataFormatError(message, path=path, line=reader.line_num) from error
        if "field larger" in str(error):
            message = (
                f"A cell has more than {csv.field_size_limit():,} characters. Close the quotes if "
                "some are open; for texts that are as long, use JSON lines."
            )
            raise DataFormatError(message, path=path, line=reader.line_num) from error
        message = (
            f"The quotes are broken at or before this line ({error}). Put a cell that holds a "
            'quote into quotes and double the inner ones: "a ""quoted"" word".'
        )
        raise DataFormatError(message, path=path, line=reader.line_num) from error


def _header(row: list[str]) -> _Columns | None:
    """Recognise a header by its two cells."""
    names = [cell.strip().lower() for cell in row]
    labels = next((name for name in ("labels", "label") if name in names), None)
    if "text" in names and labels is not None:
        return _Columns(names.index("text"), names.index(labels), len(names))
    return None


def _check_names(row: list[str], columns: _Columns, path: Path, number: int) -> None:
    """Refuse a header that names the column of texts or of labels twice: one would be lost."""
    names = [cell.strip().lower() for cell in row]
    for name in (names[columns.text], names[columns.labels]):
        if names.count(name) > 1:
            message = (
                f"The header has {names.count(name)} columns {name!r}. Rename those that are not "
                "to be read."
            )
            raise DataFormatError(message, path=path, line=number)
