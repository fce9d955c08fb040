"""What label texts say: which labels a point's text names, and what these are linked to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from longtail.blend.links import MAY_BE_OWN, Links, kept_links, sparse_rows_of
from longtail.blend.matches import Matches
from longtail.data.bags import Bags
from longtail.data.csr import csr_from_rows, fits_rows
from longtail.errors import InputError
from longtail.held_arrays import hold_read_only
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.relations import best_links, best_matches, link_votes, sharpen_rows
from longtail.kernels.sparse_lookup import SparseRows, SplitRows
from longtail.kernels.sparse_splitting import count_ids, place_rows, place_weights
from longtail.named_parts import with_prefix, without_prefix
from longtail.row_store import RowStore
from longtail.scorers.sparse_label_vectors import SparseLabelVectors
from longtail.spares import Spares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.named_parts import Arrays
    from longtail.training.run import TrainingData

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["LabelRelations", "RelationSizes", "postings_of"]

LINKS_OF_TAKEN = 0.1  # of how much others' links count
MOST_POSTINGS = 100  # labels: a token of more of them costs much to look up, and tells little
_DTYPES: dict[str, Any] = {
    "posting_starts": np.int64,
    "posting_labels": np.int32,
    "posting_weights": np.float32,
    "link_starts": np.int64,
    "link_labels": np.int32,
    "link_weights": np.float32,
    "taken": np.float32,
}


@dataclass(frozen=True, kw_only=True)
class RelationSizes:
    """How many labels are looked at.

    Parameters
    ----------
    n_likely : int
        Those of which rare tokens say the most; the most alike are chosen from them by all tokens.
    n_matches : int
        Those whose texts are most like a point's.
    n_linked : int
        Those to which the matches have the strongest links.
    """

    n_likely: int = 24
    n_matches: int = 5
    n_linked: int = 20

    @property
    def n_candidates(self) -> int:
        """Labels that become candidates of a point."""
        return self.n_matches + self.n_linked


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelRelations:
    """Lexical matches of points with label texts, and links between labels.

    Where points and labels are things of one kind, such as pages that refer to pages or products
    bought with products, a training point has a label of its own, and a label is linked to the own
    labels of the points that carry it (`Links`). So a new point is answered with what refers to it:
    if its text matches label a, and a point that carries a is label b, then b is a candidate. Where
    relations run one way only, or labels are subjects, the network that blends the scores learns to
    pay no heed.

    Parameters
    ----------
    texts : SparseLabelVectors
        Unit bags of the label texts, with no bias.
    posting_starts : int64 (n_features + 1,)
    posting_labels : int32 (n_postings,)
    posting_weights : float32 (n_postings,)
        The same by feature, without the features that more than 100 labels have.
    link_starts : int64 (n_labels + 1,)
    link_labels : int32 (n_links,)
    link_weights : float32 (n_links,)
        Of each label, its strongest links.
    taken : float32 (n_labels,)
        How surely a label is a training point's own.
    sizes : RelationSizes

    Raises
    ------
    InputError
        If the arrays do not fit each other.

    Examples
    --------
    Feature i is the text of label i. The point with that of label 1 carries label 0: whoever
    matches label 0 is answered with label 1.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.relations import LabelRelations
    >>> from longtail.data.bags import Bags
    >>> texts = csr_array(np.eye(3, dtype=np.float32))
    >>> carried = csr_array(np.array([[0, 0, 1], [1, 0, 0], [0, 0, 1]], np.float32))
    >>> relations = LabelRelations.build(texts, carried, texts, n_threads=1)
    >>> matches = relations.matches(Bags.of(texts[[0]]))
    >>> matches.labels[0, 0].item(), relations.linked(matches)[0, 0].item()
    (0, 1)
    """

    texts: SparseLabelVectors
    posting_starts: NDArray[np.int64]
    posting_labels: Ids
    posting_weights: Floats
    link_starts: NDArray[np.int64]
    link_labels: Ids
    link_weights: Floats
    taken: Floats
    sizes: RelationSizes = RelationSizes()
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
            taken=np.zeros(n_labels, np.float32),
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
        self,
        features: csr_array,
        labels: csr_array,
        n_threads: int = 1,
        known: Links | None = None,
    ) -> LabelRelations:
        """Return the same label texts, linked by other points on top of `known` links.

        See `build`.
        """
        likest = self._likest(Bags.of(features), MAY_BE_OWN, n_threads)
        self.__dict__.pop("_split_texts")  # who asks for matches next asks those that are returned
        weights, taken = Links.of_points(likest, labels, n_threads=n_threads, known=known)
        starts, linked, kept = kept_links(weights)
        return replace(self, link_starts=starts, link_labels=linked, link_weights=kept, taken=taken)

    def linked_also_by(
        self, features: csr_array, labels: csr_array, n_threads: int = 1
    ) -> LabelRelations:
        """Return the same with the links of further points on top of those that were kept."""
        lengths, n_labels = np.diff(self.link_starts), self.texts.n_labels
        kept = csr_from_rows(self.link_labels, lengths, n_labels, self.link_weights)
        return self.linked_by(features, labels, n_threads, Links(kept, self.taken))

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held, and refuse those that do not fit."""
        hold_read_only(self, _DTYPES)
        n_labels = self.texts.n_labels
        postings = (self.posting_starts, self.posting_labels, self.posting_weights)
        links = (self.link_starts, self.link_labels, self.link_weights)
        if (
            len(self.link_starts) != n_labels + 1
            or self.texts.n_features >= len(self.posting_starts)
            or not _fit(*postings, n_labels)
            or not _fit(*links, n_labels)
            or len(self.taken) != n_labels
        ):
            raise InputError(
                f"The arrays of label relations do not belong together: {n_labels} label texts, "
                f"{len(self.posting_labels)} postings of {len(self.posting_starts) - 1} features, "
                f"{len(self.link_labels)} links of {len(self.link_starts) - 1} labels, of which "
                f"{len(self.taken)} may be a point's own. "
                "Build them again."
            )

    def matches(self, bags: Bags, n_threads: int = 1) -> Matches:
        """Return the labels whose texts are most like each bag's."""
        matches = self._likest(bags, self.sizes.n_matches, n_threads)
        sharpen_rows(*matches)
        return matches

    def _likest(self, bags: Bags, n_matches: int, n_threads: int) -> Matches:
        """Return the labels whose texts have the largest inner products with bags, and these."""
        ids = np.empty((bags.n_rows, n_matches), np.int32)
        products = np.empty((bags.n_rows, n_matches), np.float32)
        arguments = (*bags.for_kernels()[:3], self._split_texts, self.sizes.n_likely)
        n_places = np.count_nonzero(self.is_common) + 1

        def work(start: int, stop: int) -> None:
            sums, dense = self._spares.taken(self._new_scratch), np.zeros(n_places, np.float32)
            best_matches(*arguments, start, stop, sums, dense, ids, products)
            self._spares.keep(sums)

        over_row_chunks(work, bags.n_rows, n_threads=n_threads, chunk=256)
        return Matches(ids, products)

    @cached_property
    def is_common(self) -> NDArray[np.bool_]:
        """Which features label texts have that too many have for postings, (n_features,)."""
        n_postings = np.diff(self.posting_starts)
        n_entries = np.zeros(len(n_postings), np.int64)
        count_ids(self.texts.features, n_entries)  # numpy would make 64 bits of each id
        is_common: NDArray[np.bool_] = (n_postings == 0) & (n_entries > 0)
        return is_common

    @cached_property
    def _split_texts(self) -> SplitRows:
        """The label texts as kernels take them."""
        rare = sparse_rows_of(self.posting_starts, self.posting_labels, self.posting_weights)
        texts = self.texts.matrix(len(self.is_common))
        return SplitRows(rare, *RowStore("float32").common(texts, self.is_common))

    @cached_property
    def vote_weights(self) -> Floats:
        """How much links count where a new point is answered, (n_links,).

        If its text is as like two labels, it is more likely the one that no training point is.
        """
        share = np.float32(LINKS_OF_TAKEN) ** self.taken
        return self.link_weights * np.repeat(share, np.diff(self.link_starts))

    def rare_sums(self, features: csr_array) -> csr_array:
        """Return the inner products of bags and label texts over rare features, (n, n_labels)."""
        postings = (self.posting_weights, self.posting_labels, self.posting_starts)
        n_features = len(self.posting_starts) - 1
        by_feature = csr_array(postings, shape=(n_features, self.texts.n_labels))
        return (features @ by_feature).tocsr()

    def linked(self, matches: Matches, n_threads: int = 1) -> Ids:
        """Return the labels to which the matches have the strongest links, padded with -1."""
        found = np.empty((len(matches.labels), self.sizes.n_linked), np.int32)
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
            read_only(matches.strengths, np.float32),
            sparse_rows_of(self.link_starts, self.link_labels, self.vote_weights),
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
        texts = SparseLabelVectors(**without_prefix("texts.", arrays))
        tables: dict[str, Any] = {name: arrays[name] for name in _DTYPES}
        return cls(texts=texts, **tables)


