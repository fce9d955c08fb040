"""The trained 1-vs-All classifiers of all labels, scored on shortlists only: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.errors import InputError, named
from longtail.held_arrays import hold_read_only
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.scoring import label_logits

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LabelVectors"]


@dataclass(frozen=True)
class LabelVectors:
    """One linear classifier a label: ``w_l . x + b_l`` (DeepXML paper, section 4, Module IV).

    Parameters
    ----------
    vectors : float32 (n_labels, dimension)
        W.
    bias : float32 (n_labels,)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.label_vectors import LabelVectors
    >>> classifier = LabelVectors(np.eye(2, dtype=np.float32), np.array([0, 1], np.float32))
    >>> features = np.array([[2, 3]], np.float32)
    >>> classifier.logits(features, np.array([[1, 0, -1]], np.int32)).tolist()
    [[4.0, 2.0, -inf]]
    """

    vectors: NDArray[np.float32]
    bias: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held."""
        try:
            hold_read_only(self, {"vectors": np.float32, "bias": np.float32})
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                f"Classifiers are arrays of float32, got {named(self.vectors)} and "
                f"{named(self.bias)}: {error}."
            ) from error

    def logits(
        self, features: NDArray[np.float32], labels: NDArray[np.int32], n_threads: int = 1
    ) -> NDArray[np.float32]:
        """Return the logits of each point's shortlisted labels.

        Parameters
        ----------
        features : float32 (n, dimension)
        labels : int32 (n, size)
            Padded with -1.
        n_threads : int

        Returns
        -------
        float32 (n, size)
            Padded with -inf.

        Raises
        ------
        InputError
            If features and vectors are not of the same length, or rows are missing.
        """
        features, labels = read_only(features, np.float32), read_only(labels, np.int32)
        if features.shape[1] != self.vectors.shape[1]:  # compiled code reads on, whatever is there
            raise InputError(
                f"The features of points have {features.shape[1]} numbers, but the label vectors "
                f"{self.vectors.shape[1]}. Train encoder and classifier together."
            )
        if len(features) != len(labels):
            raise InputError(
                f"There are features of {len(features)} points, but shortlists of {len(labels)}. "
                "Pass one row of each per point."
            )
        logits = np.full(labels.shape, -np.inf, np.float32)

        def work(start: int, stop: int) -> None:
            label_logits(features, self.vectors, self.bias, labels, start, stop, logits)

        over_row_chunks(work, len(features), n_threads=n_threads, chunk=256)
        return logits

    def with_bias(self) -> NDArray[np.float32]:
        """Return the vectors with their biases behind, float32 (n_labels, dimension + 1).

        Their products with features that end in a 1 are the logits.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.scorers.label_vectors import LabelVectors
        >>> LabelVectors(np.eye(2, dtype=np.float32), np.array([3, 4])).with_bias().tolist()
        [[1.0, 0.0, 3.0], [0.0, 1.0, 4.0]]
        """
        return np.concatenate([self.vectors, self.bias[:, np.newaxis]], axis=1)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what the classifier is made of."""
        return {"vectors": self.vectors, "bias": self.bias}
