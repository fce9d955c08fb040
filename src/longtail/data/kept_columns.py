"""Columns that are carried from points to their answers, such as an id from elsewhere."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from longtail.data.columns import Columns, check_columns
from longtail.data.json_lines import keys_of
from longtail.errors import InputError, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["ANSWER_NAMES", "IDS", "Kept", "Value"]

IDS = ("id", "uid", "key")  # one of these is kept without being asked for
_QUOTED_IDS = tuple(f'"{name}"'.encode() for name in IDS)
ANSWER_NAMES = frozenset({"text", "labels", "scores"})

Value: TypeAlias = str | msgspec.Raw | None  # a cell; a value of JSON, as it is written; or none


class Kept:
    """Takes the kept cells of point after point while a file is read, and hands them on in order.

    Parameters
    ----------
    asked : sequence of str
        Names of columns or keys; without any, the first of `IDS` that the file has is kept.

    Raises
    ------
    InputError
        If a name is given twice, or is one that answers have themselves.

    Attributes
    ----------
    names : tuple of str
        What is kept, once the first point has been read.

    Examples
    --------
    >>> from longtail.data.kept_columns import Kept
    >>> kept = Kept()
    >>> kept.places_in(["text", "ID"], path="texts.csv", line=1)
    (1,)
    >>> kept.add(["a17"])
    >>> kept.take(1)
    [{'ID': 'a17'}]
    """

    def __init__(self, asked: Sequence[str] = ()) -> None:
        with _told_by_keep():
            self._columns = Columns(tuple(asked))
        of_answers = ANSWER_NAMES.intersection(asked)
        if of_answers:
            raise InputError(
                f"Answers have {min(of_answers)!r} of their own, so it cannot be kept beside it. "
                "Name the column otherwise."
            )
        self.names: tuple[str, ...] | None = None
        self._rows: deque[Sequence[Value]] = deque()
        self._has_missed = False

    @property
    def asked(self) -> tuple[str, ...]:
        """What must be kept."""
        return self._columns.text

    def places_in(self, heading: Sequence[str], *, path: Path, line: int | None) -> tuple[int, ...]:
        """Settle what is kept of a table with such a header, and return where it is."""
        if self.asked:
            self.names = self.asked
            find = self._columns.place_of
            with _told_by_keep():
                return tuple(find(name, heading, path=path, line=line) for name in self.asked)
        cells = [cell.strip().lower() for cell in heading]
        places = [cells.index(name) for name in IDS if name in cells][:1]
        self.names = tuple(heading[place].strip() for place in places)
        return tuple(places)

    def refuse(self, what: str) -> None:
        """Raise InputError if something must be kept of what has no names.

        Parameters
        ----------
        what : str
            What has none, at the beginning of a sentence.
        """
        check_columns(self._columns, what)

    def add(self, values: Sequence[Value]) -> None:
        """Take the cells of one point."""
        self._rows.append(values)

    def add_object(self, row: Mapping[str, msgspec.Raw], *, path: Path, line: int) -> None:
        """Take what is kept of an object of JSON; the first one settles what that is."""
        if self.names is None:
            self.names = self.asked or tuple(name for name in IDS if name in row)[:1]
        for name in self.asked:
            if name not in row:
                with _told_by_keep():
                    raise self._columns.missing(name, [*row], path=path, line=line, what="key")
        if self.names:
            self.add([row.get(name) for name in self.names])

    def missed(self, line: bytes) -> str | None:
        """Name the id that a line of JSON has though the first has none; None after the first such.

        Examples
        --------
        >>> from longtail.data.kept_columns import Kept
        >>> kept = Kept()
        >>> kept.add_object({"text": b'"one"'}, path="texts.jsonl", line=1)
        >>> kept.missed(b'{"id": 17, "text": "two"}'), kept.missed(b'{"id": 18, "text": "three"}')
        ('id', None)
        """
        if self._has_missed or not any(name in line for name in _QUOTED_IDS):
            return None
        keys = keys_of(line)
        name = next((name for name in IDS if name in keys), None)
        self._has_missed = name is not None
        return name

    def take(self, n_points: int) -> list[dict[str, Value]]:
        """Return what was kept of the next points, which is nothing where nothing has a name."""
        if not self.names:
            return [{} for _ in range(n_points)]
        rows = (self._rows.popleft() for _ in range(n_points))
        return [dict(zip(self.names, row, strict=True)) for row in rows]


@contextmanager
def _told_by_keep() -> Iterator[None]:
    """Let errors about columns name `keep` as the argument that these were told by."""
    try:
        yield
    except InputError as error:
        error.remedies = tuple(Remedy("keep", remedy.sentence) for remedy in error.remedies)
        raise
