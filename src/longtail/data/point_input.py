"""What a model reads of a point: its bag of tokens, its words in order, its text, numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from longtail.data.characters import character_classes, joined_code_points
from longtail.data.damping import unit_rows_of_power
from longtail.data.dense_columns import DenseColumns
from longtail.data.feature_names import check_feature_names
from longtail.data.foreign import UNREADABLE, check_unmasked
from longtail.data.from_python import features_from
from longtail.data.text_column import well_formed
from longtail.errors import InputError
from longtail.kernels.jit import n_usable_cores, over_row_chunks
from longtail.kernels.text import TokenRules
from longtail.kernels.word_order import read_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.vectorizer import TextVectorizer

__all__ = ["InputKind", "PointInput", "words_in_table"]


class InputKind(Enum):
    """What points can be to a feature architecture.

    Examples
    --------
    >>> from longtail.data.point_input import InputKind, PointInput
    >>> [kind.name for kind in InputKind if PointInput(kind).needs_texts]
    ['WORDS', 'TEXTS']
    >>> [kind.name for kind in InputKind if PointInput(kind).needs_numbers]
    ['ROWS', 'IMAGES']
    """

    BAGS = "bags"  # weighted bags of tokens: texts, or sparse rows
    WORDS = "words"  # the words of texts, in order
    TEXTS = "texts"  # texts as they are, cut into pieces by the encoder's own tokeniser
    ROWS = "rows"  # dense rows, such as the vectors of a sentence encoder
    IMAGES = "images"  # (channels, height, width)


@dataclass(frozen=True)
class PointInput:
    """What a model reads of a point, and what it must therefore be given.

    Parameters
    ----------
    kind : InputKind
    n_words : int
        Words that are read of a text, if they are read in order; the rest is cut off.
    image_shape : tuple of int
        (channels, height, width) of images; empty otherwise.
    power : float
        Numbers of ready-made bags are raised to it before a row is scaled to unit length; the
        signs stay. See `longtail.data.damping`.
    dense : DenseColumns or None
        Dense columns of ready-made features, which are centred and scaled before all else.
    feature_names : tuple of str
        What the columns of ready-made features were called in training; empty where they had no
        names. A table must have the same ones.

    Examples
    --------
    >>> from longtail.data.point_input import InputKind, PointInput
    >>> PointInput(InputKind.WORDS, n_words=32).needs_texts
    True
    """

    kind: InputKind = InputKind.BAGS
    n_words: int = 0
    image_shape: tuple[int, ...] = ()
    power: float = 1.0
    dense: DenseColumns | None = None
    feature_names: tuple[str, ...] = ()

    @property
    def needs_texts(self) -> bool:
        """Whether features that are ready-made will not do."""
        return self.kind in {InputKind.WORDS, InputKind.TEXTS}

    @property
    def needs_numbers(self) -> bool:
        """Whether texts will not do."""
        return self.kind in {InputKind.ROWS, InputKind.IMAGES}

    def check(self, *, is_text: bool) -> None:
        """Raise InputError unless points of that kind can be read."""
        if self.needs_texts and not is_text:
            raise InputError(
                "This model reads the words of a text in their order, but it was given a matrix of "
                "features, which has none. Pass texts, or take a recipe or architecture that reads "
                "bags, such as parabel, BagOfTokens or HashedMLP."
            )
        if self.needs_numbers and is_text:
            shape = self.image_shape or "(n_points, n_features)"
            raise InputError(
                f"This model reads {self.kind.value} of numbers, but it was given texts. Pass an "
                f"array {shape}, or take an architecture that reads texts, such as BagOfTokens."
            )

    def matrix(self, X: Any) -> csr_array:
        """Return points that are no texts as a CSR matrix, or raise InputError.

        Parameters
        ----------
        X : matrix (n, n_features), or images (n, channels, height, width)

        Returns
        -------
        csr_array of float32 (n, n_features)
        """
        self.check(is_text=False)
        check_feature_names(X, self.feature_names)
        if self.kind is not InputKind.IMAGES:
            return features_from(X)
        size = int(np.prod(self.image_shape))
        if issparse(X) and X.shape[1] == size:  # as a data set holds them
            return features_from(X)
        check_unmasked("X", X)
        images = _numbers(X if not issparse(X) else X.toarray())
        if images.shape[1:] not in {self.image_shape, (size,)}:
            raise InputError(
                f"This model reads images {self.image_shape}, (channels, height, width), but it "
                f"was given an array {images.shape}. Pass (n_points, *{self.image_shape})."
            )
        return features_from(images.reshape(len(images), size))

    def rows(self, features: csr_array) -> csr_array:
        """Return ready-made features as the scorer takes them: bags as unit rows, others as is."""
        if self.needs_numbers:
            return features
        if self.dense is not None:
            features = self.dense.centred(features)
        return unit_rows_of_power(features, self.power)

    def width(self, n_features: int) -> int:
        """Return how many columns `rows` have of so many features."""
        return n_features + (self.dense is not None)

    def words(
        self, vectorizer: TextVectorizer | None, texts: Sequence[str]
    ) -> NDArray[np.int32] | None:
        """Return the words of texts in order, int32 (n, at most n_words); None if not needed."""
        if vectorizer is None or self.kind is not InputKind.WORDS:
            return None
        return words_in_table(vectorizer.to_arrays()["table"], texts, self.n_words)

    def training_words(
        self, vectorizer: TextVectorizer | None, texts: Sequence[str]
    ) -> NDArray[np.int32] | None:
        """Return `words` of the training texts; InputError if there is none to learn from."""
        words = self.words(vectorizer, texts)
        if words is not None and not words.size:
            raise InputError(
                "This recipe reads the words of a text in their order, but none of the tokens that "
                "are kept is a word: all are pairs, or pieces of words. Lower min_df, raise "
                "max_features, or set word_ngrams to 1 and char_ngrams to None."
            )
        return words

    def texts(self, texts: Sequence[str]) -> NDArray[np.object_] | None:
        """Return texts as they are, object (n,), so that rows can be chosen; None if not needed."""
        if self.kind is not InputKind.TEXTS:
            return None
        return np.array([well_formed(text) for text in texts], np.object_)

    def config(self) -> dict[str, Any]:
        """Return what `from_config` needs, as JSON values."""
        return {
            "kind": self.kind.value,
            "n_words": self.n_words,
            "image_shape": list(self.image_shape),
            "power": self.power,
            "dense": None if self.dense is None else self.dense.config(),
            "feature_names": list(self.feature_names),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> PointInput:
        """Make it again."""
        dense = config["dense"]
        return cls(
            InputKind(config["kind"]),
            config["n_words"],
            tuple(config["image_shape"]),
            config["power"],
            None if dense is None else DenseColumns.from_config(dense),
            tuple(config["feature_names"]),
        )


def _numbers(images: Any) -> NDArray[np.float32]:
    """Return images as an array, or raise InputError."""
    try:
        return np.asarray(images, np.float32)
    except UNREADABLE as error:
        raise InputError(f"X cannot be read as an array of images: {error}") from error


def words_in_table(
    table: NDArray[np.uint64], texts: Sequence[str], n_words: int
) -> NDArray[np.int32]:
    """Return the columns of the words of each text, in the order of the text.

    Words that are not in the table are left out, as if they were not there.

    Parameters
    ----------
    table : uint64 (n_slots,)
        Of a vectoriser: see `longtail.kernels.token_tables`.
    texts : sequence of str
    n_words : int
        Words that are kept of a text; the rest is cut off.

    Returns
    -------
    int32 (n, longest)
        Padded with -1; the longest has at most `n_words`.

    Examples
    --------
    >>> from longtail import TextVectorizer
    >>> from longtail.data.point_input import words_in_table
    >>> vectorizer = TextVectorizer(char_ngrams=None, min_df=1).fit(["red wine", "red car"])
    >>> words = words_in_table(vectorizer.to_arrays()["table"], ["wine, not red", "car"], 10)
    >>> [[vectorizer.token(word) for word in row if word >= 0] for row in words]
    [['wine', 'red'], ['car']]
    """
    rules = TokenRules(character_classes(), 1, 1, 0)  # words only
    parts: dict[int, NDArray[np.int32]] = {}

    def read(start: int, stop: int) -> None:
        codes, offsets = joined_code_points(texts, start, stop)
        # In scripts without spaces each character is a word, and any two neighbours are one, too.
        longest = 2 * int(np.diff(offsets).max())
        words = np.empty((stop - start, min(n_words, longest)), np.int32)
        n_most = read_words(codes, offsets, rules, table, words)
        parts[start] = words[:, :n_most].copy()

    over_row_chunks(read, len(texts), n_threads=n_usable_cores(), chunk=1024)
    if len(parts) == 1:
        return parts[0]
    n_most = max((part.shape[1] for part in parts.values()), default=0)
    words = np.full((len(texts), n_most), -1, np.int32)
    for start, part in parts.items():
        words[start : start + len(part), : part.shape[1]] = part
    return words
