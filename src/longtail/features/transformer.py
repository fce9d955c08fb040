"""A pretrained transformer, from a folder or a hub's cache, as a feature architecture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from longtail.data.point_input import InputKind, PointInput
from longtail.errors import InputError, MissingExtraError
from longtail.features.hub import FILES, missing_files, transformer_folder
from longtail.features.text_pieces import PiecesOfTexts, needs_transformers
from longtail.features.transformer_encoder import TransformerEncoder, layers_and_width
from longtail.features.tuned_transformer import TunedTransformer, encoded_texts
from longtail.training.dropout import dropped
from longtail.training.one_vs_all import FrozenFeatures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from torch import Tensor

    from longtail.data.bags import Bags
    from longtail.training.run import TrainingData, TrainingRun

__all__ = [
    "FrozenTexts",
    "Transformer",
    "TransformerNetwork",
    "check_folder",
    "read_transformer",
    "transformer_files",
]


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """Any encoder of the ``transformers`` library: unit means over the pieces of its last layer.

    Frozen, it costs one pass over the points, and what Module I learns on it is thrown away with
    its classifiers: let the surrogate train for no epoch. Fine-tuning costs three passes a point
    and epoch, which is for a GPU.

    Parameters
    ----------
    folder : str
        With ``config.json``, ``tokenizer.json`` and ``model.safetensors``; or ``owner/name``, maybe
        ``@revision``, of the Hugging Face hub, as it is in its local cache. Nothing is downloaded;
        `longtail.features.hub.download_transformer` does so before.
    n_pieces : int
        Pieces of words that are read of a text; the rest is cut off.
    fine_tune : bool
        Train its weights on.
    dropout : float
        Of the vectors, in training.
    learning_rate : float
        Of Adam, for the weights; falls with the schedule of the stage.
    texts_at_once : int or None
        Texts of a batch whose activations are in memory at a time, in training; see
        `TunedTransformer`.
    clip : float or None
        Longest norm of the gradient of the weights that the points of a batch sum up to; None for
        no limit. See `ModuleAdam`.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.features.transformer import Transformer
    >>> DeepXML(features=Transformer(folder="minilm")).reads().kind.value
    'texts'
    """

    folder: str
    n_pieces: int = 128
    fine_tune: bool = False
    dropout: float = 0.0
    learning_rate: float = 5e-5
    texts_at_once: int | None = None
    clip: float | None = None

    def files_read(self) -> list[Path]:
        """See `LabelEstimator.files_read`."""
        return transformer_files(self.folder)

    @property
    def reads(self) -> PointInput:
        """Texts."""
        return PointInput(InputKind.TEXTS)

    def network(
        self,
        data: TrainingData,
        targets: csr_array,  # noqa: ARG002 - it is pretrained
        run: TrainingRun,
        start: TransformerEncoder | None = None,
    ) -> FrozenTexts | TransformerNetwork:
        """Return vectors, or a network to train on; see `FeatureArchitecture.network`."""
        encoder = self.read() if start is None else start
        if not self.fine_tune:
            return FrozenTexts(encoder, data, dropout=self.dropout, run=run)
        return TransformerNetwork(
            self.tuned(encoder, run), data, self.dropout, learning_rate=self.learning_rate
        )

    def read(self) -> TransformerEncoder:
        """Return the encoder as it is in the folder."""
        return read_transformer(self.folder, self.n_pieces)

    def tuned(self, start: TransformerEncoder, run: TrainingRun) -> TunedTransformer:
        """Return the weights, to be trained on."""
        torch.manual_seed(run.seed_for("dropout of the transformer"))
        return TunedTransformer(
            start, texts_at_once=self.texts_at_once, device=run.torch_device, clip=self.clip
        )

    def frozen(self, network: FrozenTexts | TransformerNetwork) -> TransformerEncoder:
        """Return the encoder as a trained model keeps it."""
        return network.encoder()


class FrozenTexts(FrozenFeatures):
    """Vectors of the training points by an encoder that stays as it is."""

    def __init__(
        self, encoder: TransformerEncoder, data: TrainingData, *, dropout: float, run: TrainingRun
    ) -> None:
        self._encoder = encoder
        self._vectors = encoded_texts(encoder, data.bags(), run, "points")
        super().__init__(self._vectors, dropout=dropout, device=run.torch_device)

    def vectors(self, data: TrainingData) -> NDArray[np.float32]:  # noqa: ARG002 - its own points
        """Return the vectors of the training points, which are there."""
        return self._vectors

    def encoder(self) -> TransformerEncoder:
        """Return the encoder."""
        return self._encoder


class TransformerNetwork:
    """A transformer while it is trained, on the texts of the training points."""

    def __init__(
        self, tuned: TunedTransformer, data: TrainingData, dropout: float, *, learning_rate: float
    ) -> None:
        if data.texts is None:
            raise InputError("A transformer reads texts, but these points are bags. Pass texts.")
        self.dimension = tuned.dimension
        self._tuned = tuned
        self._pieces = tuned.cut(data.texts)
        self._dropout = dropout
        self._learning_rate = learning_rate

    def forward(self, points: NDArray[np.int64]) -> Tensor:
        """See `FeatureNetwork.forward`."""
        return dropped(self._tuned.forward(self._pieces, points), self._dropout)

    def step(self, learning_rate: float, share: float = 1.0) -> None:  # noqa: ARG002 - of tables
        """See `FeatureNetwork.step`."""
        self._tuned.step(self._learning_rate * share)

    def state(self) -> dict[str, Tensor]:
        """See `FeatureNetwork.state`."""
        return self._tuned.state()

    def vectors(self, data: TrainingData) -> NDArray[np.float32]:
        """Return the vectors of the training points, by the weights as they are now."""
        return self.read(data.bags())

    def read(self, bags: Bags) -> NDArray[np.float32]:
        """Return the vectors of points, where the weights are: a GPU's stay there."""
        return self._tuned.read(bags)

    def encoder(self) -> TransformerEncoder:
        """Return the weights as a trained model keeps them."""
        return self._tuned.encoder()


