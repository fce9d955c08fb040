"""A trained Slice model: fixed vectors, near label centroids, linear classifiers; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from longtail.features.bag_encoder import UnitBagEncoder
from longtail.named_parts import joined_parts, without_prefix
from longtail.negatives.nearest_labels import LabelShortlister
from longtail.scorers.fusion import PartialScores, ScoreFusion, fused_top_k
from longtail.scorers.label_vectors import LabelVectors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

__all__ = ["SliceScorer"]


@dataclass(frozen=True, kw_only=True)
class SliceScorer:
    """Shortlist the labels with the nearest centroids, classify those, and mix both scores.

    Parameters
    ----------
    encoder : UnitBagEncoder
    shortlister : LabelShortlister
    classifier : LabelVectors
    fusion : ScoreFusion
        Its alpha is the weight of the classifier against nearness.
    """

    scores_are_shares: ClassVar[bool] = True  # see `ScoresShares`

    encoder: UnitBagEncoder
    shortlister: LabelShortlister
    classifier: LabelVectors
    fusion: ScoreFusion

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""
        return fused_top_k(self.partial_scores, self.fusion, bags, k, n_threads)

    def partial_scores(self, bags: Bags, n_threads: int = 1) -> PartialScores:
        """Return what nearness and classifier say of each bag's shortlist."""
        vectors = self.encoder.encode(bags, n_threads)
        labels, nearness = self.shortlister.query(vectors, n_threads)
        logits = self.classifier.logits(vectors, labels, n_threads)
        return PartialScores(labels, nearness, logits, np.empty((bags.n_rows, 0), np.float32))

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        parts: dict[str, dict[str, NDArray[np.generic]]] = {
            "encoder": {"token_vectors": self.encoder.token_vectors},
            "classifier": self.classifier.to_arrays(),
            "shortlist": self.shortlister.to_arrays(),
        }
        return joined_parts(parts, "/")

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {
            "kind": "slice",
            **self.shortlister.config(),
            "fusion": self.fusion.config(),
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> SliceScorer:
        """Make it again from `config` and `to_arrays`."""
        return cls(
            encoder=UnitBagEncoder(arrays["encoder/token_vectors"]),
            shortlister=LabelShortlister.from_parts(config, without_prefix("shortlist/", arrays)),
            classifier=LabelVectors(**without_prefix("classifier/", arrays)),
            fusion=ScoreFusion(**config["fusion"]),
        )
