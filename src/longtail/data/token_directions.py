"""Where tokens point by word vectors that were learnt elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.amounts import counted
from longtail.data.input_notes import warn
from longtail.data.rows import unit_vectors
from longtail.data.text_column import TextColumn
from longtail.data.word_vectors import read_word_vectors
from longtail.errors import InputError
from longtail.kernels.text import TokenKind

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from longtail.data.vectorizer import TextVectorizer

    Floats = NDArray[np.float32]

__all__ = ["DirectionsOfFile", "TokenDirections"]

LEAST_FOUND = 0.1  # of the words of texts: fewer are those that languages share
NOISE = 1e-6  # a length up to which a row points nowhere: it is what rounding left of zeros


@dataclass(frozen=True, eq=False)
class TokenDirections:
    """Directions of words, of pairs of these, and of pieces that they have.

    A pair points where its two words do, and a piece of words where all words with it do. What all
    words have in common is taken away first, since it tells none from another.

    Parameters
    ----------
    of_words : csr_array of float32 (n_tokens, n_words)
        1 for each word of a token, or that has it.
    vectors : float32 (n_words, n_numbers)

    Examples
    --------
    Of four tokens, the third is a piece of both words, and nothing is known of the last.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.token_directions import TokenDirections
    >>> of_words = csr_array(np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.float32))
    >>> known = TokenDirections(of_words, np.array([[1, 0, 0], [0, 1, 0]], np.float32))
    >>> directions = known.within(dimension=8, seed=0).directions(0, 4)
    >>> (directions @ directions.T).round(2).diagonal().tolist()
    [1.0, 1.0, 0.0, 0.0]
    """

    of_words: csr_array
    vectors: Floats

    @classmethod
    def of(cls, vectorizer: TextVectorizer, path: str | Path) -> TokenDirections:
        """Read the vectors of a vectoriser's words.

        Raises
        ------
        InputError, DataFormatError
            See `read_word_vectors`; also if the vectors of all words are the same.
        """
        known = vectorizer.tokens_.take(np.flatnonzero(vectorizer.kinds_ == TokenKind.WORD))
        words, vectors = read_word_vectors(path, set(known))
        if (vectors == vectors[0]).all():
            raise InputError(
                f"{path} tells none of the words of these texts from another: it has vectors of "
                f"{counted(len(words), 'word')} of theirs, all the same. Name a file of vectors of "
                "words of the texts' language."
            )
        if len(words) < LEAST_FOUND * len(known):
            warn(
                f"{path} has {len(words):,} of the {len(known):,} words of these texts. Is it of "
                "their language?"
            )
        return cls(_words_of_tokens(vectorizer, words), vectors)

    def within(self, dimension: int, seed: int) -> TokenDirections:
        """Return the same with unit vectors of so many numbers, all of which say about as much.

        Longer ones keep the numbers in which words differ most.
        """
        unit = _unit(_centred(self.vectors))
        n_numbers = unit.shape[1]
        n_kept = min(n_numbers, dimension)
        _, axes = np.linalg.eigh(unit.T @ unit)  # in the order of rising variance
        random = np.random.default_rng(seed).standard_normal((dimension, n_kept))
        turned = np.linalg.qr(random)[0].T.astype(np.float32)
        rotation = axes[:, n_numbers - n_kept :] @ turned
        return replace(self, vectors=_unit(unit @ rotation))

    def directions(self, start: int, stop: int) -> Floats:
        """Return unit rows of some tokens, and zeros where nothing is known of one."""
        return _unit(self.of_words[start:stop] @ self.vectors)


class DirectionsOfFile:
    r"""Directions that are read from a file at once, and held until they are taken.

    A training takes them for its first token table alone, and then has their memory for itself.

    Parameters
    ----------
    vectorizer : TextVectorizer
    path : str or Path
        A file of word vectors.

    Raises
    ------
    InputError, DataFormatError
        See `TokenDirections.of`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.token_directions import DirectionsOfFile
    >>> from longtail.data.vectorizer import TextVectorizer
    >>> known = TextVectorizer(min_df=1).fit(["red wine", "white wine"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "words.vec")
    ...     _ = path.write_text("red 1 0\nwine 0 1\n")
    ...     DirectionsOfFile(known, path).taken().vectors.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, vectorizer: TextVectorizer, path: str | Path) -> None:
        self._vectorizer, self._path = vectorizer, path
        self._held: TokenDirections | None = TokenDirections.of(vectorizer, path)

    def taken(self) -> TokenDirections:
        """Return the directions, which are not held any more: whoever asks again reads again."""
        taken = self._held or TokenDirections.of(self._vectorizer, self._path)
        self._held = None
        return taken


def _centred(vectors: Floats) -> Floats:
    """Return what tells words from each other, in numbers whose squares are numbers, too."""
    _, exponent = np.frexp(max(vectors.max(), -vectors.min()))
    rows: Floats = np.ldexp(vectors, -exponent)
    rows -= rows.mean(axis=0, dtype=np.float64)
    return rows


def _unit(rows: Floats) -> Floats:
    """Scale rows to length 1, in place, but for those that point nowhere, which become zeros."""
    rows[np.einsum("ij,ij->i", rows, rows) <= NOISE**2] = 0
    return unit_vectors(rows, out=rows)


def _words_of_tokens(vectorizer: TextVectorizer, words: list[str]) -> csr_array:
    """Return which of some words each token is, has or is a piece of, (n_tokens, n_words)."""
    bags = vectorizer.transform(TextColumn.from_strings(words))  # a word and its pieces
    words_of_bags = np.repeat(np.arange(len(words)), np.diff(bags.indptr))
    place_of = {word: place for place, word in enumerate(words)}
    pairs = np.flatnonzero(vectorizer.kinds_ == TokenKind.PAIR)
    entries = (
        (pair, place_of[word])
        for pair, token in zip(pairs.tolist(), vectorizer.tokens_.take(pairs), strict=True)
        for word in token.split(" ")
        if word in place_of
    )
    of_pairs = np.fromiter(chain.from_iterable(entries), np.int64).reshape(-1, 2)
    tokens = np.concatenate([bags.indices, of_pairs[:, 0]])
    places = np.concatenate([words_of_bags, of_pairs[:, 1]])
    ones = np.ones(len(tokens), np.float32)
    return csr_array((ones, (tokens, places)), shape=(vectorizer.n_features_, len(words)))
