"""Transformers as encoders of points and label texts, as they are or trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from longtail.data.rows import unit_vectors
from longtail.errors import InputError
from longtail.features.summed_encoder import SummedEncoder
from longtail.features.token_table import TokenTable
from longtail.features.token_tensors import TokenTensors
from longtail.features.tuned_transformer import encoded_texts
from longtail.named_parts import joined_parts
from longtail.siamese.encoders import UnitPairs
from longtail.siamese.networks import Side
from longtail.training.chosen_bags import ChosenBags
from longtail.training.optimisers import LazyAdam
from longtail.training.scratch import empty_array

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from longtail.data.bags import Bags
    from longtail.features.transformer import Transformer
    from longtail.features.transformer_encoder import TransformerEncoder
    from longtail.features.tuned_transformer import TunedTransformer
    from longtail.training.batches import Batch
    from longtail.training.dropped_rows import DroppedRows
    from longtail.training.run import TrainingData, TrainingRun
    from longtail.training.state import State
    from longtail.training.unit_rows import UnitRows

    Floats = NDArray[np.float32]

__all__ = ["TransformerArchitecture"]


@dataclass(frozen=True, kw_only=True)
class TransformerArchitecture:
    """A pretrained transformer reads points and label texts.

    If it is not fine-tuned, it reads each text once, T(x), and what is trained is a linear map A,
    from the identity on, and token vectors e_t, from 0 on, which points and labels share:
    ``E(x) = unit(A T(x) + sum_t x_t e_t)``. If it is, only the transformer is trained.

    Parameters
    ----------
    transformer : Transformer
    speed : float
        Adam, of the map or of the transformer, has so many times the rate of the tables.
    dropout : float
        Of the points' vectors, in training.
    """

    transformer: Transformer
    speed: float
    dropout: float

    def start(
        self, data: TrainingData, held_out: TrainingData, run: TrainingRun
    ) -> ReadTexts | TunedTexts:
        """See `SiameseArchitecture.start`."""
        encoder, bags = self.transformer.read(), _texts_of(data, held_out)
        if not self.transformer.fine_tune:
            n_tokens = data.features.shape[1]
            return ReadTexts(encoder, bags, n_tokens, run, speed=self.speed, dropout=self.dropout)
        tuned = self.transformer.tuned(encoder, run)
        return TunedTexts(tuned, bags, speed=self.speed, dropout=self.dropout)


class ReadTexts:
    """Vectors of a transformer that stays as it is, and what is learnt around it.

    Parameters
    ----------
    encoder : TransformerEncoder
    bags : dict of Side to Bags
        With texts.
    n_tokens : int
    run : TrainingRun
    speed, dropout : float
    """

    def __init__(
        self,
        encoder: TransformerEncoder,
        bags: dict[Side, Bags],
        n_tokens: int,
        run: TrainingRun,
        *,
        speed: float,
        dropout: float,
    ) -> None:
        self.dimension = encoder.dimension
        self._encoder, self.run = encoder, run
        self._bags = bags
        self._read = {s: encoded_texts(encoder, some, run, s.value) for s, some in bags.items()}
        start = empty_array((n_tokens, self.dimension))
        start[:] = 0
        table = TokenTable(n_tokens, self.dimension, seed=0, n_threads=run.n_threads, start=start)
        self.tokens = TokenTensors(table, run.torch_device)
        self.matrix = torch.eye(encoder.dimension, device=run.torch_device)
        self._adam = LazyAdam(self.matrix)
        self._speed, self.dropout = speed, dropout

    def pairs(self, labels: NDArray[np.integer]) -> _ReadPairs:
        """See `SiameseNetwork.pairs`."""
        return _ReadPairs(self, labels)

    def read(self, points: NDArray[np.int64], labels: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return what the transformer makes of some texts, and sums of that and of the tokens'."""
        chosen = {Side.POINTS: points, Side.LABELS: labels}
        rows = np.concatenate([self._read[side][some] for side, some in chosen.items()])
        sums = self.tokens.sums(*(ChosenBags.of(self._bags[s], some) for s, some in chosen.items()))
        read = torch.from_numpy(rows).to(sums.device)
        return read, sums.add_(read @ self.matrix.T)

    def step(self, rows: Tensor, slopes: Tensor, learning_rate: float) -> None:
        """Step map and token vectors against the gradient by the sums of both."""
        self.tokens.step(slopes, learning_rate)
        every = torch.arange(len(self.matrix), device=rows.device)
        self._adam.step(self.matrix, every, slopes.T @ rows, self._speed * learning_rate)

    def vectors(self, side: Side) -> Floats:
        """See `SiameseNetwork.vectors`."""
        vectors = self._read[side] @ self.matrix.cpu().numpy().T
        vectors += self._bags[side].times(self.tokens.table.vectors(), self.run.n_threads)
        return unit_vectors(vectors)

    def frozen(self) -> SummedEncoder:
        """See `SiameseNetwork.frozen`."""
        matrix, tokens = self.matrix.cpu().numpy(), self.tokens.table.vectors()
        return SummedEncoder(self._encoder, matrix, tokens)

    def state(self) -> State:
        """Return the live arrays and tensors that a checkpoint keeps."""
        parts: dict[str, State] = {"matrix": self._adam.state(), "tokens": self.tokens.state()}
        return {"matrix": self.matrix, **joined_parts(parts, ".")}


