"""Texts to the numbers of their words, in the order of the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.kernels.jit import kernel
from longtail.kernels.text import TokenRules, longest_text, new_scratch, tokenize
from longtail.kernels.token_tables import column_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["read_words"]


@kernel
def read_words(
    codes: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    rules: TokenRules,
    table: NDArray[np.uint64],
    words: NDArray[np.int32],
) -> int:
    """Write the columns of the known words of some texts, and return the most that one has.

    Parameters
    ----------
    codes, offsets : uint32 (n_codes,) and int64 (n_texts + 1,)
        Text ``i`` is ``codes[offsets[i]:offsets[i + 1]]``.
    rules : TokenRules
        That give words only.
    table : uint64 (n_slots,)
        Of `build_table`.
    words : int32 (n_texts, n_words)
        Out: what is left of a row is -1. Words beyond its end are dropped.
    """
    n_texts, most = offsets.shape[0] - 1, 0
    scratch = new_scratch(longest_text(offsets), rules)
    for row in range(n_texts):
        n_tokens = tokenize(codes, offsets[row], offsets[row + 1], rules, scratch)
        n_known = 0
        for token in range(n_tokens):
            column = column_of(table, scratch.keys[token])
            if column >= 0 and n_known < words.shape[1]:
                words[row, n_known] = column
                n_known += 1
        words[row, n_known:] = -1
        most = max(most, n_known)
    return most
