"""What training each recipe costs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from longtail.costs.estimate import PROCESS, WITH_TORCH
from longtail.recipes.reranked import RerankedEstimator

if TYPE_CHECKING:
    from longtail.costs.estimate import CostModel, Machine, Workload
    from longtail.estimators.estimator import LabelEstimator

__all__ = ["RerankedCosts", "costs_of"]

# Modules of `longtail.recipes` and of `longtail.costs`, and classes in them. Imported when they are
# asked for: all of them together take a tenth of a second, which a training would begin with.
_COSTS = {
    "annexml.AnnexML": "sparse.AnnexMLCosts",
    "astec.Astec": "astec.AstecCosts",
    "attentionxml.AttentionXML": "attentionxml.AttentionXMLCosts",
    "deepxml_with.DeepXMLWith": "deepxml.DeepXMLWithCosts",
    "dexa.DEXA": "ngame.DEXACosts",
    "dismec.DiSMEC": "sparse.DiSMECCosts",
    "end_to_end.EndToEnd": "network.NetworkCosts",
    "energy_classifier.EnergyClassifier": "energy.EnergyCosts",
    "extremetext.ExtremeText": "network.ExtremeTextCosts",
    "longtail.LongtailClassifier": "longtail.LongtailCosts",
    "mach.MACH": "network.MACHCosts",
    "ngame.NGAME": "ngame.NGAMECosts",
    "parabel.Parabel": "sparse.TreeCosts",
    "pfastrexml.PfastreXML": "sparse.ForestCosts",
    "siamesexml.SiameseXML": "ngame.SiameseXMLCosts",
    "slice.Slice": "slice.SliceCosts",
    "xtransformer.XTransformer": "xtransformer.XTransformerCosts",
}


def costs_of(recipe: LabelEstimator) -> CostModel | None:
    """Return the cost model of a recipe, from its class; None for parts of one's own.

    Parameters
    ----------
    recipe : LabelEstimator
        With its settings.

    Examples
    --------
    >>> from longtail import Astec, DeepXML
    >>> from longtail.costs.of_recipe import costs_of
    >>> type(costs_of(Astec())).__name__, costs_of(DeepXML())
    ('AstecCosts', None)
    """
    for kind in type(recipe).__mro__:
        package, _, module = kind.__module__.rpartition(".")
        where = _COSTS.get(f"{module}.{kind.__name__}")
        if where is None or package != "longtail.recipes":
            continue
        module, _, name = where.partition(".")
        costs: CostModel = getattr(import_module(f"longtail.costs.{module}"), name)(recipe)
        is_reranked = isinstance(recipe, RerankedEstimator) and recipe.energy_reranker is not None
        return RerankedCosts(costs) if is_reranked else costs
    return None


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
    >>> from longtail.costs.of_recipe import RerankedCosts
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
