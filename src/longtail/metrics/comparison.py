"""Whether one model is better than another, or was lucky in its test points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longtail.metrics.hits import Floats

__all__ = ["Difference", "compare"]


@dataclass(frozen=True)
class Difference:
    """A metric of two models on the same points.

    Parameters
    ----------
    ours, theirs : float
        The means over the points.
    standard_error : float
        Of ``ours - theirs``, paired: from how much the points differ in that. What is more than
        twice as far from 0 comes by chance once in twenty times. NaN of a single point.

    Examples
    --------
    >>> from longtail.metrics import Difference
    >>> Difference(ours=60.5, theirs=60.0, standard_error=0.4).value
    0.5
    """

    ours: float
    theirs: float
    standard_error: float

    @property
    def value(self) -> float:
        """How much more ours is."""
        return self.ours - self.theirs


def compare(ours: Mapping[str, Floats], theirs: Mapping[str, Floats]) -> dict[str, Difference]:
    """Return each metric of two models, and how sure their difference is.

    Parameters
    ----------
    ours, theirs : mapping of str to ndarray, shape (n_points,)
        What `by_point` returns of either model's answers to the same points in the same order, by
        the same counts of training points: they tell what labels are worth to PSP.

    Returns
    -------
    dict of str to Difference
        Of the metrics that both have.

    Raises
    ------
    InputError
        If the numbers of points differ.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.metrics import compare
    >>> ours, theirs = {"P@1": np.array([100.0, 100.0, 0.0])}, {"P@1": np.array([100.0, 0.0, 0.0])}
    >>> found = compare(ours, theirs)["P@1"]
    >>> round(found.value, 2), round(found.standard_error, 2)
    (33.33, 33.33)
    """
    found = {}
    for name in filter(theirs.__contains__, ours):
        first, second = ours[name], theirs[name]
        if first.shape != second.shape:
            raise InputError(
                f"{name} is of {len(first):,} points of one model and {len(second):,} of the "
                "other. Ask both the same points."
            )
        error = _standard_error(first - second)
        found[name] = Difference(float(first.mean()), float(second.mean()), error)
    return found


def _standard_error(values: Floats) -> float:
    """Return that of the mean of some values; NaN of a single one."""
    if len(values) < 2:
        return math.nan
    return float(values.std(ddof=1)) / math.sqrt(len(values))
