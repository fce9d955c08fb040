"""Small graphs for the tests of kernels."""

from __future__ import annotations

import numpy as np

from longtail.kernels.arrays import read_only


def random_graph(random, n, width):
    """Rows of distinct neighbours, some short, none its own neighbour."""
    neighbours = np.full((n, width), -1, np.int32)
    for node in range(n):
        others = random.permutation(np.delete(np.arange(n), node))
        count = min(int(random.integers(0, width + 1)), n - 1)
        neighbours[node, :count] = others[:count]
    return read_only(neighbours, np.int32)
