"""A blend around any encoder of texts: a trained NGAME or DEXA with a transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longtail.blend.blend import Blend
from longtail.blend.score_network import best_labels
from longtail.features.encoder import UnitEncoder, encoder_from
from longtail.named_parts import with_prefix, without_prefix
from longtail.scorers.blocks import top_k_in_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from longtail.blend.evidence import Evidence
    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

__all__ = ["EncodedScorer"]

ROWS_AT_ONCE = 1024  # points whose candidates are held in memory together


@dataclass(frozen=True, kw_only=True)
class EncodedScorer(Blend):
    """A blend whose points are encoded by something that reads more than their bags.

    The encoder takes far longer than all the rest, which is therefore not one compiled call. An
    answer has at most as many labels as are found.

    Parameters
    ----------
    encoder : UnitEncoder
    **kwargs
        Those of `Blend`.

    Raises
    ------
    InputError
        If the parts are of different labels or dimensions.

    Examples
    --------
    The parts of a model of the default recipe, as a blend around their own encoder.

    >>> from longtail import LongtailClassifier
    >>> from longtail.blend.encoded import EncodedScorer
    >>> from longtail.compiled.expanded import expanded
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> blend = expanded(model.scorer)
    >>> scorer = EncodedScorer(encoder=blend.encoder, **blend.parts())
    >>> scorer.top_k(model.bags(["wine", "car"]), 2)[0].tolist()
    [[0, 1], [1, 0]]
    """

    encoder: UnitEncoder

    def __post_init__(self) -> None:
        """Refuse parts that do not fit."""
        self.check_parts(self.encoder.dimension)

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""

        def answer(some: Bags) -> Answers:
            evidence = self.evidence(some, n_threads)
            return best_labels(self.network, evidence, self.tail_weights, k, n_threads)

        return top_k_in_blocks(bags, k, ROWS_AT_ONCE, answer)

    def evidence(self, bags: Bags, n_threads: int = 1) -> Evidence:
        """Return the candidates of each point and what each source says of them."""
        return self.evidence_of(self.encoder.encode(bags, n_threads), bags, n_threads)

    def near_points(self, bag: Bags, n: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `KnowsPoints`."""
        vector = self.encoder.encode(bag)
        rows, similarities = self.search.near_points(vector, n)
        is_near = (rows[0] >= 0) & vector.any()
        return rows[0][is_near], similarities[0][is_near]

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        return with_prefix("encoder/", self.encoder.to_arrays()) | self.parts_to_arrays()

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {"kind": "encoded", "encoder": self.encoder.config(), **self.parts_config()}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> EncodedScorer:
        """Make it again from `config` and `to_arrays`, on memory maps as they are."""
        encoder: Any = encoder_from(config["encoder"], without_prefix("encoder/", arrays))
        return cls(encoder=encoder, **cls.parts_from(config, arrays))
