"""Whether the arrays of a compiled model fit each other."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from longtail.blend.score_network import count_sources
from longtail.compiled.parts import dimension_of
from longtail.errors import InputError
from longtail.kernels.blend import N_CONTEXT_VIEWS, N_VIEWS
from longtail.kernels.instructions import LANES
from longtail.kernels.packed_codes import packed_width
from longtail.kernels.packed_ids import N_SPARE, is_packed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.candidates import SearchSizes
    from longtail.blend.relations import RelationSizes
    from longtail.kernels.answer_parts import Answerer, Head
    from longtail.kernels.coded_graph import CodedGraph
    from longtail.kernels.label_links import Relations
    from longtail.kernels.rows import Rows
    from longtail.kernels.sparse_lookup import SparseRows, SplitRows

__all__ = ["MOST_SEARCHED", "check_answerer", "check_search_sizes", "check_training_rows"]

MOST_SEARCHED = 1_000_000  # of a size or a beam: every thread has room for so many


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
        and network.brevity.shape == (4,)
        and network.for_order.shape == (1,)
        and len(network.log_ranks) % LANES == 0
    )
    if not fits:
        raise InputError(
            f"The arrays of a compiled model of {n_labels} labels and {n_tokens} tokens of "
            f"{dimension} dimensions do not belong together."
        )


def check_training_rows(training_rows: NDArray[np.generic] | None, n_points: int) -> None:
    """Refuse rows of the training data that are not those of so many points.

    Raises
    ------
    InputError

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.compiled.checks import check_training_rows
    >>> check_training_rows(None, 2)
    >>> check_training_rows(np.array([4], np.int32), 2)
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: 1 point has a row of the training data, but the model keeps 2.
    """
    if training_rows is not None and len(training_rows) != n_points:
        have = "point has a row" if len(training_rows) == 1 else "points have rows"
        raise InputError(
            f"{len(training_rows):,} {have} of the training data, but the model keeps {n_points:,}."
        )


def check_search_sizes(sizes: SearchSizes, related: RelationSizes) -> None:
    """Refuse sizes that would take more memory than there is.

    Raises
    ------
    InputError

    Examples
    --------
    >>> from longtail.blend.candidates import SearchSizes
    >>> from longtail.blend.relations import RelationSizes
    >>> from longtail.compiled.checks import check_search_sizes
    >>> check_search_sizes(SearchSizes(beam_size=2_000_000), RelationSizes())
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: beam_size must be between 0 and 1,000,000, got 2000000.
    """
    for name, size in (asdict(sizes) | asdict(related)).items():
        is_number = isinstance(size, int) and not isinstance(size, bool)
        if not (is_number and 0 <= size <= MOST_SEARCHED):
            raise InputError(f"{name} must be between 0 and {MOST_SEARCHED:,}, got {size!r:.40}.")


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
        and len(graph.bias) in (0, n_nodes)
        and _rows_fit(graph.rows)
        and _entries_fit(graph)
    )


def _entries_fit(graph: CodedGraph) -> bool:
    shape = len(graph.entries), graph.codes.shape[1]
    return graph.entry_codes.shape in ((0, 0), shape) and len(graph.entry_bias) == (
        len(graph.entry_codes) if len(graph.bias) else 0
    )
