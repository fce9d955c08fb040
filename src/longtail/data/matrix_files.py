"""Matrices as numpy and scipy save them: ``.npy``, and ``.npz`` of a sparse one."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz

from longtail.data.from_python import features_from
from longtail.data.paths import replacing
from longtail.errors import DataFormatError, InputError, about_home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

__all__ = ["is_matrix_file", "labels_in", "load_sparse", "points_in_matrix", "save_matrix"]

DENSE, SPARSE = ".npy", ".npz"
_BROKEN = (ValueError, KeyError, EOFError, BadZipFile, zlib.error)


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
    try:
        return features_from(_loaded(path))
    except DataFormatError:
        raise
    except InputError as error:
        raise DataFormatError(str(error), path=path) from error


def labels_in(path: Path) -> csr_array:
    """Read which labels points have: a value other than 0 where they have one.

    Parameters
    ----------
    path : Path
        A matrix of points by labels, or an array (``.npy``) with the id of one label a point.

    Returns
    -------
    csr_array of float32, shape (n_points, n_labels)
        The values.

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If it holds neither.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from longtail.data.matrix_files import labels_in
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "classes.npy")
    ...     np.save(path, np.array([2, 0]))
    ...     labels_in(path).toarray().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    loaded = _loaded(path)
    if loaded.ndim != 1 or loaded.dtype.kind not in "iu":
        return points_in_matrix(path)
    if len(loaded) and loaded.min() < 0:
        raise DataFormatError(
            f"The array has the label {loaded.min()}. Ids of labels count from 0.", path=path
        )
    n_labels = int(loaded.max()) + 1 if len(loaded) else 0
    rows = np.arange(len(loaded) + 1)
    return csr_array((np.ones(len(loaded), np.float32), loaded, rows), (len(loaded), n_labels))


def load_sparse(path: Path) -> csr_array:
    """Read what `scipy.sparse.save_npz` has written; pickled objects are not loaded.

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If it is anything else.
    """
    return csr_array(
        _read(path, load_npz, "a sparse matrix saved by scipy.sparse.save_npz", "others as .npy")
    )


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
    array: NDArray[Any] = _read(
        path, np.load, "an array saved by numpy.save", "numbers, not objects"
    )
    return array


def _read(path: Path, load: Callable[..., Any], what: str, advice: str) -> Any:
    """Load a file, and say what it should be where it is not."""
    try:
        with path.open("rb") as stream:
            return load(stream)  # neither scipy nor numpy loads pickles unless told to
    except OSError as error:
        message = f"{path} cannot be opened: {error.strerror}. Check the path.{about_home(path)}"
        raise InputError(message) from error
    except _BROKEN as error:
        raise DataFormatError(f"This is not {what}. Save {advice}.", path=path) from error
