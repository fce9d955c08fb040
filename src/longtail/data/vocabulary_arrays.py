"""The arrays of a fitted vectoriser: their types, and whether they fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import RETRAIN, ModelFolderError
from longtail.kernels.token_tables import LOW_HALF

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["check_arrays"]

ARRAY_TYPES: dict[str, type[np.generic]] = {
    "table": np.uint64,
    "weights": np.float32,
    "kinds": np.uint8,
    "token_buffer": np.uint8,
    "token_offsets": np.int64,
}


def check_arrays(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays that are missing, of another type, or do not fit together."""
    for name, dtype in ARRAY_TYPES.items():
        if name not in arrays:
            raise ModelFolderError(f"The vectoriser's array {name!r} is missing. {RETRAIN}")
        if arrays[name].dtype != dtype:
            raise ModelFolderError(
                f"The vectoriser's array {name!r} is {arrays[name].dtype}, "
                f"not {np.dtype(dtype)}. {RETRAIN}"
            )
    n_features = arrays["weights"].size
    n_slots = len(arrays["table"])
    fits = (
        arrays["table"].shape == (n_slots,)
        and n_slots & (n_slots - 1) == 0
        # The kernels trust the table: a full one or a column beyond the last must not reach them.
        and np.count_nonzero(arrays["table"]) == n_features < n_slots
        and (arrays["table"] & LOW_HALF).max() < n_features
        and arrays["kinds"].shape == (n_features,)
        and arrays["token_offsets"].shape == (n_features + 1,)
    )
    if not fits:
        raise ModelFolderError(
            "The vectoriser's arrays do not fit together: "
            f"{ {name: arrays[name].shape for name in ARRAY_TYPES} }. {RETRAIN}"
        )
