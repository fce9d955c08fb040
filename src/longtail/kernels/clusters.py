"""Compiled loops of label clustering: the walk between labels, and the balanced cut in two.

Random numbers come from a counter, started anew for every label and every node of the tree, so that
no result depends on which thread computed what. The cut is made by a vector `direction`, from the
centre of one half to that of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import fast_kernel, kernel
from longtail.kernels.prefetch import prefetch_pair
from longtail.kernels.random_bits import random_unit
from longtail.kernels.sparse_lanes import gathered_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Doubles = NDArray[np.float64]
    Ids = NDArray[np.int32]
    Offsets = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = [
    "cut_in_half",
    "keep_largest_entries",
    "label_walks",
    "split_dense_nodes",
    "split_sparse_nodes",
]

_AHEAD = 4  # rows


@kernel
def _walk(
    label: int,
    label_starts: Offsets,
    label_points: Ids,
    point_starts: Offsets,
    point_labels: Ids,
    restart_probability: float,
    seed: int,
    visited: Ids,
) -> None:
    """Fill `visited` with the labels that one walk from `label` comes through."""
    here = label
    for step in range(len(visited)):
        if random_unit(seed, label, 3 * step) < restart_probability:
            here = label
        first, last = label_starts[here], label_starts[here + 1]
        point = label_points[first + int(random_unit(seed, label, 3 * step + 1) * (last - first))]
        first, last = point_starts[point], point_starts[point + 1]
        here = point_labels[first + int(random_unit(seed, label, 3 * step + 2) * (last - first))]
        visited[step] = here


@kernel
def _insert(ids: Ids, counts: Ids, new_id: int, new_count: int) -> None:
    """Put a label among those kept, most visits first; slot 0 is the walk's own label."""
    slot = len(ids)
    while slot > 1 and new_count > counts[slot - 1]:
        slot -= 1
    for later in range(len(ids) - 1, slot, -1):
        ids[later] = ids[later - 1]
        counts[later] = counts[later - 1]
    if slot < len(ids):
        ids[slot] = new_id
        counts[slot] = new_count


@kernel
def _count_visits(label: int, visited: Ids, ids: Ids, counts: Ids) -> None:
    """Count the sorted `visited` and keep the most frequent, `label` itself always first."""
    ids[0] = label
    counts[0] = 1
    first = 0
    for last in range(1, len(visited) + 1):
        if last < len(visited) and visited[last] == visited[first]:
            continue
        if visited[first] == label:
            counts[0] = last - first
        else:
            _insert(ids, counts, visited[first], last - first)
        first = last


@kernel
def label_walks(
    label_starts: Offsets,
    label_points: Ids,
    point_starts: Offsets,
    point_labels: Ids,
    first_label: int,
    last_label: int,
    walk_length: int,
    restart_probability: float,
    seed: int,
    ids: Ids,
    counts: Ids,
) -> None:
    """Walk from each label in [first_label, last_label) and keep its most visited labels.

    A step goes to a uniformly random point of the label, then to a uniformly random label of that
    point; before each step the walk returns to its own label with `restart_probability`.

    Parameters
    ----------
    label_starts, label_points
        The points of each label: CSR of Y^T, offsets (L + 1,) int64 and indices int32.
    point_starts, point_labels
        The labels of each point: CSR of Y, offsets (N + 1,) int64 and indices int32.
    first_label, last_label
        Whose walks these are; the rows of the others are left alone.
    walk_length
        Steps of a walk.
    restart_probability
        In [0, 1).
    seed
        Of all walks: that of a label does not depend on which others are walked with it.
    ids, counts
        Output (L, n_kept) int32, filled beforehand with -1 and 0: column 0 the label itself with
        at least one visit, then the others by visits, ties by id.
    """
    visited = np.empty(walk_length, np.int32)
    for label in range(first_label, last_label):
        if label_starts[label] == label_starts[label + 1]:
            ids[label, 0] = label
            counts[label, 0] = 1
            continue
        _walk(
            label,
            label_starts,
            label_points,
            point_starts,
            point_labels,
            restart_probability,
            seed,
            visited,
        )
        visited.sort()
        _count_visits(label, visited, ids[label], counts[label])


@kernel
def keep_largest_entries(starts: Offsets, values: Floats, n_kept: int, keep: Flags) -> None:
    """Mark in `keep` the `n_kept` entries of each CSR row that are largest in size.

    Ties go to the earlier entry.
    """
    for row in range(len(starts) - 1):
        first, last = starts[row], starts[row + 1]
        if last - first <= n_kept:
            keep[first:last] = True
            continue
        sizes = np.abs(values[first:last])
        threshold = np.partition(sizes, last - first - n_kept)[last - first - n_kept]
        n_ties = n_kept - np.sum(sizes > threshold)
        for entry in range(last - first):
            is_tie = sizes[entry] == threshold and n_ties > 0
            n_ties -= is_tie
            keep[first + entry] = is_tie or sizes[entry] > threshold


