"""The index of what a change of labels leaves: graphs are changed, or built anew for many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.index.biased import some_of
from longtail.index.exact import EXACT_BELOW
from longtail.index.graph import GraphIndex
from longtail.index.graph_changes import with_rows, without_rows
from longtail.index.stored import built_index, n_rows_of, search_bias_of, search_rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.index.protocol import VectorIndex

    Floats = NDArray[np.float32]

__all__ = ["with_fewer_rows", "with_more_rows"]

SEED = 0
# Each new row is compared with all there are, and a graph takes about 20,000 products a row to be
# built (`longtail.blend.search_indices.PRODUCTS_OF_BUILDING`): 5,000 new rows cost a quarter of
# that. Where a tenth of the rows come or go, a graph that is built anew is the better one, too.
MOST_ADDED, LARGEST_SHARE = 5_000, 0.1


def with_more_rows(
    index: VectorIndex,
    vectors: Floats,
    bias: Floats | None,
    *,
    n_neighbours: int,
    beam_size: int,
    n_threads: int,
) -> VectorIndex:
    """Return an index that has further rows behind those of a given one.

    Parameters
    ----------
    index : VectorIndex
    vectors : float32 (n, d)
    bias : float32 (n,) or None
        If the index has biases.
    n_neighbours, beam_size, n_threads : int
        Of a graph that is built anew.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index import ExactIndex
    >>> from longtail.label_changes.changed_index import with_more_rows
    >>> sizes = {"n_neighbours": 4, "beam_size": 8, "n_threads": 1}
    >>> unit = np.eye(3, dtype=np.float32)
    >>> index = with_more_rows(ExactIndex(unit[:2]), unit[2:], None, **sizes)
    >>> index.query(unit[2:], k=1)[0].tolist()
    [[2]]
    """
    n_old, n_new = n_rows_of(index), len(vectors)
    if not n_new:
        return index
    if isinstance(index, GraphIndex) and n_new <= min(MOST_ADDED, LARGEST_SHARE * n_old):
        return with_rows(index, vectors, bias, n_threads)
    old, places = search_rows_of(index)
    every = np.concatenate([old[places], vectors])
    if bias is not None:
        bias = np.concatenate([search_bias_of(index)[places], bias])
    return built_index(
        every,
        bias=bias,
        n_neighbours=n_neighbours,
        beam_size=beam_size,
        seed=SEED,
        n_threads=n_threads,
    )


def with_fewer_rows(
    index: VectorIndex,
    kept: NDArray[np.int64],
    *,
    n_neighbours: int,
    beam_size: int,
    n_threads: int,
) -> VectorIndex:
    """Return an index of some rows of a given one, numbered anew in their order.

    Parameters
    ----------
    index : VectorIndex
    kept : int64 (n,)
        Ascending.
    n_neighbours, beam_size, n_threads : int
        Of a graph that is built anew.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.index import ExactIndex
    >>> from longtail.label_changes.changed_index import with_fewer_rows
    >>> sizes = {"n_neighbours": 4, "beam_size": 8, "n_threads": 1}
    >>> unit = np.eye(3, dtype=np.float32)
    >>> index = with_fewer_rows(ExactIndex(unit), np.array([0, 2]), **sizes)
    >>> index.query(unit[2:], k=1)[0].tolist()
    [[1]]
    """
    n_old = n_rows_of(index)
    if len(kept) == n_old:
        return index
    if isinstance(index, GraphIndex) and EXACT_BELOW <= len(kept) >= (1 - LARGEST_SHARE) * n_old:
        return without_rows(index, kept, n_threads)
    vectors, places = search_rows_of(index)
    bias = some_of(search_bias_of(index), places[kept])
    return built_index(
        vectors[places[kept]],
        bias=bias,
        n_neighbours=n_neighbours,
        beam_size=beam_size,
        seed=SEED,
        n_threads=n_threads,
    )
