"""How what blends scores is learnt, on held-out rows of the training data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.blend.level import levelled
from longtail.blend.ranking_examples import RankingExamples
from longtail.blend.ranking_network import RankingNetwork
from longtail.blend.score_network import ScoreNetwork
from longtail.blend.weighted_sum import weighted_sum
from longtail.kernels.jit import HelpingThreads
from longtail.metrics.head_and_tail import head_and_tail_precision
from longtail.metrics.hits import true_among
from longtail.scorers.ranking import best_first
from longtail.training.adamw import AdamW
from longtail.training.products import one_blas_thread
from longtail.training.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.blend.evidence import Evidence
    from longtail.training.run import TrainingRun

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["NetworkTraining", "Taught"]

N_ADDED = 3  # units of a layer by which `levelled` adds what views of a point tell
BESIDE = 0.5  # how much of the sum is there while the network learns
# A network that learns from all points tells more than those of a trial, which have half of them.
POWER_OF_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class NetworkTraining:
    """Train a weighted sum of the sources, and a network that corrects it.

    The network learns what to add to half of the sum: what is to be added is easier to learn than
    the whole (He et al., "Deep residual learning for image recognition", CVPR 2016, section 3.1).
    Both together take the place of a share of the sum. That share a trial finds, by points that the
    network has not learnt from: so few points, of which it would learn chance as well, correct the
    sum a little, and many in full. The sum is then that of what sources say itself, not of how far
    it is behind the best of the point: it ranks the same, but tells sure answers from others.

    The loss ranks: each true candidate of a point against all its false ones (decoupled softmax;
    Gupta et al., "Dual-encoders for extreme multi-label classification", ICLR 2024), a point
    counting as the square root of its number of true candidates.

    Parameters
    ----------
    hidden_layers : (int, int)
        Sizes of the two layers, units of the sum and of views of the point among them.
    epochs : int
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
    least_quality : float
        Where neither a source nor the sum of all reaches so much P@k and PSP@k, summed over k = 1,
        3 and 5, all sources count alike.
    trial_steps, trial_epochs, trial_points : int
        The trial on halves ends after about so many steps, or so many epochs, and is of at most so
        many points: enough to see how much the network tells, and which candidates are hard to tell
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
    epochs: int = 24
    batch_size: tuple[int, int] = (125, 62)
    few_points: int = 5_000
    learning_rate: float = 0.01
    decay: float = 0.65
    averaged: float = 0.3
    dropout: float = 0.1
    least_points: int = 20
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
        """Return the corrected sum of the sources, and how far it knows the points by heart.

        A sum and its correction are learnt from each half of some points, and tried on the other
        half, which says what share of the correction helps. Then both are learnt from all points.

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
            With the level that tells best which answers are right.
        """
        is_true = true_among(evidence.judged, truth)
        with one_blas_thread():  # the products are too small to be shared
            if self.is_unseen:
                taught = self._taught_by_unseen(evidence, truth, is_true, inverse_propensities, run)
            else:
                every = np.arange(len(is_true))
                taught = Taught(weighted_sum(evidence, is_true, every, alike=self.alike))
        network = levelled(
            taught.network, evidence, is_true, run.n_threads, is_unseen=self.is_unseen
        )
        return taught._replace(network=network)

    def _taught_by_unseen(
        self,
        evidence: Evidence,
        truth: csr_array,
        is_true: NDArray[np.bool_],
        inverse_propensities: NDArray[np.float64],
        run: TrainingRun,
    ) -> Taught:
        """Return the sum, corrected by as much as a trial says: see `taught`."""
        shuffled = np.random.default_rng(run.seed_for("halves")).permutation(len(is_true))
        tried = shuffled[: self.trial_points]
        some = _Judged(evidence.of_rows(tried), truth[tried], inverse_propensities, run.n_threads)
        total = ScoreNetwork.of_all(evidence)
        plain = _said_by_all_and_each(total, some.evidence, run.n_threads)
        if all(some.quality(said) < self.least_quality for said in plain):
            return Taught(total)  # chance hits do not tell the sources apart
        total = weighted_sum(evidence, is_true, tried)
        if is_true[tried].any(axis=1).sum() < self.least_points:
            return Taught(total)
        trial = self._tried(some.evidence, is_true[tried], run)
        if not trial.share:
            return Taught(total)
        network = self._learnt(trial, total, evidence, is_true, run)
        known = some.first_is_right(network.scores(some.evidence, run.n_threads))
        by_others = some.first_is_right(trial.scores)
        return Taught(network, max(known.mean() - by_others.mean(), 0.0), is_sum=trial.share < 1)

    def _learnt(
        self,
        trial: _Trial,
        total: ScoreNetwork,
        evidence: Evidence,
        is_true: NDArray[np.bool_],
        run: TrainingRun,
    ) -> ScoreNetwork:
        """Correct the sum by all points, of whose candidates a trial tells which are hardest."""
        examples = trial.examples
        total = examples.on_their_scale(total.of_values())
        hardest = examples.hardest_of(
            evidence,
            is_true,
            (trial.network, total.times(BESIDE)),
            self.n_compared,
            seed=run.seed_for("candidates"),
            n_threads=run.n_threads,
        )
        learnt = self._fit(hardest, np.arange(len(is_true)), run, len(total.bias1) + N_ADDED)
        return _corrected(total, examples.frozen(learnt.layers), trial.share)

    def _tried(self, evidence: Evidence, is_true: NDArray[np.bool_], run: TrainingRun) -> _Trial:
        """Learn from each half of some points what ranks the other half."""
        examples = RankingExamples.of(evidence, is_true, run.n_threads)
        halves = np.array_split(np.arange(len(is_true)), 2)

        def taught_by(half: NDArray[np.int64]) -> tuple[ScoreNetwork, RankingNetwork, Floats]:
            total = examples.on_their_scale(weighted_sum(evidence, is_true, half).of_values())
            sums = total.scores(evidence)
            shown, n_beside = examples.saying(BESIDE * sums), len(total.bias1) + N_ADDED
            network = self._fit(shown, half, run, n_beside, most_steps=self.trial_steps)
            return total, network, sums

        with HelpingThreads(min(2, run.n_threads)) as pool:
            (total, network, sums), (_, other, sums_of_first) = pool.map(taught_by, halves)
        sums[halves[0]] = sums_of_first[halves[0]]
        by_others = zip((other, network), halves, strict=True)
        added = np.concatenate([examples.added(one, half) for one, half in by_others])
        examples = examples.saying(sums)
        added -= (1 - BESIDE) * examples.said  # which the network takes the place of
        share = examples.best_share(added) ** POWER_OF_SHARE
        corrected = _corrected(total, examples.frozen(network.layers), share)
        scores: Floats = np.add(sums, np.float32(share) * added)
        return _Trial(examples.without_points(), corrected, scores, share)

    def _fit(
        self,
        examples: RankingExamples,
        rows: NDArray[np.int64],
        run: TrainingRun,
        n_beside: int,
        *,
        most_steps: int | None = None,
    ) -> RankingNetwork:
        """Train a network on some points, with `n_beside` units less in each layer."""
        random, scratch = np.random.default_rng(run.seed_for("score network")), Scratch()
        n_hidden1, n_hidden2 = (n_units - n_beside for n_units in self.hidden_layers)
        n_views = len(examples.centre)
        network = RankingNetwork(n_views, n_hidden1, n_hidden2, self.dropout, random)
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
        batch_size, n_epochs = self.batch_size[n_points > self.few_points], self.epochs
        n_batches = max(1, -(-n_points // batch_size))
        if most_steps is not None:
            n_epochs = min(-(-most_steps // n_batches), self.trial_epochs)
        return batch_size, n_batches * n_epochs


class Taught(NamedTuple):
    """A network, and how far what it says of the points that it learnt from can be trusted.

    Attributes
    ----------
    network : ScoreNetwork
    by_heart : float
        How much more often its first answer is right, of these points, than that of networks that
        learnt from others: a share, from 0 to 1. 0 of a weighted sum, which learns next to nothing.
    is_sum : bool
        Whether it is a weighted sum of the sources, all of it or a part.
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
    network : ScoreNetwork
        Of the first half.
    scores : float32 (n, size)
        Of all candidates, by the network of the other half.
    share : float
        Of its correction that a sum gains most from, 0 to 1.
    """

    examples: RankingExamples
    network: ScoreNetwork
    scores: Floats
    share: float


class _Judged(NamedTuple):
    """Points by which rankings of their candidates are compared."""

    evidence: Evidence
    truth: csr_array
    inverse_propensities: NDArray[np.float64]
    n_threads: int

    def first_is_right(self, scores: Floats) -> NDArray[np.bool_]:
        """Return for which points scores (n, size) put a true candidate first, (n,)."""
        return true_among(self._best(scores, 1), self.truth)[:, 0]

    def quality(self, scores: Floats) -> float:
        """Return P@k + PSP@k, summed over k = 1, 3 and 5."""
        return head_and_tail_precision(self._best(scores, 5), self.truth, self.inverse_propensities)

    def _best(self, scores: Floats, k: int) -> Ids:
        """Return the k best candidates of each point that count."""
        judged = self.evidence.of_judged(scores)
        return best_first(self.evidence.labels, judged, k, self.n_threads)[0]


def _corrected(total: ScoreNetwork, learnt: ScoreNetwork, share: float) -> ScoreNetwork:
    """Return a sum, of which a share gives way to what a network says beside a part of it."""
    return total.times(1 - share * (1 - BESIDE)).plus(learnt.times(share))


def _said_by_all_and_each(
    total: ScoreNetwork, evidence: Evidence, n_threads: int
) -> Iterator[Floats]:
    """Yield what the sum of sources and each of them say, (n, size), -inf of padding."""
    yield total.scores(evidence, n_threads)
    is_real = evidence.labels >= 0
    for said in evidence.values.swapaxes(0, 1):
        yield np.where(is_real, said, -np.inf)
