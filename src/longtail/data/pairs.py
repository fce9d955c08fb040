"""Points in one file and their labels in another, row by row."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from longtail.data.blocks import features_of
from longtail.data.columns import check_columns
from longtail.data.fasttext import parse_line
from longtail.data.files import decode_line, numbered_lines
from longtail.data.formats import FORMATS, suffix_of
from longtail.data.input_notes import InputNotes
from longtail.data.json_lines import JsonRows
from longtail.data.line_kinds import PLAIN, SPARSE, told_by_first
from longtail.data.matrix_files import is_matrix_file, labels_in, points_in_matrix, save_matrix
from longtail.data.repository import read_matrix, write_matrix
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.data.unlabelled import read_points
from longtail.errors import DataFormatError, InputError, Remedy, source_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.columns import Columns
    from longtail.data.dataset import Dataset
    from longtail.data.label_rows import LabelRows
    from longtail.data.line_kinds import Lines

__all__ = ["read_pair", "write_pair"]

_GRADED = "points with label values other than 1 (taken for 1; or are the two files swapped?)"
_WHAT = "A pair of sparse files"
_NAMES = Remedy("labels_file", "If each line is the name of a label, pass it as {}.")


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
        labels, whatever the first lines tell, such as plain text with one text a line.
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
        If both are the same file, or the first has labels of its own in lines of features.
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
    own = labels_in(labels_path) if is_matrix else _rows_of_labels(labels_path)
    if own.shape[0] != n_points:
        message = (
            f"The file has {own.shape[0]} rows, but {source_name(path)} has {n_points}. "
            "Pass two files of the same points."
        )
        raise DataFormatError(message, path=labels_path, line=None if is_matrix else 1)
    if own.ndim == 1:
        _add_one_each(labels, own)
    else:
        _add_rows(labels, own, is_matrix=is_matrix)
    return points


def _rows_of_labels(path: Path) -> csr_array:
    """Return a sparse text of labels; of one without a header, say what it may be instead."""
    try:
        return read_matrix(path)
    except DataFormatError as error:
        if error.line == 1:
            error.remedies += (_NAMES,)
        raise


def _add_one_each(labels: LabelRows, own: NDArray[Any]) -> None:
    """Add the one label of each point, an id or a name."""
    add = labels.add_names if own.dtype.kind == "U" else labels.add_ids
    for row, label in enumerate(own.tolist(), start=1):
        add([label], line=row)


def _add_rows(labels: LabelRows, own: csr_array, *, is_matrix: bool) -> None:
    """Add the labels of each row of a matrix."""
    labels.declare(own.shape[1], line=None if is_matrix else 1)
    first = 1 if is_matrix else 2  # a text has a header
    for row, (start, stop) in enumerate(pairwise(own.indptr), start=first):
        labels.add_ids(own.indices[start:stop].tolist(), line=row)
        if (own.data[start:stop] != 1).any():
            labels.notes.add(_GRADED, line=row)


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
    features = features_of(dataset, "Pairs of files")
    for target, matrix in ((path, features), (labels_path, dataset.labels)):
        write = save_matrix if is_matrix_file(target) else write_matrix
        write(target, matrix)


def _points(path: Path, labels_path: Path, columns: Columns) -> TextColumn | csr_array:
    """Read the points of a pair."""
    suffix = suffix_of(path)
    if suffix in FORMATS["json-lines"].suffixes:
        return _texts_of_lines(path, numbered_lines(path), columns)
    if any(known.holds_texts and suffix in known.suffixes for known in FORMATS.values()):
        return read_points(path, n_features=None, columns=columns)
    if is_matrix_file(path):
        check_columns(columns, "A matrix")
        return points_in_matrix(path)
    if suffix in FORMATS["svmlight"].suffixes:
        raise _has_labels(path)
    if is_matrix_file(labels_path):
        return _told_by_lines(path, columns)
    check_columns(columns, _WHAT)
    return _half_of_pair(path)


def _told_by_lines(path: Path, columns: Columns) -> TextColumn | csr_array:
    """Read what the first lines of a file, or of a pipe, tell."""
    told = told_by_first(numbered_lines(path))
    if told.kind == "json-lines":
        return _texts_of_lines(path, told.numbered, columns)
    check_columns(columns, "Plain text")
    if told.kind != SPARSE:
        return _texts_of(path, told)
    if not told.has_header:
        raise _has_labels(path)
    if not path.is_file():
        raise InputError(f"Sparse features are read from a file, got {source_name(path)}. Name it.")
    return _half_of_pair(path)


def _half_of_pair(path: Path) -> csr_array:
    """Read sparse features, and tell what is odd about them."""
    notes = InputNotes(path)
    features = read_matrix(path, notes=notes)
    notes.warn()
    return features


def _has_labels(path: Path) -> InputError:
    """Return the error for features whose lines have labels, beside labels in another file."""
    return InputError(
        f"{source_name(path)} is svmlight, each line of which begins with labels of its own. Pass "
        "it alone, or save its features as a matrix (.npz) beside a file of labels."
    )


def _texts_of_lines(path: Path, lines: Iterator[tuple[int, bytes]], columns: Columns) -> TextColumn:
    """Read JSON lines whose labels, if they have any, are in the other file."""
    texts, rows = TextColumnBuilder(), JsonRows(columns, path, points_only=True)
    for number, line in lines:
        if line.strip():
            texts.append(rows.read(line, number)[0])
    return texts.finish()


def _texts_of(path: Path, told: Lines) -> TextColumn:
    """Read a text a line; blank ones, too, since each has its row of labels."""
    texts = TextColumnBuilder()
    for number, line in told.numbered:
        decoded = decode_line(line, path=path, number=number)
        texts.append(line if told.kind == PLAIN else parse_line(decoded)[0])
    return texts.finish()
