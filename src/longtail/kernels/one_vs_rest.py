"""The best of all labels, each of them scored: no shortlist, nothing left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import kernel
from longtail.kernels.label_tree import add_margins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.kernels.label_tree import TrainedTree

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["best_of_all", "keep_best"]


@kernel
def best_of_all(
    bags: Bags, blocks: TrainedTree, start: int, stop: int, best_ids: Ids, best_scores: Floats
) -> None:
    """Write the labels with the largest margins of each row, padded with -1 and -inf.

    `blocks` is a tree of two levels: the children of the root are blocks of labels, whose margins
    fit into the nearest cache together; its labels ascend. A row without entries gets no labels.
    """
    n_blocks = blocks.child_starts[1] - blocks.child_starts[0]
    n_inner = n_blocks + 1
    most = 0
    for block in range(1, n_inner):
        most = max(most, blocks.child_starts[block + 1] - blocks.child_starts[block])
    margins = np.empty(most, np.float32)
    for i in range(start, stop):
        best_ids[i], best_scores[i] = -1, -np.inf
        row = slice(bags.row_starts[i], bags.row_starts[i + 1])
        columns, values = bags.columns[row], bags.values[row]
        n_kept = 0
        for block in range(1, n_inner if len(columns) else 1):
            first, last = blocks.child_starts[block], blocks.child_starts[block + 1]
            own = margins[: last - first]
            own[:] = blocks.bias[first - 1 : last - 1]
            add_margins(columns, values, blocks, block, own)
            labels = blocks.labels[first - n_inner : last - n_inner]
            n_kept = keep_best(labels, own, n_kept, best_ids[i], best_scores[i])


@kernel
def keep_best(labels: Ids, scores: Floats, n_kept: int, best_ids: Ids, best_scores: Floats) -> int:
    """Merge more labels, ascending, into the best so far; return how many of those there are.

    Of equal scores the earlier label stays in front.
    """
    for place in range(len(labels)):
        score = scores[place]
        if n_kept == len(best_ids) and (n_kept == 0 or score <= best_scores[n_kept - 1]):
            continue
        n_kept = min(n_kept + 1, len(best_ids))
        to = n_kept - 1
        while to > 0 and best_scores[to - 1] < score:
            best_ids[to], best_scores[to] = best_ids[to - 1], best_scores[to - 1]
            to -= 1
        best_ids[to], best_scores[to] = labels[place], score
    return n_kept
