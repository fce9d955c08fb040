"""ResNet-18 for images, as it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from longtail.data.point_input import InputKind, PointInput
from longtail.errors import InputError
from longtail.features.image_encoder import ImageEncoder
from longtail.features.resnet18_module import DIMENSION, ResNet18Module
from longtail.named_parts import joined_parts
from longtail.training.dropout import dropped
from longtail.training.module_adam import ModuleAdam

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from torch import Tensor

    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["ResNet18", "ResNet18Network"]


@dataclass(frozen=True, kw_only=True)
class ResNet18:
    """Features of images (He et al., "Deep residual learning for image recognition", CVPR 2016).

    Table 9 of the DeepXML paper. Serving needs torch as well: convolutions of images are not worth
    a second implementation.

    Parameters
    ----------
    image_shape : tuple of int
        (channels, height, width) of the images, which are scaled as the weights expect them.
    weights : str or None
        A safetensors file with the names of torchvision's ``resnet18``; what belongs to its
        classifier (``fc``) is left out. None starts from random numbers. Nothing is downloaded.
    dropout : float
        Of the features, in training.
    learning_rate : float
        Of Adam; falls with the schedule of the stage.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.features.resnet18 import ResNet18
    >>> reads = DeepXML(features=ResNet18(image_shape=(1, 32, 32))).reads()
    >>> reads.kind.value, reads.image_shape
    ('images', (1, 32, 32))
    """

    image_shape: tuple[int, int, int] = (3, 224, 224)
    weights: str | None = None
    dropout: float = 0.5
    learning_rate: float = 1e-4

    def files_read(self) -> list[Path]:
        """See `LabelEstimator.files_read`."""
        return [] if self.weights is None else [Path(self.weights)]

    @property
    def reads(self) -> PointInput:
        """Images."""
        return PointInput(InputKind.IMAGES, image_shape=tuple(self.image_shape))

    def network(
        self,
        data: TrainingData,
        targets: csr_array,  # noqa: ARG002 - it starts from weights
        run: TrainingRun,
        start: ImageEncoder | None = None,
    ) -> ResNet18Network:
        """Return a network ready to be trained; see `FeatureArchitecture.network`."""
        torch.manual_seed(run.seed_for("filters"))
        module = ResNet18Module(self.image_shape[0])
        if start is not None:
            module.adopt({k: torch.tensor(v) for k, v in start.weights.items()}, "The encoder")
        elif self.weights is not None:
            module.adopt(_read(self.weights), self.weights)
        return ResNet18Network(self, module.to(run.torch_device), data)

    def frozen(self, network: ResNet18Network) -> ImageEncoder:
        """Return the encoder as a trained model keeps it."""
        weights = network.module.state_dict().items()
        arrays = {name: v.cpu().numpy().copy() for name, v in weights if v.dim()}
        return ImageEncoder(arrays, tuple(self.image_shape))


class ResNet18Network:
    """The network while it is trained, on the images of the training points.

    Normalisation uses the statistics that came with the weights: batches are too small for others.
    """

    def __init__(self, settings: ResNet18, module: ResNet18Module, data: TrainingData) -> None:
        self.dimension = DIMENSION
        self.module = module.eval()
        self._settings = settings
        self._images = data.features
        self._adam = ModuleAdam(module)

    def forward(self, points: NDArray[np.int64]) -> Tensor:
        """See `FeatureNetwork.forward`."""
        images = torch.from_numpy(self._images[points].toarray())
        device = next(self.module.parameters()).device
        images = images.view(len(points), *self._settings.image_shape).to(device)
        return dropped(self.module(images), self._settings.dropout)

    def step(self, learning_rate: float, share: float = 1.0) -> None:  # noqa: ARG002 - it has no table
        """See `FeatureNetwork.step`."""
        self._adam.step(self._settings.learning_rate * share)

    def state(self) -> dict[str, Tensor]:
        """See `FeatureNetwork.state`."""
        parts = {"module": dict(self.module.state_dict()), "adam": self._adam.state()}
        return joined_parts(parts, ".")


def _read(path: str) -> dict[str, Tensor]:
    """Read a safetensors file."""
    try:
        weights: dict[str, Tensor] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"The weights {path} cannot be read as a safetensors file ({error}). Name a file that "
            "`safetensors.torch.save_file(model.state_dict(), path)` wrote."
        ) from error
    return weights