@kernel
def cut_in_half(scores: Floats, in_upper: Flags) -> None:
    """Mark the floor(n / 2) rows with the largest scores; among equals, the later rows."""
    n_lower = (len(scores) + 1) // 2
    threshold = np.partition(scores, n_lower - 1)[n_lower - 1]
    n_ties = n_lower - np.sum(scores < threshold)
    for row in range(len(scores)):
        is_tie = scores[row] == threshold
        in_upper[row] = scores[row] > threshold or (is_tie and n_ties <= 0)
        n_ties -= is_tie


@kernel
def _first_seed(n_members: int, seed: int, node: int) -> int:
    """Choose the first initial centre, uniformly."""
    return int(random_unit(seed, node, 0) * n_members)


@kernel
def _second_seed(scores: Floats, first: int, plus_plus: bool, seed: int, node: int) -> int:
    """Choose the second initial centre; `scores` are minus the cosines to the first (k-means++)."""
    draw = random_unit(seed, node, 1)
    if not plus_plus:
        return (first + 1 + int(draw * (len(scores) - 1))) % len(scores)
    total = 0.0
    for row in range(len(scores)):
        total += max(0.0, 1.0 + scores[row])  # cosine distance = half the squared distance
    draw *= total
    for row in range(len(scores)):
        draw -= max(0.0, 1.0 + scores[row])
        if draw < 0.0 and row != first:
            return row
    return (first + 1) % len(scores)


@fast_kernel
def _turn_direction(columns: Ids, total: Doubles, upper: Doubles, direction: Floats) -> float:
    """Set `direction` from the two halves' sums; return the summed cosine of rows to centres.

    With unit rows and centre = sum / |sum|, the summed cosine of a half to its centre is |sum|.
    """
    upper_square = 0.0
    lower_square = 0.0
    for column in columns:
        upper_square += upper[column] ** 2
        lower_square += (total[column] - upper[column]) ** 2
    upper_norm, lower_norm = np.sqrt(upper_square), np.sqrt(lower_square)
    upper_scale = 1.0 / upper_norm if upper_norm > 0.0 else 0.0
    lower_scale = 1.0 / lower_norm if lower_norm > 0.0 else 0.0
    for column in columns:
        rest = total[column] - upper[column]
        direction[column] = upper_scale * upper[column] - lower_scale * rest
    return upper_norm + lower_norm  # type: ignore[no-any-return]  # numba's float


@kernel
def _reorder(members: Ids, in_upper: Flags) -> None:
    """Bring the lower half of a node to the front; both halves keep the order of their ids."""
    upper = members[in_upper]
    n_lower = 0
    for position in range(len(members)):
        if not in_upper[position]:
            members[n_lower] = members[position]
            n_lower += 1
    members[n_lower:] = upper


@fast_kernel
def _sparse_scores(
    starts: Offsets, indices: Ids, values: Floats, members: Ids, direction: Floats, scores: Floats
) -> None:
    """Compute the product of each member row with `direction`."""
    for position in range(len(members)):
        row = members[position]
        if position + _AHEAD < len(members):
            coming = starts[members[position + _AHEAD]]
            prefetch_pair(indices, coming)
            prefetch_pair(values, coming)
        scores[position] = gathered_sum(indices, values, starts[row], starts[row + 1], direction)


@kernel
def _add_sparse_row(
    starts: Offsets,
    indices: Ids,
    values: Floats,
    row: int,
    sign: float,
    out: Floats | Doubles,
) -> None:
    """Add one row, times `sign`, to a dense vector."""
    for entry in range(starts[row], starts[row + 1]):
        out[indices[entry]] += sign * values[entry]


@kernel
def _sum_sparse_rows(
    starts: Offsets, indices: Ids, values: Floats, rows: Ids, columns: Ids, out: Doubles
) -> None:
    """Sum `rows` into `out`, which is cleared in `columns` only: clearing all would cost more."""
    out[columns] = 0.0
    for row in rows:
        _add_sparse_row(starts, indices, values, row, 1.0, out)


@kernel
def _touched_columns(
    starts: Offsets, indices: Ids, members: Ids, is_touched: Flags, columns: Ids
) -> int:
    """List the columns in which a member has an entry; return how many; leave the flags clean."""
    n_touched = 0
    for row in members:
        for entry in range(starts[row], starts[row + 1]):
            column = indices[entry]
            if not is_touched[column]:
                is_touched[column] = True
                columns[n_touched] = column
                n_touched += 1
    for column in columns[:n_touched]:
        is_touched[column] = False
    return n_touched


