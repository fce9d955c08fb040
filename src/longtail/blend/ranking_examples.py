"""Candidates of held-out points as the network that blends scores is shown them in training."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from longtail.blend.score_network import ScoreNetwork
from longtail.kernels.blend import LARGEST_VIEW
from longtail.training.ranking_loss import log_counts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longtail.blend.evidence import Evidence
    from longtail.blend.ranking_network import Layers, RankingNetwork

    Floats = NDArray[np.float32]

__all__ = ["RankingExamples"]

_POINTS_AT_ONCE = 512


class RankingExamples(NamedTuple):
    """Candidates of held-out points as the network is shown them.

    Attributes
    ----------
    inputs : float32 Tensor (n, size, n_views)
        With mean 0 and deviation 1 over all candidates, of these points or of some before.
    is_true : Tensor of bool (n, size)
        Which candidates are true.
    log_counts : float32 Tensor (n, size)
        See `ranking_loss`.
    centre, spread : float32 Tensor (n_views,)
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
    >>> examples.inputs[0, :, 0].round(decimals=2)
    tensor([-1.2200,  0.0000,  1.2200])
    """

    inputs: Tensor
    is_true: Tensor
    log_counts: Tensor
    centre: Tensor
    spread: Tensor

    @classmethod
    def of(cls, evidence: Evidence, is_true: NDArray[np.bool_], n_threads: int) -> RankingExamples:
        """View the evidence and bring it to one scale, once for all trainings."""
        views = evidence.views(n_threads)
        mean, deviation = _mean_and_deviation(views, evidence.labels >= 0)
        centre, spread = torch.from_numpy(mean), torch.from_numpy(deviation).clamp_min(1e-4)
        return cls._scaled(views, evidence, is_true, centre, spread)

    @classmethod
    def _scaled(
        cls,
        views: Floats,
        evidence: Evidence,
        is_true: NDArray[np.bool_],
        centre: Tensor,
        spread: Tensor,
    ) -> RankingExamples:
        """Bring views, which are changed in place, to a scale."""
        limit = float(LARGEST_VIEW)
        inputs = torch.from_numpy(views).sub_(centre).div_(spread).clamp_(-limit, limit)
        log_counts = log_counts_of(torch.from_numpy(evidence.judged))
        return cls(inputs, torch.from_numpy(is_true), log_counts, centre, spread)

    def logits(self, network: RankingNetwork, rows: Tensor) -> Tensor:
        """Return how a network ranks the candidates of some points, -inf for padding."""
        parts = [network.logits(self.inputs[some]) for some in torch.split(rows, _POINTS_AT_ONCE)]
        return torch.cat(parts).masked_fill_(self.log_counts[rows].isinf(), -torch.inf)

    def hardest_of(
        self,
        evidence: Evidence,
        is_true: NDArray[np.bool_],
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
        random = torch.Generator().manual_seed(seed)
        n_points, size = is_true.shape
        shape = n_points, min(sum(n_compared), size)
        chosen = self._replace(
            inputs=torch.empty((*shape, self.inputs.shape[2])),
            is_true=torch.empty(shape, dtype=torch.bool),
            log_counts=torch.empty(shape),
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
        self, network: RankingNetwork, n_compared: tuple[int, int], random: torch.Generator
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
        every = torch.arange(n_points)
        logits = self.logits(network, every).masked_fill_(self.is_true, torch.inf)
        order = logits.argsort(dim=1, descending=True, stable=True)
        first, rest = order[:, :n_first], order[:, n_first:]
        is_left = ~self.log_counts.gather(1, rest).isinf()
        lots = torch.rand(rest.shape, generator=random)
        drawn = rest.gather(1, lots.masked_fill_(~is_left, -1).topk(n_drawn, dim=1).indices)
        chosen = torch.cat([first, drawn], dim=1)
        log_counts = self.log_counts.gather(1, chosen)
        n_left = is_left.sum(dim=1, keepdim=True)
        log_counts[:, n_first:] += (n_left / n_drawn).clamp_min(1).log()
        inputs = self.inputs[every[:, None], chosen]
        return self._replace(
            inputs=inputs, is_true=self.is_true.gather(1, chosen), log_counts=log_counts
        )

    def frozen(self, layers: Layers) -> ScoreNetwork:
        """Return a network that has learnt from them as a model keeps it."""
        learnt = {name: part.numpy() for name, part in layers._asdict().items()}
        return ScoreNetwork(centre=self.centre.numpy(), scale=(1 / self.spread).numpy(), **learnt)


def _mean_and_deviation(views: Floats, is_real: NDArray[np.bool_]) -> tuple[Floats, Floats]:
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
