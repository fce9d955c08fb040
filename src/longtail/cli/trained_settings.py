"""The settings that a model was trained with, beside the defaults of its recipe."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from longtail.errors import LongtailError
from longtail.estimators.json_values import json_value
from longtail.recipes.names import RECIPES, recipe

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Trained", "trained_settings"]

# What is said elsewhere, and what tells of the machine and not of the model.
_LEFT_OUT = {"random_state", "n_threads", "device"}


class Trained(NamedTuple):
    """Settings as text.

    Attributes
    ----------
    settings : dict of str to str
    are_changed : bool
        Whether these are those that differ from the defaults; else they are all that there are, of
        a recipe whose defaults are not known here.
    """

    settings: dict[str, str]
    are_changed: bool


def trained_settings(description: Mapping[str, Any]) -> Trained:
    """Return the settings that differ from the defaults.

    Parameters
    ----------
    description : mapping
        What a model folder says of itself.

    Examples
    --------
    >>> from longtail.cli.trained_settings import trained_settings
    >>> trained_settings({"recipe": "dismec", "settings": {"cost": 2.0, "word_ngrams": 2}})
    Trained(settings={'cost': '2.0'}, are_changed=True)
    >>> trained_settings({"recipe": "MyOwn", "settings": {"cost": 1.0}})
    Trained(settings={'cost': '1.0'}, are_changed=False)
    """
    settings = {
        name: value
        for name, value in description.get("settings", {}).items()
        if name not in _LEFT_OUT
    }
    defaults = _defaults_of(description.get("recipe", ""))
    if defaults is None:
        return Trained({name: _as_text(value) for name, value in settings.items()}, False)
    changed = {
        name: _as_text(value)
        for name, value in settings.items()
        if name not in defaults or defaults[name] != value
    }
    return Trained(changed, True)


def _defaults_of(name: str) -> dict[str, Any] | None:
    """Return the settings of a recipe as it comes, as JSON values; None if it is not known here."""
    if name not in RECIPES:
        return None
    try:
        usual = recipe(name)()
    except LongtailError:  # torch is not installed
        return None
    return {f.name: json_value(getattr(usual, f.name)) for f in fields(usual) if f.init}


def _as_text(value: Any) -> str:
    """Return a value as it is read; of a path, which is of one machine, the last part alone."""
    if isinstance(value, str):
        is_path = value.startswith("~") or PurePath(value).is_absolute()
        return PurePath(value).name if is_path else value
    return json.dumps(value, ensure_ascii=False)
