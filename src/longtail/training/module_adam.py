"""Adam for the dense parameters of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from longtail.training.optimisers import LazyAdam
from longtail.training.processes import processes

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["ModuleAdam"]


class ModuleAdam:
    """Adam whose state is there from the start, so that a checkpoint can be copied into it.

    Parameters
    ----------
    module : Module
        All of its parameters that ask for a gradient are changed.
    """

    def __init__(self, module: nn.Module) -> None:
        wanted = (p for p in module.parameters() if p.requires_grad)
        self._parameters = [(p, LazyAdam(_as_table(p))) for p in wanted]

    def step(self, learning_rate: float) -> None:
        """Step against the gradients that ``backward`` has left, and forget them."""
        for parameter, optimiser in self._parameters:
            gradient = parameter.grad
            if gradient is None:
                if processes().count == 1:
                    continue
                gradient = torch.zeros_like(parameter)  # others may have one, to be added up
            # All rows of the table, which makes lazy Adam plain Adam.
            rows = torch.arange(len(parameter), device=parameter.device)
            flat = gradient.reshape(len(parameter), -1)
            optimiser.step(_as_table(parameter), rows, flat, learning_rate)
            parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        return {
            f"{i}.{name}": tensor
            for i, (_, optimiser) in enumerate(self._parameters)
            for name, tensor in optimiser.state().items()
        }


def _as_table(parameter: nn.Parameter) -> Tensor:
    """Return a parameter as a matrix that shares its memory."""
    return parameter.detach().view(len(parameter), -1)
