"""A transformer while it is trained on: mixed precision, and batches of any size."""

from __future__ import annotations

import copy
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from longtail.data.bags import has_text
from longtail.features.transformer_encoder import (
    TEXTS_AT_ONCE,
    TransformerEncoder,
    in_batches,
    layers_and_width,
    mean_of_pieces,
)
from longtail.named_parts import joined_parts
from longtail.training.clipping import ConstantNorm
from longtail.training.label_table import product_dtype
from longtail.training.module_adam import ModuleAdam

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray
    from torch import Tensor

    from longtail.data.bags import Bags
    from longtail.features.text_pieces import TextPieces
    from longtail.training.run import TrainingRun

__all__ = ["TunedTransformer", "encoded_texts", "mixed_precision", "texts_that_fit"]

TEXTS_A_CALL = 2048  # of a GPU: fewer leave it waiting for the next call
# Bytes of a piece of a text, times layers and width: some more than was measured, 53, for not all
# of it is in half precision, as `longtail.costs.transformer` counts.
ACTIVATIONS = 64


class TunedTransformer:
    """The weights of a transformer, and how they change.

    Products are of bfloat16 where the device multiplies it, weights and steps stay float32. The
    activations of `texts_at_once` texts are held at a time: those of a larger batch are computed
    again in the way back, part by part, and the gradients of its parts add up, so that the batch
    is one step however large it is (Chen et al., "Training deep nets with sublinear memory cost",
    2016; Gao et al., "Scaling deep contrastive learning batch size under memory limited setup",
    RepL4NLP 2021).

    Parameters
    ----------
    start : TransformerEncoder
        To start from; copied.
    texts_at_once : int or None
        None takes as many as fit; see `texts_that_fit`.
    device : torch.device
    clip : float or None
        Longest norm of the gradient; see `ModuleAdam`.
    """

    def __init__(
        self,
        start: TransformerEncoder,
        *,
        texts_at_once: int | None,
        device: torch.device,
        clip: float | None = None,
    ) -> None:
        self.dimension = start.dimension
        self._start = start
        self._device = device
        self._module = copy.deepcopy(start.network).to(device).train()
        self._texts_at_once = texts_at_once or texts_that_fit(start, device)
        self._texts_a_call = TEXTS_AT_ONCE if device.type == "cpu" else TEXTS_A_CALL
        self._adam = ModuleAdam(self._module, None if clip is None else ConstantNorm(clip))

    def cut(self, texts: NDArray[np.object_]) -> TextPieces:
        """Return the pieces that `forward` reads of texts."""
        return self._start.pieces.cut(texts.tolist())

    def forward(self, pieces: TextPieces, texts: NDArray[np.int64]) -> Tensor:
        """Return unit vectors of some texts, float32 (n, dimension), ready for ``backward``."""
        with mixed_precision(self._device):
            return self._in_parts(pieces, texts)

    def _in_parts(self, pieces: TextPieces, texts: NDArray[np.int64]) -> Tensor:
        """Return the vectors of texts, as many at a time as are held in memory."""
        size = min(self._texts_at_once, self._texts_a_call)
        if len(texts) <= size:
            return self._vectors(pieces, texts)
        # Texts of about the same length go together: little is padded.
        order = np.argsort(pieces.lengths[texts], kind="stable")
        parts = np.split(texts[order], range(size, len(order), size))
        if len(texts) <= self._texts_at_once:
            vectors = [self._vectors(pieces, part) for part in parts]
        else:  # the way back computes a part again, with the same dropout
            again = partial(checkpoint, self._vectors, pieces, use_reentrant=False)
            vectors = [again(part) for part in parts]
        places = torch.from_numpy(np.argsort(order)).to(self._device)
        return torch.cat(vectors)[places]

    def _vectors(self, pieces: TextPieces, texts: NDArray[np.int64]) -> Tensor:
        """Return the vectors of texts that are read in one call."""
        vectors: Tensor = mean_of_pieces(self._module, *pieces.padded(texts))
        return vectors

    def read(self, bags: Bags) -> NDArray[np.float32]:
        """Return unit vectors of texts, which nothing is learnt from; see `encoded_texts`."""
        self._module.eval()
        try:
            return _read(self._module, self._start, bags, self._device, _silent)
        finally:
            self._module.train()

    def step(self, learning_rate: float) -> None:
        """Step against the gradients that ``backward`` has left, and forget them."""
        self._adam.step(learning_rate)

    def state(self) -> dict[str, Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        parts = {"weights": self._module.state_dict(), "adam": self._adam.state()}
        return joined_parts(parts, ".")

    def encoder(self) -> TransformerEncoder:
        """Return the weights as they are now, as a trained model keeps them."""
        weights = {k: v.detach().cpu().numpy().copy() for k, v in self._module.state_dict().items()}
        return TransformerEncoder(self._start.pieces, self._start.settings, weights)


def encoded_texts(
    encoder: TransformerEncoder, bags: Bags, run: TrainingRun, what: str
) -> NDArray[np.float32]:
    """Return unit vectors of texts for training: on its device, and in its precision.

    Parameters
    ----------
    encoder : TransformerEncoder
    bags : Bags
        With texts; an empty one gets zeros.
    run : TrainingRun
        Its callbacks are told how far it is.
    what : str
        What these texts are of.

    Returns
    -------
    float32 (n, dimension)
    """
    network = encoder.network.to(run.torch_device)
    try:
        with run.counted(f"reading {what}") as hear:
            return _read(network, encoder, bags, run.torch_device, hear)
    finally:
        network.to("cpu")


def _read(
    network: Any,
    encoder: TransformerEncoder,
    bags: Bags,
    device: torch.device,
    hear: Callable[[int, int], None],
) -> NDArray[np.float32]:
    """Return the vectors by a network with the pieces of an encoder; see `encoded_texts`."""
    n_read = 0 if bags.texts is None else int(has_text(bags.texts).sum())
    texts_at_once = TEXTS_AT_ONCE if device.type == "cpu" else TEXTS_A_CALL
    n_batches, counter = -(-n_read // texts_at_once), count(1)

    def read(texts: list[str]) -> NDArray[np.float32]:
        with torch.inference_mode(), mixed_precision(device):
            vectors = mean_of_pieces(network, *encoder.pieces.of(texts))
        hear(next(counter), n_batches)
        in_memory: NDArray[np.float32] = vectors.cpu().numpy()
        return in_memory

    return in_batches(bags, encoder.dimension, read, texts_at_once=texts_at_once)


def texts_that_fit(encoder: TransformerEncoder, device: torch.device) -> int:
    """Return how many texts to hold in memory in training: on a GPU, what half of its memory holds.

    There a call takes as long for few texts as for many, so that parts of a batch would take longer
    than the whole; on a CPU, parts of 64 texts cost nothing.
    """
    if device.type == "cpu":
        return TEXTS_AT_ONCE
    layers, width = layers_and_width(encoder.settings) or (1, encoder.dimension)
    free, _ = torch.cuda.mem_get_info(device)
    text = ACTIVATIONS * layers * width * encoder.pieces.n_pieces
    return max(TEXTS_AT_ONCE, int(free / 2 / text))


def _silent(done: int, total: int) -> None:
    """Tell nobody."""


def mixed_precision(device: torch.device) -> AbstractContextManager[object]:
    """Return what makes products of float32 ones of bfloat16 where that is quicker."""
    narrow = product_dtype(device)
    return torch.autocast(device.type, narrow, enabled=narrow != torch.float32)
