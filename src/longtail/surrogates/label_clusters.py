"""Label clusters, the surrogate task of Module I: labels that share points become one meta-label.

The paragraph of the paper (Dahiya et al., "DeepXML", WSDM 2021, section 4, Module I, and appendix
A.2), step by step: `label_centroids`, `label_correlation`, `balanced_clusters`, `meta_labels`.
`LabelClusters` does the first three with one set of settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from longtail.clustering.balanced import MAX_ITERATIONS, TOLERANCE, balanced_clusters
from longtail.data.csr import csr_of_chosen
from longtail.data.rows import (
    as_rows,
    binary,
    offsets_and_indices,
    unit_product,
    unit_rows,
)
from longtail.errors import InputError, require_positive
from longtail.kernels.clusters import label_walks
from longtail.kernels.jit import over_row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.rows import Rows

__all__ = [
    "LabelClusters",
    "label_centroids",
    "label_correlation",
    "meta_labels",
    "n_meta_labels",
]


FEW_LABELS = 32


@dataclass(frozen=True, kw_only=True)
class LabelClusters:
    """Balanced label clusters, as Astec makes its meta-labels.

    The defaults are the paper's, with the numbers of the authors' code where it gives none; only
    `max_entries` is ours. What the code does otherwise:
    ``LabelClusters(plus_plus=False, max_label_frequency=5000)``.

    Parameters
    ----------
    n_meta_labels : int
        Clusters asked for; fewer are made where there are few labels, see `n_meta_labels`. Up to
        32 labels are each a cluster: halves of so few would leave nothing to learn.
    normalise_points : bool
        Scale each point to unit length before it enters the centroids; the points of a recipe have
        that length already.
    label_correlation : bool
        Mix each label's centroid with those of the labels that the random walk finds related.
    walk_length, restart_probability, n_kept, max_label_frequency
        See `label_correlation`.
    plus_plus, tolerance, max_iterations
        See `balanced_clusters`.
    max_entries : int or None
        Keep that many entries, the largest, of each sparse centroid; None keeps all. With words
        and character n-grams of 110,000 titles, whole rows have 24,000 entries after mixing (8 GB
        for 38,000 labels); 256 instead of 2,048 lowered the mean cosine of a label to the centre
        of its cluster from .762 to .757 and took a tenth of the time.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from longtail.surrogates.label_clusters import LabelClusters
    >>> features = sp.csr_array(np.repeat(np.eye(2, dtype=np.float32), 4, axis=0))
    >>> labels = sp.csr_array(np.eye(8, dtype=np.float32))
    >>> assignment = LabelClusters(n_meta_labels=2).assign(features, labels, seed=0, n_threads=1)
    >>> len(set(assignment[:4])), len(set(assignment[4:]))
    (1, 1)
    """

    n_meta_labels: int = 2**16
    normalise_points: bool = True
    label_correlation: bool = True
    walk_length: int = 50
    restart_probability: float = 0.2
    n_kept: int = 10
    max_label_frequency: int | None = None
    plus_plus: bool = True
    tolerance: float = TOLERANCE
    max_iterations: int = MAX_ITERATIONS
    max_entries: int | None = 256

    def assign(
        self, features: Rows, labels: sp.csr_array, *, seed: int, n_threads: int
    ) -> NDArray[np.int32]:
        """Return the cluster of each label.

        Parameters
        ----------
        features : csr_array or ndarray, (n_points, n_features)
            The points.
        labels : csr_array, (n_points, n_labels)
            Which labels are relevant to which points.
        seed : int
            Same seed, same clusters, whatever `n_threads` is.
        n_threads : int
            Threads to use.

        Returns
        -------
        ndarray of int32, (n_labels,)
            Numbers from 0 to ``n_meta_labels(n_labels, self.n_meta_labels) - 1``; up to 32 labels,
            if no more than the meta-labels asked for, are each one.

        Raises
        ------
        InputError
            If features and labels do not belong together, or there are no labels.
        """
        n_labels = labels.shape[1]
        if 0 < n_labels <= min(FEW_LABELS, self.n_meta_labels):
            return np.arange(n_labels, dtype=np.int32)
        vectors = label_centroids(
            features,
            labels,
            normalise_points=self.normalise_points,
            max_entries=self.max_entries,
            n_threads=n_threads,
        )
        if self.label_correlation:
            correlation = label_correlation(
                labels,
                walk_length=self.walk_length,
                restart_probability=self.restart_probability,
                n_kept=self.n_kept,
                max_label_frequency=self.max_label_frequency,
                seed=seed,
                n_threads=n_threads,
            )
            vectors = unit_product(correlation, vectors, self.max_entries, n_threads)
        return balanced_clusters(
            vectors,
            n_meta_labels(labels.shape[1], self.n_meta_labels),
            plus_plus=self.plus_plus,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            seed=seed,
            n_threads=n_threads,
        )


def n_meta_labels(n_labels: int, requested: int) -> int:
    """Return the largest power of two that leaves two labels or more to a cluster.

    At most `requested`, at least 1. With 2^16 requested this gives the authors' own choices: 65,536
    from 131,072 labels upwards, as for all sets of their paper, and 1,024 for the 3,993 labels of
    EURLex-4K, as in their code.

    Raises
    ------
    InputError
        If either number is below 1.

    Examples
    --------
    >>> from longtail.surrogates.label_clusters import n_meta_labels
    >>> n_meta_labels(3993, 2**16), n_meta_labels(670_091, 2**16), n_meta_labels(1, 2**16)
    (1024, 65536, 1)
    """
    require_positive("n_labels", n_labels)
    require_positive("the requested number of meta-labels", requested)
    limit = int(max(1, min(requested, n_labels // 2)))
    return 1 << (limit.bit_length() - 1)


def label_centroids(
    features: Rows,
    labels: sp.csr_array,
    *,
    normalise_points: bool = False,
    max_entries: int | None = None,
    n_threads: int = 1,
) -> Rows:
    """Sum the features of each label's points, Y^T X, and scale to unit length.

    Parameters
    ----------
    features : csr_array or ndarray, (n_points, n_features)
        The points.
    labels : csr_array, (n_points, n_labels)
        An entry other than zero means: relevant.
    normalise_points : bool
        Scale points to unit length first. DeepXML, Parabel and X-Transformer sum them as they are,
        which is the same where rows have unit length, as those that recipes are given have.
    max_entries : int, optional
        Keep that many entries, the largest, of each sparse centroid. Bounds the memory.
    n_threads : int
        Threads to use (sparse features only).

    Returns
    -------
    csr_array or ndarray of float32, (n_labels, n_features)
        Like `features`. A label without points has a row of zeros.

    Raises
    ------
    InputError
        If the number of rows differs, or a feature is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from longtail.surrogates.label_clusters import label_centroids
    >>> features = np.array([[4, 0], [0, 3], [0, 2]], dtype=np.float32)
    >>> labels = sp.csr_array(np.array([[1, 0], [1, 0], [0, 0]]))
    >>> label_centroids(features, labels)
    array([[0.8, 0.6],
           [0. , 0. ]], dtype=float32)
    """
    if features.shape[0] != labels.shape[0]:
        raise InputError(
            f"`features` has {features.shape[0]} rows but `labels` has {labels.shape[0]}. "
            "Pass one row of each per point."
        )
    if max_entries is not None:
        require_positive("max_entries", max_entries)
    points = as_rows("features", features)
    if normalise_points:
        points = unit_rows(points)
    members = sp.csr_array(binary(labels).T)
    return unit_product(members, points, max_entries, n_threads)


def label_correlation(
    labels: sp.csr_array,
    *,
    walk_length: int = LabelClusters.walk_length,
    restart_probability: float = LabelClusters.restart_probability,
    n_kept: int = LabelClusters.n_kept,
    max_label_frequency: int | None = None,
    seed: int,
    n_threads: int = 1,
) -> sp.csr_array:
    """Estimate the l1-normalised label correlation Y^T Y by random walks with restart.

    A step goes from a label to a uniformly random point that has it, then to a uniformly random
    label of that point; before each step the walk returns to its start with
    `restart_probability`. A row holds the share of visits of its `n_kept` most visited labels,
    itself always among them (DeepXML, appendix A.2; the numbers are those of the authors' code).

    Parameters
    ----------
    labels : csr_array, (n_points, n_labels)
        An entry other than zero means: relevant.
    walk_length : int
        Steps from each label.
    restart_probability : float
        From 0 to 1.
    n_kept : int
        Labels kept in a row.
    max_label_frequency : int, optional
        Where a label has more points than this, return the identity; the authors' code does so,
        at 5,000.
    seed : int
        Same seed, same walks, whatever `n_threads` is.
    n_threads : int
        Threads to use.

    Returns
    -------
    csr_array of float32, (n_labels, n_labels)
        Rows sum to one.

    Raises
    ------
    InputError
        If a setting is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from longtail.surrogates.label_clusters import label_correlation
    >>> labels = sp.csr_array(np.array([[1, 1, 0], [0, 0, 1]]))
    >>> label_correlation(labels, seed=0).toarray().round(2)[2]
    array([0., 0., 1.], dtype=float32)
    """
    require_positive("walk_length", walk_length)
    require_positive("n_kept", n_kept)
    if not 0.0 <= restart_probability <= 1.0:
        raise InputError(f"restart_probability must be from 0 to 1, got {restart_probability}.")
    by_point = binary(labels)
    by_label = sp.csr_array(by_point.T)
    n_labels = by_label.shape[0]
    frequency = np.diff(by_label.indptr).max(initial=0)
    if max_label_frequency is not None and frequency > max_label_frequency:
        return sp.eye_array(n_labels, dtype=np.float32, format="csr")
    ids = np.full((n_labels, n_kept), -1, np.int32)
    counts = np.zeros((n_labels, n_kept), np.int32)
    graph = (*offsets_and_indices(by_label), *offsets_and_indices(by_point))

    def walk(first: int, last: int) -> None:
        label_walks(*graph, first, last, walk_length, float(restart_probability), seed, ids, counts)

    over_row_chunks(walk, n_labels, n_threads=n_threads)
    shares = (counts / counts.sum(axis=1, keepdims=True)).astype(np.float32)
    return csr_of_chosen(ids, shares, ids >= 0, n_labels)


def meta_labels(
    labels: sp.csr_array, assignment: NDArray[np.int32], n_clusters: int
) -> sp.csr_array:
    """Give each point the clusters of its labels: the targets of the surrogate task.

    Parameters
    ----------
    labels : csr_array, (n_points, n_labels)
        An entry other than zero means: relevant.
    assignment : ndarray of int, (n_labels,)
        The cluster of each label; -1 for none.
    n_clusters : int
        Number of meta-labels.

    Returns
    -------
    csr_array of float32, (n_points, n_clusters)
        1 where the point has at least one label of the cluster.

    Raises
    ------
    InputError
        If `assignment` does not fit `labels` or `n_clusters`.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from longtail.surrogates.label_clusters import meta_labels
    >>> labels = sp.csr_array(np.array([[1, 1, 0], [0, 1, 1]]))
    >>> meta_labels(labels, np.array([0, 0, 1], dtype=np.int32), 2).toarray()
    array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    n_labels = labels.shape[1]
    if assignment.shape != (n_labels,):
        raise InputError(
            f"`assignment` has shape {assignment.shape} but `labels` has {n_labels} columns. "
            "Pass one cluster per label."
        )
    if n_labels and not (assignment.min() >= -1 and assignment.max() < n_clusters):
        raise InputError(
            f"`assignment` holds clusters from {assignment.min()} to {assignment.max()}, "
            f"allowed are 0 to {n_clusters - 1}, and -1 for none."
        )
    has_one = assignment >= 0
    starts = np.concatenate([[0], np.cumsum(has_one)])
    cluster_of = sp.csr_array(
        (np.ones(starts[-1], np.float32), assignment[has_one], starts),
        shape=(n_labels, n_clusters),
    )
    result = binary(binary(labels) @ cluster_of)
    result.sort_indices()
    return result
