"""Z: what Modules I and III learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from longtail.data.point_input import PointInput
    from longtail.features.encoder import Encoder
    from longtail.training.one_vs_all import FeatureNetwork
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["FeatureArchitecture"]


class FeatureArchitecture(Protocol):
    """Z: how points become features."""

    @property
    def reads(self) -> PointInput:
        """What it reads of a point."""
        ...

    def network(
        self,
        data: TrainingData,
        targets: csr_array,
        run: TrainingRun,
        start: Any = None,
    ) -> FeatureNetwork:
        """Return what will learn to predict `targets`.

        `start`, if any, is an encoder of this architecture to start from. Its arrays are copied,
        for it may be part of the model: a re-ranker starts from the first network's.
        """
        ...

    # Any, as is `start`: an architecture is given what it made itself, of a class of its own.
    def frozen(self, network: Any) -> Encoder:
        """Return the encoder of a network of this architecture as a trained model keeps it."""
        ...
