"""Labels whose texts one point's text names, and the labels that these are linked to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import kernel
from longtail.kernels.lanes import N_ABOVE, first_above
from longtail.kernels.prefetch import prefetch_line, prefetch_row
from longtail.kernels.rows import widen
from longtail.kernels.sparse_lookup import SparseRows, span_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["Relations", "add_links", "match_texts", "strongest_links"]


_AHEAD = 4  # features
_SUMS_PER_PRODUCT = 32  # looked at in a row in the time of one by its place
_LEAST_SUM = np.float32(1e-20)


class Relations(NamedTuple):
    """See `longtail.classifiers.relations.LabelRelations`; all are empty where there are none."""

    texts: SparseRows
    postings: SparseRows
    links: SparseRows


@kernel
def match_texts(
    columns: Ids, values: Floats, postings: SparseRows, sums: Floats, ids: Ids, best: Floats
) -> int:
    """Find the labels whose texts have the largest inner products with a bag.

    All products are added up first. Then all sums are looked at, or, where labels are many more
    than products, those that can be other than 0.

    Parameters
    ----------
    columns, values : int32, float32 (n,)
    postings : SparseRows
        The labels of each feature.
    sums : float32 (n_labels,)
        Zeros, and so again on return.
    ids, best : int32, float32 (n_matches,)
        Written up to the number that is returned: best first, ties by smaller id.
    """
    n_added = _add_products(columns, values, postings, sums)
    if n_added > len(sums) // _SUMS_PER_PRODUCT:
        return _take_all(sums, ids, best)
    starts, labels = postings.starts, postings.columns
    n_found, least = 0, _LEAST_SUM
    for column in columns:
        first, after = span_of(starts, column, len(labels))
        for place in range(np.uint64(first), np.uint64(after)):
            label = np.uint32(labels[place])
            if label < np.uint32(len(sums)):
                total, sums[label] = sums[label], 0
                if total >= least:
                    n_found, least = _keep(ids, best, n_found, np.int32(label), total)
    return n_found


@kernel
def _add_products(columns: Ids, values: Floats, postings: SparseRows, sums: Floats) -> int:
    """Add what each label has of each column to its sum, and return how many products there are.

    Numbers without a sign are places as they are; others may count from the end.
    """
    starts, labels, weights, scales = postings
    n_sums, n_added = np.uint32(len(sums)), 0
    for j in range(len(columns)):
        if j + 2 * _AHEAD < len(columns):
            prefetch_line(starts, columns[j + 2 * _AHEAD])
        if j + _AHEAD < len(columns):
            coming = starts[columns[j + _AHEAD]]
            prefetch_row(labels, coming)
            prefetch_row(weights, coming)
        first, after = span_of(starts, columns[j], len(labels))
        scale = values[j] * scales[columns[j]] if len(scales) else values[j]
        n_added += after - first
        for place in range(np.uint64(first), np.uint64(after)):
            label = np.uint32(labels[place])
            if label < n_sums:
                sums[label] += scale * widen(weights[place])
    return n_added


@kernel
def _take_all(sums: Floats, ids: Ids, best: Floats) -> int:
    """Note the largest of all sums, set them to zero, and return how many were noted."""
    n_found, label, least = 0, 0, _LEAST_SUM
    while label < len(sums):
        label = first_above(sums, label, least)
        for own in range(label, min(label + N_ABOVE, len(sums))):
            if sums[own] >= least:
                n_found, least = _keep(ids, best, n_found, own, sums[own])
        label += N_ABOVE
    sums[:] = 0
    return n_found


@kernel
def _keep(ids: Ids, best: Floats, n: int, label: Any, total: np.float32) -> tuple[int, np.float32]:
    """Put a label into the sorted list; return how long that is, and the least that can enter."""
    insert_sorted(ids, best, n, label, total)
    n = min(n + 1, len(ids))
    return n, best[n - 1] if n == len(ids) else _LEAST_SUM


@kernel
def add_links(
    matches: Ids, similarities: Floats, links: SparseRows, scratch: Floats, touched: Ids
) -> int:
    """Add the links of some matches to `scratch`, and return how many labels now have any.

    A link counts its weight times the square of the match's similarity, if that is above 0.
    """
    starts, labels, weights, scales = links
    n_touched = 0
    for m in range(len(matches)):
        strength = similarities[m] * similarities[m]
        if len(scales):
            strength *= scales[matches[m]]
        first, after = span_of(starts, matches[m], len(labels))
        for place in range(first, after):
            label = labels[place]
            product = strength * widen(weights[place])
            if not 0 <= label < len(scratch) or not product > 0:
                continue
            if scratch[label] == 0:
                if n_touched == len(touched):
                    continue
                touched[n_touched] = label
                n_touched += 1
            scratch[label] += product
    return n_touched


@kernel
def strongest_links(touched: Ids, scratch: Floats, ids: Ids, votes: Floats) -> int:
    """Write the touched labels of the most votes, best first, and return how many."""
    n_kept = 0
    for label in touched:
        if n_kept < len(ids) or scratch[label] >= votes[n_kept - 1]:
            insert_sorted(ids, votes, n_kept, label, scratch[label])
            n_kept = min(n_kept + 1, len(ids))
    return n_kept
