"""Features and 1-vs-All classifiers trained together: the step of Modules I and IV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from longtail.errors import InputError, named
from longtail.named_parts import joined_parts
from longtail.own_classes import require_arguments
from longtail.training.dropout import dropped
from longtail.training.module_adam import ModuleAdam
from longtail.training.state import state_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.training.batches import Batch
    from longtail.training.label_table import LabelTable

__all__ = ["FeatureNetwork", "FrozenFeatures", "OneVsAllTask", "check_network"]


class FeatureNetwork(Protocol):
    """Features of training points, and how they are changed."""

    @property
    def dimension(self) -> int:
        """Length of a point's features."""
        ...

    def forward(self, points: NDArray[np.int64]) -> Tensor:
        """Return the intermediate features of some points, ready for ``backward``."""
        ...

    def step(self, learning_rate: float, share: float = 1.0) -> None:
        """Step the parameters against the gradients that ``backward`` has left.

        `learning_rate` is that of tables; `share` is it divided by the largest of the schedule.
        """
        ...

    def state(self) -> dict[str, Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        ...


class FrozenFeatures:
    """Features that Module I has learnt and that stay as they are.

    Parameters
    ----------
    features : float32 array (n_points, dimension)
    dropout : float
    device : torch.device

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from longtail.training.one_vs_all import FrozenFeatures
    >>> learnt = np.array([[1, 2], [3, 4]], np.float32)
    >>> features = FrozenFeatures(learnt, dropout=0.0, device=torch.device("cpu"))
    >>> features.step(0.1)  # changes nothing
    >>> features.forward(np.array([1])).tolist()
    [[3.0, 4.0]]
    """

    def __init__(
        self, features: NDArray[np.float32], *, dropout: float, device: torch.device
    ) -> None:
        self.dimension = features.shape[1]
        self._features = torch.from_numpy(features)
        self._dropout = dropout
        self._device = device

    def forward(self, points: NDArray[np.int64]) -> Tensor:
        """See `FeatureNetwork.forward`."""
        features = self._features[torch.from_numpy(points)].to(self._device)
        return dropped(features, self._dropout)

    def step(self, learning_rate: float, share: float = 1.0) -> None:
        """Do nothing."""

    def state(self) -> dict[str, Tensor]:
        """Return nothing."""
        return {}


class OneVsAllTask:
    """One step: encode, transfer, score against the pool, and change all three.

    Parameters
    ----------
    network : FeatureNetwork
        Gives v.
    block : Module
        From v to the features x that are classified; changed by Adam.
    table : LabelTable
    block_learning_rate : float
        Of the block; shrinks in proportion to the learning rate of the step.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from longtail.training.batches import Batch
    >>> from longtail.training.label_table import LabelTable
    >>> from longtail.training.one_vs_all import FrozenFeatures, OneVsAllTask
    >>> cpu, odds = torch.device("cpu"), np.array([0.5, 0.5])
    >>> features = FrozenFeatures(np.eye(2, dtype=np.float32), dropout=0.0, device=cpu)
    >>> table = LabelTable(2, 2, frequencies=odds, device=cpu)
    >>> task = OneVsAllTask(features, torch.nn.Identity(), table, block_learning_rate=0.01)
    >>> batch = Batch(np.array([0]), None, np.array([0]), np.array([1]))  # point 0 has label 1
    >>> [round(task.step(batch, 0.5, 1.0, measure=True), 1) for _ in range(3)]
    [1.4, 0.5, 0.3]
    """

    def __init__(
        self,
        network: FeatureNetwork,
        block: nn.Module,
        table: LabelTable,
        *,
        block_learning_rate: float,
    ) -> None:
        self.network = network
        self.block = block
        self.table = table
        self._block_learning_rate = block_learning_rate
        self._adam = ModuleAdam(block)

    def step(
        self, batch: Batch, learning_rate: float, share: float, *, measure: bool
    ) -> float | None:
        """See `longtail.training.loop.Task.step`."""
        shape = (len(batch.points), self.network.dimension)
        found = _checked(self.network.forward(batch.points), self.network, shape)
        features = _checked(self.block(found), self.block, (shape[0], self.table.vectors.shape[1]))
        loss, gradient = self.table.learn(features.detach(), batch, learning_rate, measure=measure)
        if features.requires_grad:  # else both network and block are as they will be
            features.backward(gradient)  # type: ignore[no-untyped-call]  # torch has no types here
            self._adam.step(self._block_learning_rate * share)
            self.network.step(learning_rate, share)
        return loss

    def state(self) -> dict[str, Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        parts = {
            "network": state_of(self.network),
            "block": dict(self.block.state_dict()),
            "table": self.table.state(),
            "optimiser": self._adam.state(),
        }
        return joined_parts(parts, ".")


def check_network(found: Any) -> None:
    """Raise InputError unless `FeatureArchitecture.network` returned what can be trained.

    Examples
    --------
    >>> from longtail.training.one_vs_all import check_network
    >>> check_network(None)
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: `network` must return an object that has dimension, forward, ...
    """
    members = ("dimension", "forward", "step", "state")
    missing = [member for member in members if not hasattr(found, member)]
    if missing:
        raise InputError(
            f"`network` must return an object that has {', '.join(members)}, such as "
            f"BagOfTokensNetwork; {named(found)} has no {', '.join(missing)}."
        )
    for member in members:
        require_arguments(found, member, FeatureNetwork)


def _checked(found: Any, part: object, shape: tuple[int, int]) -> Tensor:
    """Return what `forward` of a network or a block found, or raise InputError."""
    if not isinstance(found, Tensor) or found.shape != shape:
        got = tuple(found.shape) if isinstance(found, Tensor) else named(found)
        raise InputError(
            f"`forward` of {type(part).__name__} must return a tensor of {shape}, a row for each "
            f"point of the batch, got {got}."
        )
    return found.float()
