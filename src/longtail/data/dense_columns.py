"""Dense columns of ready-made features: centred, and scaled to spread alike.

A row is scaled to unit length, which suits bags of words. Of measurements that leaves what all
points have in common: a column of years beside others between -1 and 1 makes all rows the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from longtail.data.agreement import LabelAgreement
from longtail.data.csr import rows_of_entries, with_entries, with_int32_indices
from longtail.data.damping import unit_rows_of_power

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Numbers = NDArray[np.float32]
    Doubles = NDArray[np.float64]

__all__ = ["DenseColumns", "chosen_dense_columns", "dense_columns"]

LEAST_FILLED = 0.5  # share of entries that are not 0 in a dense column
LEAST_OF_LENGTH = 0.75  # share of the rows' squared length: stop words in bags make up less
LEAST_SPREAD = 1e-6  # over the mean: less is rounding in 32 bits, and the column is constant
LARGEST_SPREAD = 1e30  # so that a row of values up to three times this has a length in 32 bits
MOST_DEVIATIONS = 3.0  # values are cut there, so that one wrong number does not outweigh its row
QUARTILES = 0.25, 0.5, 0.75
BETWEEN_QUARTILES = 1.349  # standard deviations, of numbers that are normally distributed
LONG_TAILED = 0.5  # the spread of the middle half over that of all: below this, tails are cut
MOST_IN_COMMON = 0.3  # squared length of the mean unit row: above it, rows are always centred
CLEARLY = 1.05  # times the share of shared labels that centred columns have
FAR_AWAY = 10.0  # deviations: a number further away, such as -999, is a mark and not a measurement


@dataclass(frozen=True, eq=False)
class DenseColumns:
    """What is taken from dense columns, and what they are then multiplied by.

    Parameters
    ----------
    columns : int32 (n_dense,)
        Ascending.
    means, deviations : float32 (n_dense,)
        Standard deviations are 0 of a column that is the same in all points.
    spread : float
        Standard deviation that columns are given; values beyond three of them are cut.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.dense_columns import DenseColumns
    >>> columns = DenseColumns(np.array([0]), np.array([2000.0]), np.array([10.0]), spread=1.0)
    >>> columns.centred(csr_array([[2010.0, 0, 5], [1990, 4, 0], [0, 0, 0]])).toarray().tolist()
    [[1.0, 0.0, 5.0, 1.0], [-1.0, 4.0, 0.0, 1.0], [-3.0, 0.0, 0.0, 1.0]]
    """

    columns: NDArray[np.int32]
    means: Numbers
    deviations: Numbers
    spread: float

    @property
    def level(self) -> float:
        """What all points have in common: as much as all of what they differ by, on average.

        Without it a row of unit length would not tell how far from the mean a point is.
        """
        n_varying = int(np.count_nonzero(self.deviations))
        return self.spread * math.sqrt(max(n_varying, 1))

    def centred(self, features: csr_array) -> csr_array:
        """Return features with these columns centred and scaled, and one column more: the level."""
        n_points, n_features = features.shape
        place = np.full(n_features, -1)
        place[self.columns] = np.arange(len(self.columns))
        is_dense = place[features.indices] >= 0
        rows = rows_of_entries(features)[is_dense]
        numbers = np.zeros((n_points, len(self.columns) + 1), np.float32)
        numbers[rows, place[features.indices[is_dense]]] = features.data[is_dense]
        dense, varies = numbers[:, :-1], self.deviations > 0
        with np.errstate(over="ignore"):  # infinite is cut, too
            np.subtract(dense, self.means, out=dense, where=varies)
            np.divide(dense, self.deviations, out=dense, where=varies)
        dense[:, ~varies] = 0
        np.clip(dense, -MOST_DEVIATIONS, MOST_DEVIATIONS, out=dense)
        dense *= np.float32(self.spread)
        numbers[:, -1] = self.level
        columns = np.append(self.columns, n_features).astype(np.int32)
        parts = numbers.ravel(), np.tile(columns, n_points), len(columns) * np.arange(n_points + 1)
        shape = n_points, n_features + 1
        others = with_entries(features, ~is_dense)
        others.resize(shape)
        return with_int32_indices(others + csr_array(parts, shape))

    def config(self) -> dict[str, Any]:
        """Return what `from_config` needs, as JSON values."""
        return {
            "columns": self.columns.tolist(),
            "means": self.means.tolist(),
            "deviations": self.deviations.tolist(),
            "spread": self.spread,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> DenseColumns:
        """Make it again."""
        columns = np.array(config["columns"], np.int32)
        means = np.array(config["means"], np.float32)
        return cls(columns, means, np.array(config["deviations"], np.float32), config["spread"])


def dense_columns(features: csr_array, power: float = 1.0) -> DenseColumns | None:
    """Return how dense columns are centred and scaled; None of bags.

    A column is dense if more than half of its entries are there. Bags of words have such columns,
    too, but they are little of what a row is: all together must make up most of it.

    Where there are other columns, dense ones spread as they do in the middle, but by no more than
    entries of the others are large. A column that is the same in all points becomes 0.

    A few numbers far from all others, such as a -999 that stands for a missing one, would make the
    others alike. Where the quartiles are much nearer to each other than the standard deviation
    says, the mean and the standard deviation are those without far numbers and tails.

    Parameters
    ----------
    features : csr_array of float32 (n_points, n_features)
    power : float
        To which features would be raised otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.dense_columns import dense_columns
    >>> table = np.array([[2010, -1.0], [1990, 1.0]], np.float32)
    >>> dense_columns(csr_array(table)).centred(csr_array(table)).toarray()[:, :2].tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    >>> dense_columns(csr_array(np.eye(3, dtype=np.float32))) is None
    True
    """
    n_filled = np.bincount(features.indices, minlength=features.shape[1])
    is_dense = n_filled > LEAST_FILLED * features.shape[0]
    is_entry_dense = is_dense[features.indices]
    squares = np.square(unit_rows_of_power(features, power).data)
    if squares[is_entry_dense].sum() <= LEAST_OF_LENGTH * squares.sum():
        return None
    columns = np.flatnonzero(is_dense).astype(np.int32)
    means, deviations = (numbers[columns] for numbers in _means_and_deviations(features))
    _without_tails(features, columns, means, deviations)
    deviations[deviations <= LEAST_SPREAD * np.abs(means)] = 0
    spread = _spread(deviations[deviations > 0], features.data[~is_entry_dense])
    return DenseColumns(columns, means.astype(np.float32), deviations.astype(np.float32), spread)


def chosen_dense_columns(
    features: csr_array, labels: csr_array, power: float = 1.0, *, seed: int
) -> DenseColumns | None:
    """Return `dense_columns`, or None where points tell each other's labels better without.

    Columns of noise, and the last of a singular value decomposition or of an embedding, spread
    less than those that tell something. Where all points have little in common, they need not be
    centred, and rows stay as they are if clearly more of the labels of near points are then a
    point's own.

    Parameters
    ----------
    features : csr_array of float32 (n_points, n_features)
    labels : csr_array (n_points, n_labels)
    power : float
        To which features are raised otherwise.
    seed : int
        Of the points that are looked at, some thousands at most.

    Examples
    --------
    Two columns tell the group of a point, forty small ones tell nothing.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.dense_columns import chosen_dense_columns
    >>> random, groups = np.random.default_rng(0), np.arange(200) % 4
    >>> table = 0.1 * random.standard_normal((200, 42))
    >>> table[:, :2] += np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])[groups]
    >>> features, labels = csr_array(table.astype(np.float32)), csr_array(np.eye(4)[groups])
    >>> chosen_dense_columns(features, labels, seed=0) is None
    True
    """
    dense = dense_columns(features, power)
    if dense is None:
        return None
    agreement = LabelAgreement.drawn(features, labels, seed)
    plain = partial(unit_rows_of_power, power=power)
    mean = plain(agreement.others).mean(axis=0)
    if np.square(mean).sum() >= MOST_IN_COMMON:
        return dense
    centred = agreement.of_near_points(lambda rows: unit_rows_of_power(dense.centred(rows)))
    return None if agreement.of_near_points(plain) > CLEARLY * centred else dense


def _means_and_deviations(features: csr_array) -> tuple[Doubles, Doubles]:
    """Return the mean of each column, and its standard deviation, zeros included."""
    n_points, n_features = features.shape

    def sums(numbers: Doubles) -> Doubles:
        return np.bincount(features.indices, numbers, n_features).astype(np.float64)

    means = sums(features.data.astype(np.float64)) / n_points
    squares = sums(np.square(features.data - means[features.indices]))
    n_zeros = n_points - np.bincount(features.indices, minlength=n_features)
    return means, np.sqrt((squares + n_zeros * np.square(means)) / n_points)


def _without_tails(
    features: csr_array, columns: NDArray[np.int32], means: Doubles, deviations: Doubles
) -> None:
    """Set the means and deviations of columns with long tails to what they are without."""
    by_column = features[:, columns].tocsc()
    for place in range(len(columns)):
        entries = by_column.data[by_column.indptr[place] : by_column.indptr[place + 1]]
        numbers = np.zeros(features.shape[0])  # in 64 bits: 32 do not hold all differences
        numbers[: len(entries)] = entries
        lower, middle, upper = np.quantile(numbers, QUARTILES)
        of_most = (upper - lower) / BETWEEN_QUARTILES
        if LEAST_SPREAD * abs(middle) < of_most < LONG_TAILED * deviations[place]:
            shares = (numbers - middle) / of_most
            shares = shares[np.abs(shares) <= FAR_AWAY].clip(-MOST_DEVIATIONS, MOST_DEVIATIONS)
            means[place] = middle + of_most * shares.mean()
            deviations[place] = of_most * shares.std()


def _spread(deviations: Doubles, others: Numbers) -> float:
    """Return the standard deviation that dense columns are given beside entries of others."""
    if not (len(deviations) and len(others)):
        return 1.0
    of_others = np.sqrt(np.mean(np.square(others, dtype=np.float64)))
    return float(min(np.median(deviations), of_others, LARGEST_SPREAD))
