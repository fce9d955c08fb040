"""How the scores of shortlist, classifier and re-ranker of a trained model become one; no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.scoring import fuse_scores
from longtail.scorers.blocks import top_k_in_blocks
from longtail.scorers.ranking import best_first

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.scorers.protocols import Answers

__all__ = ["ROWS_AT_ONCE", "PartialScores", "ScoreFusion", "fused_top_k"]

ROWS_AT_ONCE = 4096  # points whose shortlists are held in memory together


@dataclass(frozen=True)
class PartialScores:
    """What the parts of a model say of each point's shortlist; all arrays (n, size).

    Parameters
    ----------
    labels : int32
        The shortlist, padded with -1.
    nearness : float32
        Similarity to label representatives and labelled points, padded with -inf.
    logits : float32
        Of the 1-vs-All classifiers.
    reranker_logits : float32
        Of the re-ranker; no columns where there is none.

    Examples
    --------
    The parts do not agree on the first label, and the second place of the shortlist is padding.

    >>> import numpy as np
    >>> from longtail.scorers.fusion import PartialScores, ScoreFusion
    >>> labels, no_reranker = np.array([[4, -1]], np.int32), np.empty((1, 0), np.float32)
    >>> nearness, logits = np.array([[[2, -np.inf]], [[-2, -np.inf]]], np.float32)
    >>> parts = PartialScores(labels, nearness, logits, no_reranker)
    >>> ScoreFusion(alpha=0.5).combine(parts).round(2).tolist()
    [[0.5, -inf]]
    """

    labels: NDArray[np.int32]
    nearness: NDArray[np.float32]
    logits: NDArray[np.float32]
    reranker_logits: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class ScoreFusion:
    """Combine the scores of each shortlisted label into one.

    With the logistic function s, the paper has (section 4, "Log-time prediction")::

        alpha s(classifier) + (1 - alpha) s(nearness)                 and then
        beta s(re-ranker) + (1 - beta) (the above)

    The published code mixes the re-ranker in before the logistic function, and divides each part
    by its largest value in the row::

        z = beta re-ranker + (1 - beta) classifier
        alpha s(z) / max s(z) + (1 - alpha) s(nearness) / max s(nearness)

    Parameters
    ----------
    alpha : float
        Weight of the classifier against the shortlist's own similarity, in [0, 1].
    beta : float
        Weight of the re-ranker, in [0, 1].
    as_in_code : bool
        The code's way.

    Examples
    --------
    The classifier is for the first label, nearness for the second; alpha decides.

    >>> import numpy as np
    >>> from longtail.scorers.fusion import PartialScores, ScoreFusion
    >>> labels, nearness = np.array([[4, 7]], np.int32), np.array([[0, 1]], np.float32)
    >>> logits, no_reranker = np.array([[2, 0]], np.float32), np.empty((1, 0), np.float32)
    >>> parts = PartialScores(labels, nearness, logits, no_reranker)
    >>> [ScoreFusion(alpha=a).combine(parts).argmax().item() for a in (0.9, 0.1)]
    [0, 1]
    """

    alpha: float = 0.5
    beta: float = 0.5
    as_in_code: bool = False

    def __post_init__(self) -> None:
        """Refuse weights that are none."""
        for name, weight in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0 <= weight <= 1:
                raise InputError(f"{name} must be from 0 to 1, got {weight}.")

    def combine(self, parts: PartialScores, n_threads: int = 1) -> NDArray[np.float32]:
        """Return float32 (n, size), padded with -inf."""
        scores = np.empty(parts.labels.shape, np.float32)
        kinds = (parts.nearness, parts.logits, parts.reranker_logits)
        nearness, logits, reranker_logits = (read_only(kind, np.float32) for kind in kinds)
        mix = (float(self.alpha), float(self.beta), bool(self.as_in_code))

        def work(start: int, stop: int) -> None:
            fuse_scores(nearness, logits, reranker_logits, *mix, start, stop, scores)

        over_row_chunks(work, len(scores), n_threads=n_threads, chunk=256)
        return scores

    def config(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return asdict(self)


def fused_top_k(
    partial_scores: Callable[[Bags, int], PartialScores],
    fusion: ScoreFusion,
    bags: Bags,
    k: int,
    n_threads: int = 1,
) -> Answers:
    """Return the best k labels of each bag by fused scores, a few thousand bags at a time.

    Parameters
    ----------
    partial_scores : callable
        Of bags and a number of threads.
    fusion : ScoreFusion
    bags : Bags
    k, n_threads : int

    Returns
    -------
    ids : int32 (n, k)
    scores : float32 (n, k)
        As `best_first` returns them.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.scorers.fusion import PartialScores, ScoreFusion, fused_top_k
    >>> labels, nearness = np.array([[4, 7]], np.int32), np.array([[0, 1]], np.float32)
    >>> logits, no_reranker = np.array([[2, 0]], np.float32), np.empty((1, 0), np.float32)
    >>> parts = PartialScores(labels, nearness, logits, no_reranker)
    >>> bag = Bags.one(np.array([0], np.int32), np.array([1], np.float32))
    >>> fused_top_k(lambda bags, n_threads: parts, ScoreFusion(alpha=0.1), bag, 3)[0].tolist()
    [[7, 4, -1]]
    """

    def answer(some: Bags) -> Answers:
        parts = partial_scores(some, n_threads)
        return best_first(parts.labels, fusion.combine(parts, n_threads), k, n_threads)

    return top_k_in_blocks(bags, k, ROWS_AT_ONCE, answer)
