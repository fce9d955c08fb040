"""ResNet-18 for images: training, and the network that serving runs too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from longtail.data.point_input import InputKind, PointInput
from longtail.errors import InputError
from longtail.features.image_encoder import ImageEncoder
from longtail.named_parts import joined_parts
from longtail.training.dropout import dropped
from longtail.training.module_adam import ModuleAdam

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["ResNet18", "ResNet18Module", "ResNet18Network"]

DIMENSION = 512


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

    Parameters
    ----------
    settings : ResNet18
    module : ResNet18Module
    data : TrainingData
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


class _Block(nn.Module):
    """Two convolutions, and a way around them."""

    def __init__(self, n_inputs: int, n_outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_inputs, n_outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_outputs)
        self.conv2 = nn.Conv2d(n_outputs, n_outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_outputs)
        self.downsample = nn.Sequential()
        if stride > 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(n_inputs, n_outputs, 1, stride, bias=False), nn.BatchNorm2d(n_outputs)
            )

    def forward(self, images: Tensor) -> Tensor:
        """Return (n, n_outputs, height / stride, width / stride)."""
        inner = torch.relu(self.bn1(self.conv1(images)))
        return torch.relu(self.bn2(self.conv2(inner)) + self.downsample(images))


class ResNet18Module(nn.Module):
    """From images to the 512 means of the last maps. Names are those of torchvision.

    Parameters
    ----------
    n_channels : int
        Of the images.

    Examples
    --------
    >>> import torch
    >>> from longtail.features.resnet18 import ResNet18Module
    >>> module = ResNet18Module(n_channels=1).eval()
    >>> tuple(module(torch.zeros(2, 1, 32, 48)).shape)
    (2, 512)
    """

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(_Block(64, 64, 1), _Block(64, 64, 1))
        self.layer2 = nn.Sequential(_Block(64, 128, 2), _Block(128, 128, 1))
        self.layer3 = nn.Sequential(_Block(128, 256, 2), _Block(256, 256, 1))
        self.layer4 = nn.Sequential(_Block(256, 512, 2), _Block(512, 512, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Return (n, 512) for images (n, channels, height, width)."""
        maps = torch.relu(self.bn1(self.conv1(images)))
        maps = functional.max_pool2d(maps, 3, stride=2, padding=1)
        maps = self.layer4(self.layer3(self.layer2(self.layer1(maps))))
        means: Tensor = maps.mean(dim=(2, 3))
        return means

    def adopt(self, weights: Mapping[str, Tensor], source: str) -> None:
        """Copy weights, or raise InputError that names what does not fit."""
        state = self.state_dict()
        wanted = {name for name, tensor in state.items() if tensor.dim()}  # not the counters
        missing = sorted(wanted - weights.keys())
        wrong = sorted(n for n in wanted & weights.keys() if state[n].shape != weights[n].shape)
        if missing or wrong:
            what = f"has no {missing[0]!r}" if missing else f"has another shape of {wrong[0]!r}"
            raise InputError(
                f"{source} {what}: not the weights of a ResNet-18 for images of "
                f"{self.conv1.in_channels} channels. Save them with torchvision's names."
            )
        self.load_state_dict({name: weights[name] for name in wanted}, strict=False)


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
