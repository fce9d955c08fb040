"""Which tokens texts have: in how many of them each is, and how it is spelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.data.characters import as_text, joined_code_points
from longtail.data.text_column import TextColumn
from longtail.kernels.jit import n_usable_cores, over_row_chunks
from longtail.kernels.text import count_texts, spell_texts
from longtail.kernels.token_tables import LOW_HALF

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from longtail.kernels.text import TokenRules

__all__ = ["document_frequencies", "kinds_of", "spellings"]

CHUNK = 1024  # texts normalised and cut into tokens at a time
MAX_SHARDS = 8  # threads that count
LINE_FEED = ord("\n")
KIND_BITS = np.uint64(3)


def document_frequencies(
    texts: Sequence[str], rules: TokenRules
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return every token's key and the number of texts that it is in.

    Each thread owns the keys of one shard, so that threads never meet in a table.

    Parameters
    ----------
    texts : sequence of str
    rules : TokenRules

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
    # Every thread cuts every text into tokens: beyond a few threads that is most of the work.
    n_shards = min(n_usable_cores(), MAX_SHARDS)
    tables = [(np.zeros((1 << 12, 2), np.uint64), 0) for _ in range(n_shards)]
    for first_row in range(0, len(texts), CHUNK):
        codes, offsets = joined_code_points(texts, first_row, min(first_row + CHUNK, len(texts)))
        count = _shard_counter(tables, first_row, codes, offsets, rules)
        over_row_chunks(count, n_shards, n_threads=n_shards, chunk=1)
    entries = np.concatenate([table[table[:, 0] != 0] for table, _ in tables])
    return entries[:, 0], (entries[:, 1] & LOW_HALF).astype(np.int64)


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


def spellings(
    texts: Sequence[str], rules: TokenRules, table: NDArray[np.uint64], n_features: int
) -> TextColumn:
    """Return the tokens by column: read the texts once more, until all have been met.

    Parameters
    ----------
    texts : sequence of str
        Those that `table` was made from.
    rules : TokenRules
    table : ndarray of uint64
        See `longtail.kernels.token_tables.build_table`.
    n_features : int
        Columns in it.

    Returns
    -------
    TextColumn
        A word, two words, or a piece such as ``<pre`` a column.

    Examples
    --------
    >>> from longtail import TextVectorizer
    >>> from longtail.data.token_counts import spellings
    >>> texts = ["red wine", "red car"]
    >>> vectorizer = TextVectorizer(word_ngrams=1, char_ngrams=None, min_df=1).fit(texts)
    >>> table = vectorizer.to_arrays()["table"]
    >>> sorted(spellings(texts, vectorizer.token_rules(), table, vectorizer.n_features_))
    ['car', 'red', 'wine']
    """
    spelled = np.zeros(n_features, np.bool_)
    parts: list[tuple[NDArray[np.int32], NDArray[np.uint32]]] = []

    def spell(start: int, stop: int) -> None:
        if not spelled.all():
            codes, offsets = joined_code_points(texts, start, stop)
            parts.append(spell_texts(codes, offsets, rules, table, spelled))

    over_row_chunks(spell, len(texts), n_threads=n_usable_cores(), chunk=CHUNK)
    columns = np.concatenate([part[0] for part in parts])
    places = np.empty(n_features, np.int64)
    places[columns] = np.arange(columns.size)  # two threads may have met one token
    return _lines(np.concatenate([part[1] for part in parts])).take(places)


def _lines(codes: NDArray[np.uint32]) -> TextColumn:
    """Return what line feeds end in some code points."""
    buffer = np.frombuffer(as_text(codes).encode(), np.uint8)
    is_end = buffer == LINE_FEED
    ends = np.flatnonzero(is_end)
    offsets = np.zeros(ends.size + 1, np.int64)
    offsets[1:] = ends - np.arange(ends.size)  # less the line feeds, which are left out
    return TextColumn(buffer[~is_end], offsets)


def _shard_counter(
    tables: list[tuple[NDArray[np.uint64], int]],
    first_row: int,
    codes: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    rules: TokenRules,
) -> Callable[[int, int], None]:
    """Return the work of one thread on one chunk."""

    def count(shard: int, _: int) -> None:
        tables[shard] = count_texts(
            codes, offsets, first_row, rules, shard, len(tables), *tables[shard]
        )

    return count
