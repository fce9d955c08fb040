"""Rare labels go up in the order; that makes none of them more probable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.further_labels import LEAST_STEP
from longtail.metrics.hits import true_among
from longtail.scorers.calibration import logistic_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.scorers.protocols import Answers

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["share_for_order", "told_scores"]

MOST = 1.5  # a blend may think too well of rare labels, or too little of them: no more than that
FEW = 100  # so many answers that are right say as much as what is known before: a share of 1


def told_scores(ids: Ids, ranked: Floats, tail_weights: Floats, share: float) -> Floats:
    """Return scores without what counted for the order alone, each below the one before.

    Parameters
    ----------
    ids : int32 (n, k)
        Labels, best first, padded with -1.
    ranked : float32 (n, k)
        By which they are ranked.
    tail_weights : float32 (n_labels,)
        What rarity has added to the score of each label.
    share : float
        This times it is taken away.

    Returns
    -------
    float32 (n, k)
        Padded with -inf.

    Examples
    --------
    The second label is likelier than the first one, but does not come first.

    >>> import numpy as np
    >>> from longtail.blend.rarity import told_scores
    >>> ids, ranked = np.array([[2, 0, 1]], np.int32), np.array([[4, 3, 1]], np.float32)
    >>> told_scores(ids, ranked, np.array([0, 0, 2], np.float32), share=1.0).round(3).tolist()
    [[2.0, 2.0, 1.0]]
    """
    if not share:
        return ranked
    known = np.isfinite(ranked)
    told = ranked - np.float32(share) * np.where(known, tail_weights[ids], np.float32(0))
    for j in range(1, told.shape[1]):
        above = told[:, j - 1]
        below = above - np.float32(LEAST_STEP) * (np.float32(1) + np.abs(above))
        told[:, j] = np.where(known[:, j] & (told[:, j] >= above), below, told[:, j])
    return np.where(known, told, ranked)


def share_for_order(
    answers: Sequence[Answers],
    truth: csr_array,
    tail_weights: Floats,
    counts: NDArray[np.float64],
) -> float:
    """Return how much of what rarity adds to scores counts for the order alone.

    A label is moved up for its rarity since its points lack it oftener, not since it is likelier to
    be noted. So scores without any of it should tell how likely that is, a share of 1. Answers to
    held-out points tell how much it is in truth: a blend may think too well of rare labels itself.

    Parameters
    ----------
    answers : sequence of (int32 (n, k), float32 (n, k))
        Labels and ranked scores of some points; behind the first, of points without labels.
    truth : csr_array (n, n_labels)
        Of the first ones.
    tail_weights : float32 (n_labels,)
    counts : float64 (k,)
        How much the labels of each rank count.

    Returns
    -------
    float
        From 0 to `MOST`; near 1 where few answers are right, or few wrong.

    Examples
    --------
    Rarity adds 1 to every second label, which is not likelier for it.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.rarity import share_for_order
    >>> random = np.random.default_rng(0)
    >>> scores, is_rare = random.normal(size=(2000, 1)), np.arange(2000)[:, None] % 2
    >>> is_right = random.random((2000, 1)) < 1 / (1 + np.exp(-scores))
    >>> answers = (is_rare.astype(np.int32), (scores + is_rare).astype(np.float32))
    >>> truth = csr_array(np.hstack([is_right & (is_rare == 0), is_right & (is_rare == 1)]))
    >>> weights = np.array([0, 1], np.float32)
    >>> 0.8 < share_for_order([answers], truth, weights, np.ones(1)) < 1.2
    True
    """
    ids, ranked = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    is_right = np.zeros(ids.shape, bool)
    is_right[: len(answers[0][0])] = true_among(answers[0][0], truth)
    known = np.isfinite(ranked)
    added = tail_weights[ids[known]].astype(np.float64)
    if not known.any() or not np.ptp(added):
        return 1.0
    n_right = int(is_right[known].sum())
    n_least = min(n_right, int(known.sum()) - n_right)
    is_first = np.zeros(ids.shape)
    is_first[:, :1] = 1
    design = np.stack([ranked[known], added, is_first[known], np.ones(len(added))])
    of_ranks = np.broadcast_to(counts, ids.shape)[known]
    of_score, of_added, *_ = logistic_weights(design, is_right[known].astype(float), of_ranks)
    if of_score <= 0:
        return 1.0
    told = -of_added / of_score
    return float(np.clip(1 + (told - 1) * n_least / (n_least + FEW), 0, MOST))
