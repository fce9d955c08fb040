"""What training each recipe costs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from longtail.costs.reranked import RerankedCosts
from longtail.recipes.reranked import RerankedEstimator

if TYPE_CHECKING:
    from longtail.costs.estimate import CostModel
    from longtail.estimators.estimator import LabelEstimator

__all__ = ["costs_of"]

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

    Returns
    -------
    CostModel or None

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
