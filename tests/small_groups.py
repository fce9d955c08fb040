"""Vectors in groups that are well apart, for tests of clusters."""

from __future__ import annotations

import numpy as np


def planted(n_groups, per_group, n_columns=40, seed=0):
    """Rows in `n_groups` well separated groups, shuffled; return them with their groups."""
    random = np.random.default_rng(seed)
    centres = np.linalg.qr(random.standard_normal((n_columns, n_groups)))[0].T
    groups = random.permutation(np.repeat(np.arange(n_groups), per_group))
    noise = 0.03 * random.standard_normal((len(groups), n_columns))
    return (centres[groups] + noise).astype(np.float32), groups
