"""Texts to sparse TF-IDF rows over words, word pairs and character n-grams."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from longtail.data.assembled import joined
from longtail.data.characters import joined_code_points
from longtail.data.symbol_words import codes_of, joined_codes_of
from longtail.data.text_column import TextColumn
from longtail.data.token_counts import counted_tokens, kinds_of
from longtail.data.token_settings import TokenSettings
from longtail.errors import RETRAIN, InputError, ModelFolderError
from longtail.kernels.arrays import read_only
from longtail.kernels.handle import handle_of
from longtail.kernels.jit import n_usable_cores, over_row_chunks
from longtail.kernels.text import TokenKind, TokenRules, Vocabulary, encode_text, encode_texts
from longtail.kernels.token_numbers import weigh_numbers
from longtail.kernels.token_tables import LOW_HALF, build_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from longtail.data.token_counts import CountedTokens

__all__ = ["TextVectorizer", "TokenKind"]

CHUNK = 1024  # texts normalised and encoded at a time
_ARRAY_TYPES: dict[str, type[np.generic]] = {
    "table": np.uint64,
    "weights": np.float32,
    "kinds": np.uint8,
    "token_buffer": np.uint8,
    "token_offsets": np.int64,
}
Rows: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]"


@dataclass(eq=False)
class TextVectorizer(TokenSettings):
    """Turn texts into sparse TF-IDF rows of unit length.

    Words and word pairs carry meaning; character n-grams inside the words add what inflection,
    compounding and misspelling hide. How words are found in which script:
    `longtail.data.characters`.

    Parameters
    ----------
    word_ngrams : {1, 2}, default 1
        2 adds the pairs of neighbouring words.
    char_ngrams : (int, int) or None, default (3, 5)
        Shortest and longest character n-gram inside one word marked as ``<word>``, both from 2 to
        100, the markers counted; None for no n-grams.
    min_df : int or (int, int, int), default 2
        A token is kept if at least this many training texts have it; three numbers are for words,
        pairs and character n-grams.
    max_features : int or None, default 1,000,000
        Keep at most the tokens that are in the most texts (ties: by the hash of the token).
    kind_weights : (float, float, float), default (1, 1, 1)
        Factors for words, pairs and character n-grams, applied before the row is scaled to unit
        length; all above 0.
    symbols : bool, default False
        Whether runs of symbols are words, too: see `longtail.data.symbol_words`.

    Attributes
    ----------
    n_features_ : int
        Number of columns. Columns are ordered from the most to the least frequent token.
    weights_ : ndarray of shape (n_features_,), float32
        Inverse document frequency times kind weight.
    kinds_ : ndarray of shape (n_features_,), uint8
        The `TokenKind` of each column.
    tokens_ : TextColumn
        The token of each column: a word, two words, or a piece such as ``<pre`` or ``ing>``.

    Notes
    -----
    The value of token ``t`` in a text is ``(1 + log tf) * (log((1 + n) / (1 + df)) + 1)`` before
    scaling: sublinear tf and smooth idf [1]_. Tokens are known by a 62-bit hash; two of ten
    million share one with a probability of about 1 in 100,000.

    A fitted vectoriser is never changed by use: any number of threads may share one. Before `fit`
    or `fit_transform`, what needs a vocabulary raises InputError.

    References
    ----------
    .. [1] Manning, Raghavan, Schuetze, "Introduction to Information Retrieval" (2008), 6.4.

    Examples
    --------
    >>> from longtail.data.vectorizer import TextVectorizer
    >>> vectorizer = TextVectorizer(char_ngrams=None, min_df=1).fit(["red wine", "red car"])
    >>> X = vectorizer.transform(["Red, red wine!", "a boat"])
    >>> X.shape, X.nnz
    ((2, 3), 2)
    >>> columns, values = vectorizer.encode_one("Red, red wine!")
    >>> {vectorizer.token(column): round(float(v), 2) for column, v in zip(columns, values)}
    {'red': 0.77, 'wine': 0.64}
    """

    n_features_: int = field(init=False, repr=False)
    weights_: NDArray[np.float32] = field(init=False, repr=False)
    kinds_: NDArray[np.uint8] = field(init=False, repr=False)
    tokens_: TextColumn = field(init=False, repr=False)
    _table: NDArray[np.uint64] = field(init=False, repr=False)
    _rules: TokenRules | None = field(init=False, repr=False, default=None)
    _handle: Any = field(init=False, repr=False, default=None)

    def fit(self, texts: Sequence[str]) -> Self:
        """Learn the vocabulary and its weights.

        Parameters
        ----------
        texts : sequence of str
            The training texts, a list or a `TextColumn`. Empty ones are allowed.

        Raises
        ------
        InputError
            If a parameter is out of range, something is not a string, or the vocabulary would be
            empty.
        """
        self.check_parameters()
        _check_texts(texts)
        counted = counted_tokens(texts, self.token_rules(), codes_of=self._joined_codes)
        self._learn(counted, len(texts))
        return self

    def fit_transform(self, texts: Sequence[str]) -> csr_array:
        """Learn the vocabulary and its weights, and encode the texts, in one reading of them.

        Returns
        -------
        csr_array of shape (n_texts, n_features_), float32
            As `transform` returns it, to the bit.

        Raises
        ------
        InputError
            See `fit`.

        Examples
        --------
        >>> from longtail import TextVectorizer
        >>> vectorizer = TextVectorizer(char_ngrams=None, min_df=1)
        >>> X = vectorizer.fit_transform(["red wine", "red car"])
        >>> X.shape, X.nnz, vectorizer.tokens_[0]
        ((2, 3), 4, 'red')
        """
        self.check_parameters()
        _check_texts(texts)
        rules, codes_of = self.token_rules(), self._joined_codes
        counted = counted_tokens(texts, rules, keeps_texts=True, codes_of=codes_of)
        column_of = self._learn(counted, len(texts))
        columns = [column_of[tokens] for tokens in counted.numbers_of]
        # Each part has room for all of its tokens. Repeats and those that are not kept leave gaps,
        # which are closed: parts of their own would be memory that is not given back.
        starts = np.cumsum([0, *(len(part.numbers) for part in counted.texts)]).astype(np.int64)
        indices, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
        lengths = [part.lengths for part in counted.texts]

        def weigh(first: int, last: int) -> None:
            for place in range(first, last):
                counter, numbers, n_tokens_of = counted.texts[place]
                room = slice(starts[place], starts[place + 1])
                row = (numbers, n_tokens_of, columns[counter], self.weights_)
                lengths[place] = weigh_numbers(*row, indices[room], values[room])

        over_row_chunks(weigh, len(counted.texts), n_threads=n_usable_cores(), chunk=1)
        counted.texts.clear()
        sizes = [int(part.sum()) for part in lengths]
        return self._matrix(lengths, *(_closed_up(a, starts, sizes) for a in (indices, values)))

    def _learn(self, counted: CountedTokens, n_texts: int) -> NDArray[np.int32]:
        """Choose the tokens that are kept; return the column of each that was counted, or -1."""
        if counted.keys.size == 0:
            raise InputError(
                f"Empty vocabulary: the {n_texts} training texts hold no word at all. "
                "Pass at least one text that is not blank."
            )
        kinds = kinds_of(counted.keys)
        kept = np.flatnonzero(counted.frequencies >= self.least_frequencies()[kinds])
        if not kept.size:
            raise InputError(
                f"Empty vocabulary: none of the {counted.keys.size} tokens is in "
                f"min_df={self.min_df} or more of the {n_texts} training texts. Lower min_df or "
                "pass more texts."
            )
        order = np.lexsort((counted.keys[kept], -counted.frequencies[kept]))
        kept = kept[order[: self.max_features]]
        factors = np.array([0.0, *self.kind_weights])[kinds[kept]]
        weights = factors * (np.log((1 + n_texts) / (1 + counted.frequencies[kept])) + 1)
        table = read_only(build_table(counted.keys[kept]), np.uint64)
        tokens = counted.spelled.take(counted.places[kept])
        self._adopt(table, weights.astype(np.float32), kinds[kept], tokens)
        column_of = np.full(kinds.size, -1, np.int32)
        column_of[kept] = np.arange(kept.size, dtype=np.int32)
        return column_of

    def transform(self, texts: Sequence[str]) -> csr_array:
        """Encode texts, on all usable cores.

        Returns
        -------
        csr_array of shape (n_texts, n_features_), float32
            Rows of unit length with int32 indices in ascending order. A text without a known
            token is an empty row.

        Raises
        ------
        InputError
            If something is not a string.
        """
        rules = self.fitted_rules()
        _check_texts(texts)
        parts: dict[int, Rows] = {}

        def encode(start: int, stop: int) -> None:
            codes, offsets = self._joined_codes(texts, start, stop)
            parts[start] = encode_texts(codes, offsets, rules, self._table, self.weights_)

        n_threads = n_usable_cores()
        over_row_chunks(encode, len(texts), n_threads=n_threads, chunk=CHUNK)
        ordered = [parts.pop(place) for place in sorted(parts)]
        indices = joined([part[1] for part in ordered], np.int32, n_threads)
        values = joined([part[2] for part in ordered], np.float32, n_threads)
        return self._matrix([part[0] for part in ordered], indices, values)

    def _matrix(
        self,
        lengths: list[NDArray[np.int64]],
        indices: NDArray[np.int32],
        values: NDArray[np.float32],
    ) -> csr_array:
        """Return the rows of texts, of which so many have so many entries."""
        indptr = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))
        if indptr[-1] <= np.iinfo(np.int32).max:  # else scipy would widen the indices
            indptr = indptr.astype(np.int32)
        X = csr_array((values, indices, indptr), shape=(len(indptr) - 1, self.n_features_))
        X.has_canonical_format = True
        return X

    def encode_one(self, text: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Encode one text: the same bits as its row of `transform`.

        Returns
        -------
        columns : ndarray of shape (n_known,), int32
            In ascending order.
        values : ndarray of shape (n_known,), float32

        Raises
        ------
        InputError
            If `text` is not a string.
        """
        if not isinstance(text, str):
            raise InputError(f"Expected one text (str), got {type(text).__name__}.")
        columns, values = encode_text(self.handle(), codes_of(text, symbols=self.symbols))
        return columns, values

    @property
    def _joined_codes(self) -> Callable[..., tuple[NDArray[np.uint32], NDArray[np.int64]]]:
        """What makes the code points of some texts."""
        return joined_codes_of if self.symbols else joined_code_points

    def handle(self) -> Any:
        """Return what compiled code takes instead of this object: a handle of a `Vocabulary`."""
        if self._handle is None:
            self._handle = handle_of(Vocabulary(self.fitted_rules(), self._table, self.weights_))
        return self._handle

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process."""
        return {**self.__dict__, "_handle": None, "_rules": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Adopt what was learnt: a copy of an array has forgotten that it is read-only."""
        self.__dict__.update(state)
        if "_table" in state:
            self._adopt(self._table, self.weights_, self.kinds_, self.tokens_)

    def is_word(self) -> NDArray[np.bool_]:
        """Return which columns are words or pairs of words, not pieces: bool (n_features_,).

        Examples
        --------
        >>> from longtail import TextVectorizer
        >>> vectorizer = TextVectorizer(char_ngrams=(3, 3), min_df=1).fit(["ab"])
        >>> list(vectorizer.tokens_), vectorizer.is_word().tolist()
        (['ab', 'ab>', '<ab'], [True, False, False])
        """
        self.fitted_rules()
        is_word: NDArray[np.bool_] = self.kinds_ != TokenKind.CHARACTERS
        return is_word

    def is_beginning(self) -> NDArray[np.bool_]:
        """Return which columns are pieces that words begin with, as ``<pre``: bool (n_features_,).

        Examples
        --------
        >>> from longtail import TextVectorizer
        >>> vectorizer = TextVectorizer(char_ngrams=(3, 3), min_df=1).fit(["ab"])
        >>> list(vectorizer.tokens_), vectorizer.is_beginning().tolist()
        (['ab', 'ab>', '<ab'], [False, False, True])
        """
        is_piece = ~self.is_word()
        first_bytes = self.tokens_.buffer[self.tokens_.offsets[:-1]]
        is_beginning: NDArray[np.bool_] = is_piece & (first_bytes == ord("<"))
        return is_beginning

    def token(self, column: int) -> str:
        """Return the token of a column: a word, two words, or a piece such as ``ing>``.

        Raises
        ------
        InputError
            If there is no such column.
        """
        self.fitted_rules()
        if not 0 <= column < self.n_features_:
            raise InputError(f"No column {column}: columns go from 0 to {self.n_features_ - 1}.")
        return self.tokens_[column]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learnt, for `from_arrays`.

        Returns
        -------
        dict of str to ndarray
            ``table`` (n_slots,) uint64, ``weights`` (n_features,) float32, ``kinds``
            (n_features,) uint8, and the tokens: ``token_buffer`` (n_bytes,) uint8 in UTF-8,
            ``token_offsets`` (n_features + 1,) int64.
        """
        self.fitted_rules()
        return {
            "table": self._table,
            "weights": self.weights_,
            "kinds": self.kinds_,
            "token_buffer": self.tokens_.buffer,
            "token_offsets": self.tokens_.offsets,
        }

    @classmethod
    def from_arrays(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build a fitted vectoriser from `config` and `to_arrays`.

        Parameters
        ----------
        config : mapping
            What `config` returned, perhaps by way of JSON.
        arrays : mapping of str to ndarray
            What `to_arrays` returned; read-only and memory-mapped arrays are used in place.

        Raises
        ------
        ModelFolderError
            If a setting is missing or unknown, or an array is missing or not what it should be.

        Examples
        --------
        >>> from longtail.data.vectorizer import TextVectorizer
        >>> vectorizer = TextVectorizer(min_df=1).fit(["red wine"])
        >>> same = TextVectorizer.from_arrays(vectorizer.config(), vectorizer.to_arrays())
        >>> same.n_features_ == vectorizer.n_features_
        True
        """
        known = {f.name for f in dataclasses.fields(cls) if f.init}
        if set(config) != known:
            raise ModelFolderError(
                f"The vectoriser's settings are {sorted(config)}, not {sorted(known)}. "
                "The model was damaged, or written by another version of longtail."
            )
        settings: dict[str, Any] = {
            key: tuple(v) if isinstance(v, list) else v for key, v in config.items()
        }
        _check_arrays(arrays)
        vectorizer = cls(**settings)
        vectorizer.check_parameters()
        tokens = TextColumn(arrays["token_buffer"], arrays["token_offsets"])
        vectorizer._adopt(arrays["table"], arrays["weights"], arrays["kinds"], tokens)
        return vectorizer

    def _adopt(
        self,
        table: NDArray[np.uint64],
        weights: NDArray[np.float32],
        kinds: NDArray[np.uint8],
        tokens: TextColumn,
    ) -> None:
        """Take over what was learnt; this makes the vectoriser a fitted one."""
        self._table = read_only(table, np.uint64)
        self.weights_ = read_only(weights, np.float32)
        self.kinds_ = read_only(kinds, np.uint8)
        self.tokens_ = tokens
        self.n_features_ = self.weights_.size
        self._rules = self.token_rules()
        self._handle = None

    def fitted_rules(self) -> TokenRules:
        """Return how texts become tokens, or raise InputError if there is no vocabulary yet."""
        if self._rules is None:
            raise InputError("This TextVectorizer is not fitted yet. Call fit(texts) first.")
        return self._rules


