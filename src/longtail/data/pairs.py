"""Points in one file and their labels in another, row by row."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from longtail.data.columns import check_columns
from longtail.data.formats import FORMATS, suffix_of
from longtail.data.input_notes import InputNotes
from longtail.data.json_lines import JsonRows
from longtail.data.matrix_files import is_matrix_file, labels_in, points_in_matrix, save_matrix
from longtail.data.paths import decode_line, numbered_lines
from longtail.data.repository import features_of, read_matrix, write_matrix
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.data.unlabelled import read_points
from longtail.errors import DataFormatError, InputError

if TYPE_CHECKING:
    from pathlib import Path

    from scipy.sparse import csr_array

    from longtail.data.columns import Columns
    from longtail.data.dataset import Dataset
    from longtail.data.label_rows import LabelRows

__all__ = ["read_pair", "write_pair"]

_GRADED = "points with label values other than 1 (taken for 1: are the two files swapped?)"
_WHAT = "A pair of sparse files"
_HEADER = re.compile(rb"\s*\d+\s+\d+(?:\s+\d+)?\s*$")


def read_pair(
    path: Path, labels_path: Path, labels: LabelRows, columns: Columns
) -> TextColumn | csr_array:
    r"""Read the points of one file, and the labels of another that has as many rows.

    A label whose value is 0 counts as absent; any other value as present, with a warning where it
    is not 1, as those of features are.

    Parameters
    ----------
    path : Path
        Features: half of a pair of the repository's sparse files (``trn_X_Xf.txt``), or a matrix
        (``.npz`` of scipy, ``.npy``). Or texts: JSON lines or a table and, beside a matrix of
        labels, plain text with one text a line.
    labels_path : Path
        The other half (``trn_X_Y.txt``), or a matrix.
    labels : LabelRows
        Takes the labels.
    columns : Columns
        What the text is called, where it has a name.

    Returns
    -------
    TextColumn, or csr_array of float32 (n_points, n_features)

    Raises
    ------
    InputError
        If both are the same file.
    DataFormatError
        If one of them is malformed, or they differ in rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.columns import USUAL
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.label_rows import LabelRows
    >>> from longtail.data.pairs import read_pair
    >>> labels = LabelRows("Y.txt", notes=InputNotes("Y.txt"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     of_points, of_labels = pathlib.Path(folder, "Xf.txt"), pathlib.Path(folder, "Y.txt")
    ...     _ = of_points.write_text("1 3\n2:0.5\n"), of_labels.write_text("1 2\n0:0 1:1\n")
    ...     features = read_pair(of_points, of_labels, labels, USUAL)
    >>> features.toarray().tolist(), labels.finish()[0].toarray().tolist()
    ([[0.0, 0.0, 0.5]], [[0.0, 1.0]])
    """
    if path.exists() and labels_path.exists() and path.samefile(labels_path):
        raise InputError(
            f"{path} is named twice, for the features and for the labels. Name the file with the "
            "labels, such as trn_X_Y.txt.",
        )
    check_columns(replace(columns, text=()), _WHAT)
    points = _points(path, labels_path, columns)
    n_points = len(points) if isinstance(points, TextColumn) else points.shape[0]
    is_matrix = is_matrix_file(labels_path)
    relevance = labels_in(labels_path) if is_matrix else read_matrix(labels_path)
    if relevance.shape[0] != n_points:
        message = (
            f"The file has {relevance.shape[0]} rows, but {path} has {n_points}. "
            "Pass two files of the same points."
        )
        raise DataFormatError(message, path=labels_path, line=None if is_matrix else 1)
    labels.declare(relevance.shape[1])
    first = 1 if is_matrix else 2  # a text has a header
    for row, (start, stop) in enumerate(pairwise(relevance.indptr), start=first):
        labels.add_ids(relevance.indices[start:stop].tolist(), line=row)
        if (relevance.data[start:stop] != 1).any():
            labels.notes.add(_GRADED, line=row)
    return points


def write_pair(path: Path, labels_path: Path, dataset: Dataset) -> None:
    r"""Write a data set of features as two files: sparse text, or ``.npz`` if they are so called.

    Raises
    ------
    InputError
        If the data set has texts instead of features.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail import Dataset
    >>> from longtail.data.pairs import write_pair
    >>> dataset = Dataset.of([[0, 0.5, 2]], [[0, 2]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     of_points, of_labels = pathlib.Path(folder, "Xf.txt"), pathlib.Path(folder, "Y.txt")
    ...     write_pair(of_points, of_labels, dataset)
    ...     of_points.read_text(), of_labels.read_text()
    ('1 3\n1:0.5 2:2.0\n', '1 3\n0:1.0 2:1.0\n')
    """
    for target, matrix in ((path, features_of(dataset)), (labels_path, dataset.labels)):
        write = save_matrix if is_matrix_file(target) else write_matrix
        write(target, matrix)


def _points(path: Path, labels_path: Path, columns: Columns) -> TextColumn | csr_array:
    """Read the points of a pair."""
    suffix = suffix_of(path)
    if suffix in FORMATS["json-lines"].suffixes:
        return _texts_of_lines(path, JsonRows(columns, path, points_only=True))
    if any(known.holds_texts and suffix in known.suffixes for known in FORMATS.values()):
        return read_points(path, n_features=None, columns=columns)
    if is_matrix_file(path):
        check_columns(columns, "A matrix")
        return points_in_matrix(path)
    check_columns(columns, _WHAT)
    if is_matrix_file(labels_path) and not _are_sparse(path):
        return _lines_of(path)
    notes = InputNotes(path)
    features = read_matrix(path, notes=notes)
    notes.warn(stacklevel=4)
    return features


def _are_sparse(path: Path) -> bool:
    """Tell sparse text by its first line, which is a header."""
    return next((bool(_HEADER.match(line)) for _, line in numbered_lines(path)), False)


def _texts_of_lines(path: Path, rows: JsonRows) -> TextColumn:
    """Read JSON lines whose labels, if they have any, are in the other file."""
    texts = TextColumnBuilder()
    for number, line in numbered_lines(path):
        if line.strip():
            texts.append(rows.read(line, number)[0])
    return texts.finish()


def _lines_of(path: Path) -> TextColumn:
    """Read a text a line; blank ones, too, since each has its row of labels."""
    texts = TextColumnBuilder()
    for number, line in numbered_lines(path):
        decode_line(line, path=path, number=number)
        texts.append(line)
    return texts.finish()
