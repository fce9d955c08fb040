"""The network of ResNet-18, which training and serving run; it loads torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DIMENSION", "ResNet18Module"]

DIMENSION = 512  # of the features


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
    >>> from longtail.features.resnet18_module import ResNet18Module
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
        self.layer4 = nn.Sequential(_Block(256, DIMENSION, 2), _Block(DIMENSION, DIMENSION, 1))

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
