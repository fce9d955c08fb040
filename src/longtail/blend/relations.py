"""What label texts say: which labels a point's text names, and what these are linked to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from longtail.data.bags import Bags
from longtail.data.csr import csr_from_rows, fits_rows
from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.relations import best_links, best_matches, link_votes
from longtail.kernels.sparse_lookup import SparseRows
from longtail.named_parts import with_prefix, without_prefix
from longtail.scorers.sparse_label_vectors import SparseLabelVectors
from longtail.spares import Spares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.training.run import TrainingData

    Arrays = Mapping[str, NDArray[np.generic]]
    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["LabelRelations", "Matches", "postings_of"]

MOST_POSTINGS = 300  # labels: a token of more of them tells little and costs much
MOST_LINKS = 50  # of one label


class Matches(NamedTuple):
    """The labels whose texts are most like each point's.

    Attributes
    ----------
    labels : int32 (n, n_matches)
        Best first, padded with -1.
    similarities : float32 (n, n_matches)
        Inner products of the bags.
    """

    labels: Ids
    similarities: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelRelations:
    """Lexical matches of points with label texts, and links between labels.

    Where points and labels are things of one kind, such as pages that refer to pages or products
    bought with products, a training point has a label of its own: that which its text matches best.
    A label is linked to the own labels of the points that carry it. So a new point is answered with
    what refers to it: if its text matches label a, and a point that carries a matches label b, then
    b is a candidate. Where relations run one way only, or labels are subjects, the network that
    blends the scores learns to pay no heed.

    Parameters
    ----------
    texts : SparseLabelVectors
        Unit bags of the label texts, with no bias.
    posting_starts : int64 (n_features + 1,)
    posting_labels : int32 (n_postings,)
    posting_weights : float32 (n_postings,)
        The same by feature, without the features that more than 300 labels have.
    link_starts : int64 (n_labels + 1,)
    link_labels : int32 (n_links,)
    link_weights : float32 (n_links,)
        Of each label, its strongest links.
    n_matches, n_linked : int
        How many labels `matches` and `linked` return.

    Raises
    ------
    InputError
        If the arrays do not fit each other.
    """

    texts: SparseLabelVectors
    posting_starts: NDArray[np.int64]
    posting_labels: Ids
    posting_weights: Floats
    link_starts: NDArray[np.int64]
    link_labels: Ids
    link_weights: Floats
    n_matches: int = 3
    n_linked: int = 20
    _spares: Spares[Floats] = field(default_factory=Spares, init=False, repr=False)

    @classmethod
    def build(
        cls, features: csr_array, labels: csr_array, label_features: csr_array, *, n_threads: int
    ) -> LabelRelations:
        """Match all training points, and link the labels.

        Parameters
        ----------
        features : csr_array of float32 (n_points, n_features)
            Unit rows.
        labels : csr_array (n_points, n_labels)
        label_features : csr_array of float32 (n_labels, n_features)
            Unit rows of the labels' texts.
        n_threads : int
        """
        n_labels = label_features.shape[0]
        texts = SparseLabelVectors(
            label_features.indptr.astype(np.int64),
            label_features.indices,
            label_features.data,
            np.zeros(n_labels, np.float32),
        )
        starts, posted, weights = postings_of(texts, label_features.shape[1])
        unlinked = cls(
            texts=texts,
            posting_starts=starts,
            posting_labels=posted,
            posting_weights=weights,
            link_starts=np.zeros(n_labels + 1, np.int64),
            link_labels=np.zeros(0, np.int32),
            link_weights=np.zeros(0, np.float32),
        )
        return unlinked.linked_by(features, labels, n_threads)

    @classmethod
    def of_data(
        cls, data: TrainingData, n_threads: int, of_fewer: LabelRelations | None = None
    ) -> LabelRelations | None:
        """Return what `build` makes of training data; None where its labels have no texts.

        `of_fewer` are those of the same labels to fewer points, whose texts are taken over.
        """
        if data.label_features is None:
            return None
        if of_fewer is not None:
            return of_fewer.linked_by(data.features, data.labels, n_threads)
        return cls.build(data.features, data.labels, data.label_features, n_threads=n_threads)

    def linked_by(
        self, features: csr_array, labels: csr_array, n_threads: int = 1
    ) -> LabelRelations:
        """Return the same label texts, linked by other points: see `build`."""
        alone = replace(self, n_matches=1)
        starts, linked, weights = _links(alone.matches(Bags.of(features), n_threads), labels)
        return LabelRelations(
            **{name: getattr(self, name) for name in ("texts", *_POSTINGS)},
            link_starts=starts,
            link_labels=linked,
            link_weights=weights,
        )

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held, and refuse those that do not fit."""
        for name, dtype in _DTYPES.items():
            object.__setattr__(self, name, read_only(getattr(self, name), dtype))
        n_labels = self.texts.n_labels
        postings = (self.posting_starts, self.posting_labels, self.posting_weights)
        links = (self.link_starts, self.link_labels, self.link_weights)
        if (
            len(self.link_starts) != n_labels + 1
            or not _fit(*postings, n_labels)
            or not _fit(*links, n_labels)
        ):
            raise InputError(
                f"The arrays of label relations do not belong together: {n_labels} label texts, "
                f"{len(self.posting_labels)} postings of {len(self.posting_starts) - 1} features, "
                f"{len(self.link_labels)} links of {len(self.link_starts) - 1} labels. "
                "Build them again."
            )

    def matches(self, bags: Bags, n_threads: int = 1) -> Matches:
        """Return the labels whose texts are most like each bag's."""
        ids = np.empty((bags.n_rows, self.n_matches), np.int32)
        similarities = np.empty((bags.n_rows, self.n_matches), np.float32)
        arguments = (
            read_only(bags.row_starts, np.int32),
            read_only(bags.columns, np.int32),
            read_only(bags.values, np.float32),
            _as_rows(self.posting_starts, self.posting_labels, self.posting_weights),
        )

        def work(start: int, stop: int) -> None:
            scratch = self._spares.taken(self._new_scratch)
            best_matches(*arguments, start, stop, scratch, ids, similarities)
            self._spares.keep(scratch)

        over_row_chunks(work, bags.n_rows, n_threads=n_threads, chunk=256)
        return Matches(ids, similarities)

    def linked(self, matches: Matches, n_threads: int = 1) -> Ids:
        """Return the labels to which the matches have the strongest links, padded with -1."""
        found = np.empty((len(matches.labels), self.n_linked), np.int32)
        arguments = self._as_kernels_take(matches)

        def work(start: int, stop: int) -> None:
            scratch = self._spares.taken(self._new_scratch)
            best_links(*arguments, start, stop, scratch, found)
            self._spares.keep(scratch)

        over_row_chunks(work, len(found), n_threads=n_threads, chunk=256)
        return found

    def votes(self, matches: Matches, labels: Ids, n_threads: int = 1) -> Floats:
        """Return how strongly the matches are linked to candidates (n, size), padded with -1."""
        votes = np.empty(labels.shape, np.float32)
        labels = read_only(labels, np.int32)
        arguments = self._as_kernels_take(matches)

        def work(start: int, stop: int) -> None:
            scratch = self._spares.taken(self._new_scratch)
            link_votes(*arguments, labels, start, stop, scratch, votes)
            self._spares.keep(scratch)

        over_row_chunks(work, len(votes), n_threads=n_threads, chunk=256)
        return votes

    def _as_kernels_take(self, matches: Matches) -> tuple[Ids, Floats, SparseRows]:
        """Return matches and links as read-only arrays."""
        return (
            read_only(matches.labels, np.int32),
            read_only(matches.similarities, np.float32),
            _as_rows(self.link_starts, self.link_labels, self.link_weights),
        )

    def _new_scratch(self) -> Floats:
        """Return scratch: filling n_labels numbers a query would cost too much."""
        return np.zeros(self.texts.n_labels, np.float32)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what the relations are made of."""
        arrays = {name: getattr(self, name) for name in _DTYPES}
        return arrays | with_prefix("texts.", self.texts.to_arrays())

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> LabelRelations:
        """Make them again from `to_arrays`."""
        parts: Any = arrays
        texts = without_prefix("texts.", parts)
        return cls(texts=SparseLabelVectors(**texts), **{name: parts[name] for name in _DTYPES})


def postings_of(
    texts: SparseLabelVectors, n_features: int
) -> tuple[NDArray[np.int64], Ids, Floats]:
    """Return starts, labels and weights of label texts by feature, without common features."""
    n_postings = np.bincount(texts.features, minlength=n_features)
    # Most entries are of common features: without these, there is little left to be re-ordered.
    rare = np.flatnonzero((n_postings <= MOST_POSTINGS)[texts.features])
    lengths = np.diff(np.searchsorted(rare, texts.starts))
    by_label = csr_from_rows(texts.features[rare], lengths, n_features, texts.weights[rare])
    by_feature = by_label.T.tocsr()
    return by_feature.indptr.astype(np.int64), by_feature.indices, by_feature.data


def _as_rows(starts: NDArray[np.int64], labels: Ids, weights: Floats) -> SparseRows:
    """Return rows of labels as kernels take them: float32 needs no scales."""
    return SparseRows(starts, labels, weights, read_only(np.zeros(0), np.float32))


_POSTINGS = ("posting_starts", "posting_labels", "posting_weights")
_DTYPES: dict[str, Any] = {
    "posting_starts": np.int64,
    "posting_labels": np.int32,
    "posting_weights": np.float32,
    "link_starts": np.int64,
    "link_labels": np.int32,
    "link_weights": np.float32,
}


def _fit(starts: NDArray[np.int64], labels: Ids, weights: Floats, n_labels: int) -> bool:
    """Return whether starts, labels and weights are those of rows of `n_labels` columns."""
    return len(labels) == len(weights) and fits_rows(starts, labels, n_labels)


def _links(matches: Matches, labels: csr_array) -> tuple[NDArray[np.int64], Ids, Floats]:
    """Return starts, labels and weights of the links: strongest `MOST_LINKS` of each label."""
    n_points, n_labels = labels.shape
    best, strength = matches.labels[:, 0], matches.similarities[:, 0] ** 2
    known = np.flatnonzero(best >= 0)
    own_label = csr_array(
        (strength[known], (known, best[known])), shape=(n_points, n_labels), dtype=np.float32
    )
    links = (labels.T.tocsr() @ own_label).tocsr()
    rows = np.repeat(np.arange(n_labels), np.diff(links.indptr))
    order = np.lexsort((links.indices, -links.data, rows))
    place_in_row = np.arange(len(order)) - links.indptr[rows[order]]
    kept = order[place_in_row < MOST_LINKS]
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=n_labels))])
    return starts.astype(np.int64), links.indices[kept].astype(np.int32), links.data[kept]
