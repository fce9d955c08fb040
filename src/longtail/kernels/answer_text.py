"""From the code points of one text to its best labels and their probabilities, in one call.

A call of compiled code from Python takes some microseconds before it begins. To turn the text into
a bag, to answer that and to turn scores into probabilities would be three calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.answer import answer_bag
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import kernel, uncompiled
from longtail.kernels.scoring import logistic_rows
from longtail.kernels.text import TokenScratch, encode_into, new_scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.kernels.text import TokenRules

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["MOST_CODES", "TextRoom", "answer_text", "new_text_room"]

MOST_CODES = 1024  # code points: longer texts take so long that a call more does not matter


class TextRoom(NamedTuple):
    """Scratch of one thread: a bag twice, to be written and to be read as bags from files are."""

    tokens: TokenScratch
    columns: Ids
    values: Floats
    own_columns: Ids
    own_values: Floats


def new_text_room(rules: TokenRules) -> TextRoom:
    """Return scratch for texts of at most `MOST_CODES` code points."""
    tokens = uncompiled(new_scratch)(MOST_CODES, rules)
    columns = np.zeros(len(tokens.columns), np.int32)
    values = np.zeros(len(tokens.columns), np.float32)
    own = read_only(columns, np.int32), read_only(values, np.float32)
    return TextRoom(tokens, columns, values, *own)


@kernel
def answer_text(
    vocabulary: Any,
    model: Any,
    scratch: Any,
    room: Any,
    codes: NDArray[np.uint32],
    slope: float,
    intercept: float,
    first: float,
    first_slope: float,
    ids: Ids,
    probabilities: Floats,
) -> None:
    """Write the best labels of one text, the same bits as in a batch.

    Parameters
    ----------
    vocabulary, model, scratch, room : Handle
        Of a `Vocabulary`, an `Answerer`, and of an `AnswerScratch` and a `TextRoom` of this thread.
    codes : uint32 (n,)
        Code points, at most `MOST_CODES`.
    slope, intercept, first, first_slope : float
        See `longtail.scorers.calibration.Calibration`.
    ids, probabilities : int32, float32 (1, k)
        Written: descending, padded with -1 and -inf.
    """
    known, own = vocabulary.parts, room.parts
    n = encode_into(
        codes, known.rules, known.table, known.weights, own.tokens, own.columns, own.values
    )
    columns, values = own.own_columns[:n], own.own_values[:n]
    answer_bag(model.parts, scratch.parts, columns, values, ids[0], probabilities[0])
    logistic_rows(probabilities, slope, intercept, first, first_slope, probabilities)
