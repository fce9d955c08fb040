"""Matrices as numpy and scipy save them: ``.npy``, and ``.npz`` of a sparse one."""

from __future__ import annotations

import tokenize
import zlib
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz

from longtail.data.csr import MAX_IDS, check_indices
from longtail.data.files import replacing
from longtail.data.from_python import features_from
from longtail.errors import DataFormatError, InputError, about_home, named

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any, BinaryIO, TypeVar

    from numpy.typing import NDArray

    T = TypeVar("T")

__all__ = [
    "BROKEN",
    "is_matrix_file",
    "labels_in",
    "load_sparse",
    "points_in_matrix",
    "save_matrix",
]

DENSE, SPARSE = ".npy", ".npz"
# What numpy, scipy and the packed files below them raise where a file is damaged.
BROKEN = (
    *(ValueError, KeyError, TypeError, AttributeError, EOFError, RuntimeError, SyntaxError),
    *(BadZipFile, zlib.error, tokenize.TokenError),
)


def is_matrix_file(path: Path) -> bool:
    """Tell by its name whether a file is a matrix of numpy or scipy.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.data.matrix_files import is_matrix_file
    >>> [is_matrix_file(Path(name)) for name in ("X.trn.npz", "vectors.NPY", "X.trn.txt")]
    [True, True, False]
    """
    return path.suffix.lower() in {DENSE, SPARSE}


def points_in_matrix(path: Path) -> csr_array:
    """Read the features of points.

    Parameters
    ----------
    path : Path
        A sparse matrix (``.npz``), or an array of two dimensions (``.npy``).

    Returns
    -------
    csr_array of float32, shape (n_points, n_features)

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If it holds no matrix of finite numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from longtail.data.matrix_files import points_in_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "vectors.npy")
    ...     np.save(path, np.array([[0, 0.5], [2, 0]]))
    ...     points_in_matrix(path).toarray().tolist()
    [[0.0, 0.5], [2.0, 0.0]]
    """
    return _matrix(_loaded(path), path)


def labels_in(path: Path) -> csr_array | NDArray[Any]:
    """Read which labels points have: a value other than 0 where they have one.

    Parameters
    ----------
    path : Path
        A matrix of points by labels, or an array (``.npy``) with one label a point: its id, or its
        name.

    Returns
    -------
    csr_array of float32, shape (n_points, n_labels), or int64 or str (n_points,)
        The values of a matrix; or the one label of each point.

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If it holds none of these.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from longtail.data.matrix_files import labels_in
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "classes.npy")
    ...     for labels in ([2, 0], [[0, 0, 1], [1, 0, 0]]):
    ...         np.save(path, np.array(labels))
    ...         labels_in(path).tolist() if np.ndim(labels) == 1 else labels_in(path).toarray()
    [2, 0]
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    loaded = _loaded(path)
    if loaded.ndim == 1:
        return _one_each(loaded, path)
    if isinstance(loaded, np.ndarray):
        _check_no_ids(loaded, path)
    labels = _matrix(loaded, path)
    if labels.shape[1] > MAX_IDS:
        message = f"It has {labels.shape[1]:,} columns, and at most {MAX_IDS:,} labels have ids."
        raise DataFormatError(message, path=path)
    return labels


def _one_each(loaded: NDArray[Any], path: Path) -> NDArray[Any]:
    """Return the one label of each point, or say what the array is not."""
    if loaded.dtype.kind == "U":
        return loaded
    with np.errstate(invalid="ignore"):
        ids = loaded.astype(np.int64) if loaded.dtype.kind in "iuf" else None
    if ids is None or (ids != loaded).any():
        message = (
            f"An array of one dimension has the id of one label a point, or its name, got "
            f"{loaded.dtype}. Save whole numbers from 0, or strings; points with several labels "
            "as a matrix of points by labels."
        )
        raise DataFormatError(message, path=path)
    return ids


def _check_no_ids(loaded: NDArray[Any], path: Path) -> None:
    """Refuse ids where zeros and ones are wanted, which would pass for labels of large weight."""
    if loaded.dtype.kind not in "iuf" or loaded.size == 0:
        return
    is_whole = loaded == np.round(loaded)
    is_other = (loaded != 0) & (loaded != 1)
    if not is_whole.all() or not is_other.any():
        return
    row, column = np.argwhere(is_other)[0]
    advice = "For one label a point, save array[:, 0]." if loaded.shape[1] == 1 else ""
    message = (
        f"A matrix of labels has a column for each label, with 1 where a point has it and 0 "
        f"elsewhere, got {loaded[row, column]:g} in row {row}. Are these ids? {advice}".rstrip()
    )
    raise DataFormatError(message, path=path)


def load_sparse(path: Path) -> csr_array:
    """Read what `scipy.sparse.save_npz` has written; pickled objects are not loaded.

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If it is anything else.
    """
    what = "a sparse matrix saved by scipy.sparse.save_npz"
    matrix = _read(path, load_npz, what, "others as .npy")
    try:
        check_indices("It", matrix)  # before scipy follows them
    except InputError as error:
        raise DataFormatError(str(error), path=path) from error
    return csr_array(matrix)


def save_matrix(path: Path, matrix: csr_array) -> None:
    """Write a sparse matrix as ``.npz``, for `scipy.sparse.load_npz`.

    Raises
    ------
    InputError
        If the name ends in ``.npy``, which holds each zero.
    """
    if path.suffix.lower() == DENSE:
        raise InputError(
            f"{path} would hold each zero. Name it {path.with_suffix(SPARSE).name}, a sparse "
            "matrix of scipy."
        )
    with replacing(path) as stream:
        save_npz(stream, matrix)


def _loaded(path: Path) -> csr_array | NDArray[Any]:
    """Return what the file holds."""
    if path.suffix.lower() == SPARSE:
        return load_sparse(path)
    return _read(path, _load_array, "an array saved by numpy.save", "numbers, not objects")


def _load_array(stream: BinaryIO) -> NDArray[Any]:
    """Read one array."""
    loaded = np.load(stream)
    if not isinstance(loaded, np.ndarray):
        loaded.close()
        raise TypeError(f"got {named(loaded)}")
    return loaded


def _matrix(loaded: csr_array | NDArray[Any], path: Path) -> csr_array:
    """Return what was loaded as float32 rows."""
    try:
        return features_from(loaded, "The matrix")
    except InputError as error:
        raise DataFormatError(str(error), path=path) from error


def _read(path: Path, load: Callable[[BinaryIO], T], what: str, advice: str) -> T:
    """Load a file, and say what it should be where it is not."""
    try:
        with path.open("rb") as stream:
            return load(stream)  # neither scipy nor numpy loads pickles unless told to
    except OSError as error:
        message = f"{path} cannot be opened: {error.strerror}. Check the path.{about_home(path)}"
        raise InputError(message) from error
    except MemoryError as error:
        message = "What it says that it holds does not fit into memory. Is it damaged?"
        raise DataFormatError(message, path=path) from error
    except BROKEN as error:
        raise DataFormatError(f"This is not {what}. Save {advice}.", path=path) from error
