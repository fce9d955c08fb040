"""How much less a blend believes of a text that says less than texts do, as a fragment of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from longtail.kernels.answer import LEAST_LEFT
from longtail.metrics.hits import true_among
from longtail.scorers.calibration import logistic_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.scorers.calibration import Calibration

    Floats = NDArray[np.float32]
    Doubles = NDArray[np.float64]

__all__ = ["Answered", "Brevity"]

USUAL = 0.1  # of the texts have fewer tokens than is usual
COUNT_OF_FRAGMENTS = 0.1  # all together, to one of the whole texts: most that is asked is whole
MOST_LOST = 50.0  # for each unit of a logarithm, where no fragment is answered right


class Answered(NamedTuple):
    """The best labels of some points, and how many tokens these have.

    Attributes
    ----------
    scores : float32 (n, k)
        Best first, padded with -inf.
    is_right : bool (n, k)
    n_tokens : int32 (n,)
    """

    scores: Floats
    is_right: NDArray[np.bool_]
    n_tokens: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        ids: NDArray[np.int32],
        scores: Floats,
        truth: csr_array,
        n_tokens: NDArray[np.int32] | None,
    ) -> Self:
        """Judge answers by the true labels (n, n_labels); without numbers there are no tokens."""
        counted = np.zeros(len(ids), np.int32) if n_tokens is None else n_tokens
        return cls(scores, true_among(ids, truth), counted)


class Brevity(NamedTuple):
    """What scores lose where a text has fewer tokens than texts usually have.

    A network has learnt from whole texts, and takes a fragment for one: what is said of its few
    words it believes as if nothing else had been there to say. How many tokens are known of a text
    tells the two apart, though not where whole texts are as short. Texts that are not among the
    shortest tenth stay as they are.

    Attributes
    ----------
    usual : float
        The logarithm of one more than the least usual number of tokens.
    lost : float
        What all scores lose for each unit that a text's own logarithm is below that.
    shrunk : float
        By how much scores come nearer to the middle for each such unit, in shares of one.
    middle : float
        The score of a label that is as often right as wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.blend.brevity import Brevity
    >>> brevity = Brevity(usual=np.log(10), lost=1.0, shrunk=0.0, middle=0.0)
    >>> scores = np.array([[3, 2, -np.inf], [3, 2, 1]], np.float32)
    >>> brevity.lowered(scores, np.array([4, 9])).round(2).tolist()
    [[2.309999942779541, 1.309999942779541, -inf], [3.0, 2.0, 1.0]]
    """

    usual: float = 0.0
    lost: float = 0.0
    shrunk: float = 0.0
    middle: float = 0.0

    @classmethod
    def told_by(
        cls, calibration: Calibration, whole: Answered, fragments: Answered, counts: Doubles
    ) -> Self:
        """Learn from held-out texts, and fragments of them.

        Parameters
        ----------
        calibration : Calibration
            Learnt from the whole texts.
        whole, fragments : Answered
        counts : float64 (k,)
            How much the labels of each rank count.

        Returns
        -------
        Brevity
            By which nothing is lost, where fragments are answered as well as is said.

        Examples
        --------
        The best label of a text is right with a probability of one half, as is said; that of a
        fragment in one of ten.

        >>> import numpy as np
        >>> from longtail.blend.brevity import Answered, Brevity
        >>> from longtail.scorers.calibration import Calibration
        >>> def texts(n_right, n_tokens):
        ...     is_right = np.arange(100)[:, np.newaxis] < n_right
        ...     return Answered(np.zeros((100, 1), np.float32), is_right, np.full(100, n_tokens))
        >>> plain = Calibration()
        >>> brevity = Brevity.told_by(plain, texts(50, 9), texts(10, 2), np.ones(1))
        >>> scores = brevity.lowered(np.zeros((1, 1), np.float32), np.array([2]))
        >>> plain.probabilities(scores).round(1).tolist()
        [[0.10000000149011612]]
        """
        logarithms = np.log1p(whole.n_tokens)
        none = cls(
            usual=float(np.quantile(logarithms, USUAL)) if len(logarithms) else 0.0,
            middle=-calibration.intercept / calibration.slope,
        )
        inputs, right, said, weights = [], [], [], []
        for some, count in ((whole, 1.0), (fragments, COUNT_OF_FRAGMENTS)):
            known = np.isfinite(some.scores)
            missing = np.broadcast_to(none.missing(some.n_tokens)[:, np.newaxis], known.shape)
            above = some.scores[known].astype(np.float64) - none.middle
            slopes = np.broadcast_to(calibration.slopes(known.shape[1]), known.shape)[known]
            inputs.append(-slopes * missing[known] * [np.ones(len(above)), above])
            right.append(some.is_right[known])
            said.append(calibration.logits(some.scores)[known])
            share = count * len(whole.scores) / max(len(some.scores), 1)
            weights.append(np.broadcast_to(share * counts, known.shape)[known])
        x, is_right = np.concatenate(inputs, axis=1), np.concatenate(right)
        of_labels = np.concatenate(said), np.concatenate(weights)
        lost, shrunk = _positive_weights(x, is_right, *of_labels)
        return none._replace(lost=min(lost, MOST_LOST), shrunk=shrunk)

    @property
    def is_none(self) -> bool:
        """Whether nothing is lost."""
        return not self.lost and not self.shrunk

    def missing(self, n_tokens: NDArray[np.int32]) -> Doubles:
        """Return how far the logarithm of one more than each number is below the usual one."""
        below: Doubles = self.usual - np.log1p(n_tokens.astype(np.float64))
        return np.maximum(below, 0)

    def lowered(self, scores: Floats, n_tokens: NDArray[np.int32]) -> Floats:
        """Return what is left of scores (n, k) of texts of so many tokens (n,)."""
        if self.is_none:
            return scores
        missing = self.missing(n_tokens).astype(np.float32)[:, np.newaxis]
        lost, shrunk, middle = (np.float32(x) for x in (self.lost, self.shrunk, self.middle))
        factor = np.maximum(1 - shrunk * missing, LEAST_LEFT)
        lower = middle + (scores - middle) * factor - lost * missing
        left: Floats = np.where((missing > 0) & np.isfinite(scores), lower, scores)
        return left


def _positive_weights(
    x: Doubles, is_right: NDArray[np.bool_], offset: Doubles, counts: Doubles
) -> tuple[float, float]:
    """Return the logistic weights of two inputs, or of one if the other's would be negative."""
    n_right, n_wrong = int(is_right.sum()), int((~is_right).sum())
    target = np.where(is_right, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
    weights = np.zeros(2)
    some = np.flatnonzero(x.any(axis=1))
    while len(some):
        weights[:] = 0
        weights[some] = logistic_weights(x[some], target, counts, offset)
        if weights.min() >= 0:
            break
        some = np.delete(some, weights[some].argmin())
    return (float(weights[0]), float(weights[1])) if len(some) else (0.0, 0.0)
