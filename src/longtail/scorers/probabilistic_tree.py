"""A trained probabilistic label tree over bag embeddings, as extremeText grows it: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.features.bag_encoder import BagEncoder
from longtail.held_arrays import hold_read_only
from longtail.scorers.blocks import top_k_in_blocks
from longtail.scorers.label_vectors import LabelVectors
from longtail.scorers.ranking import best_first, padding_last
from longtail.scorers.tree_nodes import children_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

__all__ = ["ProbabilisticTreeScorer"]

ROWS_AT_ONCE = 1024  # points whose beams are held in memory together


@dataclass(frozen=True, kw_only=True)
class ProbabilisticTreeScorer:
    """``log P(l | x)``: the sum of ``log s(w_v . e(x) + b_v)`` over the nodes v down to the label.

    Only the best `beam_size` nodes of a level are followed.

    Parameters
    ----------
    encoder : BagEncoder
    nodes : LabelVectors
        Of all nodes but the root, labels last.
    child_starts : int32 (n_inner + 1,)
        See `LabelTreeScorer.of`.
    labels : int32 (n_leaves,)
        The label of each node of the last level.
    beam_size : int

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> from longtail.scorers.label_vectors import LabelVectors
    >>> from longtail.scorers.probabilistic_tree import ProbabilisticTreeScorer
    >>> encoder, nodes = BagEncoder(np.eye(2)), LabelVectors(np.eye(2), np.zeros(2))
    >>> starts, labels = np.array([1, 3]), np.array([4, 9])  # both labels are below the root
    >>> scorer = ProbabilisticTreeScorer(
    ...     encoder=encoder, nodes=nodes, child_starts=starts, labels=labels, beam_size=1
    ... )
    >>> ids, scores = scorer.top_k(Bags.one(np.array([1]), np.array([2])), 2)
    >>> ids.tolist(), np.exp(scores.astype(float)).round(2).tolist()
    ([[9, 4]], [[0.88, 0.5]])
    """

    encoder: BagEncoder
    nodes: LabelVectors
    child_starts: NDArray[np.int32]
    labels: NDArray[np.int32]
    beam_size: int

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held."""
        hold_read_only(self, {"child_starts": np.int32, "labels": np.int32})

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""
        return top_k_in_blocks(
            bags, k, ROWS_AT_ONCE, lambda some: self._searched(some, k, n_threads)
        )

    def _searched(self, bags: Bags, k: int, n_threads: int) -> Answers:
        """Go down all levels with all bags at once."""
        features = self.encoder.encode(bags, n_threads)
        n_inner = len(self.child_starts) - 1
        beam = np.where(bags.silent(), -1, 0).astype(np.int32)[:, None]  # 0 is the root
        scores = np.zeros(beam.shape, np.float32)
        while True:
            children, parents = self._children(beam)
            logits = self.nodes.logits(
                features, np.where(children > 0, children - 1, -1), n_threads
            )
            gains = -np.logaddexp(0, -logits.astype(np.float64))
            totals = (np.take_along_axis(scores, parents, axis=1) + gains).astype(np.float32)
            if children.max(initial=-1) >= n_inner or not children.size:
                labels = self.labels[np.maximum(children - n_inner, 0)]
                return best_first(np.where(children > 0, labels, -1), totals, k, n_threads)
            n_followed = min(self.beam_size, children.shape[1])
            beam, scores = best_first(children, totals, n_followed, n_threads)

    def _children(self, beam: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the children of the nodes of each row, padded with -1, and their places in it."""
        children, places = children_of(beam, self.child_starts, same_width=False)
        children, parents = padding_last(children, np.broadcast_to(places, children.shape))
        width = int(np.count_nonzero(children >= 0, axis=1).max(initial=0))
        return children[:, :width], parents[:, :width]

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        return {
            "encoder/token_vectors": self.encoder.token_vectors,
            "nodes/vectors": self.nodes.vectors,
            "nodes/bias": self.nodes.bias,
            "tree/child_starts": self.child_starts,
            "tree/labels": self.labels,
        }

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {"kind": "probabilistic-tree", "beam_size": self.beam_size}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> ProbabilisticTreeScorer:
        """Make it again from `config` and `to_arrays`."""
        return cls(
            encoder=BagEncoder(arrays["encoder/token_vectors"]),
            nodes=LabelVectors(arrays["nodes/vectors"], arrays["nodes/bias"]),
            child_starts=arrays["tree/child_starts"],
            labels=arrays["tree/labels"],
            beam_size=config["beam_size"],
        )
