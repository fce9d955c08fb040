"""The settings of feature architectures, which recipes of one network and of DeepXML share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.errors import InputError
from longtail.estimators.estimator import LabelEstimator
from longtail.features.convolutions import XMLCNN, KimCNN
from longtail.features.hashed_mlp import HashedMLP

if TYPE_CHECKING:
    from longtail.data.point_input import PointInput
    from longtail.features.architecture import FeatureArchitecture

__all__ = ["OfArchitecture", "OfKimCNN", "OfMLP", "OfXMLCNN"]


@dataclass(kw_only=True, eq=False, repr=False)
class OfArchitecture(LabelEstimator):
    """Base of the recipes that are built on one feature architecture.

    Parameters
    ----------
    dropout : float
        After each ReLU, in training.
    **kwargs
        Those of `LabelEstimator`.
    """

    dropout: float = KimCNN.dropout

    def architecture(self) -> FeatureArchitecture:
        """Return the feature architecture."""
        raise NotImplementedError

    def reads(self) -> PointInput:
        """Return what the architecture reads of a point."""
        return self.architecture().reads


@dataclass(kw_only=True, eq=False, repr=False)
class OfMLP(OfArchitecture):
    """Base of the recipes with MACH's perceptron.

    Parameters
    ----------
    dimension : int
        Width of the hidden layer.
    **kwargs
        Those of `OfArchitecture`.
    """

    dimension: int = HashedMLP.hidden_layers[0]

    def architecture(self) -> FeatureArchitecture:
        """Return the perceptron."""
        return HashedMLP(hidden_layers=(self.dimension,), dropout=self.dropout)


@dataclass(kw_only=True, eq=False, repr=False)
class OfKimCNN(OfArchitecture):
    """Base of the recipes with Kim's filters.

    Parameters
    ----------
    dimension : int
        Length of a word's vector.
    n_filters : int
        Filters of each width: 3, 4 and 5 words.
    n_words : int
        Words that are read of a text.
    **kwargs
        Those of `OfArchitecture`; no character n-grams by default, which have no order. Only words
        are read: pairs of words count where word vectors start and labels are clustered.
    """

    char_ngrams: tuple[int, int] | str | None = None
    dimension: int = KimCNN.dimension
    n_filters: int = KimCNN.n_filters
    n_words: int = KimCNN.n_words

    def architecture(self) -> FeatureArchitecture:
        """Return Kim's filters."""
        return KimCNN(
            dimension=self.dimension,
            n_filters=self.n_filters,
            n_words=self.n_words,
            dropout=self.dropout,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class OfXMLCNN(OfArchitecture):
    """Base of the recipes with XML-CNN's filters and bottleneck.

    Parameters
    ----------
    dimension : int
        Length of a word's vector.
    n_filters : int
        Filters of each width: 2, 4 and 8.
    n_words : int
        Words that are read of a text; 500 in the paper.
    n_chunks : int
        p, the maxima that are kept of each map.
    bottleneck : int
        Width of the layer between maxima and labels.
    along_embedding : bool
        Slide filters along the embedding, each over some numbers of the vectors of all words, as
        the authors' code does, and not along the words, as their paper has it; see `XMLCNN`.
    **kwargs
        Those of `OfArchitecture`; no character n-grams by default, which have no order. Only words
        are read: pairs of words count where word vectors start and labels are clustered.
    """

    char_ngrams: tuple[int, int] | str | None = None
    dimension: int = XMLCNN.dimension
    n_filters: int = XMLCNN.n_filters
    n_words: int = XMLCNN.n_words
    n_chunks: int = XMLCNN.n_chunks
    bottleneck: int = XMLCNN.bottleneck
    along_embedding: bool = XMLCNN.along_embedding

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        if self.n_chunks > (self.dimension if self.along_embedding else self.n_words):
            raise InputError(
                f"n_chunks must be at most n_words, or dimension along the embedding: there are no "
                f"more places to split at. Got {self.n_chunks}."
            )
        if self.along_embedding and self.dimension < max(XMLCNN.widths):
            raise InputError(
                f"dimension must be at least {max(XMLCNN.widths)} along the embedding, the width "
                f"of the widest filter, got {self.dimension}."
            )

    def architecture(self) -> FeatureArchitecture:
        """Return XML-CNN's filters and bottleneck."""
        return XMLCNN(
            dimension=self.dimension,
            n_filters=self.n_filters,
            n_words=self.n_words,
            n_chunks=self.n_chunks,
            bottleneck=self.bottleneck,
            dropout=self.dropout,
            along_embedding=self.along_embedding,
        )