def postings_of(
    texts: SparseLabelVectors, n_features: int
) -> tuple[NDArray[np.int64], Ids, Floats]:
    """Return starts, labels and weights of label texts by feature, without common features.

    Examples
    --------
    Both label texts have feature 0, and the second has feature 2 as well.

    >>> import numpy as np
    >>> from longtail.blend.relations import postings_of
    >>> from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    >>> features, weights = np.array([0, 0, 2]), np.array([1, 0.5, 0.25])
    >>> texts = SparseLabelVectors(np.array([0, 1, 3]), features, weights, np.zeros(2))
    >>> [part.tolist() for part in postings_of(texts, n_features=3)]
    [[0, 2, 2, 3], [0, 1, 1], [1.0, 0.5, 0.25]]
    """
    n_entries = np.zeros(n_features, np.int64)
    count_ids(texts.features, n_entries)
    is_common = read_only(n_entries > MOST_POSTINGS, np.bool_)
    starts = np.zeros(n_features + 1, np.int64)
    np.cumsum(np.where(is_common, 0, n_entries), out=starts[1:])
    labels, weights = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
    place_rows(texts.starts, texts.features, is_common, starts[:-1].copy(), labels)
    place_weights(texts.features, texts.weights, is_common, starts[:-1].copy(), weights)
    return starts, labels, weights


def _fit(starts: NDArray[np.int64], labels: Ids, weights: Floats, n_labels: int) -> bool:
    """Return whether starts, labels and weights are those of rows of `n_labels` columns."""
    return len(labels) == len(weights) and fits_rows(starts, labels, n_labels)
