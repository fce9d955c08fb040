"""Points in blocks: what is made of a block's texts on the way fits in memory, however many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from scipy.sparse import csr_array

from longtail.data.text_column import TextColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longtail.data.dataset import Dataset

__all__ = ["POINTS_AT_ONCE", "Points", "blocks_of", "is_one_text", "n_points_of", "points_of"]

POINTS_AT_ONCE = 4096

Points: TypeAlias = TextColumn | csr_array


def points_of(dataset: Dataset) -> Points:
    """Return the texts or the features.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from longtail import Dataset
    >>> from longtail.data.blocks import points_of
    >>> from longtail.data.from_python import texts_from
    >>> from longtail.data.label_space import LabelSpace
    >>> labels = csr_array([[1.0], [0.0]])
    >>> points_of(Dataset(texts_from(["one", "two"]), None, labels, LabelSpace(1)))
    TextColumn(['one', 'two'])
    """
    return dataset.features if dataset.texts is None else dataset.texts


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
