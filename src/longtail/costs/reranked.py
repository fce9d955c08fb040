"""What a recipe costs whose best labels are re-ordered by an energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longtail.costs.estimate import CostModel, Machine, Workload

__all__ = ["RerankedCosts"]


@dataclass(frozen=True)
class RerankedCosts:
    """See `longtail.costs.estimate.CostModel`.

    The recipe is trained twice, the first time to have answers to points that it has not seen;
    beside that the energy itself takes next to nothing.

    Parameters
    ----------
    alone : CostModel
        Of the recipe without an energy.
    """

    alone: CostModel

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage."""
        own = self.alone.stages(workload, machine)
        return {**{f"to re-rank: {stage}": seconds for stage, seconds in own.items()}, **own}

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak."""
        return self.alone.memory(workload)
