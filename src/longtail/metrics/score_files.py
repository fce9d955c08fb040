"""Read published predictions: scipy's .npz, or the Repository's sparse text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longtail.data.matrix_files import load_sparse
from longtail.data.repository import read_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["read_scores"]

_HEADER = ("n_points", "n_labels")


def read_scores(path: str | Path) -> csr_array:
    r"""Return the scores of a published prediction file as a sparse matrix.

    A file that ends in ``.npz`` is a matrix saved by scipy. Any other is text, plain or gzip: a
    line ``n_points n_labels``, then for every point a line ``label:score label:score ...``, empty
    where nothing was predicted: half of a pair of `longtail.data.repository`, in float64.

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
    if path.suffix.lower() == ".npz":
        return load_sparse(path)
    return read_matrix(path, _HEADER, np.float64)  # float32 would make ties of near scores
