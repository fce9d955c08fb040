"""Points and label texts through one encoder, compared by angle: a step of its training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from longtail.siamese.pair_losses import checked_slope
from longtail.training.label_table import product_dtype
from longtail.training.state import state_of

if TYPE_CHECKING:
    from longtail.siamese.corrections import Corrections
    from longtail.siamese.encoders import SiameseEncoder
    from longtail.siamese.pair_losses import PairLoss
    from longtail.training.batches import Batch
    from longtail.training.state import State

__all__ = ["SiameseTask"]


@dataclass(frozen=True, kw_only=True)
class SiameseTask:
    """One step: encode both sides, compare them by angle, and change everything.

    Parameters
    ----------
    encoder : SiameseEncoder
    corrections : Corrections or None
        None leaves the texts alone, as NGAME does.
    loss : PairLoss

    Examples
    --------
    The point is near the text of label 0, but has label 1.

    >>> import numpy as np
    >>> import torch
    >>> from longtail.siamese.corrections import Corrections
    >>> from longtail.siamese.encoders import FrozenPairs
    >>> from longtail.siamese.pair_losses import TripletLoss
    >>> from longtail.siamese.task import SiameseTask
    >>> from longtail.training.batches import Batch
    >>> cpu, rows, zero = torch.device("cpu"), np.eye(2, dtype=np.float32), np.array([0])
    >>> encoder = FrozenPairs(rows[:1], rows, dropout=0.0, device=cpu)
    >>> corrections = Corrections(0 * rows, np.arange(2), cpu)
    >>> task = SiameseTask(encoder=encoder, corrections=corrections, loss=TripletLoss(n_hardest=1))
    >>> batch = Batch(zero, np.arange(2), zero, np.array([1]))
    >>> [round(task.step(batch, 0.5, 1.0, measure=True), 1) for _ in range(4)]
    [1.3, 0.7, 0.5, 0.4]
    """

    encoder: SiameseEncoder
    corrections: Corrections | None
    loss: PairLoss

    def step(
        self,
        batch: Batch,
        learning_rate: float,
        share: float,  # noqa: ARG002 - the loop tells every task
        *,
        measure: bool,
    ) -> float | None:
        """See `longtail.training.loop.Task.step`."""
        points, texts = self.encoder.encode(batch)
        device = points.unit.device
        rows = torch.from_numpy(batch.positive_rows).to(device)
        columns = torch.from_numpy(batch.positive_columns).to(device)
        pool = torch.as_tensor(batch.pool).to(device)
        labels = texts
        if self.corrections is not None:
            labels = self.corrections.add(texts.unit, pool)
        dtype = product_dtype(device)
        x, w = points.unit.to(dtype), labels.unit.to(dtype)
        loss, slope = checked_slope(self.loss, (x @ w.T).float(), rows, columns)
        narrow = slope.to(dtype)
        to_labels = (narrow.T @ x).float()
        if self.corrections is not None:
            to_labels = self.corrections.step(pool, labels, to_labels, learning_rate)
        self.encoder.step((narrow @ w).float(), to_labels, learning_rate)
        return loss if measure else None

    def state(self) -> State:
        """See `longtail.training.loop.Task.state`."""
        corrections = {} if self.corrections is None else self.corrections.state()
        return {**state_of(self.encoder), **corrections}