def _closed_up(array: NDArray[Any], starts: NDArray[np.int64], sizes: list[int]) -> NDArray[Any]:
    """Return parts of an array, which have gaps behind them, end to end and in place."""
    end = 0
    for start, size in zip(starts, sizes, strict=False):
        array[end : end + size] = array[start : start + size]
        end += size
    return array[:end]


def _check_texts(texts: Sequence[str]) -> None:
    """Refuse a lone string, whose characters would pass for texts, and what has no length."""
    if isinstance(texts, (str, bytes)) or not hasattr(texts, "__len__"):
        raise InputError(
            f"Expected a sequence of texts, got {type(texts).__name__} ({texts!r:.40}). "
            "Pass a list of strings, or use encode_one for one text."
        )


def _check_arrays(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays that are missing, of another type, or do not fit together."""
    for name, dtype in _ARRAY_TYPES.items():
        if name not in arrays:
            raise ModelFolderError(f"The vectoriser's array {name!r} is missing. {RETRAIN}")
        if arrays[name].dtype != dtype:
            raise ModelFolderError(
                f"The vectoriser's array {name!r} is {arrays[name].dtype}, "
                f"not {np.dtype(dtype)}. {RETRAIN}"
            )
    n_features = arrays["weights"].size
    n_slots = len(arrays["table"])
    fits = (
        arrays["table"].shape == (n_slots,)
        and n_slots & (n_slots - 1) == 0
        # The kernels trust the table: a full one or a column beyond the last must not reach them.
        and np.count_nonzero(arrays["table"]) == n_features < n_slots
        and (arrays["table"] & LOW_HALF).max() < n_features
        and arrays["kinds"].shape == (n_features,)
        and arrays["token_offsets"].shape == (n_features + 1,)
    )
    if not fits:
        raise ModelFolderError(
            "The vectoriser's arrays do not fit together: "
            f"{ {name: arrays[name].shape for name in _ARRAY_TYPES} }. {RETRAIN}"
        )
