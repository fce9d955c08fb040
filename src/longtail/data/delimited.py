r"""TSV and CSV: a column of texts and a column of label names.

One rule for a labels cell: where it holds a ``|`` it is split there, else the whole cell is one
label; blanks around a label do not count, and an empty cell means no labels. Which columns these
are, `longtail.data.table_header` tells.
"""

from __future__ import annotations

import csv
import io
from typing import IO, TYPE_CHECKING

from longtail.data.blocks import texts_of
from longtail.data.columns import USUAL
from longtail.data.files import replacing
from longtail.data.label_names import is_list_text
from longtail.data.table_header import (
    NAME_COLUMNS,
    OTHERWISE_SEPARATED,
    FirstRow,
    known_headings,
)
from longtail.data.table_rows import TableRows
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from longtail.data.columns import Columns
    from longtail.data.dataset import Dataset
    from longtail.data.input_notes import InputNotes
    from longtail.data.kept_columns import Kept
    from longtail.data.label_rows import LabelRows
    from longtail.data.table_header import Layout

__all__ = [
    "add_cell",
    "csv_lines",
    "read_delimited",
    "read_texts",
    "write_delimited",
]

_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # the byte order mark of a file that was appended


def read_delimited(
    path: Path, labels: LabelRows, *, delimiter: str, columns: Columns = USUAL
) -> TextColumn:
    r"""Read a TSV or CSV file, quoted as the `csv` module and spreadsheets do.

    Labels are names, also where they look like numbers. Blank lines are skipped and counted.

    Parameters
    ----------
    path, labels
        See `FileFormat`.
    delimiter : str
        What is between two cells; for a comma, see `TableRows`.
    columns : Columns
        What the columns are called, and what is between labels.

    Raises
    ------
    DataFormatError
        If a column is not there, a row has the wrong number of cells or broken quotes, or a line
        is not UTF-8.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.delimited import read_delimited
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.label_rows import LabelRows
    >>> labels = LabelRows("train.csv", notes=InputNotes("train.csv"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.csv")
    ...     _ = path.write_text("labels,title\nbread|baking,how to knead\n,the tango\n")
    ...     texts = read_delimited(path, labels, delimiter=",")
    >>> list(texts), list(labels.finish()[1].names)
    (['how to knead', 'the tango'], ['bread', 'baking'])
    """
    texts = TextColumnBuilder()
    rows = TableRows(path, delimiter, labels.notes, known_headings(columns))
    for number, row, layout in _points(rows, columns, labels.notes, path, FirstRow.layout):
        if len(row) != layout.n_columns:
            raise _wrong_count(row, layout, columns, rows.delimiter, path, number)
        add_cell(labels, row[layout.labels], columns, number)
        texts.append(_text_of(row, layout, columns, labels.notes, number))
    return texts.finish()


def read_texts(
    path: Path,
    notes: InputNotes,
    *,
    delimiter: str,
    columns: Columns = USUAL,
    kept: Kept | None = None,
) -> TextColumn:
    r"""Read the texts of a TSV or CSV file, which needs no labels; those it has are not looked at.

    See `FirstRow.layout_of_texts` for which column these are.

    Parameters
    ----------
    path, delimiter, columns
        As of `read_delimited`.
    notes : InputNotes
        Takes what is odd, and which column was taken where no ``text`` says it.
    kept : Kept, optional
        Takes further cells of each row.

    Raises
    ------
    DataFormatError
        If it cannot be told which column is the text; else as `read_delimited`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.delimited import read_texts
    >>> from longtail.data.input_notes import InputNotes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "texts.csv")
    ...     _ = path.write_text("id,text,labels\n7,how to knead,bread\n")
    ...     read_texts(path, InputNotes(path), delimiter=",")
    TextColumn(['how to knead'])
    """

    def layout_of(first: FirstRow) -> Layout:
        return first.layout_of_texts(rows.delimiter, kept)

    texts = TextColumnBuilder()
    rows = TableRows(path, delimiter, notes, known_headings(columns))
    for number, row, layout in _points(rows, columns, notes, path, layout_of):
        if len(row) != layout.n_columns:
            message = (
                f"The row has {len(row)} cells (separated by {rows.delimiter!r}), but the first "
                f"has {layout.n_columns}. Quote a cell that holds the separator. If each line is a "
                "text, `longtail predict --format text` reads it."
            )
            raise DataFormatError(message, path=path, line=number)
        if kept is not None and layout.kept:
            kept.add([row[place] for place in layout.kept])
        texts.append(_text_of(row, layout, columns, notes, number))
    return texts.finish()


