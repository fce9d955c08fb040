"""The learned blend: a small network that weighs what several sources say of a candidate."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.blend import (
    LARGEST_VIEW,
    N_CONTEXT_VIEWS,
    N_VIEWS,
    blend_rows,
    view_rows,
)
from longtail.kernels.jit import over_row_chunks
from longtail.metrics.hits import true_among

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import csr_array

    Floats = NDArray[np.float32]

__all__ = ["Evidence", "ScoreNetwork", "count_sources", "log_sums"]

MOST_BEHIND = 50.0  # where a plain sum of sources cuts off what is behind the best
SAME_FOR_ALL = 1e-4  # a source with a smaller spread counts for nothing in such a sum


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

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.blend.score_network import Evidence
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
        >>> from longtail.blend.score_network import Evidence
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

    def views(self, n_threads: int = 1) -> Floats:
        """Return what a `ScoreNetwork` sees: float32 (n, size, n_views), 0 for padding.

        See `longtail.kernels.blend.view_evidence`.
        """
        n_views = self.values.shape[1] * N_VIEWS + N_CONTEXT_VIEWS
        views = np.zeros((*self.labels.shape, n_views), np.float32)
        arguments = self.as_read_only()

        def work(start: int, stop: int) -> None:
            view_rows(*arguments, start, stop, views)

        over_row_chunks(work, len(views), n_threads=n_threads, chunk=64)
        return views

    def of_rows(self, rows: NDArray[np.int64]) -> Evidence:
        """Return the evidence of some points."""
        return replace(
            self,
            labels=self.labels[rows],
            values=self.values[rows],
            nearness=self.nearness[rows],
            is_aside=None if self.is_aside is None else self.is_aside[rows],
        )

    def behind_best(self) -> Floats:
        """Return what each source says, less the point's best: (n, size, n_sources), 0 for padding.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.blend.score_network import Evidence
        >>> labels = np.array([[2, 0, -1]], np.int32)
        >>> values = np.array([[[1.0, 3.0, 9.0]]], np.float32)
        >>> none = np.zeros(3, np.float32)
        >>> Evidence(labels, values, none[:1], none).behind_best()[0, :, 0].tolist()
        [-2.0, 0.0, 0.0]
        """
        is_real = (self.labels >= 0)[:, np.newaxis]
        best = np.max(self.values, axis=2, keepdims=True, initial=-np.inf, where=is_real)
        behind: Floats = np.subtract(
            self.values, best, out=np.zeros_like(self.values), where=is_real
        )
        return behind.transpose(0, 2, 1)

    def inverse_spreads(self, behind: Floats) -> Floats:
        """Return 1 over the deviation of each source's `behind_best`; 0 where it is always same."""
        said = behind[self.labels >= 0]
        spread = said.std(axis=0) if len(said) else np.zeros(said.shape[1], np.float32)
        tells = spread > SAME_FOR_ALL
        inverse: Floats = np.divide(1, spread, out=np.zeros_like(spread), where=tells)
        return inverse

    def as_read_only(self) -> tuple[NDArray[np.int32], Floats, Floats, Floats]:
        """Return labels, values, commonness and nearness as the kernels take them."""
        return (
            read_only(self.labels, np.int32),
            read_only(self.values, np.float32),
            read_only(self.commonness, np.float32),
            read_only(self.nearness, np.float32),
        )


