"""Many texts as two arrays: no Python object a text stays in memory."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, overload

import numpy as np

from longtail.data.foreign import is_missing
from longtail.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["NO_TEXTS", "TextColumn", "TextColumnBuilder", "shown_texts", "well_formed"]

# Rows handled at a time where each one costs temporary memory of several times its size.
_CHUNK = 65_536
_LINE_FEED = ord("\n")
_MOST_SHOWN, _SHOWN = 3, 80  # texts, and letters of one, which may be as long as a book


class TextColumn(Sequence[str]):
    """A read-only sequence of texts, kept as one UTF-8 buffer and where each text starts.

    Parameters
    ----------
    buffer : ndarray of uint8, shape (n_bytes,)
        All texts in UTF-8, one after the other. May be memory-mapped. What is no UTF-8, as in a
        damaged file, reads as U+FFFD.
    offsets : ndarray of int64, shape (n_texts + 1,)
        Text ``i`` is ``buffer[offsets[i]:offsets[i + 1]]``; the first offset is 0 and the last
        is ``n_bytes``. May be memory-mapped.

    Raises
    ------
    InputError
        If the offsets do not fit the buffer.

    Examples
    --------
    >>> column = TextColumn.from_strings(["a rose", "", "große Fuge"])
    >>> column[2], len(column), column.buffer.nbytes
    ('große Fuge', 3, 17)
    >>> list(column[:2])
    ['a rose', '']
    >>> list(column.take([2, 0]))
    ['große Fuge', 'a rose']
    """

    __slots__ = ("_bytes", "_places", "buffer", "offsets")

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __init__(self, buffer: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.buffer = np.asarray(buffer)
        self.offsets = np.asarray(offsets)
        _check_arrays(self.buffer, self.offsets)
        # One text is read from these in a third of the time that arrays take.
        self._bytes, self._places = self.buffer.data, self.offsets.data

    def __reduce__(self) -> tuple[type[TextColumn], tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        return type(self), (self.buffer, self.offsets)

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> TextColumn:
        """Pack an iterable of strings.

        Lone surrogates, which UTF-8 cannot hold, become U+FFFD.

        Raises
        ------
        InputError
            If an element is not a string; the message names its position. If `strings` is one
            string, whose letters would be the texts.

        Examples
        --------
        >>> TextColumn.from_strings(["one", "two"])
        TextColumn(['one', 'two'])
        """
        if isinstance(strings, str):
            raise InputError(f"Expected several strings, got one, {strings!r}. Pass [{strings!r}].")
        builder = TextColumnBuilder()
        for position, text in enumerate(strings):
            if not isinstance(text, str):
                raise _no_string(position, text)
            builder.append(text)
        return builder.finish()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> TextColumn: ...
    def __getitem__(self, index: int | slice) -> str | TextColumn:
        if isinstance(index, slice):
            return self._slice(index)
        row, n_texts = operator.index(index), len(self._places) - 1
        if row < 0:
            row += n_texts
        if not 0 <= row < n_texts:
            raise IndexError(f"text {index} of {n_texts}")
        return str(self._bytes[self._places[row] : self._places[row + 1]], "utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        view = self.buffer.data
        for first in range(0, len(self), _CHUNK):
            for start, stop in pairwise(self.offsets[first : first + _CHUNK + 1].tolist()):
                yield str(view[start:stop], "utf-8", "replace")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TextColumn):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(
            self.buffer, other.buffer
        )

    __hash__: ClassVar[None]  # type: ignore[assignment]  # comparing by content rules hashing by place out

    def __repr__(self) -> str:
        return f"TextColumn([{shown_texts(self)}])"

    def take(self, rows: ArrayLike) -> TextColumn:
        """Return the texts of the given rows, in the given order.

        Parameters
        ----------
        rows : array-like of int, shape (n,)
            Row numbers from 0; repeats are allowed.
        """
        row_ids = np.arange(len(self))[np.asarray(rows, dtype=np.int64).reshape(-1)]  # checked
        places = np.clip(self.offsets, 0, len(self.buffer))  # of a damaged file, they may be any
        lengths = np.maximum(np.diff(places), 0)[row_ids]
        offsets = np.zeros(len(row_ids) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        buffer = np.empty(offsets[-1], dtype=np.uint8)
        for first in range(0, len(row_ids), _CHUNK):
            part = slice(first, min(first + _CHUNK, len(row_ids)))
            # Where each byte of the copy comes from: its place moved by its text's shift.
            shifts = places[row_ids[part]] - offsets[part]
            sources = np.arange(offsets[part.start], offsets[part.stop])
            sources += np.repeat(shifts, lengths[part])
            buffer[offsets[part.start] : offsets[part.stop]] = self.buffer[sources]
        return TextColumn(buffer, offsets)

    def joined(self, other: TextColumn) -> TextColumn:
        """Return a column with the texts of `other` behind these."""
        return TextColumn(
            np.concatenate((self.buffer, other.buffer)),
            np.concatenate((self.offsets, other.offsets[1:] + self.offsets[-1])),
        )

    def as_lines(self) -> str:
        r"""Return the texts in one, each ended by a line feed; those within become spaces.

        Examples
        --------
        >>> TextColumn.from_strings(["Ab", "c\nd"]).as_lines()
        'Ab\nc d\n'
        """
        is_sound = bool((self.offsets[1:] >= self.offsets[:-1]).all())
        if not is_sound or (self.buffer == _LINE_FEED).any():
            return "".join(text.replace("\n", " ") + "\n" for text in self)
        lines = np.insert(self.buffer, self.offsets[1:], _LINE_FEED)
        return str(lines.data, "utf-8", "replace")

    def _slice(self, index: slice) -> TextColumn:
        """Share the buffer where the rows are neighbours; only the offsets are copied."""
        start, stop, step = index.indices(len(self))
        if step != 1:
            return self.take(np.arange(start, stop, step))
        offsets = self.offsets[start : max(start, stop) + 1]
        return TextColumn(self.buffer[offsets[0] : offsets[-1]], offsets - offsets[0])


def shown_texts(texts: Sequence[str]) -> str:
    """Return the first of some texts as a line of output shows them, however long they are.

    Examples
    --------
    >>> from longtail.data.text_column import shown_texts
    >>> shown_texts(["red", "white"]), shown_texts(["ale", "gin", "red", "white"])
    ("'red', 'white'", "'ale', 'gin', 'red', ...")
    """
    first = (text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..." for text in texts[:_MOST_SHOWN])
    return ", ".join(map(repr, first)) + (", ..." if len(texts) > _MOST_SHOWN else "")


def _no_string(position: int, value: object) -> InputError:
    """Return what is said of what is no text."""
    remedy = "Pass strings; an empty one is allowed."
    if is_missing(value):
        remedy = (
            "Leave points without a text out, or let it be empty: with pandas, "
            "table['text'].fillna('')."
        )
    return InputError(
        f"Text {position} is {value!r} ({type(value).__name__}), not a string. {remedy}"
    )


class TextColumnBuilder:
    """Grows a `TextColumn` text by text, for readers that stream.

    Examples
    --------
    >>> builder = TextColumnBuilder()
    >>> builder.append("one")
    >>> builder.append(b"two")
    >>> builder.finish()
    TextColumn(['one', 'two'])
    """

    __slots__ = ("_buffer", "_offsets")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._offsets = array("q", [0])

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def append(self, text: str | bytes) -> None:
        """Add one text; bytes must be valid UTF-8 (the caller has checked)."""
        self._buffer += _encode(text) if isinstance(text, str) else text
        self._offsets.append(len(self._buffer))

    def finish(self) -> TextColumn:
        """Return the column; the builder starts anew."""
        buffer = np.frombuffer(self._buffer, dtype=np.uint8)
        offsets = np.frombuffer(self._offsets, dtype=np.int64)
        # The arrays now own the memory.
        self._buffer, self._offsets = bytearray(), array("q", [0])
        return TextColumn(buffer, offsets)


def well_formed(text: str) -> str:
    r"""Return a text as a column holds it: surrogate pairs joined, lone surrogates as U+FFFD.

    Examples
    --------
    >>> from longtail.data.text_column import well_formed
    >>> well_formed("a\ud83d\ude00") == "a\U0001f600", well_formed("b\ud83d") == "b\ufffd"
    (True, True)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _encode(text: str) -> bytes:
    """Encode as UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return well_formed(text).encode()


def _check_arrays(buffer: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
    """Refuse arrays that would read outside the buffer: they may come from a damaged file."""
    if buffer.dtype != np.uint8 or offsets.dtype != np.int64:
        raise InputError(
            "A text column needs a uint8 buffer and int64 offsets, "
            f"got {buffer.dtype} and {offsets.dtype}."
        )
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(buffer):
        raise InputError(
            f"The offsets of a text column must run from 0 to the buffer's {len(buffer)} bytes, "
            f"got {offsets[:1].tolist()} to {offsets[-1:].tolist()}."
        )


NO_TEXTS = TextColumn.from_strings(())
