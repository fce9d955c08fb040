r"""TSV and CSV: a column of texts and a column of label names.

One rule for a labels cell: where it holds a ``|`` it is split there, else the whole cell is one
label; blanks around a label do not count, and an empty cell means no labels. A first row with the
cells ``text`` and ``labels`` or ``label`` (in any order, among others) is a header; without one,
the first column of two is the text. Instead of ``text`` it may have one of the other names that
columns of texts often have. Points that are to be answered need no labels, in the header neither.
Where a user names columns, the first row is a header, whatever it holds.
"""

from __future__ import annotations

import csv
import io
from typing import IO, TYPE_CHECKING, NamedTuple

from longtail.data.columns import USUAL
from longtail.data.label_names import is_list_text
from longtail.data.paths import replacing
from longtail.data.table_rows import table_rows
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError, InputError, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from longtail.data.columns import Columns
    from longtail.data.dataset import Dataset
    from longtail.data.input_notes import InputNotes
    from longtail.data.kept import Kept
    from longtail.data.label_rows import LabelRows

__all__ = [
    "SEPARATOR",
    "as_rows",
    "read_delimited",
    "read_texts",
    "split_labels",
    "write_delimited",
]

SEPARATOR = USUAL.separator
_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # the byte order mark of a file that was appended
_LABEL_HEADINGS = ("labels", "label")
# What columns of texts are often called.
_HEADINGS = {"text", "title", "name", "query", "sentence", "question", "content", "description"}
_NAME_TEXT = Remedy("text_column", "Or pass its name as {}.")
_NAME_LABELS = Remedy("labels_column", "Or pass its name as {}.")
_OTHERWISE_SEPARATED = {
    "\t": Remedy("format", "If TABs separate the cells here, pass tsv as {}."),
    ",": Remedy("format", "If commas separate the cells here, pass csv as {}."),
}
_NAME_COLUMNS = (
    Remedy("text_column", "Or pass {} and"),
    Remedy("labels_column", "{}, what the columns are called."),
)
_TAKEN = "no column is called 'text', so {0!r} is taken as the text"


class _Places(NamedTuple):
    """Where a row's text, of one cell or several, and labels are, and how many cells it has."""

    text: tuple[int, ...]
    labels: int
    n_columns: int


def split_labels(cell: str) -> list[str]:
    """Return the label names in a labels cell.

    Examples
    --------
    >>> split_labels("cats | dogs, small"), split_labels("dogs, small"), split_labels("")
    (['cats', 'dogs, small'], ['dogs, small'], [])
    """
    return USUAL.split(cell)


def read_delimited(
    path: Path, labels: LabelRows, *, delimiter: str, columns: Columns = USUAL
) -> TextColumn:
    r"""Read a TSV or CSV file, quoted as the `csv` module and spreadsheets do.

    Labels are names, also where they look like numbers. Blank lines are skipped and counted.

    Parameters
    ----------
    path : Path
        The file, plain or gzip.
    labels : LabelRows
        Takes the labels.
    delimiter : str
        What is between two cells.
    columns : Columns
        What the columns are called, and what is between labels.

    Returns
    -------
    TextColumn
        The texts.

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
    places: _Places | None = None
    header: list[str] = []
    for number, row in table_rows(path, delimiter, labels.notes):
        if _is_none(row, header, labels.notes, number):
            continue
        if places is None:
            places = _header(row, columns, labels.notes, path, number)
            if places is not None:
                header = row
                continue
            places = _without_header(row, labels.notes, path, number)
        if len(row) != places.n_columns:
            raise _wrong_count(row, places, columns, delimiter, path, number)
        _add_labels(labels, row[places.labels], columns, number)
        text = columns.joined([row[place] for place in places.text])
        if not text:
            labels.notes.add("empty texts (kept)", line=number)
        texts.append(text)
    if places is not None and not len(texts):
        message = "The file has a header and no points. Write a row for each point below it."
        raise DataFormatError(message, path=path)
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

    The column is that named ``text`` in the first row, else the only one that is named as columns
    of texts often are; without such a header, the only column, or the first of two.

    Parameters
    ----------
    path : Path
        The file, plain or gzip.
    notes : InputNotes
        Takes what is odd, and which column was taken where no ``text`` says it.
    delimiter : str
        What is between two cells.
    columns : Columns
        What the columns of texts are called.
    kept : Kept, optional
        Takes further cells of each row.

    Returns
    -------
    TextColumn
        The texts.

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
    texts = TextColumnBuilder()
    places: tuple[int, ...] = ()
    carried: tuple[int, ...] = ()
    n_columns = 0
    header: list[str] = []
    for number, row in table_rows(path, delimiter, notes):
        if _is_none(row, header, notes, number):
            continue
        if not places:
            n_columns = len(row)
            places = _text_places(row, columns, notes, path, number)
            if kept is not None and (places or kept.asked):
                carried = kept.places_in(row, path=path, line=number)
            if places:
                header = row
                continue
            if carried:  # named, so that this is a header
                raise _no_text_column(row, path, number)
            _refuse_other_separator(row, delimiter, path, number)
            places = (_column_without_header(row, notes, path, number),)
        if len(row) != n_columns:
            message = (
                f"The row has {len(row)} cells (separated by {delimiter!r}), but the first has "
                f"{n_columns}. Quote a cell that holds the separator. If each line is a text, "
                "`longtail predict --format text` reads it."
            )
            raise DataFormatError(message, path=path, line=number)
        if kept is not None and carried:
            kept.add([row[place] for place in carried])
        text = columns.joined([row[place] for place in places])
        if not text:
            notes.add("empty texts (kept)", line=number)
        texts.append(text)
    return texts.finish()


def write_delimited(path: Path, dataset: Dataset, *, delimiter: str) -> None:
    r"""Write a data set of texts as TSV or CSV, with a header.

    Raises
    ------
    InputError
        If the data set has features instead of texts.
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
            cells = text, SEPARATOR.join(names)
            if max(map(len, cells)) > csv.field_size_limit():
                message = (
                    f"Point {row} has a cell of {max(map(len, cells)):,} characters, and at most "
                    f"{csv.field_size_limit():,} can be read back. Use JSON lines."
                )
                raise DataFormatError(message, path=path, line=row + 2)
            writer.writerow(cells)