@kernel
def split_sparse_nodes(
    starts: Offsets,
    indices: Ids,
    values: Floats,
    n_columns: int,
    order: Ids,
    bounds: Offsets,
    first_node: int,
    last_node: int,
    first_stream: int,
    seed: int,
    plus_plus: bool,
    tolerance: float,
    max_iterations: int,
) -> None:
    """Split each node in [first_node, last_node) of one tree level by balanced 2-means.

    Parameters
    ----------
    starts, indices, values
        CSR of the vectors (L, n_columns): offsets int64, indices int32, unit rows float32.
    n_columns
        Length of a vector.
    order
        (L,) int32, the rows, node after node, by id within a node; changed in place: the lower
        half of a node comes first.
    bounds
        (n_nodes + 1,) int64: node k is ``order[bounds[k]:bounds[k + 1]]``.
    first_node, last_node
        The nodes to split; the others are left alone.
    first_stream
        Random stream of node 0 of this level.
    seed
        Of all streams.
    plus_plus
        Draw the second of the two first centres as k-means++ does, rather than uniformly.
    tolerance
        Stop once the mean cosine of rows to their centres gains less than this.
    max_iterations
        Most assignments of rows to the two halves.
    """
    total = np.zeros(n_columns, np.float64)
    upper = np.zeros(n_columns, np.float64)
    direction = np.zeros(n_columns, np.float32)
    is_touched = np.zeros(n_columns, np.bool_)
    all_columns = np.empty(n_columns, np.int32)
    for node in range(first_node, last_node):
        members = order[bounds[node] : bounds[node + 1]]
        if len(members) <= 2:  # a pair can be cut in one way only
            continue
        scores = np.empty(len(members), np.float32)
        in_upper = np.empty(len(members), np.bool_)
        n_touched = _touched_columns(starts, indices, members, is_touched, all_columns)
        columns = all_columns[:n_touched]
        direction[columns] = 0.0
        _sum_sparse_rows(starts, indices, values, members, columns, total)
        first = _first_seed(len(members), seed, first_stream + node)
        _add_sparse_row(starts, indices, values, members[first], -1.0, direction)
        if plus_plus:
            _sparse_scores(starts, indices, values, members, direction, scores)
        second = _second_seed(scores, first, plus_plus, seed, first_stream + node)
        _add_sparse_row(starts, indices, values, members[second], 1.0, direction)
        previous = -np.inf
        for _ in range(max_iterations):
            _sparse_scores(starts, indices, values, members, direction, scores)
            cut_in_half(scores, in_upper)
            _sum_sparse_rows(starts, indices, values, members[in_upper], columns, upper)
            cosine = _turn_direction(columns, total, upper, direction) / len(members)
            if cosine - previous < tolerance:
                break
            previous = cosine
        _reorder(members, in_upper)


@fast_kernel
def _dense_scores(vectors: Floats, members: Ids, direction: Floats, scores: Floats) -> None:
    """Compute the product of each member row with `direction`."""
    for position in range(len(members)):
        row = vectors[members[position]]
        score = np.float32(0.0)
        for column in range(len(direction)):
            score += row[column] * direction[column]
        scores[position] = score


@kernel
def _sum_dense_rows(vectors: Floats, rows: Ids, out: Doubles) -> None:
    """Sum `rows` into the float64 vector `out`."""
    out[:] = 0.0
    for row in rows:
        vector = vectors[row]
        for column in range(len(out)):
            out[column] += vector[column]


@kernel
def split_dense_nodes(
    vectors: Floats,
    order: Ids,
    bounds: Offsets,
    first_node: int,
    last_node: int,
    first_stream: int,
    seed: int,
    plus_plus: bool,
    tolerance: float,
    max_iterations: int,
) -> None:
    """Do as `split_sparse_nodes` does, for `vectors` (L, D) float32 with unit rows."""
    columns = np.arange(vectors.shape[1]).astype(np.int32)
    total = np.empty(len(columns), np.float64)
    upper = np.empty(len(columns), np.float64)
    for node in range(first_node, last_node):
        members = order[bounds[node] : bounds[node + 1]]
        if len(members) <= 2:  # a pair can be cut in one way only
            continue
        scores = np.empty(len(members), np.float32)
        in_upper = np.empty(len(members), np.bool_)
        _sum_dense_rows(vectors, members, total)
        first = _first_seed(len(members), seed, first_stream + node)
        direction = -vectors[members[first]]
        if plus_plus:
            _dense_scores(vectors, members, direction, scores)
        second = _second_seed(scores, first, plus_plus, seed, first_stream + node)
        direction += vectors[members[second]]
        previous = -np.inf
        for _ in range(max_iterations):
            _dense_scores(vectors, members, direction, scores)
            cut_in_half(scores, in_upper)
            _sum_dense_rows(vectors, members[in_upper], upper)
            cosine = _turn_direction(columns, total, upper, direction) / len(members)
            if cosine - previous < tolerance:
                break
            previous = cosine
        _reorder(members, in_upper)
