"""By which index labels and training points are found, and with how many edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.index.coded import CodedIndex
from longtail.index.graph_building import JOINED_PER_EDGE
from longtail.index.stored import built_index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.index.protocol import VectorIndex

    Floats = NDArray[np.float32]

__all__ = ["N_LABEL_NEIGHBOURS", "N_POINT_NEIGHBOURS", "index_of_labels", "index_of_points"]

# Of a graph's nodes. Labels that are near a point need not be near each other: it takes many edges
# to come from one to the next, and edges to the nearest there are.
N_POINT_NEIGHBOURS, N_LABEL_NEIGHBOURS = 24, 48
# What a graph takes, in the time of one product of two vectors in seven bits a number: a row to be
# built in, and a query of one of a few edges. Measured for 20,000 and 100,000 vectors of 192
# numbers.
PRODUCTS_OF_BUILDING, PRODUCTS_OF_WALK = 20_000, 200_000


def index_of_labels(
    vectors: Floats,
    bias: Floats | None,
    beam_size: int,
    seed: int,
    n_threads: int,
    n_asked: int | None = None,
) -> VectorIndex:
    """Index label vectors, and what each adds to its similarity: a graph has many edges.

    Parameters
    ----------
    vectors : float32 (n, dimension)
        Unit rows.
    bias : float32 (n,) or None
    beam_size, seed, n_threads : int
        See `built_index`.
    n_asked : int or None
        For how many points labels will be searched, if the index is not kept: a graph has few
        edges then, or is not built at all.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.blend.search_indices import index_of_labels
    >>> vectors = np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32)
    >>> index = index_of_labels(vectors, None, 64, 0, 1)
    >>> index.query(np.array([[1, 0]], np.float32), 2)[0].tolist()
    [[0, 1]]
    """
    n_neighbours = N_LABEL_NEIGHBOURS
    if n_asked is not None:
        by_graph = PRODUCTS_OF_BUILDING * len(vectors) + PRODUCTS_OF_WALK * n_asked
        if n_asked * len(vectors) <= by_graph:
            return CodedIndex(vectors, bias=bias, n_threads=n_threads)
        n_neighbours = N_POINT_NEIGHBOURS  # few, which are soon made
    return built_index(
        vectors,
        bias=bias,
        n_neighbours=n_neighbours,
        beam_size=beam_size,
        seed=seed,
        n_threads=n_threads,
    )


def index_of_points(
    vectors: Floats, beam_size: int, seed: int, n_threads: int, *, in_place: bool = False
) -> VectorIndex:
    """Index the vectors of training points: with fewer edges than labels have.

    With `in_place` the vectors may be written over. Of millions, no more are compared with each
    than of few: which of many like points vote hardly matters.
    """
    return built_index(
        vectors,
        n_neighbours=N_POINT_NEIGHBOURS,
        beam_size=beam_size,
        seed=seed,
        n_threads=n_threads,
        joined_per_edge=JOINED_PER_EDGE,
        in_place=in_place,
    )
