"""Whether points that are near have labels in common: by that, ways to read numbers are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    AsRows = Callable[[csr_array], csr_array]

__all__ = ["LabelAgreement"]

N_ASKED, N_OTHERS, N_NEAR = 500, 10_000, 10
FILLED = 0.25  # of a matrix: more are multiplied sooner as if there were no zeros


@dataclass(frozen=True, eq=False)
class LabelAgreement:
    """Some training points, and others among which theirs are looked for.

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


def _products(rows: csr_array, others: csr_array) -> NDArray[np.float32]:
    """Return the inner products of rows and others, float32 (n_rows, n_others)."""
    products: NDArray[np.float32]
    if others.nnz > FILLED * np.prod(others.shape):
        products = rows.toarray() @ others.toarray().T
    else:
        products = (rows @ others.T).toarray()
    return products
