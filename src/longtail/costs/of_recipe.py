"""What training each recipe costs."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from longtail.costs.astec import AstecCosts
from longtail.costs.attentionxml import AttentionXMLCosts
from longtail.costs.deepxml import DeepXMLWithCosts
from longtail.costs.energy import EnergyCosts
from longtail.costs.longtail import LongtailCosts
from longtail.costs.network import ExtremeTextCosts, MACHCosts, NetworkCosts
from longtail.costs.ngame import DEXACosts, NGAMECosts
from longtail.costs.reranked import RerankedCosts
from longtail.costs.slice import SliceCosts
from longtail.costs.sparse import AnnexMLCosts, DiSMECCosts, ForestCosts, TreeCosts
from longtail.costs.xtransformer import XTransformerCosts
from longtail.recipes.annexml import AnnexML
from longtail.recipes.astec import Astec
from longtail.recipes.attentionxml import AttentionXML
from longtail.recipes.deepxml_with import DeepXMLWith
from longtail.recipes.dexa import DEXA
from longtail.recipes.dismec import DiSMEC
from longtail.recipes.end_to_end import EndToEnd
from longtail.recipes.energy_classifier import EnergyClassifier
from longtail.recipes.extremetext import ExtremeText
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.mach import MACH
from longtail.recipes.ngame import NGAME
from longtail.recipes.one_vs_all import OneVsAll
from longtail.recipes.parabel import Parabel
from longtail.recipes.pfastrexml import PfastreXML
from longtail.recipes.slice import Slice
from longtail.recipes.xtransformer import XTransformer

if TYPE_CHECKING:
    from longtail.costs.estimate import CostModel
    from longtail.estimators.estimator import LabelEstimator
    from longtail.recipes.reranked import RerankedEstimator

__all__ = ["costs_of"]


@singledispatch
def costs_of(
    recipe: LabelEstimator,  # noqa: ARG001 - decides which of the functions below is called
) -> CostModel | None:
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
    return None


def _of_longtail(recipe: LongtailClassifier) -> CostModel:
    """Return the costs of the default recipe."""
    return _with_reranker(recipe, LongtailCosts(recipe))


def _of_trees(recipe: Parabel) -> CostModel:
    """Return the costs of Parabel and Bonsai."""
    return _with_reranker(recipe, TreeCosts(recipe))


def _with_reranker(recipe: RerankedEstimator, alone: CostModel) -> CostModel:
    """Return the costs of a recipe with what its setting says."""
    return alone if recipe.reranker is None else RerankedCosts(alone)


costs_of.register(AnnexML, AnnexMLCosts)
costs_of.register(Astec, AstecCosts)
costs_of.register(AttentionXML, AttentionXMLCosts)
costs_of.register(DeepXMLWith, DeepXMLWithCosts)
costs_of.register(DEXA, DEXACosts)
costs_of.register(DiSMEC, DiSMECCosts)
costs_of.register(EndToEnd, NetworkCosts)
costs_of.register(EnergyClassifier, EnergyCosts)
costs_of.register(ExtremeText, ExtremeTextCosts)
costs_of.register(LongtailClassifier, _of_longtail)
costs_of.register(MACH, MACHCosts)
costs_of.register(NGAME, NGAMECosts)
costs_of.register(OneVsAll, NetworkCosts)
costs_of.register(Parabel, _of_trees)
costs_of.register(PfastreXML, ForestCosts)
costs_of.register(Slice, SliceCosts)
costs_of.register(XTransformer, XTransformerCosts)
