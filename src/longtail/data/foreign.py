"""Values and arrays of other libraries: numpy, pandas, polars, pyarrow, and what they leave out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

__all__ = [
    "UNREADABLE",
    "as_array",
    "as_classes",
    "check_unmasked",
    "column_names",
    "images_as_rows",
    "is_missing",
    "own_dtype",
    "python_values",
]


# What numpy raises for what is no array, such as rows of different lengths or a sparse tensor.
UNREADABLE = (TypeError, ValueError, RuntimeError)
N_DIMENSIONS = 4  # of images: points, channels, height, width


def column_names(table: Any) -> list[object] | None:
    """Return what the columns of a table of any library are called; None of what is no table.

    Those of pandas and polars are its ``columns``. In pyarrow these are the columns themselves, and
    ``column_names`` a list; to pandas that is a column, if there is one called so.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from longtail.data.foreign import column_names
    >>> column_names(SimpleNamespace(columns=["height", "weight"])), column_names([[1.8, 75.0]])
    (['height', 'weight'], None)
    >>> column_names(SimpleNamespace(columns=[[1.8], [75.0]], column_names=["height", "weight"]))
    ['height', 'weight']
    """
    names = getattr(table, "column_names", None)
    if not isinstance(names, list):
        names = getattr(table, "columns", None)
    return None if names is None else list(names)


def own_dtype(values: Any) -> np.dtype[Any] | None:
    """Return numpy's dtype of an array; None if it has none, or one that only its library knows.

    Columns of pandas have dtypes of categories, strings and missing numbers, and tensors theirs.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.foreign import own_dtype
    >>> own_dtype(np.zeros(2)), own_dtype([0.0, 0.0])
    (dtype('float64'), None)
    """
    dtype = getattr(values, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) else None


def python_values(values: Any) -> Any:
    """Return a column of pyarrow as a list, since its values are no strings, and all else as it is.

    Examples
    --------
    >>> from longtail.data.foreign import python_values
    >>> python_values(("one", "two"))
    ('one', 'two')
    """
    is_column = hasattr(values, "to_pylist") and not hasattr(values, "num_columns")
    return values.to_pylist() if is_column else values


def check_unmasked(name: str, values: Any) -> None:
    """Raise InputError if some of an array's values are masked: as numbers they would count.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.foreign import check_unmasked
    >>> check_unmasked("y", np.ma.masked_array([0, 1], mask=[False, False]))
    >>> check_unmasked("y", np.ma.masked_array([0, 1], mask=[False, True]))
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: y is a masked array: 1 of 2 values have no number. Pass y.filled(0).
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        n_masked = np.count_nonzero(np.ma.getmask(values))
        raise InputError(
            f"{name} is a masked array: {n_masked:,} of {values.size:,} values have no number. "
            f"Pass {name.strip('`')}.filled(0)."
        )


def images_as_rows(points: Any) -> Any:
    """Return an array (n, channels, height, width) as a row for each image, and all else as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.foreign import images_as_rows
    >>> images_as_rows(np.zeros((2, 3, 4, 4))).shape, images_as_rows(["red wine"])
    ((2, 48), ['red wine'])
    """
    shape: tuple[int, ...] = getattr(points, "shape", ())
    is_images = len(shape) == N_DIMENSIONS and hasattr(points, "reshape")
    return points.reshape(shape[0], math.prod(shape[1:])) if is_images else points


def is_missing(value: object) -> bool:
    """Tell what stands for no value: None, NaN, and those of pandas, which equal nothing.

    Examples
    --------
    >>> from longtail.data.foreign import is_missing
    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in {"NAType", "NaTType"}


def as_array(values: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Return what numpy makes of an array of any library; a missing number of pandas is NaN.

    A table with columns of several types is one of objects to numpy, and ``pandas.NA`` no number.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        If it is no array of that type: `UNREADABLE`.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.foreign import as_array
    >>> missing = type("NAType", (), {})()  # as pandas.NA is
    >>> as_array([[1, missing]], np.float32)
    array([[ 1., nan]], dtype=float32)
    """
    try:
        array = np.asarray(values, dtype)
    except TypeError:
        array = _with_nan(np.asarray(values, object))
        return array if dtype is None else np.asarray(array, dtype)
    return _with_nan(array) if array.dtype.kind == "O" and array.ndim > 1 else array


def _with_nan(objects: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array of objects with NaN for each that stands for no value."""
    missing = np.frompyfunc(is_missing, 1, 1)(objects).astype(bool)
    return np.where(missing, np.nan, objects) if missing.any() else objects


def as_classes(values: Iterable[Hashable]) -> np.ndarray[Any, Any]:
    """Return classes as an array: of objects where numpy would make two of them one.

    Examples
    --------
    >>> from longtail.data.foreign import as_classes
    >>> as_classes([3, 4]).dtype, as_classes([2**53, 2**53 + 1, 1.0]).dtype
    (dtype('int64'), dtype('O'))
    """
    if hasattr(values, "__array__"):
        return np.asarray(values)
    rows = [*values]
    classes = np.asarray(rows)
    if len(np.unique(classes)) == len({*rows}):
        return classes
    classes = np.empty(len(rows), np.object_)
    classes[:] = rows
    return classes
