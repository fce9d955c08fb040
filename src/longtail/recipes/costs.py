"""What training a recipe costs, where that has been measured."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from longtail.recipes.astec import Astec
from longtail.recipes.astec_costs import AstecCosts
from longtail.recipes.attentionxml import AttentionXML
from longtail.recipes.attentionxml_costs import AttentionXMLCosts
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.longtail_costs import LongtailCosts
from longtail.recipes.ngame import Ngame
from longtail.recipes.ngame_costs import NgameCosts
from longtail.recipes.xtransformer import XTransformer
from longtail.recipes.xtransformer_costs import XTransformerCosts

if TYPE_CHECKING:
    from longtail.recipes.estimator import LabelEstimator
    from longtail.training.estimate import CostModel

__all__ = ["costs_of"]


@singledispatch
def costs_of(
    recipe: LabelEstimator,  # noqa: ARG001 - decides which of the functions below is called
) -> CostModel | None:
    """Return the cost model of a recipe, from its class; None if it has none.

    Parameters
    ----------
    recipe : LabelEstimator
        With its settings.

    Returns
    -------
    CostModel or None

    Examples
    --------
    >>> from longtail import Astec
    >>> from longtail.recipes.costs import costs_of
    >>> from longtail.recipes.parabel import Parabel
    >>> type(costs_of(Astec())).__name__, costs_of(Parabel())
    ('AstecCosts', None)
    """
    return None


costs_of.register(Astec, AstecCosts)
costs_of.register(LongtailClassifier, LongtailCosts)
costs_of.register(Ngame, NgameCosts)
costs_of.register(XTransformer, XTransformerCosts)
costs_of.register(AttentionXML, AttentionXMLCosts)
