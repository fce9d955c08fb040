"""Settings of a recipe from ``--set key=value``, and what they are, for the help."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import textwrap
from contextlib import suppress
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from longtail.errors import InputError, did_you_mean
from longtail.recipes.names import name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longtail.estimators.estimator import LabelEstimator

__all__ = ["documented_parameters", "parse_settings", "setting_names", "settings_help"]

_KINDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    type(None): "none",
}
_KINDS_OF_MANY = {int: "whole numbers", float: "numbers", str: "words"}
_PARAMETER = re.compile(r"^(\w+(?:, \w+)*)(?: : .*)?$")


def parse_settings(
    recipe: type[LabelEstimator], pairs: Sequence[str], *, option: str = "--set"
) -> dict[str, Any]:
    """Return keyword arguments of a recipe.

    Parameters
    ----------
    recipe : type
    pairs : sequence of str
        Such as ``"dimension=300"``, ``"char_ngrams=3,5"``, ``"char_ngrams=none"``.
    option : str
        Behind which they were written.

    Raises
    ------
    InputError
        If a pair is malformed, or the recipe has no such setting, or it cannot have this value,
        or is set twice.

    Examples
    --------
    >>> from longtail.cli.settings import parse_settings
    >>> from longtail.recipes.astec import Astec
    >>> parse_settings(Astec, ["dimension=300", "char_ngrams=3,5", "reranker=false"])
    {'dimension': 300, 'char_ngrams': (3, 5), 'reranker': False}
    """
    types = _types_of(recipe)
    settings = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise InputError(
                f"{option} takes key=value, got {pair!r}. Write, for example, dimension=300."
            )
        if key not in types:
            raise InputError(_unknown_setting(recipe, key, list(types)))
        if key in settings:
            raise InputError(f"{option} {key} is given twice. Keep the one that you mean.")
        settings[key] = _value(key, text.strip(), types[key])
    return settings


def setting_names(recipe: type[LabelEstimator]) -> list[str]:
    """Return what ``--set`` takes.

    Examples
    --------
    >>> from longtail.cli.settings import setting_names
    >>> from longtail.recipes.dismec import DiSMEC
    >>> "word_ngrams" in setting_names(DiSMEC)
    True
    """
    return list(_types_of(recipe))


def settings_help(recipe: type[LabelEstimator], name: str) -> str:
    """Return a line or two for each setting of a recipe, with its default; its own ones first.

    Examples
    --------
    >>> from longtail.cli.settings import settings_help
    >>> from longtail.recipes.dismec import DiSMEC
    >>> for line in settings_help(DiSMEC, "dismec").splitlines()[:3]:
    ...     print(line)
    settings of the recipe 'dismec', for --set key=value:
      cost = 1.0
          C of the support vector machines: larger fits the training points more
    """
    texts, types = documented_parameters(recipe), _types_of(recipe)
    lines = [f"settings of the recipe {name!r}, for --set key=value:"]
    if not texts:
        lines.append(
            "  (what they do is in docstrings, which PYTHONOPTIMIZE=2, or -OO, has dropped)"
        )
    defaults = {field.name: field.default for field in dataclasses.fields(recipe)}
    for key in dict.fromkeys([*texts, *defaults]):  # in the order of docstrings, bases last
        if key in types:
            lines.append(f"  {key} = {_shown(defaults[key])}")
            text = texts.get(key, "")
            lines.extend(textwrap.wrap(text, 78, initial_indent=" " * 6, subsequent_indent=" " * 6))
    return "\n".join(lines)


def documented_parameters(kind: type) -> dict[str, str]:
    """Return what docstrings say of parameters, that of a class before those of its bases.

    Examples
    --------
    >>> from longtail.cli.settings import documented_parameters
    >>> from longtail.serve.limits import Limits
    >>> documented_parameters(Limits)["characters"]
    'Length of a text.'
    """
    texts: dict[str, str] = {}
    for owner in kind.__mro__:
        for names, text in _documented(owner.__dict__.get("__doc__") or ""):
            for name in names:
                texts.setdefault(name, text)
    return texts


def _types_of(recipe: type[LabelEstimator]) -> Mapping[str, Any]:
    """Return the type of each setting that can be written as text."""
    hints = get_type_hints(recipe)
    names = [field.name for field in dataclasses.fields(recipe) if field.init]
    simple = {name: _without_objects(hints[name]) for name in names}
    return {name: kind for name, kind in simple.items() if _is_simple(kind)}


def _without_objects(kind: Any) -> Any:
    """Return a type without the objects for which words may stand."""
    parts = get_args(kind)
    if get_origin(kind) is tuple:
        return tuple[*map(_without_objects, parts)]  # type: ignore[misc]  # types made at run time
    left = [part for part in parts if _is_simple(part)]
    if get_origin(kind) in {Union, UnionType} and left:
        return Union[*left]
    return kind


def _is_simple(kind: Any) -> bool:
    """Tell numbers, words and tuples of them from objects."""
    if kind is Ellipsis or kind in _KINDS:
        return True
    return get_origin(kind) in {tuple, Union, UnionType} and all(map(_is_simple, get_args(kind)))


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union; of anything else, itself."""
    return get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)


def _value(key: str, text: str, kind: Any) -> Any:
    """Convert a text to a type, or say what is allowed."""
    is_tuple = any(get_origin(option) is tuple for option in _alternatives(kind))
    given: Any = None if text.lower() == "none" else text
    is_word = str in _alternatives(kind) and text.isalpha()
    if given is not None and is_tuple and not is_word:
        parts = [part.strip() for part in text.strip("()").split(",")]
        given = [] if parts == [""] else parts
    elif given is not None and float in _alternatives(kind):
        with suppress(ValueError):
            given = float(text)  # as Python writes them: .3, 1. and +2 too
    try:
        value = msgspec.convert(given, kind, strict=False)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise InputError(f"{key} must be {_kind_text(kind)}, got {text!r}.") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{key} must be {_kind_text(kind)}, finite, got {text!r}.")
    return value


def _kind_text(kind: Any) -> str:
    """Say in words what a setting may be."""
    words = []
    for option in _alternatives(kind):
        parts = get_args(option)
        if Ellipsis in parts:
            words.append(f"{_KINDS_OF_MANY[parts[0]]}, with commas between them")
        elif get_origin(option) is tuple:
            words.append(f"{len(parts)} values such as {','.join('35'[: len(parts)])}")
        else:
            words.append(_KINDS[option])
    return " or ".join(words)


def _unknown_setting(recipe: type[LabelEstimator], key: str, known: list[str]) -> str:
    """Name the setting that was probably meant, and all others."""
    hint = did_you_mean(key, known)
    own = ", ".join(known)
    return f"The recipe {name_of(recipe)} has no setting {key!r}.{hint} It has: {own}."


def _shown(value: object) -> str:
    """Write a default as --set would take it."""
    if value is dataclasses.MISSING:  # an object of the recipe's own
        return "its own"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _documented(docstring: str) -> list[tuple[list[str], str]]:
    """Return names and text of each entry of a numpydoc "Parameters" section."""
    _, _, section = inspect.cleandoc(docstring).partition("Parameters\n----------\n")
    entries: list[tuple[list[str], str]] = []
    for line in section.splitlines():
        if not line.strip():
            break  # the section ends with the first blank line
        if line.startswith(" ") and entries:
            names, text = entries[-1]
            entries[-1] = (names, f"{text} {line.strip()}".strip())
        else:  # the text of what is no setting, such as **kwargs, is dropped
            match = _PARAMETER.match(line)
            entries.append((match[1].split(", ") if match else [], ""))
    return entries