def as_rows(rows: Iterable[Sequence[str]], delimiter: str) -> bytes:
    """Return rows of cells, quoted where they have to be.

    Examples
    --------
    >>> as_rows([["a", "b, c"]], ",").decode().strip()
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


def _is_none(row: list[str], header: list[str], notes: InputNotes, number: int) -> bool:
    """Tell a row that is no point: a blank line, or the header of a table that was appended."""
    if not row:
        notes.add("blank lines (skipped)", line=number)
    elif len(row) > 1 and [row[0].removeprefix(_MARK), *row[1:]] == header:
        notes.add("rows that are the header once more (skipped)", line=number)
    else:
        return False
    return True


def _add_labels(labels: LabelRows, cell: str, columns: Columns, number: int) -> None:
    """Add the labels of a cell."""
    names = columns.split(cell)
    separator = columns.separator
    if separator in cell and len(names) <= cell.count(separator):
        what = f"empty names between or beside {separator!r} (left out)"
        labels.notes.add(what, line=number)
    labels.add_names([cell] if is_list_text(cell) else names, line=number)


def _wrong_count(
    row: list[str], places: _Places, columns: Columns, delimiter: str, path: Path, number: int
) -> DataFormatError:
    """Return what is said of a row that has too many cells, or too few."""
    count = f"The row has {len(row)} cells (separated by {delimiter!r}), "
    if columns.has_names:
        message = (
            f"{count}but the header has {places.n_columns}. Quote a cell that holds the separator."
        )
        return DataFormatError(message, path=path, line=number)
    message = (
        f"{count}not {places.n_columns}. Write text and labels, labels separated by "
        f"{columns.separator!r}, and quote a cell that holds the separator. If there are more "
        "columns, call two of them 'text' and 'labels' in the first row."
    )
    if number == 1 and len(row) == 1:
        for separator, remedy in _OTHERWISE_SEPARATED.items():
            if separator != delimiter and separator in row[0]:
                return DataFormatError(message, remedy, path=path, line=number)
        if row[0].count(";") == 1:  # as spreadsheets of many languages save
            message += " If ';' is what separates the cells here, save the file with TABs."
            return DataFormatError(message, path=path, line=number)
    return DataFormatError(message, *_NAME_COLUMNS, path=path, line=number)


def _header(
    row: list[str], columns: Columns, notes: InputNotes, path: Path, number: int
) -> _Places | None:
    """Return where text and labels are; None if the row is no header."""
    if columns.has_names:
        text = _text_places(row, columns, notes, path, number)
        if not text:
            raise _no_text_column(row, path, number)
        labels_place = _labels_place(row, columns, path, number)
        if labels_place in text:
            raise columns.twice(row[labels_place])
        return _Places(text, labels_place, len(row))
    names = _names(row)
    known = _text_headings(names)
    labels = next((name for name in _LABEL_HEADINGS if name in names), None)
    if labels is None or len(known) != 1:
        return None
    if known != ["text"]:
        notes.remark(_TAKEN.format(known[0]))
    for name in (known[0], labels):  # named twice, one would be lost
        _refuse_twice(name, row, path, number)
    return _Places((names.index(known[0]),), names.index(labels), len(names))


def _without_header(row: list[str], notes: InputNotes, path: Path, number: int) -> _Places:
    """Return where text and labels are by their order, and say so of a row like a header."""
    _refuse_half_a_header(row, path, number)
    if row[0].strip().lower() in _HEADINGS:
        notes.add(
            "a first row like a header, but without 'text' and 'labels' (kept as a point; if it is "
            "a header, call its columns so)",
            line=number,
        )
    return _Places((0,), 1, 2)


def _text_headings(names: list[str]) -> list[str]:
    """Return what may be the column of texts: ``text`` alone, or all that are called like one."""
    return ["text"] if "text" in names else [name for name in names if name in _HEADINGS]


def _labels_place(row: list[str], columns: Columns, path: Path, number: int) -> int:
    """Return the column of labels, of a row that is a header for sure."""
    if columns.labels is not None:
        return columns.place_of(columns.labels, row, path=path, line=number)
    names = _names(row)
    labels = next((name for name in _LABEL_HEADINGS if name in names), None)
    if labels is None:
        message = (
            f"None of the {len(row)} columns is called 'labels': the first row is "
            f"{', '.join(map(repr, row[:10]))}. Call one so."
        )
        raise DataFormatError(message, _NAME_LABELS, path=path, line=number)
    _refuse_twice(labels, row, path, number)
    return names.index(labels)


def _names(row: list[str]) -> list[str]:
    """Return the cells of a header as they are compared."""
    return [cell.strip().lower() for cell in row]


def _refuse_twice(name: str, row: list[str], path: Path, number: int) -> None:
    """Raise DataFormatError if a header has a name more than once."""
    count = _names(row).count(name)
    if count > 1:
        message = f"The header has {count} columns {name!r}. Rename those that are not to be read."
        raise DataFormatError(message, path=path, line=number)


def _refuse_half_a_header(row: list[str], path: Path, number: int) -> None:
    """Refuse a first row that names only one column, and not in the place that it would be in."""
    names = _names(row)
    has_text = "text" in names[1:]
    if has_text or names[0] in _LABEL_HEADINGS:
        known, missing = ("text", "labels") if has_text else (names[0], "text")
        message = (
            f"The first row is a header with a column {known!r}, but without a column "
            f"{missing!r}: {', '.join(map(repr, row[:10]))}. Name both columns, 'text' and "
            "'labels', or leave the header out."
        )
        raise DataFormatError(
            message, _NAME_LABELS if has_text else _NAME_TEXT, path=path, line=number
        )


def _text_places(
    row: list[str], columns: Columns, notes: InputNotes, path: Path, number: int
) -> tuple[int, ...]:
    """Return which columns are the text; none if the row is no header."""
    if columns.text:
        return tuple(columns.place_of(name, row, path=path, line=number) for name in columns.text)
    place = _heading(row, columns, notes, path, number)
    return (place,) if place >= 0 else ()


def _heading(row: list[str], columns: Columns, notes: InputNotes, path: Path, number: int) -> int:
    """Return which column a header names as the text; -1 if the row is no header."""
    of_labels = (columns.labels or "").strip().lower()
    names = _names(row)
    known = [name for name in names if name in _HEADINGS and name != of_labels]
    if "text" in known:
        _refuse_twice("text", row, path, number)
        return names.index("text")
    if len(known) == 1:
        notes.remark(_TAKEN.format(known[0]))
        return names.index(known[0])
    if known or any(name in _LABEL_HEADINGS for name in names):
        raise _no_text_column(row, path, number)
    return -1


def _refuse_other_separator(row: list[str], delimiter: str, path: Path, number: int) -> None:
    """Raise DataFormatError if a row of one cell is a header that something else separates."""
    for separator in (*_OTHERWISE_SEPARATED, ";"):
        cells = row[0].lower().split(separator)
        if len(row) == 1 < len(cells) and {"text", *_LABEL_HEADINGS}.intersection(cells):
            message = (
                f"The first row, {row[0][:60]!r}, looks like a header with {separator!r} between "
                f"its cells, but the file is read with {delimiter!r}."
            )
            remedy = _OTHERWISE_SEPARATED.get(separator)
            if remedy is None:
                message += " Save the file with TABs."
            raise DataFormatError(message, *filter(None, [remedy]), path=path, line=number)


def _column_without_header(row: list[str], notes: InputNotes, path: Path, number: int) -> int:
    """Return which column is the text where none is named: the only one, or the first of two."""
    if len(row) > 2:
        raise _no_text_column(row, path, number)
    if len(row) == 2:
        notes.remark(
            "there is no header with a column 'text', so the first of the two columns is taken as "
            "the text"
        )
    return 0


def _no_text_column(row: list[str], path: Path, number: int) -> DataFormatError:
    """Return what is said where it cannot be told which column is the text."""
    message = (
        f"None of the {len(row)} columns is called 'text', so it is unclear which is the text: "
        f"the first row is {', '.join(map(repr, row[:10]))}. Call it 'text' in a header."
    )
    return DataFormatError(message, _NAME_TEXT, path=path, line=number)
