"""Whether rows of numbers tell labels: by that, ways to read numbers are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.data.rows import unit_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    AsRows = Callable[[csr_array], csr_array]

__all__ = ["LabelAgreement"]

N_ASKED, N_OTHERS, N_NEAR = 500, 10_000, 10
FILLED = 0.25  # share of entries that are not 0: above it, dense matrices multiply faster


@dataclass(frozen=True, eq=False)
class LabelAgreement:
    """Some training points, and others by which their labels are looked for.

    Parameters
    ----------
    asked : csr_array of float32 (n_asked, n_features)
    others : csr_array of float32 (n_others, n_features)
    own_labels : csr_array (n_asked, n_labels)
    labels : csr_array (n_others, n_labels)
    """

    asked: csr_array
    others: csr_array
    own_labels: csr_array
    labels: csr_array

    @classmethod
    def drawn(cls, features: csr_array, labels: csr_array, seed: int) -> LabelAgreement:
        """Draw the points, some thousands at most."""
        order = np.random.default_rng(seed).permutation(features.shape[0])[: N_ASKED + N_OTHERS]
        n_asked = min(N_ASKED, len(order) // 2)
        asked, others = np.sort(order[:n_asked]), np.sort(order[n_asked:])
        return cls(features[asked], features[others], labels[asked], labels[others])

    def of_near_points(self, as_rows: AsRows) -> float:
        """Return which share of the labels of near points a point has itself; 0 without points.

        Parameters
        ----------
        as_rows : callable
            Returns features as rows of unit length.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.sparse import csr_array
        >>> from longtail.data.agreement import LabelAgreement
        >>> from longtail.data.damping import unit_rows_of_power
        >>> same = csr_array(np.eye(2))
        >>> LabelAgreement(same, same[:1], same, same[:1]).of_near_points(unit_rows_of_power)
        0.5
        """
        if not self.asked.shape[0]:
            return 0.0
        similarities = _products(as_rows(self.asked), as_rows(self.others))
        n_near = min(N_NEAR, similarities.shape[1])
        near = np.argpartition(-similarities, n_near - 1, axis=1)[:, :n_near]
        theirs = self.labels[near.ravel()]
        own = self.own_labels[np.repeat(np.arange(len(near)), n_near)]
        return float(own.multiply(theirs).count_nonzero() / max(theirs.count_nonzero(), 1))

    def of_directions(self, as_rows: AsRows) -> float:
        """Return which share of a point's labels are those whose mean row is nearest to it.

        Of a point with three labels, three are looked at. It is what vectors of labels can do,
        before they are learnt.

        Parameters
        ----------
        as_rows : callable
            Returns features as rows of unit length.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.sparse import csr_array
        >>> from longtail.data.agreement import LabelAgreement
        >>> from longtail.data.damping import unit_rows_of_power
        >>> same, labels = csr_array(np.eye(2)), csr_array([[1, 0], [1, 1]])
        >>> own = csr_array([[0, 1], [1, 1]])
        >>> LabelAgreement(same, same, own, labels).of_directions(unit_rows_of_power)
        0.5
        """
        known = np.flatnonzero(np.bincount(self.labels.indices, minlength=self.labels.shape[1]))
        n_own = np.diff(self.own_labels.indptr)
        if not (len(known) and n_own.any()):
            return 0.0
        directions = unit_rows(csr_array(self.labels[:, known].T @ as_rows(self.others)))
        cosines = _products(as_rows(self.asked), directions)
        own, shares = self.own_labels[:, known], []
        for point in np.flatnonzero(n_own):
            n_most = min(int(n_own[point]), len(known))
            least = np.partition(cosines[point], -n_most)[-n_most]
            of_own = cosines[point, own.indices[own.indptr[point] : own.indptr[point + 1]]]
            shares.append(np.count_nonzero(of_own[of_own != 0] >= least) / n_own[point])
        return float(np.mean(shares))


def _products(rows: csr_array, others: csr_array) -> NDArray[np.float32]:
    """Return the inner products of rows and others, float32 (n_rows, n_others)."""
    products: NDArray[np.float32]
    if others.nnz > FILLED * np.prod(others.shape):
        products = rows.toarray() @ others.toarray().T
    else:
        products = (rows @ others.T).toarray()
    return products
