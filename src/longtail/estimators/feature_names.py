"""Names of the columns of a table of features: predictions must be asked with the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.data.foreign import column_names
from longtail.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_feature_names", "feature_names"]

MOST_NAMED = 5


def feature_names(X: Any) -> NDArray[np.object_] | None:
    """Return the names of a table's columns; None of what has no columns, or counts them only.

    Parameters
    ----------
    X : table, matrix or texts

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from longtail.estimators.feature_names import feature_names
    >>> feature_names(SimpleNamespace(columns=["height", "weight"])).tolist()
    ['height', 'weight']
    >>> feature_names(SimpleNamespace(columns=range(2))) is None
    True
    """
    columns = column_names(X)
    if not columns or not all(isinstance(name, str) for name in columns):
        return None
    return np.array(columns, np.object_)


def check_feature_names(X: Any, expected: NDArray[np.object_] | None) -> None:
    """Raise InputError if a table's columns are not those of the training, in their order.

    Parameters
    ----------
    X : table, matrix or texts
        What has no names is not looked at.
    expected : array of str, or None
        None where training had no names.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from longtail.estimators.feature_names import check_feature_names
    >>> from longtail.errors import InputError
    >>> table = SimpleNamespace(columns=["weight", "height"])
    >>> try:
    ...     check_feature_names(table, np.array(["height", "weight"], object))
    ... except InputError as error:
    ...     print(str(error).partition(": ")[2])
    the same columns, in another order. Pass X[list(model.feature_names_in_)].
    """
    found = None if expected is None else feature_names(X)
    if found is None or expected is None or np.array_equal(found, expected):
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
