"""Answers as a sparse matrix of probabilities, to fuse with those of other systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, save_npz, vstack

from longtail.data.paths import replacing
from longtail.metrics import score_matrix

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from longtail.cli.points import AnsweredBlock

__all__ = ["is_matrix", "write_scores"]


def is_matrix(path: Path | None) -> bool:
    """Tell by an output's name whether it is to be a matrix.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.score_matrix import is_matrix
    >>> is_matrix(Path("scores.npz")), is_matrix(Path("answers.csv")), is_matrix(None)
    (True, False, False)
    """
    return path is not None and path.suffix.lower() == ".npz"


def write_scores(
    blocks: Iterable[AnsweredBlock], path: Path, *, n_labels: int, threshold: float
) -> tuple[int, int]:
    """Write what `scipy.sparse.load_npz` reads, once all of it is answered.

    Parameters
    ----------
    blocks : iterable of AnsweredBlock
    path : Path
    n_labels : int
        The model's: columns are its label ids.
    threshold : float
        Least probability.

    Returns
    -------
    n_points, n_without : int
        Points, and how many of them have no answer. Nothing is written where there are none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from longtail.cli.points import AnsweredBlock
    >>> from longtail.cli.score_matrix import write_scores
    >>> from longtail.metrics import read_scores
    >>> block = AnsweredBlock(["a", "b"], np.array([[1], [2]]), np.array([[0.5], [0.125]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scores.npz")
    ...     write_scores([block], path, n_labels=3, threshold=0.25)
    ...     read_scores(path).toarray().tolist()
    (2, 1)
    [[0.0, 0.5, 0.0], [0.0, 0.0, 0.0]]
    """
    rows = [
        score_matrix(np.where(block.scores >= threshold, block.ids, -1), block.scores, n_labels)
        for block in blocks
    ]
    if not rows:
        return 0, 0
    scores = csr_array(vstack(rows, format="csr"))
    with replacing(path) as stream:
        save_npz(stream, scores, compressed=False)
    return scores.shape[0], int(np.count_nonzero(np.diff(scores.indptr) == 0))
