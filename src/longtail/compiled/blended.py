"""A trained default model: a blend around a bag of token vectors; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from longtail.blend.blend import Blend
from longtail.blend.encoded import EncodedScorer
from longtail.compiled.scorer import CompiledScorer
from longtail.features.bag_encoder import StoredBagEncoder, UnitBagEncoder

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from longtail.blend.evidence import Evidence
    from longtail.data.bags import Bags
    from longtail.features.encoder import UnitEncoder
    from longtail.features.half_encoder import HalfBagEncoder
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers, Scorer

__all__ = ["BlendedScorer", "compiled_of", "scorer_around"]


@dataclass(frozen=True, kw_only=True)
class BlendedScorer(Blend):
    """A blend whose points are bags of tokens, answered by one compiled call.

    Parameters
    ----------
    encoder : UnitBagEncoder, HalfBagEncoder or StoredBagEncoder
    **kwargs
        Those of `Blend`.

    Raises
    ------
    InputError
        If the parts are of different labels, tokens or dimensions.

    Examples
    --------
    The parts of a model of the default recipe, one of which is exchanged: label 1 is to come first.

    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.expanded import expanded
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> scorer = expanded(model.scorer)
    >>> other = replace(scorer, tail_weights=np.array([0, 99]))
    >>> [one.top_k(model.bags(["wine"]), 2)[0].tolist() for one in (scorer, other)]
    [[[0, 1]], [[1, 0]]]
    """

    encoder: UnitBagEncoder | HalfBagEncoder | StoredBagEncoder

    def __post_init__(self) -> None:
        """Refuse parts that do not fit."""
        self.check_parts(self.encoder.dimension, self.encoder.n_tokens)

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`."""
        return self.compiled.top_k(bags, k, n_threads)

    @cached_property
    def compiled(self) -> CompiledScorer:
        """The same model as one compiled call, made at the first answer."""
        return CompiledScorer.of(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process."""
        return {name: part for name, part in self.__dict__.items() if name != "compiled"}

    def vectors_of_tokens(self) -> NDArray[np.float32]:
        """See `HasVectors`."""
        return self.encoder.token_vectors

    def evidence(self, bags: Bags, n_threads: int = 1) -> Evidence:
        """Return the candidates of each bag and what each source says of them."""
        return self.evidence_of(self.encoder.encode(bags, n_threads), bags, n_threads)

    def near_points(self, bag: Bags, n: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `KnowsPoints`."""
        return self.compiled.near_points(bag, n)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        return {"encoder/token_vectors": self.encoder.token_vectors, **self.parts_to_arrays()}

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {"kind": "blended", **self.parts_config()}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> BlendedScorer:
        """Make it again from `config` and `to_arrays`, on memory maps as they are."""
        encoder = UnitBagEncoder(arrays["encoder/token_vectors"])
        return cls(encoder=encoder, **cls.parts_from(config, arrays))


def compiled_of(scorer: Scorer) -> CompiledScorer | None:
    """Return a scorer as one compiled call, or None where it cannot be one.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.blended import compiled_of
    >>> from longtail.compiled.expanded import expanded
    >>> from longtail.scorers.ensemble import EnsembleScorer
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> scorer = LongtailClassifier().fit(texts, labels).predictor_.scorer
    >>> compiled_of(scorer) is scorer, type(compiled_of(expanded(scorer))).__name__
    (True, 'CompiledScorer')
    >>> compiled_of(EnsembleScorer((scorer, scorer))) is None
    True
    """
    compiled = scorer.compiled if isinstance(scorer, BlendedScorer) else scorer
    return compiled if isinstance(compiled, CompiledScorer) else None


def scorer_around(encoder: UnitEncoder, blend: Blend) -> BlendedScorer | EncodedScorer:
    """Return a blend with an encoder: one compiled call around a bag of token vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.blended import scorer_around
    >>> from longtail.compiled.expanded import expanded
    >>> from longtail.features.onnx_encoder import OnnxEncoder
    >>> from longtail.features.text_pieces import PiecesOfTexts
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> blend = expanded(LongtailClassifier().fit(texts, labels).predictor_.scorer)
    >>> other = OnnxEncoder(PiecesOfTexts("{}", 8, 0), np.zeros(0, np.uint8), blend.dimension)
    >>> [type(scorer_around(encoder, blend)).__name__ for encoder in (blend.encoder, other)]
    ['BlendedScorer', 'EncodedScorer']
    """
    if isinstance(encoder, UnitBagEncoder | StoredBagEncoder):
        return BlendedScorer(encoder=encoder, **blend.parts())
    return EncodedScorer(encoder=encoder, **blend.parts())
