"""The arrays of a compiled model: how they are stored, named, checked, and their scratch."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.blend.score_network import count_sources
from longtail.compiled.row_store import RowStore, named_arrays, no_numbers
from longtail.errors import InputError
from longtail.kernels.answer import Answerer, AnswerScratch, Head
from longtail.kernels.arrays import read_only
from longtail.kernels.blend import N_CONTEXT_VIEWS, N_VIEWS
from longtail.kernels.byte_rows import SplitQuery, split_width
from longtail.kernels.code_search import CodedGraph, Walk, new_keys, new_walk
from longtail.kernels.label_links import Relations
from longtail.kernels.packed_codes import packed_width
from longtail.kernels.packed_ids import N_SPARE, is_packed, unpacked_ids
from longtail.kernels.rows import Rows
from longtail.kernels.sparse_lanes import N_MORE_SLOTS
from longtail.kernels.sparse_lookup import SparseRows, SplitRows
from longtail.kernels.wide_network import Network, NetworkScratch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longtail.blend.candidates import SearchSizes
    from longtail.blend.relations import RelationSizes
    from longtail.named_parts import Arrays

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = [
    "MOST_SEARCHED",
    "answerer_from",
    "arrays_of",
    "check_answerer",
    "check_search_sizes",
    "dimension_of",
    "label_beam",
    "log_ranks_of",
    "most_frequent",
    "new_scratch",
    "no_ids",
    "walk_of_labels",
    "wide_beam",
    "width_of",
]

MOST_SEARCHED = 1_000_000  # of a size or a beam: every thread has room for so many
SIDE_BY_SIDE = 16  # candidates that one instruction weighs
MOST_LOGGED = 8192  # nodes that a walk has compared after the entries: usually about 2,000
MOST_TOUCHED = 4096  # labels that the matches of one text are linked to
MOST_FREQUENT = 10_000  # labels that an answer is filled up with: nobody may ask for more


def dimension_of(parts: Answerer) -> int:
    """Return the length of all vectors."""
    return int(parts.labels.rows.values.shape[1])


def arrays_of(parts: Answerer) -> dict[str, NDArray[np.generic]]:
    """Return all arrays, named ``"group/name"``; what two parts share is there once."""
    arrays: dict[str, NDArray[np.generic]] = {}
    heads = [head._asdict() for head in parts.heads]
    first, *others = heads
    del first["rows"]  # those of the label index
    groups: dict[str, Any] = {
        "encoder": {"tokens": parts.tokens},
        "labels_index": {
            **parts.labels._asdict(),
            "label_of_row": parts.label_of_row,
            "homes": parts.homes,
            "unsure_below": parts.unsure_below,
        },
        "points_index": {
            **parts.points._asdict(),
            "label_starts": parts.point_starts,
            "label_ids": parts.point_labels,
        },
        "linear": {
            **parts.linear._asdict(),
            "bias": parts.linear_bias,
            "is_word": parts.is_read,
        },
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
        arrays |= named_arrays(f"{group}/", members)
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

    def starts(self, name: str) -> NDArray[Any]:
        """Return where rows begin."""
        kind = np.int64 if self.arrays[name].dtype == np.int64 else np.int32
        return self.take(name, kind)

    def sparse(self, name: str) -> SparseRows:
        """Return sparse rows."""
        return SparseRows(
            self.starts(f"{name}.starts"),
            self.take(f"{name}.columns", np.uint8, 2),
            self.numbers(f"{name}.weights", 1),
            self.floats(f"{name}.scales"),
        )

    def split(self, name: str) -> SplitRows:
        """Return split rows."""
        return SplitRows(
            self.sparse(f"{name}rare"),
            self.sparse(f"{name}common"),
            self.take(f"{name}places", np.uint8, 2),
        )

    def graph(self, group: str) -> CodedGraph:
        """Return an index."""
        return CodedGraph(
            self.take(f"{group}/codes", np.uint8, 2),
            self.floats(f"{group}/step"),
            self.rows(f"{group}/rows"),
            self.take(f"{group}/neighbours", np.uint8, 2),
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
            return Relations(self.split("relations/texts."), self.sparse("relations/links"))
        none = RowStore("float32").no_split()
        rows = none.rare._replace(weights=like.weights[:0])
        return Relations(SplitRows(rows, rows, none.places), rows)

    def network(self) -> Network:
        """Return the network."""
        return Network(
            *(
                self.floats(f"network/{name}", 2 if name.startswith("matrix") else 1)
                for name in Network._fields
            )
        )


def answerer_from(
    arrays: Arrays, scales: Sequence[float], further_scale: float, *, has_relations: bool
) -> Answerer:
    """Make the parts again from `arrays_of`; nothing is read."""
    of = _Reader(arrays)
    labels, linear = of.graph("labels_index"), of.split("linear/")
    return Answerer(
        tokens=of.tokens("encoder/tokens"),
        labels=labels,
        label_of_row=of.ids("labels_index/label_of_row"),
        homes=of.ids("labels_index/homes"),
        unsure_below=of.floats("labels_index/unsure_below"),
        points=of.graph("points_index"),
        point_starts=of.ids("points_index/label_starts"),
        point_labels=of.ids("points_index/label_ids"),
        popular=of.ids("labels/popular"),
        frequent=no_ids(),
        node_bias=no_numbers(),
        heads=tuple(of.head(i, scale, labels.rows) for i, scale in enumerate(scales)),
        further_scale=np.float32(further_scale),
        linear=linear,
        linear_bias=of.floats("linear/bias"),
        is_read=of.take("linear/is_word", np.bool_),
        relations=of.relations(linear.rare, there=has_relations),
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
    n_sources = count_sources(len(parts.heads), has_relations=parts.has_relations)
    fits = (
        all(len(part) == n_labels for part in (parts.tail_weights, parts.linear_bias))
        and all(_head_fits(head, n_labels, dimension) for head in parts.heads)
        and _graph_fits(parts.labels, len(parts.label_of_row), dimension)
        and len(parts.labels.rows.values) == len(parts.labels.codes)
        and len(parts.homes) in (0, len(parts.labels.codes))
        and parts.unsure_below.shape == (1,)
        and _graph_fits(parts.points, len(parts.point_starts) - 1, dimension)
        and parts.labels.codes.shape[1] == parts.points.codes.shape[1]
        and _tokens_fit(parts.tokens, dimension)
        and len(parts.is_read) in (0, n_tokens)
        and _split_fits(parts.linear, n_labels, n_tokens)
        and (not parts.has_relations or _relations_fit(parts.relations, n_labels, n_tokens))
        and n_views == n_sources * N_VIEWS + N_CONTEXT_VIEWS
        and network.scale.shape == (n_views,)
        and network.matrix1.shape == (n_hidden1, n_views)
        and network.matrix2.shape == (n_hidden2, n_hidden1)
        and network.last.shape == (n_hidden2,)
        and network.level.shape == (1,)
        and len(network.log_ranks) % SIDE_BY_SIDE == 0
    )
    if not fits:
        raise InputError(
            f"The arrays of a compiled model of {n_labels} labels and {n_tokens} tokens of "
            f"{dimension} dimensions do not belong together."
        )


def check_search_sizes(sizes: SearchSizes, related: RelationSizes) -> None:
    """Refuse sizes that would take more memory than there is.

    Raises
    ------
    InputError
    """
    for name, size in (asdict(sizes) | asdict(related)).items():
        if not 0 <= size <= MOST_SEARCHED:
            raise InputError(f"{name} must be between 0 and {MOST_SEARCHED:,}, got {size:,}.")


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
        and is_packed(rows.columns)
        and len(rows.columns) == len(rows.weights) + N_SPARE
        and len(rows.scales) == (n_rows if rows.weights.dtype == np.int8 else 0)
    )


def _split_fits(rows: SplitRows, n_labels: int, n_features: int) -> bool:
    return (
        _sparse_fits(rows.rare, n_features)
        and _sparse_fits(rows.common, n_labels)
        and is_packed(rows.places)
        and len(rows.places) == n_features + N_SPARE
    )


def _relations_fit(relations: Relations, n_labels: int, n_tokens: int) -> bool:
    return _split_fits(relations.texts, n_labels, n_tokens) and _sparse_fits(
        relations.links, n_labels
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
        graph.codes.shape[1] == packed_width(dimension)
        and graph.step.shape == (1,)
        and graph.rows.values.shape in ((n_nodes, dimension), (0, dimension))
        and is_packed(graph.neighbours)
        and (len(graph.neighbours) - N_SPARE) % max(n_nodes, 1) == 0
        and len(graph.member_starts) == n_nodes + 1
        and len(graph.members) == n_rows
        and _rows_fit(graph.rows)
    )


def width_of(sizes: SearchSizes, n_vectors: int, n_popular: int, n_related: int, n: int) -> int:
    """Return how many candidates a point can have among `n` labels."""
    width = min(sizes.n_found, n_vectors) + n_popular + sizes.n_near_labels + n_related
    return min(width, n)


def _n_places(parts: Answerer) -> int:
    """Return how many features of split rows are common, at most, and one for all others."""
    split = [parts.linear, *([parts.relations.texts] if parts.has_relations else [])]
    most = max(int(unpacked_ids(rows.places).max(initial=0)) for rows in split)
    return 1 + min(most, len(parts.tokens.values))  # of a damaged file, too


def log_ranks_of(width: int) -> Floats:
    """Return the logarithms of all ranks among `width` candidates, in whole vectors of them."""
    n_ranks = -(-width // SIDE_BY_SIDE) * SIDE_BY_SIDE
    return read_only(np.log1p(np.arange(n_ranks, dtype=np.float32)), np.float32)


def no_ids() -> Ids:
    """Return an empty array of ids, of the type that kernels know."""
    return read_only(np.zeros(0), np.int32)


def most_frequent(commonness: Floats) -> Ids:
    """Return the most frequent labels, the first ones first, ties by smaller id.

    A label without training points is none of them: nothing speaks for it.
    """
    n = min(int(np.count_nonzero(commonness)), MOST_FREQUENT)
    least = np.partition(commonness, -n)[-n] if n else np.inf  # all of millions need no order
    frequent = np.flatnonzero(commonness >= least)
    order = np.argsort(-commonness[frequent], kind="stable")[:n]
    return read_only(frequent[order], np.int32)


def label_beam(sizes: SearchSizes) -> int:
    """Return how long the beam of a walk of the labels is: three quarters, for two at a time."""
    return max(sizes.n_found, 3 * sizes.beam // 4)


def walk_of_labels(labels: CodedGraph, sizes: SearchSizes, n_starts: int) -> Walk:
    """Return scratch for walks of the labels, which may go on with a longer beam."""
    n_logged = MOST_LOGGED + len(labels.entries)
    return new_walk(labels, label_beam(sizes), n_starts, n_logged)


def wide_beam(sizes: SearchSizes) -> int:
    """Return how long it is for points that some labels are likely to be missed of."""
    return 2 * label_beam(sizes)


def point_beam(sizes: SearchSizes) -> int:
    """Return how long that of a walk of the points is: half, since it starts near."""
    return max(sizes.n_near_points, sizes.beam // 2)


def new_scratch(parts: Answerer, sizes: SearchSizes, related: RelationSizes) -> AnswerScratch:
    """Return scratch for one thread."""
    n_found = min(sizes.n_found, len(parts.label_of_row))
    n_near = min(sizes.n_near_points, len(parts.points.members))
    n_tokens, dimension = len(parts.tokens.values), dimension_of(parts)
    n_labels, network = len(parts.commonness), parts.network
    width = len(network.log_ranks)
    walk = walk_of_labels(parts.labels, sizes, width)
    n_sources = count_sources(len(parts.heads), has_relations=parts.has_relations)

    def ids(size: int) -> Ids:
        return np.zeros(size, np.int32)

    def floats(*shape: int) -> Floats:
        return np.zeros(shape, np.float32)

    return AnswerScratch(
        point=floats(dimension),
        codes=np.zeros(2 * parts.labels.codes.shape[1], np.int8),
        split=SplitQuery(
            np.zeros((2, split_width(dimension)), np.int8), np.zeros(2, np.int32), floats(1)
        ),
        places=ids(width),
        label_walk=walk,
        wide_walk=walk._replace(keys=new_keys(wide_beam(sizes))),
        starts=ids(width),
        point_walk=new_walk(parts.points, point_beam(sizes), width),
        found=ids(n_found),
        found_similarities=floats(n_found),
        near=ids(n_near),
        near_similarities=floats(n_near),
        likely=ids(related.n_likely),
        likely_sums=floats(related.n_likely),
        matches=ids(related.n_matches),
        match_strengths=floats(related.n_matches),
        linked=ids(related.n_linked),
        linked_votes=floats(related.n_linked),
        touched=ids(min(MOST_TOUCHED, n_labels)),
        voted=ids(n_labels),
        best_voted=ids(sizes.n_near_labels),
        best_votes=floats(sizes.n_near_labels),
        votes=floats(n_labels),
        links=floats(n_labels),
        slots=np.zeros(n_labels + N_MORE_SLOTS, np.uint16),
        text_sums=floats(n_labels if parts.has_relations else 0),
        dense=floats(_n_places(parts)),
        read_columns=ids(n_tokens),
        read_values=floats(n_tokens),
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
