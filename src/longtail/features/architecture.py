"""Z: what Modules I and III learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from longtail.data.point_input import PointInput
    from longtail.features.encoder import Encoder
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
    ) -> Any:
        """Return a `FeatureNetwork` that will learn to predict `targets`.

        `start`, if any, is an encoder of this architecture to start from.
        """
        ...

    def frozen(self, network: Any) -> Encoder:
        """Return the encoder as a trained model keeps it."""
        ...
