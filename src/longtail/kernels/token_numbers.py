"""Texts to numbers of their tokens: each new token gets the next, is spelled out and counted.

So that a vocabulary is learnt in one reading of its texts: which tokens are kept, and in which
order, is known only at the end, but then a text is the numbers of its tokens, and its row is made
of these. Several threads number tokens each for itself, and `numbers_of_keys` makes one numbering
of theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.digit_sort import N_DIGITS, sort_by_digits
from longtail.kernels.growing import grown
from longtail.kernels.jit import kernel, lean_kernel
from longtail.kernels.prefetch import prefetch_line
from longtail.kernels.text import (
    CLOSE,
    KIND_BITS,
    OPEN,
    PAIR,
    TokenRules,
    TokenScratch,
    longest_text,
    new_scratch,
    tokenize,
    weigh,
)
from longtail.kernels.token_tables import HALF, LOW_HALF, NOTHING, grown_table, slot_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NumberedTokens", "new_tokens", "number_texts", "numbers_of_keys", "weigh_numbers"]

FEW = 1 << 11  # tokens that there is room for at first
AHEAD = 8  # tokens of a text whose slots are asked for before they are looked at
MOST_BYTES = 4  # of a character
SPACE = np.uint32(ord(" "))
N_CODE_POINTS = np.uint32(0x110000)  # symbols that are words are that much beyond
TWO_BYTES, THREE_BYTES, FOUR_BYTES = np.uint32(0x80), np.uint32(0x800), np.uint32(0x10000)


class NumberedTokens(NamedTuple):
    """The tokens met so far.

    Attributes
    ----------
    table : uint64 (n_slots, 2)
        A row of it is a key, and above the key's number the last text that had it, from 1.
    n_texts_of : int64 (room,)
        Texts that have a token, by its number.
    ends : int64 (room + 1,)
        Where tokens end in `spelled`, behind a 0.
    spelled : uint8 (n_bytes,)
        The tokens, in UTF-8.
    """

    table: NDArray[np.uint64]
    n_texts_of: NDArray[np.int64]
    ends: NDArray[np.int64]
    spelled: NDArray[np.uint8]


def new_tokens() -> NumberedTokens:
    """Return room for the first tokens."""
    return NumberedTokens(
        np.zeros((2 * FEW, 2), np.uint64),
        np.zeros(FEW, np.int64),
        np.zeros(FEW + 1, np.int64),
        np.empty(8 * FEW, np.uint8),
    )


@lean_kernel
def _first_slot_of(table: NDArray[np.uint64], key: np.uint64) -> int:
    """Return where a key is looked for first."""
    return int(np.int64(key >> HALF) & (table.shape[0] - 1))


@lean_kernel
def _put_character(code: np.uint32, out: NDArray[np.uint8], at: int) -> int:
    """Write a code point in UTF-8; return where it ends."""
    if code >= N_CODE_POINTS:
        code = np.uint32(code - N_CODE_POINTS)
    if code < TWO_BYTES:
        out[at] = np.uint8(code)
        return at + 1
    if code < THREE_BYTES:
        out[at] = np.uint8(0xC0 | (code >> 6))
    else:
        if code < FOUR_BYTES:
            out[at] = np.uint8(0xE0 | (code >> 12))
        else:
            out[at] = np.uint8(0xF0 | (code >> 18))
            at += 1
            out[at] = np.uint8(0x80 | ((code >> 12) & 0x3F))
        at += 1
        out[at] = np.uint8(0x80 | ((code >> 6) & 0x3F))
    out[at + 1] = np.uint8(0x80 | (code & 0x3F))
    return at + 2


@lean_kernel
def _spell(
    marked: NDArray[np.uint32],
    start: int,
    stop: int,
    kind: np.uint64,
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Write a token, and return where it ends. Between the words of a pair is a space."""
    for position in range(start, stop):
        code = marked[position]
        if kind == PAIR and code == OPEN:
            continue
        at = _put_character(SPACE if kind == PAIR and code == CLOSE else code, out, at)
    return at


@lean_kernel
def _n_bytes_at_most(scratch: TokenScratch, n_of_text: int) -> int:
    """Return the bytes that the tokens of a text have at most."""
    n_characters = 0
    for token in range(n_of_text):
        n_characters += scratch.stops[token] - scratch.starts[token]
    return MOST_BYTES * n_characters


@kernel
def _with_room(tokens: NumberedTokens, n_tokens: int, n_more: int, n_bytes: int) -> NumberedTokens:
    """Return the same tokens with room for some more, of so many bytes."""
    table, n_texts_of, ends, spelled = tokens
    while 3 * (n_tokens + n_more) > 2 * table.shape[0]:
        table = grown_table(table)
    if n_tokens + n_more > n_texts_of.shape[0]:
        room = 2 * (n_tokens + n_more)
        n_texts_of = grown(n_texts_of, n_tokens, room)
        ends = grown(ends, n_tokens + 1, room + 1)
    n_spelled = ends[n_tokens]
    if n_spelled + n_bytes > spelled.shape[0]:
        spelled = grown(spelled, n_spelled, 2 * (n_spelled + n_bytes))
    return NumberedTokens(table, n_texts_of, ends, spelled)


