"""Rows of a TSV or CSV file, cut into cells."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from longtail.data.paths import decode_line, raw_lines
from longtail.errors import DataFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longtail.data.input_notes import InputNotes

__all__ = ["table_rows"]

_SEPARATOR_LINE = "sep="  # Excel's first line, before what is between two cells


def table_rows(path: Path, delimiter: str, notes: InputNotes) -> Iterator[tuple[int, list[str]]]:
    r"""Yield rows with the number of the line that each ends on.

    Parameters
    ----------
    path : Path
        The file, plain or gzip.
    delimiter : str
        What is between two cells. A first line ``sep=`` that says the same is left out.
    notes : InputNotes
        Takes cells that look as if a quote were missing.

    Raises
    ------
    DataFormatError
        If quotes are broken, a line is not UTF-8, a cell is too long, or the first line says that
        something else is between cells.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.table_rows import table_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.csv")
    ...     _ = path.write_text("sep=,\nhow to knead,bread\n")
    ...     list(table_rows(path, ",", InputNotes(path)))
    [(2, ['how to knead', 'bread'])]
    """
    lines = (
        decode_line(line, path=path, number=number)
        for number, line in enumerate(raw_lines(path), start=1)
    )
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    last = 0
    try:
        for row in reader:
            is_long = reader.line_num > last + 1
            if is_long and any(_holds_rows(cell, row, delimiter) for cell in row):
                notes.add(
                    "cells that hold what looks like further rows (kept as one: is a quote missing "
                    "or too many?)",
                    line=last + 1,
                )
            last = reader.line_num
            if last == 1 and _says_separator(row, delimiter, path):
                continue
            yield last, row
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


def _holds_rows(cell: str, row: list[str], delimiter: str) -> bool:
    """Tell a cell whose lines have as many separators as its row; few texts have TABs or two such.

    A quote that is not doubled goes on to the next one, which may be many rows later.
    """
    lines = cell.split("\n")[:-1]
    fewest = 1 if delimiter == "\t" else 2
    return len(lines) >= fewest and all(line.count(delimiter) == len(row) - 1 for line in lines)


def _says_separator(row: list[str], delimiter: str, path: Path) -> bool:
    """Tell Excel's line that says what is between cells; DataFormatError if that is not so."""
    line = delimiter.join(row).rstrip(" ")
    said = line[len(_SEPARATOR_LINE) :]
    is_one = line.lower().startswith(_SEPARATOR_LINE) and len(said) == 1 and not said.isalnum()
    if is_one and said != delimiter:
        message = (
            f"The first line says that {said!r} is between two cells, but the file is read with "
            f"{delimiter!r}. Save the table with commas (CSV) or TABs (TSV) between cells, or, if "
            f"they are {delimiter!r} as it is, leave this line out."
        )
        raise DataFormatError(message, path=path, line=1)
    return is_one
