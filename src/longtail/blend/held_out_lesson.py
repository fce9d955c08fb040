"""What a blend learns from held-out points: how far to trust which score, and how far itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from longtail.blend.brevity import Answered, Brevity
from longtail.blend.network_training import NetworkTraining
from longtail.blend.only_held_out import only_held_out, with_labels_hidden
from longtail.blend.rarity import share_for_order, told_scores
from longtail.blend.score_network import best_labels
from longtail.metrics.propensity import inverse_propensities_in
from longtail.scorers.calibration import Calibration, n_calibrated

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.blend.evidence import Evidence
    from longtail.blend.score_network import ScoreNetwork
    from longtail.data.bags import Bags
    from longtail.features.encoder import UnitEncoder
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["NEARNESS_ASKED", "HeldOutLesson"]

NEARNESS_ASKED = 500  # points: how near the nearest other one is in the end
LEAST_FOR_SLOPE = 20  # points
IN_VAIN = 0.25  # of what scores rise by once there are more points to be near
N_OF_SUM = 20  # best labels of a point from which probabilities of a weighted sum are learnt


class _EncodedBlend(Protocol):
    """A blend with the encoder of its points, such as `BlendedScorer`."""

    @property
    def encoder(self) -> UnitEncoder:
        """What makes vectors of points."""
        ...

    def evidence_of(self, points: NDArray[np.float32], bags: Bags, n_threads: int = 1) -> Evidence:
        """See `Blend.evidence_of`."""
        ...


@dataclass(frozen=True, kw_only=True)
class HeldOutLesson:
    """Candidates of some points, what the sources say of them, and which are true.

    Parameters
    ----------
    evidence : Evidence
    truth : csr_array (n, n_labels)
        The labels that answers are judged by.
    seen : csr_array (n_seen, n_labels)
        Those of the points that the sources have learnt from.
    is_unseen : bool
        Whether the points are others than these.
    unlabelled : Evidence or None
        Of points beside these that have no label, and by which probabilities are learnt, too.
    in_part : (Evidence, csr_array) or None
        Of fragments of some of these, and the labels that answers to them are judged by.

    Examples
    --------
    Ten points have the same two candidates; of two sources, the second ranks the true one first.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.evidence import Evidence
    >>> from longtail.blend.held_out_lesson import HeldOutLesson
    >>> from longtail.training.run import TrainingRun
    >>> labels, values = np.array([[0, 1]] * 10, np.int32), [[[0.0, 2.0], [2.0, 0.0]]] * 10
    >>> near, common = np.ones(10, np.float32), np.zeros(2, np.float32)
    >>> evidence = Evidence(labels, np.array(values, np.float32), near, common)
    >>> truth = csr_array([[1.0, 0.0]] * 10)
    >>> lesson = HeldOutLesson(evidence=evidence, truth=truth, seen=truth, is_unseen=True)
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> network, calibration = lesson.learn(np.zeros(2, np.float32), run)
    >>> network.scores(evidence)[0].argmax().item()
    0
    """

    evidence: Evidence
    truth: csr_array
    seen: csr_array
    is_unseen: bool
    unlabelled: Evidence | None = None
    in_part: tuple[Evidence, csr_array] | None = None

    @classmethod
    def of(
        cls,
        scorer: _EncodedBlend,
        shown: TrainingData,
        points: NDArray[np.float32],
        seen: csr_array,
        *,
        is_unseen: bool,
        n_threads: int,
    ) -> Self:
        """Show points to the sources of a blend, and return what they teach.

        Parameters
        ----------
        scorer : BlendedScorer or EncodedScorer
        shown : TrainingData
        points : float32 (n, dimension)
            What its encoder makes of them.
        seen : csr_array (n_seen, n_labels)
        is_unseen : bool
        n_threads : int
        """
        beside, unlabelled = shown.unlabelled, None
        if beside is not None:
            vectors = scorer.encoder.encode(beside.bags(), n_threads)
            unlabelled = _evidence_of(scorer, beside, vectors, n_threads)
        fragments, in_part = shown.in_part, None
        if fragments is not None and is_unseen:
            vectors = scorer.encoder.encode(fragments.bags(), n_threads)
            of_fragments = _evidence_of(scorer, fragments, vectors, n_threads)
            in_part = of_fragments, fragments.judged_labels
        return cls(
            evidence=_evidence_of(scorer, shown, points, n_threads),
            truth=shown.judged_labels,
            seen=seen,
            is_unseen=is_unseen,
            unlabelled=unlabelled,
            in_part=in_part,
        )

    def without_own_labels(self, labels: csr_array, run: TrainingRun) -> Self:
        """Return it without those of its points' `labels` that no others have.

        See `only_held_out`. Where the sources learn from these points too, in the end, there will
        be no such labels.
        """
        is_aside = only_held_out(self.seen, labels, run.seed_for("only held out"))
        evidence, truth = with_labels_hidden(self.evidence, self.truth, is_aside)
        in_part = self.in_part and with_labels_hidden(*self.in_part, is_aside)
        return replace(self, evidence=evidence, truth=truth, in_part=in_part)

    def learn(
        self, tail_weights: NDArray[np.float32], run: TrainingRun
    ) -> tuple[ScoreNetwork, Calibration]:
        """Return a network that blends all scores, and how probable its answers are.

        Parameters
        ----------
        tail_weights : float32 (n_labels,)
            Added to the blended scores for the order's sake; see `longtail.blend.rarity`.
        run : TrainingRun
        """
        training = NetworkTraining(is_unseen=self.is_unseen)
        evidence, truth = self.evidence, self.truth
        inverse_propensities = inverse_propensities_in(self.seen)
        taught = training.taught(evidence, truth, inverse_propensities, run)
        network, by_heart = taught.network, taught.by_heart
        of_ranks = _counts_of_ranks(n_calibrated(truth), evidence.labels.shape[1], taught.is_sum)
        shown = [some for some in (evidence, self.unlabelled) if some is not None]
        of_all = (tail_weights, len(of_ranks), run.n_threads)
        ranked = [best_labels(network, some, *of_all) for some in shown]
        share = 1.0
        if self.is_unseen:
            share = share_for_order(ranked, truth, tail_weights, of_ranks)
        network = replace(network, for_order=np.full(1, share, np.float32))
        answers = [(ids, told_scores(ids, scores, tail_weights, share)) for ids, scores in ranked]
        calibration = Calibration.of_answers(
            *answers[0], truth, wrong=answers[1:], weights=of_ranks
        )
        calibration = calibration.doubting(answers[0][1][:, 0], by_heart)
        if self.in_part is None:
            return network, calibration
        whole = Answered.of(*answers[0], truth, evidence.n_tokens)
        of_parts, truth_of_parts = self.in_part
        of_fragments = best_labels(network, of_parts, *of_all)
        fragments = Answered.of(*of_fragments, truth_of_parts, of_parts.n_tokens)
        return _less_sure_of_fragments(network, calibration, whole, fragments, of_ranks)

    def with_more_points(
        self,
        network: ScoreNetwork,
        calibration: Calibration,
        tail_weights: NDArray[np.float32],
        nearness: NDArray[np.float32],
        n_points: int,
        n_threads: int = 1,
    ) -> Calibration:
        """Return how probable answers are once the sources have learnt from more points.

        A training point is then nearer, and sources say more, but answers are not as much more
        often right. Of what nearness rises by, times how much scores rise with it, a quarter tells
        nothing.

        Parameters
        ----------
        network, calibration
            What `learn` returned.
        tail_weights : float32 (n_labels,)
        nearness : float32 (n_asked,)
            Similarity of the nearest training point now, of some of the points, themselves left
            out.
        n_points : int
            These are among the first so many of the lesson.
        n_threads : int
        """
        first = self.evidence.of_rows(slice(n_points))
        before = first.nearness
        if not self.is_unseen or not len(before) or not len(nearness):
            return calibration
        told = best_labels(network, first, tail_weights, 1, n_threads)[1][:, 0]
        nearer = float(np.median(nearness)) - float(np.median(before))
        return calibration.of_higher(IN_VAIN * max(_slope(before, told), 0.0) * max(nearer, 0.0))


def _slope(x: NDArray[np.float32], y: NDArray[np.float32]) -> float:
    """Return how much y rises with x in a straight line through them, 0 where few tell."""
    known = np.isfinite(y)
    x, y = x[known].astype(np.float64), y[known].astype(np.float64)
    if len(x) < LEAST_FOR_SLOPE or np.ptp(x) == 0:
        return 0.0
    return float(np.cov(x, y)[0, 1] / x.var(ddof=1))


def _less_sure_of_fragments(
    network: ScoreNetwork,
    calibration: Calibration,
    whole: Answered,
    fragments: Answered,
    of_ranks: NDArray[np.float64],
) -> tuple[ScoreNetwork, Calibration]:
    """Return both with what fragments tell; whole texts stay as probable on average."""
    brevity = Brevity.told_by(calibration, whole, fragments, of_ranks)
    if brevity.is_none:
        return network, calibration
    first = whole.scores[:, :1]
    lower = brevity.lowered(first, whole.n_tokens)
    network = replace(network, brevity=np.array(brevity, np.float32))
    return network, calibration.as_sure(lower[:, 0], of=first[:, 0])


def _counts_of_ranks(n_usual: int, n_candidates: int, is_sum: bool) -> NDArray[np.float64]:
    """Return how much the label of each rank counts where probabilities are learnt.

    A network learns to put wrong labels far behind. Of a sum, also of one that a network corrects
    but a little, the best labels do not tell how improbable others are, so these are learnt from,
    too, and count as much all together.
    """
    counts = np.ones(max(n_usual, N_OF_SUM if is_sum else 0))
    n_behind = len(counts) - n_usual
    counts[n_usual:] = n_usual / max(n_behind, 1)
    return counts[:n_candidates]


def _evidence_of(
    scorer: _EncodedBlend, data: TrainingData, points: NDArray[np.float32], n_threads: int
) -> Evidence:
    """Return what the sources say of points, encoded, less what is set aside."""
    return scorer.evidence_of(points, data.bags(), n_threads).setting_aside(data.set_aside)