class _ReadPairs:
    """Batches of read points and labels; see `SiameseEncoder`."""

    def __init__(self, network: ReadTexts, labels: NDArray[np.integer]) -> None:
        self._network, self._labels = network, labels.astype(np.int64)

    def encode(self, batch: Batch) -> tuple[DroppedRows, UnitRows]:
        """See `SiameseEncoder.encode`."""
        self._read, sums = self._network.read(batch.points, self._labels[batch.pool])
        self._pairs = UnitPairs.of(sums, len(batch.points), self._network.dropout)
        return self._pairs.points, self._pairs.texts

    def step(self, to_points: Tensor, to_texts: Tensor, learning_rate: float) -> None:
        """See `SiameseEncoder.step`."""
        slopes = self._pairs.backward(to_points, to_texts)
        self._network.step(self._read, slopes, learning_rate)

    def state(self) -> State:
        """See `SiameseEncoder.state`."""
        return self._network.state()


class TunedTexts:
    """A transformer that is trained on, with weights shared by points and label texts.

    Parameters
    ----------
    tuned : TunedTransformer
    bags : dict of Side to Bags
        With texts.
    speed, dropout : float
    """

    def __init__(
        self,
        tuned: TunedTransformer,
        bags: dict[Side, Bags],
        *,
        speed: float,
        dropout: float,
    ) -> None:
        self.dimension = tuned.dimension
        self.tuned, self.speed, self.dropout = tuned, speed, dropout
        self._bags = bags
        points, texts = (  # `_texts_of` has looked whether there are any
            tuned.cut(cast("NDArray[np.object_]", bags[side].texts))
            for side in (Side.POINTS, Side.LABELS)
        )
        self.pieces, self.n_points = points.followed_by(texts), len(points.lengths)

    def pairs(self, labels: NDArray[np.integer]) -> _TunedPairs:
        """See `SiameseNetwork.pairs`."""
        return _TunedPairs(self, labels)

    def vectors(self, side: Side) -> Floats:
        """See `SiameseNetwork.vectors`."""
        return self.tuned.read(self._bags[side])

    def frozen(self) -> TransformerEncoder:
        """See `SiameseNetwork.frozen`."""
        return self.tuned.encoder()


class _TunedPairs:
    """Batches of points and labels through the transformer; see `SiameseEncoder`."""

    def __init__(self, network: TunedTexts, labels: NDArray[np.integer]) -> None:
        self._network, self._labels = network, labels.astype(np.int64)

    def encode(self, batch: Batch) -> tuple[DroppedRows, UnitRows]:
        """See `SiameseEncoder.encode`."""
        network = self._network
        read = np.concatenate([batch.points, network.n_points + self._labels[batch.pool]])
        self._vectors = network.tuned.forward(network.pieces, read)
        vectors = self._vectors.detach().clone()  # written over, which autograd would not see
        self._pairs = UnitPairs.of(vectors, len(batch.points), self._network.dropout)
        return self._pairs.points, self._pairs.texts

    def step(self, to_points: Tensor, to_texts: Tensor, learning_rate: float) -> None:
        """See `SiameseEncoder.step`."""
        torch.autograd.backward(self._vectors, self._pairs.backward(to_points, to_texts))
        self._network.tuned.step(self._network.speed * learning_rate)

    def state(self) -> State:
        """See `SiameseEncoder.state`."""
        return self._network.tuned.state()


def _texts_of(data: TrainingData, held_out: TrainingData) -> dict[Side, Bags]:
    """Return what is read of each side."""
    labels = data.label_bags()
    if labels is None or labels.texts is None or data.texts is None:
        raise InputError(
            "A transformer reads the texts of points and labels, but "
            f"{'labels have ids alone' if data.texts is not None else 'these points are bags'}. "
            "Pass texts and names, or take the encoder 'bag'."
        )
    return {Side.POINTS: data.bags(), Side.LABELS: labels, Side.HELD_OUT: held_out.bags()}
