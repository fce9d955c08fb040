"""Classes of a user's, which may derive from longtail's, and what a model folder keeps of them."""

from __future__ import annotations

from inspect import Parameter, signature
from itertools import takewhile

from longtail.errors import InputError

__all__ = ["is_ours", "require_arguments", "require_kept_methods"]

_AS_KEPT = {"to_arrays", "config", "from_parts"}  # of the way into a model folder and back


def is_ours(kind: type) -> bool:
    """Return whether a class is longtail's, and not a user's or another library's.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.own_classes import is_ours
    >>> is_ours(LongtailClassifier), is_ours(ValueError)
    (True, False)
    """
    return str(kind.__module__).partition(".")[0] == "longtail"


def require_arguments(part: object, method: str, like: type) -> None:
    """Raise InputError unless a method of a user's can be called as that of a class of longtail's.

    Parameters
    ----------
    part : object
    method : str
        Nothing is asked of what is no method of the class, such as a property.
    like : type
        Its parameters without a default are passed, by name where they have to be.

    Examples
    --------
    >>> from longtail.errors import Remedy
    >>> from longtail.own_classes import require_arguments
    >>> mine = type("Mine", (), {"named": lambda self: ""})
    >>> require_arguments(mine(), "named", Remedy)
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: `named` of Mine is called as named(argument): too ...
    """
    ours = getattr(like, method)
    if not callable(ours):
        return
    wanted = [it for it in signature(ours).parameters.values() if it.default is it.empty][1:]
    by_name = {it.name: it for it in wanted if it.kind is Parameter.KEYWORD_ONLY}
    try:
        signature(getattr(part, method)).bind(*wanted[: len(wanted) - len(by_name)], **by_name)
    except ValueError:  # of some functions that are not Python's it is not known
        return
    except TypeError as error:
        names = [f"{it.name}=" if it.name in by_name else it.name for it in wanted]
        raise InputError(
            f"`{method}` of {type(part).__name__} is called as {method}({', '.join(names)}): "
            f"{error}. Give it these parameters."
        ) from error


def require_kept_methods(part: object, *answering: str, remedy: str) -> None:
    """Raise InputError for a part of a model whose own code would not be in a model folder.

    A folder holds arrays, and longtail's class is made again of them: a model that answered by
    methods of a user's would answer otherwise once it is loaded.

    Parameters
    ----------
    part : object
        What derives from a class of longtail's may have more methods, but none in place of its.
    *answering : str
        Methods that are longtail's, whatever the part derives from.
    remedy : str
        What to do instead.

    Examples
    --------
    >>> from longtail.errors import Remedy
    >>> from longtail.own_classes import require_kept_methods
    >>> mine = {"__module__": "mine", "encode": lambda self: self}
    >>> Mine = type("Mine", (Remedy,), mine)
    >>> require_kept_methods(Mine("a", "b"), remedy="Return a Remedy.")
    >>> require_kept_methods(Mine("a", "b"), "encode", remedy="Return a Remedy.")
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: Mine has an `encode` of its own, of which a model folder keeps ...
    """
    kinds = type(part).__mro__
    own_kinds = list(takewhile(lambda kind: not is_ours(kind), kinds))
    own = {name for kind in own_kinds for name, it in vars(kind).items() if hasattr(it, "__get__")}
    ours = {name for kind in kinds if is_ours(kind) for name in vars(kind)}
    lost = sorted(
        name for name in own & {*ours, *answering} - _AS_KEPT if not name.startswith("__")
    )
    if lost:
        article = "an" if lost[0][0] in "aeiou" else "a"
        raise InputError(
            f"{type(part).__name__} has {article} `{lost[0]}` of its own, of which a model folder "
            f"keeps nothing: it holds arrays and no code. {remedy}"
        )
