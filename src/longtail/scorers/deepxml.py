"""A trained DeepXML model: from bags of tokens to scored labels, without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from longtail.features.encoder import Encoder, HasTokenVectors, encoder_from
from longtail.named_parts import with_prefix, without_prefix
from longtail.negatives.nearest_labels import LabelShortlister
from longtail.scorers.fusion import PartialScores, ScoreFusion, fused_top_k
from longtail.scorers.label_vectors import LabelVectors
from longtail.transfer.transform import Transform, transform_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

__all__ = ["DeepXMLScorer", "Ranker"]


@dataclass(frozen=True)
class Ranker:
    """An encoder, a transfer block and classifiers: scores given labels of given points.

    Examples
    --------
    Token 0 speaks for label 0, token 1 for label 1, which has a bias besides.

    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> from longtail.scorers.deepxml import Ranker
    >>> from longtail.scorers.label_vectors import LabelVectors
    >>> from longtail.transfer.transform import Unchanged
    >>> classifier = LabelVectors(np.eye(2, dtype=np.float32), np.array([0, 1], np.float32))
    >>> ranker = Ranker(BagEncoder(np.eye(2, dtype=np.float32)), Unchanged(), classifier)
    >>> bag = Bags.one(np.array([0, 1], np.int32), np.array([3, 1], np.float32))
    >>> ranker.logits(bag, np.array([[1, 0, -1]], np.int32)).tolist()
    [[2.0, 3.0, -inf]]
    """

    encoder: Encoder
    transform: Transform
    classifier: LabelVectors

    def logits(
        self, bags: Bags, labels: NDArray[np.int32], n_threads: int = 1
    ) -> NDArray[np.float32]:
        """Return float32 (n, size), padded with -inf."""
        features = self.transform.apply(self.encoder.encode(bags, n_threads), n_threads)
        return self.classifier.logits(features, labels, n_threads)

    def to_arrays(self, group: str) -> dict[str, NDArray[np.generic]]:
        """Return all arrays, named ``"group/name"``."""
        return {
            **with_prefix(f"{group}-encoder/", self.encoder.to_arrays()),
            **with_prefix(f"{group}-residual/", self.transform.to_arrays()),
            **with_prefix(f"{group}-classifier/", self.classifier.to_arrays()),
        }

    def config(self) -> dict[str, Any]:
        """Return of what kind the parts are, as JSON values."""
        return {"encoder": self.encoder.config(), "residual": self.transform.config()}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays, group: str) -> Ranker:
        """Make it again, on memory maps as they are."""
        encoder = without_prefix(f"{group}-encoder/", arrays)
        transform = without_prefix(f"{group}-residual/", arrays)
        classifier = without_prefix(f"{group}-classifier/", arrays)
        return cls(
            encoder_from(config["encoder"], encoder),
            transform_from(config["residual"], transform),
            LabelVectors(**classifier),
        )


@dataclass(frozen=True, kw_only=True)
class DeepXMLScorer:
    """Log-time prediction (DeepXML paper, section 4).

    Encode, shortlist by the frozen features, transfer, classify the shortlist, re-rank it, and
    fuse: O(D^2 + D log L) a point.

    Parameters
    ----------
    ranker : Ranker
        The first network: its encoder gives the frozen features.
    shortlister : LabelShortlister
    reranker : Ranker or None
    label_clusters : int32 (n_labels,)
        The meta-label of each label, for people to look at.
    fusion : ScoreFusion

    Examples
    --------
    Both labels are near enough; what counts is the mean of nearness and classifier.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> from longtail.negatives.nearest_labels import NearestLabels
    >>> from longtail.scorers.deepxml import DeepXMLScorer, Ranker
    >>> from longtail.scorers.fusion import ScoreFusion
    >>> from longtail.scorers.label_vectors import LabelVectors
    >>> from longtail.transfer.transform import Unchanged
    >>> unit = np.eye(2, dtype=np.float32)
    >>> ranker = Ranker(BagEncoder(unit), Unchanged(), LabelVectors(unit, np.zeros(2, np.float32)))
    >>> shortlister = NearestLabels(exact=True).build(
    ...     unit, csr_array(unit), seed=0, n_threads=1
    ... )
    >>> scorer = DeepXMLScorer(
    ...     ranker=ranker,
    ...     shortlister=shortlister,
    ...     reranker=None,
    ...     label_clusters=np.array([0, 1], np.int32),
    ...     fusion=ScoreFusion(alpha=0.5),
    ... )
    >>> bag = Bags.one(np.array([0, 1], np.int32), np.array([1, 3], np.float32))
    >>> scorer.top_k(bag, 2)[0].tolist()
    [[1, 0]]
    """

    scores_are_shares: ClassVar[bool] = True  # see `ScoresShares`

    ranker: Ranker
    shortlister: LabelShortlister
    reranker: Ranker | None
    label_clusters: NDArray[np.int32]
    fusion: ScoreFusion

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""
        return fused_top_k(self.partial_scores, self.fusion, bags, k, n_threads)

    @property
    def dimension(self) -> int:
        """See `HasVectors`."""
        return int(self.ranker.classifier.vectors.shape[1])

    def vectors_of_labels(self) -> NDArray[np.float32]:
        """See `HasVectors`: those of the classifiers."""
        return self.ranker.classifier.vectors

    def vectors_of_tokens(self) -> NDArray[np.float32] | None:
        """See `HasVectors`."""
        encoder = self.ranker.encoder
        return encoder.vectors_of_tokens() if isinstance(encoder, HasTokenVectors) else None

    def partial_scores(self, bags: Bags, n_threads: int = 1) -> PartialScores:
        """Return what each part says of each bag's shortlist."""
        features = self.ranker.encoder.encode(bags, n_threads)
        labels, nearness = self.shortlister.query(features, n_threads)
        final = self.ranker.transform.apply(features, n_threads)
        logits = self.ranker.classifier.logits(final, labels, n_threads)
        reranked = np.empty((bags.n_rows, 0), np.float32)
        if self.reranker is not None:
            reranked = self.reranker.logits(bags, labels, n_threads)
        return PartialScores(labels, nearness, logits, reranked)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        arrays = self.ranker.to_arrays("ranker")
        arrays["labels/clusters"] = self.label_clusters
        if self.reranker is not None:
            arrays |= self.reranker.to_arrays("reranker")
        return arrays | with_prefix("shortlist/", self.shortlister.to_arrays())

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {
            "kind": "deepxml",
            **self.shortlister.config(),
            "has_reranker": self.reranker is not None,
            "ranker": self.ranker.config(),
            "reranker": None if self.reranker is None else self.reranker.config(),
            "fusion": self.fusion.config(),
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> DeepXMLScorer:
        """Make it again from `config` and `to_arrays`."""
        reranker = None
        if config["has_reranker"]:
            reranker = Ranker.from_parts(config["reranker"], arrays, "reranker")
        return cls(
            ranker=Ranker.from_parts(config["ranker"], arrays, "ranker"),
            shortlister=LabelShortlister.from_parts(config, without_prefix("shortlist/", arrays)),
            reranker=reranker,
            label_clusters=np.asarray(arrays["labels/clusters"], np.int32),
            fusion=ScoreFusion(**config["fusion"]),
        )
