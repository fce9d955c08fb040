"""The settings of an encoder of texts: a bag of token vectors, or a transformer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING, Any

from longtail.data.point_input import InputKind, PointInput
from longtail.errors import InputError
from longtail.estimators.estimator import LabelEstimator
from longtail.features.transformer import Transformer, check_folder, transformer_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["BAG", "OfTextEncoder", "kind_of"]

BAG = "bag"  # the encoder that is no folder
USUAL_WARM_UP = 0.1  # of a transformer
OF_TRANSFORMERS = ("n_pieces", "fine_tune", "fine_tune_learning_rate", "texts_at_once", "clip")
OF_FINE_TUNING = ("fine_tune_learning_rate", "texts_at_once", "clip")


def kind_of(encoder: str) -> str:
    """Return whether an encoder is a bag or a transformer, as a word."""
    return BAG if encoder == BAG else "transformer"


@dataclass(kw_only=True, eq=False, repr=False)
class OfTextEncoder(LabelEstimator):
    """Base of the recipes around an encoder that may be a bag of token vectors or a transformer.

    Parameters
    ----------
    encoder : str
        ``"bag"`` for a bag of token vectors, or a transformer: its folder, or ``owner/name``, maybe
        ``@revision``, of a model of the Hugging Face hub that is in its local cache. ``--download``
        fetches it there. See `Transformer`.
    n_pieces : int
        Pieces of words that a transformer reads of a text.
    fine_tune : bool
        Train a transformer itself; for a GPU, or few points. Otherwise it reads each text once, and
        what is learnt is learnt over its vectors.
    fine_tune_learning_rate : float
        Of Adam, for the weights of a transformer, at the first step after the warm-up.
    texts_at_once : int or None
        Texts of a batch whose activations a transformer holds in memory, when it is trained. None
        takes 64 on a CPU, and on a GPU as many as half of its free memory holds.
    dimension : int
        Of the bag's token vectors.
    dropout : float
        Of the points' vectors, in training.
    warm_up : float or None
        Share of the steps of the encoder's training over which its rates rise to what they are set
        to. None takes .1 for a transformer that is fine-tuned, as is usual, and 0 otherwise.
    clip : float or None
        Longest norm of the gradient of a transformer's weights, for the mean point of a batch; 1 as
        is usual. None for no limit. Tables are not clipped, and a bag has nothing else.
    patience : int or None
        Stop the encoder's training after so many epochs without a gain on held-out points.
    **kwargs
        Those of `LabelEstimator`.
    """

    encoder: str = BAG
    n_pieces: int = Transformer.n_pieces
    fine_tune: bool = Transformer.fine_tune
    fine_tune_learning_rate: float = Transformer.learning_rate
    texts_at_once: int | None = Transformer.texts_at_once
    dimension: int = 256
    dropout: float = 0.3
    warm_up: float | None = None
    clip: float | None = 1.0
    patience: int | None = None

    @property
    def is_bag(self) -> bool:
        """Whether the encoder is a bag of token vectors, and no transformer."""
        return self.encoder == BAG

    def reads(self) -> PointInput:
        """Bags, and texts for a transformer; see `LabelEstimator`."""
        return PointInput() if self.is_bag else PointInput(InputKind.TEXTS)

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        self.check_encoder()
        if self.reads() == PointInput():
            why = (
                "a bag of token vectors reads no such setting. Name the folder of a transformer, "
                "encoder=FOLDER"
            )
            self._refuse(OF_TRANSFORMERS, why)
        elif not self.fine_tune:
            self._refuse(OF_FINE_TUNING, "the transformer is not trained. Set fine_tune=true")

    def check_encoder(self) -> None:
        """Raise InputError unless the encoder is a bag or a transformer that is there."""
        if not self.is_bag:
            check_folder(self.encoder)

    def _refuse(self, names: Iterable[str], why: str) -> None:
        """Raise InputError if there are settings that nothing reads."""
        usual = {field.name: (field.default, None) for field in fields(self)}  # None asks for none
        unread = [name for name in names if getattr(self, name) not in usual[name]]
        if unread:
            raise InputError(
                f"{' and '.join(unread)} would change nothing: {why}, or leave it out."
            )

    def files_read(self) -> Iterable[Path]:
        """See `LabelEstimator.files_read`: those of transformers."""
        of_transformers = (transformer_files(name) for name in self.transformer_names())
        return [*super().files_read(), *chain.from_iterable(of_transformers)]

    def transformer_names(self) -> Iterable[str]:
        """Return the folder or the hub's name of each transformer; ``--download`` asks."""
        return () if self.is_bag else (self.encoder,)

    def identity(self) -> dict[str, Any]:
        """See `LabelEstimator.identity`: a transformer is known by its files, not by its name."""
        return {**super().identity(), "encoder": kind_of(self.encoder)}

    def looks_at_label_texts(self) -> bool:
        """See `LabelEstimator`."""
        return True

    def transformer(self, batch_size: int) -> Transformer:
        """Return the transformer, to be trained on batches of so many points if at all."""
        return Transformer(
            folder=self.encoder,
            n_pieces=self.n_pieces,
            fine_tune=self.fine_tune,
            dropout=self.dropout,
            learning_rate=self.fine_tune_learning_rate,
            texts_at_once=self.texts_at_once,
            # The gradient that is clipped is a sum over the points of a batch.
            clip=None if self.clip is None else self.clip * batch_size,
        )

    def warm_up_of_encoder(self) -> float:
        """Return over which share of the steps of its training the rates rise."""
        if self.warm_up is not None:
            return self.warm_up
        return USUAL_WARM_UP if self.fine_tune and not self.is_bag else 0.0
