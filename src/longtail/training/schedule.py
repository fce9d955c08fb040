"""How long to train, and how fast."""

from __future__ import annotations

from dataclasses import dataclass

from longtail.errors import InputError

__all__ = ["Schedule"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Number of epochs and the learning rate at each step.

    Parameters
    ----------
    epochs : int
        Passes over the training points.
    learning_rate : float
        At the first step.
    halve_at : tuple of int
        Epochs, from 0, at whose start the rate is halved. Without any, the rate falls in a
        straight line to almost nothing at the last step.

    Examples
    --------
    >>> from longtail.training.schedule import Schedule
    >>> Schedule(epochs=2, learning_rate=0.1).rate_at(1, 0.5)
    0.025
    >>> Schedule(epochs=20, learning_rate=0.1, halve_at=(10, 15)).rate_at(12, 0.5)
    0.05
    """

    epochs: int
    learning_rate: float
    halve_at: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.learning_rate <= 0:
            raise InputError(
                f"epochs must be at least 0 and the learning rate above 0, "
                f"got {self.epochs} and {self.learning_rate}."
            )

    def rate_at(self, epoch: int, share_of_epoch: float) -> float:
        """Return the learning rate at a share, in [0, 1), of an epoch, from 0."""
        if self.halve_at:
            return self.learning_rate * 0.5 ** sum(epoch >= at for at in self.halve_at)
        done = (epoch + share_of_epoch) / self.epochs
        return self.learning_rate * max(1 - done, 0.01)
