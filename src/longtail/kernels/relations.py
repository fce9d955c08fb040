"""Label texts that points name and what these are linked to, for many points at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import kernel
from longtail.kernels.label_links import add_links, match_texts, sharpen, strongest_links
from longtail.kernels.sparse_lookup import clear_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.sparse_lookup import SparseRows, SplitRows

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["best_links", "best_matches", "link_votes", "sharpen_rows"]


@kernel
def best_matches(
    row_starts: Ids,
    columns: Ids,
    values: Floats,
    texts: SplitRows,
    n_likely: int,
    start: int,
    stop: int,
    sums: Floats,
    dense: Floats,
    ids: Ids,
    products: Floats,
) -> None:
    """Find the labels whose texts are most like some bags; see `match_texts`.

    Parameters
    ----------
    row_starts, columns, values : int32, int32, float32
        The bags, as in `Bags`.
    texts : SplitRows
        Of the labels.
    n_likely : int
        Labels that are looked at closely.
    start, stop : int
        The bags to answer.
    sums, dense : float32 (n_labels,) and (n_common + 1,)
        Zeros, and so again on return; of one thread alone.
    ids, products : int32 and float32 (n, k)
        Written: best first, ties by smaller id, padded with -1 and 0.
    """
    likely, likely_sums = np.empty(n_likely, np.int32), np.empty(n_likely, np.float32)
    for i in range(start, stop):
        bag = slice(row_starts[i], row_starts[i + 1])
        own, weights = columns[bag], values[bag]
        ids[i], products[i] = -1, 0
        _, n_products = match_texts(
            own, weights, texts, sums, dense, likely, likely_sums, ids[i], products[i]
        )
        clear_sums(own, texts.rare, n_products, sums)


@kernel
def sharpen_rows(ids: Ids, products: Floats) -> None:
    """Turn what `best_matches` wrote into strengths; see `sharpen`."""
    for i in range(len(products)):
        n = 0
        while n < ids.shape[1] and ids[i, n] >= 0:
            n += 1
        sharpen(products[i, :n])


@kernel
def best_links(
    matches: Ids,
    strengths: Floats,
    links: SparseRows,
    start: int,
    stop: int,
    scratch: Floats,
    linked: Ids,
) -> None:
    """Find the labels to which each point's matches have the strongest links.

    Parameters
    ----------
    matches, strengths : int32 and float32 (n, n_matches)
        Padded with -1.
    links : SparseRows
        Of each label.
    start, stop : int
        The points to answer.
    scratch : float32 (n_labels,)
        Zeros, and so again on return; of one thread alone.
    linked : int32 (n, k)
        Written: best first, ties by smaller id, padded with -1.
    """
    touched = np.empty(len(scratch), np.int32)
    votes = np.empty(linked.shape[1], np.float32)
    for i in range(start, stop):
        n_touched = _add_links_of(matches[i], strengths[i], links, scratch, touched)
        linked[i] = -1
        strongest_links(touched[:n_touched], scratch, linked[i], votes)
        for label in touched[:n_touched]:
            scratch[label] = 0


@kernel
def link_votes(
    matches: Ids,
    strengths: Floats,
    links: SparseRows,
    labels: Ids,
    start: int,
    stop: int,
    scratch: Floats,
    votes: Floats,
) -> None:
    """Write how strongly each point's matches are linked to its candidates; see `best_links`.

    `labels` (n, size) is padded with -1, whose votes are 0.
    """
    touched = np.empty(len(scratch), np.int32)
    for i in range(start, stop):
        n_touched = _add_links_of(matches[i], strengths[i], links, scratch, touched)
        for j in range(labels.shape[1]):
            votes[i, j] = scratch[labels[i, j]] if labels[i, j] >= 0 else np.float32(0)
        for label in touched[:n_touched]:
            scratch[label] = 0


@kernel
def _add_links_of(
    matches: Ids, strengths: Floats, links: SparseRows, scratch: Floats, touched: Ids
) -> int:
    """Add the links of one point's matches to `scratch`, but for the padding; see `add_links`."""
    n = 0
    while n < len(matches) and matches[n] >= 0:
        n += 1
    return add_links(matches[:n], strengths[:n], links, scratch, touched)
