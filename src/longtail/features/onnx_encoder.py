"""A transformer as ONNX Runtime runs it: no torch, and a session that opens in a second."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longtail.errors import InputError, needs_extra
from longtail.features.text_pieces import PiecesOfTexts
from longtail.features.transformer_encoder import in_batches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags

__all__ = ["IDS", "IS_PIECE", "OnnxEncoder"]

IDS, IS_PIECE = "ids", "is_piece"  # what the graph calls its inputs


@dataclass(frozen=True, eq=False)
class OnnxEncoder:
    """Texts to vectors, by the graph of a transformer or another network (https://onnx.ai).

    Made of a `TransformerEncoder` by `longtail.features.onnx_export.to_onnx`, of unit vectors then;
    or of any network that ``torch.onnx.export`` can write, with the inputs ``ids`` and
    ``is_piece``. It needs the packages ``onnxruntime`` and ``tokenizers`` to answer.

    Parameters
    ----------
    pieces : PiecesOfTexts
    graph : uint8 array
        A serialised ONNX model, from int64 ids and mask (n, length) to float32 (n, dimension).
    dimension : int
        Length of a vector.
    """

    pieces: PiecesOfTexts
    graph: NDArray[np.uint8]
    dimension: int

    @cached_property
    def session(self) -> Any:
        """Open the graph, once."""
        try:
            import onnxruntime  # noqa: PLC0415 - an extra that few models need
        except ModuleNotFoundError as error:
            what = "This model reads texts with a transformer in ONNX and"
            raise needs_extra(what, error, "onnx") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # batches share the threads, see `in_batches`
        options.log_severity_level = 3  # errors
        graph = self.graph.tobytes()
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def encode(self, bags: Bags, n_threads: int = 1) -> NDArray[np.float32]:
        """Return the vector of each text, float32 (n, dimension); zeros for an empty text.

        Raises
        ------
        InputError
            If the points come without their texts.
        MissingExtraError
            If onnxruntime or tokenizers is not installed.
        """
        return in_batches(bags, self.dimension, self.vectors, n_threads)

    def vectors(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the vectors of a batch.

        Raises
        ------
        InputError
            If the graph is one of a user's, and gives others.
        """
        ids, is_piece = self.pieces.of(texts)
        found: list[NDArray[np.float32]] = self.session.run(None, {IDS: ids, IS_PIECE: is_piece})
        shape = (len(texts), self.dimension)
        if found[0].shape != shape:
            raise InputError(
                f"The graph of ONNX gives {found[0].shape} for {len(texts)} texts, but must give "
                f"{shape}, a row for each. Export it with the first axis free, and say its "
                "`dimension`."
            )
        return found[0]

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the graph, and the tokeniser as bytes."""
        return {"tokenizer": self.pieces.as_bytes(), "graph": self.graph}

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        return {"kind": "onnx", "dimension": self.dimension, **self.pieces.config()}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make it again from `config` and `to_arrays`."""
        pieces = PiecesOfTexts.from_parts(config, arrays["tokenizer"])
        return cls(pieces, np.asarray(arrays["graph"], np.uint8), config["dimension"])
