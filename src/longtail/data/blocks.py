"""Points as texts or as features, and in blocks: what is made of one fits in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from scipy.sparse import csr_array

from longtail.data.text_column import TextColumn
from longtail.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longtail.data.dataset import Dataset

__all__ = [
    "POINTS_AT_ONCE",
    "Points",
    "blocks_of",
    "features_of",
    "is_one_text",
    "n_points_of",
    "points_of",
    "texts_of",
]

POINTS_AT_ONCE = 4096

Points: TypeAlias = TextColumn | csr_array


def points_of(dataset: Dataset) -> Points:
    """Return the texts or the features.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.data.blocks import points_of
    >>> points_of(Dataset.of(["one", "two"], [["number"], ["number"]]))
    TextColumn(['one', 'two'])
    """
    return dataset.features if dataset.texts is None else dataset.texts


def texts_of(dataset: Dataset, where: str) -> TextColumn:
    """Return the texts of a data set, to be written where features cannot be.

    Raises
    ------
    InputError
        If it has features.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.data.blocks import texts_of
    >>> texts_of(Dataset.of(["one"], [["bread"]]), "JSON lines")
    TextColumn(['one'])
    """
    if dataset.texts is None:
        raise InputError(
            f"{where} hold texts, and this data set has features. Use 'repository' or 'svmlight'."
        )
    return dataset.texts


def features_of(dataset: Dataset, where: str) -> csr_array:
    """Return the features of a data set, to be written where texts cannot be.

    Raises
    ------
    InputError
        If it has texts.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.data.blocks import features_of
    >>> features_of(Dataset.of([[0, 0.5]], [[0]]), "svmlight files").shape
    (1, 2)
    """
    if dataset.features is None:
        raise InputError(
            f"{where} hold features, and this data set has texts. Use 'json-lines', 'csv' or 'tsv'."
        )
    return dataset.features


def is_one_text(X: Any) -> bool:
    """Tell whether these are points of which there is one, a text.

    Examples
    --------
    >>> from longtail.data.blocks import is_one_text
    >>> is_one_text(["one"]), is_one_text(["one", "two"]), is_one_text("one")
    (True, False, False)
    """
    return isinstance(X, list) and len(X) == 1 and isinstance(X[0], str)


def n_points_of(points: Points) -> int:
    """Count texts, or rows of features.

    Examples
    --------
    >>> from longtail.data.blocks import n_points_of
    >>> from longtail.data.from_python import texts_from
    >>> n_points_of(texts_from(["one", "two"]))
    2
    """
    return len(points) if isinstance(points, TextColumn) else int(points.shape[0])


def blocks_of(points: Points) -> Iterator[Points]:
    """Cut points that are in memory into blocks; of no points, one empty block.

    Examples
    --------
    >>> from longtail.data.blocks import blocks_of
    >>> from longtail.data.from_python import texts_from
    >>> [len(block) for block in blocks_of(texts_from(["a text"] * 5000))]
    [4096, 904]
    """
    for start in range(0, max(n_points_of(points), 1), POINTS_AT_ONCE):
        yield points[start : start + POINTS_AT_ONCE]
