"""Names of labels that a Parquet file has for its ids, as Hugging Face's data sets write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["names_of_classes", "with_names"]

_WHERE = b"huggingface"  # among what a file says of itself
_NONE = -1  # of a point whose class is not told


def names_of_classes(metadata: Mapping[bytes, bytes] | None, column: str | None) -> list[str]:
    """Return the names of the classes whose ids a column holds; none where a file tells none.

    Examples
    --------
    >>> from longtail.data.named_classes import names_of_classes
    >>> told = b'{"info": {"features": {"label": {"names": ["World"], "_type": "ClassLabel"}}}}'
    >>> names_of_classes({b"huggingface": told}, "label")
    ['World']
    """
    try:
        feature = msgspec.json.decode((metadata or {})[_WHERE])["info"]["features"][column]
        while "names" not in feature:  # of a list of ids
            feature = feature[0] if isinstance(feature, list) else feature["feature"]
        names = feature["names"]
    except (KeyError, IndexError, TypeError, msgspec.DecodeError):
        return []
    is_told = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return names if is_told else []


def with_names(given: Any, names: Sequence[str]) -> Any:
    """Return the names of a class or a list of them; what is none of the classes as it is.

    Examples
    --------
    >>> from longtail.data.named_classes import with_names
    >>> with_names(1, ["World", "Sports"]), with_names([0, -1], ["World", "Sports"])
    (['Sports'], ['World'])
    """
    ids = given if isinstance(given, list) else [given]
    if any(not isinstance(i, int) or not _NONE <= i < len(names) for i in ids):
        return given
    return [names[i] for i in ids if i != _NONE]
