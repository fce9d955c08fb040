"""Linear classifiers of all labels, every one of them scored: no shortlist, no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.jit import over_row_chunks
from longtail.kernels.one_vs_rest import best_of_all
from longtail.named_parts import with_prefix
from longtail.scorers.label_tree import as_kernels_take, laid_out, tree_from
from longtail.scorers.sparse_label_vectors import SparseLabelVectors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.kernels.label_tree import TrainedTree
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

__all__ = ["OneVsRestScorer"]

LABELS_A_BLOCK = 8192  # their margins take 32 KB, the nearest cache of most processors


@dataclass(frozen=True)
class OneVsRestScorer:
    """One sparse linear classifier a label; a label's score is its margin ``w_l . x + b_l``.

    The weights lie as an inverted index: by blocks of labels, and in each by feature, so that a
    point's features are looked up once a block and only weights of its own features are read.

    Parameters
    ----------
    blocks : TrainedTree
        Of two levels, the blocks and the labels; made by `of`.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.one_vs_rest import OneVsRestScorer
    >>> from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    >>> from longtail.data.bags import Bags
    >>> labels = SparseLabelVectors(np.array([0, 1, 2]), np.array([0, 1]), np.ones(2), np.zeros(2))
    >>> scorer = OneVsRestScorer.of(np.array([5, 8], np.int32), labels)
    >>> scorer.top_k(Bags.one(np.array([1], np.int32), np.array([0.5], np.float32)), 2)[0].tolist()
    [[8, 5]]
    """

    blocks: TrainedTree

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held."""
        object.__setattr__(self, "blocks", as_kernels_take(self.blocks))

    @classmethod
    def of(
        cls, labels: NDArray[np.int32], classifiers: SparseLabelVectors, *, n_threads: int = 1
    ) -> OneVsRestScorer:
        """Lay classifiers out for fast scoring.

        Parameters
        ----------
        labels : int32 (n,)
            The label of each classifier, ascending.
        classifiers : SparseLabelVectors
        n_threads : int
        """
        n_blocks = max(1, -(-len(labels) // LABELS_A_BLOCK))
        first_labels = 1 + n_blocks + np.arange(n_blocks) * LABELS_A_BLOCK
        starts = np.concatenate([[1], first_labels, [1 + n_blocks + len(labels)]])
        nodes = SparseLabelVectors.joined([SparseLabelVectors.empty(n_blocks), classifiers])
        return cls(laid_out(starts.astype(np.int32), labels, nodes, n_threads))

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""
        points = bags.for_kernels()
        ids = np.empty((bags.n_rows, k), np.int32)
        scores = np.empty((bags.n_rows, k), np.float32)

        def search(start: int, stop: int) -> None:
            best_of_all(points, self.blocks, start, stop, ids, scores)

        over_row_chunks(search, bags.n_rows, n_threads=n_threads, chunk=128)
        return ids, scores

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        return with_prefix("tree/", self.blocks._asdict())

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {"kind": "one-vs-rest"}

    @classmethod
    def from_parts(
        cls,
        config: Mapping[str, Any],  # noqa: ARG003 - says nothing more
        arrays: Arrays,
    ) -> OneVsRestScorer:
        """Make it again from `to_arrays`."""
        return cls(tree_from(arrays))
