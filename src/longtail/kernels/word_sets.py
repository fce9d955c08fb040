"""The words of texts in order, each once: what near-identical texts have alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.kernels.jit import kernel, lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.uint32]
    Offsets = NDArray[np.int64]

__all__ = ["write_word_sets"]

SPACE = np.uint32(ord(" "))
LINE_FEED = np.uint32(ord("\n"))


class _Words(NamedTuple):
    """Where the words of some texts begin and end, one text after another."""

    codes: Codes
    starts: Offsets
    stops: Offsets


@lean_kernel
def _order(words: _Words, one: int, other: int) -> int:
    """Return a number below 0, 0 or above 0 where one word comes before, is or follows another."""
    start, other_start = words.starts[one], words.starts[other]
    length, other_length = words.stops[one] - start, words.stops[other] - other_start
    for place in range(min(length, other_length)):
        code, rival = words.codes[start + place], words.codes[other_start + place]
        if code != rival:
            return -1 if code < rival else 1
    return int(length - other_length)


@lean_kernel
def _find_words(start: int, stop: int, is_word: NDArray[np.bool_], words: _Words) -> int:
    """Note the words of ``codes[start:stop]``, and return how many there are."""
    n_words = 0
    inside = False
    for place in range(start, stop):
        if is_word[words.codes[place]] != inside:
            inside = not inside
            if inside:
                words.starts[n_words] = place
            else:
                words.stops[n_words] = place
                n_words += 1
    if inside:
        words.stops[n_words] = stop
        n_words += 1
    return n_words


@lean_kernel
def _merge(words: _Words, left: int, middle: int, right: int, runs: Offsets, out: Offsets) -> None:
    """Write two neighbouring runs of words in order, ``left:middle`` and ``middle:right``."""
    one, other = left, middle
    for place in range(left, right):
        is_left = one < middle
        if is_left and other < right:
            is_left = _order(words, runs[one], runs[other]) <= 0
        if is_left:
            out[place] = runs[one]
            one += 1
        else:
            out[place] = runs[other]
            other += 1


@lean_kernel
def _sort(words: _Words, n_words: int, order: Offsets, spare: Offsets) -> None:
    """Put the numbers of the words into their order: long texts are sorted, too."""
    for word in range(n_words):
        order[word] = word
    width = 1
    while width < n_words:
        for left in range(0, n_words, 2 * width):
            middle, right = min(left + width, n_words), min(left + 2 * width, n_words)
            _merge(words, left, middle, right, order, spare)
        for place in range(n_words):
            order[place] = spare[place]
        width *= 2


@lean_kernel
def _write(words: _Words, order: Offsets, out: Codes, n_out: int) -> int:
    """Write words in order, each once, spaces between them and a line feed behind."""
    first = n_out
    for place in range(len(order)):
        word = order[place]
        if place and _order(words, order[place - 1], word) == 0:
            continue
        if n_out > first:
            out[n_out] = SPACE
            n_out += 1
        for source in range(words.starts[word], words.stops[word]):
            out[n_out] = words.codes[source]
            n_out += 1
    out[n_out] = LINE_FEED
    return n_out + 1


@kernel
def write_word_sets(codes: Codes, offsets: Offsets, is_word: NDArray[np.bool_], out: Codes) -> int:
    """Write the different words of each text in the order of their code points.

    Parameters
    ----------
    codes : uint32 (n_codes,)
        Text ``i`` is ``codes[offsets[i]:offsets[i + 1]]``.
    offsets : int64 (n_texts + 1,)
    is_word : bool (0x110000,)
        Which code points make words; all others separate.
    out : uint32 (n_codes + n_texts,)
        Output: the words of a text with spaces between them and a line feed behind.

    Returns
    -------
    int
        How much was written.
    """
    most = 1
    for row in range(len(offsets) - 1):
        most = max(most, (offsets[row + 1] - offsets[row] + 1) // 2)
    words = _Words(codes, np.empty(most, np.int64), np.empty(most, np.int64))
    order, spare = np.empty(most, np.int64), np.empty(most, np.int64)
    n_out = 0
    for row in range(len(offsets) - 1):
        n_words = _find_words(offsets[row], offsets[row + 1], is_word, words)
        _sort(words, n_words, order, spare)
        n_out = _write(words, order[:n_words], out, n_out)
    return n_out
