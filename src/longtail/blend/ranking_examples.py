"""Candidates of held-out points as the network that blends scores is shown them in training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.blend.score_network import ScoreNetwork
from longtail.kernels.blend import (
    CONTEXT_VIEWS_OF_POINT,
    LARGEST_VIEW,
    N_CONTEXT_VIEWS,
    N_VIEWS,
    VIEWS_OF_POINT,
)
from longtail.metrics.hits import row_chunks
from longtail.training.ranking_slope import log_counts_of, ranking_slope

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longtail.blend.evidence import Evidence
    from longtail.blend.ranking_network import Layers, RankingNetwork
    from longtail.training.scratch import Scratch

    Doubles = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float32]
    Rows = NDArray[np.int64]

__all__ = ["RankingExamples"]

LEAST_SPREAD = 1e-4

N_HALVINGS = 7

_POINTS_AT_ONCE = 512


class RankingExamples(NamedTuple):
    """Candidates of held-out points as the network is shown them.

    Attributes
    ----------
    inputs : float32 (n, size, n_own)
        The views that a candidate has for itself, with mean 0 and deviation 1 over all candidates,
        of these points or of some before.
    of_points : float32 (n, n_views - n_own)
        The views that are the same for all candidates of a point, likewise.
    is_true : bool (n, size)
        Which candidates are true.
    log_counts : float32 (n, size)
        See `longtail.training.ranking_loss.ranking_loss`.
    said : float32 (n, size)
        What a sum of the sources says of each candidate, which a network adds to; 0 of padding.
    centre, spread : float32 (n_views,)
        Mean and deviation before, of all views in the order of `Evidence.views`.

    Examples
    --------
    A point with three candidates, of which a source says 0, 1 and 2.

    >>> import numpy as np
    >>> from longtail.blend.evidence import Evidence
    >>> from longtail.blend.ranking_examples import RankingExamples
    >>> values = np.array([[[0, 1, 2]]], np.float32)
    >>> near, common = np.ones(1, np.float32), np.zeros(10, np.float32)
    >>> evidence = Evidence(np.array([[7, 4, 9]], np.int32), values, near, common)
    >>> examples = RankingExamples.of(evidence, np.array([[False, False, True]]), n_threads=1)
    >>> examples.centre[0].item()  # of the values themselves
    1.0
    >>> examples.inputs[0, :, 0].round(2)
    array([-1.22,  0.  ,  1.22], dtype=float32)
    """

    inputs: Floats
    of_points: Floats
    is_true: Flags
    log_counts: Floats
    said: Floats
    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, evidence: Evidence, is_true: Flags, n_threads: int) -> RankingExamples:
        """View the evidence and bring it to one scale, once for all trainings."""
        examples = cls._unscaled(evidence, is_true, n_threads)
        mean, deviation = examples._mean_and_deviation(evidence.labels >= 0)
        return examples._scaled(mean, np.maximum(deviation, LEAST_SPREAD))

    @classmethod
    def _unscaled(cls, evidence: Evidence, is_true: Flags, n_threads: int) -> RankingExamples:
        """View the evidence, a few points at a time."""
        n_points, size = is_true.shape
        of_point = _are_of_point(evidence.n_views)
        of_candidate, shared = np.flatnonzero(~of_point), np.flatnonzero(of_point)
        examples = cls(
            inputs=np.empty((n_points, size, len(of_candidate)), np.float32),
            of_points=np.empty((n_points, len(shared)), np.float32),
            is_true=is_true,
            log_counts=log_counts_of(evidence.judged),
            said=np.zeros((n_points, size), np.float32),
            centre=np.zeros(evidence.n_views, np.float32),
            spread=np.ones(evidence.n_views, np.float32),
        )
        for some in row_chunks(n_points, _POINTS_AT_ONCE):
            views = evidence.of_rows(some).views(n_threads)
            inputs = examples.inputs[some]
            np.take(views, of_candidate, axis=2, out=inputs, mode="clip")  # as in `batch`
            examples.of_points[some] = views[:, 0, shared]  # padding comes last
        return examples

    def _mean_and_deviation(self, is_real: Flags) -> tuple[Floats, Floats]:
        """Return those of each view over all real candidates."""
        of_point = _are_of_point(len(self.centre))
        moments = np.empty((2, len(self.centre)), np.float32)
        n_real = is_real.sum(axis=1, keepdims=True)
        moments[:, ~of_point] = _moments(self.inputs, is_real)
        moments[:, of_point] = _moments(self.of_points[:, np.newaxis], n_real)
        return moments[0], moments[1]

    def _scaled(self, centre: Floats, spread: Floats) -> RankingExamples:
        """Bring the views, which are changed in place, to a scale."""
        of_point = _are_of_point(len(centre))
        for views, which in ((self.inputs, ~of_point), (self.of_points, of_point)):
            np.subtract(views, centre[which], out=views)
            np.divide(views, spread[which], out=views)
            np.clip(views, -LARGEST_VIEW, LARGEST_VIEW, out=views)
        return self._replace(centre=centre, spread=spread)

    def saying(self, scores: Floats) -> RankingExamples:
        """Return them with other scores (n, size), padded with -inf, as `said`."""
        return self._replace(said=np.where(np.isneginf(scores), np.float32(0), scores))

    def batch(self, rows: Rows, scratch: Scratch) -> tuple[Floats, Floats, Flags, Floats, Floats]:
        """Return what `RankingNetwork.gradient` takes of some points, in place of those before.

        Parameters
        ----------
        rows : int64 (n_rows,)
        scratch : Scratch
        """
        n, size = len(rows), self.is_true.shape[1]
        taken = (
            scratch.array("inputs", (n, size, self.inputs.shape[2])),
            scratch.array("of points", (n, self.of_points.shape[1])),
            scratch.array("is true", (n, size), np.bool_),
            scratch.array("log counts", (n, size)),
            scratch.array("said", (n, size)),
        )
        for every, some in zip(self[:5], taken, strict=True):
            np.take(every, rows, axis=0, out=some, mode="clip")  # else numpy writes a copy first
        return taken

    def added(self, network: RankingNetwork, rows: Rows) -> Floats:
        """Return what a network adds to what is said of some points, 0 for padding."""
        added = np.empty((len(rows), self.is_true.shape[1]), np.float32)
        for some in row_chunks(len(rows), _POINTS_AT_ONCE):
            added[some] = network.logits(self.inputs[rows[some]], self.of_points[rows[some]])
        added[np.isneginf(self.log_counts[rows])] = 0
        return added

    def without_points(self) -> RankingExamples:
        """Return what is left without any points: the scale, all that `hardest_of` needs."""
        return self._replace(
            inputs=self.inputs[:0].copy(),
            of_points=self.of_points[:0].copy(),
            is_true=self.is_true[:0].copy(),
            log_counts=self.log_counts[:0].copy(),
            said=self.said[:0].copy(),
        )

    def hardest_of(
        self,
        evidence: Evidence,
        is_true: Flags,
        networks: tuple[ScoreNetwork, ScoreNetwork],
        n_compared: tuple[int, int],
        *,
        seed: int,
        n_threads: int,
    ) -> RankingExamples:
        """Return the `hardest` candidates of many points, on the same scale.

        All views of all candidates would be the largest of what is learnt from held-out points, so
        these are viewed a few at a time.

        Parameters
        ----------
        evidence : Evidence
        is_true : bool (n, size)
        networks : (ScoreNetwork, ScoreNetwork)
            That of a trial, and that of the sum that is to be added to.
        n_compared : (int, int)
        seed, n_threads : int
        """
        trial, total = networks
        random = np.random.default_rng(seed)
        n_points, size = is_true.shape
        shape = n_points, min(sum(n_compared), size)
        chosen = self._replace(
            inputs=np.empty((*shape, self.inputs.shape[2]), np.float32),
            of_points=np.empty((n_points, self.of_points.shape[1]), np.float32),
            is_true=np.empty(shape, np.bool_),
            log_counts=np.empty(shape, np.float32),
            said=np.empty(shape, np.float32),
        )
        for rows in row_chunks(n_points, _POINTS_AT_ONCE):
            shown = evidence.of_rows(rows)
            some = self._unscaled(shown, is_true[rows], n_threads)._scaled(self.centre, self.spread)
            some = some.saying(total.scores(shown, n_threads))
            hardest = some.hardest(trial.scores(shown, n_threads), n_compared, random)
            for every, part in zip(chosen[:5], hardest[:5], strict=True):
                every[rows] = part
        return chosen

    def hardest(
        self, scores: Floats, n_compared: tuple[int, int], random: np.random.Generator
    ) -> RankingExamples:
        """Return the candidates that are true or whose scores are highest, and some others.

        The others are drawn from the rest, and stand for all of it. If a point has so many true
        candidates that some are in the rest, those drawn count once, as what a true one stands for
        is not asked, and the false ones still stand for all false ones, on average.
        """
        n_first, n_drawn = n_compared
        size = self.is_true.shape[1]
        if size <= n_first + n_drawn:
            return self
        judged = np.where(np.isneginf(self.log_counts), -np.inf, scores)
        judged[self.is_true] = np.inf
        order = np.argsort(-judged, axis=1, kind="stable")
        first, rest = order[:, :n_first], order[:, n_first:]
        is_left = ~np.isneginf(np.take_along_axis(self.log_counts, rest, axis=1))
        lots = np.where(is_left, random.random(rest.shape, np.float32), 2)
        drawn = np.argpartition(lots, n_drawn - 1, axis=1)[:, :n_drawn]
        chosen = np.concatenate([first, np.take_along_axis(rest, drawn, axis=1)], axis=1)
        log_counts = np.take_along_axis(self.log_counts, chosen, axis=1)
        n_left = is_left.sum(axis=1, keepdims=True)
        log_counts[:, n_first:] += np.log(np.maximum(n_left / n_drawn, 1))
        return self._replace(
            inputs=np.take_along_axis(self.inputs, chosen[:, :, np.newaxis], axis=1),
            is_true=np.take_along_axis(self.is_true, chosen, axis=1),
            log_counts=log_counts,
            said=np.take_along_axis(self.said, chosen, axis=1),
        )

    def best_share(self, added: Floats) -> float:
        """Return how much of what is added to what is said makes the loss least, 0 to 1.

        The loss is convex in it, so its slope says on which side that is.

        Parameters
        ----------
        added : float32 (n, size)
            See `added`.
        """
        least, most = 0.0, 1.0

        def falls(share: float) -> bool:
            logits = self.said + np.float32(share) * added
            slopes = ranking_slope(logits, self.is_true, self.log_counts)
            return float(np.vdot(slopes, added)) < 0

        if falls(most):
            return most
        if not falls(least):
            return least
        for _ in range(N_HALVINGS):
            middle = (least + most) / 2
            least, most = (middle, most) if falls(middle) else (least, middle)
        return least

    def on_their_scale(self, network: ScoreNetwork) -> ScoreNetwork:
        """Return a network that says the same of the views as these show them."""
        return network.on_scale(self.centre, np.float32(1) / self.spread)

    def frozen(self, layers: Layers) -> ScoreNetwork:
        """Return a network that has learnt from them as a model keeps it."""
        matrix1 = np.empty_like(layers.matrix1)
        matrix1[np.argsort(_are_of_point(len(matrix1)), kind="stable")] = layers.matrix1
        parts = layers._replace(matrix1=matrix1)._asdict()
        return ScoreNetwork(centre=self.centre, scale=np.float32(1) / self.spread, **parts)


def _are_of_point(n_views: int) -> Flags:
    """Return which views are the same for all candidates of a point."""
    are_of_point = np.zeros(n_views, np.bool_)
    for view in VIEWS_OF_POINT:
        are_of_point[view:-N_CONTEXT_VIEWS:N_VIEWS] = True
    are_of_point[-N_CONTEXT_VIEWS:][list(CONTEXT_VIEWS_OF_POINT)] = True
    return are_of_point


def _moments(views: Floats, counts: NDArray[Any]) -> tuple[Doubles, Doubles]:
    """Return the mean and the deviation of each view, of a few points at a time.

    The squares of all would take as much memory as the views once more.

    Parameters
    ----------
    views : float32 (n, size, n_views)
    counts : int or bool (n, size)
        How often each counts.
    """

    def mean_of(work: Callable[[Floats], Doubles]) -> Doubles:
        total = np.zeros(views.shape[2])
        for some in row_chunks(len(views), _POINTS_AT_ONCE):
            total += counts[some].ravel() @ work(views[some].reshape(-1, views.shape[2]))
        mean: Doubles = total / max(counts.sum(), 1)
        return mean

    mean = mean_of(lambda some: some.astype(np.float64))
    return mean, np.sqrt(mean_of(lambda some: (some - mean) ** 2))
