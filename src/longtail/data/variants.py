"""Points that were made of others by changing a few words: each text some five or ten times.

Who has few texts may vary them: leave words out, put others in, turn sentences round. All variants
of a text have its labels. A text to come has no variant among the training points, but a point that
is held out would have all of its others there, and its nearest neighbour would always be right.

Catalogues, too, have variants of some of their things, and texts to come will be such variants as
often. So points count as made only where nearly all have variants, and about equally many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import connected_components

from longtail.data.rows import evenly_spaced

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Rows = NDArray[np.int64]

__all__ = ["groups_of_variants"]

N_TRIED = 200  # points that are looked at first: they show of most data that it has no variants
NEAR, SAME = 0.5, 0.9999  # least cosine of variants; and of repeats of a text, as in a log
MOST_ALONE = 0.1  # of the points, without a variant: if more, variants were not made of all
LEAST_GROUPS = 100  # fewer are classes, rather than variants of a text
MOST_UNEVEN = 1.0  # standard deviation of the sizes of the groups over their mean
MOST_ALIKE = 2_000  # points with the same labels: more are a class


def groups_of_variants(points: csr_array, labels: csr_array) -> Rows | None:
    """Return the number of the group of each point, if nearly all are variants of others.

    Parameters
    ----------
    points : csr_array of float32 (n_points, n_features)
        Rows of unit length.
    labels : csr_array (n_points, n_labels)

    Returns
    -------
    int64 (n_points,) or None
        None of other data.

    Examples
    --------
    Of a hundred texts there are four variants each, which lack one of its five words.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.variants import groups_of_variants
    >>> texts = np.kron(np.eye(100), np.ones(5)).repeat(4, axis=0)
    >>> texts[np.arange(400), np.arange(400) % 4 + np.arange(400) // 4 * 5] = 0
    >>> labels = csr_array(np.eye(10)[np.arange(400) // 4 % 10])
    >>> groups = groups_of_variants(csr_array(texts / 2), labels)
    >>> groups[:9].tolist(), len(set(groups.tolist()))
    ([0, 0, 0, 0, 4, 4, 4, 4, 8], 100)
    >>> groups_of_variants(csr_array(np.eye(400)), labels) is None
    True
    """
    alike = _PointsOfSets(labels)
    tried = alike.labelled[evenly_spaced(min(N_TRIED, len(alike.labelled)), len(alike.labelled))]
    n_alone = 0
    for row in tried.tolist():
        n_alone += not _has_variant(points, row, alike.rows_like(row))
        if n_alone > MOST_ALONE * len(tried):
            return None
    group_of_row = np.arange(points.shape[0])
    for rows in alike.sets():
        if 1 < len(rows) <= MOST_ALIKE:
            of_set = points[rows]
            products = of_set @ of_set.T
            products.data = products.data >= NEAR
            products.eliminate_zeros()
            group_of_row[rows] = rows[connected_components(products, directed=False)[1]]
    _, group_of_row = np.unique(group_of_row, return_inverse=True)
    return group_of_row if _are_made(group_of_row, alike.labelled) else None


def _has_variant(points: csr_array, row: int, rows: Rows) -> bool:
    """Return whether one of the `rows` is near a point, but not the same."""
    if not 1 < len(rows) <= MOST_ALIKE:
        return False
    cosines = (points[rows] @ points[[row]].T).data
    return bool(((cosines >= NEAR) & (cosines < SAME)).any())


def _are_made(group_of_row: Rows, labelled: Rows) -> bool:
    """Return whether groups are so many and so much alike in size that they have been made."""
    sizes = np.bincount(group_of_row[labelled])
    sizes = sizes[sizes > 0]
    return bool(
        len(sizes) >= LEAST_GROUPS
        and np.count_nonzero(sizes == 1) <= MOST_ALONE * len(labelled)
        and sizes.std() <= MOST_UNEVEN * sizes.mean()
    )


class _PointsOfSets:
    """Which points have the same labels."""

    def __init__(self, labels: csr_array) -> None:
        random = np.random.default_rng(0)
        keys = random.integers(1, 2**63, labels.shape[1], np.int64).astype(np.uint64)
        sums = np.concatenate([[np.uint64(0)], np.cumsum(keys[labels.indices], dtype=np.uint64)])
        self.labelled: Rows = np.flatnonzero(np.diff(labels.indptr))
        of_row = (sums[labels.indptr[1:]] - sums[labels.indptr[:-1]])[self.labelled]
        _, self._set_of, sizes = np.unique(of_row, return_inverse=True, return_counts=True)
        self._by_set = self.labelled[np.argsort(self._set_of, kind="stable")]
        self._stops = np.cumsum(sizes)
        self._starts = self._stops - sizes

    def rows_like(self, row: int) -> Rows:
        """Return the points with the labels of one that has some."""
        number = self._set_of[np.searchsorted(self.labelled, row)]
        rows: Rows = self._by_set[self._starts[number] : self._stops[number]]
        return rows

    def sets(self) -> list[Rows]:
        """Return the points of each set of labels."""
        return np.split(self._by_set, self._stops[:-1])
