"""The Extreme Classification Repository's sparse text, halves of pairs of it, and filter files.

Source: http://manikvarma.org/downloads/XC/XMLRepository.html
"""

from __future__ import annotations

import re
from array import array
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from longtail.data.blocks import features_of
from longtail.data.csr import MOST_DIGITS, csr_from_rows
from longtail.data.files import numbered_lines, replacing
from longtail.data.sparse_lines import SparseRowBuilder, format_entries, parse_header, parse_ids
from longtail.errors import DataFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scipy.sparse import csr_array

    from longtail.data.dataset import Dataset
    from longtail.data.input_notes import InputNotes
    from longtail.data.label_rows import LabelRows

__all__ = [
    "read_features",
    "read_filter",
    "read_matrix",
    "read_repository",
    "split_label_part",
    "write_matrix",
    "write_repository",
]

_HEADER = ("n_points", "n_features", "n_labels")
_PAIR_HEADER = ("n_rows", "n_columns")
_BLANKS, _ID = rb"[ \t]", rb"(\d{1,%d})" % MOST_DIGITS
_POINT_AND_LABEL = re.compile(_BLANKS + b"*" + _ID + _BLANKS + b"+" + _ID + _BLANKS + b"*")


def split_label_part(line: bytes) -> tuple[bytes, bytes]:
    """Cut ``l1,l2 f:v f:v`` behind the labels; a line that begins with a blank or f:v has none.

    Examples
    --------
    >>> split_label_part(b"3,7 0:1 4:2"), split_label_part(b" 0:1"), split_label_part(b"0:1 4:2")
    ((b'3,7', b'0:1 4:2'), (b'', b' 0:1'), (b'', b'0:1 4:2'))
    """
    if not line or line[:1].isspace():
        return b"", line
    head, *rest = line.split(maxsplit=1)
    if b":" in head:
        return b"", line
    return head, rest[0] if rest else b""


def read_repository(path: Path, labels: LabelRows) -> csr_array:
    r"""Read a file with the header ``n_points n_features n_labels`` and lines ``l1,l2 f:v f:v``.

    An empty line within the promised number is a point without labels and features.

    Raises
    ------
    DataFormatError
        If the header disagrees with the rows, or a row is malformed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.label_rows import LabelRows
    >>> from longtail.data.repository import read_repository
    >>> labels = LabelRows("train.txt", notes=InputNotes("train.txt"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.txt")
    ...     _ = path.write_text("2 3 2\n1 2:0.5\n\n")  # the second point is an empty line
    ...     features = read_repository(path, labels)
    >>> features.toarray().tolist(), labels.finish()[0].toarray().tolist()
    ([[0.0, 0.0, 0.5], [0.0, 0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]])
    """
    lines = numbered_lines(path)
    n_points, n_features, n_labels = parse_header(_first(lines), _HEADER, path=path)
    labels.declare(n_labels)
    features = SparseRowBuilder(path, n_columns=n_features, notes=labels.notes)
    for number, line in _promised_rows(lines, n_points, path):
        label_part, entries = split_label_part(line)
        labels.add_ids(parse_ids(label_part, path=path, line=number), line=number)
        features.add(entries, line=number)
    return features.finish()


def read_matrix(
    path: Path,
    header: tuple[str, str] = _PAIR_HEADER,
    dtype: type[np.float32 | np.float64] = np.float32,
    notes: InputNotes | None = None,
) -> csr_array:
    r"""Read a file with a header of two numbers and lines of id:value, such as half of a pair.

    An empty line within the promised number is an empty row.

    Parameters
    ----------
    path : Path
        The file, plain or gzip.
    header : (str, str)
        What the numbers of rows and of columns are called where the header is broken.
    dtype : type
        What values are kept as: float32, or float64 where all of their digits count.
    notes : InputNotes, optional
        Takes rows whose values are all too small to be kept.

    Returns
    -------
    csr_array of `dtype`, shape (n_rows, n_columns)

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If the header disagrees with the rows, or a row is malformed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from longtail.data.repository import read_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "trn_X_Xf.txt")
    ...     _ = path.write_text("1 3\n2:0.1\n")
    ...     [read_matrix(path, dtype=kept).data[0].item() for kept in (np.float32, np.float64)]
    [0.10000000149011612, 0.1]
    """
    lines = numbered_lines(path)
    n_rows, n_columns = parse_header(_first(lines), header, path=path)
    rows = SparseRowBuilder(path, n_columns=n_columns, dtype=dtype, notes=notes)
    for number, line in _promised_rows(lines, n_rows, path):
        rows.add(line, line=number)
    return rows.finish()


