"""What the texts of a training set are like: named labels, long strings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from longtail.data.characters import are_unspaced
from longtail.data.csr import rows_of_entries
from longtail.data.rows import evenly_spaced
from longtail.data.token_counts import document_frequencies, kinds_of
from longtail.data.vectorizer import TextVectorizer
from longtail.kernels.text import TokenKind

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from longtail.data.text_column import TextColumn

__all__ = [
    "LEAST_TEXTS",
    "N_LOOKED_AT",
    "are_strings",
    "sample_of",
    "share_alone",
    "share_named",
    "share_unknown",
    "step_for",
]

LONG_WORD = 20  # characters of a word, on average, from which texts are strings
LEAST_TEXTS = 100  # of fewer, two characters that labels share are shared by chance
N_LOOKED_AT = 1_000  # texts by which it is told whether they name their labels, or are strings
SAMPLE = 10_000  # texts whose words are counted
N_HALVED = 2_000  # texts whose words are looked for in each other
LONG = 250  # bytes of a text, on average: of longer ones fewer are sampled


def sample_of(texts: TextColumn) -> TextColumn:
    """Return some of the texts, from all over them; fewer of long ones.

    Examples
    --------
    >>> from longtail.data.text_column import TextColumn
    >>> from longtail.estimators.text_traits import sample_of
    >>> len(sample_of(TextColumn.from_strings(["red wine"] * 30_000)))
    10000
    """
    return texts[:: step_for(texts, SAMPLE)]


def share_named(texts: TextColumn, labels: csr_array, label_texts: TextColumn) -> float:
    """Return for which share of the points' labels the point's text has all words of the label's.

    It is 0 for scripts without spaces, in which a text has the characters of many a word.

    Parameters
    ----------
    texts : TextColumn
    labels : csr_array (n_points, n_labels)
    label_texts : TextColumn

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.text_column import TextColumn
    >>> from longtail.estimators.text_traits import share_named
    >>> texts = TextColumn.from_strings(["The red car", "a car"])
    >>> share_named(texts, csr_array([[1], [1]]), TextColumn.from_strings(["red car"]))
    0.5
    """
    names = label_texts.take(labels.indices)
    if not labels.nnz or are_unspaced(texts):
        return 0.0
    words = TextVectorizer(char_ngrams=None, min_df=1).fit(texts.joined(names))
    of_texts, of_names = words.transform(texts) != 0, words.transform(names) != 0
    n_shared = of_names.multiply(of_texts[rows_of_entries(labels)]).sum(axis=1)
    n_words = of_names.sum(axis=1)
    return float(np.mean((n_words > 0) & (n_shared == n_words)))


def share_alone(texts: TextColumn, length: int) -> float:
    """Return which share of the texts' pieces of words of a length are in one text only.

    Examples
    --------
    >>> from longtail.data.text_column import TextColumn
    >>> from longtail.estimators.text_traits import share_alone
    >>> share_alone(TextColumn.from_strings(["abcd", "bcda"]), 3)
    0.75
    """
    pieces = TextVectorizer(char_ngrams=(length, length)).token_rules()
    keys, n_texts_of = document_frequencies(texts, pieces)
    n_texts_of = n_texts_of[kinds_of(keys) == TokenKind.CHARACTERS]
    return float(np.sum(n_texts_of == 1) / max(n_texts_of.sum(), 1))


def share_unknown(texts: TextColumn) -> float:
    """Return which share of the words of half of the texts is in none of the other half.

    Where it is most, as of names in many languages or of texts full of typing errors, words say
    little, and their pieces much. Two thousand texts are looked at, as it falls with their number;
    of fewer, it is 0.

    Examples
    --------
    >>> from longtail.data.text_column import TextColumn
    >>> from longtail.estimators.text_traits import share_unknown
    >>> texts = [("red wine", f"wine {number}")[number % 2] for number in range(2000)]
    >>> share_unknown(TextColumn.from_strings(texts))
    0.5
    """
    if len(texts) < N_HALVED:
        return 0.0
    some = texts.take(evenly_spaced(N_HALVED, len(texts)))
    words = TextVectorizer(char_ngrams=None).token_rules()
    known, _ = document_frequencies(some[::2], words)
    asked, n_texts_of = document_frequencies(some[1::2], words)
    return float(n_texts_of[~np.isin(asked, known)].sum() / max(n_texts_of.sum(), 1))


def are_strings(texts: TextColumn) -> bool:
    """Return whether texts are long strings: codes, names of symbols, what sequencers read.

    Their words are twice as long as those of any language, on average. What they hold is known by
    pieces alone.

    Parameters
    ----------
    texts : TextColumn
        A thousand of which are looked at; fewer than a hundred are none.

    Examples
    --------
    >>> from longtail.data.text_column import TextColumn
    >>> from longtail.estimators.text_traits import are_strings
    >>> are_strings(TextColumn.from_strings(["GATTACATTGAGACATAGAC"] * 100))
    True
    >>> are_strings(TextColumn.from_strings(["Donaudampfschifffahrt auf der Donau"] * 100))
    False
    """
    if len(texts) < LEAST_TEXTS:
        return False
    n_words = n_characters = 0
    for text in texts[:: step_for(texts, N_LOOKED_AT)]:
        words = re.findall(r"[^\W_]+", text)
        n_words += len(words)
        n_characters += sum(map(len, words))
    return n_characters >= LONG_WORD * max(n_words, 1)


def step_for(texts: TextColumn, n_wanted: int) -> int:
    """Return the step from text to text by which a sample of at least so many is taken.

    Of texts that are longer than 250 bytes on average, it is longer in proportion.

    Examples
    --------
    >>> from longtail.data.text_column import TextColumn
    >>> from longtail.estimators.text_traits import step_for
    >>> step_for(TextColumn.from_strings(["red wine"] * 30), n_wanted=10)
    3
    """
    return max(1, len(texts) // n_wanted, int(texts.offsets[-1]) // (LONG * n_wanted))
