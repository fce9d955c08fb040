"""Settings of transformers that a recipe without a transformer does not read."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from longtail.errors import InputError

if TYPE_CHECKING:
    from longtail.estimators.estimator import LabelEstimator

__all__ = ["refuse_unread_settings"]

OF_TRANSFORMERS = ("n_pieces", "fine_tune", "fine_tune_rate", "texts_at_once", "clip")


def refuse_unread_settings(recipe: LabelEstimator) -> None:
    """Raise InputError if a recipe around a bag alone has settings of a transformer.

    Examples
    --------
    >>> from longtail.recipes.ngame import Ngame
    >>> from longtail.recipes.unread_settings import refuse_unread_settings
    >>> refuse_unread_settings(Ngame(dimension=16))
    """
    usual = {field.name: field.default for field in fields(recipe)}
    unread = [name for name in OF_TRANSFORMERS if getattr(recipe, name) != usual[name]]
    if unread:
        raise InputError(
            f"{' and '.join(unread)} would change nothing: a bag of token vectors reads no such "
            "setting. Name the folder of a transformer, encoder=FOLDER, or leave it out."
        )
