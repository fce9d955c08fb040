"""The simplest blend of scores: their sum, each source weighed by what held-out points teach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.blend.score_network import ScoreNetwork
from longtail.training.adamw import AdamW
from longtail.training.ranking_slope import log_counts_of, ranking_slope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.evidence import Evidence

    Floats = NDArray[np.float32]

__all__ = ["weighted_sum"]

N_STEPS, LEARNING_RATE, WEIGHT_DECAY = 150, 0.1, 1e-2
FIRST_WEIGHT = 0.5  # of every source, in units of its spread
# The weight of commonness is held to 0 by as much, shared among the points: a hundred of them do
# not tell whether the commonest label is more often true than what the sources rank first.
COST_OF_COMMONNESS = 30.0
# The same of the best match, by the square of their number: twenty points do not tell whether it is
# always wrong, two hundred do.
COST_OF_MATCH = 20.0
MOST_POINTS = 500  # tell a handful of weights apart
LEAST_FOUND = 0.1  # as much as the best source by itself


def weighted_sum(
    evidence: Evidence,
    is_true: NDArray[np.bool_],
    rows: NDArray[np.int64],
    *,
    alike: float = 0.0,
) -> ScoreNetwork:
    """Return the network that adds up what the sources say, relative to the point's best.

    How common a label is adds to it: where texts tell little, so do the sources, and the commonest
    label is the best guess. And the label whose text is likest counts for more, or for less: where
    points and labels are of one kind, it is the point itself, which no other source tells. The
    weights minimise `ranking_loss`, which is convex in them; all but that last one are not
    negative. So few numbers are learnt from a hundred points, where a network of two layers learns
    chance as well.

    Parameters
    ----------
    evidence : Evidence
        Of held-out points.
    is_true : bool (n, size)
        Which candidates are true.
    rows : int64 (n_rows,)
        The points to learn from; of those with a true candidate, the first 500.
    alike : float
        How much it costs weights to differ, per square of a spread: those of the sources that find
        a tenth as much by themselves as the best one does, or more. Others start from 0.

    Examples
    --------
    Of two sources, the second ranks the true candidate first.

    >>> import numpy as np
    >>> from longtail.blend.evidence import Evidence
    >>> from longtail.blend.weighted_sum import weighted_sum
    >>> evidence = Evidence(
    ...     labels=np.tile(np.arange(3, dtype=np.int32), (5, 1)),
    ...     values=np.tile(np.array([[0, 2, 1], [2, 1, 0]], np.float32), (5, 1, 1)),
    ...     nearness=np.ones(5, np.float32),
    ...     commonness=np.zeros(3, np.float32),
    ... )
    >>> is_true = np.tile([True, False, False], (5, 1))
    >>> network = weighted_sum(evidence, is_true, np.arange(5))
    >>> network.scores(evidence)[0].argmax().item()
    0
    """
    useful = rows[is_true[rows].any(axis=1)][:MOST_POINTS]
    some = evidence.of_rows(useful)
    in_spreads = some.inverse_spreads()
    said = np.ascontiguousarray(some.behind_best() * in_spreads)  # (n, size, n_sources)
    log_counts, true = log_counts_of(some.judged), is_true[useful]
    first = np.full(said.shape[2], FIRST_WEIGHT, np.float32)
    if alike:
        first[_find_little(said, true, log_counts)] = 0
    said = np.dstack([said, some.behind_commonest(), some.best_match()])
    first = np.append(first, np.zeros(2, np.float32))
    held = np.full(len(first), alike, np.float32)
    n = max(len(useful), 1)
    held[-2:] = alike or (COST_OF_COMMONNESS / n, COST_OF_MATCH / n**2)
    weights, of_candidates = first.copy(), said.reshape(-1, said.shape[2])
    optimiser = AdamW(weights, WEIGHT_DECAY)
    for step in range(N_STEPS if len(useful) else 0):
        logits = (of_candidates @ weights).reshape(true.shape)
        gradient = ranking_slope(logits, true, log_counts).ravel() @ of_candidates
        gradient += held * (weights - first)
        optimiser.step(gradient, LEARNING_RATE * (1 - step / N_STEPS))
        np.maximum(weights[:-1], 0, out=weights[:-1])
    network = ScoreNetwork.of_weights(weights[:-2] * in_spreads, weights[-2])
    if evidence.source_of_texts is None:
        return network
    return network.with_best_match(evidence.source_of_texts, weights[-1])


def _find_little(said: Floats, is_true: NDArray[np.bool_], log_counts: Floats) -> NDArray[np.bool_]:
    """Return which sources rank a true candidate first for far fewer points than the best does."""
    judged = np.where(np.isneginf(log_counts)[:, :, np.newaxis], -np.inf, said)
    best = judged.argmax(axis=1)  # (n, n_sources)
    n_found = np.take_along_axis(is_true, best, axis=1).sum(axis=0)
    is_little: NDArray[np.bool_] = n_found < LEAST_FOUND * n_found.max()
    return is_little
