"""Scores into probabilities."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.arrays import read_only
from longtail.kernels.scoring import LEAST_STEP_OF_LOGITS, logistic_rows
from longtail.metrics.hits import true_among
from longtail.scorers.sigmoid import sigmoid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.scorers.protocols import Answers

__all__ = ["LEAST_CALIBRATED", "Calibration", "logistic_weights", "n_calibrated"]

LEAST_CALIBRATED = 5  # best labels of a point, from which probabilities are learnt
MOST_CALIBRATED = 500
N_NEWTON_STEPS, N_HALVINGS, RIDGE = 30, 20, 1e-6
MOST_SURE = 30.0  # logits while weights are fitted: the loss hardly bends beyond
MOST_LESS, N_HALVINGS_OF_LESS = 100.0, 50  # logits; a probability of e^-100 is none
LEAST_SHARE = 1e-6  # whose logarithm is told from those of smaller ones
RIGHT = 0.5  # a target above this is of a label that is right
LEAST_FOR_LINE = 50  # first labels that are right, and that are wrong
LEAST_SLOPE = 1e-3  # of scores scaled to a standard deviation of 1: higher ones stay ahead


def n_calibrated(truth: csr_array) -> int:
    """Return from how many of a point's best labels probabilities are learnt.

    From five, or twice as many as points have if that is more than five: else all of them may be
    right, which says nothing of those behind them. At most 500.

    Parameters
    ----------
    truth : csr_array (n, n_labels)

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.scorers.calibration import n_calibrated
    >>> n_calibrated(csr_array([[1, 0] * 40] * 3)), n_calibrated(csr_array([[1] + [0] * 79]))
    (80, 5)
    """
    usual = int(truth.nnz) // max(int(truth.shape[0]), 1)
    most = min(int(truth.shape[1]), MOST_CALIBRATED)
    return min(most, LEAST_CALIBRATED if usual <= LEAST_CALIBRATED else 2 * usual)


@dataclass(frozen=True)
class Calibration:
    """Probability that a predicted label is right.

    ``1 / (1 + exp(-z))`` with ``z = slope * score + intercept``, after Platt, "Probabilistic
    outputs for support vector machines" (1999). For the best label of a point ``first + first_slope
    * score`` is added: being ahead of all others says more than its score does, and the more the
    higher it is. No label is more probable than the best one and slopes are positive, so the order
    of a point's labels never changes.

    Scores that are shares of one, such as products of probabilities, are read as their logarithms.
    Else no label, however small its share, could be less probable than the intercept says.

    Parameters
    ----------
    slope, intercept, first : float
    of_shares : bool
        Whether the scores are such shares.
    first_slope : float

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.calibration import Calibration
    >>> Calibration(2.0, -1.0).probabilities(np.array([0.5, -np.inf], np.float32)).tolist()
    [0.5, -inf]
    """

    slope: float = 1.0
    intercept: float = 0.0
    first: float = 0.0
    of_shares: bool = False
    first_slope: float = 0.0

    @classmethod
    def fit(
        cls,
        scores: NDArray[np.float32],
        is_right: NDArray[np.bool_],
        *,
        of_shares: bool = False,
        weights: NDArray[np.float64] | None = None,
    ) -> Calibration:
        """Learn from predictions of held-out points.

        Parameters
        ----------
        scores : float32 (n, k), or (n,)
            Best first in each row, if there are rows. Padding of -inf is left out.
        is_right : bool, the same shape
        of_shares : bool
        weights : float64 (k,), optional
            How much the labels of each rank count, where there are rows. Alike by default.

        Returns
        -------
        Calibration
            Where all are right or all are wrong, or all score the same, the share that is right
            tells the probability of any. The identity where there are no scores.
        """
        none = cls(of_shares=of_shares)
        known, scores = np.isfinite(scores), none.as_read(scores)
        x, is_true = scores[known].astype(np.float64), is_right[known]
        n_right, n_wrong = int(is_true.sum()), int((~is_true).sum())
        if not len(x):
            return none
        if not n_right or not n_wrong or np.ptp(x) == 0:
            usual = math.log((n_right + 1) / (n_wrong + 1))
            return replace(none, slope=LEAST_SLOPE / max(float(x.std()), 1.0), intercept=usual)
        # Platt's targets: a prior that keeps the slope finite where the classes part cleanly.
        target = np.where(is_true, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
        centre, scale = x.mean(), x.std()
        design = np.stack([(x - centre) / scale, _is_first(scores)[known], np.ones_like(x)])
        counts = None if weights is None else np.broadcast_to(weights, scores.shape)[known]
        of_all, of_first = _lines(design, target, counts)
        slope, more = of_all[0] / scale, of_first[0] / scale
        intercept, first = of_all[1] - slope * centre, of_first[1] - more * centre
        return cls(float(slope), float(intercept), float(first), of_shares, float(more))

    @classmethod
    def of_answers(
        cls,
        ids: NDArray[np.int32],
        scores: NDArray[np.float32],
        truth: csr_array,
        wrong: Sequence[Answers] = (),
        *,
        of_shares: bool = False,
        weights: NDArray[np.float64] | None = None,
    ) -> Calibration:
        """Learn from the answers to held-out points.

        Parameters
        ----------
        ids : int32 (n, k)
            Labels, best first, padded with -1.
        scores : float32 (n, k)
        truth : csr_array (n, n_labels)
        wrong : sequence of (int32, float32) (n_further, k)
            Ids and scores of answers to further points, which have no label.
        of_shares : bool
        weights : float64 (k,), optional
            See `fit`.

        Returns
        -------
        Calibration
            See `fit`; the identity if there are no points.
        """
        if not len(ids):
            return cls(of_shares=of_shares)
        further = [of_wrong for _, of_wrong in wrong]
        none = [np.zeros(of_wrong.shape, bool) for of_wrong in further]
        is_right = np.concatenate([true_among(ids, truth), *none])
        every = np.concatenate([scores, *further])
        return cls.fit(every, is_right, of_shares=of_shares, weights=weights)

    def as_read(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what the slope multiplies: scores, or the logarithms of shares; padding stays.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.scorers.calibration import Calibration
        >>> shares = np.array([1, 0, -np.inf], np.float32)
        >>> Calibration(of_shares=True).as_read(shares).round(1).tolist()
        [0.0, -13.800000190734863, -inf]
        """
        if not self.of_shares:
            return scores
        logarithms = np.log(np.maximum(scores, np.float32(LEAST_SHARE)))
        return np.where(np.isfinite(scores), logarithms, scores).astype(np.float32)

    def doubting(self, scores: NDArray[np.float32], by: float) -> Calibration:
        """Return one by which the best labels are less probable, by so much on average.

        Being first is worth less, and no other label is more probable. The order of a point's
        labels stays.

        Parameters
        ----------
        scores : float32 (n,)
            Of the best labels of some points. Padding of -inf is left out.
        by : float
            From 0 to 1; at least a tenth of the probability is left.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.scorers.calibration import Calibration
        >>> scores = np.array([[0.0], [1.0]], np.float32)
        >>> sure = Calibration(first=2.0)
        >>> less_sure = sure.doubting(scores[:, 0], by=0.1)
        >>> [round(some.probabilities(scores).mean().item(), 3) for some in (sure, less_sure)]
        [0.917, 0.817]
        >>> less_sure.slope == sure.slope and less_sure.intercept == sure.intercept
        True
        """
        known = scores[np.isfinite(scores), np.newaxis]
        if by <= 0 or not len(known):
            return self
        z = self.logits(known).ravel()
        mean = _mean_probability(z)
        return replace(self, first=self.first - _less_for(z, max(mean - by, mean / 10)))

    def of_higher(self, rise: float) -> Calibration:
        """Return one that says of scores what this one says of those lower by so much.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.scorers.calibration import Calibration
        >>> before, after = np.array([[1, 0]], np.float32), np.array([[3, 2]], np.float32)
        >>> usual = Calibration(first=1.0, first_slope=0.5)
        >>> usual.logits(before).tolist(), usual.of_higher(2).logits(after).tolist()
        ([[2.5, 0.0]], [[2.5, 0.0]])
        """
        lower = self.intercept - self.slope * rise, self.first - self.first_slope * rise
        return replace(self, intercept=lower[0], first=lower[1])

    def as_sure(self, scores: NDArray[np.float32], of: NDArray[np.float32]) -> Calibration:
        """Return one by which scores are as probable, on average, as others are by this one.

        Parameters
        ----------
        scores, of : float32 (n,)
            Of the best labels of some points. Padding of -inf is left out.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.scorers.calibration import Calibration
        >>> before, after = np.array([[0, 2], [-2, 0]], np.float32)
        >>> round(Calibration(slope=1.0).as_sure(after, of=before).intercept, 6)
        2.0
        """
        wanted, z = (
            self.logits(some[np.isfinite(some), np.newaxis]).ravel() for some in (of, scores)
        )
        if not len(z) or not len(wanted):
            return self
        less = _less_for(z, _mean_probability(wanted), least=-MOST_LESS)
        return replace(self, intercept=self.intercept - less)

    @property
    def curve(self) -> tuple[float, float, float, float]:
        """The four numbers as `longtail.kernels.scoring.logistic_rows` takes them."""
        return float(self.slope), float(self.intercept), float(self.first), float(self.first_slope)

    def slopes(self, k: int) -> NDArray[np.float64]:
        """Return what the score of the label of each rank is multiplied by, (k,)."""
        slopes = np.full(k, float(self.slope))
        slopes[:1] += self.first_slope
        return slopes

    def logits(self, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return what probabilities are made of, (n, k), of scores (n, k), best first."""
        read = self.as_read(scores).astype(np.float64)
        z = read * self.slopes(read.shape[1]) + self.intercept
        z[:, :1] += self.first
        if not self.first_slope and self.first >= 0:
            return z
        most = z[:, 0] - LEAST_STEP_OF_LOGITS
        for j in range(1, z.shape[1]):
            is_above = z[:, j] > most
            z[is_above, j] = most[is_above]
            most -= LEAST_STEP_OF_LOGITS * is_above
        return z

    def log_odds(
        self, scores: NDArray[np.float32], others: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """Return the log-odds of labels beside the best of all other labels of the same point.

        Parameters
        ----------
        scores, others : float32, the same shape

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.scorers.calibration import Calibration
        >>> own, others = np.array([2, 1], np.float32), np.array([1, 2], np.float32)
        >>> Calibration(first=3.0).log_odds(own, others).tolist()
        [5.0, 1.0]
        """
        pairs = np.stack([np.maximum(scores, others), np.minimum(scores, others)], axis=-1)
        best, second = np.moveaxis(self.logits(pairs.reshape(-1, 2)).reshape(pairs.shape), -1, 0)
        odds: NDArray[np.float64] = np.where(scores > others, best, second)
        return odds

    def probabilities(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return probabilities, float32, of scores as `fit` takes them; padding stays -inf."""
        slope, intercept, first, more = self.curve
        first, more = (first, more) if scores.ndim > 1 else (0.0, 0.0)
        width = scores.shape[1] if scores.ndim > 1 else 1  # not -1: there may be no row at all
        rows = read_only(self.as_read(scores), np.float32).reshape(len(scores), width)
        result = np.empty(rows.shape, np.float32)
        logistic_rows(rows, slope, intercept, first, more, result)
        return result.reshape(scores.shape)

    def config(self) -> dict[str, Any]:
        """Return the parameters as JSON values."""
        return asdict(self)


def _lines(
    design: NDArray[np.float64], target: NDArray[np.float64], counts: NDArray[np.float64] | None
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the slope and intercept of all labels, and what the first ones have more.

    The latter is a line where enough first labels tell, else a number that is not negative.

    Parameters
    ----------
    design : float64 (3, n)
        Scores, scaled, whether a label is the first one, and ones.
    target : float64 (n,)
    counts : float64 (n,), optional
    """
    is_first = design[1] > 0
    n_right = (target[is_first] > RIGHT).sum()
    if min(n_right, is_first.sum() - n_right) >= LEAST_FOR_LINE and not is_first.all():
        wide = np.stack([design[0], design[0] * design[1], design[1], design[2]])
        slope, more, first, intercept = logistic_weights(wide, target, counts)
        if min(slope, slope + more) >= LEAST_SLOPE:
            return (slope, intercept), (more, first)
    slope, first, intercept = logistic_weights(design, target, counts)
    if first < 0:
        slope, _, intercept = logistic_weights(design * [[1], [0], [1]], target, counts)
    elif slope < 0:
        _, first, intercept = logistic_weights(design * [[0], [1], [1]], target, counts)
    return (max(slope, LEAST_SLOPE), intercept), (0.0, max(first, 0.0))


def _mean_probability(z: NDArray[np.float64]) -> float:
    """Return the mean of logits as probabilities."""
    return float(sigmoid(z, MOST_LESS).mean())


def _less_for(z: NDArray[np.float64], wanted: float, least: float = 0.0) -> float:
    """Return what to take from all logits so that their mean probability is as wanted."""
    low, high = least, MOST_LESS
    for _ in range(N_HALVINGS_OF_LESS):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_probability(z - middle) > wanted else (low, middle)
    return low


def _is_first(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return ones in the first column of a matrix, and nowhere in a vector."""
    first = np.zeros(scores.shape)
    if scores.ndim > 1:
        first[:, 0] = 1
    return first


def logistic_weights(
    design: NDArray[np.float64],
    target: NDArray[np.float64],
    counts: NDArray[np.float64] | None = None,
    offset: NDArray[np.float64] | float = 0.0,
    ridge: NDArray[np.float64] | float = RIDGE,
) -> NDArray[np.float64]:
    """Fit a logistic model by Newton's method, a trace of ridge keeping each step finite.

    Parameters
    ----------
    design : float64 (n_inputs, n)
    target : float64 (n,)
        From 0 to 1.
    counts : float64 (n,), optional
        How much each counts; all alike by default.
    offset : float64 (n,), optional
        Logits that the model is added to.
    ridge : float64 (n_inputs,), optional
        Half of it is what the square of each weight costs.

    Returns
    -------
    float64 (n_inputs,)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.calibration import logistic_weights
    >>> logistic_weights(np.ones((1, 4)), np.array([1.0, 1, 1, 0])).round(3).tolist()
    [1.099]
    """
    counts = np.ones(len(target)) if counts is None else counts
    weights = np.zeros(len(design))
    held = np.broadcast_to(ridge, len(design))
    loss = _logistic_loss(weights, design, target, counts, offset, held)
    for _ in range(N_NEWTON_STEPS):
        p = sigmoid(weights @ design + offset, MOST_SURE)
        slope = design @ (counts * (p - target)) + held * weights
        curvature = (design * (counts * p * (1 - p))) @ design.T + np.diag(held)
        step = np.linalg.solve(curvature, slope)
        # A whole step may lead beyond the valley, and the next one back to where this one began.
        for _ in range(N_HALVINGS):
            moved = weights - step
            new_loss = _logistic_loss(moved, design, target, counts, offset, held)
            if new_loss <= loss:
                break
            step /= 2
        weights, loss = moved, new_loss
        if np.abs(step).max() < 1e-9:
            break
    return weights


def _logistic_loss(
    weights: NDArray[np.float64],
    design: NDArray[np.float64],
    target: NDArray[np.float64],
    counts: NDArray[np.float64],
    offset: NDArray[np.float64] | float,
    held: NDArray[np.float64],
) -> float:
    """Return the logistic loss of all inputs, and the ridge's."""
    z = weights @ design + offset
    loss = counts @ (np.logaddexp(0, z) - target * z)
    return float(loss + (held * weights) @ weights / 2)
