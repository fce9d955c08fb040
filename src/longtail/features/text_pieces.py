"""Texts cut into pieces of words, as a transformer reads them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longtail.errors import MissingExtraError, needs_extra

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["PiecesOfTexts", "TextPieces", "needs_transformers"]


@dataclass(frozen=True)
class PiecesOfTexts:
    """The tokeniser of a transformer: texts to ids of their pieces.

    Parameters
    ----------
    json : str
        As the ``tokenizers`` library writes it.
    n_pieces : int
        Pieces that are read of a text, those that mark its ends among them; the rest is cut off.
    padding : int
        Id of the padding.
    """

    json: str
    n_pieces: int
    padding: int

    @cached_property
    def tokenizer(self) -> Any:
        """Read the JSON, once."""
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415 - an extra that few models need
        except ModuleNotFoundError as error:
            raise needs_transformers(error) from error
        tokenizer = Tokenizer.from_str(self.json)
        tokenizer.enable_truncation(self.n_pieces)
        tokenizer.no_padding()
        return tokenizer

    def cut(self, texts: list[str]) -> TextPieces:
        """Return the pieces of each text."""
        found = [one.ids for one in self.tokenizer.encode_batch(texts)]
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        starts = np.concatenate([[0], lengths.cumsum()])
        ids = np.fromiter(chain.from_iterable(found), np.int32, int(starts[-1]))
        return TextPieces(ids, starts, self.padding)

    def of(self, texts: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return ids and mask, int64 (n, longest)."""
        return self.cut(texts).padded(np.arange(len(texts)))

    def as_bytes(self) -> NDArray[np.uint8]:
        """Return the JSON as a model folder keeps it."""
        return np.frombuffer(self.json.encode(), np.uint8)

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        return {"n_pieces": self.n_pieces, "padding": self.padding}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], json: NDArray[Any]) -> Self:
        """Make it again from `config` and `as_bytes`."""
        text = np.asarray(json, np.uint8).tobytes().decode()
        return cls(text, config["n_pieces"], config["padding"])


@dataclass(frozen=True, eq=False)
class TextPieces:
    """Pieces of many texts, cut once: training reads each text again and again.

    Parameters
    ----------
    ids : int32 (n_pieces,)
        Of one text after the other.
    starts : int64 (n_texts + 1,)
        Where the pieces of each begin, and the end of the last.
    padding : int
        Id of the padding.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.features.text_pieces import TextPieces
    >>> pieces = TextPieces(np.array([7, 8, 9], np.int32), np.array([0, 2, 3]), padding=0)
    >>> pieces.lengths.tolist()
    [2, 1]
    >>> [array.tolist() for array in pieces.padded(np.array([1, 0]))]
    [[[9, 0], [7, 8]], [[1, 0], [1, 1]]]
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    padding: int

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Pieces of each text, (n_texts,)."""
        return np.diff(self.starts)

    def followed_by(self, other: TextPieces) -> TextPieces:
        """Return the pieces of these texts and, behind them, of others."""
        starts = np.concatenate([self.starts, self.starts[-1] + other.starts[1:]])
        return TextPieces(np.concatenate([self.ids, other.ids]), starts, self.padding)

    def padded(self, texts: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return ids and mask of some texts, int64 (n, longest)."""
        lengths = self.lengths[texts]
        places = np.arange(lengths.max(initial=0))
        is_piece = places < lengths[:, None]
        ids = np.full(is_piece.shape, self.padding, np.int64)
        ids[is_piece] = self.ids[(self.starts[texts][:, None] + places)[is_piece]]
        return ids, is_piece.astype(np.int64)


def needs_transformers(error: ModuleNotFoundError) -> MissingExtraError:
    """Return what to say where a library is missing."""
    return needs_extra("This model reads texts with a transformer and", error, "train,transformers")
