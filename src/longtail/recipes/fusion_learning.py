"""How the fusion of a scorer's parts is chosen, on held-out rows of the training data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from longtail.metrics.head_and_tail import head_and_tail_precision
from longtail.metrics.hits import true_among
from longtail.metrics.propensity import inverse_propensities_in
from longtail.scorers.fusion import ScoreFusion
from longtail.scorers.ranking import best_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.bags import Bags
    from longtail.scorers.fusion import PartialScores
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["FusesScores", "choose_fusion", "fusion_learnt"]

GRID = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9)  # weights that are tried


class FusesScores(Protocol):
    """A scorer whose parts each say something of a shortlist."""

    @property
    def fusion(self) -> ScoreFusion:
        """How what they say becomes one score."""
        ...

    def partial_scores(self, bags: Bags, n_threads: int = 1) -> PartialScores:
        """Return what each part says of each bag's shortlist."""
        ...


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
    `head_and_tail_precision` decides. Both weights are tried on a grid together: a thousand
    held-out points do not tell more than that.

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
    >>> from longtail.recipes.fusion_learning import choose_fusion
    >>> from longtail.scorers.fusion import PartialScores
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
        What the scorer has learnt from: labels that are rare there count for more.
    held_out : TrainingData
        Without any, the scorer keeps its fusion.
    run : TrainingRun
    grid : sequence of float
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
