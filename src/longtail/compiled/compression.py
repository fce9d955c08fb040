"""A trained scorer laid out for serving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.compiled.blended import BlendedScorer
from longtail.compiled.expanded import expanded
from longtail.compiled.scorer import CompiledScorer, StorageType, as_storage
from longtail.errors import InputError
from longtail.features.onnx_encoder import OnnxEncoder
from longtail.features.onnx_export import to_onnx
from longtail.features.transformer_encoder import TransformerEncoder
from longtail.kernels.jit import n_usable_cores
from longtail.scorers.inner_transformers import transformers_of, with_transformers_as

if TYPE_CHECKING:
    from longtail.scorers.inner_transformers import TextEncoder
    from longtail.scorers.protocols import Scorer

__all__ = ["compressed"]


def compressed(scorer: Scorer, storage: StorageType) -> Scorer:
    """Return a scorer that answers alike, quicker, and does not need what training needs.

    Parameters
    ----------
    scorer : Scorer
        `BlendedScorer` becomes a `CompiledScorer`, and this one one of another `storage`, or stays
        itself where that is its own; transformers in others become `OnnxEncoder`.
    storage : {"float32", "float16", "int8"}

    Raises
    ------
    InputError
        If the scorer is another, or cannot be kept as `storage`.
    MissingExtraError
        If there is a transformer and a package that exports it is missing.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.compression import compressed
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> scorer = LongtailClassifier().fit(texts, labels).predictor_.scorer
    >>> scorer.storage, compressed(scorer, "float16").storage
    ('int8', 'float16')
    >>> compressed(scorer, "int8") is scorer
    True
    """
    if isinstance(scorer, CompiledScorer):
        if scorer.storage == as_storage(storage):
            return scorer  # what is rounded twice is not what was rounded once
        scorer = expanded(scorer)
    if isinstance(scorer, BlendedScorer):
        return CompiledScorer.of(scorer, storage, n_usable_cores())
    transformers = transformers_of(scorer)
    if transformers and not any(isinstance(one, TransformerEncoder) for one in transformers):
        raise InputError(
            "This model is compressed already: its transformer is a graph, which is not written "
            "anew. Compress the model that it was made of."
        )
    if not transformers:
        raise InputError(
            "Only a model of the default recipe, dexa, ngame or siamesexml, without an "
            "`energy_reranker`, or one with a transformer can be compressed, and this one is "
            "neither. Use it as it is."
        )
    if storage not in {"float32", "int8"}:
        raise InputError(f"storage of a transformer must be 'float32' or 'int8', got {storage!r}.")

    def exported(encoder: TextEncoder) -> OnnxEncoder:
        if isinstance(encoder, OnnxEncoder):
            return encoder
        return to_onnx(encoder, int8=storage == "int8")

    return with_transformers_as(scorer, exported)
