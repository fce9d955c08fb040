"""Models that come out of a pickle, whose arrays may be written where the first one's may not."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["make_read_only"]

_OWN_OR_MATRICES = ("longtail.", "scipy.sparse.")


def make_read_only(part: object) -> None:
    """Make all arrays of a part of a model read-only, however deep they are in it.

    Kernels are compiled anew for arrays that may be written, and numpy restores all arrays so. What
    neither this package nor scipy has made, such as a scorer of a user's, is left as it is.

    Parameters
    ----------
    part : object

    Examples
    --------
    >>> import pickle
    >>> import numpy as np
    >>> from longtail.kernels.rows import Rows
    >>> from longtail.unpickled import make_read_only
    >>> rows = pickle.loads(pickle.dumps(Rows(np.eye(2), np.ones(2))))
    >>> make_read_only({"rows": rows})
    >>> rows.values.flags.writeable
    False
    """
    pending: list[Any] = [part]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            one.flags.writeable = False
        elif isinstance(one, (tuple, list)):
            pending.extend(one)
        elif isinstance(one, dict):
            pending.extend(one.values())
        elif type(one).__module__.startswith(_OWN_OR_MATRICES):
            pending.extend(getattr(one, "__dict__", {}).values())
