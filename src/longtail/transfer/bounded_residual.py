"""The residual block while it is trained, its spectral norm bounded by power iteration."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.errors import InputError
from longtail.training.dropout import dropped
from longtail.transfer.block import TransferBlock
from longtail.transfer.residual import Residual

__all__ = ["BoundedResidual", "ResidualBlock"]


@dataclass(frozen=True, kw_only=True)
class BoundedResidual:
    """Transfer by a residual block ``v + ReLU(R v + b)`` that cannot move features far.

    With b = 0, ``|x - v| <= lambda |v|`` (Theorem 1a of the DeepXML paper, which has no b).

    Parameters
    ----------
    max_norm : float or None
        lambda, the bound on the spectral norm of R; the paper has at most 1. None for no bound.
    always_divide : bool
        Scale R to that norm even when it is below, as the published code does.
    dropout : float
        Applied after the block's ReLU in training.
    learning_rate : float
        Of Adam, for R and b; falls with the schedule of the stage.

    Examples
    --------
    >>> import torch
    >>> from longtail.transfer.bounded_residual import BoundedResidual
    >>> block = BoundedResidual(max_norm=0.5).block(2, torch.device("cpu")).eval()
    >>> [round(x, 3) for x in block(torch.tensor([1.0, 2.0])).tolist()]  # R is half of the identity
    [1.5, 3.0]
    """

    max_norm: float | None = 1.0
    always_divide: bool = False
    dropout: float = 0.5
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if self.max_norm is not None and not self.max_norm > 0:
            raise InputError(
                f"max_norm must be above 0, or None for no bound, got {self.max_norm}. To leave "
                "features as they are, take Identity()."
            )

    def block(self, dimension: int, device: torch.device) -> ResidualBlock:
        """Return a fresh block: R the identity, b zero."""
        return ResidualBlock(self, dimension).to(device)


class ResidualBlock(TransferBlock):
    """``v + Dropout(ReLU(R' v + b))`` with ``R' = R / max(1, sigma(R) / lambda)``.

    sigma is estimated by one power iteration a training step (Miyato et al., "Spectral
    normalization for generative adversarial networks", 2018), and computed in `frozen`.

    Examples
    --------
    What is kept for predictions has the bounded matrix, whatever the trained one has become.

    >>> import torch
    >>> from longtail.transfer.bounded_residual import BoundedResidual
    >>> block = BoundedResidual(max_norm=0.5).block(2, torch.device("cpu"))
    >>> _ = block.matrix.data.mul_(7)
    >>> block.frozen().matrix.round(3).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    def __init__(self, settings: BoundedResidual, dimension: int) -> None:
        super().__init__(dimension, settings.learning_rate)
        self._settings = settings
        self.matrix = nn.Parameter(torch.eye(dimension))
        self.bias = nn.Parameter(torch.zeros(dimension))
        # Any start will do, but always the same one: same seed, same model.
        start = torch.randn(dimension, generator=torch.Generator().manual_seed(0))
        self.register_buffer("left", functional.normalize(start, dim=0))
        self.left: Tensor

    def forward(self, features: Tensor) -> Tensor:
        """Return final features, (n, dimension)."""
        change = torch.relu(features @ self._bounded(self._estimated_norm()).T + self.bias)
        return features + (dropped(change, self._settings.dropout) if self.training else change)

    def frozen(self) -> Residual:
        """Return the block as a trained model keeps it."""
        with torch.no_grad():
            matrix = self._bounded(torch.linalg.matrix_norm(self.matrix, 2))
        return Residual(
            matrix.detach().cpu().numpy().copy(), self.bias.detach().cpu().numpy().copy()
        )

    def _estimated_norm(self) -> Tensor:
        """Return the spectral norm of R after one more power iteration."""
        with torch.no_grad():
            right = functional.normalize(self.matrix.T @ self.left, dim=0)
            left = functional.normalize(self.matrix @ right, dim=0)
            self.left.copy_(left)
        return torch.dot(left, self.matrix @ right)

    def _bounded(self, norm: Tensor) -> Tensor:
        """Return R, of that spectral norm, with the norm bounded."""
        if self._settings.max_norm is None:
            return self.matrix
        ratio = norm / self._settings.max_norm
        return self.matrix / (ratio if self._settings.always_divide else ratio.clamp(min=1.0))
