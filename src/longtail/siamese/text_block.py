"""DECAF's block between a label's text and its vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from longtail.named_parts import with_prefix
from longtail.training.module_adam import ModuleAdam

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["TextBlock"]

MOSTLY = 3.0  # sigmoid(3) = 0.95: at first the text is nearly what it was
SPEED = 0.1  # of Adam, times the learning rate of the tables


class TextBlock:
    """``z = sigmoid(alpha) * t + sigmoid(beta) * ReLU(R t)``, one for all labels.

    DECAF (Mittal et al., "DECAF: deep extreme classification with label features", WSDM 2021,
    section 3) puts it between the text t of a label and its vector ``z + eta``, so that labels need
    not lie where points with their words lie; SiameseXML and NGAME have nothing in this place.
    Being shared, it serves labels without points, too.

    Examples
    --------
    >>> import torch
    >>> from longtail.siamese.text_block import TextBlock
    >>> block = TextBlock(2, torch.device("cpu"))
    >>> block.forward(torch.tensor([[0.6, -0.8]])).round(decimals=2)
    tensor([[ 0.6000, -0.7600]])
    """

    def __init__(self, dimension: int, device: torch.device) -> None:
        self._module = _Gates(dimension).to(device)
        self._adam = ModuleAdam(self._module)
        self._texts = self._combined = torch.zeros(0)

    def forward(self, texts: Tensor) -> Tensor:
        """Return the combined rows of texts, (n, dimension); see `backward`."""
        self._texts = texts.detach().requires_grad_()
        self._combined = self._module(self._texts)
        return self._combined.detach()

    def backward(self, gradient: Tensor, learning_rate: float) -> Tensor:
        """Learn from the gradient with respect to what `forward` returned last.

        Returns
        -------
        Tensor (n, dimension)
            The gradient with respect to the texts.
        """
        torch.autograd.backward(self._combined, gradient)
        self._adam.step(SPEED * learning_rate)
        to_texts = self._texts.grad
        return torch.zeros_like(self._texts) if to_texts is None else to_texts

    @torch.no_grad()
    def apply(self, texts: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the combined rows of texts, as the block is now."""
        device = self._module.gates.device
        combined: NDArray[np.float32] = (
            self._module(torch.from_numpy(texts).to(device)).cpu().numpy()
        )
        return combined

    def state(self) -> dict[str, Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        return {**self._module.state_dict(), **with_prefix("adam.", self._adam.state())}


class _Gates(nn.Module):
    """The parameters."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.gates = nn.Parameter(
            torch.stack([torch.full((dimension,), s * MOSTLY) for s in (1, -1)])
        )
        self.matrix = nn.Parameter(torch.eye(dimension))

    def forward(self, texts: Tensor) -> Tensor:
        kept, added = self.gates.sigmoid()
        combined: Tensor = kept * texts + added * torch.relu(texts @ self.matrix.T)
        return combined
