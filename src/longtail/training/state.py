"""What a training changes, as arrays or as tensors: kept, and put back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from longtail.errors import InputError, named

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    State: TypeAlias = Mapping[str, Tensor | NDArray[Any]]

__all__ = ["as_array", "check_live", "state_of", "write_state"]


def as_array(part: Tensor | NDArray[Any]) -> NDArray[Any]:
    """Return an array as it is, and a tensor as one in main memory, of float32 if of bfloat16.

    Raises
    ------
    InputError
        If it is neither.

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
    if not hasattr(part, "detach"):
        raise InputError(
            "`state` must return the live tensors or arrays that training changes, by name, got "
            f"{named(part)}. Keep a number as a tensor or an array of one."
        )
    tensor = part.detach().cpu()
    is_unknown = str(tensor.dtype) == "torch.bfloat16"  # to numpy
    array: NDArray[Any] = (tensor.float() if is_unknown else tensor).numpy()
    return array


def state_of(part: Any) -> Mapping[str, Any]:
    """Return the state of a part that somebody else may have written, or raise InputError.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from longtail.training.state import state_of
    >>> state_of(SimpleNamespace(state=lambda: {"vectors": np.zeros(2)}))
    {'vectors': array([0., 0.])}
    """
    found = part.state()
    if not isinstance(found, Mapping):
        raise InputError(
            f"`state` of {type(part).__name__} must return the live tensors or arrays that "
            f"training changes, by name, got {named(found)}. Return {{}} where there are none."
        )
    return found


def check_live(read: Callable[[], State]) -> None:
    """Raise InputError if a state is of copies: what is written into these is lost.

    A training that was resumed would begin anew, and one that stops early end with its last epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.training.state import check_live
    >>> vectors = np.zeros(2)
    >>> check_live(lambda: {"vectors": vectors})
    >>> check_live(lambda: {"vectors": vectors.copy()})
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: `state` returns a copy of 'vectors', another one each time. ...
    """
    once, again = read(), read()
    for name, part in once.items():
        if not hasattr(part, "shape"):
            as_array(part)  # says that it is no state
        if math.prod(part.shape) and _place(part) != _place(again.get(name)):
            raise InputError(
                f"`state` returns a copy of {name!r}, another one each time. Return the tensor or "
                "array itself: a training that goes on, or back to its best epoch, writes into it."
            )


def _place(part: Any) -> int | None:
    """Return where in memory the numbers of an array or a tensor are."""
    place = part.ctypes.data if isinstance(part, np.ndarray) else getattr(part, "data_ptr", None)
    found: int | None = place() if callable(place) else place
    return found


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

            with torch.no_grad():  # into a parameter, too
                part.copy_(torch.from_numpy(values))
