"""The one grammar under the sparse text formats: ``id:value id:value ...``, a row a line."""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longtail.data.csr import MAX_IDS, MOST_DIGITS, TINY, csr_from_rows
from longtail.errors import DataFormatError
from longtail.kernels.entries import read_entries

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.input_notes import InputNotes

__all__ = ["SparseRowBuilder", "format_entries", "parse_header", "parse_ids"]

Int64s: TypeAlias = "NDArray[np.int64]"
Float64s: TypeAlias = "NDArray[np.float64]"
Floats: TypeAlias = "NDArray[np.float32 | np.float64]"

# Atomic groups and possessive quantifiers: a long broken line fails in one pass.
_NUMBER = rb"[-+]?(?>\d++\.?\d*+|\.\d++)(?>[eE][-+]?\d++)?"
_ENTRY = re.compile(rb"\d++:" + _NUMBER)
_ENTRIES = re.compile(rb"[ \t]*+(?>\d++:" + _NUMBER + rb"(?:[ \t]++|\Z))*+")
_ID = rb"\d{1,%d}+" % MOST_DIGITS
_WITHOUT_QUERIES = "sed -E 's/ qid:[0-9]+//' FILE > NEW_FILE"
_IDS = re.compile(_ID + rb"(?>," + _ID + rb")*+")


class SparseRowBuilder:
    """Collects the rows of a sparse matrix, line after line.

    Parameters
    ----------
    path : Path
        The file, for error messages.
    n_columns : int, optional
        Number of columns; without it, one more than the largest id seen.
    dtype : type
        What values are kept as: float32, or float64 where all of their digits count.
    notes : InputNotes or None
        Takes rows whose values are all so small that they are kept as 0.

    Examples
    --------
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.sparse_lines import SparseRowBuilder
    >>> rows = SparseRowBuilder("features.txt", n_columns=4, notes=InputNotes("features.txt"))
    >>> rows.add(b"3:0.5 0:2", line=1)
    >>> rows.finish().toarray().tolist()
    [[2.0, 0.0, 0.0, 0.5]]
    """

    def __init__(
        self,
        path: str | Path,
        *,
        n_columns: int | None = None,
        dtype: type[np.float32 | np.float64] = np.float32,
        notes: InputNotes | None,
    ) -> None:
        self.path = path
        self._notes = notes
        self._n_columns = n_columns
        self._dtype: np.dtype[np.float32 | np.float64] = np.dtype(dtype)
        self._indices = array("i")
        self._values = array(self._dtype.char)
        self._lengths = array("q")

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, entries: bytes, *, line: int) -> None:
        """Add one row; its entries may come in any order.

        Raises
        ------
        DataFormatError
            If an entry is malformed, its id out of range or given twice, or its value is not a
            finite number of the `dtype`.
        """
        ids, numbers = _usual(entries) or _parse(entries, self.path, line)
        if not len(ids):
            self._lengths.append(0)
            return
        ids, values = self._checked(ids, numbers, entries, line)
        if self._notes is not None and not values.any() and numbers.any():
            self._notes.add(TINY, line=line)
        self._indices.frombytes(ids.astype(np.int32).tobytes())
        self._values.frombytes(values.tobytes())
        self._lengths.append(len(ids))

    def finish(self) -> csr_array:
        """Return the matrix: CSR, ids sorted within a row, no zeros."""
        indices = np.frombuffer(self._indices, dtype=np.int32)
        values = np.frombuffer(self._values, dtype=self._dtype)
        lengths = np.frombuffer(self._lengths, dtype=np.int64)
        n_columns = self._n_columns
        if n_columns is None:
            n_columns = int(indices.max()) + 1 if len(indices) else 0
        matrix = csr_from_rows(indices, lengths, n_columns, values)
        matrix.eliminate_zeros()  # which say as little as what is not there
        return matrix

    def _checked(
        self, ids: Int64s, numbers: Float64s, entries: bytes, line: int
    ) -> tuple[Int64s, Floats]:
        """Sort a row where needed and refuse what no matrix can hold."""
        with np.errstate(over="ignore"):  # what overflows is refused below
            values = numbers.astype(self._dtype)
        steps = np.diff(ids)
        if (steps <= 0).any():
            order = np.argsort(ids, kind="stable")
            ids, values = ids[order], values[order]
            steps = np.diff(ids)
        limit = MAX_IDS if self._n_columns is None else self._n_columns
        message = ""
        if ids[-1] >= limit:
            message = (
                f"The id {_largest_id(entries)} is out of range: ids run from 0 to {limit - 1}."
            )
            if ids[-1] == self._n_columns:
                message += " If all ids count from 1, subtract 1 from each."
        elif (steps == 0).any():
            message = (
                f"The id {ids[1:][steps == 0][0]} appears twice. Give each id one value a row."
            )
        elif not np.isfinite(values).all():
            n_bits = 8 * self._dtype.itemsize
            message = f"A value is too large for a {n_bits}-bit number. Scale the values down."
        if message:
            raise DataFormatError(message, path=self.path, line=line)
        return ids, values


