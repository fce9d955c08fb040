"""Words for parts of recipes, which a command line can write."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from longtail.errors import require_one_of
from longtail.matching.cluster_scores import ClusterMatcher, LinearMatcher, NeuralMatcher
from longtail.siamese.pair_losses import (
    DecoupledSoftmax,
    PairLoss,
    ProbabilisticContrast,
    TripletLoss,
)
from longtail.surrogates.label_indexing import (
    LabelIndexer,
    LabelTexts,
    PointEmbeddings,
    PointFeatures,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["INDEXERS", "MATCHERS", "PAIR_LOSSES", "part_of"]

Part = TypeVar("Part")

INDEXERS: Mapping[str, LabelIndexer] = MappingProxyType(
    {"features": PointFeatures(), "embeddings": PointEmbeddings(), "texts": LabelTexts()}
)
MATCHERS: Mapping[str, ClusterMatcher] = MappingProxyType(
    {"linear": LinearMatcher(), "neural": NeuralMatcher()}
)
PAIR_LOSSES: Mapping[str, PairLoss] = MappingProxyType(
    {
        "triplet": TripletLoss(),
        "softmax": DecoupledSoftmax(),
        "contrast": ProbabilisticContrast(),
        "contrast-of-labels": ProbabilisticContrast(of_labels=True),
    }
)


def part_of(setting: str, given: Part | str, words: Mapping[str, Part]) -> Part:
    """Return the part that a word stands for; a part stands for itself.

    Raises
    ------
    InputError
        If there is no such word.

    Examples
    --------
    >>> from longtail.recipes.part_words import INDEXERS, part_of
    >>> part_of("indexers", "texts", INDEXERS)
    LabelTexts()
    """
    if not isinstance(given, str):
        return given
    require_one_of(setting, given, words)
    return words[given]
