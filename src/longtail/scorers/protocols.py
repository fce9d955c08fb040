"""What every trained model is to a predictor, and what some of them know beside answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.data.bags import Bags

    # Labels of each point, int32 (n, k), best first, and their scores, float32 (n, k).
    Answers: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]

__all__ = ["HasVectors", "KnowsPoints", "Scorer", "ScoresShares"]


class Scorer(Protocol):
    """What a model folder holds and a predictor asks."""

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """Return the k best labels of each bag and their scores, padded with -1 and -inf."""
        ...

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return all arrays, named ``"group/name"``."""
        ...

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        ...


@runtime_checkable
class ScoresShares(Protocol):
    """A scorer that may say that its scores are shares of one: see `Calibration`."""

    @property
    def scores_are_shares(self) -> bool:
        """Whether they are from 0 to 1, such as products of probabilities, or parts of votes."""
        ...


@runtime_checkable
class HasVectors(Protocol):
    """A scorer that knows labels by vectors, which people may compare."""

    @property
    def dimension(self) -> int:
        """Length of a vector, as numbers."""
        ...

    def vectors_of_labels(self) -> NDArray[np.float32]:
        """Return float32 (n_labels, dimension), a row of zeros for a label without a vector."""
        ...

    def vectors_of_tokens(self) -> NDArray[np.float32] | None:
        """Return float32 (n_features, any dimension); None where tokens have no vectors."""
        ...


@runtime_checkable
class KnowsPoints(Protocol):
    """A scorer that keeps the training points, to search in."""

    def near_points(self, bag: Bags, n: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return at most n training points near one bag, nearest first, and their similarities."""
        ...

    def labels_of_point(self, row: int) -> NDArray[np.int32]:
        """Return the labels of a training point."""
        ...

    def training_row_of(self, point: int) -> int | None:
        """Return which row of the training data, from 0, a point is; None where nobody knows."""
        ...
