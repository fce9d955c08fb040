"""What training SPEN and ICNN costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.costs.estimate import BAG, BAGS, WITH_TORCH
from longtail.energy.training import MOST_CHECKED

if TYPE_CHECKING:
    from longtail.costs.estimate import Machine, Workload
    from longtail.recipes.energy_classifier import EnergyClassifier

__all__ = ["EnergyCosts"]

# Core-seconds, as in `longtail.costs.estimate`.
ENERGY = 1e-8  # a label of a point in a step of inference, looked through
# Products in float32, over those of half the precision that most recipes use, if not measured.
SLOWER = 3.0

STATES_LEARNT, STATES_CHECKED = 8, 2  # numbers that are kept of a label in a step of inference


@dataclass(frozen=True)
class EnergyCosts:
    """See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    Every step of inference looks at all labels: twice as many take twice as long.

    >>> from longtail.costs.energy import EnergyCosts
    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.recipes.spen import SPEN
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> few, many = (Workload(n_labels=n, **sizes) for n in (1_000, 2_000))
    >>> costs, machine = EnergyCosts(SPEN()), Machine(rate=1e11, n_threads=2)
    >>> seconds = [costs.stages(workload, machine)["energy"] for workload in (few, many)]
    >>> round(seconds[1] / seconds[0], 1)
    2.0
    """

    settings: EnergyClassifier

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage."""
        w, settings = workload, self.settings
        n_inner = settings.n_hidden * settings.n_energy_layers
        n_coupled = w.n_points * self._n_couplings()
        logits = w.n_points * w.n_trained_labels
        bags = w.n_nonzero * settings.dimension * BAG / machine.n_threads
        rate = machine.rate_of_float32 or machine.rate / SLOWER
        in_memory = ENERGY / machine.n_threads
        unaries = logits * (6 * settings.dimension / rate + in_memory)
        steps = settings.n_steps * logits * (12 * n_inner / rate + in_memory)
        steps += settings.n_steps * n_coupled * 12 / rate
        return {
            "unaries": settings.unary_epochs * (unaries + bags),
            "energy": settings.energy_epochs * (unaries + steps),
            "everything": settings.joint_epochs * (unaries + steps + bags),
        }

    def _n_couplings(self) -> int:
        """Return the weights from each hidden layer to the next."""
        return (self.settings.n_energy_layers - 1) * self.settings.n_hidden**2

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: parameters, their moments, and all steps of a batch."""
        w, settings = workload, self.settings
        n_inner = settings.n_hidden * settings.n_energy_layers
        parameters = w.n_trained_labels * (settings.dimension + n_inner) + self._n_couplings()
        n_steps = settings.n_steps + 1
        learnt = settings.batch_size * (STATES_LEARNT * w.n_trained_labels + 4 * n_inner)
        checked = MOST_CHECKED * STATES_CHECKED * w.n_trained_labels
        numbers = 4 * parameters + n_steps * max(learnt, checked)
        return (
            WITH_TORCH + BAGS * w.n_nonzero + 12 * w.n_features * settings.dimension + 4 * numbers
        )
