"""How probable answers are, learnt from points that a model has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.scorers.calibration import Calibration, n_calibrated

if TYPE_CHECKING:
    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData

__all__ = ["LARGEST_HELD_OUT", "calibrated", "unseen_if_any"]

LARGEST_HELD_OUT = 2_500  # points: enough for two weights and a calibration


def unseen_if_any(held_out: TrainingData, seen: TrainingData) -> TrainingData:
    """Return the points that nothing was learnt from or, where there are none, some others."""
    return held_out if held_out.labels.shape[0] else seen.of_some_points(LARGEST_HELD_OUT)


def calibrated(
    scorer: Scorer, held_out: TrainingData, seen: TrainingData, n_threads: int
) -> Calibration:
    """Learn probabilities from the best labels of points that the scorer has not seen.

    Where there are none, from points that it has seen: surer than it should be, but not blind.
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
