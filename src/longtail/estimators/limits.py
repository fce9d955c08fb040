"""Which values the settings of a recipe may have."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.compiled.checks import MOST_SEARCHED
from longtail.data.input_notes import warn
from longtail.errors import InputError
from longtail.own_classes import is_ours
from longtail.scorers.energy_inference import MOST_STEPS
from longtail.training.run import checked_device

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longtail.estimators.estimator import LabelEstimator

__all__ = ["check_min_df", "check_settings", "check_values_of_part"]

_MANY = 2**31 - 1
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = MappingProxyType(
    {
        "int": ((Integral,), "a whole number"),
        "float": ((Real,), "a number"),
        "bool": ((bool, np.bool_), "True or False"),
        "str": ((str, PathLike), "a string"),
        "tuple[int, ...]": ((tuple, list), "a tuple of whole numbers"),
    }
)

# Least and greatest value, both allowed.
LIMITS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "word_ngrams": (1, 2),
        "char_weight": (1e-3, 1e3),
        "dimension": (1, 2**16),
        "n_meta_labels": (1, _MANY),
        "dropout": (0.0, 0.99),
        "texts_alone": (0.0, 1.0),
        "scale": (0.1, 100.0),
        "max_norm": (1e-6, 1e6),
        "epochs": (0, _MANY),
        "encoder_epochs": (0, _MANY),
        "classifier_epochs": (0, _MANY),
        "surrogate_epochs": (0, _MANY),
        "extreme_epochs": (0, _MANY),
        "reranker_epochs": (0, _MANY),
        "learning_rate": (1e-9, 1e3),
        "surrogate_learning_rate": (1e-9, 1e3),
        "extreme_learning_rate": (1e-9, 1e3),
        "reranker_learning_rate": (1e-9, 1e3),
        "encoder_learning_rate": (1e-9, 1e3),
        "classifier_learning_rate": (1e-9, 1e3),
        "warm_up": (0.0, 0.99),
        "clip": (1e-6, 1e6),
        "patience": (1, _MANY),
        "average_after": (0, _MANY),
        "batch_size": (1, _MANY),
        "cluster_size": (1, _MANY),
        "refresh_every": (1, _MANY),
        "n_clusters": (1, _MANY),
        "n_private": (0, _MANY),
        "auxiliary_speed": (1e-3, 1e3),
        "label_power": (0.0, 1.0),
        "n_near_labels": (1, MOST_SEARCHED),
        "n_near_points": (0, MOST_SEARCHED),
        "n_voted": (1, MOST_SEARCHED),
        "shortlist_size": (1, _MANY),
        "predict_near_labels": (1, _MANY),
        "predict_near_points": (0, _MANY),
        "predict_shortlist_size": (1, _MANY),
        "n_representatives": (0, _MANY),
        "head_frequency": (1, _MANY),
        "point_weight": (0.0, 1.0),
        "neighbourhood_size": (0, _MANY),
        "n_hard": (0, _MANY),
        "n_random": (0, MOST_SEARCHED),
        "n_confused": (1, _MANY),
        "n_learners": (1, 1000),
        "n_hashes": (1, 1000),
        "n_buckets": (1, _MANY),
        "n_token_buckets": (1, _MANY),
        "n_filters": (1, 2**16),
        "n_words": (1, 2**16),
        "n_pieces": (2, 2**16),
        "texts_at_once": (1, _MANY),
        "fine_tune_learning_rate": (1e-9, 1e3),
        "n_chunks": (1, 2**16),
        "bottleneck": (1, 2**16),
        "first_level": (1, _MANY),
        "leaf_size": (1, _MANY),
        "beam_size": (1, MOST_SEARCHED),
        "n_candidates": (1, _MANY),
        "trial_trees": (1, 1000),
        "trial_share": (1e-6, 0.9),
        "max_mean_entries": (1, _MANY),
        "max_passes": (1, _MANY),
        "n_children": (1, _MANY),
        "max_depth": (1, _MANY),
        "cost": (1e-6, 1e6),
        "n_neighbours": (1, _MANY),
        "partition_size": (1, _MANY),
        "penalty": (0.0, 1e6),
        "prune": (0.0, 1e3),
        "tolerance": (1e-9, 1e3),
        "alpha": (0.0, 1.0),
        "gamma": (0.0, 1e3),
        "tail": (0.0, 10.0),
        "n_hidden": (1, 2**12),
        "n_layers": (1, 16),
        "n_steps": (0, MOST_STEPS),
        "step": (1e-9, 1e3),
        "momentum": (0.0, 0.999),
        "unary_epochs": (0, _MANY),
        "energy_epochs": (0, _MANY),
        "joint_epochs": (0, _MANY),
        "feature_learning_rate": (1e-9, 1e3),
        "feature_power": (1e-3, 1e3),
        "held_out": (0.0, 0.9),
        "random_state": (0, _MANY),
        "n_threads": (1, 4096),
        "min_df": (1, _MANY),
        "max_features": (1, _MANY),
    }
)


def _check_kind(name: str, value: object, kind: str) -> None:
    """Raise InputError if a number, a switch or a word is something else."""
    allowed, words = _KINDS.get(kind, ((object,), ""))
    is_switch = isinstance(value, bool) and bool not in allowed  # True is a number to Python
    if kind in _KINDS and (is_switch or not isinstance(value, allowed)):
        raise InputError(f"{name} must be {words}, got {value!r}.")
    if kind == "Schedule" and (isinstance(value, type) or not hasattr(value, "rate_at")):
        raise InputError(
            f"{name} must be a schedule, such as Schedule(epochs=20, learning_rate=0.05), got "
            f"{value!r}."
        )
    if kind.startswith("Callable[") and not callable(value):
        raise InputError(f"{name} must be a class or a function, got {value!r}.")


def check_min_df(estimator: LabelEstimator, n_points: int) -> None:
    """Warn that a `min_df` is lowered because points are few; the default is lowered silently.

    Raises
    ------
    InputError
        If no token could be in so many texts.

    Examples
    --------
    >>> import warnings
    >>> from longtail import LongtailClassifier
    >>> from longtail.estimators.limits import check_min_df
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     check_min_df(LongtailClassifier(min_df=5), n_points=40)
    >>> str(caught[0].message)
    'min_df=5 is lowered to 2, one in twenty of the 40 training texts.'
    """
    given, most = estimator.min_df, estimator.min_df_for(n_points)
    if given is None or given in (type(estimator).min_df, most):
        return
    if given > n_points:
        raise InputError(
            f"min_df={given:,} leaves no token: there are only {n_points:,} training texts. Pass "
            f"at most {max(1, n_points // 20):,}, one text in twenty."
        )
    warn(
        f"min_df={given:,} is lowered to {most:,}, one in twenty of the {n_points:,} "
        "training texts.",
    )


def check_settings(estimator: LabelEstimator) -> None:
    """Raise unless every setting is of its kind and in its range, and the device is there.

    Raises
    ------
    InputError
        Naming the setting, what it is and what it may be.
    MissingExtraError
        If a setting needs a library that is not installed.

    Examples
    --------
    >>> from longtail import Astec
    >>> from longtail.estimators.limits import check_settings
    >>> check_settings(Astec(dimension=64))
    """
    _check_defaults(estimator)
    _check_constructor(estimator)
    _check_values("", estimator)
    checked_device(estimator.device)
    estimator.check()


def check_values_of_part(name: str, part: Any) -> None:
    """Raise InputError unless the settings of a part, and of its parts, are in their ranges.

    Parameters
    ----------
    name : str
        What it is called in messages.
    part : object
        What is not longtail's own has settings of its own, too, and is left alone.

    Examples
    --------
    >>> from longtail.estimators.limits import check_values_of_part
    >>> from longtail.features.bag_of_tokens import BagOfTokens
    >>> check_values_of_part("features", BagOfTokens(dropout=1.5))
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: features.dropout must be between 0.0 and 0.99, got 1.5.
    """
    if isinstance(part, type) or not is_dataclass(part):
        return
    _check_defaults(part)
    if not is_ours(type(part)):
        return
    _check_values(f"{name}.", part)
    for field in fields(part):
        check_values_of_part(f"{name}.{field.name}", getattr(part, field.name, None))


def _check_defaults(holder: Any) -> None:
    """Raise InputError for a default that a class derived from ours has written, and nobody reads.

    The constructor of a dataclass gives its fields the defaults that the decorator has found.
    """
    kind = type(holder)
    for field in fields(holder):
        lost, value = getattr(kind, field.name, field.default), getattr(holder, field.name, None)
        if lost is not field.default and lost is not value and not hasattr(lost, "__get__"):
            raise InputError(
                f"{kind.__name__} has {field.name} = {lost!r}, but its constructor sets "
                f"{value!r}. Write {_decorator(kind)} above the class, and the type behind the "
                f"name: {field.name}: {field.type} = {lost!r}."
            )


def _check_constructor(estimator: LabelEstimator) -> None:
    """Raise InputError for parameters that neither a copy nor a model folder would have."""
    kind, known = type(estimator), {field.name for field in fields(estimator)}
    parameters = signature(kind).parameters.values()
    others = [p.name for p in parameters if p.name not in known and "VAR" not in p.kind.name]
    if others:
        raise InputError(
            f"The constructor of {kind.__name__} takes {others[0]}, which is no field of a "
            "dataclass, so that copies for a search would lose it. Leave the constructor out, "
            f"write {_decorator(kind)} above the class, and {others[0]} with its type and default "
            "into it."
        )


def _decorator(kind: type[Any]) -> str:
    """Return what makes a dataclass of a class that derives from one of ours."""
    is_frozen = kind.__dataclass_params__.frozen
    return f"@dataclass(kw_only=True, {'frozen=True' if is_frozen else 'eq=False, repr=False'})"


def _check_values(within: str, holder: Any) -> None:
    """Raise InputError unless each setting is of its kind and in its range."""
    ours: Any = next(kind for kind in type(holder).__mro__ if is_ours(kind))
    known = {field.name for field in fields(ours)}
    for field in fields(holder):
        value = getattr(holder, field.name, None)
        kind = str(field.type)  # as it is written in the class, such as "int | None"
        if value is not None or "None" not in kind:
            _check_kind(within + field.name, value, kind.removesuffix(" | None"))
        if field.name not in LIMITS or field.name not in known or value is None:
            continue  # a user's recipe may have settings of its own by these names
        least, greatest = LIMITS[field.name]
        if not least <= value <= greatest or math.isnan(value):
            raise InputError(
                f"{within}{field.name} must be between {least:,} and {greatest:,}, got {value!r}."
            )
