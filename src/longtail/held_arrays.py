"""How the parts of a trained model hold their arrays: of the types that kernels take, read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.kernels.arrays import read_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["held_by", "hold_read_only", "make_read_only", "read_only_parts"]

_OWN_OR_MATRICES = ("longtail.", "scipy.sparse.")


def hold_read_only(part: object, dtypes: Mapping[str, type[np.generic]]) -> None:
    """Let a part hold its arrays as memory maps are held; for the ``__post_init__`` of dataclasses.

    So kernels are compiled once, for arrays out of training as for those of a model folder.

    Parameters
    ----------
    part : object
        A dataclass, which may be frozen; changed in place.
    dtypes : mapping of str to type
        The type that kernels take, of each of its arrays by the name of the field.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from longtail.held_arrays import hold_read_only
    >>> @dataclass(frozen=True)
    ... class Weights:
    ...     values: np.ndarray
    ...
    ...     def __post_init__(self):
    ...         hold_read_only(self, {"values": np.float32})
    >>> values = Weights(np.ones(2)).values
    >>> values.dtype.name, values.flags.writeable
    ('float32', False)
    """
    for name, dtype in dtypes.items():
        object.__setattr__(part, name, read_only(getattr(part, name), dtype))


def read_only_parts(
    arrays: Mapping[str, Any], dtypes: Mapping[str, type[np.generic]]
) -> dict[str, Any]:
    """Return arrays by name as `hold_read_only` holds them, to make a named tuple of.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.held_arrays import read_only_parts
    >>> read_only_parts({"starts": [0, 2]}, {"starts": np.int64})["starts"].flags.writeable
    False
    """
    return {name: read_only(array, dtypes[name]) for name, array in arrays.items()}


def make_read_only(part: object) -> None:
    """Make all arrays of a part of a model read-only, however deep they are in it.

    Kernels are compiled anew for arrays that may be written, and numpy restores all arrays so. What
    neither this package nor scipy has made, such as a scorer of a user's, is left as it is.

    Examples
    --------
    >>> import pickle
    >>> import numpy as np
    >>> from longtail.kernels.rows import Rows
    >>> from longtail.held_arrays import make_read_only
    >>> rows = pickle.loads(pickle.dumps(Rows(np.eye(2), np.ones(2))))
    >>> make_read_only({"rows": rows})
    >>> rows.values.flags.writeable
    False
    """
    for one in held_by(part, lambda one: type(one).__module__.startswith(_OWN_OR_MATRICES)):
        if isinstance(one, np.ndarray):
            one.flags.writeable = False


def held_by(part: object, is_opened: Callable[[object], bool]) -> Iterator[Any]:
    """Yield a part and all that it holds, each once: in tuples, lists, dictionaries and objects.

    Parameters
    ----------
    part : object
    is_opened : callable
        Tells of which objects the attributes are looked at, too.

    Examples
    --------
    >>> from longtail.held_arrays import held_by
    >>> sorted(one for one in held_by([1, {"two": (2,)}], lambda _: False) if isinstance(one, int))
    [1, 2]
    """
    pending: list[Any] = [part]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, (tuple, list)):
            pending.extend(one)
        elif isinstance(one, dict):
            pending.extend(one.values())
        elif is_opened(one):
            pending.extend(getattr(one, "__dict__", {}).values())
