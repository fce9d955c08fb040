"""How the numbers of a compiled model are put away, in few bits, and taken out again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from longtail.data.csr import fits_rows
from longtail.errors import RETRAIN, InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.bag_vector import pack_with_scales
from longtail.kernels.coded_graph import n_edges
from longtail.kernels.half_numbers import of_bfloat16
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.packed_codes import unpacked_rows
from longtail.kernels.packed_ids import is_packed, pack_ids, unpacked_ids
from longtail.kernels.rows import Rows, quantise_rows
from longtail.kernels.sparse_lookup import SparseRows, SplitRows
from longtail.kernels.sparse_splitting import (
    count_ids,
    keep_columns,
    keep_weights,
    place_rows,
    place_weights,
    quantise_entries,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.kernels.coded_graph import CodedGraph

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = [
    "AS_THEY_ARE",
    "RowStore",
    "are_common",
    "check_sparse",
    "column_ids",
    "float_rows",
    "float_weights",
    "joined_rows",
    "named_arrays",
    "neighbours_of",
    "no_numbers",
    "packed_neighbours",
    "some_nodes",
    "some_rows",
    "token_vectors_of",
    "vectors_of",
    "whole_rows",
]

# A word for which more labels than this have a weight is common: its weights are kept with the
# labels, those of rare words with the word. A text adds up all weights of its rare words, but looks
# at the weights of its common words for the labels alone that are scored: a twentieth of few
# labels, a thousandth of many, and nearly all of very few.
FEWEST_RARE, MOST_RARE, MOST_RARE_SHARE = 200, 1000, 0.05
_LAST_INT32 = np.iinfo(np.int32).max
_ROWS_AT_ONCE = 4096


class RowStore(NamedTuple):
    """Puts rows away as float32, float16 or int8.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.row_store import RowStore, float_rows
    >>> rows = RowStore("int8").rows(np.array([[1, -0.3], [0, 100]], np.float32))
    >>> rows.values.tolist()  # 127 is the largest of each row
    [[127, -38], [0, 127]]
    >>> float_rows(rows).astype(float).round(2).tolist()
    [[1.0, -0.3], [0.0, 100.0]]
    """

    dtype: str
    n_threads: int = 1

    @classmethod
    def of(cls, rows: Rows) -> RowStore:
        """Return what has stored some rows, or rows of tokens."""
        kinds = {"int8": "int8", "uint8": "int8", "uint16": "float16"}
        return cls(kinds.get(rows.values.dtype.name, "float32"))

    def rows(self, vectors: Floats) -> Rows:
        """Store rows of a table."""
        vectors = read_only(vectors, np.float32)
        if self.dtype != "int8":
            return Rows(self._numbers(vectors), no_numbers())
        codes = np.empty(vectors.shape, np.int8)
        scales = np.empty(len(vectors), np.float32)
        over_row_chunks(
            lambda start, stop: quantise_rows(vectors, start, stop, codes, scales),
            len(vectors),
            n_threads=self.n_threads,
        )
        return Rows(read_only(codes, np.int8), read_only(scales, np.float32))

    def stored(self, rows: Rows) -> Rows:
        """Store rows that were stored before, perhaps in the same bits."""
        if RowStore.of(rows).dtype == self.dtype:
            return Rows(*map(_held, rows))
        return self.rows(float_rows(rows))

    def stored_tokens(self, rows: Rows, dimension: int) -> Rows:
        """Store rows of tokens that were stored before, perhaps in the same bits."""
        if RowStore.of(rows).dtype == self.dtype:
            return Rows(*map(_held, rows))
        return self.tokens(token_vectors_of(rows, dimension))

    def tokens(self, vectors: NDArray[Any]) -> Rows:
        """Store rows of which many are added up: four bits a number where others take eight.

        They are float32, or uint16 for the bits of bfloat16s.
        """
        if self.dtype != "int8":
            are_bits = vectors.dtype == np.uint16
            return self.rows(of_bfloat16(vectors) if are_bits else vectors)
        codes, scales = pack_with_scales(read_only(vectors, vectors.dtype.type), self.n_threads)
        return Rows(read_only(codes, np.uint8), read_only(scales, np.float32))

    def sparse(self, starts: Any, columns: Any, weights: Any, n_columns: int) -> SparseRows:
        """Store sparse rows."""
        ids = read_only(pack_ids(columns, n_columns), np.uint8)
        return self._sparse(np.asarray(starts, np.int64), ids, np.asarray(weights, np.float32))

    def split(self, by_label: csr_array, is_common: NDArray[np.bool_]) -> SplitRows:
        """Store rows of labels: what is common with the labels, the rest with the features.

        Weights may fill most of the memory there is, so no step needs much beside the result.

        Parameters
        ----------
        by_label : csr_array (n_labels, n_features)
        is_common : bool (n_features,)
        """
        is_common = read_only(is_common, np.bool_)
        return SplitRows(self._by_feature(by_label, is_common), *self.common(by_label, is_common))

    def common(
        self, by_label: csr_array, is_common: NDArray[np.bool_]
    ) -> tuple[SparseRows, NDArray[np.uint8]]:
        """Store what is common alone: the last two parts of `split`."""
        n_places = int(np.count_nonzero(is_common)) + 1
        places = np.zeros(len(is_common), np.int32)
        places[is_common] = np.arange(1, n_places)
        by_place = self._by_label(by_label, read_only(is_common, np.bool_), places, n_places)
        return by_place, read_only(pack_ids(places, n_places), np.uint8)

    def _by_feature(self, by_label: csr_array, is_left: NDArray[np.bool_]) -> SparseRows:
        """Store the entries of all other features, by feature."""
        rows, columns, weights = _arrays_of(by_label)
        starts = np.zeros(len(is_left) + 1, np.int64)
        np.cumsum(np.where(is_left, 0, _entries_of_columns(by_label)), out=starts[1:])
        labels = np.empty(starts[-1], np.int32)
        place_rows(rows, columns, is_left, starts[:-1].copy(), labels)
        ids = read_only(pack_ids(labels, by_label.shape[0]), np.uint8)
        del labels
        placed = np.empty(starts[-1], np.float32)
        place_weights(columns, weights, is_left, starts[:-1].copy(), placed)
        return self._sparse(starts, ids, placed)

    def _by_label(
        self, by_label: csr_array, is_kept: NDArray[np.bool_], places: Ids, n_places: int
    ) -> SparseRows:
        """Store the entries of some features, by label."""
        rows, columns, weights = _arrays_of(by_label)
        n_kept = int(_entries_of_columns(by_label)[is_kept].sum())
        kept, starts = np.empty(n_kept, np.int32), np.empty(len(rows), np.int64)
        keep_columns(rows, columns, is_kept, places, kept, starts)
        ids = read_only(pack_ids(kept, n_places), np.uint8)
        del kept
        kept_weights = np.empty(n_kept, np.float32)
        keep_weights(columns, weights, is_kept, kept_weights)
        return self._sparse(starts, ids, kept_weights)

    def _sparse(
        self, starts: NDArray[np.int64], ids: NDArray[np.uint8], weights: Floats
    ) -> SparseRows:
        """Store sparse rows whose columns are packed."""
        kind = np.int32 if starts[-1] <= _LAST_INT32 else np.int64
        numbers, scales = self._weights(starts, weights)
        return SparseRows(read_only(starts, kind), ids, numbers, scales)

    def no_split(self) -> SplitRows:
        """Store nothing."""
        none = self.sparse(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 1)
        return SplitRows(none, none, none.columns)

    def _weights(self, starts: NDArray[np.int64], weights: Floats) -> tuple[NDArray[Any], Floats]:
        """Store the weights of sparse rows; return also the scale of each row, if there are any."""
        if self.dtype != "int8":
            return self._numbers(weights), no_numbers()
        codes, scales = np.empty(len(weights), np.int8), np.empty(len(starts) - 1, np.float32)
        quantise_entries(read_only(starts, np.int64), read_only(weights, np.float32), codes, scales)
        return read_only(codes, np.int8), read_only(scales, np.float32)

    def _numbers(self, numbers: Floats) -> NDArray[Any]:
        """Store numbers that need no scale."""
        if self.dtype == "float16":
            return read_only(numbers.astype(np.float16).view(np.uint16), np.uint16)
        return read_only(numbers, np.float32)


AS_THEY_ARE = RowStore("float32")


def _arrays_of(rows: csr_array) -> tuple[NDArray[np.int64], Ids, Floats]:
    """Return starts, columns and weights as kernels take them."""
    columns, weights = read_only(rows.indices, np.int32), read_only(rows.data, np.float32)
    return read_only(rows.indptr, np.int64), columns, weights


def _entries_of_columns(rows: csr_array) -> NDArray[np.int64]:
    """Return how many entries each column has."""
    counts = np.zeros(rows.shape[1], np.int64)
    count_ids(read_only(rows.indices, np.int32), counts)
    return counts


def are_common(by_label: csr_array) -> NDArray[np.bool_]:
    """Tell of which features too many labels have a weight for them to be kept with the feature.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.row_store import are_common
    >>> by_label = np.ones((201, 2), np.float32)
    >>> by_label[0, 1] = 0  # the second feature has a weight for 200 labels only
    >>> are_common(csr_array(by_label)).tolist()
    [True, False]
    """
    most = min(max(FEWEST_RARE, int(MOST_RARE_SHARE * by_label.shape[0])), MOST_RARE)
    return _entries_of_columns(by_label) > most


def whole_rows(rows: SplitRows, n_labels: int) -> csr_array:
    """Return the rows of labels that were split, float32 (n_labels, n_features).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.row_store import RowStore, whole_rows
    >>> by_label = csr_array(np.array([[1, 0, 2], [0, 3, 0]], np.float32))
    >>> split = RowStore("float32").split(by_label, is_common=np.array([True, False, False]))
    >>> whole_rows(split, n_labels=2).toarray().tolist()
    [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]
    """
    n_features = len(rows.rare.starts) - 1
    check_sparse(rows.rare, n_labels)
    by_feature = (float_weights(rows.rare), column_ids(rows.rare), rows.rare.starts)
    feature_of = np.zeros(int(unpacked_ids(rows.places).max(initial=0)) + 1, np.int32)
    feature_of[unpacked_ids(rows.places)] = np.arange(n_features, dtype=np.int32)
    check_sparse(rows.common, len(feature_of))
    features = feature_of[column_ids(rows.common)]
    by_label = (float_weights(rows.common), features, rows.common.starts)
    rare = csr_array(by_feature, (n_features, n_labels)).T.tocsr()
    whole = rare + csr_array(by_label, (n_labels, n_features))
    whole.sort_indices()
    return whole


def check_sparse(rows: SparseRows, n_columns: int) -> None:
    """Raise InputError unless stored sparse rows lead to columns that there are.

    What answers passes over the others, of a damaged file; what takes all out again cannot.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.row_store import RowStore, check_sparse
    >>> rows = RowStore("int8").sparse([0, 1], np.array([4], np.int32), [0.3], n_columns=8)
    >>> check_sparse(rows, n_columns=8)
    """
    if not fits_rows(rows.starts, column_ids(rows), n_columns):
        raise InputError(f"The sparse weights of the model are damaged. {RETRAIN}")


def packed_neighbours(neighbours: Ids) -> NDArray[np.uint8]:
    """Return the edges of all nodes as kernels take them.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.kernels.packed_ids import unpacked_ids
    >>> from longtail.row_store import packed_neighbours
    >>> unpacked_ids(packed_neighbours(np.array([[1, 2], [0, -1], [0, 1]]))).tolist()
    [1, 2, 0, 65535, 0, 1]
    """
    return read_only(pack_ids(neighbours.reshape(-1), len(neighbours)), np.uint8)


def neighbours_of(graph: CodedGraph) -> Ids:
    """Return the edges of all nodes, int32 (n_nodes, n_edges), padded with -1.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.kernels.coded_graph import CodedGraph
    >>> from longtail.kernels.rows import Rows
    >>> from longtail.row_store import neighbours_of, no_numbers, packed_neighbours
    >>> codes, none, ids = np.zeros((3, 32), np.uint8), no_numbers(), np.zeros(0, np.int32)
    >>> edges = packed_neighbours(np.array([[1, 2], [0, -1], [0, 1]]))
    >>> graph = CodedGraph(codes, none, Rows(none, none), edges, ids, ids, ids)
    >>> neighbours_of(graph).tolist()
    [[1, 2], [0, -1], [0, 1]]
    """
    n_nodes = len(graph.codes)
    ids = unpacked_ids(graph.neighbours)[: n_nodes * n_edges(graph)]
    ids = ids.reshape(n_nodes, n_edges(graph))
    ids[(ids < 0) | (ids >= n_nodes)] = -1
    return ids


def column_ids(rows: SparseRows) -> Ids:
    """Return the columns of sparse rows as int32.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.row_store import RowStore, column_ids
    >>> rows = RowStore("float32").sparse([0, 2, 3], [4, 7, 7], [0.5, 1, 2], n_columns=10)
    >>> rows.columns.shape, column_ids(rows).tolist()  # two bytes each, and two entries to spare
    ((5, 2), [4, 7, 7])
    """
    return unpacked_ids(rows.columns) if is_packed(rows.columns) else rows.columns


def float_rows(rows: Rows) -> Floats:
    """Return a stored table as float32.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.row_store import RowStore, float_rows
    >>> rows = RowStore("float16").rows(np.array([[0.5, -2]], np.float32))
    >>> rows.values.dtype.name, float_rows(rows).tolist()  # the bits of float16
    ('uint16', [[0.5, -2.0]])
    """
    if not len(rows.scales):
        return _widened(rows.values)
    vectors = np.empty(rows.values.shape, np.float32)
    for start in range(0, len(vectors), _ROWS_AT_ONCE):  # what is between stays in the cache
        some = slice(start, start + _ROWS_AT_ONCE)
        np.multiply(rows.values[some], rows.scales[some, None], out=vectors[some])
    return vectors


def token_vectors_of(tokens: Rows, dimension: int) -> Floats:
    """Return the vectors of the tokens as float32.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.row_store import RowStore, token_vectors_of
    >>> tokens = RowStore("int8").tokens(np.array([[7.5, -7.5, 0.6]], np.float32))
    >>> token_vectors_of(tokens, dimension=3).round(1).tolist()  # four bits a number
    [[7.5, -7.5, 0.5]]
    """
    values, scales = tokens
    if values.dtype != np.uint8:
        return float_rows(tokens)
    return unpacked_rows(values, scales[:, None], dimension)


def vectors_of(graph: CodedGraph, dimension: int) -> Floats:
    """Return the vectors of an index as float32: those of its codes, where it has no others.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.kernels.coded_graph import CodedGraph
    >>> from longtail.kernels.packed_codes import pack_rows
    >>> from longtail.row_store import RowStore, packed_neighbours, vectors_of
    >>> vectors, edges = np.array([[1, -1], [0.3, 1]], np.float32), np.array([[1], [0]], np.int32)
    >>> rows, ids = RowStore("float32").rows(vectors[:0]), np.zeros(0, np.int32)  # codes alone
    >>> graph = CodedGraph(*pack_rows(vectors), rows, packed_neighbours(edges), ids, ids, ids)
    >>> vectors_of(graph, dimension=2).astype(float).round(1).tolist()
    [[1.1, -1.1], [0.2, 1.1]]
    """
    if len(graph.rows.values):
        return float_rows(graph.rows)
    return unpacked_rows(graph.codes, graph.step, dimension)


def some_nodes(graph: CodedGraph, drawn: NDArray[np.int64]) -> CodedGraph:
    """Return a graph with the vectors of some nodes alone; its edges are left as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.kernels.coded_graph import CodedGraph
    >>> from longtail.kernels.packed_codes import pack_rows
    >>> from longtail.row_store import RowStore, packed_neighbours, some_nodes
    >>> vectors, ids = np.eye(3, dtype=np.float32), np.zeros(0, np.int32)
    >>> rows, edges = RowStore("float32").rows(vectors), packed_neighbours(np.ones((3, 1), int))
    >>> graph = CodedGraph(*pack_rows(vectors), rows, edges, ids, ids, ids)
    >>> some_nodes(graph, np.array([2])).rows.values.tolist()
    [[0.0, 0.0, 1.0]]
    """
    rows = some_rows(graph.rows, drawn) if len(graph.rows.values) else graph.rows
    return graph._replace(codes=graph.codes[drawn], rows=rows)


def some_rows(rows: Rows, drawn: NDArray[np.integer] | slice) -> Rows:
    """Return some rows of a stored table.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.row_store import RowStore, some_rows
    >>> some_rows(RowStore("int8").rows(np.eye(2, dtype=np.float32)), np.array([1])).values.tolist()
    [[0, 127]]
    """
    scales = rows.scales[drawn] if len(rows.scales) else rows.scales
    return Rows(_held(rows.values[drawn]), _held(scales))


def joined_rows(rows: Rows, more: Rows) -> Rows:
    """Return a stored table with further rows, stored in the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.row_store import RowStore, joined_rows
    >>> rows = RowStore("int8").rows(np.eye(2, dtype=np.float32))
    >>> joined_rows(rows, rows).values.tolist()
    [[127, 0], [0, 127], [127, 0], [0, 127]]
    """
    values, scales = map(np.concatenate, zip(rows, more, strict=True))
    return Rows(_held(values), _held(scales))


def _held(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as kernels take it."""
    return read_only(array, array.dtype.type)


