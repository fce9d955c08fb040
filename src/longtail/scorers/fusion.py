"""How the scores of shortlist, classifier and re-ranker become one, and how the mix is chosen."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.scoring import best_labels, fuse_scores
from longtail.metrics import precision_at_k, ps_precision_at_k
from longtail.metrics.hits import true_among
from longtail.metrics.propensity import inverse_propensities_in
from longtail.scorers.blocks import top_k_in_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.bags import Bags
    from longtail.training.run import TrainingData, TrainingRun

__all__ = [
    "ROWS_AT_ONCE",
    "FusesScores",
    "PartialScores",
    "ScoreFusion",
    "best_first",
    "choose_fusion",
    "fused_top_k",
    "fusion_learnt",
    "head_and_tail_precision",
    "just_below",
]

ROWS_AT_ONCE = 4096  # points whose shortlists are held in memory together
GRID = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9)  # weights that are tried


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


class FusesScores(Protocol):
    """A scorer whose parts each say something of a shortlist."""

    @property
    def fusion(self) -> ScoreFusion:
        """How what they say becomes one score."""
        ...

    def partial_scores(self, bags: Bags, n_threads: int = 1) -> PartialScores:
        """Return what each part says of each bag's shortlist."""
        ...


def best_first(
    labels: NDArray[np.int32], scores: NDArray[np.float32], k: int, n_threads: int = 1
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the best k labels of each row and their scores.

    Parameters
    ----------
    labels : int32 (n, size)
        Padded with -1 at the end.
    scores : float32 (n, size)
    k : int
    n_threads : int

    Returns
    -------
    ids : int32 (n, k)
        Descending, ties by smaller id, padded with -1.
    scores : float32 (n, k)
        Padded with -inf.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.fusion import best_first
    >>> labels, scores = np.array([[4, 7, 9]], np.int32), np.array([[1, 3, 3]], np.float32)
    >>> best_first(labels, scores, 2)[0].tolist()
    [[7, 9]]
    """
    labels, scores = read_only(labels, np.int32), read_only(scores, np.float32)
    best_ids = np.empty((len(labels), k), np.int32)
    best_scores = np.empty((len(labels), k), np.float32)

    def work(start: int, stop: int) -> None:
        best_labels(labels, scores, start, stop, best_ids, best_scores)

    over_row_chunks(work, len(labels), n_threads=n_threads, chunk=256)
    return best_ids, best_scores


def just_below(labels: NDArray[np.int32], scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the largest number below all scores of each row, (n, 1); padding does not count.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.fusion import just_below
    >>> labels, scores = np.array([[3, 5, -1]]), np.array([[2, 1, -np.inf]], np.float32)
    >>> bool(0.9999 < just_below(labels, scores) < 1)
    True
    """
    least = np.min(scores, axis=1, keepdims=True, initial=np.inf, where=labels >= 0)
    below: NDArray[np.float32] = np.nextafter(least, np.float32(-np.inf))
    return below


def fused_top_k(
    partial_scores: Callable[[Bags, int], PartialScores],
    fusion: ScoreFusion,
    bags: Bags,
    k: int,
    n_threads: int = 1,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
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

    def answer(some: Bags) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        parts = partial_scores(some, n_threads)
        return best_first(parts.labels, fusion.combine(parts, n_threads), k, n_threads)

    return top_k_in_blocks(bags, k, ROWS_AT_ONCE, answer)


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

    Returns
    -------
    float
        At most 6.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.scorers.fusion import head_and_tail_precision
    >>> ids = np.array([[0, 1, -1, -1, -1]], np.int32)
    >>> truth = csr_array(np.array([[1, 0]]))
    >>> round(head_and_tail_precision(ids, truth, np.ones(2)), 2)  # 1 + 1/3 + 1/5, and three 1
    4.53
    """
    return sum(
        precision_at_k(ids, truth, k) + ps_precision_at_k(ids, truth, k, inverse_propensities)
        for k in (1, 3, 5)
    )


def choose_fusion(
    parts: PartialScores,
    truth: csr_array,
    inverse_propensities: NDArray[np.float64],
    *,
    as_in_code: bool = False,
    grid: Sequence[float] = GRID,
    n_threads: int = 1,
    set_aside: csr_array | None = None,
) -> ScoreFusion:
    """Choose alpha and beta on held-out rows of the training data.

    The paper says that alpha trades vanilla against propensity-scored metrics (appendix A.1), so
    `head_and_tail_precision` decides. Both weights are tried on a grid together:
    a held-out set of a thousand points does not carry more.

    Parameters
    ----------
    parts : PartialScores
        Of the held-out points.
    truth : csr_array (n, n_labels)
    inverse_propensities : float64 (n_labels,)
    as_in_code : bool
    grid : sequence of float
        Values tried for alpha, and for beta where there is a re-ranker.
    n_threads : int
    set_aside : csr_array (n, n_labels) or None
        Pairs that count neither as right nor as wrong; none of them is in `truth`.

    Returns
    -------
    ScoreFusion
        Of equally good ones that with the smallest alpha, then the smallest beta, if `grid` rises.

    Raises
    ------
    InputError
        If `truth` is not for the points of `parts`.

    Examples
    --------
    The classifier is for the true label, nearness is not: most weight goes to the classifier.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.scorers.fusion import PartialScores, choose_fusion
    >>> labels, nearness = np.array([[0, 1]], np.int32), np.array([[0, 1]], np.float32)
    >>> logits, no_reranker = np.array([[1, 0]], np.float32), np.empty((1, 0), np.float32)
    >>> parts = PartialScores(labels, nearness, logits, no_reranker)
    >>> truth = csr_array(np.array([[1, 0]]))
    >>> choose_fusion(parts, truth, np.ones(2), grid=(0.1, 0.4, 0.9)).alpha
    0.9
    """
    is_aside = False if set_aside is None else true_among(parts.labels, set_aside)

    def quality(fusion: ScoreFusion) -> float:
        scores = np.where(is_aside, np.float32(-np.inf), fusion.combine(parts, n_threads))
        ids, _ = best_first(parts.labels, scores, 5, n_threads)
        return head_and_tail_precision(ids, truth, inverse_propensities)

    betas = grid if parts.reranker_logits.shape[1] else (0.0,)
    candidates = [
        ScoreFusion(alpha=alpha, beta=beta, as_in_code=as_in_code)
        for alpha in grid
        for beta in betas
    ]
    return max(candidates, key=quality)


def fusion_learnt(
    scorer: FusesScores,
    data: TrainingData,
    held_out: TrainingData,
    run: TrainingRun,
    *,
    grid: Sequence[float] = GRID,
) -> ScoreFusion:
    """Return the fusion of a scorer that is best on held-out points; see `choose_fusion`.

    Parameters
    ----------
    scorer : FusesScores
    data : TrainingData
        That the scorer has learnt from: what is rare there, counts for more.
    held_out : TrainingData
        None keep the fusion that the scorer has.
    run : TrainingRun
    grid : sequence of float

    Returns
    -------
    ScoreFusion
    """
    if not held_out.features.shape[0]:
        return scorer.fusion
    with run.stage("score fusion"):
        return choose_fusion(
            scorer.partial_scores(held_out.bags(), run.n_threads),
            held_out.judged_labels,
            inverse_propensities_in(data.labels),
            as_in_code=scorer.fusion.as_in_code,
            grid=grid,
            n_threads=run.n_threads,
            set_aside=held_out.set_aside,
        )
