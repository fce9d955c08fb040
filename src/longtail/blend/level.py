"""Scores of a blend made comparable between points, so that a probability says how sure it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.blend.score_network import log_sums
from longtail.scorers.calibration import LEAST_CALIBRATED, logistic_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.evidence import Evidence
    from longtail.blend.score_network import ScoreNetwork

__all__ = ["levelled"]

LEAST_OF_EACH = 20  # candidates that are right, and that are wrong, to learn a level from


def levelled(
    network: ScoreNetwork, evidence: Evidence, is_true: NDArray[np.bool_], n_threads: int = 1
) -> ScoreNetwork:
    """Return the network with the level that tells best which answers are right.

    A blend learns to rank the candidates of a point, so what all of them gain or lose together
    means nothing. A softmax takes just that away, but assumes that a point has one label. How much
    of it to take, from none to all, a logistic model learns from the best candidates.

    Parameters
    ----------
    network : ScoreNetwork
    evidence : Evidence
        Of held-out points.
    is_true : bool (n, size)
        Which candidates are true.
    n_threads : int

    Examples
    --------
    The first point's scores are 10 higher than the second's, of which the best is right: that the
    best is far ahead of the others says more.

    >>> import numpy as np
    >>> from longtail.blend.level import levelled
    >>> from longtail.blend.evidence import Evidence
    >>> from longtail.blend.score_network import ScoreNetwork
    >>> values = np.array([[[0, 0, 0]], [[9, 0, 0]]] * 30, np.float32)
    >>> labels = np.tile(np.arange(3, dtype=np.int32), (60, 1))
    >>> evidence = Evidence(labels, values, np.ones(60, np.float32), np.zeros(3, np.float32))
    >>> is_true = np.array([[0, 0, 0], [1, 0, 0]] * 30, bool)
    >>> network = ScoreNetwork.of_source(0, n_sources=1)
    >>> levelled(network, evidence, is_true).level.tolist()
    [1.0]
    """
    scores = network.scores(evidence, n_threads)
    judged = evidence.of_judged(scores)
    best = np.argsort(-judged, axis=1, kind="stable")[:, :LEAST_CALIBRATED]
    value = np.take_along_axis(judged, best, axis=1).astype(np.float64)
    right = np.take_along_axis(is_true, best, axis=1)
    is_first = np.zeros(value.shape)
    is_first[:, :1] = 1
    total = np.repeat(log_sums(scores)[:, np.newaxis].astype(np.float64), value.shape[1], axis=1)
    known = np.isfinite(value)
    if min(right[known].sum(), (~right[known]).sum()) < LEAST_OF_EACH:
        return network
    inputs = (value[known], total[known])
    centred = [(x - x.mean()) / max(x.std(), 1e-6) for x in inputs]
    design = np.stack([*centred, is_first[known], np.ones(len(inputs[0]))])
    of_value, of_total, *_ = logistic_weights(design, right[known].astype(np.float64))
    of_value /= max(inputs[0].std(), 1e-6)
    of_total /= max(inputs[1].std(), 1e-6)
    if of_value <= 0:
        return network
    level = np.clip(-of_total / of_value, 0, 1)
    return replace(network, level=np.full(1, level, np.float32))
