"""What heads say of candidates: the angles between a point and the vectors of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types
from numba.extending import overload

from longtail.kernels.byte_rows import SplitQuery, products_of_bytes
from longtail.kernels.jit import lean_kernel
from longtail.kernels.prefetch import prefetch_whole
from longtail.kernels.rows import Rows, row_dot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["label_angles"]

_AHEAD = 8  # rows: to ask for all of them at once takes half as long again


def label_angles(
    point: Floats,
    query: SplitQuery,
    places: Ids,
    rows: Rows,
    row_of_label: Ids,
    bias: Floats,
    scale: np.float32,
    candidates: Ids,
    logits: Floats,
) -> None:
    """Write ``scale * w_l . x + b_l`` of each candidate l; compiled code only.

    Parameters
    ----------
    point, query : float32 (d,), SplitQuery
        The same vector x twice: rows of int8 are multiplied with the query.
    places : int32 (at least as many as candidates,)
        Scratch.
    rows, row_of_label : Rows, int32 (n_labels,)
        The vectors of labels; a label without one has a w_l of zero.
    bias : float32 (n_labels,)
    scale : float32
    candidates : int32 (n,)
    logits : float32 (at least n rounded up to a multiple of four,)
        Written.
    """
    raise NotImplementedError


@overload(label_angles)  # type: ignore[untyped-decorator]  # numba has no types
def _choose(
    point: Any,  # noqa: ARG001  # numba wants the names of what is overloaded
    query: Any,  # noqa: ARG001
    places: Any,  # noqa: ARG001
    rows: Any,
    row_of_label: Any,  # noqa: ARG001
    bias: Any,  # noqa: ARG001
    scale: Any,  # noqa: ARG001
    candidates: Any,  # noqa: ARG001
    logits: Any,  # noqa: ARG001
) -> Any:
    def one_by_one(
        point: Any,
        query: Any,  # noqa: ARG001
        places: Any,  # noqa: ARG001
        rows: Any,
        row_of_label: Any,
        bias: Any,
        scale: Any,
        candidates: Any,
        logits: Any,
    ) -> None:
        _angles_of_numbers(point, rows, row_of_label, bias, scale, candidates, logits)

    def by_fours(
        point: Any,  # noqa: ARG001
        query: Any,
        places: Any,
        rows: Any,
        row_of_label: Any,
        bias: Any,
        scale: Any,
        candidates: Any,
        logits: Any,
    ) -> None:
        _angles_of_bytes(query, places, rows, row_of_label, bias, scale, candidates, logits)

    return by_fours if rows.types[0].dtype == types.int8 else one_by_one


@lean_kernel
def _angles_of_bytes(
    query: SplitQuery,
    places: Ids,
    rows: Rows,
    row_of_label: Ids,
    bias: Floats,
    scale: np.float32,
    candidates: Ids,
    logits: Floats,
) -> None:
    """See `label_angles`."""
    n_rows, n = len(rows.values), len(candidates)
    for c in range(n):
        row = row_of_label[candidates[c]]
        places[c] = row if 0 <= row < n_rows else 0
    if n_rows:
        products_of_bytes(query, rows.values, rows.scales, places, n, logits)
    for c in range(n):
        row, label = row_of_label[candidates[c]], candidates[c]
        cosine = logits[c] if 0 <= row < n_rows else np.float32(0)
        logits[c] = scale * cosine + bias[label]


@lean_kernel
def _angles_of_numbers(
    point: Floats,
    rows: Rows,
    row_of_label: Ids,
    bias: Floats,
    scale: np.float32,
    candidates: Ids,
    logits: Floats,
) -> None:
    """See `label_angles`."""
    n_rows, n = len(rows.values), len(candidates)
    for c in range(-_AHEAD, n):
        if c + _AHEAD < n and 0 <= row_of_label[candidates[c + _AHEAD]] < n_rows:
            prefetch_whole(rows.values, row_of_label[candidates[c + _AHEAD]])
        if c < 0:
            continue
        row = row_of_label[candidates[c]]
        cosine = row_dot(point, rows, row) if 0 <= row < n_rows else np.float32(0)
        logits[c] = scale * cosine + bias[candidates[c]]
