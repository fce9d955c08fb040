"""Labels whose texts one point's text names, and the labels that these are linked to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import lean_kernel
from longtail.kernels.lanes import N_ABOVE, first_above
from longtail.kernels.packed_ids import id_at
from longtail.kernels.rows import widen
from longtail.kernels.sparse_lookup import (
    SUMS_PER_PRODUCT,
    SparseRows,
    SplitRows,
    add_products,
    common_margins,
    span_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["Relations", "add_links", "best_sums", "match_texts", "sharpen", "strongest_links"]

_LEAST_SUM = np.float32(1e-20)
_LEAST_SHARE = np.float32(1 / 3)  # of the largest sum: common tokens hardly make up for more
_SHARPNESS = 32  # a match nine tenths as like as the best one counts a thirtieth of it


class Relations(NamedTuple):
    """See `longtail.blend.relations.LabelRelations`; all are empty where there are none."""

    texts: SplitRows
    links: SparseRows


@lean_kernel
def match_texts(
    columns: Ids,
    values: Floats,
    texts: SplitRows,
    sums: Floats,
    dense: Floats,
    likely: Ids,
    likely_sums: Floats,
    ids: Ids,
    products: Floats,
) -> tuple[int, int]:
    """Find the labels whose texts are most like a bag; return how many, and of how many products.

    What the features of few labels say finds likely labels, with sums of at least a third of the
    largest; of these, what all features say decides.

    Parameters
    ----------
    columns, values : int32, float32 (n,)
        The bag.
    texts : SplitRows
    sums : float32 (n_labels,)
        Added to, by `add_products`.
    dense : float32 (n_common + 1,)
        Zeros, and so again on return.
    likely, likely_sums : int32, float32 (n_likely,)
        Scratch.
    ids, products : int32, float32 (n_matches,)
        Written up to the number that is returned: best first, ties by smaller id. `sharpen` makes
        strengths of inner products.
    """
    n_products = add_products(columns, values, texts.rare, sums)
    n_likely = best_sums(columns, texts.rare, n_products, sums, _LEAST_SHARE, likely, likely_sums)
    while n_likely and likely_sums[n_likely - 1] < likely_sums[0] * _LEAST_SHARE:
        n_likely -= 1  # they came before the best one
    likely, n_found = likely[:n_likely], 0
    common_margins(columns, values, texts, likely, dense, likely_sums)
    for place in range(n_likely):
        product = likely_sums[place] + sums[likely[place]]
        if product > 0 and (n_found < len(ids) or product >= products[n_found - 1]):
            insert_sorted(ids, products, n_found, likely[place], product)
            n_found = min(n_found + 1, len(ids))
    return n_found, n_products


@lean_kernel
def sharpen(products: Floats) -> None:
    """Turn inner products of a bag with its matches, best first, into how much each counts.

    The strength of a match is the square of its inner product s, and falls steeply behind that of
    the best one, t: ``s^2 (s / t)^32``. Of texts alike, each counts in full; of others, hardly any
    but the best.
    """
    for place in range(len(products) - 1, -1, -1):  # the best one, which all need, last
        product = products[place]
        products[place] = product**2 * (product / products[0]) ** _SHARPNESS


@lean_kernel
def best_sums(
    columns: Ids,
    rare: SparseRows,
    n_added: int,
    sums: Floats,
    least_share: np.float32,
    ids: Ids,
    best: Floats,
) -> int:
    """Find the labels whose texts have the largest inner products with a bag.

    All sums are looked at, or, where labels are many more than products, those that can be other
    than 0. Once there is a much larger one, a sum is passed over.

    Parameters
    ----------
    columns : int32 (n,)
    rare : SparseRows
        The labels of each feature.
    n_added, sums : int, float32 (n_labels,)
        What `add_products` returned and wrote.
    least_share : float
        Of the largest sum so far: what is below is passed over.
    ids, best : int32, float32 (n_matches,)
        Written up to the number that is returned: best first, ties by smaller id.
    """
    if n_added > len(sums) // SUMS_PER_PRODUCT:
        return _best_of_all(sums, least_share, ids, best)
    labels = rare.columns
    n_found, least = 0, _LEAST_SUM
    for column in columns:
        first, after = span_of(rare.starts, column, len(rare.weights))
        for place in range(np.uint64(first), np.uint64(after)):
            label = id_at(labels, place)
            if label >= np.uint32(len(sums)) or sums[label] < least:
                continue
            is_new = True  # it comes once for each feature that it shares
            for found in range(n_found):
                is_new &= ids[found] != np.int32(label)
            if is_new:
                own = sums[label]
                n_found, least = _keep(ids, best, n_found, np.int32(label), own, least_share)
    return n_found


@lean_kernel
def _best_of_all(sums: Floats, least_share: np.float32, ids: Ids, best: Floats) -> int:
    """Note the largest of all sums, and return how many were noted."""
    n_found, label, least = 0, 0, _LEAST_SUM
    while label < len(sums):
        label = first_above(sums, label, least)
        for own in range(label, min(label + N_ABOVE, len(sums))):
            if sums[own] >= least:
                n_found, least = _keep(ids, best, n_found, own, sums[own], least_share)
        label += N_ABOVE
    return n_found


@lean_kernel
def _keep(
    ids: Ids, best: Floats, n: int, label: Any, total: np.float32, least_share: np.float32
) -> tuple[int, np.float32]:
    """Put a label into the sorted list; return how long that is, and the least that can enter."""
    insert_sorted(ids, best, n, label, total)
    n = min(n + 1, len(ids))
    least = best[0] * least_share
    return n, max(best[n - 1], least) if n == len(ids) else least


@lean_kernel
def add_links(
    matches: Ids, strengths: Floats, links: SparseRows, scratch: Floats, touched: Ids
) -> int:
    """Add the links of some matches to `scratch`, and return how many labels now have any.

    A link counts its weight times the strength of the match, if that is above 0.
    """
    starts, labels, weights, scales = links
    n_touched = 0
    for m in range(len(matches)):
        strength = strengths[m]
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


@lean_kernel
def strongest_links(touched: Ids, scratch: Floats, ids: Ids, votes: Floats) -> int:
    """Write the touched labels of the most votes, best first, and return how many."""
    n_kept = 0
    for label in touched:
        if n_kept < len(ids) or scratch[label] >= votes[n_kept - 1]:
            insert_sorted(ids, votes, n_kept, label, scratch[label])
            n_kept = min(n_kept + 1, len(ids))
    return n_kept
