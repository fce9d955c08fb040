"""ICNN: input convex neural networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.energy.global_energies import ConvexEnergy
from longtail.recipes.energy_classifier import EnergyClassifier

if TYPE_CHECKING:
    from longtail.energy.global_energies import GlobalEnergy

__all__ = ["ICNN"]


@dataclass(kw_only=True, eq=False, repr=False)
class ICNN(EnergyClassifier):
    """ICNN (Amos, Xu and Kolter, "Input convex neural networks", ICML 2017).

    The energy is a network of x and y that is convex in y, so that with the entropy there is one
    answer, which any sound method finds: the gradient steps that training looks through, or
    ``inference="bundle"``, the paper's bundle-entropy method, which is exact.

    Parameters
    ----------
    n_layers : int
        Hidden layers between labels and energy.
    **kwargs
        Those of `EnergyClassifier`.

    Examples
    --------
    >>> from longtail.recipes.icnn import ICNN
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = ICNN(dimension=16).fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("wine", k=1)[0][0]
    'drink'
    """

    n_layers: int = 2
    n_hidden: int = 32
    energy_epochs: int = 5
    n_steps: int = 5

    @property
    def n_energy_layers(self) -> int:
        """See `EnergyClassifier`."""
        return self.n_layers

    def global_energy(self, n_labels: int) -> GlobalEnergy:
        """See `EnergyClassifier`."""
        return ConvexEnergy(n_labels, self.dimension, self.n_hidden, self.n_layers)
