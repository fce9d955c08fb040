"""Adam for the dense parameters of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.utils import get_total_norm

from longtail.named_parts import with_prefix
from longtail.training.optimisers import LazyAdam
from longtail.training.processes import add_up, processes

if TYPE_CHECKING:
    from torch import Tensor, nn

    from longtail.training.clipping import Clipping

__all__ = ["ModuleAdam"]


class ModuleAdam:
    """Adam whose state is there from the start, so that a checkpoint can be copied into it.

    Parameters
    ----------
    module : Module
        All of its parameters that ask for a gradient are changed; one without numbers is left out.
    clipping : Clipping or None
        Longest norm of the gradient of all these parameters together; a longer one is scaled down
        to it (Pascanu et al., "On the difficulty of training recurrent neural networks", ICML
        2013). None for no limit. The gradient is that of a batch, a sum over its points: of all
        processes, which add theirs up first. Tables under row-wise Adagrad are not part of it:
        the sum that a step of theirs is divided by has the step's own gradient in it, so that
        none is longer than the rate times the root of the row's length.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.clipping import ConstantNorm
    >>> from longtail.training.module_adam import ModuleAdam
    >>> layer = torch.nn.Linear(3, 2)
    >>> adam = ModuleAdam(layer, ConstantNorm(1.0))
    >>> layer(torch.ones(5, 3)).square().sum().backward()
    >>> adam.step(learning_rate=0.001)
    >>> layer.weight.grad is None
    True
    """

    def __init__(self, module: nn.Module, clipping: Clipping | None = None) -> None:
        wanted = (p for p in module.parameters() if p.requires_grad and p.numel())
        self._parameters = [(p, LazyAdam(_as_table(p))) for p in wanted]
        self._clipping = clipping

    def step(self, learning_rate: float) -> None:
        """Step against the gradients that ``backward`` has left, and forget them."""
        changed, gradients = [], []
        for parameter, optimiser in self._parameters:
            gradient = _summed_gradient(parameter)
            parameter.grad = None
            if gradient is not None:
                changed.append((parameter, optimiser))
                gradients.append(gradient)
        if self._clipping is not None and gradients:
            norm = get_total_norm(gradients)
            too_long = (norm / self._clipping.longest(norm)).clamp(min=1.0)
            gradients = [gradient / too_long for gradient in gradients]
        for (parameter, optimiser), gradient in zip(changed, gradients, strict=True):
            optimiser.step_all(_as_table(parameter), gradient, learning_rate)

    def state(self) -> dict[str, Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        clipping = {} if self._clipping is None else self._clipping.state()
        return with_prefix("clipping.", clipping) | {
            f"{i}.{name}": tensor
            for i, (_, optimiser) in enumerate(self._parameters)
            for name, tensor in optimiser.state().items()
        }


def _summed_gradient(parameter: nn.Parameter) -> Tensor | None:
    """Return the gradient of a parameter as a matrix, added up over all processes."""
    gradient = parameter.grad
    if processes().count == 1:
        return None if gradient is None else gradient.reshape(len(parameter), -1)
    if gradient is None:
        gradient = torch.zeros_like(parameter)  # others may have one, to be added up
    rows = torch.arange(len(parameter), device=parameter.device)
    return add_up(len(parameter), rows, gradient.reshape(len(parameter), -1))[1]


def _as_table(parameter: nn.Parameter) -> Tensor:
    """Return a parameter as a matrix that shares its memory."""
    return parameter.detach().view(len(parameter), -1)