@dataclass(frozen=True)
class ScoreNetwork:
    """Two ReLU layers and a weighted sum over the views of a candidate.

    The views of a source are its value, how far that is behind the point's best, the best itself,
    the logarithm of the rank, and how much the best stands out (`longtail.kernels.blend`): by
    them the network can learn, say, that what a title names most plainly is the entry itself and
    none of its labels.

    Parameters
    ----------
    centre, scale : float32 (n_views,)
        Views are centred, multiplied by the scale and cut to 5 at most.
    matrix1 : float32 (n_views, n_hidden1)
    bias1 : float32 (n_hidden1,)
    matrix2 : float32 (n_hidden1, n_hidden2)
    bias2 : float32 (n_hidden2,)
    last : float32 (n_hidden2,)
    level : float32 (1,)
        That times the logarithm of the sum of a point's exponentiated scores is taken from all of
        them. It changes no order; with 1, scores are the logarithms of a softmax. See
        `longtail.blend.level`.

    Raises
    ------
    InputError
        If the arrays do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.blend.score_network import Evidence, ScoreNetwork
    >>> labels = np.array([[2, 0, -1]], np.int32)
    >>> values = np.array([[[1.0, 3.0, 0.0], [5.0, 4.0, 0.0]]], np.float32)
    >>> evidence = Evidence(labels, values, np.ones(1, np.float32), np.zeros(3, np.float32))
    >>> network = ScoreNetwork.of_source(0, n_sources=2)
    >>> labels[0, network.scores(evidence)[0].argmax()].item()
    0
    """

    centre: Floats
    scale: Floats
    matrix1: Floats
    bias1: Floats
    matrix2: Floats
    bias2: Floats
    last: Floats
    level: Floats = field(default_factory=lambda: np.zeros(1, np.float32))

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held, and refuse those that do not fit."""
        for part in fields(self):
            object.__setattr__(self, part.name, read_only(getattr(self, part.name), np.float32))
        shapes = tuple(getattr(self, part.name).shape for part in fields(self))
        views, hidden1, hidden2 = self.centre.shape, self.bias1.shape, self.bias2.shape
        layers = (views, views, views + hidden1, hidden1, hidden1 + hidden2, hidden2, hidden2)
        fitting = (*layers, (1,))
        if shapes != fitting or not len(views) == len(hidden1) == len(hidden2) == 1:
            raise InputError(
                f"The layers of a score network do not fit together: their shapes are {shapes}. "
                "Learn it again."
            )

    @classmethod
    def of_source(cls, source: int, n_sources: int) -> ScoreNetwork:
        """Return the network that says what one source says, relative to the point's best.

        Parameters
        ----------
        source : int
            0 to ``n_sources - 1``.
        n_sources : int
        """
        return cls.of_weights(np.arange(n_sources) == source)

    @classmethod
    def of_all(cls, evidence: Evidence) -> ScoreNetwork:
        """Return the network that adds up what all sources say, each in units of its spread.

        Parameters
        ----------
        evidence : Evidence
            By which the spread is measured: the deviation of what is said of a candidate, relative
            to the point's best. A source that says the same of all counts for nothing.
        """
        return cls.of_weights(evidence.inverse_spreads(evidence.behind_best()))

    @classmethod
    def of_weights(cls, weights: ArrayLike) -> ScoreNetwork:
        """Return the network that adds up what the sources say, relative to the point's best.

        Parameters
        ----------
        weights : array-like (n_sources,)
            Not negative. What is `MOST_BEHIND` behind the best, once weighted, is cut off.
        """
        factors = np.asarray(weights, np.float32)
        behind_best = slice(1, -N_CONTEXT_VIEWS, N_VIEWS)
        n_views = len(factors) * N_VIEWS + N_CONTEXT_VIEWS
        unit = LARGEST_VIEW / np.float32(MOST_BEHIND)
        scale = np.zeros(n_views, np.float32)
        scale[behind_best] = factors * unit
        # ReLU passes what is positive, so one unit takes the sum and the other its negative.
        both = np.array([1, -1], np.float32)
        matrix = np.zeros((n_views, 2), np.float32)
        matrix[behind_best] = both
        return cls(
            centre=np.zeros(n_views, np.float32),
            scale=scale,
            matrix1=matrix,
            bias1=np.zeros(2, np.float32),
            matrix2=np.eye(2, dtype=np.float32),
            bias2=np.zeros(2, np.float32),
            last=both / unit,
        )

    def check_sources(self, n_sources: int) -> None:
        """Raise InputError unless the network was learnt from so many sources."""
        if len(self.centre) != n_sources * N_VIEWS + N_CONTEXT_VIEWS:
            raise InputError(
                f"The network has {len(self.centre)} inputs, which is not what {n_sources} sources "
                "have. Learn it from the same sources."
            )

    def scores(self, evidence: Evidence, n_threads: int = 1) -> Floats:
        """Return the score of each candidate.

        Parameters
        ----------
        evidence : Evidence
        n_threads : int

        Returns
        -------
        float32 (n, size)
            Padded with -inf. Those of a point do not depend on the other points.

        Raises
        ------
        InputError
            If the network was learnt from another number of sources.
        """
        self.check_sources(evidence.values.shape[1])
        scores = np.empty(evidence.labels.shape, np.float32)
        arguments = evidence.as_read_only()

        def work(start: int, stop: int) -> None:
            blend_rows(
                *arguments,
                self.centre,
                self.scale,
                self.matrix1,
                self.bias1,
                self.matrix2,
                self.bias2,
                self.last,
                start,
                stop,
                scores,
            )

        over_row_chunks(work, len(scores), n_threads=n_threads, chunk=64)
        if self.level[0]:
            scores -= self.level * log_sums(scores)[:, np.newaxis]
        return scores

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what the network is made of."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> ScoreNetwork:
        """Make it again from `to_arrays`."""
        return cls(*(np.asarray(arrays[part.name], np.float32) for part in fields(cls)))


def log_sums(scores: Floats) -> Floats:
    """Return the logarithm of the sum of each row's exponentiated scores; 0 for padding alone.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.blend.score_network import log_sums
    >>> rows = np.array([[0, 0], [5, -np.inf], [-np.inf, -np.inf]], np.float32)
    >>> log_sums(rows).round(3).tolist()
    [0.6930000185966492, 5.0, 0.0]
    """
    best = scores.max(axis=1, initial=-np.inf)
    best[np.isneginf(best)] = 0
    total = np.exp(scores - best[:, np.newaxis]).sum(axis=1)
    sums: Floats = best + np.log(np.where(total > 0, total, 1))
    return sums


def count_sources(n_heads: int, *, has_relations: bool) -> int:
    """Return how many scores a candidate has: heads, linear, votes; matches and links, if any."""
    return n_heads + 2 + 2 * has_relations
