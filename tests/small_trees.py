"""Random trees of labels."""

from __future__ import annotations

import numpy as np

from longtail.surrogates.label_tree import LabelTree


def a_tree(seed, n_labels, depth=3):
    """Random nodes, with labels in the order of their leaves."""
    random = np.random.default_rng(seed)
    paths = np.vstack([np.zeros(n_labels, int), random.integers(0, 3, (depth, n_labels))])
    nodes = LabelTree.of_paths(paths).nodes
    return LabelTree(nodes[:, np.argsort(nodes[-1], kind="stable")])
