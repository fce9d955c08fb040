"""How likely a label that applies is to be recorded: the propensity model of Jain et al."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from longtail.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import csr_array

__all__ = ["USUAL_PROPENSITY", "inverse_propensities", "inverse_propensities_in"]

USUAL_PROPENSITY = (0.55, 1.5)  # A and B of most data sets
_LARGEST_A = 10  # published ones are near .5; with some hundreds there are no such numbers


def inverse_propensities(
    train_label_counts: ArrayLike,
    n_points: int,
    a: float = USUAL_PROPENSITY[0],
    b: float = USUAL_PROPENSITY[1],
) -> NDArray[np.float64]:
    """Return the inverse propensity of every label: what a hit on it is worth.

    1/p_l = 1 + C (N_l + B)^-A with C = (ln N - 1) (B + 1)^A, where N_l of the N training points
    have the label l. The rarer the label, the larger the value; it is never below 1 (for N < 3,
    where the formula's C is negative, C is taken as 0 and all labels weigh 1).

    Parameters
    ----------
    train_label_counts : array-like, shape (n_labels,)
        How many training points have each label.
    n_points : int
        Number of training points, N.
    a, b : float
        A and B: .5 and .4 for WikiTitles-500K and Wikipedia-500K, .6 and 2.6 for Amazon's sets,
        .55 and 1.5 elsewhere, as for WikiSeeAlsoTitles.

    Returns
    -------
    ndarray of float64, shape (n_labels,)

    Raises
    ------
    InputError
        For negative counts, no points, an A below 0 or above 10, or a B at or below 0.

    References
    ----------
    Jain, Prabhu, Varma: Extreme Multi-label Loss Functions for Recommendation, Tagging, Ranking &
    Other Missing Label Applications. KDD 2016, section 4.

    Examples
    --------
    >>> from longtail.metrics import inverse_propensities
    >>> inverse_propensities([0, 1, 1000], n_points=10_000).round(2).tolist()
    [11.87, 9.21, 1.3]
    """
    counts = np.asarray(train_label_counts, dtype=np.float64)
    if counts.ndim != 1 or not (counts >= 0).all():
        raise InputError(
            "`train_label_counts` must be one number, 0 or more, a label. "
            "For a label matrix Y of the training points pass np.bincount(Y.indices, "
            "minlength=Y.shape[1])."
        )
    are_numbers = all(isinstance(number, Real) for number in (n_points, a, b))
    if not (are_numbers and n_points >= 1 and 0 <= a <= _LARGEST_A and 0 < b < np.inf):  # nor nan
        raise InputError(
            f"n_points is {n_points!r}, A is {a!r} and B is {b!r}; propensities need at least 1 "
            f"training point, an A from 0 to {_LARGEST_A} and a B above 0."
        )
    scale = max(np.log(n_points) - 1.0, 0.0) * (b + 1.0) ** a
    return np.asarray(1.0 + scale * (counts + b) ** -a)


def inverse_propensities_in(labels: csr_array) -> NDArray[np.float64]:
    """Return the `inverse_propensities` of labels from the training points that have them.

    Parameters
    ----------
    labels : csr_array (n_points, n_labels)
        Of the training points; what it stores counts.

    Raises
    ------
    InputError
        If there are no points.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.metrics.propensity import inverse_propensities_in
    >>> inverse_propensities_in(csr_array([[1, 0], [1, 0], [1, 1], [1, 0]])).round(2).tolist()
    [1.25, 1.39]
    """
    counts = np.bincount(labels.indices, minlength=labels.shape[1])
    return inverse_propensities(counts, labels.shape[0])
