"""Damping of ready-made features: a number that is ten times larger seldom says ten times more.

Term frequencies times inverse document frequencies, as data sets come with them, spread over
several powers of ten, and a few of a row's numbers are then all that its unit vector shows.
Texts do not need this: the weights of our own `TextVectorizer` count a repeat by its logarithm.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from longtail.data.agreement import LabelAgreement
from longtail.data.rows import row_norms
from longtail.kernels.jit import HelpingThreads

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = ["chosen_power", "unit_rows_of_power"]

POWERS = 1.0, 0.5, 0.25
CLEARLY = 1.02  # a smaller power is taken only if its share is this many times as large
_SHORTEST, _LONGEST = 1e-15, 1e15  # lengths of rows whose squares float32 can add up


def unit_rows_of_power(features: csr_array, power: float = 1.0) -> csr_array:
    """Return ``sign(x) |x|^power`` with rows of unit length; rows of zeros stay so.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.damping import unit_rows_of_power
    >>> unit_rows_of_power(csr_array([[9.0, -16.0]]), 0.5).toarray().round(1).tolist()
    [[0.6, -0.8]]
    """
    # Not `rows.unit_rows`: it looks at all rows before it scales any, and here a row
    # must not depend on what else is in the batch.
    result = features.copy()
    with np.errstate(over="ignore"):  # rows that overflow are scaled again below, in 64 bits
        if power != 1:
            result.data = np.copysign(np.abs(result.data) ** np.float32(power), result.data)
        lengths = row_norms(result)
    for row in np.flatnonzero(~((lengths > _SHORTEST) & (lengths < _LONGEST))):
        entries = slice(result.indptr[row], result.indptr[row + 1])
        result.data[entries] = _unit_in_64_bits(features.data[entries], power)
        lengths[row] = 1
    result.data /= np.repeat(lengths, np.diff(result.indptr))
    return result


def _unit_in_64_bits(values: NDArray[np.float32], power: float) -> NDArray[np.float64]:
    """Return one row of `unit_rows_of_power` whose numbers or squares 32 bits do not hold."""
    largest = np.abs(values).max(initial=0)
    if largest == 0:
        return values.astype(np.float64)
    shares = np.abs(values.astype(np.float64)) / largest  # none is beyond 1, whatever the power
    raised = np.copysign(shares**power, values)
    unit: NDArray[np.float64] = raised / np.linalg.norm(raised)
    return unit


def chosen_power(features: csr_array, labels: csr_array, *, seed: int, n_threads: int = 1) -> float:
    """Return the power, 1, 1/2 or 1/4, with which most labels are those nearest to their points.

    That is, those whose mean row is nearest. Near points would tell less: of eurlex-4k square
    roots bring none nearer that share labels, but the labels themselves, and the model gains.

    Parameters
    ----------
    features : csr_array (n_points, n_features)
        Negative numbers are a sign of something else than frequencies: then it is 1.
    labels : csr_array (n_points, n_labels)
    seed : int
        Of the points that are looked at, some thousands at most.
    n_threads : int
        Two are of use.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.damping import chosen_power
    >>> topics = np.repeat(np.eye(2), 20, axis=0)
    >>> counts = np.hstack([topics, 20.0 ** np.random.default_rng(0).random((40, 1))])
    >>> counts = np.hstack([counts, 20.0 ** np.random.default_rng(1).random((40, 1))])
    >>> chosen_power(csr_array(counts), csr_array(topics), seed=0)
    0.25
    """
    data = features.data
    if not len(data) or data.min() < 0 or data.min() == data.max():
        return 1.0
    agreement = LabelAgreement.drawn(features, labels, seed)

    def share(power: float) -> float:
        return agreement.of_directions(partial(unit_rows_of_power, power=power))

    with HelpingThreads(min(n_threads, 2)) as pool:
        shares = np.array(list(pool.map(share, POWERS)))
    return POWERS[int(np.argmax(CLEARLY * shares >= shares.max()))]
