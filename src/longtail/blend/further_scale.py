"""How much similarity counts against frequency among the labels that follow the candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.blend.label_head import LabelHead

    Floats = NDArray[np.float32]

__all__ = ["learn_further_scale"]

N_BEST = 100
SHARES = (1.0, 0.75, 0.5, 0.35)
MOST_LOGITS = 5_000_000
POINTS = (32, 512)  # fewest where labels are millions, most where they are few
BLOCK = 16  # points at once: the logits of millions of labels take memory


def learn_further_scale(points: Floats, head: LabelHead, truth: csr_array) -> float:
    """Return the scale by which a head ranks most true labels of held-out points among 100.

    A head is trained with a scale that tells labels of its own training points apart. Of other
    points it is too sure, the more so the fewer it has learnt from: with less weight on the angle,
    frequent labels come before those that are a little nearer.

    Parameters
    ----------
    points : float32 (n, dimension)
        Unit vectors of points that the head has not seen.
    head : LabelHead
    truth : csr_array (n, n_labels)

    Returns
    -------
    float
        The head's own scale, or a share of it, down to a third.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.further_scale import learn_further_scale
    >>> from longtail.blend.label_head import LabelHead
    >>> head = LabelHead.of(np.eye(2, dtype=np.float32), np.zeros(2, np.float32), 16.0)
    >>> learn_further_scale(np.eye(2, dtype=np.float32), head, csr_array(np.eye(2)))
    16.0
    """
    fewest, most = POINTS
    n_asked = min(int(np.clip(MOST_LOGITS // max(len(head.bias), 1), fewest, most)), len(points))
    # From all over the points, which may be in the order of what they are about.
    asked = np.arange(n_asked) * len(points) // max(n_asked, 1)
    with_vector = np.flatnonzero(head.row_of_label >= 0)
    rows, bias = head.row_of_label[with_vector], head.bias[with_vector]
    points, truth = points[asked], truth[asked][:, with_vector]
    scales, n_found = head.scale * np.array(SHARES, np.float32), np.zeros(len(SHARES), np.int64)
    for start in range(0, n_asked, BLOCK):
        some = slice(start, start + BLOCK)
        cosines = points[some] @ head.vectors.T
        for row, is_true in zip(cosines, truth[some].toarray() > 0, strict=True):
            true, own = np.flatnonzero(is_true), row[rows]
            n_found += [_n_found(scale * own + bias, true) for scale in scales]
    return float(scales[n_found.argmax()])


def _n_found(logits: Floats, labels: NDArray[np.int64]) -> int:
    """Return how many of a point's true labels are among its best."""
    return sum(int((logits > logits[label]).sum()) < N_BEST for label in labels)
