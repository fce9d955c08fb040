"""Rows of a TSV or CSV file, cut into cells."""

from __future__ import annotations

import csv
from itertools import chain
from typing import TYPE_CHECKING, Any

from longtail.data.files import decode_line, raw_lines
from longtail.errors import DataFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from longtail.data.input_notes import InputNotes

__all__ = ["TableRows"]

_SEPARATOR_LINE = "sep="  # Excel's first line, before what is between two cells


class TableRows:
    r"""Yields rows with the number of the line that each ends on; the rows of a file, once.

    Parameters
    ----------
    path : Path
        The file, plain or gzip.
    delimiter : str
        What is between two cells. Of a comma, the first line may say otherwise: by ``sep=;``, as
        Excel does, or as a header that semicolons cut into known headings, as spreadsheets save it
        where a comma is in numbers.
    notes : InputNotes
        Takes cells that look as if a quote were missing.
    headings : set of str
        Known ones, in small letters.

    Attributes
    ----------
    delimiter : str
        What really is between two cells.

    Raises
    ------
    DataFormatError
        If quotes are broken, a line is not UTF-8, a cell is too long, or the first line of a TSV
        file says that something else is between cells.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.table_rows import TableRows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.csv")
    ...     _ = path.write_text("text;labels\nrye, to knead;bread\n")
    ...     rows = TableRows(path, ",", InputNotes(path), {"text", "labels"})
    ...     rows.delimiter, list(rows)
    (';', [(1, ['text', 'labels']), (2, ['rye, to knead', 'bread'])])
    """

    def __init__(
        self,
        path: Path,
        delimiter: str,
        notes: InputNotes,
        headings: AbstractSet[str],
    ) -> None:
        self._path, self._notes = path, notes
        lines = (
            decode_line(line, path=path, number=number)
            for number, line in enumerate(raw_lines(path), start=1)
        )
        first = next(lines, "")
        said = _said_separator(first)
        self.delimiter = said or delimiter
        if said and delimiter not in (said, ","):
            message = (
                f"The first line says that {said!r} is between two cells, but the file is read "
                f"with {delimiter!r}. If that is right, leave this line out."
            )
            raise DataFormatError(message, path=path, line=1)
        if not said and delimiter == "," and _is_header_by_semicolons(first, headings):
            self.delimiter = ";"
        self._n_before = 1 if said else 0
        self._lines = lines if said else chain([first] if first else [], lines)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(self._lines, delimiter=self.delimiter, strict=True)
        try:
            for row in self._told(reader):
                yield self._n_before + reader.line_num, row
        except csv.Error as error:
            raise self._explained(error, self._n_before + reader.line_num) from error

    def _told(self, reader: Any) -> Iterator[list[str]]:
        """Yield rows, and note those that may have swallowed others."""
        last = 0
        for row in reader:
            is_long = reader.line_num > last + 1
            if is_long and any(_holds_rows(cell, row, self.delimiter) for cell in row):
                self._notes.add(
                    "cells that hold what looks like further rows (kept as one: is a quote missing "
                    "or too many?)",
                    line=self._n_before + last + 1,
                )
            last = reader.line_num
            yield row

    def _explained(self, error: csv.Error, line: int) -> DataFormatError:
        """Return what is said of rows that cannot be cut into cells."""
        if "new-line character" in str(error):  # the csv module's words for a lone carriage return
            message = "Lines end in a carriage return alone. Save the file with Unix line ends."
        elif "field larger" in str(error):
            message = (
                f"A cell has more than {csv.field_size_limit():,} characters. Close the quotes if "
                "some are open; for texts that are as long, use JSON lines."
            )
        else:
            message = (
                f"The quotes are broken at or before this line ({error}). Put a cell that holds a "
                'quote into quotes and double the inner ones: "a ""quoted"" word".'
            )
        return DataFormatError(message, path=self._path, line=line)


def _holds_rows(cell: str, row: list[str], delimiter: str) -> bool:
    """Tell a cell whose lines have as many separators as its row; few texts have TABs or two such.

    A quote that is not doubled goes on to the next one, which may be many rows later.
    """
    lines = cell.split("\n")[:-1]
    fewest = 1 if delimiter == "\t" else 2
    return len(lines) >= fewest and all(line.count(delimiter) == len(row) - 1 for line in lines)


def _said_separator(line: str) -> str:
    """Return what Excel's line says is between cells, nothing if it is no such line."""
    line = line.rstrip("\r\n").rstrip(" ").strip('"')
    said = line[len(_SEPARATOR_LINE) :]
    is_one = line.lower().startswith(_SEPARATOR_LINE) and len(said) == 1 and not said.isalnum()
    return said if is_one else ""


def _is_header_by_semicolons(line: str, headings: AbstractSet[str]) -> bool:
    """Tell whether semicolons cut a line into cells of which some are known, and commas do not."""
    try:
        by_comma, by_semicolon = (
            [cell.strip().lower() for cell in next(csv.reader([line], delimiter=mark), [])]
            for mark in ",;"
        )
    except csv.Error:  # which is explained where the rows are read
        return False
    return headings.isdisjoint(by_comma) and not headings.isdisjoint(by_semicolon)