def parse_ids(text: bytes, *, path: str | Path, line: int) -> list[int]:
    """Read label ids separated by commas.

    Raises
    ------
    DataFormatError
        If they are not whole numbers from 0.

    Examples
    --------
    >>> parse_ids(b"4,12", path="train.txt", line=2)
    [4, 12]
    """
    if not text:
        return []
    if _IDS.fullmatch(text) is None:
        shown = text[:40].decode(errors="replace")
        message = (
            f"Expected label ids separated by commas, got {shown!r}. "
            "Ids are whole numbers from 0; a point without labels begins with a blank."
        )
        raise DataFormatError(message, path=path, line=line)
    return [int(label) for label in text.split(b",")]


def parse_header(text: bytes, names: tuple[str, ...], *, path: str | Path) -> list[int]:
    """Read a first line of whole numbers, such as ``n_points n_features n_labels``.

    Raises
    ------
    DataFormatError
        If it is something else.

    Examples
    --------
    >>> parse_header(b"2 10 3", ("n_points", "n_features", "n_labels"), path="train.txt")
    [2, 10, 3]
    """
    cells = text.split()
    is_number = [cell.isdigit() and len(cell) <= MOST_DIGITS for cell in cells]
    if len(cells) != len(names) or not all(is_number):
        shown = text[:60].decode(errors="replace")
        message = (
            f"Expected a header of {len(names)} whole numbers ({' '.join(names)}), got {shown!r}."
        )
        raise DataFormatError(message, path=path, line=1)
    counts = [int(cell) for cell in cells]
    for name, count in zip(names, counts, strict=True):
        if name != "n_points" and count > MAX_IDS:
            message = f"The header's {name} is {count:,}; at most {MAX_IDS:,} can be kept."
            raise DataFormatError(message, path=path, line=1)
    return counts


def format_entries(ids: Int64s, values: NDArray[np.float32]) -> str:
    """Write one row; each value with as few digits as tell it from any other float32.

    Examples
    --------
    >>> format_entries(np.array([0, 3]), np.array([2, 0.1], dtype=np.float32))
    '0:2.0 3:0.1'
    """
    return " ".join(map("{}:{}".format, ids.tolist(), values.astype(np.str_).tolist()))


def _usual(entries: bytes) -> tuple[Int64s, Float64s] | None:
    """Read a line as nearly all files write it, in a fifth of the time that `_parse` takes."""
    most = len(entries) // 4 + 1  # an entry has three characters, and a blank before the next
    ids, values = np.empty(most, np.int64), np.empty(most, np.float64)
    n_entries = read_entries(np.frombuffer(entries, np.uint8), ids, values)
    return None if n_entries < 0 else (ids[:n_entries], values[:n_entries])


def _parse(entries: bytes, path: str | Path, line: int) -> tuple[Int64s, Float64s]:
    """Check the grammar of a line, then let numpy read all of its numbers at once."""
    if _ENTRIES.fullmatch(entries) is None:
        raise DataFormatError(_explain(entries), path=path, line=line)
    numbers = np.fromstring(entries.replace(b":", b" ").decode("ascii"), sep=" ")
    return np.minimum(numbers[0::2], MAX_IDS).astype(np.int64), numbers[1::2]


def _largest_id(entries: bytes) -> str:
    """Return the largest id as it is written, which may be too long to be read.

    >>> _largest_id(b"4:1 0012:0.5")
    '12'
    """
    ids = (entry.partition(b":")[0].lstrip(b"0") or b"0" for entry in entries.split())
    return max(ids, key=lambda digits: (len(digits), digits))[:40].decode()


def _explain(entries: bytes) -> str:
    """Find the first entry that does not parse, and say what it should have been."""
    bad = next((e for e in entries.split() if _ENTRY.fullmatch(e) is None), entries)
    shown = repr(bad[:40].decode(errors="replace"))
    if bad.startswith(b"qid:"):
        return (
            f"{shown} is the number of a query, by which data for ranking are grouped, and no "
            f"feature. Leave it out, as {_WITHOUT_QUERIES} does."
        )
    return (
        f"Expected id:value, got {shown}. Ids are whole numbers from "
        "0 and values finite decimal numbers, with one blank between entries."
    )
