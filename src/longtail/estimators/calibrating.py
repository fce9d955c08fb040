"""How probable answers are, learnt from points that a model has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.estimators.holding_out import unseen_if_any
from longtail.scorers.calibration import Calibration, n_calibrated

if TYPE_CHECKING:
    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData

__all__ = ["calibrated"]


def calibrated(
    scorer: Scorer, held_out: TrainingData, seen: TrainingData, n_threads: int
) -> Calibration:
    """Learn probabilities from the best labels of points that the scorer has not seen.

    Where there are none, from parts of those that it has seen: see `asked_in_part`.
    All answers to points without labels are wrong; nothing else is learnt from these.
    """
    points = unseen_if_any(held_out, seen)
    k = n_calibrated(points.labels)
    answers = [
        some.judged(*scorer.top_k(some.bags(), k, n_threads))
        for some in (points, points.unlabelled)
        if some is not None
    ]
    return Calibration.of_answers(*answers[0], points.judged_labels, wrong=answers[1:])
