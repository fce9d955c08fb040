"""A vocabulary behind a handle: one text to its row, with few arguments to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from longtail.kernels.jit import kernel
from longtail.kernels.text import TokenRules, encode_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Vocabulary", "encode_known"]


class Vocabulary(NamedTuple):
    """What turns a text into a row: rules, the table of known keys, a weight a column."""

    rules: TokenRules
    table: NDArray[np.uint64]
    weights: NDArray[np.float32]


@kernel
def encode_known(
    vocabulary: Any, codes: NDArray[np.uint32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what `encode_text` returns, given the handle of a `Vocabulary`."""
    known = vocabulary.parts
    return encode_text(codes, known.rules, known.table, known.weights)
