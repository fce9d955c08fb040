"""Inference: a fixed number of gradient steps on the labels, through which training can look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import torch

from longtail.energy.terms import energy_gradient, energy_of
from longtail.errors import TrainingError
from longtail.scorers.energy_inference import EnergyInference

if TYPE_CHECKING:
    from torch import Tensor

    from longtail.energy.terms import EnergyTerms

__all__ = ["Descent", "Entropy", "Logit", "Parametrisation", "Projected"]

ROUNDING = 1e-3  # share of an energy by which it may seem to rise


class Parametrisation(Protocol):
    """What the steps move, and how labels in [0, 1] follow from it.

    Attributes
    ----------
    steps_from_labels : bool
        Whether a step starts from the labels, not from the state that they follow from.
    sees_entropy : bool
        Whether the steps go down E(y) - H(y), not E(y).
    """

    steps_from_labels: ClassVar[bool]
    sees_entropy: ClassVar[bool]

    def start(self, unaries: Tensor) -> Tensor:
        """Return the state before the first step."""
        ...

    def labels(self, state: Tensor) -> Tensor:
        """Return the relaxed labels, within [0, 1]."""
        ...

    def direction(self, state: Tensor, labels: Tensor, gradient: Tensor) -> Tensor:
        """Return what a step goes against, given the gradient of E with respect to the labels."""
        ...


@dataclass(frozen=True)
class Entropy:
    """Mirror descent on E(y) - H(y), H being the entropy of independent labels.

    The state is the logit of y; its step, of size s, is ``state <- (1 - s) state - s dE/dy``. The
    entropy keeps labels off 0 and 1 (Belanger, Yang and McCallum, "End-to-end learning for
    structured prediction energy networks", ICML 2017, section 4; Amos et al., 2017, section 4.2),
    and without global energy the answer is exactly sigmoid(u), whatever the steps.

    Examples
    --------
    Where the energy's gradient is that of the unaries alone, the first state is also the last.

    >>> import torch
    >>> from longtail.energy.descent import Entropy
    >>> entropy, unaries = Entropy(), torch.tensor([[0.0, 3.0]])
    >>> state = entropy.start(unaries)
    >>> entropy.direction(state, entropy.labels(state), -unaries).tolist()
    [[0.0, 0.0]]
    """

    steps_from_labels: ClassVar[bool] = False
    sees_entropy: ClassVar[bool] = True

    def start(self, unaries: Tensor) -> Tensor:
        """See `Parametrisation`: the feed-forward answer."""
        return unaries

    def labels(self, state: Tensor) -> Tensor:
        """See `Parametrisation`."""
        return state.sigmoid()

    def direction(self, state: Tensor, labels: Tensor, gradient: Tensor) -> Tensor:
        """See `Parametrisation`."""
        del labels
        return gradient + state


@dataclass(frozen=True)
class Logit:
    """Gradient descent on the logits of y: the chain rule multiplies the gradient by y (1 - y).

    Examples
    --------
    A label that is near 0 or 1 hardly moves, however steep the energy is there.

    >>> import torch
    >>> from longtail.energy.descent import Logit
    >>> labels = torch.tensor([[0.5, 1.0]])
    >>> Logit().direction(labels.logit(), labels, torch.tensor([[8.0, 8.0]])).tolist()
    [[2.0, 0.0]]
    """

    steps_from_labels: ClassVar[bool] = False
    sees_entropy: ClassVar[bool] = False

    def start(self, unaries: Tensor) -> Tensor:
        """See `Parametrisation`: the feed-forward answer."""
        return unaries

    def labels(self, state: Tensor) -> Tensor:
        """See `Parametrisation`."""
        return state.sigmoid()

    def direction(self, state: Tensor, labels: Tensor, gradient: Tensor) -> Tensor:
        """See `Parametrisation`."""
        del state
        return gradient * labels * (1 - labels)


@dataclass(frozen=True)
class Projected:
    """Gradient descent on y itself, cut to [0, 1] whenever it is looked at.

    Examples
    --------
    >>> import torch
    >>> from longtail.energy.descent import Projected
    >>> Projected().labels(torch.tensor([[-0.5, 0.25, 1.5]])).tolist()
    [[0.0, 0.25, 1.0]]
    """

    steps_from_labels: ClassVar[bool] = True  # not from where the last step had left the state
    sees_entropy: ClassVar[bool] = False

    def start(self, unaries: Tensor) -> Tensor:
        """See `Parametrisation`: the feed-forward answer."""
        return unaries.sigmoid()

    def labels(self, state: Tensor) -> Tensor:
        """See `Parametrisation`."""
        return state.clamp(0, 1)

    def direction(self, state: Tensor, labels: Tensor, gradient: Tensor) -> Tensor:
        """See `Parametrisation`."""
        del state, labels
        return gradient


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Minimise an energy over relaxed labels by gradient steps with momentum.

    Parameters
    ----------
    n_steps : int
    step : float
        Size of a step.
    momentum : float
        Share of the last move that is made again.
    parametrisation : Parametrisation

    Examples
    --------
    Without a global energy, the entropy's answer is the sigmoid of the unaries:

    >>> import torch
    >>> from longtail.energy.descent import Descent
    >>> from longtail.energy.terms import EnergyTerms
    >>> zero = torch.zeros(1)
    >>> terms = EnergyTerms(torch.tensor([[0.0, 1.0]]), (torch.zeros(2, 1),), (zero,), (zero,))
    >>> [round(y, 3) for y in Descent().labels(terms)[0].tolist()]
    [0.5, 0.731]
    """

    n_steps: int = EnergyInference.n_steps
    step: float = EnergyInference.step
    momentum: float = EnergyInference.momentum
    parametrisation: Parametrisation = Entropy()

    def states(self, terms: EnergyTerms) -> list[Tensor]:
        """Return the state before the first step and after each, (n, L) each.

        Raises
        ------
        TrainingError
            If a step leads to infinity or to no number at all.
        """
        state = self.parametrisation.start(terms.unaries)
        states, move = [state], torch.zeros_like(state)
        for number in range(1, self.n_steps + 1):
            labels = self.parametrisation.labels(state)
            gradient = energy_gradient(labels, terms)
            against = self.parametrisation.direction(state, labels, gradient)
            move = self.momentum * move - self.step * against
            base = labels if self.parametrisation.steps_from_labels else state
            state = base + move
            if not torch.isfinite(state.detach()).all():
                raise TrainingError(
                    f"Inference diverges: after step {number} of {self.n_steps} some label's state "
                    f"is not a finite number (steps of size {self.step}, momentum "
                    f"{self.momentum}). Lower `step` or the learning rate."
                )
            states.append(state)
        return states

    def labels(self, terms: EnergyTerms) -> Tensor:
        """Return the relaxed labels after the last step, (n, L), in [0, 1]."""
        return self.parametrisation.labels(self.states(terms)[-1])

    def objectives(self, terms: EnergyTerms) -> Tensor:
        """Return what is minimised before the first step and after each, (n_steps + 1, n).

        That is the energy, less the labels' entropy where the steps see it.
        """
        labels = [self.parametrisation.labels(state) for state in self.states(terms)]
        sees_entropy = self.parametrisation.sees_entropy
        return torch.stack(
            [energy_of(y, terms) - (_entropy(y) if sees_entropy else 0) for y in labels]
        )

    @torch.no_grad()
    def check(self, terms: EnergyTerms) -> None:
        """Raise TrainingError if the steps end above where they began, over all points."""
        objectives = self.objectives(terms).mean(dim=1)
        first, last = objectives[0].item(), objectives[-1].item()
        if last > first + ROUNDING * (1 + abs(first)):
            raise TrainingError(
                f"Inference climbs: {self.n_steps} steps of size {self.step} lead from a mean "
                f"energy of {first:.4g} to {last:.4g}. Lower `step` or the learning rate."
            )


def _entropy(labels: Tensor) -> Tensor:
    """Return the entropy of independent labels, (n,)."""
    others = 1 - labels
    parts: Tensor = torch.special.xlogy(labels, labels) + torch.special.xlogy(others, others)
    return -parts.sum(dim=1)
