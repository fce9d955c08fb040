"""How the network that blends scores is learnt, on held-out rows of the training data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.blend.level import levelled
from longtail.blend.ranking_examples import RankingExamples
from longtail.blend.ranking_network import RankingNetwork
from longtail.blend.score_network import ScoreNetwork
from longtail.blend.weighted_sum import weighted_sum
from longtail.kernels.jit import HelpingThreads
from longtail.metrics.head_and_tail import head_and_tail_precision, sum_of_precisions
from longtail.metrics.hits import true_among
from longtail.scorers.ranking import best_first
from longtail.training.adamw import AdamW
from longtail.training.products import one_blas_thread
from longtail.training.scratch import Scratch
from longtail.training.threads import meanwhile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.blend.evidence import Evidence
    from longtail.training.run import TrainingRun

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["NetworkTraining", "Taught"]

# Of so many points, a network that reaches as much of the sum's precision in the trial, where it
# learns from half of them, and in few steps, has more of it in the end.
MANY_POINTS, ENOUGH = 1_000, 0.9


@dataclass(frozen=True, kw_only=True)
class NetworkTraining:
    """Train a `ScoreNetwork`, and keep it only where it beats the weighted sum of the sources.

    The loss ranks: each true candidate of a point against all its false ones (decoupled softmax;
    Gupta et al., "Dual-encoders for extreme multi-label classification", ICLR 2024), a point
    counting as the square root of its number of true candidates.

    Parameters
    ----------
    hidden_layers : (int, int)
        Sizes of the two layers.
    epochs : (int, int)
        Of few points, and of many, which are not learnt by heart so soon.
    batch_size : (int, int)
        Points of a batch, with all their candidates: where points are few, and where they are many.
        Smaller batches give more steps in the same time, in which few points are learnt by heart.
    few_points : int
        Up to so many are few.
    learning_rate : float
        Of AdamW; it falls in a straight line, to `averaged` times the first.
    decay : float
        A weight that no gradient moves is, after all steps, e^-decay times what it was: so few
        points, which have few steps, are held to small weights as many are.
    averaged : float
        Share of the steps, the last ones, whose mean is the network (Polyak and Juditsky, 1992), so
        that less depends on the start.
    dropout : float
        After each layer.
    least_points : int
        With fewer held-out points that have a true candidate, the weighted sum is taken.
    clearly : float
        Where there are fewer pairs of a true and a false candidate than the network has weights, as
        of points with one of a few labels, it knows them by heart: there it must gain so many
        standard errors.
    least_quality : float
        Where neither a source nor the sum of all reaches so much P@k and PSP@k, summed over k = 1,
        3 and 5, all sources count alike.
    trial_steps, trial_epochs, trial_points : int
        The trial on halves ends after about so many steps, or so many epochs, and is of at most so
        many points: enough to see that the network gains, and which candidates are hard to tell
        apart.
    n_compared : (int, int)
        Of a point's candidates, the network learns from those that rank first in a trial, and from
        some that are drawn from the rest and stand for all of it.
    is_unseen : bool
        Whether the sources have not learnt from the points. Of points that they have, a network
        would learn to trust what knows them by heart, so the weighted sum is taken.
    alike : float
        How firmly, for the same reason, the weights of that sum are held to all being the same.

    Examples
    --------
    Of two sources, the second ranks the true candidate first; five points are too few to learn
    more than that.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.network_training import NetworkTraining
    >>> from longtail.blend.evidence import Evidence
    >>> from longtail.training.run import TrainingRun
    >>> evidence = Evidence(
    ...     labels=np.tile(np.arange(3, dtype=np.int32), (5, 1)),
    ...     values=np.tile(np.array([[0, 2, 1], [2, 1, 0]], np.float32), (5, 1, 1)),
    ...     nearness=np.ones(5, np.float32),
    ...     commonness=np.zeros(3, np.float32),
    ... )
    >>> truth = csr_array(np.tile([1, 0, 0], (5, 1)))
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> network = NetworkTraining().taught(evidence, truth, np.ones(3), run).network
    >>> network.scores(evidence)[0].argmax().item()
    0
    """

    hidden_layers: tuple[int, int] = (64, 32)
    epochs: tuple[int, int] = (20, 40)
    batch_size: tuple[int, int] = (125, 62)
    few_points: int = 5_000
    learning_rate: float = 0.01
    decay: float = 0.65
    averaged: float = 0.3
    dropout: float = 0.1
    least_points: int = 20
    clearly: float = 2.0
    least_quality: float = 0.1
    trial_steps: int = 100
    trial_epochs: int = 40
    trial_points: int = 4_000
    n_compared: tuple[int, int] = (24, 8)
    is_unseen: bool = True
    alike: float = 2.0

    def taught(
        self,
        evidence: Evidence,
        truth: csr_array,
        inverse_propensities: NDArray[np.float64],
        run: TrainingRun,
    ) -> Taught:
        """Return the network, or the weighted sum of the sources, and what it knows by heart.

        Both are tried on each half of the points, learnt from the other half. If the network gains
        in precision at 1, 3 and 5, or in the sum of that and propensity-scored precision, or by
        more than a standard error at 1, it is returned, learnt from all points. (By the sum alone,
        a ranking that puts rare labels first can pass for better though it is far less precise; how
        much rare labels count is for their weights to say, which come on top.)

        Parameters
        ----------
        evidence : Evidence
            Of the held-out points.
        truth : csr_array (n, n_labels)
            Without what the evidence sets aside.
        inverse_propensities : float64 (n_labels,)
        run : TrainingRun

        Returns
        -------
        Taught
            The network has the level that tells best which answers are right.
        """
        is_true = true_among(evidence.judged, truth)
        if self.is_unseen:
            taught = self._chosen(evidence, truth, is_true, inverse_propensities, run)
        else:
            with one_blas_thread():
                every = np.arange(len(is_true))
                taught = Taught(weighted_sum(evidence, is_true, every, alike=self.alike))
        network = levelled(taught.network, evidence, is_true, run.n_threads)
        return taught._replace(network=network)

    def _chosen(
        self,
        evidence: Evidence,
        truth: csr_array,
        is_true: NDArray[np.bool_],
        inverse_propensities: NDArray[np.float64],
        run: TrainingRun,
    ) -> Taught:
        """Return the network, or the weighted sum of the sources: see `taught`."""
        shuffled = np.random.default_rng(run.seed_for("halves")).permutation(len(is_true))
        tried = shuffled[: self.trial_points]
        some = _Judged(evidence.of_rows(tried), truth[tried], inverse_propensities, run.n_threads)
        total = ScoreNetwork.of_all(evidence)
        plain = _said_by_all_and_each(total, some.evidence, run.n_threads)
        if all(some.qualities(said)[1] < self.least_quality for said in plain):
            return Taught(total)  # chance hits do not tell the sources apart
        with one_blas_thread():  # the products are too small to be shared
            must_be_clear = self._teach_little(evidence, is_true)
            trial = self._won_trial(some, is_true[tried], run, clearly=must_be_clear)
            if trial is None:
                return Taught(weighted_sum(evidence, is_true, tried))
            network = self._learnt(trial, evidence, is_true, run)
        known = some.first_is_right(network.scores(some.evidence, run.n_threads))
        by_others = some.first_is_right(trial.scores)
        return Taught(network, max(known.mean() - by_others.mean(), 0.0), is_sum=False)

    def _won_trial(
        self, points: _Judged, is_true: NDArray[np.bool_], run: TrainingRun, *, clearly: bool
    ) -> _Trial | None:
        """Return a trial on halves of some points; None if they are too few, or nothing is gained.

        See `_gains` for `clearly`.
        """
        if is_true.any(axis=1).sum() < self.least_points:
            return None
        examples = RankingExamples.of(points.evidence, is_true, run.n_threads)
        by_halves = partial(_summed_by_halves, points.evidence, is_true)
        with meanwhile(by_halves, run.n_threads) as summed:
            network, scores = self._tried(examples, run)
        if not self._gains(points, scores, summed.result(), clearly=clearly):
            return None
        return _Trial(examples.without_points(), network, scores)

    def _learnt(
        self, trial: _Trial, evidence: Evidence, is_true: NDArray[np.bool_], run: TrainingRun
    ) -> ScoreNetwork:
        """Learn from all points, of whose candidates a trial tells which are the hardest."""
        hardest = trial.examples.hardest_of(
            evidence,
            is_true,
            trial.network,
            self.n_compared,
            seed=run.seed_for("candidates"),
            n_threads=run.n_threads,
        )
        return hardest.frozen(self._fit(hardest, np.arange(len(is_true)), run).layers)

    def _tried(self, examples: RankingExamples, run: TrainingRun) -> tuple[RankingNetwork, Floats]:
        """Learn from each half of some points what ranks the other: a network, and all scores."""
        halves, short = np.array_split(np.arange(len(examples.inputs)), 2), self.trial_steps
        with HelpingThreads(min(2, run.n_threads)) as pool:
            networks = list(
                pool.map(lambda half: self._fit(examples, half, run, short), halves[::-1])
            )
        pairs = zip(networks, halves, strict=True)
        logits = [examples.logits(network, half) for network, half in pairs]
        return networks[0], np.concatenate(logits)

    def _fit(
        self,
        examples: RankingExamples,
        rows: NDArray[np.int64],
        run: TrainingRun,
        most_steps: int | None = None,
    ) -> RankingNetwork:
        """Train on some points."""
        random, scratch = np.random.default_rng(run.seed_for("score network")), Scratch()
        network = RankingNetwork(len(examples.centre), *self.hidden_layers, self.dropout, random)
        useful = rows[examples.is_true[rows].any(axis=1)]  # the others have nothing to rank
        batch_size, n_steps = self._sizes(len(useful), most_steps)
        sum_of_rates = n_steps * self.learning_rate * (1 + self.averaged) / 2
        optimiser = AdamW(network.parameters, self.decay / sum_of_rates if sum_of_rates else 0.0)
        first_averaged = int((1 - self.averaged) * n_steps)
        total, step = np.zeros_like(network.parameters), 0
        while step < n_steps:
            order = random.permutation(useful)
            for start in range(0, max(1, len(order)), batch_size):
                batch = examples.batch(order[start : start + batch_size], scratch)
                rate = self.learning_rate * (1 - (1 - self.averaged) * step / n_steps)
                optimiser.step(network.gradient(*batch), rate)
                if step >= first_averaged:
                    total += network.parameters
                step += 1
        np.divide(total, n_steps - first_averaged, out=network.parameters)
        return network

    def _sizes(self, n_points: int, most_steps: int | None) -> tuple[int, int]:
        """Return how many points a batch has, and how many steps a training of so many points.

        With `most_steps`, of a trial, about as many.
        """
        are_many = n_points > self.few_points
        batch_size, n_epochs = self.batch_size[are_many], self.epochs[are_many]
        n_batches = max(1, -(-n_points // batch_size))
        if most_steps is not None:
            n_epochs = min(-(-most_steps // n_batches), self.trial_epochs)
        return batch_size, n_batches * n_epochs

    def _teach_little(self, evidence: Evidence, is_true: NDArray[np.bool_]) -> bool:
        """Return whether there are fewer pairs of a true and a false candidate than weights."""
        n_true = is_true.sum(axis=1)
        n_pairs = n_true @ ((evidence.judged >= 0).sum(axis=1) - n_true)
        n_weights = sum((n + 1) * m for n, m in pairwise((evidence.n_views, *self.hidden_layers)))
        return bool(n_pairs < n_weights)

    def _gains(self, points: _Judged, scores: Floats, sums: Floats, *, clearly: bool) -> bool:
        """Return whether points are ranked better by scores than by sums; `clearly`, not by chance.

        Of some standard errors in P@1 that is: the points that only one of both gets right. One
        such error makes up for precision lost at 3 and 5.
        """
        right, of_sums = points.first_is_right(scores), points.first_is_right(sums)
        wanted = np.array(points.qualities(sums))
        if len(right) >= MANY_POINTS:
            wanted *= ENOUGH
        is_better = bool((np.array(points.qualities(scores)) > wanted).any())
        gain = np.count_nonzero(right) - np.count_nonzero(of_sums)
        error = np.sqrt(np.count_nonzero(right != of_sums))
        if clearly:
            return bool(is_better and gain > self.clearly * error)
        return bool(is_better or gain > error)


class Taught(NamedTuple):
    """A network, and how far what it says of the points that it learnt from can be trusted.

    Attributes
    ----------
    network : ScoreNetwork
    by_heart : float
        How much more often its first answer is right, of these points, than that of networks that
        learnt from others: a share, from 0 to 1. 0 of a weighted sum, which learns next to nothing.
    is_sum : bool
        Whether it is a weighted sum of the sources.
    """

    network: ScoreNetwork
    by_heart: float = 0.0
    is_sum: bool = True


class _Trial(NamedTuple):
    """What was learnt from each half of some points, and tried on the other.

    Attributes
    ----------
    examples : RankingExamples
        Without the points: these are large, and of no more use.
    network : RankingNetwork
        Of the first half.
    scores : float32 (n, size)
        Of all candidates, by the network of the other half.
    """

    examples: RankingExamples
    network: RankingNetwork
    scores: Floats


class _Judged(NamedTuple):
    """Points by which rankings of their candidates are compared."""

    evidence: Evidence
    truth: csr_array
    inverse_propensities: NDArray[np.float64]
    n_threads: int

    def first_is_right(self, scores: Floats) -> NDArray[np.bool_]:
        """Return for which points scores (n, size) put a true candidate first, (n,)."""
        return true_among(self._best(scores, 1), self.truth)[:, 0]

    def qualities(self, scores: Floats) -> tuple[float, float]:
        """Return P@1 + P@3 + P@5, and the sum of that and of the same of PSP."""
        ids = self._best(scores, 5)
        precision = sum_of_precisions(ids, self.truth)
        return precision, head_and_tail_precision(ids, self.truth, self.inverse_propensities)

    def _best(self, scores: Floats, k: int) -> Ids:
        """Return the k best candidates of each point that count."""
        judged = self.evidence.of_judged(scores)
        return best_first(self.evidence.labels, judged, k, self.n_threads)[0]


def _summed_by_halves(evidence: Evidence, is_true: NDArray[np.bool_]) -> Floats:
    """Return the scores of each half of the points by the sum that the other half weighs."""
    halves = np.array_split(np.arange(len(is_true)), 2)
    scores = [
        weighted_sum(evidence, is_true, other).scores(evidence.of_rows(half))
        for half, other in zip(halves, halves[::-1], strict=True)
    ]
    return np.concatenate(scores)


def _said_by_all_and_each(
    total: ScoreNetwork, evidence: Evidence, n_threads: int
) -> Iterator[Floats]:
    """Yield what the sum of sources and each of them say, (n, size), -inf of padding."""
    yield total.scores(evidence, n_threads)
    is_real = evidence.labels >= 0
    for said in evidence.values.swapaxes(0, 1):
        yield np.where(is_real, said, -np.inf)
