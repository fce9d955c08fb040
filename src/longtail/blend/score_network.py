"""The learned blend: a small network that weighs what several sources say of a candidate."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.blend.brevity import Brevity
from longtail.blend.rarity import told_scores
from longtail.errors import InputError
from longtail.held_arrays import hold_read_only
from longtail.kernels.blend import (
    LARGEST_VIEW,
    N_CONTEXT_VIEWS,
    N_VIEWS,
    blend_rows,
)
from longtail.kernels.jit import over_row_chunks
from longtail.scorers.ranking import best_first

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from longtail.blend.evidence import Evidence
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

    Floats = NDArray[np.float32]

__all__ = ["ScoreNetwork", "best_labels", "count_sources", "log_sums"]

MOST_BEHIND = 50.0  # where a plain sum of sources cuts off what is behind the best


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
        This times the logarithm of the sum of a point's exponentiated scores is subtracted from all
        of them. It changes no order; with 1, scores are the logarithms of a softmax. See
        `longtail.blend.level`.
    brevity : float32 (4,)
        How much less is believed of a text of few tokens, which changes no order: a `Brevity`.
    for_order : float32 (1,)
        This times what rarity adds to a score counts for the order alone, and scores that are told
        are without it. See `longtail.blend.rarity`.

    Raises
    ------
    InputError
        If the arrays do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.blend.evidence import Evidence
    >>> from longtail.blend.score_network import ScoreNetwork
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
    brevity: Floats = field(default_factory=lambda: np.zeros(4, np.float32))
    for_order: Floats = field(default_factory=lambda: np.zeros(1, np.float32))

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held, and refuse those that do not fit."""
        hold_read_only(self, {part.name: np.float32 for part in fields(self)})
        shapes = tuple(getattr(self, part.name).shape for part in fields(self))
        views, hidden1, hidden2 = self.centre.shape, self.bias1.shape, self.bias2.shape
        layers = (views, views, views + hidden1, hidden1, hidden1 + hidden2, hidden2, hidden2)
        fitting = (*layers, (1,), (4,), (1,))
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
        return cls.of_weights(evidence.inverse_spreads())

    @classmethod
    def of_weights(cls, weights: ArrayLike, of_commonness: float = 0.0) -> ScoreNetwork:
        """Return the network that adds up what the sources say, relative to the point's best.

        Parameters
        ----------
        weights : array-like (n_sources,)
            Not negative. What is `MOST_BEHIND` behind the best, once weighted, is cut off.
        of_commonness : float
            The weight of how common a candidate is, beside the commonest of the point's.
        """
        factors = np.asarray(weights, np.float32)
        behind_best, behind_commonest = slice(1, -N_CONTEXT_VIEWS, N_VIEWS), 1 - N_CONTEXT_VIEWS
        n_views = len(factors) * N_VIEWS + N_CONTEXT_VIEWS
        unit = LARGEST_VIEW / np.float32(MOST_BEHIND)
        scale = np.zeros(n_views, np.float32)
        scale[behind_best], scale[behind_commonest] = factors * unit, of_commonness * unit
        # ReLU passes what is positive, so one unit takes the sum and the other its negative.
        both = np.array([1, -1], np.float32)
        matrix = np.zeros((n_views, 2), np.float32)
        matrix[behind_best] = matrix[behind_commonest] = both
        return cls(
            centre=np.zeros(n_views, np.float32),
            scale=scale,
            matrix1=matrix,
            bias1=np.zeros(2, np.float32),
            matrix2=np.eye(2, dtype=np.float32),
            bias2=np.zeros(2, np.float32),
            last=both / unit,
        )

    def with_best_match(self, source: int, weight: float) -> ScoreNetwork:
        """Return a weighted sum to which the best match of texts adds so much: see `Evidence`.

        A unit of its own takes the best that the source says, less twice the logarithm of one plus
        the candidate's rank: cosines are at most 1, so nothing is left but of the first.

        Parameters
        ----------
        source : int
            Of cosines.
        weight : float
            Of the cosine of the best match, for that candidate alone; it may be negative.
        """
        best, rank = N_VIEWS * source + 2, N_VIEWS * source + 3
        scale, of_views = self.scale.copy(), np.zeros_like(self.scale)
        scale[[best, rank]] = 1
        of_views[[best, rank]] = 1, -2
        return replace(self, scale=scale).adding_unit(of_views, 0, weight)

    def of_values(self) -> ScoreNetwork:
        """Return a weighted sum of what the sources say, which ranks as that of `of_weights` does.

        It is higher where sources say more of the best candidates, which tells how sure they are.
        """
        scale, matrix1 = self.scale.copy(), self.matrix1.copy()
        values, behind_best = (slice(v, -N_CONTEXT_VIEWS, N_VIEWS) for v in (0, 1))
        for part in (scale, matrix1):
            part[values], part[behind_best] = part[behind_best], 0
        return replace(self, scale=scale, matrix1=matrix1)

    def on_scale(self, centre: Floats, scale: Floats) -> ScoreNetwork:
        """Return the network that says the same of views that are centred and scaled otherwise.

        It says something else only of candidates of which a view is cut.

        Parameters
        ----------
        centre, scale : float32 (n_views,)
            The scale is not 0.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.blend.evidence import Evidence
        >>> from longtail.blend.score_network import ScoreNetwork
        >>> labels, none = np.array([[2, 0]], np.int32), np.zeros(3, np.float32)
        >>> evidence = Evidence(labels, np.array([[[1, 3]]], np.float32), none[:1], none)
        >>> network = ScoreNetwork.of_source(0, n_sources=1)
        >>> centre, scale = np.ones(8, np.float32), np.full(8, 0.5, np.float32)
        >>> again = network.on_scale(centre, scale)
        >>> network.scores(evidence).tolist(), again.plus(again.times(2)).scores(evidence).tolist()
        ([[-2.0, 0.0]], [[-6.0, 0.0]])
        """
        moved = (centre - self.centre) * self.scale
        bias1: Floats = np.add(self.bias1, moved @ self.matrix1)
        return replace(
            self,
            centre=centre,
            scale=scale,
            matrix1=self.matrix1 * (self.scale / scale)[:, np.newaxis],
            bias1=bias1,
        )

    def times(self, factor: float) -> ScoreNetwork:
        """Return the network that says so many times what this one says."""
        return replace(self, last=np.float32(factor) * self.last)

    def plus(self, other: ScoreNetwork) -> ScoreNetwork:
        """Return the network that says what this one and another say, added up.

        Parameters
        ----------
        other : ScoreNetwork
            On the same scale. Neither has a level yet, nor what else comes after the layers.
        """
        n1, n2 = self.matrix2.shape
        matrix2 = np.zeros((n1 + len(other.bias1), n2 + len(other.bias2)), np.float32)
        matrix2[:n1, :n2], matrix2[n1:, n2:] = self.matrix2, other.matrix2
        return replace(
            self,
            matrix1=np.hstack([self.matrix1, other.matrix1]),
            bias1=np.append(self.bias1, other.bias1),
            matrix2=matrix2,
            bias2=np.append(self.bias2, other.bias2),
            last=np.append(self.last, other.last),
        )

    def as_seen(self, views: Floats, columns: NDArray[np.int64]) -> Floats:
        """Return some views, float32 (n, n_some), centred, scaled and cut as the layers see them.

        `columns`, int64 (n_some,), tells which these are.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.blend.score_network import ScoreNetwork
        >>> network = ScoreNetwork.of_source(0, n_sources=1)
        >>> network.as_seen(np.array([[-10], [-99]], np.float32), np.array([1])).tolist()
        [[-1.0], [-5.0]]
        """
        scaled = (views - self.centre[columns]) * self.scale[columns]
        seen: Floats = np.clip(scaled, -LARGEST_VIEW, LARGEST_VIEW)
        return seen

    def adding(self, weights: Floats) -> ScoreNetwork:
        """Return the network that also adds a weighted sum of views, as they are scaled.

        Parameters
        ----------
        weights : float32 (n_views,)

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.blend.evidence import Evidence
        >>> from longtail.blend.score_network import ScoreNetwork
        >>> labels, none = np.array([[2, 0]], np.int32), np.zeros(3, np.float32)
        >>> evidence = Evidence(labels, np.array([[[1, 3]]], np.float32), none[:1], none)
        >>> network = ScoreNetwork.of_source(0, n_sources=1)
        >>> weights = np.array([0, 10, 0, 0, 0, 0, 0, 0], np.float32)  # how far behind, in tenths
        >>> network.adding(weights).scores(evidence).tolist()
        [[-4.0, 0.0]]
        """
        # ReLU passes what is positive, so one unit takes the sum and the other its negative.
        return self.adding_unit(weights, 0, 1).adding_unit(-weights, 0, -1)

    def adding_unit(self, of_views: Floats, bias: float, weight: float) -> ScoreNetwork:
        """Return the network that also adds so many times what views come to, where above 0.

        Parameters
        ----------
        of_views : float32 (n_views,)
            What views, as they are scaled, are multiplied by.
        bias : float
            Added to the sum of these.
        weight : float

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.blend.evidence import Evidence
        >>> from longtail.blend.score_network import ScoreNetwork
        >>> labels, none = np.array([[2, 0]], np.int32), np.zeros(3, np.float32)
        >>> evidence = Evidence(labels, np.array([[[1, 3]]], np.float32), none[:1], none)
        >>> network = ScoreNetwork.of_source(0, n_sources=1)
        >>> of_views = np.array([0, 1, 0, 0, 0, 0, 0, 0], np.float32)  # how far behind, in tenths
        >>> network.adding_unit(of_views, 0.15, weight=20).scores(evidence).tolist()
        [[-2.0, 3.0]]
        """
        unit = replace(
            self,
            matrix1=of_views[:, np.newaxis],
            bias1=np.array([bias], np.float32),
            matrix2=np.ones((1, 1), np.float32),
            bias2=np.zeros(1, np.float32),
            last=np.array([weight], np.float32),
        )
        return self.plus(unit)

    def check_sources(self, n_sources: int) -> None:
        """Raise InputError unless the network was learnt from so many sources."""
        if len(self.centre) != n_sources * N_VIEWS + N_CONTEXT_VIEWS:
            raise InputError(
                f"The network has {len(self.centre)} inputs, which is not what {n_sources} sources "
                "have. Learn it from the same sources."
            )

    def scores(self, evidence: Evidence, n_threads: int = 1) -> Floats:
        """Return the score of each candidate.

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
        inputs = (*evidence.as_read_only(), self.centre, self.scale)
        layers = (self.matrix1, self.bias1, self.matrix2, self.bias2, self.last)

        def work(start: int, stop: int) -> None:
            blend_rows(*inputs, *layers, start, stop, scores)

        over_row_chunks(work, len(scores), n_threads=n_threads, chunk=64)
        if self.level[0]:
            scores -= self.level * log_sums(scores)[:, np.newaxis]
        return scores

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what the network is made of."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> ScoreNetwork:
        """Make it again from `to_arrays`."""
        return cls(**{part.name: arrays[part.name] for part in fields(cls)})


def best_labels(
    network: ScoreNetwork, evidence: Evidence, tail_weights: Floats, k: int, n_threads: int = 1
) -> Answers:
    """Return the k best candidates of each point and their scores; what is set aside is none.

    Parameters
    ----------
    network : ScoreNetwork
    evidence : Evidence
    tail_weights : float32 (n_labels,)
        What the rarity of labels adds to the scores by which they are ranked.
    k, n_threads : int

    Returns
    -------
    ids : int32 (n, k)
        Best first, padded with -1.
    scores : float32 (n, k)
        Less what counts for the order alone and what brevity takes; padded with -inf.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.blend.evidence import Evidence
    >>> from longtail.blend.score_network import ScoreNetwork, best_labels
    >>> labels, values = np.array([[1, 0, -1]], np.int32), np.array([[[3, 1, 0]]], np.float32)
    >>> evidence = Evidence(labels, values, np.ones(1, np.float32), np.zeros(2, np.float32))
    >>> network = ScoreNetwork.of_source(0, n_sources=1)
    >>> best_labels(network, evidence, np.array([5, 0], np.float32), k=2)[0].tolist()
    [[0, 1]]
    """
    scores = network.scores(evidence, n_threads)
    is_real = evidence.labels >= 0
    scores[is_real] += tail_weights[evidence.labels[is_real]]
    ids, ranked = best_first(evidence.labels, evidence.of_judged(scores), k, n_threads)
    told = told_scores(ids, ranked, tail_weights, network.for_order.item())
    if evidence.n_tokens is None:
        return ids, told
    return ids, Brevity(*network.brevity.tolist()).lowered(told, evidence.n_tokens)


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
    """Return how many scores a candidate has: heads, linear, votes; matches and links, if any.

    Examples
    --------
    >>> from longtail.blend.score_network import count_sources
    >>> count_sources(1, has_relations=False), count_sources(3, has_relations=True)
    (3, 7)
    """
    return n_heads + 2 + 2 * has_relations
