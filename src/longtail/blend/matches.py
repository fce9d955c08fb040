"""Labels whose texts are like those of points."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.data.csr import csr_from_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = ["Matches"]

LEAST_STRENGTH = 1e-3  # of the best match's: what is weaker makes no links


class Matches(NamedTuple):
    """The labels whose texts are most like each point's.

    Attributes
    ----------
    labels : int32 (n, n_matches)
        Best first, padded with -1.
    strengths : float32 (n, n_matches)
        How much each counts, see `longtail.kernels.label_links.sharpen`; padded with 0.

    Examples
    --------
    Of the first point, label 2 matches too weakly to count; the second has one match.

    >>> import numpy as np
    >>> from longtail.blend.matches import Matches
    >>> labels = np.array([[1, 0, 2], [2, -1, -1]], np.int32)
    >>> strengths = np.array([[4, 2, 0.003], [1, 0, 0]], np.float32)
    >>> Matches(labels, strengths).by_point(3).toarray().tolist()
    [[2.0, 4.0, 0.0], [0.0, 0.0, 1.0]]
    """

    labels: NDArray[np.int32]
    strengths: NDArray[np.float32]

    def by_point(self, n_labels: int) -> csr_array:
        """Return the strengths as a matrix (n, n_labels), without the weak ones."""
        most = self.strengths.max(axis=1, keepdims=True, initial=0)
        counts = (self.strengths > LEAST_STRENGTH * most) & (self.labels >= 0)
        lengths = np.count_nonzero(counts, axis=1)
        matrix = csr_from_rows(self.labels[counts], lengths, n_labels, self.strengths[counts])
        matrix.sort_indices()
        return matrix
