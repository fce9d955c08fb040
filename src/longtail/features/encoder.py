"""What every trained feature architecture is to a scorer, and how a saved one is made again."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from longtail.features.bag_encoder import BagEncoder, UnitBagEncoder
from longtail.features.convolution_encoder import ConvolutionEncoder
from longtail.features.hashed_mlp_encoder import HashedMLPEncoder
from longtail.features.image_encoder import ImageEncoder
from longtail.features.onnx_encoder import OnnxEncoder
from longtail.features.row_encoder import RowEncoder
from longtail.features.summed_encoder import SummedEncoder
from longtail.features.transformer_encoder import TransformerEncoder
from longtail.kernels.arrays import read_only
from longtail.named_parts import without_prefix

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags

__all__ = ["ENCODERS", "Encoder", "HasTokenVectors", "UnitEncoder", "encoder_from"]


class Encoder(Protocol):
    """Frozen features: from points to vectors, without torch."""

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:
        """Return the features of each point, float32 (n, dimension); zeros for an empty one."""
        ...

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays that it is made of."""
        ...

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        ...


class UnitEncoder(Encoder, Protocol):
    """An encoder whose vectors have length 1."""

    @property
    def dimension(self) -> int:
        """Length of a vector, as numbers."""
        ...


@runtime_checkable
class HasTokenVectors(Protocol):
    """An encoder that knows each token by a vector, whatever it makes of these."""

    def vectors_of_tokens(self) -> NDArray[np.float32]:
        """Return them, float32 (n_tokens, dimension)."""
        ...


def encoder_from(config: Mapping[str, Any], arrays: Mapping[str, NDArray[np.generic]]) -> Encoder:
    """Return the encoder that a model folder describes.

    Parameters
    ----------
    config : mapping
        What `Encoder.config` returned.
    arrays : mapping of str to array
        What `Encoder.to_arrays` returned; memory maps are used in place.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> from longtail.features.encoder import encoder_from
    >>> encoder = BagEncoder(np.array([[1, 0], [0, 2]], np.float32))
    >>> again = encoder_from(encoder.config(), encoder.to_arrays())
    >>> type(again).__name__, again.token_vectors.tolist()
    ('BagEncoder', [[1.0, 0.0], [0.0, 2.0]])
    """
    encoder: Encoder = ENCODERS[config["kind"]](config, arrays)
    return encoder


def _summed(config: Mapping[str, Any], arrays: Mapping[str, NDArray[np.generic]]) -> SummedEncoder:
    """Make an encoder around another one."""
    inner: Any = encoder_from(config["inner"], without_prefix("inner.", arrays))
    return SummedEncoder(
        inner,
        np.asarray(arrays["matrix"], np.float32),
        read_only(arrays["token_vectors"], np.float32),
    )


# What a model folder calls them, and how each is made again.
ENCODERS: Mapping[str, Any] = MappingProxyType(
    {
        "bag-of-tokens": BagEncoder.from_parts,
        "convolutions": ConvolutionEncoder.from_parts,
        "hashed-mlp": HashedMLPEncoder.from_parts,
        "onnx": OnnxEncoder.from_parts,
        "resnet18": ImageEncoder.from_parts,
        "rows": RowEncoder.from_parts,
        "summed": _summed,
        "transformer": TransformerEncoder.from_parts,
        "unit-bag-of-tokens": UnitBagEncoder.from_parts,
    }
)
