"""The recipes by the names that the command line knows them by."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING

from longtail.errors import InputError, did_you_mean, needs_extra

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longtail.estimators.estimator import LabelEstimator

__all__ = ["DEFAULT_RECIPE", "RECIPES", "name_of", "recipe"]

DEFAULT_RECIPE = "longtail"

# Where each class lives: importing it may load torch, which must not happen before it is needed.
RECIPES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "longtail": ("longtail.recipes.longtail", "LongtailClassifier"),
        "astec": ("longtail.recipes.astec", "Astec"),
        "astec-3": ("longtail.recipes.astec", "Astec3"),
        "parabel": ("longtail.recipes.parabel", "Parabel"),
        "dexa": ("longtail.recipes.dexa", "DEXA"),
        "ngame": ("longtail.recipes.ngame", "NGAME"),
        "siamesexml": ("longtail.recipes.siamesexml", "SiameseXML"),
        "xtransformer": ("longtail.recipes.xtransformer", "XTransformer"),
        "attentionxml": ("longtail.recipes.attentionxml", "AttentionXML"),
        "bonsai": ("longtail.recipes.parabel", "Bonsai"),
        "spen": ("longtail.recipes.spen", "SPEN"),
        "icnn": ("longtail.recipes.icnn", "ICNN"),
        "dismec": ("longtail.recipes.dismec", "DiSMEC"),
        "slice": ("longtail.recipes.slice", "Slice"),
        "pfastrexml": ("longtail.recipes.pfastrexml", "PfastreXML"),
        "extremetext": ("longtail.recipes.extremetext", "ExtremeText"),
        "mach": ("longtail.recipes.mach", "MACH"),
        "deepxml-mach": ("longtail.recipes.deepxml_with", "DeepXMLMACH"),
        "xmlcnn": ("longtail.recipes.end_to_end", "XMLCNNClassifier"),
        "deepxml-xmlcnn": ("longtail.recipes.deepxml_with", "DeepXMLXMLCNN"),
        "kimcnn": ("longtail.recipes.end_to_end", "KimCNNClassifier"),
        "deepxml-kimcnn": ("longtail.recipes.deepxml_with", "DeepXMLKimCNN"),
        "annexml": ("longtail.recipes.annexml", "AnnexML"),
        "one-vs-all": ("longtail.recipes.one_vs_all", "OneVsAll"),
    }
)


def recipe(name: str) -> type[LabelEstimator]:
    """Return the class of a recipe.

    Parameters
    ----------
    name : str
        A key of `RECIPES`.

    Raises
    ------
    InputError
        If there is no recipe of this name.
    MissingExtraError
        If torch or scikit-learn is not installed.

    Examples
    --------
    >>> from longtail.recipes.names import recipe
    >>> recipe("astec-3").__name__
    'Astec3'
    """
    if name not in RECIPES:
        hint = did_you_mean(str(name), RECIPES)
        raise InputError(
            f"There is no recipe {name!r}.{hint} The recipes are {', '.join(RECIPES)}."
        )
    module, class_name = RECIPES[name]
    try:
        found: type[LabelEstimator] = getattr(importlib.import_module(module), class_name)
    except ModuleNotFoundError as error:
        if error.name not in {"torch", "sklearn"}:
            raise
        raise needs_extra(f"The recipe {name!r} trains models and", error, "train") from error
    return found


def name_of(kind: type) -> str:
    """Return what `recipe` finds a class by; of a class of somebody's own, what that is called.

    Parameters
    ----------
    kind : type

    Examples
    --------
    >>> from longtail import Astec3
    >>> from longtail.recipes.names import name_of
    >>> class Shorter(Astec3):
    ...     pass
    >>> name_of(Astec3), name_of(Shorter)
    ('astec-3', 'Shorter')
    """
    place = kind.__module__, kind.__qualname__
    return next((name for name, known in RECIPES.items() if known == place), kind.__name__)
