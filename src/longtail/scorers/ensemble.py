"""Several trained models that answer as one; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.named_parts import joined_parts
from longtail.scorers.protocols import ScoresShares
from longtail.scorers.ranking import best_first, just_below, padding_last

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.scorers.protocols import Answers, Scorer

__all__ = ["EnsembleScorer"]


@dataclass(frozen=True)
class EnsembleScorer:
    """Several models whose scores are averaged; a label that a model leaves out scores 0 there.

    Astec-3 is three (DeepXML paper, section 5).

    Parameters
    ----------
    members : tuple of Scorer
    n_candidates : int
        Best labels of each member that can be in the answer; who asks for more labels gets others
        behind these.

    Examples
    --------
    Both members know label 8, so it is ahead of label 5, which the first alone is surer of.

    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.scorers.ensemble import EnsembleScorer
    >>> from longtail.scorers.one_vs_rest import OneVsRestScorer
    >>> from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    >>> own = SparseLabelVectors(np.array([0, 1, 2]), np.array([0, 1]), np.ones(2), np.zeros(2))
    >>> members = (OneVsRestScorer.of(np.array(ids, np.int32), own) for ids in ([5, 8], [8, 9]))
    >>> bag = Bags.one(np.array([0, 1], np.int32), np.array([1, 0.5], np.float32))
    >>> ids, scores = EnsembleScorer(tuple(members)).top_k(bag, 4)
    >>> ids.tolist(), scores.tolist()
    ([[8, 5, 9, -1]], [[0.75, 0.5, 0.25, -inf]])
    """

    members: tuple[Scorer, ...]
    n_candidates: int = 100

    @property
    def scores_are_shares(self) -> bool:
        """See `ScoresShares`."""
        return all(isinstance(m, ScoresShares) and m.scores_are_shares for m in self.members)

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""
        n_asked = max(k, self.n_candidates)
        found = [member.top_k(bags, n_asked, n_threads) for member in self.members]
        ids, totals = _summed(found, self.n_candidates)
        if k > self.n_candidates:  # further labels, behind those that a smaller k has
            ids, totals = _with_others_behind(ids, totals, *_summed(found, n_asked))
        best, totals = best_first(ids, totals, k, n_threads)
        # Divided last: rounding would otherwise part labels whose sums are equal.
        return best, totals / np.float32(len(self.members))

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        arrays = self._every_array()
        repeated = _repeated(arrays)
        return {name: array for name, array in arrays.items() if name not in repeated}

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        members = [member.config() for member in self.members]
        config = {"kind": "ensemble", "members": members, "n_candidates": self.n_candidates}
        repeated = _repeated(self._every_array())
        return config | {"repeated": repeated} if repeated else config

    def _every_array(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays of all members, also of an encoder that several have."""
        members = {f"learner{i}": member.to_arrays() for i, member in enumerate(self.members)}
        return joined_parts(members, "-")


def _repeated(arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, str]:
    """Return the names of arrays that came before, and the names they had there."""
    first: dict[int, str] = {}
    names = {name: first.setdefault(id(array), name) for name, array in arrays.items()}
    return {name: before for name, before in names.items() if name != before}


def _summed(found: Sequence[Answers], n_best: int) -> Answers:
    """Add the scores of equal labels of a row; each label stays once, padding at the end.

    Of each answer in `found`, the first `n_best` labels count.
    """
    ids = np.concatenate([ids[:, :n_best] for ids, _ in found], axis=1)
    scores = np.concatenate([scores[:, :n_best] for _, scores in found], axis=1)
    order = np.argsort(ids, axis=1, kind="stable")
    ids = np.take_along_axis(ids, order, axis=1)
    scores = np.where(ids < 0, 0, np.take_along_axis(scores, order, axis=1))
    is_first = np.ones(ids.shape, bool)
    is_first[:, 1:] = ids[:, 1:] != ids[:, :-1]
    flat_starts = np.flatnonzero(is_first.ravel())
    totals = np.zeros(ids.size, np.float32)
    totals[flat_starts] = np.add.reduceat(scores.ravel(), flat_starts)
    return _kept_first(ids, totals.reshape(ids.shape), is_first & (ids >= 0))


def _with_others_behind(
    ids: NDArray[np.int32],
    totals: NDArray[np.float32],
    other_ids: NDArray[np.int32],
    other_totals: NDArray[np.float32],
) -> Answers:
    """Add the labels of each row that it does not have yet, with scores below all of its own."""
    rows = np.arange(len(ids), dtype=np.int64)[:, np.newaxis] << 32
    is_new = ~np.isin(rows + other_ids, rows + ids) & (other_ids >= 0)
    behind = np.minimum(other_totals, just_below(ids, totals))
    return _kept_first(
        np.hstack([ids, other_ids]),
        np.hstack([totals, behind]),
        np.hstack([ids >= 0, is_new]),
    )


def _kept_first(
    ids: NDArray[np.int32], scores: NDArray[np.float32], kept: NDArray[np.bool_]
) -> Answers:
    """Bring the labels of each row that are kept to its front; the rest is padding."""
    ids = np.where(kept, ids, -1).astype(np.int32)
    ids, scores = padding_last(ids, np.where(kept, scores, -np.inf).astype(np.float32))
    return ids, scores
