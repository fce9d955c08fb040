"""One linear support vector machine a label over dense vectors, against its hardest negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.classifiers.listed_points import (
    equal_parts,
    points_listing,
    problems_of,
    stopping_of,
)
from longtail.data.rows import as_rows, row_norms
from longtail.errors import InputError
from longtail.kernels.dense_dual_coordinate import train_dense_machines
from longtail.kernels.jit import over_row_chunks
from longtail.scorers.label_vectors import LabelVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.run import TrainingRun

__all__ = ["DenseOneVsRest"]


@dataclass(frozen=True, kw_only=True)
class DenseOneVsRest:
    """Slice's classifiers (Jain et al., WSDM 2019): linear, squared hinge loss, on shortlists.

    A label's negatives are the points that have it in their shortlists and do not carry it, some
    N log L pairs in all instead of N L.

    Parameters
    ----------
    cost, tolerance, max_passes
        See `SparseOneVsRest`.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from scipy.sparse import csr_array
    >>> from longtail.classifiers.dense_one_vs_rest import DenseOneVsRest
    >>> from longtail.training.run import TrainingRun
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> vectors, shortlists = np.eye(2, dtype=np.float32), np.array([[0, 1], [1, 0]], np.int32)
    >>> DenseOneVsRest().learn(vectors, csr_array(vectors), shortlists, run).vectors.round(1)
    array([[ 0.7, -0.7],
           [-0.7,  0.7]], dtype=float32)
    """

    cost: float = 1.0
    tolerance: float = 0.1
    max_passes: int = 20

    def learn(
        self,
        vectors: NDArray[np.float32],
        labels: csr_array,
        shortlists: NDArray[np.int32],
        run: TrainingRun,
    ) -> LabelVectors:
        """Train each label against the points that have it in their shortlists.

        Parameters
        ----------
        vectors : float32 (n_points, dimension)
        labels : csr_array (n_points, n_labels)
        shortlists : int32 (n_points, size)
            True labels may be among them, padded with -1.
        run : TrainingRun

        Returns
        -------
        LabelVectors
            The same for any number of threads. A label without points has zeros and a bias of -1.

        Raises
        ------
        InputError
            If the three are not for the same points and labels, or a number is not finite.
        """
        _check_shortlists(vectors, labels, shortlists)
        n_labels = labels.shape[1]
        points = as_rows("vectors", vectors)
        candidates = points_listing(shortlists, n_labels)
        problems = problems_of(labels, candidates, np.arange(n_labels))
        seed = run.seed_for("one versus rest")
        stopping = stopping_of(self.cost, self.tolerance, self.max_passes, 0.0, seed)
        found = np.zeros((n_labels, points.shape[1]), np.float32), np.zeros(n_labels, np.float32)
        squared_norms, bounds = row_norms(points) ** 2, equal_parts(problems)

        def train(part: int, _: int) -> None:
            first, last = int(bounds[part]), int(bounds[part + 1])
            train_dense_machines(points, squared_norms, problems, stopping, first, last, *found)

        over_row_chunks(train, len(bounds) - 1, n_threads=run.n_threads, chunk=1)
        return LabelVectors(*found)


def _check_shortlists(
    vectors: NDArray[np.float32], labels: csr_array, shortlists: NDArray[np.int32]
) -> None:
    """Raise InputError unless there is a shortlist a point, of labels that there are."""
    n_points, n_labels = len(vectors), labels.shape[1]
    if len(shortlists) != n_points or shortlists.max(initial=-1) >= n_labels:
        raise InputError(
            f"`shortlists` of shape {shortlists.shape} with labels up to "
            f"{shortlists.max(initial=-1)} does not fit {n_points} points and "
            f"{n_labels} labels. Pass one row a point, and label ids or -1."
        )
    if labels.shape[0] != n_points:
        raise InputError(
            f"`vectors` has {n_points} points, `labels` {labels.shape[0]}. "
            "Pass the same number of each."
        )
