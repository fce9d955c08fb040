"""Where texts and labels are in a table or in JSON lines that call them by names of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.errors import DataFormatError, InputError, Remedy, did_you_mean, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["USUAL", "Columns", "check_columns"]

# Separators that were meant to be one character, as the command line passes them on.
_ESCAPES = {r"\t": "a TAB", r"\n": "a line end", r"\r": "a carriage return"}
_IN_WORDS = {"tab": r"\t", "newline": r"\n"}
_N_SHOWN = 20  # of the columns that there are


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table, or of the keys of JSON lines, that are read.

    Parameters
    ----------
    text : tuple of str
        What makes up a text, joined by blanks; none of them: as the format calls it, ``text``.
    labels : str, optional
        What holds the labels; None: as the format calls it, ``labels``.
    separator : str
        What is between two labels of one cell, or of one string.

    Raises
    ------
    InputError
        If a name or the separator is empty or no string, a name is given twice, or the separator is
        such as a backslash and a t.

    Examples
    --------
    >>> from longtail.data.columns import Columns
    >>> columns = Columns.of(["title", "abstract"], "subjects", "; ")
    >>> columns.labels, columns.joined(["Bread", "", "how to knead"])
    ('subjects', 'Bread how to knead')
    >>> columns.split("baking; bread")
    ['baking', 'bread']
    """

    text: tuple[str, ...] = ()
    labels: str | None = None
    separator: str = "|"

    def __post_init__(self) -> None:
        for name in self.text:
            _check_word(name, "text_column", "a name")
        if self.labels is not None:
            _check_word(self.labels, "labels_column", "a name")
        _check_word(self.separator, "label_separator", "what is between two labels, such as ';'")
        if self.separator in _ESCAPES:
            raise InputError(
                f"The separator {self.separator} is a backslash and a letter, which no shell and "
                f"no file takes for {_ESCAPES[self.separator]}. Pass that itself: in a shell, "
                f"$'{self.separator}'."
            )
        if self.separator.lower() in _IN_WORDS:
            raise InputError(
                f"The separator {self.separator!r} is a word. Pass the character itself: in a "
                f"shell, $'{_IN_WORDS[self.separator.lower()]}'."
            )
        names = [*self.text, *([] if self.labels is None else [self.labels])]
        for name in names:
            if names.count(name) > 1:
                raise InputError(
                    f"The column {name!r} is named {names.count(name)} times. Name each column "
                    f"once{'' if self.labels is None else ', for the text or for the labels'}."
                )

    @classmethod
    def of(
        cls,
        text_column: str | Iterable[str] | None = None,
        labels_column: str | None = None,
        label_separator: str | None = None,
    ) -> Columns:
        """Make it of what users pass, of which None says nothing."""
        text = (text_column,) if isinstance(text_column, str) else tuple(text_column or ())
        if label_separator is None:
            return cls(text, labels_column)
        return cls(text, labels_column, label_separator)

    @property
    def has_names(self) -> bool:
        """Whether a column is named, so that there must be a header."""
        return bool(self.text) or self.labels is not None

    def filled_from(self, others: Columns) -> Columns:
        """Return these columns, and where they are as usual, what others say.

        Examples
        --------
        >>> from longtail.data.columns import Columns
        >>> Columns(("title",)).filled_from(Columns(("abstract",), "subjects", ";"))
        Columns(text=('title',), labels='subjects', separator=';')
        """
        is_usual = self.separator == USUAL.separator
        separator = others.separator if is_usual else self.separator
        return Columns(self.text or others.text, self.labels or others.labels, separator)

    def joined(self, parts: Sequence[str]) -> str:
        """Return one text of the cells that make it up."""
        return parts[0] if len(parts) == 1 else " ".join(filter(None, parts))

    def split(self, cell: str) -> list[str]:
        """Return the labels of a cell, less blanks around them and empty ones."""
        return [name for part in cell.split(self.separator) if (name := part.strip())]

    def place_of(self, name: str, heading: Sequence[str], *, path: Path, line: int | None) -> int:
        """Return where a column is in a header: as it is written, else whatever its capitals.

        Raises
        ------
        DataFormatError
            If there is none of that name, or more than one.

        Examples
        --------
        >>> from longtail.data.columns import USUAL
        >>> USUAL.place_of("title", ["id", "Title "], path="books.csv", line=1)
        1
        """
        cells = [cell.strip() for cell in heading]
        places = [i for i, cell in enumerate(cells) if cell == name.strip()]
        if not places:
            wanted = name.strip().lower()
            places = [i for i, cell in enumerate(cells) if cell.lower() == wanted]
        if len(places) > 1:
            message = (
                f"The header has {len(places)} columns {name!r}. Rename those that are not to be "
                "read."
            )
            raise DataFormatError(message, path=path, line=line)
        if not places:
            raise self.missing(name, cells, path=path, line=line)
        return places[0]

    def twice(self, name: str) -> InputError:
        """Return what is said where one column or key would be the text and the labels as well.

        Examples
        --------
        >>> from longtail.data.columns import Columns
        >>> Columns(("labels",)).twice("labels").args[0]
        "'labels' would be the text and the labels as well. Name two columns or keys."
        """
        is_text = self.labels is None  # the one that was named
        keyword = "labels_column" if is_text else "text_column"
        return InputError(
            f"{name!r} would be the text and the labels as well. Name two columns or keys.",
            Remedy(keyword, f"What is the {'labels' if is_text else 'text'} is passed as {{}}."),
        )

    def missing(
        self,
        name: str,
        known: Sequence[str],
        *,
        path: str | Path,
        line: int | None,
        what: str = "column",
    ) -> DataFormatError:
        """Return what is said where there is no column, or no key, of that name.

        Parameters
        ----------
        name : str
        known : sequence of str
            Those that there are.
        path : str or Path
        line : int or None
        what : str
            ``"column"`` or ``"key"``.

        Examples
        --------
        >>> from longtail.data.columns import Columns
        >>> columns = Columns(("titel",))
        >>> error = columns.missing("titel", ["id", "title"], path="books.csv", line=1)
        >>> error.args[0].partition(": ")[2]
        "There is no column 'titel'. Did you mean 'title'? There are: 'id', 'title'."
        """
        shown = ", ".join(map(repr, known[:_N_SHOWN]))
        more = f" and {len(known) - _N_SHOWN} more" if len(known) > _N_SHOWN else ""
        there = f"There are: {shown}{more}." if known else "There are none."
        message = f"There is no {what} {name!r}.{did_you_mean(name, known)} {there}"
        is_labels = name == (self.labels or "labels") and name not in self.text
        keyword = "labels_column" if is_labels else "text_column"
        return DataFormatError(
            message, Remedy(keyword, "Name one of them as {}."), path=path, line=line
        )


def check_columns(columns: Columns, what: str) -> None:
    """Raise InputError if columns are told of what has none; `what` it is begins the sentence."""
    if columns != USUAL:
        raise InputError(
            f"{what} has no columns or keys, which could have names of their own, and no separator "
            "of labels. TSV, CSV, JSON lines and Parquet have.",
            Remedy("format", "If it is one of these, pass {}."),
        )


def _check_word(word: object, keyword: str, what: str) -> None:
    """Raise InputError unless a name, or the separator, is a string that is not empty."""
    if not isinstance(word, str):
        raise InputError(f"Columns have strings for names, got {named(word)}, {word!r}.")
    if word.encode(errors="replace").decode() != word:  # a byte that the command line passed on
        raise InputError(
            f"{word!r} is not UTF-8, as files are that are read.",
            Remedy(keyword, f"Pass {what} as {{}}."),
        )
    if not word:
        raise InputError("An empty string names nothing.", Remedy(keyword, f"Pass {what} as {{}}."))


USUAL = Columns()  # as the formats call them
