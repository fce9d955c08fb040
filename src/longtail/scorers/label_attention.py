"""A trained AttentionXML: down a tree whose nodes look at words of their own; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.attention import AttentionWeights, score_candidates
from longtail.kernels.jit import over_row_chunks
from longtail.named_parts import with_prefix, without_prefix
from longtail.scorers.blocks import top_k_in_blocks
from longtail.scorers.ranking import best_first, padding_last
from longtail.scorers.tree_nodes import children_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

__all__ = ["AttentionLevel", "LabelAttentionScorer"]

SECOND = ("second", "second_bias")  # the arrays of a layer that may not be there
ROWS_AT_ONCE = 1024  # points whose candidates are held in memory together


class AttentionLevel(NamedTuple):
    """One level of the tree.

    Attributes
    ----------
    weights : AttentionWeights
    child_starts : int32 (n_parents + 1,)
        Nodes of this level below each node of the one above; all of them, for the first level.
    """

    weights: AttentionWeights
    child_starts: NDArray[np.int32]

    def probabilities(
        self, bags: Bags, candidates: NDArray[np.int32], n_threads: int = 1
    ) -> NDArray[np.float32]:
        """Return those of candidate nodes, float32 (n, n_candidates), -inf for the padding."""
        if bags.words is None:
            raise InputError(
                "AttentionXML reads the words of a text in order, but these points are bags. Pass "
                "texts."
            )
        words = read_only(bags.words, np.int32)
        weights = AttentionWeights(*(read_only(part, np.float32) for part in self.weights))
        nodes = read_only(candidates, np.int32)
        out = np.empty(candidates.shape, np.float32)

        def work(start: int, stop: int) -> None:
            score_candidates(words, weights, nodes, start, stop, out)

        over_row_chunks(work, len(out), n_threads=n_threads, chunk=16)
        return out

    def children(
        self,
        bags: Bags,
        parents: NDArray[np.int32],
        above: NDArray[np.float32],
        n_threads: int = 1,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the nodes below some parents, padding at the end, and their scores.

        Parameters
        ----------
        bags : Bags
        parents : int32 (n, b)
            Padded with -1.
        above : float32 (n, b)
            Their scores.
        n_threads : int
        """
        nodes, places = children_of(parents, self.child_starts)
        found = self.probabilities(bags, nodes, n_threads)
        scores = np.full(found.shape, -np.inf, np.float32)
        np.multiply(found, above[:, places], out=scores, where=np.isfinite(found))
        nodes = np.where(np.isfinite(scores), nodes, np.int32(-1))
        nodes, scores = padding_last(nodes, scores)
        return nodes, scores

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what `from_arrays` takes; of a second layer only where there is one."""
        arrays = {**self.weights._asdict(), "child_starts": self.child_starts}
        left_out = () if len(self.weights.second) else SECOND
        return {name: array for name, array in arrays.items() if name not in left_out}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Make it again."""
        n_hidden = len(arrays["hidden_bias"])
        none = np.zeros((0, n_hidden), np.float32), np.zeros(0, np.float32)
        found = dict(zip(SECOND, none, strict=True)) | dict(arrays)
        weights = AttentionWeights(*(found[name] for name in AttentionWeights._fields))
        return cls(weights, np.asarray(found["child_starts"], np.int32))


@dataclass(frozen=True)
class LabelAttentionScorer:
    """AttentionXML at work (You et al., NeurIPS 2019).

    A label's score is the product of the probabilities of the nodes from the first level to it;
    of each level but the last, the best b nodes are followed.

    Parameters
    ----------
    levels : tuple of AttentionLevel
        The nodes of the last stand for labels.
    labels : int32 (n_used,)
        The label of each of those nodes.
    beam_size : int
        b.
    """

    scores_are_shares: ClassVar[bool] = True  # see `ScoresShares`

    levels: tuple[AttentionLevel, ...]
    labels: NDArray[np.int32]
    beam_size: int

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""

        def answer(some: Bags) -> Answers:
            best, scores = best_first(*self.nodes(some, n_threads), k, n_threads)
            return np.where(best >= 0, self.labels[best], np.int32(-1)), scores

        return top_k_in_blocks(bags, k, ROWS_AT_ONCE, answer)

    def nodes(
        self, bags: Bags, n_threads: int = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return candidates of the last level and their scores, (n, n_candidates)."""
        nodes = np.zeros((bags.n_rows, 1), np.int32)  # the root
        scores = np.ones((bags.n_rows, 1), np.float32)
        for level in self.levels:
            n_followed = min(self.beam_size, nodes.shape[1])
            parents, above = best_first(nodes, scores, n_followed, n_threads)
            nodes, scores = level.children(bags, parents, above, n_threads)
        return nodes, scores

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        arrays: dict[str, NDArray[np.generic]] = {"attention/labels": self.labels}
        for i, level in enumerate(self.levels):
            arrays |= with_prefix(f"level{i}/", level.to_arrays())
        return arrays

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {
            "kind": "label-attention",
            "n_levels": len(self.levels),
            "beam_size": self.beam_size,
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> Self:
        """Make it again from `config` and `to_arrays`."""
        levels = tuple(
            AttentionLevel.from_arrays(without_prefix(f"level{i}/", arrays))
            for i in range(config["n_levels"])
        )
        labels = np.asarray(arrays["attention/labels"], np.int32)
        return cls(levels, labels, config["beam_size"])
