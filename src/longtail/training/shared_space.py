"""Points, labels and label texts trained into one space of unit vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor
from torch.nn import functional

from longtail.classifiers.blended import LabelHead
from longtail.data.bags import Bags
from longtail.features.bag_encoder import UnitBagEncoder
from longtail.training.batches import SharedPool
from longtail.training.loop import train
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.unit_labels import UnitLabelTable, UnitRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.training.batches import Batch
    from longtail.training.run import TrainingData, TrainingRun
    from longtail.training.schedule import Schedule

__all__ = ["LearntSpace", "SharedSpace", "SpaceTables"]


class LearntSpace(NamedTuple):
    """What training leaves.

    Attributes
    ----------
    encoder : UnitBagEncoder
    heads : tuple of LabelHead
        The best to search first: free label vectors; or, where labels have texts, those with texts,
        then free ones, then the texts alone.
    tables : SpaceTables
        From which training can go on.
    """

    encoder: UnitBagEncoder
    heads: tuple[LabelHead, ...]
    tables: SpaceTables


class SpaceTables(NamedTuple):
    """What is trained, as it was at the end.

    Attributes
    ----------
    tokens : float32 Tensor (n_features, dimension)
    labels : tuple of pairs of float32 Tensor
        The vectors (n_labels, dimension) and the bias (n_labels, 1) of each head.
    has_points : bool (n_labels,)
        Whether a label was more than a negative.
    """

    tokens: Tensor
    labels: tuple[tuple[Tensor, Tensor], ...]
    has_points: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class SharedSpace:
    """Learn token vectors under two heads at once: free label vectors, and label texts.

    The token vectors start at random, which keeps the angles between bags as they are, and a label
    starts at the mean of its points: before the first step, this is a nearest-centroid classifier.
    The heads never see each other, so that a blend of their scores can learn how far to trust text.

    Parameters
    ----------
    dimension : int
    schedule : Schedule
    batch_size : int
    n_random : int
        Random labels in a batch's pool, beside the true labels of its points.
    dropout : float
        Of the sums of token vectors.
    scale : float
        Logits are this times the cosine.
    """

    dimension: int
    schedule: Schedule
    batch_size: int = 1024
    n_random: int = 200
    dropout: float = 0.3
    scale: float = 20.0

    def learn(
        self, data: TrainingData, run: TrainingRun, start: SpaceTables | None = None
    ) -> LearntSpace:
        """Train on points, their labels and, where there are any, the labels' texts.

        With `start`, training goes on from there: the same labels and features, more points.
        """
        task = _SharedSpaceTask(self, data, run, start)
        no_shortlists = np.zeros((data.labels.shape[0], 0), np.int32)
        batches = SharedPool(
            labels=data.labels,
            shortlists=no_shortlists,
            batch_size=self.batch_size,
            n_hard=0,
            n_random=min(self.n_random, data.labels.shape[1]),
        )
        train(task, batches, self.schedule, run, "shared space")
        return task.learnt()


class _SharedSpaceTask:
    """One step: encode points and label texts, compare, and change everything."""

    def __init__(
        self,
        settings: SharedSpace,
        data: TrainingData,
        run: TrainingRun,
        start: SpaceTables | None,
    ) -> None:
        self._settings = settings
        self._features = data.features
        self._label_features = data.label_features
        self._has_points = np.bincount(data.labels.indices, minlength=data.labels.shape[1]) > 0
        self._n_threads = run.n_threads
        self._device = run.device
        seed, shape = run.seed_for("token vectors"), (data.features.shape[1], settings.dimension)
        self._table = start.tokens if start else torch.from_numpy(_random_rows(*shape, seed))
        self._optimiser = RowwiseAdagrad(self._table)
        vectors, bias = self._nearest_centroids(data)
        n_heads = 1 if data.label_features is None else 2
        self._heads = tuple(
            UnitLabelTable(vectors, bias, scale=settings.scale, device=run.device)
            for _ in range(n_heads)
        )
        if start:
            self._go_on_from(start)

    def _go_on_from(self, start: SpaceTables) -> None:
        """Give the labels that had points before the vectors that they had then."""
        known = torch.from_numpy(start.has_points)
        for head, (vectors, bias) in zip(self._heads, start.labels, strict=True):
            head.vectors[known] = vectors[known]
            head.bias[known] = bias[known]

    def _nearest_centroids(
        self, data: TrainingData
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the mean directions of the labels' points, and the logarithms of their numbers."""
        points = self._encoder().encode(Bags.of(data.features), self._n_threads)
        by_label = data.labels.T.tocsr()
        start = UnitRows.of(
            torch.from_numpy(Bags.of(by_label).times(points, self._n_threads))
        ).unit.numpy()
        counts = np.maximum(np.diff(by_label.indptr), 0.5)
        return start, np.log(counts).astype(np.float32)

    def step(
        self,
        batch: Batch,
        learning_rate: float,
        share: float,  # noqa: ARG002 - the loop tells every task
        *,
        measure: bool,
    ) -> float | None:
        """See `longtail.training.loop.Task.step`."""
        bags = self._features[batch.points]
        sums = torch.from_numpy(Bags.of(bags).times(self._table.numpy(), self._n_threads)).to(
            self._device
        )
        kept = functional.dropout(torch.ones_like(sums), self._settings.dropout)
        points = UnitRows.of(sums * kept)
        texts, to_texts = None, None
        loss, to_points = self._heads[0].learn(points.unit, None, batch, learning_rate)[:2]
        if self._label_features is not None:
            label_bags = self._label_features[batch.pool]
            texts = UnitRows.of(
                torch.from_numpy(
                    Bags.of(label_bags).times(self._table.numpy(), self._n_threads)
                ).to(self._device)
            )
            text_loss, more, to_texts = self._heads[1].learn(
                points.unit, texts, batch, learning_rate
            )
            loss, to_points = loss + text_loss, to_points + more
        slope = points.backward(to_points) * kept
        if to_texts is not None:
            bags, slope = vstack([bags, label_bags]).tocsr(), torch.cat([slope, to_texts])
        self._step_tokens(bags, slope.cpu().numpy(), learning_rate)
        return loss if measure else None

    def _step_tokens(
        self, bags: csr_array, slope: NDArray[np.float32], learning_rate: float
    ) -> None:
        """Change the vectors of the tokens in some bags, given the gradient of their sums."""
        by_token = bags.T.tocsr()
        touched = np.flatnonzero(np.diff(by_token.indptr))
        gradient = torch.from_numpy(Bags.of(by_token[touched]).times(slope, self._n_threads))
        self._optimiser.step(self._table, torch.from_numpy(touched), gradient, learning_rate)

    def state(self) -> dict[str, Tensor]:
        """See `longtail.training.loop.Task.state`."""
        parts = {"tokens": {"table": self._table, **self._optimiser.state()}}
        parts |= {f"head{i}": head.state() for i, head in enumerate(self._heads)}
        return {f"{part}.{k}": v for part, tensors in parts.items() for k, v in tensors.items()}

    def learnt(self) -> LearntSpace:
        """Return the vectors as they are now."""
        encoder, scale = self._encoder(), self._settings.scale
        heads = [head.learnt(None, self._has_points) for head in self._heads]
        if self._label_features is not None:
            texts = encoder.encode(Bags.of(self._label_features), self._n_threads)
            no_bias = np.zeros(len(texts), np.float32)
            heads = [
                self._heads[1].learnt(texts, self._has_points),
                heads[0],
                LabelHead.of(texts, no_bias, scale),
            ]
        labels = tuple((head.vectors, head.bias) for head in self._heads)
        tables = SpaceTables(self._table, labels, self._has_points)
        return LearntSpace(encoder, tuple(heads), tables)

    def _encoder(self) -> UnitBagEncoder:
        """Return the encoder with the token vectors as they are now."""
        return UnitBagEncoder(self._table.numpy())


def _random_rows(n_rows: int, dimension: int, seed: int) -> NDArray[np.float32]:
    """Return normal rows of about unit length."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((n_rows, dimension), np.float32)
    rows *= np.float32(dimension**-0.5)
    return rows
