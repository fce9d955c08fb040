"""An index made again from what it has stored of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.index.exact import ExactIndex
from longtail.index.graph import GraphIndex

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from longtail.index.protocol import VectorIndex

__all__ = ["index_from_arrays"]


def index_from_arrays(arrays: Mapping[str, NDArray[np.generic]], beam: int) -> VectorIndex:
    """Return an index from its `to_arrays`: a graph where there are edges, else an exact one.

    Parameters
    ----------
    arrays : mapping of str to array
        Memory maps are used in place.
    beam : int
        Of a graph; see `GraphIndex`.

    Returns
    -------
    VectorIndex

    Raises
    ------
    InputError
        If the arrays do not belong together.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index import ExactIndex
    >>> from longtail.index.stored import index_from_arrays
    >>> index = index_from_arrays(ExactIndex(np.eye(2, dtype=np.float32)).to_arrays(), beam=8)
    >>> index.query(np.array([[0.1, 0.9]], np.float32), 1)[0].tolist()
    [[1]]
    """
    if "neighbours" in arrays:
        return GraphIndex.from_arrays(arrays, beam=beam)
    return ExactIndex.from_arrays(arrays)
