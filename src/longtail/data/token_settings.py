"""What texts are cut into, and which of their tokens are kept."""

from __future__ import annotations

import dataclasses
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.data.characters import character_classes
from longtail.errors import InputError
from longtail.kernels.text import TokenKind, TokenRules

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TokenSettings"]

LONGEST_NGRAM = 100  # a text has room for an n-gram of each length at each character


@dataclass(eq=False)
class TokenSettings:
    """The parameters of a `longtail.data.vectorizer.TextVectorizer`, which explains them."""

    word_ngrams: int = 1
    char_ngrams: tuple[int, int] | None = (3, 5)
    min_df: int | tuple[int, int, int] = 2
    max_features: int | None = 1_000_000
    kind_weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    symbols: bool = False

    def config(self) -> dict[str, Any]:
        """Return the constructor's parameters as JSON can hold them."""
        settings = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}
        return {
            key: np.asarray(v).tolist() if isinstance(v, (tuple, np.generic)) else v
            for key, v in settings.items()
        }

    def least_frequencies(self) -> NDArray[np.int64]:
        """Return how many texts must have a token of each `TokenKind`, by its number.

        Returns
        -------
        ndarray of shape (4,), int64

        Examples
        --------
        >>> from longtail import TextVectorizer
        >>> TextVectorizer(min_df=(1, 2, 3)).least_frequencies().tolist()
        [0, 1, 2, 3]
        """
        of_kinds = self.min_df if isinstance(self.min_df, tuple) else (self.min_df,) * 3
        return np.array([0, *of_kinds])

    def token_rules(self) -> TokenRules:
        """Return the parameters as the kernels take them."""
        shortest, longest = self.char_ngrams or (1, 0)
        return TokenRules(character_classes(), self.word_ngrams, shortest, longest)

    def check_parameters(self) -> None:
        """Check the parameters, as `fit` does.

        Raises
        ------
        InputError
            If one is out of range.
        """
        if self.word_ngrams not in {1, 2}:
            raise InputError(f"word_ngrams must be 1 or 2, got {self.word_ngrams!r}.")
        if self.char_ngrams is not None:
            try:
                shortest, longest = (operator.index(length) for length in self.char_ngrams)
            except (TypeError, ValueError):
                shortest = longest = 0
            if not 2 <= shortest <= longest <= LONGEST_NGRAM:
                raise InputError(
                    "char_ngrams must be (shortest, longest) with 2 <= shortest <= longest <= "
                    f"{LONGEST_NGRAM}, or None; got {self.char_ngrams!r}."
                )
        least = self.least_frequencies()[1:]
        if len(least) != len(TokenKind) or min(least) < 1:
            raise InputError(
                "min_df must be at least 1, or three such numbers, for words, pairs and character "
                f"n-grams; got {self.min_df!r}."
            )
        if self.max_features is not None and self.max_features < 1:
            raise InputError(f"max_features must be at least 1 or None, got {self.max_features!r}.")
        positive = all(0 < weight < np.inf for weight in self.kind_weights)
        if len(self.kind_weights) != len(TokenKind) or not positive:
            raise InputError(
                "kind_weights must be three finite numbers above 0, for words, pairs and character "
                f"n-grams; got {self.kind_weights!r}."
            )
