"""How the energy of a re-ranker is learnt, from the shortlists of points that were held out."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array
from torch import Tensor, nn

from longtail.energy.descent import Descent
from longtail.energy.terms import EnergyTerms
from longtail.metrics.head_and_tail import sum_of_precisions
from longtail.metrics.hits import true_among
from longtail.scorers.energy_inference import EnergyInference
from longtail.scorers.energy_reranker import ShortlistEnergy, shortlist_evidence
from longtail.scorers.ranking import best_first
from longtail.training.ranking_loss import ranking_loss
from longtail.training.ranking_slope import log_counts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from longtail.training.run import TrainingRun

    Ids = NDArray[np.int32]
    Floats = NDArray[np.float32]

__all__ = ["ENERGY_RERANKINGS", "LEAST_POINTS", "EnergyRerankerTraining", "cooccurrence_vectors"]

LEAST_POINTS = 50
FIRST_WEIGHT = 0.2  # of each softplus unit


@dataclass(frozen=True, kw_only=True)
class EnergyRerankerTraining:
    """Train a `ShortlistEnergy` through its inference, by a ranking loss.

    A few thousand shortlists cannot teach a vector a label. So these come from which labels occur
    together in all training points (`cooccurrence_vectors`), which takes no scores, and only how
    they are mixed into hidden units is learnt from the shortlists. The first mixture already joins
    labels that occur together: there are two units for each place of the vectors, of either sign,
    whose softplus functions add up to nearly the square of the labels' sum there.

    Parameters
    ----------
    size : int
        Labels of a shortlist.
    rank : int
        Length of a label's co-occurrence vector; there are twice as many softplus units.
    n_updates, batch_size : int
        Steps of AdamW, however many shortlists there are, and shortlists of a step.
    learning_rate, weight_decay : float
        Of AdamW.
    is_convex : bool
        Keep the weights of the units from being negative, as in an ICNN.
    descent : Descent
    only_if_better : bool
        Return nothing unless it gains in P@1 + P@3 + P@5 on each half of the points, learnt from
        the other half, together.

    Examples
    --------
    Nothing is learnt from fewer than 50 points that have a true label on their shortlists.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.energy.reranking import EnergyRerankerTraining
    >>> from longtail.training.run import TrainingRun
    >>> ids, scores = np.array([[0, 1]] * 49, np.int32), np.array([[2, 1]] * 49, np.float32)
    >>> truth = csr_array(np.ones((49, 2)))
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> EnergyRerankerTraining().learn(ids, scores, truth, truth, run) is None
    True
    """

    size: int = 100
    rank: int = 16
    n_updates: int = 150
    batch_size: int = 128
    learning_rate: float = 0.01
    weight_decay: float = 1e-3
    is_convex: bool = False
    descent: Descent = field(default_factory=lambda: Descent(n_steps=5))
    only_if_better: bool = True

    def learn(
        self, ids: Ids, scores: Floats, truth: csr_array, train_labels: csr_array, run: TrainingRun
    ) -> ShortlistEnergy | None:
        """Learn from shortlists of points that the scorer has not seen.

        Parameters
        ----------
        ids : int32 (n, size)
            Best first, padded with -1.
        scores : float32 (n, size)
            Padded with -inf.
        truth : csr_array (n, n_labels)
        train_labels : csr_array (n_points, n_labels)
            Of any training points.
        run : TrainingRun
            Its history gets the mean loss on both halves, their seconds, and as quality the gain
            on the other halves: points of P@1 + P@3 + P@5, in percent.

        Returns
        -------
        ShortlistEnergy or None
            None if there are too few points that have a true label on their shortlist, or it does
            not gain.
        """
        lists = _Shortlists.of(ids, scores, truth)
        if lists.is_true.any(dim=1).sum() < LEAST_POINTS:
            return None
        vectors = cooccurrence_vectors(train_labels, self.rank, run.seed_for("label vectors"))
        every = np.random.default_rng(run.seed_for("halves")).permutation(len(ids))
        halves, started = np.array_split(every, 2), time.perf_counter()
        losses, gains = [], []
        for rows, others in (halves, halves[::-1]):
            energy, loss = self._fit(lists, vectors, others, run)
            reordered = _quality(energy.states(ids[rows], scores[rows]), ids[rows], truth[rows])
            losses.append(loss)
            gains.append(reordered - _quality(scores[rows], ids[rows], truth[rows]))
        run.history.append(
            {
                "stage": run.scope + "re-ranker",
                "epoch": 1,
                "loss": float(np.mean(losses)),
                "seconds": round(time.perf_counter() - started, 3),
                "quality": 100 * float(np.mean(gains)),
            }
        )
        if self.only_if_better and sum(gains) <= 0:
            return None
        return self._fit(lists, vectors, every, run)[0]

    def _fit(
        self, lists: _Shortlists, vectors: Floats, rows: NDArray[np.int64], run: TrainingRun
    ) -> tuple[ShortlistEnergy, float]:
        """Train on some points, and return the mean loss, too."""
        torch.manual_seed(run.seed_for("re-ranker"))
        rows = rows[lists.is_true.any(dim=1).numpy()[rows]]  # the others have nothing to rank
        network = _ShortlistNetwork(vectors, lists.evidence[rows], is_convex=self.is_convex)
        optimiser = torch.optim.AdamW(
            network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.01, self.n_updates)
        losses = []
        for some in lists.batches(torch.from_numpy(rows), self.batch_size, self.n_updates):
            states = self.descent.states(network.terms(some))[-1]
            log_counts = torch.from_numpy(log_counts_of(some.labels.numpy()))
            loss = ranking_loss(states, some.is_true, log_counts)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch has no types here
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            network.project()
            schedule.step()
            losses.append(loss.item())
        self.descent.check(network.terms(lists.rows(torch.from_numpy(rows[:512]))))
        inference = EnergyInference(
            n_steps=self.descent.n_steps, step=self.descent.step, momentum=self.descent.momentum
        )
        return network.frozen(self.size, inference), float(np.mean(losses))


ENERGY_RERANKINGS: Mapping[str, EnergyRerankerTraining] = MappingProxyType(
    {"spen": EnergyRerankerTraining(), "icnn": EnergyRerankerTraining(is_convex=True)}
)


class _Shortlists(NamedTuple):
    """Shortlists as tensors; labels (n, size), evidence (n, size, 3), is_true (n, size)."""

    labels: Tensor
    evidence: Tensor
    is_true: Tensor

    @classmethod
    def of(cls, ids: Ids, scores: Floats, truth: csr_array) -> _Shortlists:
        is_true = torch.from_numpy(true_among(ids, truth))
        evidence = torch.from_numpy(shortlist_evidence(scores))
        return cls(torch.from_numpy(ids.astype(np.int64)), evidence, is_true)

    def rows(self, rows: Tensor) -> _Shortlists:
        """Return some of the points."""
        return _Shortlists(*(tensor[rows] for tensor in self))

    def batches(self, rows: Tensor, size: int, n_batches: int) -> Iterator[_Shortlists]:
        """Yield so many batches of some of the points, in passes of another order each."""
        n_passes = -(-n_batches * size // len(rows))
        order = torch.cat([rows[torch.randperm(len(rows))] for _ in range(n_passes)])
        for start in range(0, n_batches * size, size):
            yield self.rows(order[start : start + size])


class _ShortlistNetwork(nn.Module):
    """A `ShortlistEnergy` as torch trains it."""

    def __init__(self, vectors: Floats, evidence: Tensor, *, is_convex: bool) -> None:
        super().__init__()
        self.is_convex = is_convex
        self.vectors = torch.from_numpy(vectors)
        places = torch.eye(vectors.shape[1])
        self.mixing = nn.Parameter(torch.cat([places, -places], dim=1))
        units = torch.ones(2 * len(places))
        self.offset = nn.Parameter(0 * units)
        # Both push a label up by its products with the scorer's labels: a SPEN because sums away
        # from 0 cost less, an ICNN because a sum costs less the nearer it is to twice its context.
        self.weights = nn.Parameter(FIRST_WEIGHT * (units if is_convex else -units))
        self.context_weights = nn.Parameter((2.0 if is_convex else 0.0) * units)
        self.scale = 1 / evidence.flatten(0, 1).std(dim=0).clamp_min(1e-4)
        self.evidence_weights = nn.Parameter(torch.tensor([1.0, 0.0, 0.0]))
        self.bias = nn.Parameter(torch.tensor(-2.0))

    def terms(self, lists: _Shortlists) -> EnergyTerms:
        """Return the energy of each shortlist."""
        is_real = (lists.labels >= 0)[:, :, None]
        unaries = (lists.evidence * self.scale) @ self.evidence_weights + self.bias
        vectors = self.vectors[lists.labels.clamp_min(0)] * is_real @ self.mixing
        context = (unaries.sigmoid()[:, None] @ vectors)[:, 0]
        offset = self.offset - self.context_weights * context
        return EnergyTerms(unaries, (vectors,), (offset,), (self.weights,))

    @torch.no_grad()
    def project(self) -> None:
        """Keep a convex energy convex."""
        if self.is_convex:
            self.weights.clamp_(min=0)

    @torch.no_grad()
    def frozen(self, size: int, inference: EnergyInference) -> ShortlistEnergy:
        """Return it as a model keeps it."""
        return ShortlistEnergy(
            label_vectors=(self.vectors @ self.mixing).numpy(),
            offset=self.offset.numpy().copy(),
            weights=self.weights.numpy().copy(),
            context_weights=self.context_weights.numpy().copy(),
            evidence_weights=(self.evidence_weights * self.scale).numpy(),
            bias=float(self.bias),
            size=size,
            inference=inference,
        )


def cooccurrence_vectors(labels: csr_array, rank: int, seed: int) -> NDArray[np.float32]:
    """Return vectors whose inner products are near to how often labels occur together.

    Parameters
    ----------
    labels : csr_array (n_points, n_labels)
    rank : int
        Length of a vector; less if there are fewer labels or points.
    seed : int

    Returns
    -------
    float32 (n_labels, rank)
        The right singular vectors of the label matrix with columns of unit length, times their
        singular values: products of whole rows are the cosines of the labels' columns.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.energy.reranking import cooccurrence_vectors
    >>> labels = csr_array(np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]]))
    >>> vectors = cooccurrence_vectors(labels, 2, seed=0)
    >>> bool(vectors[0] @ vectors[1] > 0.9), bool(abs(vectors[0] @ vectors[2]) < 0.1)
    (True, True)
    """
    # Not wherever a recipe could be re-ranked: that takes a thirtieth of a second.
    from scipy.sparse.linalg import svds  # noqa: PLC0415

    counts = np.maximum(np.asarray(labels.sum(axis=0)).ravel(), 1)
    units = csr_array(labels.astype(np.float64) @ diags_array(1 / np.sqrt(counts)))
    rank = min(rank, min(units.shape) - 1)
    if rank < 1:
        return np.zeros((units.shape[1], 1), np.float32)
    start = np.random.default_rng(seed).standard_normal(min(units.shape))
    _, values, right = svds(units, k=rank, v0=start)
    return np.ascontiguousarray(right.T * values, np.float32)


def _quality(scores: Floats, ids: Ids, truth: csr_array) -> float:
    """Return P@1 + P@3 + P@5."""
    best, _ = best_first(ids, scores, min(5, ids.shape[1]))
    return sum_of_precisions(best, truth)
