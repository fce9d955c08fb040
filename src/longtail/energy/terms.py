"""One form of energy for SPEN and ICNN: its value and its gradient with respect to the labels."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

__all__ = ["EnergyTerms", "energy_gradient", "energy_of"]


class EnergyTerms(NamedTuple):
    """An energy of relaxed labels y in [0, 1]^L at given points; K softplus layers of H units.

    ::

        z_1 = softplus((y * d_1) A_1 + p_1)
        z_k = softplus((z_{k-1} * c_{k-1}) W_{k-1} + (y * d_k) A_k + p_k)
        E(y) = -y . u + z_K . c_K

    Where d is 1 and c is the same for all points, one layer of it is the energy of a SPEN (Belanger
    and McCallum, "Structured prediction energy networks", ICML 2016, section 3): A_1 is its C_1^T,
    c_1 its c_2, and p_1 all that is added to C_1 y.

    Where W and c are not negative it is convex in y: sums with non-negative weights, and softplus,
    which is convex and does not decrease, keep what is convex convex. It is then the partially
    input convex network of Amos, Xu and Kolter ("Input convex neural networks", ICML 2017,
    equation 3), with the features F(x) for u in every layer. Transposed, since points are rows, W
    is its W^(z) and A its W^(y); p is its W^(u) u + b, d its W^(yu) u + b^(y), and c its
    [W^(zu) u + b^(z)]_+, the last one times the weights of a last layer of one unit.

    Attributes
    ----------
    unaries : Tensor (n, L)
        u: what speaks for each label by itself.
    label_vectors : tuple of K Tensor (L, H), or (n, L, H)
        A; of each point's own labels in the second form.
    offsets : tuple of K Tensor (n, H) or (H,)
        p.
    path_gates : tuple of K Tensor (n, H) or (H,)
        c.
    couplings : tuple of K - 1 Tensor (H, H)
        W.
    label_gates : tuple of K Tensor (n, L), or ()
        d; none for ones.

    Examples
    --------
    Unaries of 2 and 1 speak for two labels, whatever the global energy says of having both.

    >>> import torch
    >>> from longtail.energy.terms import EnergyTerms, energy_of
    >>> one = torch.ones(1)
    >>> silent = EnergyTerms(torch.zeros(1, 2), (torch.ones(2, 1),), (0 * one,), (one,))
    >>> spoken, both = silent.with_unaries(torch.tensor([[2.0, 1.0]])), torch.ones(1, 2)
    >>> round((energy_of(both, spoken) - energy_of(both, silent)).item(), 2)
    -3.0
    """

    unaries: Tensor
    label_vectors: tuple[Tensor, ...]
    offsets: tuple[Tensor, ...]
    path_gates: tuple[Tensor, ...]
    couplings: tuple[Tensor, ...] = ()
    label_gates: tuple[Tensor, ...] = ()

    def with_unaries(self, unaries: Tensor) -> EnergyTerms:
        """Return the same global energy with other unaries."""
        return self._replace(unaries=unaries)

    def detached(self) -> EnergyTerms:
        """Return the same numbers, without a way back to the parameters."""
        return EnergyTerms(
            self.unaries.detach(),
            *(tuple(tensor.detach() for tensor in tensors) for tensors in self[1:]),
        )


def energy_of(labels: Tensor, terms: EnergyTerms) -> Tensor:
    """Return E(y) of each point, (n,).

    Parameters
    ----------
    labels : Tensor (n, L)
        y.
    terms : EnergyTerms

    Examples
    --------
    A global energy that counts labels, at 0 and at 2 of them:

    >>> import torch
    >>> from longtail.energy.terms import EnergyTerms, energy_of
    >>> one = torch.ones(1)
    >>> terms = EnergyTerms(torch.zeros(2, 3), (torch.ones(3, 1),), (0 * one,), (one,))
    >>> labels = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
    >>> [round(value, 2) for value in energy_of(labels, terms).tolist()]
    [0.69, 2.13]
    """
    hidden = nn.functional.softplus(_pre_activations(labels, terms)[-1])
    global_energy: Tensor = (hidden * terms.path_gates[-1]).sum(dim=-1)
    return global_energy - (labels * terms.unaries).sum(dim=-1)


def energy_gradient(labels: Tensor, terms: EnergyTerms) -> Tensor:
    """Return the gradient of E with respect to y, (n, L).

    It is written by hand, so that one pass of automatic differentiation through the steps of an
    inference gives the gradient of its result.

    Parameters
    ----------
    labels : Tensor (n, L)
        y.
    terms : EnergyTerms

    Examples
    --------
    Where there are unaries alone, each label lowers the energy by its own.

    >>> import torch
    >>> from longtail.energy.terms import EnergyTerms, energy_gradient
    >>> zero = torch.zeros(1)
    >>> terms = EnergyTerms(torch.tensor([[2.0, -1.0]]), (torch.zeros(2, 1),), (zero,), (zero,))
    >>> energy_gradient(torch.zeros(1, 2), terms).tolist()
    [[-2.0, 1.0]]
    """
    gradient = -terms.unaries
    upper = terms.path_gates[-1]  # dE/dz_k
    layers = list(enumerate(_pre_activations(labels, terms)))
    for k, pre_activation in reversed(layers):
        slope = upper * pre_activation.sigmoid()  # dE/d(the sum in softplus)
        down = _to_labels(slope, terms.label_vectors[k])
        gradient = gradient + (down * terms.label_gates[k] if terms.label_gates else down)
        if k > 0:
            upper = (slope @ terms.couplings[k - 1].T) * terms.path_gates[k - 1]
    return gradient


def _pre_activations(labels: Tensor, terms: EnergyTerms) -> list[Tensor]:
    """Return the sums inside the softplus of each layer, (n, H)."""
    sums: list[Tensor] = []
    for k, (vectors, offset) in enumerate(zip(terms.label_vectors, terms.offsets, strict=True)):
        gated = labels * terms.label_gates[k] if terms.label_gates else labels
        total = _to_hidden(gated, vectors) + offset
        if k > 0:
            below = nn.functional.softplus(sums[-1]) * terms.path_gates[k - 1]
            total = total + below @ terms.couplings[k - 1]
        sums.append(total)
    return sums


def _to_hidden(labels: Tensor, vectors: Tensor) -> Tensor:
    """Return y A, (n, H)."""
    if vectors.dim() == 2:
        return labels @ vectors
    return (labels[:, None] @ vectors)[:, 0]


def _to_labels(hidden: Tensor, vectors: Tensor) -> Tensor:
    """Return h A^T, (n, L)."""
    if vectors.dim() == 2:
        return hidden @ vectors.T
    return (vectors @ hidden[:, :, None])[:, :, 0]
