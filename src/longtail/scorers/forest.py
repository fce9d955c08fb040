"""A trained forest of ranking trees, and its re-ranking with tail classifiers: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.held_arrays import hold_read_only, read_only_parts
from longtail.kernels.forest import Forest, best_of_forest
from longtail.kernels.jit import over_row_chunks
from longtail.named_parts import with_prefix, without_prefix
from longtail.scorers.blocks import top_k_in_blocks
from longtail.scorers.ranking import best_first, just_below
from longtail.scorers.sparse_label_vectors import SparseLabelVectors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

__all__ = ["ForestScorer", "TailClassifiers", "joined_forest"]

ROWS_AT_ONCE = 4096  # points whose candidates are held in memory together
_DTYPES: Mapping[str, type[np.generic]] = MappingProxyType(
    {
        "roots": np.int32,
        "children": np.int32,
        "bias": np.float32,
        "starts": np.int64,
        "features": np.int32,
        "weights": np.float32,
        "leaf_starts": np.int64,
        "leaf_labels": np.int32,
        "leaf_scores": np.float32,
    }
)


@dataclass(frozen=True)
class TailClassifiers:
    """How near a point is to the points of a label, which holds where those are few, too.

    ``log P(l | x) = -log(1 + exp(gamma / 2 |x - mu_l|^2))`` with the mean mu of the label's
    points, and x of unit length (Jain, Prabhu and Varma, KDD 2016, section 5).

    Parameters
    ----------
    means : SparseLabelVectors
        mu, with a bias of ``(1 - |mu|^2) / 2``: their logits are ``1 - |x - mu|^2 / 2``.
    gamma : float

    Examples
    --------
    The point lies at the mean of label 0 and far from that of label 1.

    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.scorers.forest import TailClassifiers
    >>> from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    >>> means = SparseLabelVectors(np.array([0, 1, 2]), np.array([0, 1]), np.ones(2), np.zeros(2))
    >>> bag = Bags.one(np.array([0], np.int32), np.array([1], np.float32))
    >>> tail = TailClassifiers(means, gamma=3.0)
    >>> tail.log_probabilities(bag, np.array([[0, 1, -1]], np.int32)).round(2).tolist()
    [[-0.69, -3.05, 0.0]]
    """

    means: SparseLabelVectors
    gamma: float

    def log_probabilities(
        self, bags: Bags, labels: NDArray[np.int32], n_threads: int = 1
    ) -> NDArray[np.float64]:
        """Return float64 (n, size) for given labels; 0 at padding."""
        known = labels >= 0
        nearness = np.where(known, self.means.logits(bags, labels, n_threads), 1)
        farness = self.gamma * (1 - nearness.astype(np.float64))
        return np.where(known, -np.logaddexp(0.0, farness), 0)


@dataclass(frozen=True, kw_only=True)
class ForestScorer:
    """The best labels of all trees together, ranked again with tail classifiers.

    The score of a label is ``alpha log(mean leaf score) + (1 - alpha) log P_tail(l | x)`` and what
    the label itself is given.

    Parameters
    ----------
    forest : Forest
    tail_classifiers : TailClassifiers
    alpha : float
        Weight of the trees; 1 for FastXML's order.
    n_candidates : int
        Best labels of the trees that are ranked again; who asks for more gets others behind these.
    tail_weights : float32 (n_labels,)
        PfastreXML's `tail` times log 1/p_l. Added to the scores, it trades P@k for PSP@k.
    """

    forest: Forest
    tail_classifiers: TailClassifiers
    alpha: float
    n_candidates: int
    tail_weights: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held."""
        forest = Forest(**read_only_parts(self.forest._asdict(), _DTYPES))
        object.__setattr__(self, "forest", forest)
        hold_read_only(self, {"tail_weights": np.float32})

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""

        def answer(some: Bags) -> Answers:
            n_first = self.n_candidates
            found, leaves = self.tree_scores(some, max(k, n_first), n_threads)
            scores = self.ranked(some, found, leaves, n_threads)
            below = just_below(found[:, :n_first], scores[:, :n_first])
            scores[:, n_first:] = np.minimum(scores[:, n_first:], below)
            return best_first(found, scores, k, n_threads)

        return top_k_in_blocks(bags, k, ROWS_AT_ONCE, answer)

    def tree_scores(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """Return the k labels with the largest mean leaf scores, and those."""
        points = bags.for_kernels()
        n_features = 1 + int(self.forest.features.max(initial=-1))
        n_labels = self.tail_classifiers.means.n_labels
        ids = np.empty((bags.n_rows, k), np.int32)
        scores = np.empty((bags.n_rows, k), np.float32)

        def search(start: int, stop: int) -> None:
            best_of_forest(points, self.forest, n_features, n_labels, start, stop, ids, scores)

        over_row_chunks(search, bags.n_rows, n_threads=n_threads, chunk=256)
        return ids, scores

    def ranked(
        self,
        bags: Bags,
        labels: NDArray[np.int32],
        leaves: NDArray[np.float32],
        n_threads: int = 1,
    ) -> NDArray[np.float32]:
        """Return the scores of both together, -inf at padding."""
        return self.combined(labels, *self.logarithms(bags, labels, leaves, n_threads))

    def logarithms(
        self,
        bags: Bags,
        labels: NDArray[np.int32],
        leaves: NDArray[np.float32],
        n_threads: int = 1,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return those of the leaf scores and of the tail classifiers, 0 at padding."""
        trees = np.log(np.where(labels >= 0, leaves, 1).astype(np.float64))
        return trees, self.tail_classifiers.log_probabilities(bags, labels, n_threads)

    def combined(
        self, labels: NDArray[np.int32], trees: NDArray[np.float64], tail: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        """Return scores of both logarithms, -inf at padding."""
        both = self.alpha * trees + (1 - self.alpha) * tail + self.tail_weights[labels]
        return np.where(labels >= 0, both, -np.inf).astype(np.float32)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        trees = with_prefix("forest/", self.forest._asdict())
        tail = with_prefix("tail/", self.tail_classifiers.means.to_arrays())
        return trees | tail | {"tail_weights": self.tail_weights}

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {
            "kind": "forest",
            "alpha": self.alpha,
            "gamma": self.tail_classifiers.gamma,
            "n_candidates": self.n_candidates,
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> ForestScorer:
        """Make it again from `config` and `to_arrays`."""
        means = SparseLabelVectors(**without_prefix("tail/", arrays))
        return cls(
            forest=Forest(**without_prefix("forest/", arrays)),
            tail_classifiers=TailClassifiers(means, config["gamma"]),
            alpha=config["alpha"],
            n_candidates=config["n_candidates"],
            tail_weights=arrays["tail_weights"],
        )


def joined_forest(trees: Sequence[Forest]) -> Forest:
    """Return trees, numbered from 0 each, as one forest.

    Examples
    --------
    A root with two leaves, twice: in the forest, the second root is node 3.

    >>> import numpy as np
    >>> from longtail.kernels.forest import Forest
    >>> from longtail.scorers.forest import joined_forest
    >>> separators = np.zeros(3), np.array([0, 1, 1, 1]), np.array([7]), np.ones(1)
    >>> leaves = np.array([0, 0, 1, 2]), np.array([4, 2]), np.ones(2)
    >>> tree = Forest(np.array([0]), np.array([[1, 2], [-1, -1], [-1, -1]]), *separators, *leaves)
    >>> forest = joined_forest([tree, tree])
    >>> forest.roots.tolist(), forest.children[[0, 3]].tolist(), forest.leaf_labels.tolist()
    ([0, 3], [[1, 2], [4, 5]], [4, 2, 4, 2])
    """
    first = np.cumsum([0, *(len(tree.bias) for tree in trees)])
    children = [
        np.where(tree.children >= 0, tree.children + before, -1)
        for tree, before in zip(trees, first[:-1], strict=True)
    ]
    together = {
        name: np.concatenate([getattr(tree, name) for tree in trees])
        for name in ("bias", "features", "weights", "leaf_labels", "leaf_scores")
    }
    return Forest(
        roots=first[:-1].astype(np.int32),
        children=np.concatenate(children).astype(np.int32),
        starts=_joined_starts([tree.starts for tree in trees]),
        leaf_starts=_joined_starts([tree.leaf_starts for tree in trees]),
        **together,
    )


def _joined_starts(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return where each node begins once the entries of all trees lie end to end."""
    lengths = np.concatenate([np.diff(part) for part in parts])
    return np.concatenate([[0], np.cumsum(lengths)])
