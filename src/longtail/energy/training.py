"""Three stages of training: the unaries alone, the global energy alone, all of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from longtail.energy.descent import Descent
from longtail.energy.losses import CrossEntropy
from longtail.energy.terms import EnergyTerms
from longtail.errors import InputError, named
from longtail.named_parts import joined_parts
from longtail.training.batches import AllLabels
from longtail.training.clipping import ConstantNorm
from longtail.training.loop import train
from longtail.training.module_adam import ModuleAdam
from longtail.training.processes import refuse_several

if TYPE_CHECKING:
    from collections.abc import Callable

    from scipy.sparse import csr_array

    from longtail.energy.global_energies import GlobalEnergy
    from longtail.energy.losses import EnergyLoss
    from longtail.features.bag_of_tokens import BagOfTokensNetwork
    from longtail.training.batches import Batch
    from longtail.training.run import TrainingRun
    from longtail.training.schedule import Schedule

__all__ = ["EnergyNetwork", "EnergyStages"]

MOST_CHECKED = 512  # points
LARGEST_GRADIENT = 1.0  # norm to which that of all parameters together is cut


@dataclass(frozen=True)
class EnergyNetwork:
    """E(y; x): features F(x), unaries u = V F(x) + b, and a global energy.

    Parameters
    ----------
    features : BagOfTokensNetwork
        F; it trains itself.
    unaries : nn.Linear
    energy : GlobalEnergy
    """

    features: BagOfTokensNetwork
    unaries: nn.Linear
    energy: GlobalEnergy

    def terms(self, features: Tensor) -> EnergyTerms:
        """Return the energy at points of features (n, dimension)."""
        return self.energy.terms(features, self.unaries(features))

    def unary_terms(self, features: Tensor) -> EnergyTerms:
        """Return the unaries alone, as an inference without steps looks at nothing else."""
        return EnergyTerms(self.unaries(features), (), (), ())

    def energy_terms(self, features: Tensor) -> EnergyTerms:
        """Return the energy, with a way back to the parameters of the global energy alone."""
        features = features.detach()
        return self.energy.terms(features, self.unaries(features).detach())


class _Stage:
    """One stage as the training loop sees it; `terms` leads back to what it trains."""

    def __init__(
        self,
        network: EnergyNetwork,
        labels: csr_array,
        terms: Callable[[Tensor], EnergyTerms],
        loss: EnergyLoss,
        descent: Descent,
        *,
        trained: tuple[nn.Module, ...],
        feature_rate: float,
    ) -> None:
        self._network, self._labels, self._terms = network, labels, terms
        self._loss, self._descent, self._feature_rate = loss, descent, feature_rate
        self._trained = nn.ModuleList(trained)
        self._adam = ModuleAdam(self._trained, ConstantNorm(LARGEST_GRADIENT))

    def step(
        self, batch: Batch, learning_rate: float, share: float, *, measure: bool
    ) -> float | None:
        """See `longtail.training.loop.Task`."""
        features = self._network.features.forward(batch.points)
        truth = torch.zeros(len(batch.points), self._labels.shape[1], device=features.device)
        truth[batch.positive_rows, batch.positive_columns] = 1
        loss = self._loss.value(self._terms(features), truth, self._descent)
        if not isinstance(loss, Tensor) or loss.ndim:  # of somebody else's
            raise InputError(
                f"`value` of {type(self._loss).__name__} must return the mean over points, a "
                f"tensor without dimensions, got {named(loss)} {[*getattr(loss, 'shape', ())]}."
            )
        if loss.requires_grad:  # else unaries are held still, and no step looks at the energy
            loss.backward()  # type: ignore[no-untyped-call]  # torch has no types here
        elif self._descent.n_steps:  # of somebody else's
            raise InputError(
                f"`value` of {type(self._loss).__name__} returned a loss without a gradient, by "
                "which nothing is learnt. Compute it of `terms` by torch, without `detach`, `item` "
                "or `no_grad`."
            )
        self._adam.step(learning_rate)
        self._network.energy.project()
        if self._feature_rate:
            self._network.features.step(self._feature_rate * share)
        return loss.item() if measure else None

    @torch.no_grad()
    def check(self) -> None:
        """Raise TrainingError if inference, as it now would serve, goes uphill on some points."""
        if not self._descent.n_steps:
            return
        some = np.arange(min(self._labels.shape[0], MOST_CHECKED))
        self._descent.check(self._network.terms(self._network.features.served(some)))

    def state(self) -> dict[str, Tensor]:
        """See `longtail.training.loop.Task`."""
        parts = {
            "features": self._network.features.state(),
            "trained": dict(self._trained.state_dict()),
            "adam": self._adam.state(),
        }
        return joined_parts(parts, ".")


@dataclass(frozen=True, kw_only=True)
class EnergyStages:
    """How an `EnergyNetwork` is trained (Belanger and McCallum, 2016, section 5.2).

    First features and unaries, as a feed-forward network under the cross entropy; then the global
    energy, all else held still; then everything together, at a small rate.

    Parameters
    ----------
    unaries, energy, everything : Schedule
        Of the three stages; learning rates of Adam. No epochs, no such stage.
    loss : EnergyLoss
        Of the last two stages.
    descent : Descent
        The inference that they train.
    batch_size : int
    feature_rate : float
        Learning rate of the feature network in the first stage.
    """

    unaries: Schedule
    energy: Schedule
    everything: Schedule
    loss: EnergyLoss
    descent: Descent
    batch_size: int
    feature_rate: float

    def learn(self, network: EnergyNetwork, labels: csr_array, run: TrainingRun) -> None:
        """Train a network in place.

        Parameters
        ----------
        network : EnergyNetwork
        labels : csr_array (n_points, n_labels)
            Of the points that the feature network holds.
        run : TrainingRun

        Raises
        ------
        TrainingError
            If the loss or a step of the inference runs away, or the steps climb the energy.
        """
        refuse_several("A network with an energy")
        batches = AllLabels(labels, self.batch_size)
        stage_of = partial(_Stage, network, labels)

        def learn_stage(name: str, schedule: Schedule, stage: _Stage) -> None:
            with run.stage(name):
                train(stage, batches, schedule, run, name)
                if schedule.epochs:  # a stage without any has trained nothing to be checked
                    stage.check()

        unaries = stage_of(
            network.unary_terms,
            CrossEntropy(),
            Descent(n_steps=0),
            trained=(network.unaries,),
            feature_rate=self.feature_rate,
        )
        learn_stage("unaries", self.unaries, unaries)
        energy = stage_of(
            network.energy_terms,
            self.loss,
            self.descent,
            trained=(network.energy,),
            feature_rate=0.0,
        )
        learn_stage("energy", self.energy, energy)
        # By as much as the rate of the rest.
        lowered = self.feature_rate * self.everything.learning_rate / self.unaries.learning_rate
        everything = stage_of(
            network.terms,
            self.loss,
            self.descent,
            trained=(network.unaries, network.energy),
            feature_rate=lowered,
        )
        learn_stage("everything", self.everything, everything)
