"""What the recipes SPEN and ICNN share: the network, its three stages, and how it is frozen."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from longtail.energy.descent import Descent, Entropy, Logit, Projected
from longtail.energy.losses import (
    CrossEntropy,
    EnergyLoss,
    SoftF1,
    SquaredError,
    StructuredHinge,
)
from longtail.energy.training import EnergyNetwork, EnergyStages
from longtail.errors import require_one_of
from longtail.estimators.estimator import LabelEstimator
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.features.dense_layer import DenseLayer
from longtail.kernels.energy import EnergyLayers
from longtail.recipes.own_parts import check_part
from longtail.recipes.part_words import part_of
from longtail.scorers.energy import EnergyScorer
from longtail.scorers.energy_inference import EnergyInference
from longtail.training.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scipy.sparse import csr_array

    from longtail.energy.descent import Parametrisation
    from longtail.energy.global_energies import GlobalEnergy
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["ENERGY_LOSSES", "EnergyClassifier"]

# What the command line, which has words alone, calls the losses.
ENERGY_LOSSES: Mapping[str, EnergyLoss] = MappingProxyType(
    {
        "squared-error": SquaredError(),
        "cross-entropy": CrossEntropy(),
        "f1": SoftF1(),
        "hinge": StructuredHinge(),
    }
)

# Of a bundle in serving: most points need under ten planes.
MOST_PLANES, NEAR_ENOUGH = 30, 1e-5
# Training looks through gradient steps; the bundle finds the minimum that these approach.
_TRAINED_AS: Mapping[str, Parametrisation] = MappingProxyType(
    {"entropy": Entropy(), "bundle": Entropy(), "logit": Logit(), "projected": Projected()}
)


@dataclass(kw_only=True, eq=False, repr=False)
class EnergyClassifier(LabelEstimator):
    """Base of the recipes whose answer minimises an energy over all labels together.

    For up to some thousands of labels: an energy looks at all of them at every step. In front of
    more, put it behind a shortlist (`longtail.recipes.reranked`).

    Parameters
    ----------
    dimension : int
        Length of token vectors, which is that of features.
    dropout : float
        Of the features, in training.
    n_hidden : int
        Softplus units of a layer of the global energy.
    unary_epochs, energy_epochs, joint_epochs : int
        Of the three stages: features and unaries; the global energy alone; everything. With none of
        the last two it is a feed-forward network.
    learning_rate : float
        Of Adam in the first two stages; a tenth in the last.
    feature_learning_rate : float
        Of row-wise Adagrad for token vectors in the first stage; a tenth in the last.
    batch_size : int
        Points of a step.
    loss : EnergyLoss or str
        Of the last two stages; see `longtail.energy.losses`. Or a word for one of these:
        ``"squared-error"``, ``"cross-entropy"``, ``"f1"``, all end to end, or ``"hinge"``, the
        structured support vector machine's.
    inference : str
        How the labels that minimise the energy are found: ``"entropy"``, ``"logit"``,
        ``"projected"`` or ``"bundle"``; see `EnergyInference`.
    n_steps : int
        Steps of inference, in training and serving; a bundle, in serving, has as many planes as it
        needs.
    step : float
        How far a step of inference goes.
    momentum : float
        Share of a step of inference that the next one goes on with.
    **kwargs
        Those of `LabelEstimator`; words by default, no character n-grams.
    """

    char_ngrams: tuple[int, int] | str | None = None
    dimension: int = 256
    dropout: float = 0.5
    n_hidden: int = 64
    unary_epochs: int = 20
    energy_epochs: int = 10
    joint_epochs: int = 10
    learning_rate: float = 0.01
    feature_learning_rate: float = 0.05
    batch_size: int = 128
    loss: EnergyLoss | str = "squared-error"
    inference: str = "entropy"
    n_steps: int = EnergyInference.n_steps
    step: float = EnergyInference.step
    momentum: float = EnergyInference.momentum

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        require_one_of("inference", self.inference, _TRAINED_AS)
        check_part("loss", part_of("loss", self.loss, ENERGY_LOSSES), ["value"], SquaredError)

    @property
    def n_energy_layers(self) -> int:
        """Hidden layers of the global energy."""
        return 1

    def global_energy(self, n_labels: int) -> GlobalEnergy:
        """Return an energy that is yet to be trained."""
        raise NotImplementedError

    def _learn(
        self,
        data: TrainingData,
        held_out: TrainingData,  # noqa: ARG002 - there is nothing to choose
        run: TrainingRun,
    ) -> EnergyScorer:
        """See `LabelEstimator`."""
        stages, inference = self._stages(), self._inference()
        used, seen = data.of_used_labels()
        labels = seen.labels
        torch.manual_seed(run.seed_for("energy"))
        features = BagOfTokens(dimension=self.dimension, dropout=self.dropout)
        network = EnergyNetwork(
            features.network(data, labels, run),
            _log_odds_at_first(self.dimension, labels).to(run.torch_device),
            self.global_energy(len(used)).to(run.torch_device),
        )
        stages.learn(network, labels, run)
        frozen = network.energy.frozen()
        unaries = network.unaries.cpu()
        return EnergyScorer(
            encoder=features.frozen(network.features),
            maps=DenseLayer(
                np.concatenate([unaries.weight.detach().numpy(), frozen.maps]),
                np.concatenate([unaries.bias.detach().numpy(), frozen.bias]),
            ),
            layers=EnergyLayers(frozen.label_vectors, frozen.couplings),
            known=used,
            inference=inference,
            is_convex=network.energy.is_convex,
        )

    def _inference(self) -> EnergyInference:
        """Return what serves."""
        if self.energy_epochs + self.joint_epochs == 0:
            return EnergyInference(method=self.inference, n_steps=0)
        if self.inference == "bundle":
            return EnergyInference(method="bundle", n_steps=MOST_PLANES, tolerance=NEAR_ENOUGH)
        return EnergyInference(
            method=self.inference, n_steps=self.n_steps, step=self.step, momentum=self.momentum
        )

    def _stages(self) -> EnergyStages:
        """Return how to train."""
        rate = self.learning_rate
        return EnergyStages(
            unaries=Schedule(epochs=self.unary_epochs, learning_rate=rate),
            energy=Schedule(epochs=self.energy_epochs, learning_rate=rate),
            everything=Schedule(epochs=self.joint_epochs, learning_rate=rate / 10),
            loss=part_of("loss", self.loss, ENERGY_LOSSES),
            descent=Descent(
                n_steps=self.n_steps,
                step=self.step,
                momentum=self.momentum,
                parametrisation=_TRAINED_AS[self.inference],
            ),
            batch_size=self.batch_size,
            feature_rate=self.feature_learning_rate,
        )


def _log_odds_at_first(dimension: int, labels: csr_array) -> nn.Linear:
    """Return unaries that start from how frequent each label is."""
    linear = nn.Linear(dimension, labels.shape[1])
    share = (labels.sum(axis=0) + 0.5) / (labels.shape[0] + 1)
    with torch.no_grad():
        linear.weight.zero_()
        linear.bias.copy_(torch.logit(torch.from_numpy(np.asarray(share))))
    return linear
