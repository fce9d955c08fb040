"""Full 1-vs-All without shortlists, as a trained model keeps it: no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longtail.features.bag_encoder import BagEncoder
from longtail.features.encoder import encoder_from
from longtail.held_arrays import hold_read_only
from longtail.index.exact import ExactIndex
from longtail.named_parts import with_prefix, without_prefix
from longtail.scorers.blocks import top_k_in_blocks
from longtail.scorers.sigmoid import sigmoid_by_tanh

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.features.encoder import Encoder
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

__all__ = ["OneVsAllScorer", "best_of_classifiers"]

ROWS_AT_ONCE = 4096  # points whose features are held in memory together


@dataclass(frozen=True)
class OneVsAllScorer:
    """Features and one linear classifier a label, all of which are scored: O(L D) a point.

    Parameters
    ----------
    encoder : Encoder
    classifiers : float32 (n_used, dimension + 1)
        Of each label that is used, and its bias behind.
    labels : int32 (n_used,)
        Their ids, ascending: a label without points is never an answer.
    as_probability : bool
        Whether a score is the sigmoid of ``w_l . v + b_l``, or that number itself.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.one_vs_all import OneVsAllScorer
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> encoder = BagEncoder(np.eye(2, dtype=np.float32))
    >>> classifiers = np.array([[1, 0, 0], [0, 1, 3]], np.float32)
    >>> scorer = OneVsAllScorer(encoder, classifiers, np.array([4, 7], np.int32))
    >>> bag = Bags.one(np.array([0], np.int32), np.array([1], np.float32))
    >>> ids, scores = scorer.top_k(bag, 3)
    >>> ids.tolist(), scores.round(2).tolist()
    ([[7, 4, -1]], [[0.949999988079071, 0.7300000190734863, -inf]])
    >>> OneVsAllScorer(encoder, classifiers, scorer.labels, as_probability=False).top_k(bag, 1)[1]
    array([[3.]], dtype=float32)
    """

    encoder: Encoder
    classifiers: NDArray[np.float32]
    labels: NDArray[np.int32]
    as_probability: bool = True

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held."""
        hold_read_only(self, {"classifiers": np.float32, "labels": np.int32})

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`; a point of which the encoder knows nothing has no answer."""

        def answer(some: Bags) -> Answers:
            features = self.encoder.encode(some, n_threads)
            ids, logits = best_of_classifiers(
                features, self.classifiers, self.labels, k, n_threads=n_threads
            )
            ids[self._is_unknown(some, features)] = -1
            return ids, logits

        ids, scores = top_k_in_blocks(bags, k, ROWS_AT_ONCE, answer)
        if self.as_probability:
            scores = sigmoid_by_tanh(scores)
        scores[ids < 0] = -np.inf
        return ids, scores

    def _is_unknown(self, bags: Bags, features: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return of which points the encoder knows nothing, bool (n,)."""
        unknown: NDArray[np.bool_] = np.logical_not(features.any(axis=1))
        if isinstance(self.encoder, BagEncoder):  # its ReLU leaves zeros of some known tokens, too
            unknown &= bags.silent()
        return unknown

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        encoder = with_prefix("encoder/", self.encoder.to_arrays())
        classifiers = {"one-vs-all/classifiers": self.classifiers, "one-vs-all/labels": self.labels}
        return {**encoder, **classifiers}

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {
            "kind": "one-vs-all",
            "encoder": self.encoder.config(),
            "as_probability": self.as_probability,
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> Self:
        """Make it again from `config` and `to_arrays`."""
        return cls(
            encoder_from(config["encoder"], without_prefix("encoder/", arrays)),
            arrays["one-vs-all/classifiers"],
            arrays["one-vs-all/labels"],
            config["as_probability"],
        )


def best_of_classifiers(
    features: NDArray[np.float32],
    classifiers: NDArray[np.float32],
    labels: NDArray[np.int32],
    k: int,
    *,
    n_threads: int = 1,
) -> Answers:
    """Score all labels by their linear classifiers, ``w_l . v + b_l``; return the k best.

    Parameters
    ----------
    features : float32 (n, dimension)
        v of each point.
    classifiers : float32 (n_used, dimension + 1)
        w of each label that is used, and its bias behind.
    labels : int32 (n_used,)
        Their ids, ascending.
    k, n_threads : int

    Returns
    -------
    ids : int32 (n, k)
        Best first, ties by smaller id, padded with -1.
    logits : float32 (n, k)
        Padded with -inf.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.scorers.one_vs_all import best_of_classifiers
    >>> features, classifiers = np.array([[5]], np.float32), np.array([[1, 0], [2, -3]], np.float32)
    >>> ids, logits = best_of_classifiers(features, classifiers, np.array([4, 7], np.int32), 2)
    >>> ids.tolist(), logits.tolist()
    ([[7, 4]], [[7.0, 5.0]])
    """
    ones = np.ones((len(features), 1), np.float32)  # each meets a bias
    index = ExactIndex(classifiers, n_threads=n_threads)
    rows, logits = index.query(np.concatenate([features, ones], axis=1), k)
    return np.where(rows >= 0, labels[rows], np.int32(-1)), logits
