"""Bags and rows that a user gives: whether they are of the model that is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.data.point_input import InputKind
from longtail.data.text_column import TextColumn
from longtail.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from longtail.data.bags import Bags
    from longtail.data.point_input import PointInput

__all__ = ["checked_bags", "checked_features"]

ADVICE = "Pass what `bags` of this very model makes of the points, or the points themselves."


def checked_bags(bags: Bags, reads: PointInput, n_features: int) -> Bags:
    """Return bags, if a model may be asked about them.

    Parameters
    ----------
    bags : Bags
    reads : PointInput
        What the model reads of a point.
    n_features : int
        Of the model.

    Raises
    ------
    InputError
        If they are not as wide as the model, have columns that it has not, are cut short, or lack
        the words or texts that it reads.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.bags import Bags
    >>> from longtail.data.given_bags import checked_bags
    >>> from longtail.data.point_input import PointInput
    >>> bags = Bags.one(np.array([4, 7], np.int32), np.array([0.6, 0.8], np.float32))
    >>> checked_bags(bags, PointInput(), 8) is bags
    True
    >>> checked_bags(bags, PointInput(), 7)
    Traceback (most recent call last):
    ...
    longtail.errors.InputError: These bags have the column 7, but this model has those from 0 to ...
    """
    width = reads.width(n_features)
    if bags.n_columns not in {None, width}:
        raise InputError(
            f"These bags have {bags.n_columns:,} columns, but this model has {width:,}: they are "
            f"another model's. {ADVICE}"
        )
    columns, starts = bags.columns, bags.row_starts
    for column in (columns.min(initial=0), columns.max(initial=0)):
        if columns.size and not 0 <= column < width:
            raise InputError(
                f"These bags have the column {column:,}, but this model has those from 0 to "
                f"{width - 1:,}. {ADVICE}"
            )
    ends = (0, len(columns), len(bags.values))
    is_whole = starts.size > 0 and (starts[0], starts[-1], starts[-1]) == ends
    if not is_whole or (np.diff(starts) < 0).any():
        raise InputError(
            "The row_starts of these bags do not rise from 0 to the number of their entries. "
            f"{ADVICE}"
        )
    for kind, read in ((InputKind.WORDS, bags.words), (InputKind.TEXTS, bags.texts)):
        if reads.kind is kind and (read is None or len(read) != bags.n_rows):
            raise InputError(
                f"This model reads the {kind.value} of each point, which these bags lack. {ADVICE}"
            )
    return bags


def checked_features(X: Any, reads: PointInput, n_features: int) -> csr_array:
    """Return unit rows, if they are as wide as a model of ready-made features.

    Parameters
    ----------
    X : matrix (n, n_features), or images
    reads : PointInput
        What the model reads of a point.
    n_features : int
        Of the model.

    Raises
    ------
    InputError
        If they have another shape, or are texts.

    Examples
    --------
    >>> from longtail.data.given_bags import checked_features
    >>> from longtail.data.point_input import PointInput
    >>> checked_features([[0.0, 4.0]], PointInput(), 2).toarray().tolist()
    [[0.0, 1.0]]
    """
    n_dimensions = 4 if reads.image_shape else 2
    is_table = isinstance(X, list) and bool(X) and isinstance(X[0], list | tuple | np.ndarray)
    is_flat = isinstance(X, TextColumn) or (isinstance(X, list) and not is_table)
    if is_flat or getattr(X, "ndim", 2) not in {2, n_dimensions}:
        raise InputError(
            "This model was trained on ready-made features, but it was given texts or a single "
            f"row. Reshape your data to a matrix with {n_features} columns."
        )
    features = reads.matrix(X)
    if features.shape[1] != n_features:
        raise InputError(
            f"X has {features.shape[1]} features, but Predictor is expecting {n_features} features "
            "as input: those that the model was trained on."
        )
    return reads.rows(features)
