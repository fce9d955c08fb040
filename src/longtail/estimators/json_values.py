"""Settings as JSON values: for reports, and to tell one training from another."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import partial
from hashlib import sha256
from types import CodeType, FunctionType
from typing import Any

import numpy as np

__all__ = ["json_value"]


def json_value(value: Any) -> Any:
    """Return a hyper-parameter, which may be a part of a recipe, as JSON values.

    The same settings give the same values in every process: a checkpoint is known by them.

    Examples
    --------
    >>> from longtail.estimators.json_values import json_value
    >>> from longtail.training.schedule import Schedule
    >>> json_value((3, Schedule(epochs=2, learning_rate=0.1)))[1]["epochs"]
    2
    """
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, list | tuple):
        return [json_value(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | int | float):
        return value
    return _name_of(value) or _json_object(value)


def _json_object(value: Any) -> Any:
    """Return what a part is made of; its `repr` may hold where it is in memory."""
    if isinstance(value, partial):
        parts = {"function": value.func, "arguments": value.args, **value.keywords}
    elif is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "__dict__"):
        parts = vars(value)
    else:
        return repr(value)
    own = {name: json_value(part) for name, part in parts.items()}
    return {"type": type(value).__name__, **own}


def _name_of(value: Any) -> str | None:
    """Return what tells a class or a function from others, if it is one."""
    name: str | None = getattr(value, "__qualname__", None)
    if not isinstance(value, FunctionType) or value.__name__ != "<lambda>":
        return name
    code = value.__code__
    constants = [part for part in code.co_consts if not isinstance(part, CodeType)]
    content = repr((code.co_code, code.co_names, constants))
    return f"{name} {sha256(content.encode()).hexdigest()}"
