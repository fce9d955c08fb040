"""Candidates of held-out points as the network that blends scores is shown them in training."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.blend.score_network import ScoreNetwork
from longtail.kernels.blend import LARGEST_VIEW
from longtail.training.ranking_slope import log_counts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longtail.blend.evidence import Evidence
    from longtail.blend.ranking_network import Layers, RankingNetwork
    from longtail.training.scratch import Scratch

    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float32]
    Rows = NDArray[np.int64]

__all__ = ["RankingExamples"]

LEAST_SPREAD = 1e-4

_POINTS_AT_ONCE = 512


class RankingExamples(NamedTuple):
    """Candidates of held-out points as the network is shown them.

    Attributes
    ----------
    inputs : float32 (n, size, n_views)
        With mean 0 and deviation 1 over all candidates, of these points or of some before.
    is_true : bool (n, size)
        Which candidates are true.
    log_counts : float32 (n, size)
        See `longtail.training.ranking_loss.ranking_loss`.
    centre, spread : float32 (n_views,)
        Mean and deviation before.

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
    is_true: Flags
    log_counts: Floats
    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, evidence: Evidence, is_true: Flags, n_threads: int) -> RankingExamples:
        """View the evidence and bring it to one scale, once for all trainings."""
        views = evidence.views(n_threads)
        centre, deviation = _mean_and_deviation(views, evidence.labels >= 0)
        return cls._scaled(views, evidence, is_true, centre, np.maximum(deviation, LEAST_SPREAD))

    @classmethod
    def _scaled(
        cls, views: Floats, evidence: Evidence, is_true: Flags, centre: Floats, spread: Floats
    ) -> RankingExamples:
        """Bring views, which are changed in place, to a scale."""
        views -= centre
        views /= spread
        np.clip(views, -LARGEST_VIEW, LARGEST_VIEW, out=views)
        return cls(views, is_true, log_counts_of(evidence.judged), centre, spread)

    def batch(self, rows: Rows, scratch: Scratch) -> tuple[Floats, Flags, Floats]:
        """Return inputs, `is_true` and `log_counts` of some points, in place of those before.

        Parameters
        ----------
        rows : int64 (n_rows,)
        scratch : Scratch
        """
        shape = len(rows), self.is_true.shape[1]
        inputs = scratch.array("inputs", (*shape, self.inputs.shape[2]))
        is_true = scratch.array("is true", shape, np.bool_)
        log_counts = scratch.array("log counts", shape)
        pairs = zip(self[:3], (inputs, is_true, log_counts), strict=True)
        for every, some in pairs:
            np.take(every, rows, axis=0, out=some, mode="clip")  # else numpy writes a copy first
        return inputs, is_true, log_counts

    def logits(self, network: RankingNetwork, rows: Rows) -> Floats:
        """Return how a network ranks the candidates of some points, -inf for padding."""
        logits = np.empty((len(rows), self.is_true.shape[1]), np.float32)
        for start in range(0, len(rows), _POINTS_AT_ONCE):
            some = slice(start, start + _POINTS_AT_ONCE)
            logits[some] = network.logits(self.inputs[rows[some]])
        logits[np.isneginf(self.log_counts[rows])] = -np.inf
        return logits

    def hardest_of(
        self,
        evidence: Evidence,
        is_true: Flags,
        network: RankingNetwork,
        n_compared: tuple[int, int],
        *,
        seed: int,
        n_threads: int,
    ) -> RankingExamples:
        """Return the `hardest` candidates of many points, on the same scale.

        All views of all candidates would be the largest of what is learnt from held-out points, so
        these are viewed a few at a time.
        """
        random = np.random.default_rng(seed)
        n_points, size = is_true.shape
        shape = n_points, min(sum(n_compared), size)
        chosen = self._replace(
            inputs=np.empty((*shape, self.inputs.shape[2]), np.float32),
            is_true=np.empty(shape, np.bool_),
            log_counts=np.empty(shape, np.float32),
        )
        for start in range(0, n_points, _POINTS_AT_ONCE):
            rows = np.arange(start, min(start + _POINTS_AT_ONCE, n_points))
            own = evidence.of_rows(rows)
            scale = self.centre, self.spread
            some = self._scaled(own.views(n_threads), own, is_true[rows], *scale)
            parts = zip(chosen[:3], some.hardest(network, n_compared, random)[:3], strict=True)
            for every, part in parts:
                every[start : start + len(part)] = part
        return chosen

    def hardest(
        self, network: RankingNetwork, n_compared: tuple[int, int], random: np.random.Generator
    ) -> RankingExamples:
        """Return the candidates that are true or that a network ranks first, and some others.

        The others are drawn from the rest, and stand for all of it. If a point has so many true
        candidates that some are in the rest, those drawn count once, as what a true one stands for
        is not asked, and the false ones still stand for all false ones, on average.
        """
        n_first, n_drawn = n_compared
        n_points, size = self.is_true.shape
        if size <= n_first + n_drawn:
            return self
        logits = self.logits(network, np.arange(n_points))
        logits[self.is_true] = np.inf
        order = np.argsort(-logits, axis=1, kind="stable")
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
        )

    def frozen(self, layers: Layers) -> ScoreNetwork:
        """Return a network that has learnt from them as a model keeps it."""
        return ScoreNetwork(
            centre=self.centre, scale=np.float32(1) / self.spread, **layers._asdict()
        )


def _mean_and_deviation(views: Floats, is_real: Flags) -> tuple[Floats, Floats]:
    """Return those of each view over all real candidates, of a few points at a time.

    A copy of what is real would take as much memory as the views, and its squares once more.
    """
    blocks = [slice(i, i + _POINTS_AT_ONCE) for i in range(0, len(views), _POINTS_AT_ONCE)]
    n_real = np.float32(np.count_nonzero(is_real))

    def mean_of(work: Callable[[Floats], Floats]) -> Floats:
        total = np.zeros((1, views.shape[2]), np.float32)
        for block in blocks:
            rows = np.concatenate([total, work(views[block][is_real[block]])])
            total = rows.sum(axis=0, keepdims=True)  # row after row, as one sum of all would
        mean: Floats = total[0] / n_real
        return mean

    mean = mean_of(lambda some: some)
    return mean, np.sqrt(mean_of(lambda some: (some - mean) ** 2))
