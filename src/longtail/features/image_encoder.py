"""A frozen ResNet-18 as a trained model keeps it: arrays. Only encoding an image needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longtail.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags

__all__ = ["ImageEncoder"]


@dataclass(frozen=True, eq=False)
class ImageEncoder:
    """Features of images by ResNet-18, float32 (n, 512).

    Parameters
    ----------
    weights : mapping of str to array
        By torchvision's names.
    image_shape : tuple of int
        (channels, height, width).
    """

    weights: Mapping[str, NDArray[Any]]
    image_shape: tuple[int, ...]

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:  # noqa: ARG002 - torch has its own
        """Return the features of each image, float32 (n, 512).

        Raises
        ------
        MissingExtraError
            If torch is not installed.
        """
        try:
            import torch  # noqa: PLC0415 - serving other models must not need it
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "This model reads images, which needs torch even to predict. Install it with "
                "`pip install 'longtail[train]'`."
            ) from error
        from longtail.features.resnet18_module import DIMENSION  # noqa: PLC0415 - it loads torch

        module = self._module
        images = torch.from_numpy(bags.dense(int(np.prod(self.image_shape))))
        features = np.empty((bags.n_rows, DIMENSION), np.float32)
        with torch.no_grad():
            for i in range(bags.n_rows):  # one by one: a batch would change the last bits
                features[i] = module(images[i].view(1, *self.image_shape)).numpy()[0]
        return features

    @cached_property
    def _module(self) -> Any:
        """The network, made when the first image comes."""
        import torch  # noqa: PLC0415 - as above

        from longtail.features.resnet18_module import ResNet18Module  # noqa: PLC0415 - as above

        module = ResNet18Module(self.image_shape[0]).eval()
        weights = {k: torch.tensor(np.array(v)) for k, v in self.weights.items()}
        module.adopt(weights, "The model folder")
        return module

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what the encoder is made of."""
        return dict(self.weights)

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        return {"kind": "resnet18", "image_shape": list(self.image_shape)}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make it again from `config` and `to_arrays`."""
        return cls(arrays, tuple(config["image_shape"]))
