"""The global energies of SPEN and ICNN: what labels say about each other, as torch trains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from longtail.energy.terms import EnergyTerms

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["ConvexEnergy", "FrozenEnergy", "GlobalEnergy", "SoftplusEnergy"]

SMALL = 0.1  # size of first weights: small, so that the unaries decide at first


class FrozenEnergy(NamedTuple):
    """A trained global energy of K layers of H units, in arrays.

    Attributes
    ----------
    maps : float32 (n_maps, dimension)
        The linear maps of features: K * H offsets, K * H gates of the path from layer to layer, and
        K * L gates of labels, or none.
    bias : float32 (n_maps,)
    label_vectors : float32 (K, L, H)
    couplings : float32 (K - 1, H, H)

    Examples
    --------
    Of a SPEN of two units: their offsets and gates, four maps of the features.

    >>> from longtail.energy.global_energies import SoftplusEnergy
    >>> frozen = SoftplusEnergy(n_labels=5, dimension=3, n_hidden=2).frozen()
    >>> frozen.maps.shape, frozen.label_vectors.shape, frozen.couplings.shape
    ((4, 3), (1, 5, 2), (0, 2, 2))
    """

    maps: NDArray[np.float32]
    bias: NDArray[np.float32]
    label_vectors: NDArray[np.float32]
    couplings: NDArray[np.float32]


class GlobalEnergy(nn.Module):
    """What is added to the unaries' energy; its parameters may have to stay within limits."""

    is_convex = False

    def terms(self, features: Tensor, unaries: Tensor) -> EnergyTerms:
        """Return the energy at points of features (n, dimension) and unaries (n, L)."""
        raise NotImplementedError

    def project(self) -> None:
        """Bring the parameters back within their limits, after a step."""

    def frozen(self) -> FrozenEnergy:
        """Return the parameters as a scorer keeps them."""
        raise NotImplementedError


class SoftplusEnergy(GlobalEnergy):
    """A SPEN's ``c_2 . softplus(C_1 y + D F(x) + d)``.

    Source: Belanger and McCallum, "Structured prediction energy networks", ICML 2016, section 3,
    which has it without features, D = 0, and with them.

    Parameters
    ----------
    n_labels, dimension, n_hidden : int
    is_conditional : bool
        With features. Otherwise the energy is the same for all points.

    Examples
    --------
    >>> import torch
    >>> from longtail.energy.global_energies import SoftplusEnergy
    >>> from longtail.energy.terms import energy_of
    >>> terms = SoftplusEnergy(5, 4, 2).terms(torch.zeros(3, 4), torch.zeros(3, 5))
    >>> energy_of(torch.ones(3, 5), terms).shape
    torch.Size([3])
    """

    def __init__(
        self, n_labels: int, dimension: int, n_hidden: int, *, is_conditional: bool = False
    ) -> None:
        super().__init__()
        self.label_vectors = nn.Parameter(SMALL * torch.randn(n_labels, n_hidden))
        self.offset = nn.Linear(dimension, n_hidden)
        if not is_conditional:
            nn.init.zeros_(self.offset.weight).requires_grad_(False)
        self.weights = nn.Parameter(SMALL * torch.randn(n_hidden))

    def terms(self, features: Tensor, unaries: Tensor) -> EnergyTerms:
        """See `GlobalEnergy`."""
        offsets = (self.offset(features),)
        return EnergyTerms(unaries, (self.label_vectors,), offsets, (self.weights,))

    def frozen(self) -> FrozenEnergy:
        """See `GlobalEnergy`."""
        n_hidden = len(self.weights)
        of_no_feature = torch.zeros_like(self.offset.weight)  # gates are the same for all points
        return FrozenEnergy(
            _array(torch.cat([self.offset.weight, of_no_feature])),
            _array(torch.cat([self.offset.bias, self.weights])),
            _array(self.label_vectors[None]),
            np.zeros((0, n_hidden, n_hidden), np.float32),
        )


class ConvexEnergy(GlobalEnergy):
    """A partially input convex network: whatever the point, it is convex in the labels.

    Source: Amos, Xu and Kolter, "Input convex neural networks", ICML 2017, equation 3; whose symbol
    is which, `EnergyTerms` says. The weights on the path from label to energy are kept from being
    negative by projection after each step. Softplus takes the place of ReLU, since inference that
    training looks through needs a second derivative.

    Examples
    --------
    >>> import torch
    >>> from longtail.energy.global_energies import ConvexEnergy
    >>> energy = ConvexEnergy(5, 4, n_hidden=3, n_layers=2)
    >>> _ = energy.weights.data.fill_(-1)
    >>> energy.project()
    >>> energy.weights.min().item()
    0.0
    """

    is_convex = True

    def __init__(self, n_labels: int, dimension: int, n_hidden: int, n_layers: int) -> None:
        super().__init__()

        def layers(make: Callable[[], nn.Module]) -> nn.ModuleList:
            return nn.ModuleList(make() for _ in range(n_layers))

        self.label_vectors = nn.Parameter(SMALL * torch.randn(n_layers, n_labels, n_hidden))
        self.couplings = nn.Parameter(torch.rand(n_layers - 1, n_hidden, n_hidden) / n_hidden)
        self.weights = nn.Parameter(SMALL * torch.rand(n_hidden))
        self.offsets = layers(lambda: nn.Linear(dimension, n_hidden))
        self.path_gates = layers(lambda: _near_one(dimension, n_hidden))
        self.label_gates = layers(lambda: _near_one(dimension, n_labels))

    def terms(self, features: Tensor, unaries: Tensor) -> EnergyTerms:
        """See `GlobalEnergy`."""
        gates = [gate(features).relu() for gate in self.path_gates]
        gates[-1] = gates[-1] * self.weights
        return EnergyTerms(
            unaries,
            tuple(self.label_vectors),
            tuple(offset(features) for offset in self.offsets),
            tuple(gates),
            tuple(self.couplings),
            tuple(gate(features) for gate in self.label_gates),
        )

    @torch.no_grad()
    def project(self) -> None:
        """See `GlobalEnergy`: the weights of the convex path are at least 0."""
        self.weights.clamp_(min=0)
        self.couplings.clamp_(min=0)

    def frozen(self) -> FrozenEnergy:
        """See `GlobalEnergy`: the last weights move into the gates that they scale."""
        scales = torch.ones(len(self.path_gates), len(self.weights), 1, device=self.weights.device)
        scales[-1, :, 0] = self.weights
        gates = [
            (scale * gate.weight, scale[:, 0] * gate.bias)
            for scale, gate in zip(scales, self.path_gates, strict=True)
        ]
        plain = [(map_.weight, map_.bias) for map_ in (*self.offsets, *self.label_gates)]
        maps = [*plain[: len(gates)], *gates, *plain[len(gates) :]]
        return FrozenEnergy(
            _array(torch.cat([weight for weight, _ in maps])),
            _array(torch.cat([bias for _, bias in maps])),
            _array(self.label_vectors),
            _array(self.couplings),
        )


def _array(tensor: Tensor) -> NDArray[np.float32]:
    """Return a copy that training no longer changes."""
    return np.array(tensor.detach().cpu().numpy(), np.float32)


def _near_one(dimension: int, n_outputs: int) -> nn.Linear:
    """Return a linear map whose outputs start near 1."""
    linear = nn.Linear(dimension, n_outputs)
    nn.init.normal_(linear.weight, std=SMALL * SMALL)
    nn.init.ones_(linear.bias)
    return linear