@lean_kernel
def _number_text(
    scratch: TokenScratch,
    n_of_text: int,
    stamp: np.uint64,
    tokens: NumberedTokens,
    n_tokens: int,
    numbers: NDArray[np.int32],
    n_numbers: int,
) -> int:
    """Write the numbers of a text's tokens; return how many tokens were met up to here."""
    table = tokens.table
    for token in range(n_of_text):
        if token + AHEAD < n_of_text:
            prefetch_line(table, _first_slot_of(table, scratch.keys[token + AHEAD]))
        key = scratch.keys[token]
        slot = slot_of(table, key)
        if table[slot, 0] == NOTHING:
            table[slot, 0] = key
            table[slot, 1] = np.uint64(n_tokens)
            tokens.n_texts_of[n_tokens] = 0
            tokens.ends[n_tokens + 1] = _spell(
                scratch.marked,
                scratch.starts[token],
                scratch.stops[token],
                key & KIND_BITS,
                tokens.spelled,
                tokens.ends[n_tokens],
            )
            n_tokens += 1
        number = np.int64(table[slot, 1] & LOW_HALF)
        if table[slot, 1] & ~LOW_HALF != stamp:
            table[slot, 1] = stamp | np.uint64(number)
            tokens.n_texts_of[number] += 1
        numbers[n_numbers + token] = np.int32(number)
    return n_tokens


@kernel
def number_texts(
    codes: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    first_row: int,
    rules: TokenRules,
    tokens: NumberedTokens,
    n_tokens: int,
) -> tuple[tuple[Any, ...], int, NDArray[np.int32], NDArray[np.int64]]:
    """Give numbers to the tokens of several texts, and count the texts that have each.

    Text ``i`` is ``codes[offsets[i]:offsets[i + 1]]`` and row ``first_row + i`` of them all; no row
    may come twice.

    Return the arrays of the tokens met so far and how many these are, then the numbers of the
    texts' tokens, text after text, repeats among them, and how many each text has.
    """
    lengths = np.empty(offsets.shape[0] - 1, np.int64)
    numbers = np.empty(2 * codes.shape[0], np.int32)
    n_numbers = 0
    scratch = new_scratch(longest_text(offsets), rules)
    for row in range(lengths.shape[0]):
        n_of_text = tokenize(codes, offsets[row], offsets[row + 1], rules, scratch)
        if n_numbers + n_of_text > numbers.shape[0]:
            numbers = grown(numbers, n_numbers, 2 * (n_numbers + n_of_text))
        n_bytes = _n_bytes_at_most(scratch, n_of_text)
        tokens = _with_room(tokens, n_tokens, n_of_text, n_bytes)
        stamp = np.uint64(first_row + row + 1) << HALF
        n_tokens = _number_text(scratch, n_of_text, stamp, tokens, n_tokens, numbers, n_numbers)
        lengths[row] = n_of_text
        n_numbers += n_of_text
    table, n_texts_of, ends, spelled = tokens
    of_tokens = (table, n_texts_of, ends, spelled)
    return of_tokens, n_tokens, numbers[:n_numbers].copy(), lengths


@kernel
def numbers_of_keys(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int32], int]:
    """Return a number for each key, the same for the same ones, and how many numbers there are."""
    table = np.zeros((2 * FEW, 2), np.uint64)
    numbers = np.empty(keys.shape[0], np.int32)
    n_different = 0
    for i in range(keys.shape[0]):
        slot = slot_of(table, keys[i])
        if table[slot, 0] == NOTHING:
            if 3 * (n_different + 1) > 2 * table.shape[0]:
                table = grown_table(table)
                slot = slot_of(table, keys[i])
            table[slot, 0] = keys[i]
            table[slot, 1] = np.uint64(n_different)
            n_different += 1
        numbers[i] = np.int32(table[slot, 1])
    return numbers, n_different


@kernel
def weigh_numbers(
    numbers: NDArray[np.int32],
    lengths: NDArray[np.int64],
    column_of: NDArray[np.int32],
    weights: NDArray[np.float32],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
) -> NDArray[np.int64]:
    """Write columns and values of texts that `number_texts` has read; return the row lengths.

    ``column_of`` is the column of a token by its number, below 0 for one that is not kept. Rows
    stand one behind the other in ``indices`` and ``values``, which have room for all numbers.
    """
    n_texts = lengths.shape[0]
    row_lengths = np.empty(n_texts, np.int64)
    longest = lengths.max() if n_texts else 0
    columns, spare = np.empty(longest, np.int32), np.empty(longest, np.int32)
    counts = np.empty(N_DIGITS, np.int32)
    n_entries = start = 0
    for row in range(n_texts):
        n_known = 0
        for token in range(start, start + lengths[row]):
            column = column_of[numbers[token]]
            if column >= 0:
                columns[n_known] = column
                n_known += 1
        start += lengths[row]
        sort_by_digits(columns, n_known, spare, counts)
        known = columns[:n_known]
        row_lengths[row] = weigh(known, weights, indices[n_entries:], values[n_entries:])
        n_entries += row_lengths[row]
    return row_lengths
