"""What the first row of a table says: a header tells where texts and labels are, else their order.

A row with the cells ``text`` and ``labels`` or ``label`` (in any order, among others) is a header.
Instead of ``text`` it may have one of the other names that columns of texts often have. Points that
are to be answered need no labels, in the header neither. Where a user names columns, the first row
is a header, whatever it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from longtail.errors import DataFormatError, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from longtail.data.columns import Columns
    from longtail.data.input_notes import InputNotes
    from longtail.data.kept_columns import Kept

__all__ = ["NAME_COLUMNS", "OTHERWISE_SEPARATED", "FirstRow", "Layout", "known_headings"]

NAME_COLUMNS = (
    Remedy("text_column", "Or pass {} and"),
    Remedy("labels_column", "{}, what the columns are called."),
)
OTHERWISE_SEPARATED = {
    "\t": Remedy("format", "If TABs separate the cells here, pass tsv as {}."),
    ",": Remedy("format", "If commas separate the cells here, pass csv as {}."),
    ";": Remedy("format", "If semicolons separate the cells here, pass csv as {}."),
}
_LABEL_HEADINGS = ("labels", "label")
# What columns of texts are often called.
_HEADINGS = {"text", "title", "name", "query", "sentence", "question", "content", "description"}
_NAME_TEXT = Remedy("text_column", "Or pass its name as {}.")
_NAME_LABELS = Remedy("labels_column", "Or pass its name as {}.")
_N_SHOWN = 10  # cells of a row that is not understood


class Layout(NamedTuple):
    """Where in each row is what is read of it.

    Attributes
    ----------
    text : tuple of int
        The cell of the text, or the cells that make it up.
    n_columns : int
        How many cells a row has.
    is_header : bool
        Whether the first row is a header, not a point.
    labels : int
        The cell of the labels; -1 where they are not looked for.
    kept : tuple of int
        The cells that are carried to answers.
    """

    text: tuple[int, ...]
    n_columns: int
    is_header: bool
    labels: int = -1
    kept: tuple[int, ...] = ()


@dataclass(frozen=True)
class FirstRow:
    """The first row of a table that is not blank.

    Parameters
    ----------
    cells : sequence of str
    columns : Columns
        What a user calls the columns.
    notes : InputNotes
        Takes which column was taken where the header does not say it.
    path : Path
    line : int or None
        None if names of columns are no row, but stand by themselves.

    Examples
    --------
    >>> from longtail.data.columns import USUAL
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.table_header import FirstRow
    >>> header = FirstRow(["id", "Labels", "Text"], USUAL, InputNotes("a.csv"), "a.csv", 1)
    >>> header.layout()
    Layout(text=(2,), n_columns=3, is_header=True, labels=1, kept=())
    >>> point = FirstRow(["how to knead", "bread"], USUAL, InputNotes("a.csv"), "a.csv", 1)
    >>> point.layout()
    Layout(text=(0,), n_columns=2, is_header=False, labels=1, kept=())
    """

    cells: Sequence[str]
    columns: Columns
    notes: InputNotes
    path: Path
    line: int | None

    def layout(self) -> Layout:
        """Return where texts and labels are.

        Raises
        ------
        DataFormatError
            If a column is not there or twice there, or the row names only one of the two.
        InputError
            If one column would be both.
        """
        if self.columns.has_names:
            return self.layout_of_header()
        known = ["text"] if "text" in self._names else _like_texts(self._names)
        labels = self._labels_heading
        if labels is None or len(known) != 1:
            return self._without_header()
        if known != ["text"]:
            self._remark_on(known[0])
        for name in (known[0], labels):  # named twice, one would be lost
            self._refuse_twice(name)
        return self._header((self._names.index(known[0]),), self._names.index(labels))

    def layout_of_header(self) -> Layout:
        """Return the same of a row that is a header for sure."""
        text = self._named_text()
        if not text:
            raise self._no_text_column()
        labels_place = self._labels_place()
        if labels_place in text:
            raise self.columns.twice(self.cells[labels_place])
        return self._header(text, labels_place)

    def layout_of_texts(self, delimiter: str, kept: Kept | None = None) -> Layout:
        """Return where the texts are that need no labels.

        They are in the column that is named ``text``, else in the only one that is named as columns
        of texts often are; without such a header, in the only column, or the first of two.

        Parameters
        ----------
        delimiter : str
            What is between two cells.
        kept : Kept, optional
            Says which further columns are carried to answers.

        Raises
        ------
        DataFormatError
            If it cannot be told which column is the text, what must be kept is not there, or
            something else than `delimiter` separates the cells of a header.
        """
        text = self._named_text()
        if text or (kept is not None and kept.asked):  # named, so that this is a header
            return self._layout_of_text_header(text, kept)
        self._refuse_other_separator(delimiter)
        return Layout((self._text_by_order(),), len(self.cells), is_header=False)

    def layout_of_text_header(self, kept: Kept | None = None) -> Layout:
        """Return the same of a row that is a header for sure."""
        return self._layout_of_text_header(self._named_text(), kept)

    @cached_property
    def _names(self) -> list[str]:
        """The cells as names are compared."""
        return [cell.strip().lower() for cell in self.cells]

    @property
    def _shown(self) -> str:
        """The first cells, and what they are."""
        what = "they are" if self.line is None else "the first row is"
        return f"{what} {', '.join(map(repr, self.cells[:_N_SHOWN]))}"

    @property
    def _labels_heading(self) -> str | None:
        """What the column of labels is called, if one is called so."""
        return next((name for name in _LABEL_HEADINGS if name in self._names), None)

    def _header(self, text: tuple[int, ...], labels: int) -> Layout:
        """Return the layout that a header tells."""
        return Layout(text, len(self.cells), is_header=True, labels=labels)

    def _layout_of_text_header(self, text: tuple[int, ...], kept: Kept | None) -> Layout:
        """Return the layout that a header tells of points without labels."""
        carried: tuple[int, ...] = ()
        if kept is not None:
            carried = kept.places_in(self.cells, path=self.path, line=self.line)
        if not text:
            raise self._no_text_column()
        return Layout(text, len(self.cells), is_header=True, kept=carried)

    def _without_header(self) -> Layout:
        """Return the layout of a text and its labels, and say so of a row like a header."""
        self._refuse_half_a_header()
        if self._names[0] in _HEADINGS:
            self.notes.add(
                "a first row like a header, but without 'text' and 'labels' (kept as a point; if "
                "it is a header, call its columns so)",
                line=self.line or 0,
            )
        return Layout((0,), 2, is_header=False, labels=1)

    def _named_text(self) -> tuple[int, ...]:
        """Return which columns a user or a header names as the text; none if this is no header."""
        if self.columns.text:
            place_of = self.columns.place_of
            return tuple(
                place_of(name, self.cells, path=self.path, line=self.line)
                for name in self.columns.text
            )
        of_labels = (self.columns.labels or "").strip().lower()
        known = _like_texts(name for name in self._names if name != of_labels)
        if "text" in known:
            self._refuse_twice("text")
            return (self._names.index("text"),)
        if len(known) == 1:
            self._remark_on(known[0])
            return (self._names.index(known[0]),)
        if known or self._labels_heading is not None:
            raise self._no_text_column()
        return ()

    def _text_by_order(self) -> int:
        """Return the only column, or the first of two, as the text where none is named."""
        if len(self.cells) > 2:
            raise self._no_text_column()
        if len(self.cells) == 2:
            self.notes.remark(
                "there is no header with a column 'text', so the first of the two columns is taken "
                "as the text"
            )
        return 0

    def _labels_place(self) -> int:
        """Return the column of labels, of a row that is a header for sure."""
        if self.columns.labels is not None:
            return self.columns.place_of(
                self.columns.labels, self.cells, path=self.path, line=self.line
            )
        labels = self._labels_heading
        if labels is None:
            message = (
                f"None of the {len(self.cells)} columns is called 'labels': {self._shown}. "
                "Call one so."
            )
            raise self._error(message, _NAME_LABELS)
        self._refuse_twice(labels)
        return self._names.index(labels)

    def _refuse_twice(self, name: str) -> None:
        """Raise DataFormatError if the header has a name more than once."""
        count = self._names.count(name)
        if count > 1:
            raise self._error(
                f"The header has {count} columns {name!r}. Rename those that are not to be read."
            )

    def _refuse_half_a_header(self) -> None:
        """Refuse a row that names only one column, and not in the place that it would be in."""
        has_text = "text" in self._names[1:]
        if not has_text and self._names[0] not in _LABEL_HEADINGS:
            return
        known, missing = ("text", "labels") if has_text else (self._names[0], "text")
        message = (
            f"The first row is a header with a column {known!r}, but without a column "
            f"{missing!r}: {self._shown}. Name both columns, 'text' and 'labels', or leave the "
            "header out."
        )
        raise self._error(message, _NAME_LABELS if has_text else _NAME_TEXT)

    def _refuse_other_separator(self, delimiter: str) -> None:
        """Raise DataFormatError if a row of one cell is a header that something else separates."""
        if len(self.cells) > 1:
            return
        for separator, remedy in OTHERWISE_SEPARATED.items():
            names = self.cells[0].lower().split(separator)
            if len(names) > 1 and {"text", *_LABEL_HEADINGS}.intersection(names):
                message = (
                    f"The first row, {self.cells[0][:60]!r}, looks like a header with "
                    f"{separator!r} between its cells, but the file is read with {delimiter!r}."
                )
                raise self._error(message, remedy)

    def _remark_on(self, name: str) -> None:
        """Say which column is taken as the text."""
        self.notes.remark(f"no column is called 'text', so {name!r} is taken as the text")

    def _no_text_column(self) -> DataFormatError:
        """Return what is said where it cannot be told which column is the text."""
        message = (
            f"None of the {len(self.cells)} columns is called 'text', so it is unclear which is "
            f"the text: {self._shown}. Call it 'text'{' in a header' if self.line else ''}."
        )
        return self._error(message, _NAME_TEXT)

    def _error(self, message: str, *remedies: Remedy) -> DataFormatError:
        """Return an error of this row."""
        return DataFormatError(message, *remedies, path=self.path, line=self.line)


def known_headings(columns: Columns) -> set[str]:
    """Return what the columns that are read may be called, in small letters.

    Examples
    --------
    >>> from longtail.data.columns import Columns
    >>> from longtail.data.table_header import known_headings
    >>> sorted(known_headings(Columns.of("Book", "Tags")) - known_headings(Columns()))
    ['book', 'tags']
    """
    named = (*columns.text, *([] if columns.labels is None else [columns.labels]))
    return {*_HEADINGS, *_LABEL_HEADINGS, *(name.strip().lower() for name in named)}


def _like_texts(names: Iterable[str]) -> list[str]:
    """Return the names that columns of texts often have."""
    return [name for name in names if name in _HEADINGS]
