"""How long the gradient of a step may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

from longtail.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Clipping", "ConstantNorm", "RecentNorms"]

N_RECENT = 5  # norms, as in AttentionXML


class Clipping(Protocol):
    """Says how long a gradient may be; a longer one is scaled down to that."""

    def longest(self, norm: Tensor) -> float:
        """Return the longest norm that this step may have, given what it has."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        ...


@dataclass(frozen=True)
class ConstantNorm:
    """The same norm for all steps (Pascanu et al., ICML 2013).

    Examples
    --------
    >>> import torch
    >>> from longtail.training.clipping import ConstantNorm
    >>> ConstantNorm(2.0).longest(torch.tensor(7.0))
    2.0
    """

    norm: float

    def longest(self, norm: Tensor) -> float:  # noqa: ARG002 - it is the same for all
        """See `Clipping.longest`."""
        return self.norm

    def state(self) -> dict[str, Tensor]:
        """See `Clipping.state`: there is nothing to keep."""
        return {}


class RecentNorms:
    """A multiple of the largest of the last five norms, as AttentionXML has it.

    What is too long depends on the batch size, the loss and how far training is: recent steps say
    it. Norms count as they are after clipping, so that one batch of a very long gradient does not
    let the next ones through; they may still grow by the factor, step by step. The first step is
    not clipped, as there is nothing to compare it with.

    Parameters
    ----------
    factor : float
        At least 1; 5 in AttentionXML.

    Raises
    ------
    InputError
        If `factor` is below 1: each step would be shorter than the ones before.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.clipping import RecentNorms
    >>> clipping = RecentNorms(5.0)
    >>> [clipping.longest(torch.tensor(norm)) for norm in (1.0, 2.0, 100.0, 1.0)]
    [inf, 5.0, 10.0, 50.0]
    """

    def __init__(self, factor: float) -> None:
        if not factor >= 1:
            raise InputError(
                f"A gradient may be clipped at 1 or more times the largest of the last {N_RECENT} "
                f"norms, got {factor}: each step would be shorter than those before. Pass, for "
                "example, 5."
            )
        self._factor = factor
        self._norms = torch.zeros(N_RECENT)  # 0 where there was none yet

    def longest(self, norm: Tensor) -> float:
        """See `Clipping.longest`."""
        largest = float(self._norms.max())
        limit = self._factor * largest if largest > 0 else torch.inf
        length = min(float(norm), limit)
        if length > 0:  # no gradient at all says nothing of how long one is
            self._norms.copy_(torch.cat([self._norms[1:], torch.tensor([length])]))
        return limit

    def state(self) -> dict[str, Tensor]:
        """See `Clipping.state`."""
        return {"norms": self._norms}
