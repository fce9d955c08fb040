"""How long to train, and how fast."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

from longtail.errors import InputError

__all__ = ["EPOCHS_AGAIN", "Schedule"]

EPOCHS_AGAIN = 2  # of what is trained already, once there are more points


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Number of epochs and the learning rate at each step.

    Parameters
    ----------
    epochs : int
        Passes over the training points.
    learning_rate : float
        At the first step, where there is no warm-up.
    halve_at : tuple of int
        Epochs, from 0, at whose start the rate is halved. Without any, the rate falls in a
        straight line to almost nothing at the last step.
    warm_up : float
        Share of all steps, in [0, 1), over which the rate rises in a straight line from almost
        nothing to what it is without warm-up. Adam's first steps go by the gradients of few
        batches; small ones do no harm to a pretrained network.

    Examples
    --------
    >>> from longtail.training.schedule import Schedule
    >>> Schedule(epochs=2, learning_rate=0.1).rate_at(1, 0.5)
    0.025
    >>> Schedule(epochs=20, learning_rate=0.1, halve_at=(10, 15)).rate_at(12, 0.5)
    0.05
    >>> warmed = Schedule(epochs=2, learning_rate=0.1, warm_up=0.5)
    >>> [round(warmed.rate_at(*step), 4) for step in ((0, 0.0), (0, 0.5), (1, 0.0), (1, 0.5))]
    [0.001, 0.0375, 0.05, 0.025]
    """

    epochs: int
    learning_rate: float
    halve_at: tuple[int, ...] = ()
    warm_up: float = 0.0

    def __post_init__(self) -> None:
        given: tuple[Any, ...] = (self.epochs, self.learning_rate, self.halve_at)  # whatever it is
        epochs, rate, halved = given
        at_epochs = halved if isinstance(halved, tuple | list) else [None]
        whole = all(isinstance(at, Integral) for at in (epochs, *at_epochs))
        if not (whole and isinstance(rate, Real)):
            raise InputError(
                "A schedule has a whole number of epochs, a number for the learning rate, and a "
                f"tuple of whole numbers for halve_at, got {epochs!r}, {rate!r} and {halved!r}. "
                "Pass such as Schedule(epochs=20, learning_rate=0.1, halve_at=(14,))."
            )
        if self.epochs < 0 or not self.learning_rate > 0:
            raise InputError(
                f"epochs must be at least 0 and the learning rate above 0, "
                f"got {self.epochs} and {self.learning_rate}."
            )
        if not 0 <= self.warm_up < 1:
            raise InputError(
                f"warm_up is a share of all steps, at least 0 and below 1, got {self.warm_up}. "
                "Pass, for example, 0.1, or 0 for none."
            )

    def rate_at(self, epoch: int, share_of_epoch: float) -> float:
        """Return the learning rate at a share, in [0, 1), of an epoch, from 0."""
        done = (epoch + share_of_epoch) / self.epochs
        if self.halve_at:
            rate = self.learning_rate * 0.5 ** sum(epoch >= at for at in self.halve_at)
        else:
            rate = self.learning_rate * max(1 - done, 0.01)
        return rate * max(done / self.warm_up, 0.01) if done < self.warm_up else rate

    def again(self) -> Self:
        """Return a shorter one at half the rate, for what was trained so, and goes on with more.

        It has neither a warm-up nor epochs at which the rate is halved.

        Examples
        --------
        >>> from longtail.training.schedule import Schedule
        >>> again = Schedule(epochs=20, learning_rate=0.1).again()
        >>> again.epochs, again.learning_rate
        (2, 0.05)
        """
        epochs = min(EPOCHS_AGAIN, self.epochs)
        return type(self)(epochs=epochs, learning_rate=self.learning_rate / 2)
