"""One unit vector a label, scored by angle: a source of blended models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.errors import InputError
from longtail.held_arrays import hold_read_only
from longtail.index.stored import search_rows_of
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.scoring import angle_logits
from longtail.row_store import AS_THEY_ARE, float_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.candidates import CandidateSearch
    from longtail.kernels.rows import Rows
    from longtail.row_store import RowStore

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["LabelHead"]


@dataclass(frozen=True)
class LabelHead:
    """One unit vector a label, scored by angle: ``scale * cos(w_l, x) + b_l``.

    Parameters
    ----------
    rows : Rows
        Unit vectors (n_rows, dimension), stored. Millions of labels have gigabytes of them as
        float32, so they are put away in the bits that the model will have.
    row_of_label : int32 (n_labels,)
        Where each label's vector is; -1 for a label of which the head knows nothing but `bias`.
    bias : float32 (n_labels,)
    scale : float

    Raises
    ------
    InputError
        If the arrays do not fit each other.

    Examples
    --------
    Label 0 lies in the point's direction, label 1 at a right angle, and label 2 has a bias alone.

    >>> import numpy as np
    >>> from longtail.blend.label_head import LabelHead
    >>> vectors = np.array([[1, 0], [0, 1], [0, 0]], np.float32)
    >>> head = LabelHead.of(vectors, np.array([0, 0, -3], np.float32), scale=10)
    >>> labels = np.array([[0, 1, 2]], np.int32)
    >>> head.logits(np.array([[1, 0]], np.float32), labels).tolist()
    [[10.0, 0.0, -3.0]]
    """

    rows: Rows
    row_of_label: Ids
    bias: Floats
    scale: float

    @classmethod
    def of(
        cls, vectors: Floats, bias: Floats, scale: float, store: RowStore = AS_THEY_ARE
    ) -> LabelHead:
        """Return a head of one row a label, which `store` puts away; one of zeros says nothing."""
        every = np.arange(len(vectors), dtype=np.int32)
        row_of_label = np.where(vectors.any(axis=1), every, -1)
        return cls(store.rows(vectors), row_of_label, bias, scale)

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held, and refuse those that do not fit."""
        hold_read_only(self, {"row_of_label": np.int32, "bias": np.float32})
        rows = self.row_of_label
        if (
            len(rows) != len(self.bias)
            or rows.min(initial=0) < -1
            or rows.max(initial=-1) >= len(self.rows.values)
        ):
            raise InputError(
                f"A label head of {len(self.bias)} labels needs the row of each among its "
                f"{len(self.rows.values)} vectors, or -1: got {len(rows)} rows from "
                f"{rows.min(initial=0)} to {rows.max(initial=-1)}. Build it again."
            )

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(self.rows.values.shape[1])

    @property
    def vectors(self) -> Floats:
        """The rows as numbers, float32 (n_rows, dimension): a copy, where they are stored."""
        return read_only(float_rows(self.rows), np.float32)

    def vectors_of_labels(self) -> Floats:
        """Return one row a label, float32 (n_labels, dimension), zeros where it has none."""
        every = np.zeros((len(self.row_of_label), self.dimension), np.float32)
        known = self.row_of_label >= 0
        every[known] = self.vectors[self.row_of_label[known]]
        return every

    def logits(self, points: Floats, labels: Ids, n_threads: int = 1) -> Floats:
        """Return float32 (n, size) of unit points and labels padded with -1; 0 for padding."""
        logits = np.zeros(labels.shape, np.float32)
        arguments = (self.rows, self.row_of_label, self.bias, np.float32(self.scale))
        points, labels = read_only(points, np.float32), read_only(labels, np.int32)

        def work(start: int, stop: int) -> None:
            angle_logits(points, *arguments, labels, start, stop, logits)

        over_row_chunks(work, len(points), n_threads=n_threads, chunk=256)
        return logits

    def bias_of_cosine(self) -> Floats:
        """Return what a search by cosines is to add to find the largest logits, (n_labels,).

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.blend.label_head import LabelHead
        >>> head = LabelHead.of(np.eye(2), np.array([0, 4], np.float32), scale=16)
        >>> head.bias_of_cosine().tolist()
        [0.0, 0.25]
        """
        return self.bias / np.float32(self.scale)

    @classmethod
    def of_search(cls, search: CandidateSearch, bias: Floats, scale: float) -> LabelHead:
        """Return a head whose vectors are those of the search's label index."""
        vectors, places = search_rows_of(search.label_index)
        row_of_label = np.full(search.n_labels, -1, np.int32)
        row_of_label[search.label_of_row] = places
        return cls(AS_THEY_ARE.rows(vectors), row_of_label, bias, scale)
