"""The arrays of a compiled model: how they are stored, named, checked, and their scratch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.errors import InputError
from longtail.index.protocol import read_only
from longtail.kernels.answer import Answerer, AnswerScratch, Head
from longtail.kernels.bag_vector import pack_with_scales
from longtail.kernels.blend import N_CONTEXT_VIEWS, N_VIEWS
from longtail.kernels.code_search import CodedGraph, new_walk
from longtail.kernels.label_links import Relations
from longtail.kernels.packed_codes import packed_width, unpacked_rows
from longtail.kernels.rows import Rows, quantise_rows
from longtail.kernels.sparse_lookup import SparseRows, new_margin_scratch
from longtail.kernels.wide_network import Network, NetworkScratch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from longtail.classifiers.candidates import SearchSizes

    Arrays = Mapping[str, NDArray[np.generic]]
    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = [
    "RowStore",
    "answerer_from",
    "arrays_of",
    "beam_of",
    "check_answerer",
    "dimension_of",
    "float_rows",
    "float_weights",
    "log_ranks_of",
    "new_scratch",
    "token_vectors_of",
    "vectors_of",
    "width_of",
]

SIDE_BY_SIDE = 16  # candidates that one instruction weighs
MOST_TOUCHED = 4096  # labels that the matches of one text are linked to
_LARGEST_CODE = np.float32(127)


class RowStore(NamedTuple):
    """Puts rows away as float32, float16 or int8."""

    dtype: str

    def rows(self, vectors: Floats) -> Rows:
        """Store rows of a table."""
        vectors = read_only(vectors, np.float32)
        if self.dtype != "int8":
            return Rows(self._numbers(vectors), _no_scales())
        codes = np.empty(vectors.shape, np.int8)
        scales = np.empty(len(vectors), np.float32)
        quantise_rows(vectors, codes, scales)
        return Rows(read_only(codes, np.int8), read_only(scales, np.float32))

    def tokens(self, vectors: Floats) -> Rows:
        """Store rows of which many are added up: four bits a number where others take eight."""
        if self.dtype != "int8":
            return self.rows(vectors)
        codes, scales = pack_with_scales(read_only(vectors, np.float32))
        return Rows(read_only(codes, np.uint8), read_only(scales, np.float32))

    def sparse(self, starts: Any, columns: Any, weights: Any) -> SparseRows:
        """Store sparse rows."""
        weights = np.asarray(weights, np.float32)
        starts = read_only(starts, np.int64)
        scales = _no_scales()
        if self.dtype == "int8":
            row_of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
            largest = np.zeros(len(starts) - 1, np.float32)
            np.maximum.at(largest, row_of, np.abs(weights))
            scales = read_only(largest / _LARGEST_CODE, np.float32)
            own = scales[row_of]
            codes = np.rint(np.divide(weights, own, out=np.zeros_like(weights), where=own > 0))
            return SparseRows(
                starts, read_only(columns, np.int32), read_only(codes, np.int8), scales
            )
        return SparseRows(starts, read_only(columns, np.int32), self._numbers(weights), scales)

    def _numbers(self, numbers: Floats) -> NDArray[Any]:
        """Store numbers that need no scale."""
        if self.dtype == "float16":
            return read_only(numbers.astype(np.float16).view(np.uint16), np.uint16)
        return read_only(numbers, np.float32)


def float_rows(rows: Rows) -> Floats:
    """Return a stored table as float32."""
    vectors = _widened(rows.values)
    return vectors * rows.scales[:, None] if len(rows.scales) else vectors


def token_vectors_of(parts: Answerer) -> Floats:
    """Return the vectors of the tokens as float32."""
    values, scales = parts.tokens
    if values.dtype != np.uint8:
        return float_rows(parts.tokens)
    return unpacked_rows(values, scales[:, None], dimension_of(parts))


def dimension_of(parts: Answerer) -> int:
    """Return the length of all vectors."""
    return int(parts.labels.rows.values.shape[1])


def vectors_of(graph: CodedGraph, dimension: int) -> Floats:
    """Return the vectors of an index as float32: those of its codes, where it has no others."""
    if len(graph.rows.values):
        return float_rows(graph.rows)
    return unpacked_rows(graph.codes, graph.step, dimension)


def float_weights(rows: SparseRows) -> Floats:
    """Return the weights of stored sparse rows as float32."""
    weights = _widened(rows.weights)
    return weights * np.repeat(rows.scales, np.diff(rows.starts)) if len(rows.scales) else weights


def _widened(stored: NDArray[Any]) -> Floats:
    """Return stored numbers as float32, not yet scaled."""
    numbers = stored.view(np.float16) if stored.dtype == np.uint16 else stored
    return numbers.astype(np.float32)


def _no_scales() -> Floats:
    return read_only(np.zeros(0), np.float32)


def arrays_of(parts: Answerer) -> dict[str, NDArray[np.generic]]:
    """Return all arrays, named ``"group/name"``; what two parts share is there once."""
    arrays: dict[str, NDArray[np.generic]] = {}
    heads = [head._asdict() for head in parts.heads]
    first, *others = heads
    del first["rows"]  # those of the label index
    groups: dict[str, Any] = {
        "encoder": {"tokens": parts.tokens},
        "labels_index": {**parts.labels._asdict(), "label_of_row": parts.label_of_row},
        "points_index": {
            **parts.points._asdict(),
            "label_starts": parts.point_starts,
            "label_ids": parts.point_labels,
        },
        "linear": {"rows": parts.linear, "bias": parts.linear_bias, "is_word": parts.is_word},
        "relations": parts.relations._asdict() if parts.has_relations else {},
        "network": parts.network._asdict(),
        "labels": {
            "popular": parts.popular,
            "commonness": parts.commonness,
            "tail_weights": parts.tail_weights,
        },
        "head0": first,
        **{f"head{i}": head for i, head in enumerate(others, start=1)},
    }
    for group, members in groups.items():
        for name, member in members.items():
            if isinstance(member, np.ndarray):
                arrays[f"{group}/{name}"] = member
            elif isinstance(member, tuple):
                own: Any = member
                arrays |= {f"{group}/{name}.{k}": v for k, v in own._asdict().items()}
    return arrays


class _Reader(NamedTuple):
    """Takes parts out of the arrays of a folder, and refuses those of another type."""

    arrays: Arrays

    def take(self, name: str, dtype: Any, n_dimensions: int = 1) -> NDArray[Any]:
        """Return one array."""
        array = self.arrays[name]
        if array.dtype != dtype or array.ndim != n_dimensions:
            raise InputError(
                f"Array {name!r} is {array.dtype} of {array.ndim} dimensions, not "
                f"{np.dtype(dtype)} of {n_dimensions}."
            )
        return read_only(array, dtype)

    def ids(self, name: str) -> Ids:
        """Return an array of ids."""
        return self.take(name, np.int32)

    def floats(self, name: str, n_dimensions: int = 1) -> Floats:
        """Return an array that is always float32."""
        return self.take(name, np.float32, n_dimensions)

    def numbers(self, name: str, n_dimensions: int) -> NDArray[Any]:
        """Return an array of one of the storage types."""
        dtype = self.arrays[name].dtype
        if dtype not in (np.float32, np.uint16, np.int8):
            raise InputError(f"Array {name!r} is {dtype}, not float32, uint16 or int8.")
        return self.take(name, dtype, n_dimensions)

    def rows(self, name: str) -> Rows:
        """Return a table."""
        return Rows(self.numbers(f"{name}.values", 2), self.floats(f"{name}.scales"))

    def tokens(self, name: str) -> Rows:
        """Return a table that may be packed."""
        if self.arrays[f"{name}.values"].dtype != np.uint8:
            return self.rows(name)
        return Rows(self.take(f"{name}.values", np.uint8, 2), self.floats(f"{name}.scales"))

    def sparse(self, name: str) -> SparseRows:
        """Return sparse rows."""
        return SparseRows(
            self.take(f"{name}.starts", np.int64),
            self.ids(f"{name}.columns"),
            self.numbers(f"{name}.weights", 1),
            self.floats(f"{name}.scales"),
        )

    def graph(self, group: str) -> CodedGraph:
        """Return an index."""
        return CodedGraph(
            self.take(f"{group}/codes", np.uint8, 2),
            self.floats(f"{group}/step"),
            self.rows(f"{group}/rows"),
            self.take(f"{group}/neighbours", np.int32, 2),
            *(self.ids(f"{group}/{name}") for name in ("entries", "member_starts", "members")),
        )

    def head(self, i: int, scale: float, shared: Rows) -> Head:
        """Return a head; the first shares the rows of the label index."""
        rows = self.rows(f"head{i}/rows") if i else shared
        places, bias = self.ids(f"head{i}/row_of_label"), self.floats(f"head{i}/bias")
        return Head(rows, places, bias, np.float32(scale))

    def relations(self, like: SparseRows, *, there: bool) -> Relations:
        """Return the relations; empty ones, of the same types, where there are none."""
        if there:
            return Relations(*(self.sparse(f"relations/{name}") for name in Relations._fields))
        starts, columns = read_only(np.zeros(1), np.int64), read_only(np.zeros(0), np.int32)
        none = SparseRows(starts, columns, like.weights[:0], _no_scales())
        return Relations(none, none, none)

    def network(self) -> Network:
        """Return the network."""
        return Network(
            *(
                self.floats(f"network/{name}", 2 if name.startswith("matrix") else 1)
                for name in Network._fields
            )
        )


def answerer_from(arrays: Arrays, scales: Sequence[float], *, has_relations: bool) -> Answerer:
    """Make the parts again from `arrays_of`; nothing is read."""
    of = _Reader(arrays)
    labels, linear = of.graph("labels_index"), of.sparse("linear/rows")
    return Answerer(
        tokens=of.tokens("encoder/tokens"),
        labels=labels,
        label_of_row=of.ids("labels_index/label_of_row"),
        points=of.graph("points_index"),
        point_starts=of.ids("points_index/label_starts"),
        point_labels=of.ids("points_index/label_ids"),
        popular=of.ids("labels/popular"),
        heads=tuple(of.head(i, scale, labels.rows) for i, scale in enumerate(scales)),
        linear=linear,
        linear_bias=of.floats("linear/bias"),
        is_word=of.take("linear/is_word", np.bool_),
        relations=of.relations(linear, there=has_relations),
        has_relations=has_relations,
        commonness=of.floats("labels/commonness"),
        tail_weights=of.floats("labels/tail_weights"),
        network=of.network(),
    )


def check_answerer(parts: Answerer) -> None:
    """Refuse arrays whose lengths do not fit; their contents are checked where they are used.

    Raises
    ------
    InputError
    """
    n_labels = len(parts.commonness)
    n_tokens, dimension = len(parts.tokens.values), dimension_of(parts)
    network = parts.network
    n_views, n_hidden1, n_hidden2 = (
        len(part) for part in (network.centre, network.bias1, network.bias2)
    )
    n_sources = len(parts.heads) + 2 + 2 * parts.has_relations
    fits = (
        all(len(part) == n_labels for part in (parts.tail_weights, parts.linear_bias))
        and all(_head_fits(head, n_labels, dimension) for head in parts.heads)
        and _graph_fits(parts.labels, len(parts.label_of_row), dimension)
        and len(parts.labels.rows.values) == len(parts.labels.codes)
        and _graph_fits(parts.points, len(parts.point_starts) - 1, dimension)
        and _tokens_fit(parts.tokens, dimension)
        and len(parts.is_word) in (0, n_tokens)
        and _sparse_fits(parts.linear, n_labels)
        and (not parts.has_relations or _relations_fit(parts.relations, n_labels, n_tokens))
        and n_views == n_sources * N_VIEWS + N_CONTEXT_VIEWS
        and network.scale.shape == (n_views,)
        and network.matrix1.shape == (n_hidden1, n_views)
        and network.matrix2.shape == (n_hidden2, n_hidden1)
        and network.last.shape == (n_hidden2,)
        and len(network.log_ranks) % SIDE_BY_SIDE == 0
    )
    if not fits:
        raise InputError(
            f"The arrays of a compiled model of {n_labels} labels and {n_tokens} tokens of "
            f"{dimension} dimensions do not belong together."
        )


def _rows_fit(rows: Rows) -> bool:
    return len(rows.scales) == (len(rows.values) if rows.values.dtype == np.int8 else 0)


def _tokens_fit(tokens: Rows, dimension: int) -> bool:
    width = tokens.values.shape[1]
    if tokens.values.dtype != np.uint8:
        return _rows_fit(tokens) and width == dimension
    return len(tokens.scales) == len(tokens.values) and width == packed_width(dimension)


def _sparse_fits(rows: SparseRows, n_rows: int) -> bool:
    return (
        len(rows.starts) == n_rows + 1
        and len(rows.columns) == len(rows.weights)
        and len(rows.scales) == (n_rows if rows.weights.dtype == np.int8 else 0)
    )


def _relations_fit(relations: Relations, n_labels: int, n_tokens: int) -> bool:
    return (
        _sparse_fits(relations.texts, n_labels)
        and _sparse_fits(relations.postings, n_tokens)
        and _sparse_fits(relations.links, n_labels)
    )


def _head_fits(head: Head, n_labels: int, dimension: int) -> bool:
    return (
        len(head.row_of_label) == len(head.bias) == n_labels
        and head.rows.values.shape[1] == dimension
        and _rows_fit(head.rows)
    )


def _graph_fits(graph: CodedGraph, n_rows: int, dimension: int) -> bool:
    n_nodes = len(graph.codes)
    return (
        graph.codes.shape == (n_nodes, packed_width(dimension))
        and graph.step.shape == (1,)
        and graph.rows.values.shape in ((n_nodes, dimension), (0, dimension))
        and len(graph.neighbours) == n_nodes
        and len(graph.member_starts) == n_nodes + 1
        and len(graph.members) == n_rows
        and _rows_fit(graph.rows)
    )


def width_of(sizes: SearchSizes, n_vectors: int, n_popular: int, n_related: int, n: int) -> int:
    """Return how many candidates a point can have among `n` labels."""
    width = min(sizes.n_found, n_vectors) + n_popular + sizes.n_near_labels + n_related
    return min(width, n)


def log_ranks_of(width: int) -> Floats:
    """Return the logarithms of all ranks among `width` candidates, in whole vectors of them."""
    n_ranks = -(-width // SIDE_BY_SIDE) * SIDE_BY_SIDE
    return read_only(np.log1p(np.arange(n_ranks, dtype=np.float32)), np.float32)


def beam_of(sizes: SearchSizes, n_wanted: int) -> int:
    """Return how long a walk's beam is: three quarters, since it starts near and takes two steps.

    With that it finds what a walk from the entries, node by node, finds with all of it.
    """
    return max(n_wanted, 3 * sizes.beam // 4)


def new_scratch(
    parts: Answerer, sizes: SearchSizes, n_matches: int, n_linked: int
) -> AnswerScratch:
    """Return scratch for one thread."""
    n_found = min(sizes.n_found, len(parts.label_of_row))
    n_near = min(sizes.n_near_points, len(parts.points.members))
    n_tokens, dimension = len(parts.tokens.values), dimension_of(parts)
    n_labels, network = len(parts.commonness), parts.network
    width = len(network.log_ranks)
    n_sources = len(parts.heads) + 2 + 2 * parts.has_relations

    def ids(size: int) -> Ids:
        return np.zeros(size, np.int32)

    def floats(*shape: int) -> Floats:
        return np.zeros(shape, np.float32)

    return AnswerScratch(
        point=floats(dimension),
        codes=np.zeros(2 * packed_width(dimension), np.int8),
        label_walk=new_walk(parts.labels, beam_of(sizes, n_found), width),
        starts=ids(width),
        point_walk=new_walk(parts.points, beam_of(sizes, n_near)),
        found=ids(n_found),
        found_similarities=floats(n_found),
        near=ids(n_near),
        near_similarities=floats(n_near),
        matches=ids(n_matches),
        match_similarities=floats(n_matches),
        linked=ids(n_linked),
        linked_votes=floats(n_linked),
        touched=ids(min(MOST_TOUCHED, n_labels)),
        voted=ids(n_labels),
        best_voted=ids(sizes.n_near_labels),
        best_votes=floats(sizes.n_near_labels),
        votes=floats(n_labels),
        links=floats(n_labels),
        margins=new_margin_scratch(n_tokens),
        word_columns=ids(n_tokens),
        word_values=floats(n_tokens),
        candidates=ids(min(width, n_labels)),
        candidate_votes=floats(width),
        evidence=floats(n_sources, width),
        commonness=floats(width),
        network=NetworkScratch(
            views=floats(len(network.centre), width),
            hidden1=floats(len(network.bias1), width),
            hidden2=floats(len(network.bias2), width),
            ranks=ids(width),
            log_ranks=floats(width),
        ),
        scores=floats(width),
    )
