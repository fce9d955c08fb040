"""A trained MACH: networks that tell buckets of labels apart, and the mean of what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from longtail.features.dense_layer import DenseLayer
from longtail.features.encoder import encoder_from
from longtail.kernels.arrays import read_only
from longtail.kernels.hashed_labels import best_hashed_labels
from longtail.kernels.jit import over_row_chunks
from longtail.named_parts import with_prefix, without_prefix
from longtail.scorers.blocks import top_k_in_blocks
from longtail.scorers.sigmoid import sigmoid_by_tanh

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.features.encoder import Encoder
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

__all__ = ["BucketNetwork", "HashedLabelsScorer"]

ROWS_AT_ONCE = 1024  # points whose scores of all buckets are held in memory together


class BucketNetwork(NamedTuple):
    """Scores the buckets of one hash of the labels.

    Attributes
    ----------
    encoder : Encoder
    buckets : DenseLayer
        One linear classifier a bucket.

    Examples
    --------
    The first token says bucket 0, not bucket 1, and nothing of bucket 2.

    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> from longtail.features.dense_layer import DenseLayer
    >>> from longtail.scorers.hashed_labels import BucketNetwork
    >>> buckets = DenseLayer(np.array([[99, 0], [-99, 0], [0, 99]]), np.zeros(3))
    >>> network = BucketNetwork(BagEncoder(np.eye(2)), buckets)
    >>> bag = Bags.one(np.array([0], np.int32), np.array([1], np.float32))
    >>> network.probabilities(bag).tolist()
    [[1.0, 0.0, 0.5]]
    """

    encoder: Encoder
    buckets: DenseLayer

    def probabilities(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:
        """Return those of all buckets, float32 (n, n_buckets)."""
        logits = self.buckets.apply(self.encoder.encode(bags, n_threads), n_threads)
        return sigmoid_by_tanh(logits)


@dataclass(frozen=True)
class HashedLabelsScorer:
    """MACH (Medini et al., NeurIPS 2019): a label's score is the mean of those of its buckets.

    ``score(l) = 1 / R sum_r p_r(h_r(l))`` over R hashes h_r of the labels to buckets. Two labels
    that share a bucket in one hash hardly share one in another.

    Parameters
    ----------
    networks : tuple of BucketNetwork
        One a hash.
    bucket_of_label : int32 (n_hashes, n_used)
    labels : int32 (n_used,)
        The ids of the labels that are used, ascending.

    Examples
    --------
    Both hashes put label 3 into bucket 0, which the point is of; labels 5 and 8 are there once.

    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> from longtail.features.dense_layer import DenseLayer
    >>> from longtail.scorers.hashed_labels import BucketNetwork, HashedLabelsScorer
    >>> network = BucketNetwork(BagEncoder(np.eye(2)), DenseLayer(99 * np.eye(2), np.zeros(2)))
    >>> hashes = np.array([[0, 0, 1], [0, 1, 0]], np.int32)
    >>> scorer = HashedLabelsScorer((network, network), hashes, np.array([3, 5, 8], np.int32))
    >>> bag = Bags.one(np.array([0], np.int32), np.array([1], np.float32))
    >>> ids, scores = scorer.top_k(bag, 3)
    >>> ids.tolist(), scores.tolist()
    ([[3, 5, 8]], [[1.0, 0.75, 0.75]])
    """

    scores_are_shares: ClassVar[bool] = True  # see `ScoresShares`

    networks: tuple[BucketNetwork, ...]
    bucket_of_label: NDArray[np.int32]
    labels: NDArray[np.int32]

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`. A point that says nothing has no answer."""
        ids, scores = top_k_in_blocks(
            bags, k, ROWS_AT_ONCE, lambda some: self._best(some, k, n_threads)
        )
        is_empty = bags.silent()
        ids[is_empty], scores[is_empty] = -1, -np.inf
        return np.where(ids >= 0, self.labels[ids], np.int32(-1)), scores

    def _best(self, bags: Bags, k: int, n_threads: int) -> Answers:
        """Return the best used labels, numbered among those, of some points."""
        ids = np.empty((bags.n_rows, k), np.int32)
        scores = np.empty((bags.n_rows, k), np.float32)
        most = max(len(network.buckets.matrix) for network in self.networks)
        found = np.zeros((len(self.networks), bags.n_rows, most), np.float32)
        for i, network in enumerate(self.networks):
            found[i, :, : len(network.buckets.matrix)] = network.probabilities(bags, n_threads)
        buckets, found = read_only(self.bucket_of_label, np.int32), read_only(found, np.float32)

        def work(start: int, stop: int) -> None:
            best_hashed_labels(found, buckets, start, stop, ids, scores)

        over_row_chunks(work, bags.n_rows, n_threads=n_threads, chunk=64)
        return ids, scores

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        arrays: dict[str, NDArray[np.generic]] = {
            "hashes/bucket_of_label": self.bucket_of_label,
            "hashes/labels": self.labels,
        }
        for i, network in enumerate(self.networks):
            arrays |= with_prefix(f"hash{i}/", network.encoder.to_arrays())
            arrays |= with_prefix(f"hash{i}/buckets.", network.buckets._asdict())
        return arrays

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        encoders = [network.encoder.config() for network in self.networks]
        return {"kind": "hashed-labels", "encoders": encoders}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> Self:
        """Make it again from `config` and `to_arrays`."""
        networks = []
        for i, encoder in enumerate(config["encoders"]):
            parts = without_prefix(f"hash{i}/", arrays)
            buckets = DenseLayer(parts["buckets.matrix"], parts["buckets.bias"])
            networks.append(BucketNetwork(encoder_from(encoder, parts), buckets))
        return cls(tuple(networks), arrays["hashes/bucket_of_label"], arrays["hashes/labels"])
