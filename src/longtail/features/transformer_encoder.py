"""A transformer as a trained model keeps it: torch is imported by its first prediction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longtail.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags

__all__ = ["PiecesOfTexts", "TransformerEncoder", "mean_of_pieces", "needs_transformers"]

TEXTS_AT_ONCE = 64


@dataclass(frozen=True)
class PiecesOfTexts:
    """The tokeniser of a transformer: texts to padded ids and a mask.

    Parameters
    ----------
    json : str
        As the ``tokenizers`` library writes it.
    n_pieces : int
        Pieces that are read of a text, those that mark its ends among them; the rest is cut off.
    padding : int
        Id of the padding.
    """

    json: str
    n_pieces: int
    padding: int

    @cached_property
    def tokenizer(self) -> Any:
        """Read the JSON, once."""
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415 - an extra that few models need
        except ModuleNotFoundError as error:
            raise needs_transformers(error) from error
        tokenizer = Tokenizer.from_str(self.json)
        tokenizer.enable_truncation(self.n_pieces)
        tokenizer.enable_padding(pad_id=self.padding)
        return tokenizer

    def of(self, texts: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return ids and mask, int64 (n, longest)."""
        found = self.tokenizer.encode_batch(texts)
        ids = np.array([one.ids for one in found], np.int64)
        return ids, np.array([one.attention_mask for one in found], np.int64)


@dataclass(frozen=True, eq=False)
class TransformerEncoder:
    """Texts to unit vectors: the mean over its pieces of a transformer's last layer.

    Reimers and Gurevych, "Sentence-BERT", EMNLP 2019. It needs torch and ``transformers`` to
    answer; nothing else of longtail does.

    Parameters
    ----------
    pieces : PiecesOfTexts
    settings : dict
        Of the network, as ``transformers`` writes them.
    weights : dict of str to array
    """

    pieces: PiecesOfTexts
    settings: Mapping[str, Any]
    weights: Mapping[str, NDArray[Any]]

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.settings["hidden_size"])

    @cached_property
    def network(self) -> Any:
        """Put the network together, once."""
        try:
            import torch  # noqa: PLC0415 - a model without a transformer answers without torch
            from transformers import AutoConfig, AutoModel  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise needs_transformers(error) from error
        settings = {**self.settings}
        network = AutoModel.from_config(
            AutoConfig.for_model(settings.pop("model_type"), **settings)
        )
        state = {name: torch.tensor(np.asarray(w)) for name, w in self.weights.items()}
        network.load_state_dict(state)
        return network.eval()

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:  # noqa: ARG002 - torch's
        """Return the vector of each text, float32 (n, dimension); zeros for an empty bag.

        Raises
        ------
        InputError
            If the points come without their texts.
        MissingExtraError
            If torch or transformers is not installed.
        """
        if bags.texts is None:
            raise InputError(
                "A transformer reads texts, but these points are bags. Pass texts; words cannot be "
                "explained one by one."
            )
        vectors = np.zeros((bags.n_rows, self.dimension), np.float32)
        # Texts of about the same length go together, so that little is padded; no empty ones.
        known = np.flatnonzero(np.diff(bags.row_starts))
        order = known[np.argsort([len(bags.texts[i]) for i in known], kind="stable")]
        for start in range(0, len(order), TEXTS_AT_ONCE):
            some = order[start : start + TEXTS_AT_ONCE]
            vectors[some] = self._vectors([bags.texts[i] for i in some])
        return vectors

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the vectors of a batch."""
        network = self.network
        import torch  # noqa: PLC0415 - there, for the network is

        with torch.inference_mode():
            vectors: NDArray[np.float32] = mean_of_pieces(network, *self.pieces.of(texts)).numpy()
        return vectors

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the weights, and the tokeniser as bytes: the folder it came from is not needed."""
        tokenizer = np.frombuffer(self.pieces.json.encode(), np.uint8)
        return {"tokenizer": tokenizer, **{f"weights.{k}": v for k, v in self.weights.items()}}

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        return {
            "kind": "transformer",
            "network": dict(self.settings),
            "n_pieces": self.pieces.n_pieces,
            "padding": self.pieces.padding,
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make it again from `config` and `to_arrays`."""
        json = np.asarray(arrays["tokenizer"], np.uint8).tobytes().decode()
        weights = {k[8:]: v for k, v in arrays.items() if k.startswith("weights.")}
        pieces = PiecesOfTexts(json, config["n_pieces"], config["padding"])
        return cls(pieces, config["network"], weights)


def mean_of_pieces(network: Any, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Any:
    """Return unit means over the pieces of the last layer, a float32 Tensor (n, dimension).

    Parameters
    ----------
    network : Module
        A transformer of ``transformers``.
    ids, mask : int64 (n, length)
    """
    import torch  # noqa: PLC0415 - as above

    device = next(network.parameters()).device
    is_piece = torch.from_numpy(mask).to(device)
    hidden = network(
        input_ids=torch.from_numpy(ids).to(device), attention_mask=is_piece
    ).last_hidden_state
    weights = is_piece[..., None].to(hidden.dtype)
    means = (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
    return torch.nn.functional.normalize(means.float())


def needs_transformers(error: ModuleNotFoundError) -> MissingExtraError:
    """Return what to say where a library is missing."""
    return MissingExtraError(
        f"This model reads texts with a transformer and needs {error.name}. Install it with "
        "`pip install 'longtail[train,transformers]'`."
    )
