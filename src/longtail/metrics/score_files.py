"""Read published predictions: scipy's .npz, or the Repository's sparse text."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
from scipy.sparse import csr_array, load_npz

from longtail.data.paths import raw_lines
from longtail.errors import DataFormatError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["read_scores"]

# A line of `label:score` pairs, parted by blanks. Possessive, so that a bad line fails at once.
_PAIRS = re.compile(rb"\s*+(?:\d++:[^\s:]++(?:\s++|$))*+")


def read_scores(path: str | Path) -> csr_array:
    r"""Return the scores of a published prediction file as a sparse matrix.

    A file that ends in ``.npz`` is a matrix saved by scipy. Any other is text, plain or gzip: a
    line ``rows columns``, then for every point a line ``label:score label:score ...``, empty where
    nothing was predicted.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    csr_array of float, shape (n_points, n_labels)

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        Where the file is neither, at the line where reading stopped.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.metrics import read_scores
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.txt"
    ...     _ = path.write_text("2 3\n2:0.5 0:0.25\n\n")
    ...     read_scores(path).toarray().tolist()
    [[0.25, 0.0, 0.5], [0.0, 0.0, 0.0]]
    """
    path = Path(path)
    return _read_npz(path) if path.suffix == ".npz" else _read_text(raw_lines(path), path)


def _read_npz(path: Path) -> csr_array:
    """Only numbers are loaded, never pickled objects."""
    try:
        return csr_array(load_npz(path))
    except OSError as error:
        raise InputError(f"{path} cannot be opened: {error.strerror}. Check the path.") from error
    except (ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        raise DataFormatError(
            "This is not a sparse matrix saved by scipy.sparse.save_npz.", path=path
        ) from error


def _read_text(lines: Iterator[bytes], path: Path) -> csr_array:
    """Line by line into arrays: no Python object a value stays behind."""
    n_points, n_labels = _read_header(next(lines, b""), path)
    labels: list[NDArray[np.int64]] = []
    scores: list[NDArray[np.float64]] = []
    for number, line in enumerate(lines, start=2):
        if number > n_points + 1:
            if not line.strip():
                continue
            raise DataFormatError(
                f"The header announces {n_points} points, but more lines follow.",
                path=path,
                line=number,
            )
        row_labels, row_scores = _parse_line(line, n_labels, path, number)
        labels.append(row_labels)
        scores.append(row_scores)
    if len(labels) < n_points:
        raise DataFormatError(
            f"The header announces {n_points} points, but only {len(labels)} lines follow. "
            f"The file may be cut short.",
            path=path,
        )
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in labels], dtype=np.int64)])
    data, indices = np.concatenate([[], *scores]), np.concatenate([np.empty(0, np.int64), *labels])
    return csr_array((data, indices, indptr), shape=(n_points, n_labels))


def _read_header(line: bytes, path: Path) -> tuple[int, int]:
    """Numbers of points and of labels."""
    cells = line.split()
    if len(cells) != 2 or not all(cell.isdigit() for cell in cells):
        raise DataFormatError(
            f"Expected the header `rows columns`, got {line[:60]!r}.", path=path, line=1
        )
    return int(cells[0]), int(cells[1])


def _parse_line(
    line: bytes, n_labels: int, path: Path, number: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels and scores of one point."""
    cells = line.replace(b":", b" ").split()
    try:
        scores = np.array(cells[1::2], dtype=np.float64)
        labels = np.array(cells[::2], dtype=np.int64)
    except (ValueError, OverflowError):
        scores = np.array([np.nan])
    if not _PAIRS.fullmatch(line) or not np.isfinite(scores).all():
        raise DataFormatError(
            f"Expected pairs `label:score` of a label id and a number, got {line[:60]!r}.",
            path=path,
            line=number,
        )
    if labels.size and labels.max() >= n_labels:
        raise DataFormatError(
            f"Label {labels.max()} is out of range: the header announces {n_labels} labels, "
            f"numbered from 0.",
            path=path,
            line=number,
        )
    if len(np.unique(labels)) < len(labels):
        raise DataFormatError(
            "A label appears twice. Give each label one score a point.", path=path, line=number
        )
    return labels, scores
