"""What a recipe costs whose best labels are re-ordered by an energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.costs.estimate import PROCESS, WITH_TORCH

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

    Examples
    --------
    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.reranked import RerankedCosts
    >>> from longtail.costs.sparse import TreeCosts
    >>> from longtail.recipes.parabel import Parabel
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> workload = Workload(n_labels=1_000, **sizes)
    >>> list(RerankedCosts(TreeCosts(Parabel())).stages(workload, Machine(1e11, 2)))
    ['to re-rank: trees', 'trees']
    """

    alone: CostModel

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage."""
        own = self.alone.stages(workload, machine)
        return {**{f"to re-rank: {stage}": seconds for stage, seconds in own.items()}, **own}

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: torch trains the energy."""
        return self.alone.memory(workload) + WITH_TORCH - PROCESS
