"""A transformer as a trained model keeps it: torch is imported by its first prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from longtail.data.bags import has_text
from longtail.errors import InputError
from longtail.features.text_pieces import PiecesOfTexts, needs_transformers
from longtail.kernels.jit import HelpingThreads
from longtail.named_parts import with_prefix, without_prefix
from longtail.training.threads import torch_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longtail.data.bags import Bags

__all__ = [
    "TEXTS_AT_ONCE",
    "TransformerEncoder",
    "in_batches",
    "layers_and_width",
    "mean_of_pieces",
    "unit_means",
]

TEXTS_AT_ONCE = 64
# What the networks of ``transformers`` call the number of their layers, and their width.
LAYERS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
WIDTHS = ("hidden_size", "dim", "d_model", "n_embd")


@dataclass(frozen=True, eq=False)
class TransformerEncoder:
    """Texts to unit vectors: the mean over its pieces of a transformer's last layer.

    Reimers and Gurevych, "Sentence-BERT", EMNLP 2019. It needs torch and ``transformers`` to
    answer; `longtail.features.onnx_encoder.OnnxEncoder`, which it can be exported to, does not.

    Parameters
    ----------
    pieces : PiecesOfTexts
    settings : mapping
        Of the network, as ``transformers`` writes them.
    weights : dict of str to array
    """

    pieces: PiecesOfTexts
    settings: Mapping[str, Any]
    weights: Mapping[str, NDArray[Any]]

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        return (layers_and_width(self.settings) or (0, 0))[1]

    @cached_property
    def network(self) -> Any:
        """Put the network together, once."""
        try:
            import torch  # noqa: PLC0415 - a model without a transformer answers without torch
            from transformers import AutoConfig, AutoModel  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise needs_transformers(error) from error
        settings = {**self.settings}
        config = AutoConfig.for_model(settings.pop("model_type"), **settings)
        with torch.random.fork_rng(devices=[]):  # it draws weights, which are replaced
            network = AutoModel.from_config(config)
        state = {name: torch.tensor(np.asarray(w)) for name, w in self.weights.items()}
        network.load_state_dict(state)
        return network.eval()

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:  # noqa: ARG002 - torch's
        """Return the vector of each text, float32 (n, dimension); zeros for an empty text.

        Raises
        ------
        InputError
            If the points come without their texts.
        MissingExtraError
            If torch or transformers is not installed.
        """
        return in_batches(bags, self.dimension, self._vectors)

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the vectors of a batch."""
        network = self.network
        import torch  # noqa: PLC0415 - there, for the network is

        # As many as there are, but those that a fork has lost.
        with torch.inference_mode(), torch_threads(torch.get_num_threads()):
            vectors: NDArray[np.float32] = mean_of_pieces(network, *self.pieces.of(texts)).numpy()
        return vectors

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the weights, and the tokeniser as bytes: the folder it came from is not needed."""
        return {"tokenizer": self.pieces.as_bytes(), **with_prefix("weights.", self.weights)}

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        return {
            "kind": "transformer",
            "network": dict(self.settings),
            **self.pieces.config(),
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make it again from `config` and `to_arrays`."""
        weights = without_prefix("weights.", arrays)
        return cls(
            PiecesOfTexts.from_parts(config, arrays["tokenizer"]), config["network"], weights
        )


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
    return unit_means(network, torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device))


def unit_means(network: Any, ids: Any, is_piece: Any) -> Any:
    """Return `mean_of_pieces` of int64 Tensors (n, length) that are where the network is.

    Examples
    --------
    The second piece is padding, so it does not count.

    >>> from types import SimpleNamespace
    >>> import torch
    >>> from longtail.features.transformer_encoder import unit_means
    >>> layer = SimpleNamespace(last_hidden_state=torch.tensor([[[3.0, 4.0], [9.0, 0.0]]]))
    >>> ids, is_piece = torch.tensor([[7, 0]]), torch.tensor([[1, 0]])
    >>> (10 * unit_means(lambda **_: layer, ids, is_piece)).round().tolist()
    [[6.0, 8.0]]
    """
    import torch  # noqa: PLC0415 - as above

    hidden = network(input_ids=ids, attention_mask=is_piece).last_hidden_state
    weights = is_piece[..., None].to(hidden.dtype)
    means = (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
    return torch.nn.functional.normalize(means.float())


def in_batches(
    bags: Bags,
    dimension: int,
    read: Callable[[list[str]], NDArray[np.float32]],
    n_threads: int = 1,
    texts_at_once: int = TEXTS_AT_ONCE,
) -> NDArray[np.float32]:
    """Return the vectors of texts, read in batches of about the same length: little is padded.

    Parameters
    ----------
    bags : Bags
        With texts, which are read whether or not their bags are empty; a text of blanks gets zeros.
    dimension : int
        Of a vector.
    read : callable
        From some texts to their vectors.
    n_threads : int
        Batches that are read at once.
    texts_at_once : int
        Texts of a batch.

    Raises
    ------
    InputError
        If the points come without their texts.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.transformer_encoder import in_batches
    >>> texts = np.array(["a", " ", "wine"], np.object_)
    >>> bags = Bags.of(csr_array((3, 0)))._replace(texts=texts)
    >>> in_batches(bags, 1, lambda some: np.array([[len(text)] for text in some])).tolist()
    [[1.0], [0.0], [4.0]]
    """
    texts = bags.texts
    if texts is None:
        raise InputError("A transformer reads texts, but these points are bags. Pass texts.")
    vectors = np.zeros((bags.n_rows, dimension), np.float32)
    written = np.flatnonzero(has_text(texts))
    order = written[np.argsort([len(texts[i]) for i in written], kind="stable")]

    def fill(start: int) -> None:
        some = order[start : start + texts_at_once]
        vectors[some] = read(texts[some].tolist())

    starts = range(0, len(order), texts_at_once)
    if n_threads == 1 or len(starts) < 2:
        for start in starts:
            fill(start)
    else:
        with HelpingThreads(n_threads) as pool:
            list(pool.map(fill, starts))
    return vectors


def layers_and_width(settings: object) -> tuple[int, int] | None:
    """Return the number of layers of a network and the length of its vectors, if it says so.

    Parameters
    ----------
    settings : dict
        Of the network, as ``transformers`` writes them; what a broken file holds tells nothing.

    Examples
    --------
    >>> from longtail.features.transformer_encoder import layers_and_width
    >>> layers_and_width({"model_type": "distilbert", "n_layers": 6, "dim": 768})
    (6, 768)
    """
    if not isinstance(settings, Mapping):
        return None
    layers = next((settings[name] for name in LAYERS if name in settings), None)
    width = next((settings[name] for name in WIDTHS if name in settings), None)
    is_told = all(isinstance(size, int) and size > 0 for size in (layers, width))
    return (cast("int", layers), cast("int", width)) if is_told else None
