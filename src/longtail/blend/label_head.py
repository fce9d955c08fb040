"""One unit vector a label, scored by angle: a source of blended models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.blend.candidates import search_rows_of
from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.scoring import angle_logits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.candidates import CandidateSearch

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["LabelHead"]


@dataclass(frozen=True)
class LabelHead:
    """One unit vector a label, scored by angle: ``scale * cos(w_l, x) + b_l``.

    Parameters
    ----------
    vectors : float32 (n_rows, dimension)
        Unit rows.
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

    vectors: Floats
    row_of_label: Ids
    bias: Floats
    scale: float

    @classmethod
    def of(cls, vectors: Floats, bias: Floats, scale: float) -> LabelHead:
        """Return a head of one row a label; a row of zeros says nothing."""
        every = np.arange(len(vectors), dtype=np.int32)
        return cls(vectors, np.where(vectors.any(axis=1), every, -1), bias, scale)

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held, and refuse those that do not fit."""
        object.__setattr__(self, "vectors", read_only(self.vectors, np.float32))
        object.__setattr__(self, "row_of_label", read_only(self.row_of_label, np.int32))
        object.__setattr__(self, "bias", read_only(self.bias, np.float32))
        rows = self.row_of_label
        if (
            len(rows) != len(self.bias)
            or rows.min(initial=0) < -1
            or rows.max(initial=-1) >= len(self.vectors)
        ):
            raise InputError(
                f"A label head of {len(self.bias)} labels needs the row of each among its "
                f"{len(self.vectors)} vectors, or -1: got {len(rows)} rows from "
                f"{rows.min(initial=0)} to {rows.max(initial=-1)}. Build it again."
            )

    def vectors_of_labels(self) -> Floats:
        """Return one row a label, float32 (n_labels, dimension), zeros where it has none."""
        every = np.zeros((len(self.row_of_label), self.vectors.shape[1]), np.float32)
        known = self.row_of_label >= 0
        every[known] = self.vectors[self.row_of_label[known]]
        return every

    def logits(self, points: Floats, labels: Ids, n_threads: int = 1) -> Floats:
        """Return float32 (n, size) of unit points and labels padded with -1; 0 for padding."""
        logits = np.zeros(labels.shape, np.float32)
        arguments = (self.vectors, self.row_of_label, self.bias, np.float32(self.scale))
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
        return cls(vectors, row_of_label, bias, scale)
