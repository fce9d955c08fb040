"""A label tree over sparse features joined with an encoder's vector: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from longtail.data.bags import Bags
from longtail.features.encoder import UnitEncoder, encoder_from
from longtail.named_parts import with_prefix, without_prefix
from longtail.scorers.blocks import top_k_in_blocks
from longtail.scorers.label_tree import LabelTreeScorer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

__all__ = ["HALF_LENGTH", "JoinedFeatures", "JoinedTreeScorer"]

HALF_LENGTH = np.float32(0.5**0.5)
ROWS_AT_ONCE = 4096  # points whose joined features are held in memory together


@dataclass(frozen=True)
class JoinedFeatures:
    """A bag's own entries, then those of its encoding: unit rows, each half of length sqrt(1/2).

    Parameters
    ----------
    encoder : UnitEncoder
    n_tokens : int
        Features of a bag.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.joined_features import JoinedFeatures
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import UnitBagEncoder
    >>> join = JoinedFeatures(UnitBagEncoder(np.array([[3, 4], [1, 0]], np.float32)), 2)
    >>> joined = join.of(Bags.one(np.array([0], np.int32), np.array([1], np.float32)))
    >>> joined.columns.tolist(), joined.values.round(2).tolist()
    ([0, 2, 3], [0.7099999785423279, 0.41999998688697815, 0.5699999928474426])
    """

    encoder: UnitEncoder
    n_tokens: int

    @property
    def n_features(self) -> int:
        """Number of joined features."""
        return self.n_tokens + self.encoder.dimension

    def of(self, bags: Bags, n_threads: int = 1) -> Bags:
        """Return the joined rows; see `joined`."""
        return self.joined(bags, self.encoder.encode(bags, n_threads))

    def joined(self, bags: Bags, vectors: NDArray[np.float32]) -> Bags:
        """Return bags joined with their vectors, float32 (n, dimension).

        A row stays empty if both are: an encoder that reads the text itself may know something of
        a text whose words the bag does not have.
        """
        dimension = vectors.shape[1]
        lengths = np.diff(bags.row_starts)
        known = (lengths > 0) | vectors.any(axis=1)
        starts = np.concatenate([[0], np.cumsum(lengths + dimension * known)])
        columns, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
        shifts = np.repeat(starts[:-1] - bags.row_starts[:-1], lengths)
        sparse = np.arange(len(bags.columns)) + shifts
        columns[sparse], values[sparse] = bags.columns, bags.values
        dense = (starts[:-1] + lengths)[known, np.newaxis] + np.arange(dimension)
        columns[dense], values[dense] = self.n_tokens + np.arange(dimension), vectors[known]
        values *= HALF_LENGTH
        return Bags(starts.astype(np.int32), columns, values)


@dataclass(frozen=True)
class JoinedTreeScorer:
    """X-Transformer at work: encode, match clusters, rank the labels inside the best of them.

    A tree of two levels over joined features. With g the matcher's score of a label's cluster and
    h the ranker's of the label, the score is ``exp(-max(0, 1-g)^2) exp(-max(0, 1-h)^2)``, and
    labels of other clusters than the best b are left out.

    Parameters
    ----------
    join : JoinedFeatures
    tree : LabelTreeScorer
        Its beam is b.

    Examples
    --------
    Token 0 speaks for the cluster of labels 4 and 6, and for label 6. With a beam of one, label 9,
    which is of the other cluster, is no answer.

    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import UnitBagEncoder
    >>> from longtail.scorers.joined_features import JoinedFeatures, JoinedTreeScorer
    >>> from longtail.scorers.label_tree import LabelTreeScorer
    >>> from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    >>> starts, features = np.array([0, 1, 2, 2, 3, 3]), np.array([0, 1, 0])
    >>> nodes = SparseLabelVectors(starts, features, np.full(3, 2), np.zeros(5))
    >>> tree = LabelTreeScorer.of(np.array([1, 3, 5, 6]), np.array([4, 6, 9]), nodes, beam_size=1)
    >>> scorer = JoinedTreeScorer(JoinedFeatures(UnitBagEncoder(np.eye(2)), n_tokens=2), tree)
    >>> bag = Bags.one(np.array([0], np.int32), np.array([1], np.float32))
    >>> scorer.top_k(bag, 3)[0].tolist()
    [[6, 4, -1]]
    """

    scores_are_shares: ClassVar[bool] = True  # see `ScoresShares`

    join: JoinedFeatures
    tree: LabelTreeScorer

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""

        def answer(some: Bags) -> Answers:
            return self.tree.top_k(self.join.of(some, n_threads), k, n_threads)

        return top_k_in_blocks(bags, k, ROWS_AT_ONCE, answer)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        return with_prefix("encoder/", self.join.encoder.to_arrays()) | self.tree.to_arrays()

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {
            "kind": "joined-tree",
            "tree": self.tree.config(),
            "encoder": self.join.encoder.config(),
            "n_tokens": self.join.n_tokens,
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> JoinedTreeScorer:
        """Make it again from `config` and `to_arrays`."""
        encoder: Any = encoder_from(config["encoder"], without_prefix("encoder/", arrays))
        tree = LabelTreeScorer.from_parts(config["tree"], arrays)
        return cls(JoinedFeatures(encoder, config["n_tokens"]), tree)
