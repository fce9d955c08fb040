"""Frozen convolutions over words, as a trained model keeps them: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longtail.errors import InputError
from longtail.features.dense_layer import DenseLayer
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.networks import convolve_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags

__all__ = ["ConvolutionEncoder"]


@dataclass(frozen=True)
class ConvolutionEncoder:
    """Convolutions of several widths, the maxima of chunks of each map, and a layer on top.

    Kim, "Convolutional neural networks for sentence classification", EMNLP 2014 (one chunk, no
    layer); Liu et al., "Deep learning for extreme multi-label text classification" (XML-CNN), SIGIR
    2017.

    Parameters
    ----------
    word_vectors : float32 (n_tokens, dimension)
    filters : tuple of DenseLayer
        One a width: (n_filters, width * dimension) along the words, or
        (n_filters, width * n_words) along the embedding.
    n_chunks : int
    n_words : int
        Words that filters along the embedding see; 0 for filters along the words.
    bottleneck : DenseLayer or None

    Examples
    --------
    A filter that adds up the vectors of two words; the second text has no words.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.convolution_encoder import ConvolutionEncoder
    >>> from longtail.features.dense_layer import DenseLayer
    >>> add, word_vectors = DenseLayer(np.ones((1, 2)), np.ones(1)), np.array([[1], [5], [2]])
    >>> encoder = ConvolutionEncoder(word_vectors, (add,), n_chunks=1, n_words=0, bottleneck=None)
    >>> words = np.array([[0, 1, 2, -1], [-1, -1, -1, -1]], np.int32)
    >>> encoder.encode(Bags.of(csr_array((2, 3)))._replace(words=words)).tolist()  # 5 + 2, bias 1
    [[8.0], [0.0]]
    """

    word_vectors: NDArray[np.float32]
    filters: tuple[DenseLayer, ...]
    n_chunks: int
    n_words: int
    bottleneck: DenseLayer | None

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:
        """Return the features of each text, float32 (n, dimension); zeros for one without words.

        Raises
        ------
        InputError
            If the points come without their words in order.
        """
        if bags.words is None:
            raise InputError(
                "Convolutions read the words of a text in order, but these points are bags. Pass "
                "texts."
            )
        words, vectors = read_only(bags.words, np.int32), read_only(self.word_vectors, np.float32)
        pooled = [self._pooled(words, vectors, layer, n_threads) for layer in self.filters]
        features = np.concatenate(pooled, axis=1)
        if self.bottleneck is not None:
            features = self.bottleneck.rectified(features, n_threads)
        features[~(words >= 0).any(axis=1)] = 0
        return features

    def _pooled(
        self,
        words: NDArray[np.int32],
        vectors: NDArray[np.float32],
        layer: DenseLayer,
        n_threads: int,
    ) -> NDArray[np.float32]:
        """Return the maxima of all chunks of the maps of one width."""
        filters, bias = (read_only(part, np.float32) for part in layer)
        pooled = np.empty((len(words), len(filters) * self.n_chunks), np.float32)

        def work(start: int, stop: int) -> None:
            sizes = (self.n_chunks, self.n_words)
            convolve_texts(words, vectors, filters, bias, *sizes, start, stop, pooled)

        over_row_chunks(work, len(words), n_threads=n_threads, chunk=64)
        return pooled

    def vectors_of_tokens(self) -> NDArray[np.float32]:
        """See `HasTokenVectors`."""
        return self.word_vectors

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what the encoder is made of."""
        arrays: dict[str, NDArray[np.generic]] = {"word_vectors": self.word_vectors}
        layers = {f"filters{i}": layer for i, layer in enumerate(self.filters)}
        if self.bottleneck is not None:
            layers["bottleneck"] = self.bottleneck
        for name, layer in layers.items():
            arrays |= {f"{name}.matrix": layer.matrix, f"{name}.bias": layer.bias}
        return arrays

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        return {
            "kind": "convolutions",
            "n_widths": len(self.filters),
            "n_chunks": self.n_chunks,
            "n_words": self.n_words,
            "has_bottleneck": self.bottleneck is not None,
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make it again from `config` and `to_arrays`."""

        def layer(name: str) -> DenseLayer:
            return DenseLayer(arrays[f"{name}.matrix"], arrays[f"{name}.bias"])

        return cls(
            arrays["word_vectors"],
            tuple(layer(f"filters{i}") for i in range(config["n_widths"])),
            config["n_chunks"],
            config["n_words"],
            layer("bottleneck") if config["has_bottleneck"] else None,
        )
