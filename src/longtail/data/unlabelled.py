"""Points that are to be answered: read without their labels, if they have any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scipy.sparse import csr_array

from longtail.data.columns import USUAL, check_columns
from longtail.data.formats import format_for_reading
from longtail.data.input_notes import InputNotes
from longtail.data.label_rows import LabelRows
from longtail.data.matrix_files import is_matrix_file, points_in_matrix
from longtail.errors import DataFormatError, InputError, source_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longtail.data.columns import Columns
    from longtail.data.kept_columns import Kept
    from longtail.data.text_column import TextColumn

__all__ = ["check_kind", "read_points", "remark_if_narrow", "widened"]


def read_points(
    path: str | Path,
    *,
    n_features: int | None,
    format_name: str | None = None,
    columns: Columns = USUAL,
    kept: Kept | None = None,
) -> TextColumn | csr_array:
    r"""Read texts or features from a file of any format; labels may be missing, and are left out.

    Parameters
    ----------
    path : str or Path
        The file, plain or gzip, or ``-`` for standard input. Of a pair of sparse files, the one
        that holds the features; or a matrix (``.npz`` of scipy, ``.npy``).
    n_features : int or None
        How many features a model reads; None if it reads texts.
    format_name : str, optional
        A key of `longtail.data.FORMATS`; guessed without it.
    columns : Columns
        What columns of texts are called.
    kept : Kept, optional
        Takes further cells of a table.

    Returns
    -------
    TextColumn, or csr_array of float32 (n, n_features)

    Raises
    ------
    InputError
        If the file holds features where texts are wanted, or the reverse.
    DataFormatError
        If it cannot be read; the message names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.unlabelled import read_points
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "texts.csv")
    ...     _ = path.write_text("id,text\n7,how to knead\n")
    ...     read_points(path, n_features=None)
    TextColumn(['how to knead'])
    """
    path = Path(path)
    if format_name is None and is_matrix_file(path):
        return _features_in_matrix(path, n_features, columns, kept)
    try:
        file_format, guess = format_for_reading(
            path, format_name, columns=columns, kept=kept, points_only=True
        )
    except DataFormatError as error:
        if n_features is not None:
            error.args = (f"{error.args[0]} The model reads ready-made features, not texts.",)
        raise
    check_kind(path, is_text=file_format.holds_texts, n_features=n_features)
    notes = InputNotes(path)
    try:
        if file_format.read_points is not None:
            points = file_format.read_points(path, notes)
        else:
            points = file_format.read(path, _LabelsLeftOut(path, notes=notes))
    except DataFormatError as error:
        error.remedies += guess
        raise
    if not isinstance(points, csr_array):
        notes.warn()
        return points
    if file_format.read_points is not None:
        remark_if_narrow(points, n_features, notes)
    notes.warn()
    return widened(points, n_features, path)


def _features_in_matrix(
    path: Path, n_features: int | None, columns: Columns, kept: Kept | None
) -> csr_array:
    """Read a matrix of features, which has no texts and no further cells."""
    check_kind(path, is_text=False, n_features=n_features)
    check_columns(columns, "A matrix")
    if kept is not None:
        kept.refuse("A matrix")
    points, notes = points_in_matrix(path), InputNotes(path)
    remark_if_narrow(points, n_features, notes)
    notes.warn()
    return widened(points, n_features, path)


def remark_if_narrow(features: csr_array, n_features: int | None, notes: InputNotes) -> None:
    """Note that a header, which says how wide a file is, says less than a model expects.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.unlabelled import remark_if_narrow
    >>> notes = InputNotes("test.txt")
    >>> remark_if_narrow(csr_array((4, 3)), 10, notes)
    >>> notes.summary().split(": ")[1]
    'the header says 3 columns, but the model reads 10 features'
    """
    if n_features and features.shape[1] < n_features:
        notes.remark(
            f"the header says {features.shape[1]:,} columns, but the model reads {n_features:,} "
            "features: of a pair of files, pass the one with the features"
        )


class _LabelsLeftOut(LabelRows):
    """Takes the labels of each point, and forgets them: nothing about them is wrong or odd."""

    def add_names(self, names: Sequence[str], *, line: int) -> None:
        """Forget names."""

    def add_ids(self, ids: Sequence[int], *, line: int) -> None:
        """Forget ids."""


def check_kind(path: str | Path, *, is_text: bool, n_features: int | None) -> None:
    """Raise InputError if a model that reads texts is given features, or the reverse.

    Parameters
    ----------
    path : str or Path
        The file, for the message.
    is_text : bool
        Whether it holds texts.
    n_features : int or None
        How many features the model reads; None if it reads texts.
    """
    if is_text and n_features is not None:
        raise InputError(
            f"{source_name(path)} holds texts, but the model was trained on {n_features:,} "
            "ready-made features. Pass a file of features, like those it was trained on."
        )
    if not is_text and n_features is None:
        raise InputError(
            f"{source_name(path)} holds ready-made features (id:value), but the model was trained "
            "on texts. Pass texts: plain text with one a line, JSON lines, TSV or CSV."
        )


def widened(features: csr_array, n_features: int | None, path: Path) -> csr_array:
    """Return features of the width that a model expects.

    Raises
    ------
    InputError
        If they are wider.

    Examples
    --------
    >>> from pathlib import Path
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.unlabelled import widened
    >>> widened(csr_array([[0, 0.5]]), 4, Path("test.svm")).toarray().tolist()
    [[0.0, 0.5, 0.0, 0.0]]
    """
    if n_features is None or features.shape[1] == n_features:
        return features
    if features.shape[1] > n_features:
        raise InputError(
            f"{source_name(path)} has features up to id {features.shape[1] - 1}, but only "
            f"{n_features} features are expected. Pass the file that belongs to the model."
        )
    arrays = (features.data, features.indices, features.indptr)
    return csr_array(arrays, shape=(features.shape[0], n_features))