def write_delimited(path: Path, dataset: Dataset, *, delimiter: str) -> None:
    r"""Write a data set of texts as TSV or CSV, with a header.

    Raises
    ------
    DataFormatError
        If a label's name is empty, shared with another label, holds a ``|``, or begins or ends
        with a blank, or a cell is too long to be read back; the line is that of the point.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.data.delimited import write_delimited
    >>> dataset = Dataset.of(["flour, water"], [["bread", "baking"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_delimited(pathlib.Path(folder, "train.csv"), dataset, delimiter=",")
    ...     pathlib.Path(folder, "train.csv").read_text()
    'text,labels\n"flour, water",bread|baking\n'
    """
    texts = texts_of(dataset, "TSV and CSV")
    space = dataset.label_space
    with replacing(path) as stream:
        writer = csv.writer(_UnixLines(stream), delimiter=delimiter)
        writer.writerow(("text", "labels"))
        for row, (text, ids) in enumerate(zip(texts, dataset.label_lists(), strict=True)):
            names = [space.name(label) for label in ids]
            for label, name in zip(ids, names, strict=True):
                if USUAL.split(name) != [name] or space.id_of(name) != label:
                    message = (
                        f"The label {name!r} of point {row} cannot be written here: a name may "
                        "not be empty or shared, hold '|', or begin or end with a blank. "
                        "Use JSON lines."
                    )
                    raise DataFormatError(message, path=path, line=row + 2)
            cells = text, USUAL.separator.join(names)
            if max(map(len, cells)) > csv.field_size_limit():
                message = (
                    f"Point {row} has a cell of {max(map(len, cells)):,} characters, and at most "
                    f"{csv.field_size_limit():,} can be read back. Use JSON lines."
                )
                raise DataFormatError(message, path=path, line=row + 2)
            writer.writerow(cells)


def csv_lines(rows: Iterable[Sequence[str]], delimiter: str) -> bytes:
    """Return rows of cells, quoted where they have to be.

    Examples
    --------
    >>> csv_lines([["a", "b, c"]], ",").decode().strip()
    'a,"b, c"'
    """
    stream = io.BytesIO()
    csv.writer(_UnixLines(stream), delimiter=delimiter).writerows(rows)
    return stream.getvalue()


class _UnixLines:
    r"""Ends rows in ``\n``; the csv module quotes a lone ``\r`` only when told ``\r\n``."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, row: str) -> None:
        self._stream.write(row.removesuffix("\r\n").encode() + b"\n")


def _points(
    rows: TableRows,
    columns: Columns,
    notes: InputNotes,
    path: Path,
    layout_of: Callable[[FirstRow], Layout],
) -> Iterator[tuple[int, list[str], Layout]]:
    """Yield the rows below the header: the line that each ends on, its cells, and which is what.

    Only points that need no labels may be none at all.
    """
    layout: Layout | None = None
    header: list[str] = []
    has_points = False
    for number, row in rows:
        if _is_none(row, header, notes, number):
            continue
        if layout is None:
            layout = layout_of(FirstRow(row, columns, notes, path, number))
            if layout.is_header:
                header = row
                continue
        has_points = True
        yield number, row, layout
    if layout is not None and layout.labels >= 0 and not has_points:
        message = "The file has a header and no points. Write a row for each point below it."
        raise DataFormatError(message, path=path)


def _text_of(
    row: list[str], layout: Layout, columns: Columns, notes: InputNotes, number: int
) -> str:
    """Return the text of a row; an empty one is noted."""
    text = columns.joined([row[place] for place in layout.text])
    if not text:
        notes.add("empty texts (kept)", line=number)
    return text


def _is_none(row: list[str], header: list[str], notes: InputNotes, number: int) -> bool:
    """Tell a row that is no point: a blank line, or the header of a table that was appended."""
    if not row:
        notes.add("blank lines (skipped)", line=number)
    elif len(row) > 1 and [row[0].removeprefix(_MARK), *row[1:]] == header:
        notes.add("rows that are the header once more (skipped)", line=number)
    else:
        return False
    return True


def add_cell(labels: LabelRows, cell: str, columns: Columns, number: int) -> None:
    """Add the labels of a cell, in a line or row.

    Examples
    --------
    >>> from longtail.data.columns import USUAL
    >>> from longtail.data.delimited import add_cell
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.label_rows import LabelRows
    >>> labels = LabelRows("train.csv", notes=InputNotes("train.csv"))
    >>> add_cell(labels, "bread | baking", USUAL, 1)
    >>> list(labels.finish()[1].names)
    ['bread', 'baking']
    """
    names = columns.split(cell)
    separator = columns.separator
    if separator in cell and len(names) <= cell.count(separator):
        what = f"empty names between or beside {separator!r} (left out)"
        labels.notes.add(what, line=number)
    labels.add_names([cell] if is_list_text(cell) else names, line=number)


def _wrong_count(
    row: list[str], layout: Layout, columns: Columns, delimiter: str, path: Path, number: int
) -> DataFormatError:
    """Return what is said of a row that has too many cells, or too few."""
    cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
    count = f"The row has {cells} (separated by {delimiter!r}), "
    if columns.has_names:
        message = (
            f"{count}but the header has {layout.n_columns}. Quote a cell that holds the separator."
        )
        return DataFormatError(message, path=path, line=number)
    message = (
        f"{count}not {layout.n_columns}. Write text and labels, labels separated by "
        f"{columns.separator!r}, and quote a cell that holds the separator. If there are more "
        "columns, call two of them 'text' and 'labels' in the first row."
    )
    if number == 1 and len(row) == 1:
        if delimiter == "," and row[0].count(";") == 1:  # as spreadsheets of many languages save
            message += " If ';' separates the cells here, write text;labels in a line above them."
            return DataFormatError(message, path=path, line=number)
        for separator, remedy in OTHERWISE_SEPARATED.items():
            if separator not in (delimiter, ";") and separator in row[0]:
                return DataFormatError(message, remedy, path=path, line=number)
    return DataFormatError(message, *NAME_COLUMNS, path=path, line=number)