def transformer_files(folder: str | Path) -> list[Path]:
    """Return the files of a transformer that are read; see `transformer_folder` for its names."""
    found = transformer_folder(folder)
    return [found / name for name in FILES]


def check_folder(folder: str | Path) -> None:
    """Raise InputError unless a folder, or a hub's model in the cache, has its files."""
    missing = missing_files(transformer_folder(folder))
    if missing:
        raise InputError(
            f"{folder} is not a transformer folder: {', '.join(missing)} not found. Download the "
            "model first, with its safetensors, and name its folder, or name one of the Hugging "
            "Face hub as owner/name; nothing is downloaded unasked."
        )


def read_transformer(folder: str | Path, n_pieces: int) -> TransformerEncoder:
    """Read an encoder of the ``transformers`` library from a folder.

    Parameters
    ----------
    folder : str or Path
        Or what `transformer_folder` finds one by.
    n_pieces : int
        Pieces that are read of a text.

    Raises
    ------
    InputError
        If the folder does not hold one.
    MissingExtraError
        If transformers is not installed.
    """
    check_folder(folder)
    folder = transformer_folder(folder)
    try:
        from transformers import AutoModel  # noqa: PLC0415 - an extra
        from transformers.utils import logging  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise needs_transformers(error) from error
    shows_bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # of reading a file, in the midst of ours
    try:
        network = AutoModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, dtype=torch.float32
        )
    except MemoryError:
        raise
    except Exception as error:  # of any kind, where a file is broken
        raise InputError(
            f"The transformer in {folder} cannot be read: {_first_line(error)} Download it again, "
            "or name the folder of another one."
        ) from error
    finally:
        if shows_bars:
            logging.enable_progress_bar()
    config = network.config
    if config.is_encoder_decoder or layers_and_width(config.to_dict()) is None:
        raise InputError(
            f"The transformer in {folder}, of type {config.model_type!r}, is not a text encoder. "
            "Name the folder of one, such as a BERT, DistilBERT, RoBERTa or MPNet."
        )
    pieces = _pieces_of(
        folder, min(n_pieces, _most_pieces(network, n_pieces)), config.pad_token_id or 0
    )
    return TransformerEncoder(pieces, _settings(config), _arrays(network))


def _pieces_of(folder: str | Path, n_pieces: int, padding: int) -> PiecesOfTexts:
    """Return the tokeniser of a folder, or raise InputError where its file is broken."""
    path = Path(folder) / "tokenizer.json"
    try:
        pieces = PiecesOfTexts(path.read_text(encoding="utf-8"), n_pieces, padding)
        _ = pieces.tokenizer  # which reads the JSON
    except (MissingExtraError, MemoryError):
        raise
    except Exception as error:  # the library's own have no name
        raise InputError(
            f"{path} is not the JSON of a tokenizer: {_first_line(error)} Download it again, or "
            "name the folder of another transformer."
        ) from error
    return pieces


def _first_line(error: Exception) -> str:
    """Return what an error of another library says, as one sentence."""
    line = next(iter(str(error).splitlines()), "") or type(error).__name__
    return f"{line.rstrip('.')}."


def _most_pieces(network: Any, n_pieces: int) -> int:
    """Return how many pieces a network has positions for; `n_pieces` if it does not say."""
    n_positions = int(getattr(network.config, "max_position_embeddings", -1))
    if n_positions < 1:  # positions relative to each other, as XLNet has them
        return n_pieces
    positions = getattr(getattr(network, "embeddings", None), "position_embeddings", None)
    padding = getattr(positions, "padding_idx", None)
    # RoBERTa and MPNet count from behind the position of the padding.
    return n_positions if padding is None else n_positions - padding - 1


def _settings(config: Any) -> dict[str, Any]:
    """Return a configuration as JSON values, without where it came from."""
    settings: dict[str, Any] = config.to_dict()
    return {k: v for k, v in settings.items() if k != "_name_or_path" and not k.endswith("dtype")}


def _arrays(network: Any) -> dict[str, NDArray[Any]]:
    """Return the weights as arrays of their own."""
    return {k: v.detach().cpu().numpy().copy() for k, v in network.state_dict().items()}
