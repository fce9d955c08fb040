"""What a training changes, as arrays or as tensors: kept, and put back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    State: TypeAlias = Mapping[str, Tensor | NDArray[Any]]

__all__ = ["as_array", "write_state"]


def as_array(part: Tensor | NDArray[Any]) -> NDArray[Any]:
    """Return an array as it is, and a tensor as one in main memory.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from longtail.training.state import as_array
    >>> as_array(torch.ones(2)), as_array(np.ones(1))
    (array([1., 1.], dtype=float32), array([1.]))
    """
    if isinstance(part, np.ndarray):
        return part
    array: NDArray[Any] = part.detach().cpu().numpy()
    return array


def write_state(state: State, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays over what is there by their names, in whatever shape it is.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.state import write_state
    >>> live = np.zeros((1, 2))
    >>> write_state({"live": live}, {"live": np.array([0.5, 1.0])})
    >>> live
    array([[0.5, 1. ]])
    """
    for name, part in state.items():
        values = arrays[name].reshape(part.shape)
        if isinstance(part, np.ndarray):
            part[...] = values
        else:
            import torch  # noqa: PLC0415 - there are tensors, so it is loaded

            part.copy_(torch.from_numpy(values))
