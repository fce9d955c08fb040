"""The arrays of a compiled model, and how they are named in a model folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.errors import InputError
from longtail.kernels.answer_parts import Answerer, Head
from longtail.kernels.arrays import read_only
from longtail.kernels.coded_graph import CodedGraph
from longtail.kernels.label_links import Relations
from longtail.kernels.rows import Rows
from longtail.kernels.sparse_lookup import SparseRows, SplitRows
from longtail.kernels.wide_network import Network
from longtail.row_store import RowStore, named_arrays, no_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longtail.named_parts import Arrays

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = [
    "TRAINING_ROWS",
    "answerer_from",
    "arrays_of",
    "dimension_of",
    "most_frequent",
    "no_ids",
    "training_rows_from",
]

TRAINING_ROWS = "points_index/training_rows"  # beside the arrays of all that an answer reads

MOST_FREQUENT = 10_000  # labels that an answer is filled up with, and so the most that it has


def dimension_of(parts: Answerer) -> int:
    """Return the length of all vectors.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.parts import dimension_of
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = LongtailClassifier(dimension=32).fit(texts, labels).predictor_
    >>> dimension_of(model.scorer.parts)
    32
    """
    return int(parts.labels.rows.values.shape[1])


def arrays_of(parts: Answerer) -> dict[str, NDArray[np.generic]]:
    """Return all arrays, named ``"group/name"``; what two parts share is there once.

    Examples
    --------
    The first head shares the rows of the label index.

    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.parts import arrays_of
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> arrays = arrays_of(LongtailClassifier().fit(texts, labels).predictor_.scorer.parts)
    >>> "head0/rows.values" in arrays, "head1/rows.values" in arrays
    (False, True)
    """
    arrays: dict[str, NDArray[np.generic]] = {}
    heads = [head._asdict() for head in parts.heads]
    first, *others = heads
    del first["rows"]  # those of the label index
    groups: dict[str, Any] = {
        "encoder": {"tokens": parts.tokens},
        "labels_index": {
            **parts.labels._asdict(),
            "label_of_row": parts.label_of_row,
            "homes": parts.homes,
            "unsure_below": parts.unsure_below,
        },
        "points_index": {
            **parts.points._asdict(),
            "label_starts": parts.point_starts,
            "label_ids": parts.point_labels,
        },
        "linear": {
            **parts.linear._asdict(),
            "bias": parts.linear_bias,
            "is_read": parts.is_read,
        },
        "relations": parts.relations._asdict() if parts.has_relations else {},
        "network": parts.network._asdict(),
        "labels": {
            "popular": parts.popular,
            "commonness": parts.commonness,
            "tail_weights": parts.tail_weights,
        },
        "head0": first,
        **{f"head{i}": head for i, head in enumerate(others, start=1)},
    }
    for group, members in groups.items():
        arrays |= named_arrays(f"{group}/", members)
    return arrays


class _Reader(NamedTuple):
    """Takes parts out of the arrays of a folder, and refuses those of another type."""

    arrays: Arrays

    def take(self, name: str, dtype: Any, n_dimensions: int = 1) -> NDArray[Any]:
        """Return one array."""
        array = self.arrays[name]
        if array.dtype != dtype or array.ndim != n_dimensions:
            raise InputError(
                f"Array {name!r} is {array.dtype} of {array.ndim} dimensions, not "
                f"{np.dtype(dtype)} of {n_dimensions}."
            )
        return read_only(array, dtype)

    def ids(self, name: str) -> Ids:
        """Return an array of ids."""
        return self.take(name, np.int32)

    def floats(self, name: str, n_dimensions: int = 1) -> Floats:
        """Return an array that is always float32."""
        return self.take(name, np.float32, n_dimensions)

    def numbers(self, name: str, n_dimensions: int) -> NDArray[Any]:
        """Return an array of one of the storage types."""
        dtype = self.arrays[name].dtype
        if dtype not in (np.float32, np.uint16, np.int8):
            raise InputError(f"Array {name!r} is {dtype}, not float32, uint16 or int8.")
        return self.take(name, dtype, n_dimensions)

    def rows(self, name: str) -> Rows:
        """Return a table."""
        return Rows(self.numbers(f"{name}.values", 2), self.floats(f"{name}.scales"))

    def tokens(self, name: str) -> Rows:
        """Return a table that may be packed."""
        if self.arrays[f"{name}.values"].dtype != np.uint8:
            return self.rows(name)
        return Rows(self.take(f"{name}.values", np.uint8, 2), self.floats(f"{name}.scales"))

    def starts(self, name: str) -> NDArray[Any]:
        """Return where rows begin."""
        kind = np.int64 if self.arrays[name].dtype == np.int64 else np.int32
        return self.take(name, kind)

    def sparse(self, name: str) -> SparseRows:
        """Return sparse rows."""
        return SparseRows(
            self.starts(f"{name}.starts"),
            self.take(f"{name}.columns", np.uint8, 2),
            self.numbers(f"{name}.weights", 1),
            self.floats(f"{name}.scales"),
        )

    def split(self, name: str) -> SplitRows:
        """Return split rows."""
        return SplitRows(
            self.sparse(f"{name}rare"),
            self.sparse(f"{name}common"),
            self.take(f"{name}places", np.uint8, 2),
        )

    def graph(self, group: str) -> CodedGraph:
        """Return an index."""
        return CodedGraph(
            self.take(f"{group}/codes", np.uint8, 2),
            self.floats(f"{group}/step"),
            self.rows(f"{group}/rows"),
            self.take(f"{group}/neighbours", np.uint8, 2),
            entries=self.ids(f"{group}/entries"),
            member_starts=self.ids(f"{group}/member_starts"),
            members=self.ids(f"{group}/members"),
            bias=self.floats(f"{group}/bias"),
            entry_codes=self.take(f"{group}/entry_codes", np.uint8, 2),
            entry_bias=self.floats(f"{group}/entry_bias"),
        )

    def head(self, i: int, scale: float, shared: Rows) -> Head:
        """Return a head; the first shares the rows of the label index."""
        rows = self.rows(f"head{i}/rows") if i else shared
        places, bias = self.ids(f"head{i}/row_of_label"), self.floats(f"head{i}/bias")
        return Head(rows, places, bias, np.float32(scale))

    def relations(self, like: SparseRows, *, there: bool) -> Relations:
        """Return the relations; empty ones, of the same types, where there are none."""
        if there:
            return Relations(self.split("relations/texts."), self.sparse("relations/links"))
        none = RowStore("float32").no_split()
        rows = none.rare._replace(weights=like.weights[:0])
        return Relations(SplitRows(rows, rows, none.places), rows)

    def network(self) -> Network:
        """Return the network."""
        return Network(
            *(
                self.floats(f"network/{name}", 2 if name.startswith("matrix") else 1)
                for name in Network._fields
            )
        )


def answerer_from(
    arrays: Arrays, scales: Sequence[float], further: tuple[float, float], *, has_relations: bool
) -> Answerer:
    """Make the parts again from `arrays_of`; nothing is read.

    `further` are the scales of further labels, by vector and by text.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.parts import answerer_from, arrays_of
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> parts = LongtailClassifier().fit(texts, labels).predictor_.scorer.parts
    >>> again = answerer_from(arrays_of(parts), [10.0, 9.0, 8.0], (7.0, 0.0), has_relations=True)
    >>> [head.scale.item() for head in again.heads], again.heads[0].rows is again.labels.rows
    ([10.0, 9.0, 8.0], True)
    """
    of = _Reader(arrays)
    labels, linear = of.graph("labels_index"), of.split("linear/")
    return Answerer(
        tokens=of.tokens("encoder/tokens"),
        labels=labels,
        label_of_row=of.ids("labels_index/label_of_row"),
        homes=of.ids("labels_index/homes"),
        unsure_below=of.floats("labels_index/unsure_below"),
        points=of.graph("points_index"),
        point_starts=of.ids("points_index/label_starts"),
        point_labels=of.ids("points_index/label_ids"),
        popular=of.ids("labels/popular"),
        frequent=no_ids(),
        node_bias=no_numbers(),
        heads=tuple(of.head(i, scale, labels.rows) for i, scale in enumerate(scales)),
        n_heads=len(scales),
        further_scale=np.float32(further[0]),
        further_text_scale=np.float32(further[1]),
        linear=linear,
        linear_bias=of.floats("linear/bias"),
        is_read=of.take("linear/is_read", np.bool_),
        relations=of.relations(linear.rare, there=has_relations),
        has_relations=has_relations,
        commonness=of.floats("labels/commonness"),
        tail_weights=of.floats("labels/tail_weights"),
        network=of.network(),
    )


def training_rows_from(arrays: Arrays) -> Ids | None:
    """Return which row of the training data each point is; None of a model of an earlier version.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.compiled.parts import TRAINING_ROWS, training_rows_from
    >>> training_rows_from({TRAINING_ROWS: np.array([4, 2], np.int32)}).tolist()
    [4, 2]
    >>> training_rows_from({}) is None
    True
    """
    return _Reader(arrays).ids(TRAINING_ROWS) if TRAINING_ROWS in arrays else None


def no_ids() -> Ids:
    """Return an empty array of ids, of the type that kernels know."""
    return read_only(np.zeros(0), np.int32)


def most_frequent(commonness: Floats) -> Ids:
    """Return the most frequent labels, the first ones first, ties by smaller id.

    A label without training points is none of them: nothing speaks for it.

    Examples
    --------
    Labels 1 and 3 are the most frequent, and label 0 has no points.

    >>> import numpy as np
    >>> from longtail.compiled.parts import most_frequent
    >>> most_frequent(np.log1p(np.array([0, 8, 1, 8], np.float32))).tolist()
    [1, 3, 2]
    """
    n = min(int(np.count_nonzero(commonness)), MOST_FREQUENT)
    least = np.partition(commonness, -n)[-n] if n else np.inf  # all of millions need no order
    frequent = np.flatnonzero(commonness >= least)
    order = np.argsort(-commonness[frequent], kind="stable")[:n]
    return read_only(frequent[order], np.int32)
