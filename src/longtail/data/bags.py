"""Bags: the rows of a CSR matrix, as the plain arrays that kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.bags import keep_columns, sum_rows
from longtail.kernels.jit import over_row_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["Bags", "has_text"]


class Bags(NamedTuple):
    """Weighted bags of tokens, laid end to end.

    A CSR matrix without scipy's checks at every step: making one for a single text costs
    nothing, which is what a prediction in microseconds needs.

    Attributes
    ----------
    row_starts : int32 (n + 1,)
    columns : int32 (nnz,)
    values : float32 (nnz,)
    words : int32 (n, n_words) or None
        The words of each text in their order, padded with -1; only for models that read them.
    texts : object array (n,) or None
        The texts themselves, each a str; only for models that read them.
    n_columns : int or None
        Of the matrix whose rows they are; None if it is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> bags = Bags.one(np.array([4, 7], np.int32), np.array([0.6, 0.8], np.float32))
    >>> bags.n_rows
    1
    """

    row_starts: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    words: NDArray[np.int32] | None = None
    texts: NDArray[np.object_] | None = None
    n_columns: int | None = None

    @property
    def n_rows(self) -> int:
        """Number of bags."""
        return len(self.row_starts) - 1

    @classmethod
    def one(
        cls,
        columns: NDArray[np.int32],
        values: NDArray[np.float32],
        n_columns: int | None = None,
    ) -> Bags:
        """Return a single bag."""
        starts = np.array([0, len(columns)], np.int32)
        return cls(starts, columns, values, n_columns=n_columns)

    @classmethod
    def of(cls, matrix: csr_array) -> Bags:
        """Return the rows of a CSR matrix, without a copy where its types are those above.

        Raises
        ------
        InputError
            If the matrix has more entries, or columns, than an int32 can count.
        """
        if max(matrix.nnz, matrix.shape[1]) > np.iinfo(np.int32).max:
            raise InputError(
                f"Bags hold at most 2**31 - 1 entries and columns, got {matrix.nnz} entries and "
                f"{matrix.shape[1]} columns. Pass fewer rows at a time, train on fewer points, "
                "leave out pieces of words (char_ngrams=None), or hash the features."
            )
        return cls(
            matrix.indptr.astype(np.int32, copy=False),
            matrix.indices.astype(np.int32, copy=False),
            matrix.data.astype(np.float32, copy=False),
            n_columns=matrix.shape[1],
        )

    @classmethod
    def joined(cls, parts: Sequence[Bags]) -> Bags:
        """Return the bags of one part or more end to end; all have words, and texts, or none has.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.data.bags import Bags
        >>> first = Bags.one(np.array([4, 7], np.int32), np.array([0.6, 0.8], np.float32))
        >>> Bags.joined([first, first]).row_starts.tolist()
        [0, 2, 4]
        """
        lengths = np.concatenate([np.diff(part.row_starts) for part in parts])
        words = [part.words for part in parts if part.words is not None]
        texts = [part.texts for part in parts if part.texts is not None]
        return cls(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate(words) if words else None,
            np.concatenate(texts) if texts else None,
            parts[0].n_columns,
        )

    def for_kernels(self) -> Bags:
        """Return the entries in the one type that kernels are compiled for: read-only arrays."""
        return Bags(
            read_only(self.row_starts, np.int32),
            read_only(self.columns, np.int32),
            read_only(self.values, np.float32),
        )

    def silent(self) -> NDArray[np.bool_]:
        """Return which points say nothing, bool (n,): no entries, and no text but blanks.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.data.bags import Bags
        >>> none = np.empty(0, np.int32)
        >>> bags = Bags(np.zeros(4, np.int32), none, none.astype(np.float32))
        >>> bags.silent().tolist()
        [True, True, True]
        >>> bags._replace(texts=np.array(["", " ", "new"], np.object_)).silent().tolist()
        [True, True, False]
        """
        silent: NDArray[np.bool_] = np.diff(self.row_starts) == 0
        if self.texts is not None:
            silent &= ~has_text(self.texts)
        return silent

    def rows(self, start: int, stop: int) -> Bags:
        """Return some consecutive bags, without a copy of their entries."""
        first, last = int(self.row_starts[start]), int(self.row_starts[stop])
        return Bags(
            (self.row_starts[start : stop + 1] - first).astype(np.int32),
            self.columns[first:last],
            self.values[first:last],
            None if self.words is None else self.words[start:stop],
            None if self.texts is None else self.texts[start:stop],
            self.n_columns,
        )

    def blocks(self, size: int) -> Iterator[Bags]:
        """Yield all bags, at most `size` at a time, without a copy of their entries.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.data.bags import Bags
        >>> starts, none = np.zeros(6, np.int32), np.empty(0, np.int32)
        >>> [some.n_rows for some in Bags(starts, none, none.astype(np.float32)).blocks(2)]
        [2, 2, 1]
        """
        if 0 < self.n_rows <= size:
            yield self
            return
        for start in range(0, self.n_rows, size):
            yield self.rows(start, min(start + size, self.n_rows))

    def dense(self, n_columns: int) -> NDArray[np.float32]:
        """Return the bags as a dense matrix, float32 (n, n_columns); repeats are added up.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.data.bags import Bags
        >>> bag = Bags.one(np.array([0, 2], np.int32), np.array([0.5, 2], np.float32))
        >>> bag.dense(3).tolist()
        [[0.5, 0.0, 2.0]]
        """
        dense: NDArray[np.float32] = self.matrix(n_columns).toarray()
        return dense

    def matrix(self, n_columns: int) -> csr_array:
        """Return the bags as a CSR matrix (n, n_columns), without a copy."""
        return csr_array((self.values, self.columns, self.row_starts), (self.n_rows, n_columns))

    def kept(self, is_kept: NDArray[np.bool_]) -> Bags:
        """Return the entries of some columns, each bag scaled to unit length.

        Parameters
        ----------
        is_kept : bool (n_columns,)

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.data.bags import Bags
        >>> bags = Bags.one(np.array([0, 2], np.int32), np.array([0.6, 0.8], np.float32))
        >>> kept = bags.kept(np.array([False, True, True]))
        >>> kept.columns.tolist(), kept.values.tolist()
        ([2], [1.0])
        """
        starts = np.empty(len(self.row_starts), np.int32)
        columns = np.empty(len(self.columns), np.int32)
        values = np.empty(len(self.values), np.float32)
        n_kept = keep_columns(
            *self.for_kernels()[:3],
            read_only(is_kept, np.bool_),
            starts,
            columns,
            values,
        )
        return Bags(starts, columns[:n_kept], values[:n_kept])

    def times(self, table: NDArray[np.float32], n_threads: int = 1) -> NDArray[np.float32]:
        """Return the weighted sum of each bag's rows of a table, float32 (n, dimension).

        Columns are trusted to be rows of the table: checking each would cost as much as the sum.
        """
        sums = np.empty((self.n_rows, table.shape[1]), np.float32)
        row_starts, columns, values = self.for_kernels()[:3]
        rows = read_only(table, np.float32)

        def work(start: int, stop: int) -> None:
            sum_rows(row_starts, columns, values, rows, start, stop, sums)

        chunk = max(1, -(-self.n_rows // (4 * n_threads)))
        over_row_chunks(work, self.n_rows, n_threads=n_threads, chunk=chunk)
        return sums


def has_text(texts: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Return which texts are more than blanks.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.bags import has_text
    >>> has_text(np.array(["red wine", "", " "], np.object_)).tolist()
    [True, False, False]
    """
    return np.fromiter((bool(text.strip()) for text in texts), np.bool_, len(texts))
