"""A trained AnnexML model: partitions, an embedding in each, and votes of near points; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from longtail.held_arrays import hold_read_only
from longtail.index.exact import ExactIndex
from longtail.kernels.annexml import encode_in_partitions
from longtail.kernels.arrays import read_only
from longtail.kernels.blend import gather_candidates
from longtail.kernels.jit import over_row_chunks
from longtail.scorers.blocks import top_k_in_blocks
from longtail.scorers.ranking import best_first

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Offsets = NDArray[np.int64]

__all__ = ["AnnexLearner", "AnnexMLScorer"]

ROWS_AT_ONCE = 4096  # points whose neighbours are held in memory together
LEAST_CANDIDATES = 100  # labels that are ranked, however few are wanted
_DTYPES: Mapping[str, type[np.generic]] = MappingProxyType(
    {
        "partition_weights": np.float32,
        "token_starts": np.int64,
        "tokens": np.int32,
        "token_vectors": np.float32,
        "point_starts": np.int64,
        "points": np.int32,
        "point_vectors": np.float32,
    }
)


@dataclass(frozen=True, kw_only=True)
class AnnexLearner:
    """One partition of the points, and an embedding in each part.

    Parameters
    ----------
    partition_weights : float32 (n_features, n_partitions)
        A point belongs where ``x . w`` is largest.
    token_starts, tokens : int64 (n_partitions + 1,), int32 (n_rows,)
        The tokens that each partition knows, ascending.
    token_vectors : float32 (n_rows, dimension)
    point_starts, points : int64 (n_partitions + 1,), int32 (n_points,)
        The training points of each partition.
    point_vectors : float32 (n_points, dimension)
        Their embeddings, in that order, of unit length.
    """

    partition_weights: Floats
    token_starts: Offsets
    tokens: Ids
    token_vectors: Floats
    point_starts: Offsets
    points: Ids
    point_vectors: Floats

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held."""
        hold_read_only(self, _DTYPES)

    def near_points(self, bags: Bags, n_near: int, n_threads: int = 1) -> Ids:
        """Return the training points nearest to each point, int32 (n, n_near), padded with -1.

        A partition holds some thousand points, which are scanned.
        """
        partitions = bags.times(self.partition_weights, n_threads).argmax(axis=1).astype(np.int32)
        vectors = self._encoded(bags, partitions, n_threads)
        is_known = vectors.any(axis=1)
        near = np.full((bags.n_rows, n_near), -1, np.int32)
        for partition in np.unique(partitions[is_known]):
            rows = np.flatnonzero((partitions == partition) & is_known)
            members = slice(self.point_starts[partition], self.point_starts[partition + 1])
            index = ExactIndex(self.point_vectors[members], n_threads=n_threads)
            found, _ = index.query(vectors[rows], n_near)
            near[rows] = np.where(found >= 0, self.points[members][found], -1)
        return near

    def _encoded(self, bags: Bags, partitions: Ids, n_threads: int) -> Floats:
        """Return the unit embedding of each point in its partition."""
        vectors = np.empty((bags.n_rows, self.token_vectors.shape[1]), np.float32)
        points, given = bags.for_kernels(), read_only(partitions, np.int32)
        tables = self.token_starts, self.tokens, self.token_vectors

        def work(start: int, stop: int) -> None:
            encode_in_partitions(points, given, *tables, start, stop, vectors)

        over_row_chunks(work, bags.n_rows, n_threads=n_threads, chunk=256)
        return vectors


@dataclass(frozen=True, kw_only=True)
class AnnexMLScorer:
    """The labels that most near points carry, near by any of several learners.

    A label's score is the share of all near points that carry it.

    Parameters
    ----------
    learners : tuple of AnnexLearner
    label_starts, label_ids : int32 (n_points + 1,), int32 (n_pairs,)
        The labels of the training points.
    n_labels : int
    n_neighbours : int
        Near points that vote in each learner.
    """

    scores_are_shares: ClassVar[bool] = True  # see `ScoresShares`

    learners: tuple[AnnexLearner, ...]
    label_starts: Ids
    label_ids: Ids
    n_labels: int
    n_neighbours: int

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held."""
        hold_read_only(self, {"label_starts": np.int32, "label_ids": np.int32})

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""

        def answer(some: Bags) -> Answers:
            near = [one.near_points(some, self.n_neighbours, n_threads) for one in self.learners]
            labels, shares = self._votes(np.concatenate(near, axis=1), k, n_threads)
            return best_first(labels, shares, k, n_threads)

        return top_k_in_blocks(bags, k, ROWS_AT_ONCE, answer)

    def _votes(self, near: Ids, k: int, n_threads: int) -> Answers:
        """Return the labels that near points carry, and by what share of them."""
        width = min(max(k, LEAST_CANDIDATES), self.n_labels)
        labels, votes = np.empty((len(near), width), np.int32), np.empty((len(near), width), "f4")
        none, alike = np.empty((len(near), 0), np.int32), np.ones(near.shape, np.float32)
        given = (read_only(none, np.int32), read_only(near, np.int32), read_only(alike, np.float32))

        def work(start: int, stop: int) -> None:
            scratch = np.zeros(self.n_labels, np.float32)
            carried = self.label_starts, self.label_ids, width
            gather_candidates(*given, *carried, start, stop, scratch, labels, votes)

        over_row_chunks(work, len(near), n_threads=n_threads, chunk=256)
        return labels, np.where(labels >= 0, votes / np.float32(near.shape[1]), -np.inf)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        arrays: dict[str, NDArray[np.generic]] = {
            "labels/starts": self.label_starts,
            "labels/ids": self.label_ids,
        }
        for number, learner in enumerate(self.learners):
            arrays |= {f"learner{number}/{name}": getattr(learner, name) for name in _DTYPES}
        return arrays

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {
            "kind": "annexml",
            "n_learners": len(self.learners),
            "n_labels": self.n_labels,
            "n_neighbours": self.n_neighbours,
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> AnnexMLScorer:
        """Make it again from `config` and `to_arrays`."""
        return cls(
            learners=tuple(
                AnnexLearner(**{name: arrays[f"learner{number}/{name}"] for name in _DTYPES})
                for number in range(config["n_learners"])
            ),
            label_starts=arrays["labels/starts"],
            label_ids=arrays["labels/ids"],
            n_labels=config["n_labels"],
            n_neighbours=config["n_neighbours"],
        )
