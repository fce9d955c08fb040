"""Symbols of a text as words of their own, for texts that punctuation tells apart.

Of "12:30" and "12-30", words leave the same. So for each different run of symbols there is a word
more: what stands before the run, its first four symbols, and what stands behind it, each as one
code point beyond Unicode's. The text itself stays as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from longtail.data.characters import (
    SYMBOLS_BELOW,
    SYMBOLS_FROM,
    character_classes,
    code_points,
    no_text,
)
from longtail.kernels.arrays import read_only
from longtail.kernels.text import CharacterClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Codes = NDArray[np.uint32]

__all__ = ["codes_of", "has_symbols", "joined_codes_of"]

RUN = re.compile(r"[^\w\s]+|_+")
MOST_OF_RUN = 4
# What stands beside a run, as symbols that hardly any text has.
LETTER, DIGIT, BLANK, OTHER = (SYMBOLS_FROM + ord(symbol) for symbol in "⁂⁑⁅⁆")


def has_symbols(text: str) -> bool:
    """Tell whether a text has a symbol.

    Examples
    --------
    >>> from longtail.data.symbol_words import has_symbols
    >>> has_symbols("red wine"), has_symbols("red wine?")
    (False, True)
    """
    return RUN.search(text) is not None


def codes_of(text: str, *, symbols: bool) -> Codes:
    """Return the code points of a text; with `symbols`, the words of its symbols behind them.

    Examples
    --------
    A digit, a colon, a digit.

    >>> from longtail.data.characters import as_text
    >>> from longtail.data.symbol_words import codes_of
    >>> as_text(codes_of("12:30", symbols=True)), as_text(codes_of("12:30", symbols=False))
    ('12:30 ⁑:⁑', '12:30')
    """
    codes = code_points(text)
    if not symbols or not (more := _words_of(text)):
        return codes
    return read_only(np.concatenate([codes, np.array(more, np.uint32)]), np.uint32)


def joined_codes_of(texts: Sequence[str], start: int, stop: int) -> tuple[Codes, NDArray[np.int64]]:
    r"""Return the code points of ``texts[start:stop]`` at once, each with the words of its symbols.

    Returns
    -------
    codes : uint32 (n_code_points,)
        As `longtail.data.characters.joined_code_points` returns them.
    offsets : int64 (stop - start + 1,)

    Raises
    ------
    InputError
        If one of the texts is not a string.

    Examples
    --------
    >>> from longtail.data.characters import as_text
    >>> from longtail.data.symbol_words import joined_codes_of
    >>> codes, offsets = joined_codes_of(["Who?", "I"], 0, 2)
    >>> as_text(codes), offsets.tolist()
    ('who? ⁂?⁅\ni\n', [0, 9, 11])
    """
    end = np.array([ord("\n")], np.uint32)
    parts: list[Codes] = []
    for place, text in enumerate(texts[start:stop], start=start):
        if not isinstance(text, str):
            raise no_text(place, text)
        parts += [codes_of(text.replace("\n", " "), symbols=True), end]
    lengths = [len(codes) + 1 for codes in parts[::2]]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    codes = np.concatenate(parts) if parts else np.zeros(0, np.uint32)
    return read_only(codes, np.uint32), offsets


def _words_of(text: str) -> list[int]:
    """Return a word for each different run of symbols, a blank before each."""
    words: dict[tuple[int, ...], None] = {}
    for run in RUN.finditer(text):
        before, behind = (
            text[max(run.start() - 1, 0) : run.start()],
            text[run.end() : run.end() + 1],
        )
        symbols = [
            SYMBOLS_FROM + ord(symbol) for symbol in run[0][:MOST_OF_RUN] if _is_known(symbol)
        ]
        if symbols:
            words[(_kind(before), *symbols, _kind(behind))] = None
    return [code for word in words for code in (ord(" "), *word)]


def _is_known(symbol: str) -> bool:
    """Tell a symbol that can be part of a word from others, such as emoji, which are words."""
    place = ord(symbol)
    found = int(character_classes()[SYMBOLS_FROM + min(place, SYMBOLS_BELOW - 1)])
    return place < SYMBOLS_BELOW and found == CharacterClass.LETTER


def _kind(character: str) -> int:
    """Return the kind of a character beside a run of symbols; "" is beyond the text."""
    if character.isalpha():
        return LETTER
    if character.isdigit():
        return DIGIT
    return OTHER if character and not character.isspace() else BLANK
