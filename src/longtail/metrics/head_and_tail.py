"""The numbers that weights of scores are chosen by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.metrics.at_k import precision_at_k, ps_precision_at_k
from longtail.metrics.hits import USUAL_PLACES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = ["head_and_tail_precision", "sum_of_precisions"]


def sum_of_precisions(ids: NDArray[np.int32], truth: csr_array) -> float:
    """Return the sum of P@k over k = 1, 3, 5, or those of them that there are places for.

    Parameters
    ----------
    ids : int32 (n, k)
        Best labels first, padded with -1.
    truth : csr_array (n, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.head_and_tail import sum_of_precisions
    >>> ids, truth = np.array([[0, 1, -1, -1, -1]], np.int32), csr_array(np.array([[1, 0]]))
    >>> round(sum_of_precisions(ids, truth), 2), sum_of_precisions(ids[:, :1], truth)
    (1.53, 1.0)
    """
    return sum(precision_at_k(ids, truth, k) for k in USUAL_PLACES if k <= ids.shape[1])


def head_and_tail_precision(
    ids: NDArray[np.int32], truth: csr_array, inverse_propensities: NDArray[np.float64]
) -> float:
    """Return the sum of P@k and PSP@k over k = 1, 3, 5: what weights of scores are chosen by.

    Parameters
    ----------
    ids : int32 (n, at least 5)
        Best labels first, padded with -1.
    truth : csr_array (n, n_labels)
    inverse_propensities : float64 (n_labels,)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.head_and_tail import head_and_tail_precision
    >>> ids = np.array([[0, 1, -1, -1, -1]], np.int32)
    >>> truth = csr_array(np.array([[1, 0]]))
    >>> round(head_and_tail_precision(ids, truth, np.ones(2)), 2)  # 1 + 1/3 + 1/5, and three 1
    4.53
    """
    return sum(
        precision_at_k(ids, truth, k) + ps_precision_at_k(ids, truth, k, inverse_propensities)
        for k in USUAL_PLACES
    )
