"""Labels whose texts one point's text names, and the labels that these are linked to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import kernel
from longtail.kernels.prefetch import prefetch_row
from longtail.kernels.rows import widen
from longtail.kernels.sparse_lookup import SparseRows, span_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["Relations", "add_links", "match_texts", "strongest_links"]


_AHEAD = 4  # features


class Relations(NamedTuple):
    """See `longtail.classifiers.relations.LabelRelations`; all are empty where there are none."""

    texts: SparseRows
    postings: SparseRows
    links: SparseRows


@kernel
def match_texts(
    columns: Ids, values: Floats, postings: SparseRows, scratch: Floats, ids: Ids, best: Floats
) -> int:
    """Find the labels whose texts have the largest inner products with a bag.

    All products are added up first. Then every sum is looked at where it is first met, and taken
    back. Weights are positive; what is not, in a damaged model, does not count.

    Parameters
    ----------
    columns, values : int32, float32 (n,)
    postings : SparseRows
        The labels of each feature.
    scratch : float32 (n_labels,)
        Zeros, and so again on return.
    ids, best : int32, float32 (n_matches,)
        Written up to the number that is returned: best first, ties by smaller id.
    """
    starts, labels, weights, scales = postings
    for j in range(len(columns)):
        if j + _AHEAD < len(columns):
            coming = starts[columns[j + _AHEAD]]
            prefetch_row(labels, coming)
            prefetch_row(weights, coming)
        first, after = span_of(starts, columns[j], len(labels))
        scale = values[j] * scales[columns[j]] if len(scales) else values[j]
        for place in range(first, after):
            label, product = labels[place], scale * widen(weights[place])
            if 0 <= label < len(scratch) and product > 0:
                scratch[label] += product
    n_found, least = 0, np.float32(0)
    for j in range(len(columns)):
        first, after = span_of(starts, columns[j], len(labels))
        for place in range(first, after):
            label = labels[place]
            if not 0 <= label < len(scratch):
                continue
            total, scratch[label] = scratch[label], 0
            if total > least or (total == least and total > 0):
                insert_sorted(ids, best, n_found, label, total)
                n_found = min(n_found + 1, len(ids))
                least = best[n_found - 1] if n_found == len(ids) else np.float32(0)
    return n_found


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
