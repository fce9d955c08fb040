"""Scores of a blend made comparable between points, so that a probability says how sure it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.blend.score_network import log_sums
from longtail.kernels.blend import LARGEST_VIEW, N_CONTEXT_VIEWS, N_VIEWS
from longtail.scorers.calibration import LEAST_CALIBRATED, logistic_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.evidence import Evidence
    from longtail.blend.score_network import ScoreNetwork

    Floats = NDArray[np.float32]

__all__ = ["levelled"]

LEAST_OF_EACH = 20  # candidates that are right, and that are wrong, to learn a level from
# How firmly the weights of a point's views, of a spread of 1, are held to 0. From 10 to 300 it is
# much the same, of two hundred held-out points and of thousands.
HELD, LEAST_HELD = 100.0, 1e-6
# Of a source; nearness is the last view of all: see `longtail.kernels.blend.view_evidence`.
BEST_VIEW = 2
N_FREE = 4  # inputs before the views: score, logarithm of the sum, whether it is the best, one
MOST_TAKEN = 0.8  # of what all candidates have in common, so that views of the point can be added
LEAST_SPREAD, LEAST_OF_VIEW = 1e-6, 1e-4
# Similarity from which a training point is nearly the same text: another edition of a book, say.
# What it says is then right far more often than a straight line through less near ones says. With
# 0.95 it is much the same; with 0.8 half of that is seen.
NEARLY_SAME = 0.9


def levelled(
    network: ScoreNetwork,
    evidence: Evidence,
    is_true: NDArray[np.bool_],
    n_threads: int = 1,
    *,
    is_unseen: bool = True,
) -> ScoreNetwork:
    """Return the network with the level that tells best which answers are right.

    A blend learns to rank the candidates of a point, so what all of them gain or lose together
    means nothing. A softmax takes just that away, but assumes that a point has one label. How much
    of it to take a logistic model learns from the best candidates. From the same it learns what
    the views of the point itself tell: how much each source says of its best candidate, and how
    near the nearest training point is, and whether it is nearly the same. This is added to all
    candidates.

    Parameters
    ----------
    network : ScoreNetwork
    evidence : Evidence
        Of held-out points.
    is_true : bool (n, size)
        Which candidates are true.
    n_threads : int
    is_unseen : bool
        Whether the sources have not learnt from the points. What they say of points that they have
        does not tell what they will say of others, so the level alone is learnt, from none to all.

    Examples
    --------
    Both points' candidates are as far apart. Of the second the source says more in all, and there
    the best is right.

    >>> import numpy as np
    >>> from longtail.blend.level import levelled
    >>> from longtail.blend.evidence import Evidence
    >>> from longtail.blend.score_network import ScoreNetwork
    >>> values = np.array([[[1, 0, 0]], [[3, 2, 2]]] * 300, np.float32)
    >>> labels = np.tile(np.arange(3, dtype=np.int32), (600, 1))
    >>> evidence = Evidence(labels, values, np.ones(600, np.float32), np.zeros(3, np.float32))
    >>> is_true = np.array([[0, 0, 0], [1, 0, 0]] * 300, bool)
    >>> network = ScoreNetwork.of_source(0, n_sources=1)
    >>> first, second = levelled(network, evidence, is_true).scores(evidence)[:2, 0]
    >>> bool(second > first)
    True
    """
    scores = network.scores(evidence, n_threads)
    point, place, value, is_right = _best_candidates(evidence.of_judged(scores), is_true)
    if min(is_right.sum(), (~is_right).sum()) < LEAST_OF_EACH:
        return network
    columns = _columns_of_points(evidence.n_views) if is_unseen else np.empty(0, np.int64)
    views = np.column_stack([evidence.best_said(), evidence.nearness])[point, : len(columns)]
    reading = _reading(network, columns, views)
    of_views = reading.as_seen(views, columns).T
    factor, bias = _nearly_same(reading)
    nearly = np.maximum(factor * of_views[-1:] + bias, 0)
    inputs = np.stack([value, log_sums(scores)[point]])
    spreads = np.maximum(inputs.std(axis=1), LEAST_SPREAD)
    centred = (inputs - inputs.mean(axis=1, keepdims=True)) / spreads[:, np.newaxis]
    design = np.vstack([centred, place == 0, np.ones(len(point)), of_views, nearly])
    ridge = np.where(np.arange(len(design)) < N_FREE, LEAST_HELD, HELD)
    weights = logistic_weights(design, is_right.astype(np.float64), ridge=ridge)
    of_value, of_total = weights[:2] / spreads
    if of_value <= 0:
        return network
    level = np.clip(-of_total / of_value, 0, MOST_TAKEN if is_unseen else 1)
    taken = np.full(1, level, np.float32)
    if not is_unseen:
        return replace(network, level=taken)
    *of_columns, of_nearly = weights[N_FREE:] / (of_value * (1 - level))
    added, of_nearness = np.zeros((2, evidence.n_views), np.float32)
    added[columns], of_nearness[-1] = of_columns, factor
    told = replace(reading, level=taken).adding(added)
    return told.adding_unit(of_nearness, bias, of_nearly)


def _best_candidates(
    scores: Floats, is_true: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the point, the place, the score and the truth of each of the best candidates."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :LEAST_CALIBRATED]
    values = np.take_along_axis(scores, best, axis=1).astype(np.float64)
    point, place = np.nonzero(np.isfinite(values))
    is_right = np.take_along_axis(is_true, best, axis=1)[point, place]
    return point, place, values[point, place], is_right


def _columns_of_points(n_views: int) -> NDArray[np.int64]:
    """Return which views are the best that a source says, and how near the nearest point is."""
    return np.append(np.arange(BEST_VIEW, n_views - N_CONTEXT_VIEWS, N_VIEWS), n_views - 1)


def _reading(network: ScoreNetwork, columns: NDArray[np.int64], views: Floats) -> ScoreNetwork:
    """Return the network with a scale for those of some views that it reads none of."""
    centre, scale = network.centre.copy(), network.scale.copy()
    is_new = scale[columns] == 0
    centre[columns[is_new]] = views[:, is_new].mean(axis=0)
    scale[columns[is_new]] = 1 / np.maximum(views[:, is_new].std(axis=0), LEAST_OF_VIEW)
    return replace(network, centre=centre, scale=scale)


def _nearly_same(reading: ScoreNetwork) -> tuple[float, float]:
    """Return the line of nearness, as it is scaled, from 0 at `NEARLY_SAME` to 5 at 1."""
    centre, scale = reading.centre[-1].item(), reading.scale[-1].item()
    factor = float(LARGEST_VIEW) / max((1 - NEARLY_SAME) * scale, LEAST_OF_VIEW)
    return factor, -factor * (NEARLY_SAME - centre) * scale
