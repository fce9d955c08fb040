"""The frozen perceptron over hashed tokens, as a trained model keeps it: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longtail.features.dense_layer import DenseLayer
from longtail.kernels.arrays import read_only

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags

__all__ = ["HashedMLPEncoder"]


@dataclass(frozen=True)
class HashedMLPEncoder:
    """Features ``ReLU(W_n ... ReLU(sum_t x_t e_h(t) + b_1) ...)`` (MACH, NeurIPS 2019).

    Parameters
    ----------
    bucket_of_token : int32 (n_tokens,)
        h.
    bucket_vectors : float32 (n_buckets, width)
        e, the first layer, one row a bucket of tokens.
    bias : float32 (width,)
        b_1.
    layers : tuple of DenseLayer
        The further ones.

    Examples
    --------
    Tokens 0 and 1 share a bucket. The features of an empty point are 0, whatever the bias.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.hashed_mlp_encoder import HashedMLPEncoder
    >>> bucket_of_token, vectors = np.array([0, 0, 1]), np.array([[1, -1], [2, 2]])
    >>> encoder = HashedMLPEncoder(bucket_of_token, vectors, bias=np.array([1, 0]))
    >>> bags = Bags.of(csr_array(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])))
    >>> encoder.encode(bags).tolist()
    [[2.0, 0.0], [2.0, 0.0], [3.0, 2.0], [0.0, 0.0]]
    """

    bucket_of_token: NDArray[np.int32]
    bucket_vectors: NDArray[np.float32]
    bias: NDArray[np.float32]
    layers: tuple[DenseLayer, ...] = ()

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:
        """Return the features of each bag, float32 (n, dimension); zeros for an empty one."""
        hashed = bags._replace(columns=self.bucket_of_token[bags.columns])
        features = hashed.times(read_only(self.bucket_vectors, np.float32), n_threads)
        features += self.bias
        np.maximum(features, 0, out=features)
        for layer in self.layers:
            features = layer.rectified(features, n_threads)
        features[np.diff(bags.row_starts) == 0] = 0
        return features

    def vectors_of_tokens(self) -> NDArray[np.float32]:
        """See `HasTokenVectors`: tokens of one bucket have one vector."""
        return np.asarray(self.bucket_vectors[self.bucket_of_token])

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what the encoder is made of."""
        arrays: dict[str, NDArray[np.generic]] = {
            "bucket_of_token": self.bucket_of_token,
            "bucket_vectors": self.bucket_vectors,
            "bias": self.bias,
        }
        for i, layer in enumerate(self.layers):
            arrays |= {f"layer{i}.matrix": layer.matrix, f"layer{i}.bias": layer.bias}
        return arrays

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        return {"kind": "hashed-mlp", "n_layers": len(self.layers)}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make it again from `config` and `to_arrays`."""
        layers = tuple(
            DenseLayer(arrays[f"layer{i}.matrix"], arrays[f"layer{i}.bias"])
            for i in range(config["n_layers"])
        )
        return cls(arrays["bucket_of_token"], arrays["bucket_vectors"], arrays["bias"], layers)
