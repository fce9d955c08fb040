"""Linear classifiers of all labels over a bag encoder, every label scored: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.features.bag_encoder import BagEncoder
from longtail.kernels.arrays import read_only
from longtail.scorers.blocks import top_k_in_blocks
from longtail.scorers.one_vs_all import best_of_classifiers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays

__all__ = ["DenseOneVsAllScorer"]

ROWS_AT_ONCE = 4096  # points whose features are held in memory together


@dataclass(frozen=True, kw_only=True)
class DenseOneVsAllScorer:
    """The score of a label is ``w . v + b`` for the features v of a point; all labels are scored.

    `OneVsAllScorer` is for any encoder, and says a probability.

    Parameters
    ----------
    encoder : BagEncoder
    classifiers : float32 (n_rows, dimension + 1)
        The vector w of each label, and b as its last entry.
    labels : int32 (n_rows,)
        Which labels those are, ascending: one without points is never an answer.

    Examples
    --------
    Of labels 4 and 7, the second has the larger bias. Of a point without tokens nothing is said.

    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> from longtail.scorers.dense_one_vs_all import DenseOneVsAllScorer
    >>> scorer = DenseOneVsAllScorer(
    ...     encoder=BagEncoder(np.eye(2, dtype=np.float32)),
    ...     classifiers=np.array([[1, 0, 0], [0, 1, 3]]),
    ...     labels=np.array([4, 7]),
    ... )
    >>> bags = Bags(np.array([0, 1, 1]), np.array([0]), np.array([2.0]))
    >>> ids, scores = scorer.top_k(bags, 2)
    >>> ids.tolist(), scores.tolist()
    ([[7, 4], [-1, -1]], [[3.0, 2.0], [-inf, -inf]])
    """

    encoder: BagEncoder
    classifiers: NDArray[np.float32]
    labels: NDArray[np.int32]

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held."""
        object.__setattr__(self, "classifiers", read_only(self.classifiers, np.float32))
        object.__setattr__(self, "labels", read_only(self.labels, np.int32))

    def top_k(
        self, bags: Bags, k: int, n_threads: int = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `Scorer.top_k`."""

        def answer(some: Bags) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
            features = self.encoder.encode(some, n_threads)
            return best_of_classifiers(
                features, self.classifiers, self.labels, k, n_threads=n_threads
            )

        ids, scores = top_k_in_blocks(bags, k, ROWS_AT_ONCE, answer)
        silent = np.diff(bags.row_starts) == 0  # nothing is known of them, so nothing is said
        ids[silent], scores[silent] = -1, -np.inf
        return ids, scores

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        return {
            "encoder/token_vectors": self.encoder.token_vectors,
            "labels/classifiers": self.classifiers,
            "labels/ids": self.labels,
        }

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {"kind": "dense-one-vs-all"}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> DenseOneVsAllScorer:  # noqa: ARG003 - the arrays say all
        """Make it again from `config` and `to_arrays`."""
        return cls(
            encoder=BagEncoder(arrays["encoder/token_vectors"]),
            classifiers=arrays["labels/classifiers"],
            labels=arrays["labels/ids"],
        )