def float_weights(rows: SparseRows) -> Floats:
    """Return the weights of stored sparse rows as float32.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.row_store import RowStore, float_weights
    >>> rows = RowStore("int8").sparse([0, 2, 3], [4, 7, 7], [0.3, 1, 20], n_columns=10)
    >>> rows.weights.tolist(), float_weights(rows).astype(float).round(2).tolist()
    ([38, 127, 127], [0.3, 1.0, 20.0])
    """
    weights = _widened(rows.weights)
    return weights * np.repeat(rows.scales, np.diff(rows.starts)) if len(rows.scales) else weights


def _widened(stored: NDArray[Any]) -> Floats:
    """Return stored numbers as float32, not yet scaled."""
    numbers = stored.view(np.float16) if stored.dtype == np.uint16 else stored
    return numbers.astype(np.float32, copy=False)


def named_arrays(prefix: str, members: Mapping[str, Any]) -> dict[str, NDArray[np.generic]]:
    """Return the arrays among some members, and those of the named tuples among them.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.row_store import RowStore, named_arrays
    >>> rows = RowStore("float32").rows(np.eye(2, dtype=np.float32))
    >>> sorted(named_arrays("labels/", {"rows": rows, "bias": np.zeros(2), "scale": 1.0}))
    ['labels/bias', 'labels/rows.scales', 'labels/rows.values']
    """
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, member in members.items():
        if isinstance(member, np.ndarray):
            arrays[f"{prefix}{name}"] = member
        elif isinstance(member, tuple):
            named_tuple: Any = member
            arrays |= named_arrays(f"{prefix}{name}.", named_tuple._asdict())
    return arrays


def no_numbers() -> Floats:
    """Return an empty array, such as the scales of what has none, of the type that kernels know."""
    return read_only(np.zeros(0), np.float32)
