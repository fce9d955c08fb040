"""Labels that held-out points alone have, and how a blend is not misled by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.data.csr import with_entries

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.blend.evidence import Evidence

__all__ = ["only_held_out", "with_labels_hidden"]


def only_held_out(seen: csr_array, held_out: csr_array, seed: int) -> NDArray[np.bool_]:
    """Return labels that held-out points alone have, which a blend is better not taught by.

    Such a label is there at all because it is true of a held-out point. So among the candidates of
    these points it is true far more often than it will be among those of others, and a blend that
    sees how common a label is would learn to trust whatever the sources have seen no point of.
    Where there are labels without any points, known by their texts, as many of those that held-out
    points alone have stand for them, and are not among those returned.

    Parameters
    ----------
    seen, held_out : csr_array (n_points, n_labels)
        Labels of the points that the sources have seen, and of those that they have not.
    seed : int
        By which those that stand for labels without points are drawn.

    Returns
    -------
    bool (n_labels,)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.only_held_out import only_held_out
    >>> only_held_out(csr_array([[1, 0]]), csr_array([[1, 1]]), seed=0).tolist()
    [False, True]
    """
    n_seen, n_held_out = (np.asarray(labels.sum(axis=0)) for labels in (seen, held_out))
    alone = np.flatnonzero((n_seen == 0) & (n_held_out > 0))
    n_without = np.count_nonzero((n_seen == 0) & (n_held_out == 0))
    is_aside = np.zeros(seen.shape[1], bool)
    is_aside[np.random.default_rng(seed).permutation(alone)[n_without:]] = True
    return is_aside


def with_labels_hidden(
    evidence: Evidence, truth: csr_array, is_aside: NDArray[np.bool_]
) -> tuple[Evidence, csr_array]:
    """Return evidence that sets some labels aside, true and false, and the true labels left.

    Parameters
    ----------
    evidence : Evidence
    truth : csr_array (n, n_labels)
        The true labels of its points.
    is_aside : bool (n_labels,)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.only_held_out import with_labels_hidden
    >>> from longtail.blend.evidence import Evidence
    >>> labels, none = np.array([[1, 0, -1]], np.int32), np.zeros(2, np.float32)
    >>> evidence = Evidence(labels, np.zeros((1, 1, 3), np.float32), none[:1], none)
    >>> left, truth = with_labels_hidden(evidence, csr_array([[1, 1]]), np.array([False, True]))
    >>> left.judged.tolist(), truth.toarray().tolist()
    ([[-1, 0, -1]], [[1, 0]])
    """
    if not is_aside.any():
        return evidence, truth
    left = evidence.with_aside(is_aside[evidence.labels])
    return left, with_entries(truth, ~is_aside[truth.indices])
