"""How probable answers are, learnt from points that a model has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from longtail.errors import InputError, named
from longtail.estimators.holding_out import unseen_if_any
from longtail.scorers.calibration import Calibration, n_calibrated
from longtail.scorers.protocols import ScoresShares

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    missing = [name for name in ("top_k", "to_arrays", "config") if not hasattr(scorer, name)]
    if missing:
        raise InputError(
            "`_learn` of a recipe must return a scorer, such as those in longtail.scorers; "
            f"{named(scorer)} has no {', '.join(missing)}."
        )
    points = unseen_if_any(held_out, seen).points
    k = n_calibrated(points.labels)
    n_labels = points.labels.shape[1]
    answers = [
        some.judged(*_checked(scorer, scorer.top_k(some.bags(), k, n_threads), some, k, n_labels))
        for some in (points, points.unlabelled)
        if some is not None
    ]
    are_shares = isinstance(scorer, ScoresShares) and scorer.scores_are_shares
    judged = (*answers[0], points.judged_labels)
    return Calibration.of_answers(*judged, wrong=answers[1:], of_shares=are_shares)


def _checked(
    scorer: Scorer, found: Any, points: TrainingData, k: int, n_labels: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what `Scorer.top_k` found, or raise InputError, unless the scorer is longtail's."""
    if type(scorer).__module__.startswith("longtail."):
        return cast("tuple[NDArray[np.int32], NDArray[np.float32]]", found)
    name, shape = type(scorer).__name__, (points.labels.shape[0], k)
    if not isinstance(found, tuple) or [np.shape(part) for part in found] != [shape] * 2:
        got = [np.shape(part) for part in found] if isinstance(found, tuple) else named(found)
        raise InputError(
            f"`top_k` of {name} must return ids and scores of the {shape[0]} points, two arrays of "
            f"{shape}, got {got}. Pad them with -1 and -inf."
        )
    ids, scores = np.asarray(found[0]), np.asarray(found[1])
    if ids.dtype.kind not in "iu" or (ids.size and not -1 <= ids.min() <= ids.max() < n_labels):
        raise InputError(
            f"`top_k` of {name} must return ids of labels, from 0 to {n_labels - 1}, or -1 for "
            f"none, got {ids.dtype} from {ids.min(initial=0)} to {ids.max(initial=0)}."
        )
    if scores.dtype.kind != "f" or np.isnan(scores).any():
        raise InputError(
            f"`top_k` of {name} must return scores as floats, -inf for none, got {scores.dtype}, "
            "or NaN."
        )
    return ids.astype(np.int32), scores.astype(np.float32)
