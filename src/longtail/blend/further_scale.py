"""How much similarity and texts count among the labels that follow the candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.data.rows import evenly_spaced
from longtail.metrics.hits import row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.label_head import LabelHead
    from longtail.blend.relations import LabelRelations

    Floats = NDArray[np.float32]

__all__ = ["learn_further_scale", "learn_further_text_scale"]

N_BEST = 100
SHARES = (1.0, 0.75, 0.5, 0.35)
TEXT_SCALES = (0.0, 10.0, 20.0, 40.0)
MOST_LOGITS = 5_000_000
POINTS = (32, 512)  # fewest where labels are millions, most where they are few
MOST_AT_ONCE, LOGITS_AT_ONCE = 16, 4_000_000  # points, and fewer where labels are millions


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
    scales = [head.scale * np.float32(share) for share in SHARES]
    asked = _asked(len(points), len(head.bias))
    pairs = [(scale, 0.0) for scale in scales]
    return float(scales[_n_found(points[asked], head, truth[asked], pairs).argmax()])


def learn_further_text_scale(
    points: Floats,
    head: LabelHead,
    truth: csr_array,
    scale: float,
    features: csr_array,
    relations: LabelRelations | None,
) -> float:
    """Return how much label texts count beside the head, by the same measure.

    A label that no point has is hardly known but by its text, and a word that the text shares with
    a point's tells more of it than the angle of two vectors does.

    Parameters
    ----------
    points, head, truth
        See `learn_further_scale`.
    scale : float
        What that returned.
    features : csr_array (n, n_features)
        The bags of the points.
    relations : LabelRelations or None
        None where labels have no texts.

    Returns
    -------
    float
        0 where texts find no more.

    Examples
    --------
    The head takes each point for the other's, but the point shares a word with its label's text.
    (Where there are a hundred labels at most, all are found.)

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.further_scale import learn_further_text_scale
    >>> from longtail.blend.label_head import LabelHead
    >>> from longtail.blend.relations import LabelRelations
    >>> unit = np.eye(200, dtype=np.float32)
    >>> head = LabelHead.of(-unit, np.zeros(200, np.float32), 16.0)
    >>> own = csr_array(unit)
    >>> relations = LabelRelations.build(own, own, own, n_threads=1)
    >>> [learn_further_text_scale(unit, head, own, 16.0, own, given) for given in (relations, None)]
    [20.0, 0.0]
    """
    if relations is None:
        return 0.0
    pairs = [(np.float32(scale), text_scale) for text_scale in TEXT_SCALES]
    asked = _asked(len(points), len(head.bias))
    sums = relations.rare_sums(features[asked])
    return TEXT_SCALES[_n_found(points[asked], head, truth[asked], pairs, sums).argmax()]


def _asked(n_points: int, n_labels: int) -> NDArray[np.int64]:
    """Return some points from all over, as they may be in the order of what they are about."""
    fewest, most = POINTS
    n_asked = int(np.clip(MOST_LOGITS // max(n_labels, 1), fewest, most))
    return evenly_spaced(min(n_asked, n_points), n_points)


def _n_found(
    points: Floats,
    head: LabelHead,
    truth: csr_array,
    pairs: list[tuple[np.float32, float]],
    sums: csr_array | None = None,
) -> NDArray[np.int64]:
    """Return how many true labels of the points are among the best, by each pair of scales.

    `sums` (n, n_labels) are what the texts of labels have in common with the points.
    """
    with_vector = np.flatnonzero(head.row_of_label >= 0)
    rows, bias = head.row_of_label[with_vector], head.bias[with_vector]
    truth = truth[:, with_vector]
    texts = csr_array(truth.shape, dtype=np.float32) if sums is None else sums[:, with_vector]
    n_found = np.zeros(len(pairs), np.int64)
    block = int(np.clip(LOGITS_AT_ONCE // max(len(head.bias), 1), 1, MOST_AT_ONCE))
    for some in row_chunks(len(points), block):
        told = (points[some] @ head.vectors.T, truth[some].toarray() > 0, texts[some].toarray())
        for row, is_true, own_texts in zip(*told, strict=True):
            true, products = np.flatnonzero(is_true), row[rows]
            n_found += [
                _n_among_best(scale * products + bias + np.float32(text_scale) * own_texts, true)
                for scale, text_scale in pairs
            ]
    return n_found


def _n_among_best(logits: Floats, labels: NDArray[np.int64]) -> int:
    """Return how many of a point's true labels are among its best."""
    return sum(int((logits > logits[label]).sum()) < N_BEST for label in labels)
