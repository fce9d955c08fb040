"""SPEN: structured prediction energy networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.energy.global_energies import SoftplusEnergy
from longtail.errors import InputError
from longtail.recipes.energy_classifier import EnergyClassifier

if TYPE_CHECKING:
    from longtail.energy.global_energies import GlobalEnergy

__all__ = ["SPEN"]


@dataclass(kw_only=True, eq=False, repr=False)
class SPEN(EnergyClassifier):
    """SPEN (Belanger and McCallum, "Structured prediction energy networks", ICML 2016).

    ``E(y; x) = -y . (V F(x) + b) + c_2 . softplus(C_1 y + D F(x) + d)``, minimised over y in
    [0, 1]^L by a few gradient steps, and trained through them (Belanger, Yang and McCallum,
    "End-to-end learning for structured prediction energy networks", ICML 2017), or by the
    structured hinge.

    Parameters
    ----------
    conditional : bool
        Let the global energy look at the features too; without, D is 0.
    **kwargs
        Those of `EnergyClassifier`.

    Examples
    --------
    >>> from longtail.recipes.spen import SPEN
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = SPEN(dimension=16).fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("wine", k=1)[0][0]
    'drink'
    """

    conditional: bool = True

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        if self.inference == "bundle":
            raise InputError(
                "`inference='bundle'` needs an energy that is convex in the labels, as that of "
                "`icnn` is; SPEN's is not. Take 'entropy', 'logit' or 'projected'."
            )

    def global_energy(self, n_labels: int) -> GlobalEnergy:
        """See `EnergyClassifier`."""
        return SoftplusEnergy(
            n_labels, self.dimension, self.n_hidden, is_conditional=self.conditional
        )
