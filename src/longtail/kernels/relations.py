"""Label texts that a point's text shares words with, and what such labels are linked to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.exact import insert_sorted
from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]
    Offsets = NDArray[np.int64]

__all__ = ["best_links", "best_matches", "link_votes"]


@kernel
def best_matches(
    row_starts: Ids,
    columns: Ids,
    values: Floats,
    posting_starts: Offsets,
    posting_labels: Ids,
    posting_weights: Floats,
    start: int,
    stop: int,
    scratch: Floats,
    ids: Ids,
    similarities: Floats,
) -> None:
    """Find the labels whose texts have the largest inner products with some bags.

    Weights are positive; what is not, in a damaged model, does not count.

    Parameters
    ----------
    row_starts, columns, values : int32, int32, float32
        The bags, as in `Bags`.
    posting_starts : int64 (n_columns + 1,)
    posting_labels, posting_weights : int32 and float32 (n_postings,)
        The labels whose texts hold column c, and its weight in them, are those from
        ``posting_starts[c]`` to ``posting_starts[c + 1]``.
    start, stop : int
        The bags to answer.
    scratch : float32 (n_labels,)
        Zeros, and so again on return; of one thread alone.
    ids, similarities : int32 and float32 (n, k)
        Written: best first, ties by smaller id, padded with -1 and 0.
    """
    touched = np.empty(len(scratch), np.int32)
    for i in range(start, stop):
        n_touched = 0
        for j in range(row_starts[i], row_starts[i + 1]):
            column, value = columns[j], values[j]
            for p in range(posting_starts[column], posting_starts[column + 1]):
                label, product = posting_labels[p], value * posting_weights[p]
                if not product > 0:  # else a label could be touched again and again
                    continue
                if scratch[label] == 0:
                    touched[n_touched] = label
                    n_touched += 1
                scratch[label] += product
        ids[i], similarities[i] = -1, 0
        _keep_best(touched[:n_touched], scratch, ids[i], similarities[i])


@kernel
def best_links(
    matches: Ids,
    similarities: Floats,
    link_starts: Offsets,
    link_labels: Ids,
    link_weights: Floats,
    start: int,
    stop: int,
    scratch: Floats,
    linked: Ids,
) -> None:
    """Find the labels to which each point's matches have the strongest links.

    A link counts its weight times the square of the match's similarity, if that is above 0.

    Parameters
    ----------
    matches, similarities : int32 and float32 (n, n_matches)
        Padded with -1.
    link_starts : int64 (n_labels + 1,)
    link_labels, link_weights : int32 and float32 (n_links,)
        Those of label l are from ``link_starts[l]`` to ``link_starts[l + 1]``.
    start, stop : int
        The points to answer.
    scratch : float32 (n_labels,)
        Zeros, and so again on return; of one thread alone.
    linked : int32 (n, k)
        Written: best first, ties by smaller id, padded with -1.
    """
    votes = np.empty(linked.shape[1], np.float32)
    for i in range(start, stop):
        touched = _add_links(
            matches[i], similarities[i], link_starts, link_labels, link_weights, scratch
        )
        linked[i] = -1
        _keep_best(touched, scratch, linked[i], votes)


@kernel
def link_votes(
    matches: Ids,
    similarities: Floats,
    link_starts: Offsets,
    link_labels: Ids,
    link_weights: Floats,
    labels: Ids,
    start: int,
    stop: int,
    scratch: Floats,
    votes: Floats,
) -> None:
    """Write how strongly each point's matches are linked to its candidates; see `best_links`.

    `labels` (n, size) is padded with -1, whose votes are 0.
    """
    for i in range(start, stop):
        touched = _add_links(
            matches[i], similarities[i], link_starts, link_labels, link_weights, scratch
        )
        for j in range(labels.shape[1]):
            votes[i, j] = scratch[labels[i, j]] if labels[i, j] >= 0 else np.float32(0)
        for label in touched:
            scratch[label] = 0


@kernel
def _add_links(
    matches: Ids,
    similarities: Floats,
    link_starts: Offsets,
    link_labels: Ids,
    link_weights: Floats,
    scratch: Floats,
) -> Ids:
    """Add the links of one point's matches to `scratch` and return the labels that have any."""
    n_links = 0
    for match in matches:
        if match >= 0:
            n_links += link_starts[match + 1] - link_starts[match]
    touched = np.empty(n_links, np.int32)
    n_touched = 0
    for m in range(len(matches)):
        if matches[m] < 0:
            continue
        strength = similarities[m] * similarities[m]
        for t in range(link_starts[matches[m]], link_starts[matches[m] + 1]):
            label, product = link_labels[t], strength * link_weights[t]
            if not product > 0:
                continue
            if scratch[label] == 0:
                touched[n_touched] = label
                n_touched += 1
            scratch[label] += product
    return touched[:n_touched]


@kernel
def _keep_best(touched: Ids, scratch: Floats, ids: Ids, values: Floats) -> None:
    """Write the touched labels with the largest scratch, and set all of it back to 0."""
    n_kept, k = 0, len(ids)
    for label in touched:
        value = scratch[label]
        scratch[label] = 0
        if n_kept < k or value >= values[k - 1]:
            insert_sorted(ids, values, n_kept, label, value)
            n_kept = min(n_kept + 1, k)