def read_features(path: Path, notes: InputNotes) -> csr_array:
    r"""Read the features of a repository file, or of that half of a pair which holds them.

    Labels in it are not looked at. See `FileFormat`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.repository import read_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "test.txt")
    ...     for content in ("1 3 2\n0,1 2:0.5\n", "1 3\n2:0.5\n"):  # whole, and half of a pair
    ...         _ = path.write_text(content)
    ...         read_features(path, InputNotes(path)).toarray().tolist()
    [[0.0, 0.0, 0.5]]
    [[0.0, 0.0, 0.5]]
    """
    lines = numbered_lines(path)
    header = _first(lines)
    is_half = len(header.split()) == len(_PAIR_HEADER)
    n_points, n_features, *_ = parse_header(header, _PAIR_HEADER if is_half else _HEADER, path=path)
    features = SparseRowBuilder(path, n_columns=n_features, notes=notes)
    for number, line in _promised_rows(lines, n_points, path):
        features.add(line if is_half else split_label_part(line)[1], line=number)
    return features.finish()


def read_filter(path: str | Path, n_points: int, n_labels: int) -> csr_array:
    r"""Read a filter file: lines ``point label`` of pairs to set aside in evaluation.

    Parameters
    ----------
    path : str or Path
        For instance ``filter_labels_test.txt``, plain or gzip; it may be empty.
    n_points, n_labels : int
        Shape of the label matrix that it belongs to.

    Returns
    -------
    csr_array of float32, shape (n_points, n_labels)
        One where a pair is to be set aside.

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If a line is not a pair, or out of range.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.repository import read_filter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "filter_labels_test.txt")
    ...     _ = path.write_text("0 2\n1 0\n")
    ...     read_filter(path, 2, 3).toarray().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    keys = array("q")
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        match = _POINT_AND_LABEL.fullmatch(line)
        if match is None:
            shown = line[:40].decode(errors="replace")
            message = f"Expected two whole numbers, point and label, got {shown!r}."
            raise DataFormatError(message, path=path, line=number)
        point, label = int(match[1]), int(match[2])
        if point >= n_points or label >= n_labels:
            message = (
                f"Point {point}, label {label} is out of range: there are {n_points} points and "
                f"{n_labels} labels. Pass the filter file that belongs to this data set."
            )
            raise DataFormatError(message, path=path, line=number)
        keys.append(point * n_labels + label)
    points, label_ids = np.divmod(np.unique(np.frombuffer(keys, dtype=np.int64)), max(n_labels, 1))
    return csr_from_rows(
        label_ids.astype(np.int32), np.bincount(points, minlength=n_points), n_labels
    )


def write_matrix(path: Path, matrix: csr_array) -> None:
    r"""Write a header of two numbers, and a line of id:value for each row.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.repository import write_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_matrix(pathlib.Path(folder, "trn_X_Xf.txt"), csr_array([[0, 0.5, 2.0]]))
    ...     pathlib.Path(folder, "trn_X_Xf.txt").read_text()
    '1 3\n1:0.5 2:2.0\n'
    """
    with replacing(path) as stream:
        stream.write(b"%d %d\n" % matrix.shape)
        stream.writelines(f"{entries}\n".encode() for entries in _entry_lines(matrix))


def write_repository(path: Path, dataset: Dataset) -> None:
    r"""Write a data set of features with the header ``n_points n_features n_labels``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.data.repository import write_repository
    >>> dataset = Dataset.of([[0, 0.5, 2], [0, 0, 0]], [[0, 2], [1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_repository(pathlib.Path(folder, "train.txt"), dataset)
    ...     pathlib.Path(folder, "train.txt").read_text()
    '2 3 3\n0,2 1:0.5 2:2.0\n1 \n'
    """
    features = features_of(dataset, "Files of the Repository")
    with replacing(path) as stream:
        stream.write(b"%d %d %d\n" % (*features.shape, dataset.n_labels))
        for ids, entries in zip(dataset.label_lists(), _entry_lines(features), strict=True):
            stream.write(f"{','.join(map(str, ids))} {entries}\n".encode())


def _entry_lines(matrix: csr_array) -> Iterator[str]:
    """Yield the rows as id:value text, without a trailing newline."""
    for start, stop in pairwise(matrix.indptr):
        yield format_entries(matrix.indices[start:stop], matrix.data[start:stop])


def _first(lines: Iterator[tuple[int, bytes]]) -> bytes:
    """Take the header; an empty file gives an empty one, which does not parse."""
    return next(lines, (1, b""))[1]


def _promised_rows(
    lines: Iterator[tuple[int, bytes]], n_rows: int, path: Path
) -> Iterator[tuple[int, bytes]]:
    """Yield as many rows as the header promises, and see to it that there are no others."""
    n_seen = 0
    for number, line in lines:
        if n_seen < n_rows:
            n_seen += 1
            yield number, line
        elif line.strip():
            message = (
                f"The header promises {n_rows} rows, but here is one more. Correct the header."
            )
            raise DataFormatError(message, path=path, line=number)
    if n_seen < n_rows:
        message = f"The header promises {n_rows} rows, but the file has {n_seen}. Is it cut off?"
        raise DataFormatError(message, path=path, line=1)
