"""Labels whose texts one point's text names, and the labels that these are linked to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import kernel
from longtail.kernels.packed_ids import id_at
from longtail.kernels.prefetch import prefetch_line, prefetch_pair
from longtail.kernels.rows import widen
from longtail.kernels.sparse_lookup import SparseRows, SplitRows, span_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["Relations", "add_links", "match_texts", "strongest_links"]

_AHEAD = 4  # features
_LEAST_SUM = np.float32(1e-20)


class Relations(NamedTuple):
    """See `longtail.classifiers.relations.LabelRelations`; all are empty where there are none."""

    texts: SplitRows
    links: SparseRows


@kernel
def match_texts(
    columns: Ids, values: Floats, rare: SparseRows, sums: Floats, ids: Ids, best: Floats
) -> tuple[int, int]:
    """Find the labels whose texts have the largest inner products with a bag.

    All products are above 0. So a sum is never larger than after the last product that it takes,
    and a label that is among the best in the end is so at that moment.

    Parameters
    ----------
    columns, values : int32, float32 (n,)
    rare : SparseRows
        The labels of each feature.
    sums : float32 (n_labels,)
        Zeros; the products of each label, added up, on return.
    ids, best : int32, float32 (n_matches,)
        Written up to the first number that is returned: best first, ties by smaller id.

    Returns
    -------
    n_found, n_added : int
        How many labels, and how many products.
    """
    starts, labels, weights, scales = rare
    n_sums, n_added, n_found, least = np.uint32(len(sums)), 0, 0, _LEAST_SUM
    for j in range(len(columns)):
        if j + 2 * _AHEAD < len(columns):
            prefetch_line(starts, columns[j + 2 * _AHEAD])
        if j + _AHEAD < len(columns):
            coming = starts[columns[j + _AHEAD]]
            prefetch_pair(labels, coming)
            prefetch_pair(weights, coming)
        first, after = span_of(starts, columns[j], len(weights))
        scale = values[j] * scales[columns[j]] if len(scales) else values[j]
        n_added += after - first
        for place in range(np.uint64(first), np.uint64(after)):
            label = id_at(labels, place)
            if label < n_sums:
                total = sums[label] + scale * widen(weights[place])
                sums[label] = total
                if total >= least:
                    n_found, least = _keep(ids, best, n_found, np.int32(label), total)
    return n_found, n_added


@kernel
def _keep(
    ids: Ids, best: Floats, n: int, label: np.int32, total: np.float32
) -> tuple[int, np.float32]:
    """Put a label into the sorted list, or raise it there; return how long it is, and its least.

    What is not above the least need not be offered.
    """
    for place in range(n):
        if ids[place] == label:
            n -= 1
            for behind in range(place, n):
                ids[behind], best[behind] = ids[behind + 1], best[behind + 1]
            break
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
        first, after = span_of(starts, matches[m], len(weights))
        for place in range(np.uint64(first), np.uint64(after)):
            label = id_at(labels, place)
            product = strength * widen(weights[place])
            if label >= np.uint32(len(scratch)) or not product > 0:
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
