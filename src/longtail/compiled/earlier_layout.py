"""Compiled models as folders held them earlier, read as they are held now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from longtail.compiled.row_store import (
    RowStore,
    are_common,
    float_weights,
    named_arrays,
    packed_neighbours,
)
from longtail.kernels.sparse_lookup import SparseRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[np.generic]]

__all__ = ["as_held_now", "with_split_rows"]

_KINDS = {"float32": "float32", "uint16": "float16", "int8": "int8"}


def as_held_now(arrays: Arrays) -> Arrays:
    """Return the arrays of a folder as they are laid out now; what already is, as it is.

    A model that does not say where walks of the points start has them start at the entries, and no
    labels that it is unsure of.
    """
    arrays = with_split_rows(arrays)
    if "labels_index/homes" in arrays:
        return arrays
    return {
        **arrays,
        "labels_index/homes": np.zeros(0, np.int32),
        "labels_index/unsure_below": np.full(1, -np.inf, np.float32),
    }


def with_split_rows(arrays: Arrays) -> Arrays:
    """Return the arrays of a folder with sparse weights split; what already is, as it is.

    The parts that are laid out anew are held in memory, not in the folder.
    """
    if "linear/rows.starts" not in arrays:
        return arrays
    own: dict[str, Any] = dict(arrays)
    n_features = len(own["encoder/tokens.values"])
    store = RowStore(_KINDS[own["linear/rows.weights"].dtype.name])
    words = _matrix(_rows(own, "linear/rows"), n_features)
    own |= named_arrays("linear/", store.split(words, are_common(words))._asdict())
    for group in ("labels_index", "points_index"):
        own[f"{group}/neighbours"] = packed_neighbours(own[f"{group}/neighbours"])
    if "relations/texts.starts" in own:
        texts = _matrix(_rows(own, "relations/texts"), n_features)
        has_postings = np.diff(own["relations/postings.starts"]) > 0
        split = store.split(texts, ~has_postings & (np.diff(texts.tocsc().indptr) > 0))
        links = _rows(own, "relations/links")
        linked = store.sparse(links.starts, links.columns, float_weights(links), words.shape[0])
        own |= named_arrays("relations/", {"texts": split, "links": linked})
    return own


def _rows(arrays: Any, name: str) -> SparseRows:
    """Return sparse rows whose columns are int32."""
    return SparseRows(*(arrays[f"{name}.{field}"] for field in SparseRows._fields))


def _matrix(rows: SparseRows, n_features: int) -> csr_array:
    """Return sparse rows as a matrix."""
    shape = len(rows.starts) - 1, n_features
    return csr_array((float_weights(rows), rows.columns, rows.starts), shape)
