"""Arrays and tensors by name: those of a part carry the part's name before their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]  # of a model folder: who reads one knows its type

__all__ = ["joined_parts", "with_prefix", "without_prefix"]

T = TypeVar("T")


def with_prefix(prefix: str, arrays: Mapping[str, T]) -> dict[str, T]:
    """Return the arrays of a part under longer names, to lie beside those of other parts.

    Parameters
    ----------
    prefix : str
        In a model folder, what is before a slash is the name of a file: ``"encoder/"``.
    arrays : mapping of str to array or tensor

    Examples
    --------
    >>> from longtail.named_parts import with_prefix
    >>> with_prefix("encoder/", {"bias": 0.5})
    {'encoder/bias': 0.5}
    """
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Mapping[str, T]) -> dict[str, T]:
    """Return the arrays of one part by its own names: the way back from `with_prefix`.

    Returns
    -------
    dict of str to array or tensor
        Empty where there is no such part.

    Examples
    --------
    >>> from longtail.named_parts import without_prefix
    >>> without_prefix("encoder/", {"encoder/bias": 0.5, "network/bias": 2.0})
    {'bias': 0.5}
    """
    own = (name for name in arrays if name.startswith(prefix))
    return {name.removeprefix(prefix): arrays[name] for name in own}


def joined_parts(parts: Mapping[str, Mapping[str, T]], separator: str) -> dict[str, T]:
    """Return the arrays of all parts, named ``"part<separator>name"``.

    Parameters
    ----------
    parts : mapping of str to (mapping of str to array or tensor)
    separator : str
        A slash in model folders, a dot in the state of a training.

    Examples
    --------
    >>> from longtail.named_parts import joined_parts
    >>> joined_parts({"network": {"bias": 2.0}, "adam": {"bias": 0.1}}, ".")
    {'network.bias': 2.0, 'adam.bias': 0.1}
    """
    return {
        f"{part}{separator}{name}": array
        for part, arrays in parts.items()
        for name, array in arrays.items()
    }
