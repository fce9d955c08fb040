"""Which tokens texts have: in how many of them each is, and how it is spelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.data.characters import joined_code_points
from longtail.data.text_column import TextColumn
from longtail.kernels.jit import n_usable_cores, over_row_chunks
from longtail.kernels.text import KIND_BITS
from longtail.kernels.token_numbers import NumberedTokens, new_tokens, number_texts, numbers_of_keys
from longtail.kernels.token_tables import LOW_HALF, NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from longtail.kernels.text import TokenRules

__all__ = ["CountedTokens", "NumberedTexts", "counted_tokens", "document_frequencies", "kinds_of"]

CHUNK = 1024  # texts normalised and cut into tokens at a time
MOST_COUNTERS = 8  # threads that count: each has its own table, in which frequent tokens repeat


class NumberedTexts(NamedTuple):
    """The tokens of some neighbouring texts, as one of the threads that read them numbered them.

    Attributes
    ----------
    counter : int
        The thread's place in `CountedTokens.numbers_of`.
    numbers : int32 (n,)
        Text after text, repeats among them.
    lengths : int64 (n_texts,)
        How many of them each text has.
    """

    counter: int
    numbers: NDArray[np.int32]
    lengths: NDArray[np.int64]


class CountedTokens(NamedTuple):
    """The different tokens of some texts, and the texts themselves as numbers of tokens.

    Attributes
    ----------
    keys : uint64 (n_tokens,)
        See `kinds_of`. They have no order of their own.
    frequencies : int64 (n_tokens,)
        The number of texts that a token is in.
    spelled : TextColumn
        The tokens as `places` has them: a word, two words, or a piece such as ``<pre``.
    places : int64 (n_tokens,)
    texts : list of NumberedTexts
        All texts in their order; empty unless they were to be kept.
    numbers_of : list of int32 (n_numbers,)
        For each thread, which token is the one that it gave a number to.
    """

    keys: NDArray[np.uint64]
    frequencies: NDArray[np.int64]
    spelled: TextColumn
    places: NDArray[np.int64]
    texts: list[NumberedTexts]
    numbers_of: list[NDArray[np.int32]]


class _Counter:
    """What one thread has met."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.tokens = new_tokens()
        self.n_tokens = 0

    def read(
        self, codes: NDArray[np.uint32], offsets: NDArray[np.int64], start: int, rules: TokenRules
    ) -> NumberedTexts:
        """Give numbers to the tokens of some texts, the first of which is text `start`."""
        known = self.tokens, self.n_tokens
        tokens, self.n_tokens, numbers, lengths = number_texts(codes, offsets, start, rules, *known)
        self.tokens = NumberedTokens(*tokens)
        return NumberedTexts(self.place, numbers, lengths)

    def keys(self) -> NDArray[np.uint64]:
        """Return the keys of its tokens, in their order."""
        used = self.tokens.table[self.tokens.table[:, 0] != NOTHING]
        keys = np.empty(self.n_tokens, np.uint64)
        keys[(used[:, 1] & LOW_HALF).astype(np.int64)] = used[:, 0]
        return keys

    def spelled(self) -> TextColumn:
        """Return how its tokens are spelled, in their order."""
        ends = self.tokens.ends[: self.n_tokens + 1]
        return TextColumn(self.tokens.spelled[: ends[-1]], ends)


def counted_tokens(
    texts: Sequence[str],
    rules: TokenRules,
    *,
    keeps_texts: bool = False,
    codes_of: Callable[..., tuple[NDArray[np.uint32], NDArray[np.int64]]] = joined_code_points,
) -> CountedTokens:
    """Read texts once, on all usable cores: count, spell and number their tokens.

    Parameters
    ----------
    texts : sequence of str
    rules : TokenRules
    keeps_texts : bool, default False
        Whether rows of these texts are to be made: four bytes a token.
    codes_of : callable
        From texts, a first and a last of them to code points, as `joined_code_points`.

    Examples
    --------
    >>> from longtail import TextVectorizer
    >>> from longtail.data.token_counts import counted_tokens
    >>> rules = TextVectorizer(char_ngrams=None).token_rules()
    >>> counted = counted_tokens(["red wine", "red, red car"], rules)
    >>> sorted(zip(counted.spelled.take(counted.places), counted.frequencies.tolist()))
    [('car', 1), ('red', 2), ('wine', 1)]
    """
    n_threads = min(n_usable_cores(), MOST_COUNTERS)
    counters = [_Counter(place) for place in range(n_threads)]
    idle = counters.copy()
    numbered: dict[int, NumberedTexts] = {}

    def count(start: int, stop: int) -> None:
        counter = idle.pop()
        read = counter.read(*codes_of(texts, start, stop), start, rules)
        if keeps_texts:
            numbered[start] = read
        idle.append(counter)

    over_row_chunks(count, len(texts), n_threads=n_threads, chunk=CHUNK)
    return _as_one(counters, [numbered[start] for start in sorted(numbered)])


def _as_one(counters: list[_Counter], texts: list[NumberedTexts]) -> CountedTokens:
    """Return what several threads have met, as one of them would have."""
    keys = np.concatenate([counter.keys() for counter in counters])
    numbers, n_tokens = numbers_of_keys(keys)
    frequencies = np.zeros(n_tokens, np.int64)
    spelled = counters[0].spelled()
    for counter in counters[1:]:
        spelled = spelled.joined(counter.spelled())
    ends = np.cumsum([counter.n_tokens for counter in counters])
    numbers_of = np.split(numbers, ends[:-1])
    for counter, own in zip(counters, numbers_of, strict=True):
        frequencies[own] += counter.tokens.n_texts_of[: counter.n_tokens]
    places = np.empty(n_tokens, np.int64)
    places[numbers] = np.arange(numbers.size)
    return CountedTokens(keys[places], frequencies, spelled, places, texts, numbers_of)


def document_frequencies(
    texts: Sequence[str], rules: TokenRules
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return every token's key and the number of texts that it is in.

    Returns
    -------
    keys : ndarray of shape (n_tokens,), uint64
        See `kinds_of`.
    frequencies : ndarray of shape (n_tokens,), int64

    Examples
    --------
    >>> from longtail import TextVectorizer
    >>> from longtail.data.token_counts import document_frequencies
    >>> rules = TextVectorizer(char_ngrams=None).token_rules()
    >>> keys, frequencies = document_frequencies(["red wine", "red, red car"], rules)
    >>> sorted(frequencies.tolist())
    [1, 1, 2]
    """
    counted = counted_tokens(texts, rules)
    return counted.keys, counted.frequencies


def kinds_of(keys: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return the `TokenKind` of some tokens, which is in the two low bits of their keys.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.token_counts import kinds_of
    >>> kinds_of(np.array([4 * 1234 + 1], np.uint64)).tolist()
    [1]
    """
    return (keys & KIND_BITS).astype(np.uint8)
