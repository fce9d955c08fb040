"""Linear classifiers of few weights each, scored on shortlists of sparse points: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.errors import InputError
from longtail.held_arrays import hold_read_only
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.sparse_scoring import sparse_label_logits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from longtail.data.bags import Bags

__all__ = ["SparseLabelVectors"]

_DTYPES: Mapping[str, type[np.generic]] = MappingProxyType(
    {"starts": np.int64, "features": np.int32, "weights": np.float32, "bias": np.float32}
)


@dataclass(frozen=True)
class SparseLabelVectors:
    """One sparse linear classifier a label, over the features of the points themselves.

    Parameters
    ----------
    starts : int64 (n_labels + 1,)
        Where the weights of each label begin.
    features : int32 (n_weights,)
        Ascending within each label.
    weights : float32 (n_weights,)
    bias : float32 (n_labels,)

    Raises
    ------
    InputError
        If the arrays do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    >>> from longtail.data.bags import Bags
    >>> classifier = SparseLabelVectors(
    ...     np.array([0, 1, 3]), np.array([4, 4, 7]), np.array([1, 2, 3.0]), np.array([0, -1.0])
    ... )
    >>> bag = Bags.one(np.array([4, 7], np.int32), np.array([0.5, 1], np.float32))
    >>> classifier.logits(bag, np.array([[1, 0, -1]], np.int32)).tolist()
    [[3.0, 0.5, -inf]]
    """

    starts: NDArray[np.int64]
    features: NDArray[np.int32]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held, and refuse those that do not fit."""
        hold_read_only(self, _DTYPES)
        n_weights = len(self.features)
        if (
            len(self.starts) != self.n_labels + 1
            or self.starts[-1] != n_weights
            or len(self.weights) != n_weights
        ):
            raise InputError(
                f"Sparse classifiers of {self.n_labels} labels need one more start, the last of "
                f"which is the number of weights: got {len(self.starts)} starts, the last "
                f"{self.starts[-1:].tolist()}, {n_weights} features, {len(self.weights)} weights."
            )
        least = self.features.min(initial=0)
        if self.starts[0] != 0 or (np.diff(self.starts) < 0).any() or least < 0:
            raise InputError(
                "Sparse classifiers need starts that rise from 0 and features that are not "
                f"negative: got a first start of {self.starts[0]} and a least feature of {least}. "
                "Build them again."
            )

    @classmethod
    def empty(cls, n_labels: int) -> SparseLabelVectors:
        """Return classifiers that say 0 of everything."""
        return cls(
            np.zeros(n_labels + 1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.float32),
            np.zeros(n_labels, np.float32),
        )

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.bias)

    @cached_property
    def n_features(self) -> int:
        """Number of features up to the last one that any label has a weight for."""
        return 1 + int(self.features.max(initial=-1))

    def matrix(self, n_features: int) -> csr_array:
        """Return the weights (n_labels, n_features), on the same memory where int32 counts them."""
        kind = np.int32 if len(self.features) <= np.iinfo(np.int32).max else np.int64
        parts = (self.weights, self.features, self.starts.astype(kind))
        return csr_array(parts, (self.n_labels, n_features))

    def logits(
        self, bags: Bags, labels: NDArray[np.int32], n_threads: int = 1
    ) -> NDArray[np.float32]:
        """Return the margins ``w_l . x + b_l`` of each point's shortlisted labels.

        Parameters
        ----------
        bags : Bags
            n points, no column twice in one.
        labels : int32 (n, size)
            Padded with -1.
        n_threads : int

        Returns
        -------
        float32 (n, size)
            Padded with -inf.
        """
        labels = read_only(labels, np.int32)
        logits = np.full(labels.shape, -np.inf, np.float32)
        own = (self.starts, self.features, self.weights, self.bias)
        arguments = (*bags.for_kernels()[:3], *own, labels)

        def work(start: int, stop: int) -> None:
            # Made here, because numpy has the system zero only the pages that are touched.
            dense = np.zeros(self.n_features, np.float32)
            sparse_label_logits(*arguments, start, stop, dense, logits)

        over_row_chunks(work, bags.n_rows, n_threads=n_threads, chunk=256)
        return logits

    @classmethod
    def joined(cls, parts: Sequence[SparseLabelVectors]) -> SparseLabelVectors:
        """Return the labels of some classifiers, one after the other, as one."""
        n_weights = np.concatenate([np.diff(part.starts) for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(n_weights)]),
            np.concatenate([part.features for part in parts]),
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.bias for part in parts]),
        )

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what the classifiers are made of."""
        return {name: getattr(self, name) for name in _DTYPES}
