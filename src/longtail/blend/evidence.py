"""What the sources of a blend say of each point's candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.arrays import read_only
from longtail.kernels.blend import N_CONTEXT_VIEWS, N_VIEWS, view_rows
from longtail.kernels.jit import over_row_chunks
from longtail.metrics.hits import row_chunks, true_among

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Doubles = NDArray[np.float64]
    Floats = NDArray[np.float32]

__all__ = ["Evidence"]

SAME_FOR_ALL = 1e-4  # a source with a smaller spread tells nothing

_POINTS_AT_ONCE = 512


@dataclass(frozen=True)
class Evidence:
    """What each source says of each point's candidates.

    Parameters
    ----------
    labels : int32 (n, size)
        The candidates, padded with -1.
    values : float32 (n, n_sources, size)
        What each source says of each candidate; for padding it does not matter.
    nearness : float32 (n,)
        Similarity of the nearest training point.
    commonness : float32 (n_labels,)
        ``log(1 + number of training points)`` of each label.
    is_aside : bool (n, size) or None
        Which candidates a blend is neither taught nor judged by, though it sees them as it will see
        their like; None for none.
    source_of_texts : int or None
        Which source says how much a label's text is like the point's; None where labels have none.
    n_tokens : int32 (n,) or None
        How many tokens each point's bag has; None where it does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.blend.evidence import Evidence
    >>> evidence = Evidence(
    ...     labels=np.array([[2, 0, -1]], np.int32),
    ...     values=np.array([[[1.0, 3.0, 0.0]]], np.float32),
    ...     nearness=np.array([0.5], np.float32),
    ...     commonness=np.log1p(np.array([4, 0, 1], np.float32)),
    ... )
    >>> evidence.views()[0, :, :2].tolist()  # the value, and how far that is behind the best
    [[1.0, -2.0], [3.0, 0.0], [0.0, 0.0]]
    """

    labels: NDArray[np.int32]
    values: Floats
    nearness: Floats
    commonness: Floats
    is_aside: NDArray[np.bool_] | None = None
    source_of_texts: int | None = None
    n_tokens: NDArray[np.int32] | None = None

    @property
    def judged(self) -> NDArray[np.int32]:
        """The candidates by which a blend is judged: int32 (n, size), -1 for others and padding."""
        return self.labels if self.is_aside is None else np.where(self.is_aside, -1, self.labels)

    def of_judged(self, scores: Floats) -> Floats:
        """Return the scores (n, size) of the `judged` candidates, and -inf of what is aside."""
        return scores if self.is_aside is None else np.where(self.is_aside, -np.inf, scores)

    def setting_aside(self, pairs: csr_array | None) -> Evidence:
        """Return the evidence with the candidates that are among some pairs set aside.

        Parameters
        ----------
        pairs : csr_array (n, n_labels) or None

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.sparse import csr_array
        >>> from longtail.blend.evidence import Evidence
        >>> labels, none = np.array([[2, 0, -1]], np.int32), np.zeros(3, np.float32)
        >>> evidence = Evidence(labels, np.zeros((1, 1, 3), np.float32), none[:1], none)
        >>> evidence.setting_aside(csr_array([[1, 1, 0]])).judged.tolist()
        [[2, -1, -1]]
        """
        return self if pairs is None else self.with_aside(true_among(self.labels, pairs))

    def with_aside(self, candidates: NDArray[np.bool_]) -> Evidence:
        """Return the evidence with more candidates set aside, bool (n, size)."""
        both = candidates if self.is_aside is None else self.is_aside | candidates
        return replace(self, is_aside=both)

    @property
    def n_views(self) -> int:
        """How many views of a candidate a `ScoreNetwork` sees."""
        n_sources: int = self.values.shape[1]
        return n_sources * N_VIEWS + N_CONTEXT_VIEWS

    def views(self, n_threads: int = 1) -> Floats:
        """Return what a `ScoreNetwork` sees: float32 (n, size, n_views), 0 for padding.

        See `longtail.kernels.blend.view_evidence`.
        """
        views = np.zeros((*self.labels.shape, self.n_views), np.float32)
        arguments = self.as_read_only()

        def work(start: int, stop: int) -> None:
            view_rows(*arguments, start, stop, views)

        over_row_chunks(work, len(views), n_threads=n_threads, chunk=64)
        return views

    def of_rows(self, rows: NDArray[np.int64] | slice) -> Evidence:
        """Return the evidence of some points."""
        return replace(
            self,
            labels=self.labels[rows],
            values=self.values[rows],
            nearness=self.nearness[rows],
            is_aside=None if self.is_aside is None else self.is_aside[rows],
            n_tokens=None if self.n_tokens is None else self.n_tokens[rows],
        )

    def best_said(self) -> Floats:
        """Return the best that each source says of a point, (n, n_sources); -inf of no candidate.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.blend.evidence import Evidence
        >>> labels, none = np.array([[2, 0, -1]], np.int32), np.zeros(3, np.float32)
        >>> values = np.array([[[1.0, 3.0, 9.0], [5.0, 4.0, 9.0]]], np.float32)
        >>> Evidence(labels, values, none[:1], none).best_said().tolist()
        [[3.0, 5.0]]
        """
        is_real = (self.labels >= 0)[:, np.newaxis]
        best: Floats = np.max(self.values, axis=2, initial=-np.inf, where=is_real)
        return best

    def behind_best(self) -> Floats:
        """Return what each source says, less the point's best: (n, size, n_sources), 0 for padding.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.blend.evidence import Evidence
        >>> labels = np.array([[2, 0, -1]], np.int32)
        >>> values = np.array([[[1.0, 3.0, 9.0]]], np.float32)
        >>> none = np.zeros(3, np.float32)
        >>> Evidence(labels, values, none[:1], none).behind_best()[0, :, 0].tolist()
        [-2.0, 0.0, 0.0]
        """
        is_real = (self.labels >= 0)[:, np.newaxis]
        best = self.best_said()[:, :, np.newaxis]
        behind: Floats = np.subtract(
            self.values, best, out=np.zeros_like(self.values), where=is_real
        )
        return behind.transpose(0, 2, 1)

    def behind_commonest(self) -> Floats:
        """Return the commonness of each candidate, less that of the point's commonest: (n, size).

        0 for padding.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.blend.evidence import Evidence
        >>> labels, commonness = np.array([[2, 0, -1]], np.int32), np.array([1, 9, 3], np.float32)
        >>> none = np.zeros(1, np.float32)
        >>> Evidence(labels, np.zeros((1, 1, 3), np.float32), none, commonness).behind_commonest()
        array([[ 0., -2.,  0.]], dtype=float32)
        """
        is_real = self.labels >= 0
        known = self.commonness[self.labels]
        most = known.max(axis=1, keepdims=True, initial=-np.inf, where=is_real)
        behind: Floats = np.subtract(known, most, out=np.zeros_like(known), where=is_real)
        return behind

    def best_match(self) -> Floats:
        """Return how like the point's text that of the likest candidate is; 0 of others, (n, size).

        Of things of one kind, such as pages that refer to pages, that one is the point itself.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.blend.evidence import Evidence
        >>> labels, none = np.array([[2, 0, -1]], np.int32), np.zeros(3, np.float32)
        >>> values = np.array([[[0.25, 0.75, 9.0]]], np.float32)
        >>> Evidence(labels, values, none[:1], none, source_of_texts=0).best_match().tolist()
        [[0.0, 0.75, 0.0]]
        """
        matches = np.zeros(self.labels.shape, np.float32)
        if self.source_of_texts is not None and matches.size:
            said = np.where(self.labels >= 0, self.values[:, self.source_of_texts], 0)
            best = said.argmax(axis=1)[:, np.newaxis]
            np.put_along_axis(matches, best, np.take_along_axis(said, best, axis=1), axis=1)
        return matches

    def inverse_spreads(self) -> Floats:
        """Return 1 over the deviation of each source's `behind_best`; 0 where it is always same.

        Of all candidates but padding, float32 (n_sources,).

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.blend.evidence import Evidence
        >>> labels, none = np.array([[2, 0, -1]], np.int32), np.zeros(3, np.float32)
        >>> values = np.array([[[1.0, 3.0, 9.0], [5.0, 5.0, 9.0]]], np.float32)
        >>> Evidence(labels, values, none[:1], none).inverse_spreads().tolist()
        [1.0, 0.0]
        """
        mean = self._mean_behind(lambda behind: behind)
        spread = np.sqrt(self._mean_behind(lambda behind: (behind - mean) ** 2))
        inverse = np.divide(1, spread, out=np.zeros_like(spread), where=spread > SAME_FOR_ALL)
        return inverse.astype(np.float32)

    def _mean_behind(self, work: Callable[[Doubles], Doubles]) -> Doubles:
        """Return the mean of something of all candidates' `behind_best`, (n_sources,).

        Of a few points at a time: that of all takes as much memory as all that the sources say.
        """
        total, n_real = np.zeros(self.values.shape[1]), 0
        for rows in row_chunks(len(self.labels), _POINTS_AT_ONCE):
            some = self.of_rows(rows)
            is_real = some.labels >= 0
            total += work(some.behind_best()[is_real].astype(np.float64)).sum(axis=0)
            n_real += int(np.count_nonzero(is_real))
        return total / max(n_real, 1)

    def as_read_only(self) -> tuple[NDArray[np.int32], Floats, Floats, Floats]:
        """Return labels, values, commonness and nearness as the kernels take them."""
        return (
            read_only(self.labels, np.int32),
            read_only(self.values, np.float32),
            read_only(self.commonness, np.float32),
            read_only(self.nearness, np.float32),
        )
