"""A table of vectors and a bias for each, while they are trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from longtail.named_parts import joined_parts
from longtail.training.optimisers import RowOptimiser
from longtail.training.state import state_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

__all__ = ["VectorsWithBias"]

Optimiser = TypeVar("Optimiser", bound=RowOptimiser)


class VectorsWithBias(Generic[Optimiser]):
    """Vectors and biases of labels or clusters, each table with an optimiser of its own.

    Parameters
    ----------
    vectors : float32 Tensor (n, dimension)
    bias : float32 Tensor (n, 1)
        Both are changed in place.
    make_optimiser : callable
        From a table to its `RowOptimiser`.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.optimisers import RowwiseAdagrad
    >>> from longtail.training.vectors_with_bias import VectorsWithBias
    >>> table = VectorsWithBias(torch.zeros(2, 3), torch.zeros(2, 1), RowwiseAdagrad)
    >>> table.step(torch.tensor([1]), torch.ones(1, 3), torch.tensor([-1.0]), 0.5)
    >>> table.vectors.tolist(), table.bias.tolist()
    ([[0.0, 0.0, 0.0], [-0.5, -0.5, -0.5]], [[0.0], [0.5]])
    >>> sorted(table.state())
    ['bias', 'bias.sums', 'vectors', 'vectors.sums']
    """

    def __init__(
        self, vectors: Tensor, bias: Tensor, make_optimiser: Callable[[Tensor], Optimiser]
    ) -> None:
        self.vectors = vectors
        self.bias = bias
        self.of_vectors = make_optimiser(vectors)
        self._of_bias = make_optimiser(bias)

    def step(self, rows: Tensor, to_vectors: Tensor, to_bias: Tensor, learning_rate: float) -> None:
        """Step some vectors and their biases against a gradient.

        Parameters
        ----------
        rows : int64 Tensor (n_rows,)
            No row twice.
        to_vectors : float32 Tensor (n_rows, dimension)
        to_bias : float32 Tensor (n_rows,)
        learning_rate : float
        """
        self.of_vectors.step(self.vectors, rows, to_vectors, learning_rate)
        self.step_bias(rows, to_bias, learning_rate)

    def step_bias(self, rows: Tensor, to_bias: Tensor, learning_rate: float) -> None:
        """Step some biases alone, where `of_vectors` has stepped the vectors already."""
        self._of_bias.step(self.bias, rows, to_bias[:, None], learning_rate)

    def state(self) -> dict[str, Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        parts = {"vectors": state_of(self.of_vectors), "bias": state_of(self._of_bias)}
        return {"vectors": self.vectors, "bias": self.bias, **joined_parts(parts, ".")}
