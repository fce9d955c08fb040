"""Texts to tokens to weighted rows: the compiled part of `longtail.data.vectorizer`.

A text arrives as its code points. `mark_words` lays its words out one after another between the
markers ``<`` and ``>``; `emit_tokens` reads the words, word pairs and character n-grams off that
and gives each a 64-bit key: a hash of its code points whose two low bits hold its kind. Two
different tokens share a key with a probability near 2**-62, so the keys stand for the tokens.
A table of `longtail.kernels.token_tables` says which column a known key has, and
`longtail.kernels.token_numbers` learns which keys there are.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.kernels.digit_sort import N_DIGITS, sort_by_digits
from longtail.kernels.growing import grown
from longtail.kernels.jit import inner_kernel, kernel, lean_kernel
from longtail.kernels.token_tables import HALF, column_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CharacterClass",
    "TokenKind",
    "TokenRules",
    "TokenScratch",
    "Vocabulary",
    "emit_tokens",
    "encode_into",
    "encode_text",
    "encode_texts",
    "longest_text",
    "mark_words",
    "new_scratch",
    "tokenize",
    "weigh",
]


class CharacterClass(IntEnum):
    """What a code point does to the word that it stands next to."""

    SEPARATOR = 0  # ends a word
    LETTER = 1  # goes on with a word, or begins one; digits too
    UNSPACED = 2  # a word by itself: scripts written without spaces, emoji
    MARK = 3  # goes on with whatever stands before it
    IGNORED = 4  # as if it were not there
    SYMBOL = 5  # belongs to a word only at its end: "c++", "c#"


class TokenKind(IntEnum):
    """What a token is; the two low bits of its key."""

    WORD = 1
    PAIR = 2
    CHARACTERS = 3


class TokenRules(NamedTuple):
    """How texts are cut into tokens.

    ``classes`` is (0x110000,) uint8, a `CharacterClass` a code point. Character n-grams have
    ``shortest`` to ``longest`` code points, markers included; ``longest = 0`` means none.
    """

    classes: NDArray[np.uint8]
    word_ngrams: int
    shortest: int
    longest: int


class Vocabulary(NamedTuple):
    """What turns a text into a row: rules, the table of known keys, a weight a column."""

    rules: TokenRules
    table: NDArray[np.uint64]
    weights: NDArray[np.float32]


class TokenScratch(NamedTuple):
    """Room for the tokens of one text: spans are positions in ``marked``.

    ``spare`` and ``counts`` are for `sort_by_digits`.
    """

    marked: NDArray[np.uint32]
    keys: NDArray[np.uint64]
    starts: NDArray[np.int32]
    stops: NDArray[np.int32]
    columns: NDArray[np.int32]
    spare: NDArray[np.int32]
    counts: NDArray[np.int32]


# Numba turns uint64 mixed with a plain int into float64: every constant is typed.
SEED = np.uint64(0x243F6A8885A308D3)
SPREAD = np.uint64(0x9E3779B97F4A7C15)
PAIR_SPREAD = np.uint64(0xD6E8FEB86659FD93)
KIND_BITS = np.uint64(3)
WORD = np.uint64(TokenKind.WORD)
PAIR = np.uint64(TokenKind.PAIR)
CHARACTERS = np.uint64(TokenKind.CHARACTERS)

SEPARATOR = np.uint8(CharacterClass.SEPARATOR)
LETTER = np.uint8(CharacterClass.LETTER)
UNSPACED = np.uint8(CharacterClass.UNSPACED)
MARK = np.uint8(CharacterClass.MARK)
IGNORED = np.uint8(CharacterClass.IGNORED)
SYMBOL = np.uint8(CharacterClass.SYMBOL)

OPEN = np.uint32(ord("<"))
CLOSE = np.uint32(ord(">"))


@kernel
def new_scratch(n_codes: int, rules: TokenRules) -> TokenScratch:
    """Return room enough for any text of `n_codes` code points."""
    # At worst every code point is a word between two markers, makes a pair and a unit of two, and
    # begins, with its marker, two n-grams of each length.
    n_lengths = max(0, rules.longest - rules.shortest + 1)
    n_tokens = (3 + 2 * n_lengths) * n_codes
    return TokenScratch(
        np.empty(3 * n_codes, np.uint32),
        np.empty(n_tokens, np.uint64),
        np.empty(n_tokens, np.int32),
        np.empty(n_tokens, np.int32),
        np.empty(n_tokens, np.int32),
        np.empty(n_tokens, np.int32),
        np.empty(N_DIGITS, np.int32),
    )


@lean_kernel
def _end_of_symbols(
    codes: NDArray[np.uint32], position: int, stop: int, classes: NDArray[np.uint8]
) -> int:
    """Return where the symbols at `position` end, or `position` where they join two words."""
    last = position
    while last < stop and classes[codes[last]] == SYMBOL:
        last += 1
    if last < stop and classes[codes[last]] == LETTER:
        return position
    return last


@lean_kernel
def mark_words(
    codes: NDArray[np.uint32],
    start: int,
    stop: int,
    classes: NDArray[np.uint8],
    marked: NDArray[np.uint32],
) -> int:
    """Write the words of ``codes[start:stop]`` as ``<one><two>``; return the length written.

    Neighbouring `UNSPACED` characters stay together between one pair of markers.
    """
    n_marked = 0
    inside = SEPARATOR  # the class of the word that is open
    for position in range(start, stop):
        found = classes[codes[position]]
        if found == IGNORED or (found == MARK and inside == SEPARATOR):
            continue
        if found == SYMBOL:
            if inside == LETTER:
                for last in range(position, _end_of_symbols(codes, position, stop, classes)):
                    marked[n_marked] = codes[last]
                    n_marked += 1
            found = SEPARATOR
        if inside not in (SEPARATOR, found) and found != MARK:
            marked[n_marked] = CLOSE
            n_marked += 1
            inside = SEPARATOR
        if found != SEPARATOR:
            if inside == SEPARATOR:
                marked[n_marked] = OPEN
                n_marked += 1
                inside = found
            marked[n_marked] = codes[position]
            n_marked += 1
    if inside != SEPARATOR:
        marked[n_marked] = CLOSE
        n_marked += 1
    return n_marked


@lean_kernel
def _extend(state: np.uint64, code: np.uint64) -> np.uint64:
    """Take one more code point into a hash."""
    mixed = (state ^ code) * SPREAD
    return mixed ^ (mixed >> HALF)


@lean_kernel
def _word_at(
    marked: NDArray[np.uint32], position: int, classes: NDArray[np.uint8], state: np.uint64
) -> tuple[int, np.uint64]:
    """Return where the word at `position` ends, and `state` with its code points taken in."""
    alone = classes[marked[position]] == UNSPACED
    while True:
        state = _extend(state, np.uint64(marked[position]))
        position += 1
        following = marked[position]
        if following == CLOSE or (alone and classes[following] != MARK):
            return position, state


@lean_kernel
def _put(
    scratch: TokenScratch, n_tokens: int, state: np.uint64, kind: np.uint64, start: int, stop: int
) -> int:
    """Add one token; return how many there are now."""
    scratch.keys[n_tokens] = (state & ~KIND_BITS) | kind
    scratch.starts[n_tokens] = start
    scratch.stops[n_tokens] = stop
    return n_tokens + 1


@lean_kernel
def _emit_character_ngrams(
    scratch: TokenScratch, n_tokens: int, start: int, stop: int, rules: TokenRules
) -> int:
    """Add the n-grams of one marked word, but not all of it, which would repeat the word."""
    marked = scratch.marked
    for first in range(start, stop):
        state = SEED
        for last in range(first, min(first + rules.longest, stop)):
            state = _extend(state, np.uint64(marked[last]))
            length = last + 1 - first
            if rules.shortest <= length < stop - start:
                n_tokens = _put(scratch, n_tokens, state, CHARACTERS, first, last + 1)
    return n_tokens


@lean_kernel
def emit_tokens(n_marked: int, rules: TokenRules, scratch: TokenScratch) -> int:
    """Write key and span of every token of ``scratch.marked[:n_marked]``; return their number.

    Where words have no spaces between them, two neighbours are a word too: most Chinese and
    Japanese words have two characters.
    """
    marked = scratch.marked
    n_tokens = 0
    position = run_start = 0
    previous_start = previous_stop = -1
    previous_state = SEED
    while position < n_marked:
        if marked[position] == OPEN:
            run_start = position
            position += 1
        stop, state = _word_at(marked, position, rules.classes, SEED)
        n_tokens = _put(scratch, n_tokens, state, WORD, position, stop)
        if previous_stop == position:
            _, both = _word_at(marked, position, rules.classes, previous_state)
            n_tokens = _put(scratch, n_tokens, both, WORD, previous_start, stop)
        elif rules.word_ngrams > 1 and previous_stop >= 0:
            both = _extend(previous_state * PAIR_SPREAD, state)
            n_tokens = _put(scratch, n_tokens, both, PAIR, previous_start, stop)
        previous_start, previous_stop, previous_state = position, stop, state
        position = stop
        if marked[position] == CLOSE:
            position += 1
            n_tokens = _emit_character_ngrams(scratch, n_tokens, run_start, position, rules)
    return n_tokens


@lean_kernel
def tokenize(
    codes: NDArray[np.uint32], start: int, stop: int, rules: TokenRules, scratch: TokenScratch
) -> int:
    """Fill `scratch` with the tokens of one text; return their number."""
    n_marked = mark_words(codes, start, stop, rules.classes, scratch.marked)
    return emit_tokens(n_marked, rules, scratch)


@lean_kernel
def longest_text(offsets: NDArray[np.int64]) -> int:
    """Return the length of the longest text."""
    longest = 0
    for row in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    return longest


@lean_kernel
def _known_columns(n_tokens: int, table: NDArray[np.uint64], scratch: TokenScratch) -> int:
    """Write the sorted columns of the tokens that `table` knows; return their number."""
    n_known = 0
    for token in range(n_tokens):
        column = column_of(table, scratch.keys[token])
        if column >= 0:
            scratch.columns[n_known] = np.int32(column)
            n_known += 1
    sort_by_digits(scratch.columns, n_known, scratch.spare, scratch.counts)
    return n_known


@lean_kernel
def weigh(
    columns: NDArray[np.int32],
    weights: NDArray[np.float32],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
) -> int:
    """Write the unit row of the sorted `columns`, repeats counted; return its length."""
    n_entries = 0
    squares = 0.0
    first = 0
    while first < columns.shape[0]:
        last = first + 1
        while last < columns.shape[0] and columns[last] == columns[first]:
            last += 1
        times = last - first
        value = np.float32(
            (1.0 + (math.log(times) if times > 1 else 0.0)) * weights[columns[first]]
        )
        indices[n_entries] = columns[first]
        values[n_entries] = value
        squares += np.float64(value) * np.float64(value)
        n_entries += 1
        first = last
    scale = 1.0 / math.sqrt(squares) if n_entries else 0.0
    for entry in range(n_entries):
        values[entry] = np.float32(values[entry] * scale)
    return n_entries


@inner_kernel
def encode_into(
    codes: NDArray[np.uint32],
    rules: TokenRules,
    table: NDArray[np.uint64],
    weights: NDArray[np.float32],
    scratch: TokenScratch,
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
) -> int:
    """Write columns (ascending) and values of one text, and return how many there are."""
    n_tokens = tokenize(codes, 0, codes.shape[0], rules, scratch)
    n_known = _known_columns(n_tokens, table, scratch)
    return weigh(scratch.columns[:n_known], weights, indices, values)


@kernel
def encode_text(
    vocabulary: Any, codes: NDArray[np.uint32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return columns (ascending) and values of one text, by the handle of a `Vocabulary`."""
    rules, table, weights = vocabulary.parts
    scratch = new_scratch(codes.shape[0], rules)
    n_most = scratch.columns.shape[0]
    indices, values = np.empty(n_most, np.int32), np.empty(n_most, np.float32)
    n = encode_into(codes, rules, table, weights, scratch, indices, values)
    return indices[:n].copy(), values[:n].copy()


@kernel
def encode_texts(
    codes: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    rules: TokenRules,
    table: NDArray[np.uint64],
    weights: NDArray[np.float32],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return the row lengths, columns and values of several texts, row after row."""
    n_texts = offsets.shape[0] - 1
    lengths = np.empty(n_texts, np.int64)
    indices = np.empty(codes.shape[0], np.int32)
    values = np.empty(codes.shape[0], np.float32)
    scratch = new_scratch(longest_text(offsets), rules)
    n_entries = 0
    for row in range(n_texts):
        n_tokens = tokenize(codes, offsets[row], offsets[row + 1], rules, scratch)
        n_known = _known_columns(n_tokens, table, scratch)
        if n_entries + n_known > indices.shape[0]:
            indices = grown(indices, n_entries, 2 * (n_entries + n_known))
            values = grown(values, n_entries, 2 * (n_entries + n_known))
        known = scratch.columns[:n_known]
        length = weigh(known, weights, indices[n_entries:], values[n_entries:])
        lengths[row] = length
        n_entries += length
    return lengths, indices[:n_entries].copy(), values[:n_entries].copy()
