"""Names of the columns of a table of features: predictions must be asked with the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longtail.data.foreign import column_names
from longtail.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_feature_names", "feature_names"]

MOST_NAMED = 5


def feature_names(X: Any) -> tuple[str, ...]:
    """Return the names of a table's columns; none of what has no columns, or counts them only.

    Parameters
    ----------
    X : table, matrix or texts

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from longtail.data.feature_names import feature_names
    >>> feature_names(SimpleNamespace(columns=["height", "weight"]))
    ('height', 'weight')
    >>> feature_names(SimpleNamespace(columns=range(2)))
    ()
    """
    columns = column_names(X) or ()
    names = tuple(str(name) for name in columns if isinstance(name, str))
    return names if len(names) == len(columns) else ()


def check_feature_names(X: Any, expected: Sequence[str]) -> None:
    """Raise InputError if a table's columns are not those of the training, in their order.

    Parameters
    ----------
    X : table, matrix or texts
        What has no names is not looked at.
    expected : sequence of str
        Empty where training had no names.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from longtail.data.feature_names import check_feature_names
    >>> from longtail.errors import InputError
    >>> table = SimpleNamespace(columns=["weight", "height"])
    >>> try:
    ...     check_feature_names(table, ["height", "weight"])
    ... except InputError as error:
    ...     print(str(error).partition(": ")[2])
    the same columns, in another order. Pass X[list(model.feature_names_in_)].
    """
    found = feature_names(X) if expected else ()
    if not found or found == tuple(expected):
        return
    unseen, missing = (sorted(set(a) - set(b)) for a, b in ((found, expected), (expected, found)))
    differences = [
        f"{what} {', '.join(map(repr, names[:MOST_NAMED]))}{' ...' * (len(names) > MOST_NAMED)}"
        for what, names in (("unknown are", unseen), ("missing are", missing))
        if names
    ]
    raise InputError(
        "The feature names should match those that were passed during fit: "
        f"{'; '.join(differences) or 'the same columns, in another order'}. Pass "
        "X[list(model.feature_names_in_)]."
    )
