"""Tables of label vectors that go from one compiled model into the next as they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.compiled.scorer import CompiledScorer
from longtail.kernels.arrays import read_only
from longtail.kernels.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.answer import Head

__all__ = ["with_heads_of"]


def with_heads_of(
    scorer: CompiledScorer, was: CompiledScorer, kept: NDArray[np.int64]
) -> CompiledScorer:
    """Return a scorer whose heads but the first have vectors of a former one, too.

    To take out the vectors of a million labels and to put them away again takes longer than to add
    a label.

    Parameters
    ----------
    scorer : CompiledScorer
        Its further heads know the vectors of the labels behind the kept ones, if any.
    was : CompiledScorer
        Of the same numbers of heads and bits.
    kept : int64 (n_kept,)
        The labels of `was` that the first ones of `scorer` are.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.carried_heads import with_heads_of
    >>> from longtail.compiled.expanded import expanded
    >>> from longtail.compiled.scorer import CompiledScorer
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> was = LongtailClassifier().fit(texts, labels).predictor_.scorer
    >>> bare = CompiledScorer.of(expanded(was, further_vectors=False), was.dtype, like=was)
    >>> [len(head.rows.values) for head in bare.parts.heads]
    [2, 0, 0]
    >>> whole = with_heads_of(bare, was, np.arange(2))
    >>> [len(head.rows.values) for head in whole.parts.heads]
    [2, 2, 2]
    """
    first, *others = scorer.parts.heads
    carried = [_joined(h, old, kept) for h, old in zip(others, was.parts.heads[1:], strict=True)]
    parts = scorer.parts._replace(heads=(first, *carried))
    return CompiledScorer(parts, scorer.sizes, scorer.related)


def _joined(head: Head, was: Head, kept: NDArray[np.int64]) -> Head:
    """Return a head with the vectors of kept labels before its own."""
    old = was.row_of_label[kept]
    is_known = old >= 0
    new = head.row_of_label[len(kept) :]
    n_old = int(is_known.sum())
    places = [
        np.where(is_known, np.cumsum(is_known) - 1, -1),
        np.where(new >= 0, n_old + new, -1),
    ]
    rows = old[is_known]
    values = np.concatenate([was.rows.values[rows], head.rows.values])
    scales = head.rows.scales
    if len(was.rows.scales):
        scales = np.concatenate([was.rows.scales[rows], scales])
    return head._replace(
        rows=Rows(read_only(values, values.dtype.type), read_only(scales, np.float32)),
        row_of_label=read_only(np.concatenate(places), np.int32),
    )
