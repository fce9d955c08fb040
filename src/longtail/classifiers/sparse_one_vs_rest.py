"""One linear support vector machine a label, trained on its hardest negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.classifiers.listed_points import (
    equal_parts,
    for_solvers,
    problems_of,
    stopping_of,
)
from longtail.data.rows import as_rows
from longtail.errors import InputError
from longtail.kernels.dual_coordinate import train_machines
from longtail.kernels.jit import over_row_chunks
from longtail.scorers.sparse_label_vectors import SparseLabelVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray


__all__ = ["SparseOneVsRest"]


@dataclass(frozen=True, kw_only=True)
class SparseOneVsRest:
    """Linear support vector machines with the squared hinge loss, one a label.

    ``min (|w|^2 + b^2) / 2 + C sum_i max(0, 1 - s_i (w . x_i + b))^2`` over the positives (s = 1)
    and some negatives (s = -1) of a label; then small weights are dropped. It is the classifier of
    DiSMEC (Babbar and Schoelkopf, WSDM 2017), Parabel (Prabhu et al., WWW 2018), X-Transformer's
    ranker and PECOS (Yu et al., 2022), which differ in the negatives. Solved by dual coordinate
    descent; see `longtail.kernels.dual_coordinate`.

    Parameters
    ----------
    cost : float
        C.
    tolerance : float
        Largest spread of the projected gradients of a label's points at which it is done.
    max_passes : int
        Most passes over a label's points.
    prune : float
        Weights of a smaller magnitude are dropped: .1 is usual in trees of labels, DiSMEC has .01.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
    >>> features = csr_array(np.eye(2, dtype=np.float32))
    >>> candidates = csr_array(np.ones((1, 2)))  # each point is a negative of each other label
    >>> classifier = SparseOneVsRest().learn_among(
    ...     features, features, candidates, np.zeros(2, np.int32), seed=0, n_threads=1
    ... )
    >>> classifier.features.tolist()
    [0, 1, 0, 1]
    >>> (classifier.weights > 0).tolist()
    [True, False, False, True]
    """

    cost: float = 1.0
    tolerance: float = 0.1
    max_passes: int = 20
    prune: float = 0.1

    def learn_among_all(
        self, features: csr_array, labels: csr_array, *, seed: int, n_threads: int
    ) -> SparseLabelVectors:
        """Train each label against all points that do not carry it; see `learn_among`."""
        n_points, n_labels = labels.shape
        every_point = csr_array(np.ones((1, n_points), np.bool_))
        one_group = np.zeros(n_labels, np.int32)
        return self.learn_among(
            features, labels, every_point, one_group, seed=seed, n_threads=n_threads
        )

    def learn_among(
        self,
        features: csr_array,
        labels: csr_array,
        candidates: csr_array,
        group_of_label: NDArray[np.int32],
        *,
        seed: int,
        n_threads: int,
    ) -> SparseLabelVectors:
        """Train each label against given points; labels of a group share theirs.

        Parameters
        ----------
        features : csr_array of float32 (n_points, n_features)
            Unit rows.
        labels : csr_array (n_points, n_labels)
        candidates : csr_array (n_groups, n_points)
            An entry makes the point a negative of those labels of the group that it does not carry.
        group_of_label : int32 (n_labels,)
        seed, n_threads : int

        Returns
        -------
        SparseLabelVectors
            A label without positives has no weights and a bias of -1.

        Raises
        ------
        InputError
            If shapes do not fit each other, or a feature is not finite.
        """
        _check_shapes(features, labels, candidates, group_of_label)
        rows: csr_array = as_rows("features", features)
        points = for_solvers(rows)
        problems = problems_of(labels, candidates, group_of_label)
        stopping = stopping_of(self.cost, self.tolerance, self.max_passes, self.prune, seed)
        bounds = equal_parts(problems)
        bias, n_kept = np.empty(labels.shape[1], np.float32), np.empty(labels.shape[1], np.int64)
        found: dict[int, tuple[NDArray[np.int32], NDArray[np.float32]]] = {}

        def train(part: int, _: int) -> None:
            first, last = int(bounds[part]), int(bounds[part + 1])
            found[part] = train_machines(points, problems, stopping, first, last, bias, n_kept)

        over_row_chunks(train, len(bounds) - 1, n_threads=n_threads, chunk=1)
        kept_features, kept_weights = _joined([found.pop(part) for part in sorted(found)])
        starts = np.concatenate([[0], np.cumsum(n_kept)])
        return SparseLabelVectors(starts, kept_features, kept_weights, bias)


def _joined(
    parts: list[tuple[NDArray[np.int32], NDArray[np.float32]]],
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Lay parts end to end, each freed once it is copied: all of them twice may not fit.

    From the last one on, which lies at the end of the process's memory: the system takes back what
    is freed there, but no holes before it.
    """
    n_all = sum(len(features) for features, _ in parts)
    all_features, all_weights = np.empty(n_all, np.int32), np.empty(n_all, np.float32)
    stop = n_all
    while parts:
        features, weights = parts.pop()
        start = stop - len(features)
        all_features[start:stop], all_weights[start:stop] = features, weights
        stop = start
    return all_features, all_weights


def _check_shapes(
    features: csr_array,
    labels: csr_array,
    candidates: csr_array,
    group_of_label: NDArray[np.int32],
) -> None:
    """Raise InputError unless all is for the same points, labels and groups."""
    (n_points, n_labels), n_groups = labels.shape, candidates.shape[0]
    if not features.shape[0] == n_points == candidates.shape[1]:
        raise InputError(
            f"`features` has {features.shape[0]} points, `labels` {n_points} and `candidates` "
            f"{candidates.shape[1]}. Pass the same number of each."
        )
    in_range = (group_of_label >= 0) & (group_of_label < n_groups)
    if group_of_label.shape != (n_labels,) or not in_range.all():
        raise InputError(
            f"`group_of_label` must hold one group below {n_groups} for each of {n_labels} "
            f"labels, got shape {group_of_label.shape}."
        )
