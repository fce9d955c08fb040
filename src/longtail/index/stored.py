"""Which index vectors get, and the same made again from what it has stored of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import InputError
from longtail.index.exact import EXACT_BELOW, ExactIndex
from longtail.index.graph import DEFAULT_NEIGHBOURS, GraphIndex
from longtail.kernels.arrays import read_only
from longtail.own_classes import is_ours

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.index.protocol import VectorIndex

__all__ = [
    "built_index",
    "found_by",
    "index_from_arrays",
    "n_rows_of",
    "search_bias_of",
    "search_rows_of",
]


def built_index(
    vectors: NDArray[np.float32],
    *,
    bias: NDArray[np.float32] | None = None,
    n_neighbours: int = DEFAULT_NEIGHBOURS,
    beam_size: int,
    seed: int,
    n_threads: int,
    joined_per_edge: int | None = None,
    in_place: bool = False,
) -> VectorIndex:
    """Index vectors: by a graph, unless they are few.

    Parameters
    ----------
    vectors : float32 (n, d)
    bias : float32 (n,) or None
        What is added to the inner products with each.
    n_neighbours, beam_size : int
        Of a graph; see `GraphIndex`.
    seed, n_threads : int
        Same seed, same index, whatever `n_threads` is, which serves building alone: a query takes
        one thread, for those who ask spread their queries over threads themselves.
    joined_per_edge, in_place
        See `GraphIndex.build`.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index.stored import built_index
    >>> index = built_index(np.eye(2, dtype=np.float32), beam_size=8, seed=0, n_threads=1)
    >>> type(index).__name__
    'ExactIndex'
    """
    if len(vectors) < EXACT_BELOW:
        return ExactIndex(vectors, bias=bias)
    graph = GraphIndex.build(
        vectors,
        bias=bias,
        n_neighbours=n_neighbours,
        seed=seed,
        n_threads=n_threads,
        beam_size=beam_size,
        joined_per_edge=joined_per_edge,
        in_place=in_place,
    )
    graph.n_threads = 1
    return graph


def n_rows_of(index: VectorIndex) -> int:
    """Return how many rows an index finds: in a graph, equal ones share a vector.

    Raises
    ------
    InputError
        If an index of somebody else's says nothing of its rows.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index import GraphIndex
    >>> from longtail.index.stored import n_rows_of
    >>> n_rows_of(GraphIndex.build(np.ones((3, 2), np.float32)))
    3
    """
    arrays = index.to_arrays()
    if "vectors" not in arrays:
        raise InputError(
            f"`to_arrays` of {type(index).__name__} must have `vectors`, the rows that it finds: a "
            f"model folder makes an index of longtail's of them. It has {', '.join(arrays)}."
        )
    return len(arrays.get("members", arrays["vectors"]))


def search_rows_of(index: VectorIndex) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return the vectors that an index holds, and the place of each of its rows among them.

    A graph keeps equal rows once; whoever scores rows of an index need not keep them again.

    Examples
    --------
    The first and the last row are equal, so a graph keeps two.

    >>> import numpy as np
    >>> from longtail.index.stored import search_rows_of
    >>> from longtail.index import GraphIndex
    >>> rows = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
    >>> vectors, places = search_rows_of(GraphIndex.build(rows))
    >>> len(vectors), vectors[places].tolist()
    (2, [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    """
    if not isinstance(index, GraphIndex):
        vectors: Any = index.to_arrays()["vectors"]
        return vectors, np.arange(len(vectors), dtype=np.int32)
    return index.vectors, index.node_of_row()


def search_bias_of(index: VectorIndex) -> NDArray[np.float32]:
    """Return the bias of each of the vectors of `search_rows_of`, or (0,) for none.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index.stored import search_bias_of
    >>> from longtail.index import ExactIndex
    >>> rows = np.eye(2, dtype=np.float32)
    >>> search_bias_of(ExactIndex(rows, bias=[1, 2])).tolist()
    [1.0, 2.0]
    >>> search_bias_of(ExactIndex(rows)).tolist()
    []
    """
    bias: Any = index.to_arrays().get("bias", np.zeros(0))
    return read_only(bias, np.float32)


def found_by(
    index: VectorIndex, queries: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what `VectorIndex.query` does, once what a user's own index says has been checked.

    Raises
    ------
    InputError
        If an index of somebody else's answers with what are no rows of it.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index import ExactIndex
    >>> from longtail.index.stored import found_by
    >>> rows = np.eye(2, dtype=np.float32)
    >>> found_by(ExactIndex(rows), rows, 1)[0].tolist()
    [[0], [1]]
    """
    found = index.query(queries, k)
    if is_ours(type(index)):
        return found
    ids, similarities = (np.asarray(part) for part in found)
    n_rows = n_rows_of(index)
    if (
        ids.ndim != 2
        or len(ids) != len(queries)
        or similarities.shape != ids.shape
        or ids.dtype.kind not in "iu"
        or (ids.size and not (int(ids.min()) >= -1 and int(ids.max()) < n_rows))
    ):
        raise InputError(
            f"`query` of {type(index).__name__} must return rows from 0 to {n_rows - 1}, or -1 for "
            f"none, and a similarity for each, for {len(queries)} queries; got {ids.dtype} "
            f"{ids.shape} from {ids.min(initial=0)} to {ids.max(initial=0)}, and similarities of "
            f"{similarities.shape}."
        )
    return np.ascontiguousarray(ids, np.int32), np.ascontiguousarray(similarities, np.float32)


def index_from_arrays(arrays: Mapping[str, NDArray[np.generic]], beam_size: int) -> VectorIndex:
    """Return an index from its `to_arrays`: a graph where there are edges, else an exact one.

    Parameters
    ----------
    arrays : mapping of str to array
        Memory maps are used in place.
    beam_size : int
        Of a graph; see `GraphIndex`.

    Raises
    ------
    InputError
        If the arrays do not belong together.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index import ExactIndex
    >>> from longtail.index.stored import index_from_arrays
    >>> index = index_from_arrays(ExactIndex(np.eye(2, dtype=np.float32)).to_arrays(), beam_size=8)
    >>> index.query(np.array([[0.1, 0.9]], np.float32), 1)[0].tolist()
    [[1]]
    """
    if "neighbours" in arrays:
        return GraphIndex.from_arrays(arrays, beam_size=beam_size)
    return ExactIndex.from_arrays(arrays)
