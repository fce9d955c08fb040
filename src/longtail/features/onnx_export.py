"""A trained transformer written as an ONNX graph, so that serving needs no torch."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import InputError, needs_extra
from longtail.features.onnx_encoder import IDS, IS_PIECE, OnnxEncoder
from longtail.features.transformer_encoder import mean_of_pieces, unit_means

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.features.transformer_encoder import TransformerEncoder

__all__ = ["to_onnx"]

OPERATORS = 17  # version of the set of operators; ONNX Runtime 1.12 and later know it
LARGEST_GRAPH = 2**31 - 1  # bytes of a protocol buffer
TOLERANCE = 1e-3  # of a number of a unit vector


def to_onnx(encoder: TransformerEncoder, *, int8: bool = False) -> OnnxEncoder:
    """Return a transformer as a graph of ONNX.

    Parameters
    ----------
    encoder : TransformerEncoder
    int8 : bool
        Keep the weights as 8-bit integers with a scale for each output of a layer, and multiply
        in integers: a quarter of the size, and half the time where the processor can do so.

    Raises
    ------
    InputError
        If the graph is too large, or does not compute what the transformer does.
    MissingExtraError
        If onnx, onnxruntime, torch or transformers is not installed.
    """
    size = sum(weights.nbytes for weights in encoder.weights.values())
    if size > LARGEST_GRAPH:
        raise InputError(
            f"This transformer has {size:,} bytes of weights, and one ONNX graph holds "
            f"{LARGEST_GRAPH:,}. Serve it with torch, as it is, or take a smaller one."
        )
    try:
        graph = _graph(encoder)
        exported = OnnxEncoder(encoder.pieces, _as_array(graph), encoder.dimension)
        _check(encoder, exported)
        return exported if not int8 else _in_int8(exported)
    except ModuleNotFoundError as error:
        what = "Writing a transformer as ONNX"
        raise needs_extra(what, error, "train,transformers,onnx") from error


def _graph(encoder: TransformerEncoder) -> bytes:
    """Trace the transformer on a made-up batch."""
    import torch  # noqa: PLC0415 - only for exporting

    class Means(torch.nn.Module):
        def __init__(self, network: Any) -> None:
            super().__init__()
            self.network = network

        def forward(self, ids: Any, is_piece: Any) -> Any:
            return unit_means(self.network, ids, is_piece)

    batch = tuple(torch.from_numpy(part) for part in _made_up(encoder, 2, 8))
    lengths = {0: "n", 1: "length"}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # The tracing exporter, which is told of as the old one, needs a fifth of the packages and
        # of the time of the new one. That its traces hold for other sizes is looked at below.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Means(encoder.network).eval(),
            batch,
            Path(folder) / "graph.onnx",
            dynamo=False,
            input_names=[IDS, IS_PIECE],
            output_names=["vectors"],
            dynamic_axes={IDS: lengths, IS_PIECE: lengths, "vectors": {0: "n"}},
            opset_version=OPERATORS,
        )
        return (Path(folder) / "graph.onnx").read_bytes()


def _check(encoder: TransformerEncoder, exported: OnnxEncoder) -> None:
    """Raise InputError unless both agree on batches of other sizes than the traced one."""
    for n, length in ((1, 3), (3, 12)):
        ids, is_piece = _made_up(encoder, n, length)
        expected = mean_of_pieces(encoder.network, ids, is_piece).detach().numpy()
        (found,) = exported.session.run(None, {IDS: ids, IS_PIECE: is_piece})
        apart = float(np.abs(found - expected).max())
        if not apart <= TOLERANCE:
            raise InputError(
                f"The ONNX graph of this transformer differs by {apart:.2g} from what torch "
                "computes. Its architecture cannot be exported: serve it with torch, as it is."
            )


def _made_up(
    encoder: TransformerEncoder, n: int, length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return random ids and a mask whose first row is padded at the end, int64 (n, length)."""
    length = min(length, encoder.pieces.n_pieces)
    random = np.random.default_rng(0)
    ids = random.integers(0, encoder.settings["vocab_size"], (n, length))
    is_piece = np.ones_like(ids)
    is_piece[0, length // 2 :] = 0
    return ids, is_piece


def _in_int8(exported: OnnxEncoder) -> OnnxEncoder:
    """Quantise the weights; activations are quantised as they come."""
    import onnx  # noqa: PLC0415 - only for exporting
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415

    model = onnx.load_from_string(exported.graph.tobytes())
    # The exporter has folded constants and inferred shapes, which the quantiser asks for.
    model.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "int8.onnx"
        quantize_dynamic(model, target, per_channel=True, weight_type=QuantType.QInt8)
        graph = target.read_bytes()
    return OnnxEncoder(exported.pieces, _as_array(graph), exported.dimension)


def _as_array(graph: bytes) -> NDArray[np.uint8]:
    """Return bytes as a model folder keeps them."""
    return np.frombuffer(graph, np.uint8)
