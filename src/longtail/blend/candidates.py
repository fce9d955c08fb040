"""Which labels are worth scoring: labels of large logits, of near points, and popular ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.blend.search_indices import index_of_labels, index_of_points
from longtail.data.assembled import taken
from longtail.data.csr import fits_rows, is_within
from longtail.errors import InputError
from longtail.held_arrays import hold_read_only
from longtail.index.biased import as_bias, some_of
from longtail.index.stored import index_from_arrays, n_rows_of
from longtail.kernels.arrays import read_only
from longtail.kernels.blend import fill_up, gather_candidates
from longtail.kernels.jit import over_row_chunks
from longtail.named_parts import with_prefix, without_prefix
from longtail.spares import Spares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.index.protocol import VectorIndex
    from longtail.named_parts import Arrays

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = [
    "N_CONFUSED_LABELS",
    "CandidateSearch",
    "Candidates",
    "SearchSizes",
    "known_row",
    "popular_labels",
]

# Of a training point, to be told apart from its own labels.
N_CONFUSED_POINTS = 32
N_CONFUSED_LABELS = 100
MOST_FAR = 100_000  # points that all popular labels are told apart from
LEAST_CONFUSED = 30  # as many as a search finds by vectors, of which classifiers will be asked
_POINTS_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class SearchSizes:
    """How many candidates each search contributes; few are better than many, and quicker.

    Parameters
    ----------
    n_near_labels : int
        Labels with the nearest vectors, or the largest logits where labels have a bias.
    n_near_points : int
        Training points that vote for their labels; 0 for no votes.
    n_voted : int
        Most labels that only the votes of near points bring, beside those of near vectors.
    n_popular : int
        Most frequent labels, candidates of every point.
    beam_size : int
        Of both searches; see `GraphIndex`. A `CompiledScorer` takes three quarters of it for
        labels, twice that where these are far, and half of it for points.
    """

    n_near_labels: int = 30
    n_near_points: int = 20
    n_voted: int = 20
    n_popular: int = 10
    beam_size: int = 64

    def n_candidates(
        self,
        n_labels: int,
        *,
        n_vectors: int | None = None,
        n_popular: int | None = None,
        n_more: int = 0,
    ) -> int:
        """Return how many candidates a point has at most.

        Parameters
        ----------
        n_labels : int
            All there are.
        n_vectors, n_popular : int or None
            Labels that have a vector, and popular ones, where there are fewer than asked for.
        n_more : int
            Candidates from elsewhere.

        Examples
        --------
        Found by vectors, popular, of near points: 30, 10 and 20. There may be fewer labels in all.

        >>> from longtail.blend.candidates import SearchSizes
        >>> sizes = SearchSizes(n_near_labels=30, n_popular=10, n_voted=20)
        >>> [sizes.n_candidates(n) for n in (1000, 50, 5)]
        [60, 50, 5]
        >>> sizes.n_candidates(1000, n_vectors=25, n_popular=0, n_more=3)
        48
        """
        n_found = self.n_near_labels if n_vectors is None else min(self.n_near_labels, n_vectors)
        n_popular = self.n_popular if n_popular is None else n_popular
        return min(n_found + n_popular + self.n_voted + n_more, n_labels)


class Candidates(NamedTuple):
    """What the searches find for some points.

    Attributes
    ----------
    labels : int32 (n, size)
        Padded with -1. A point of which nothing is known has none.
    votes : float32 (n, size)
        Sum of the squared similarities of near points that carry the label.
    nearness : float32 (n,)
        Similarity of the nearest training point.
    """

    labels: Ids
    votes: Floats
    nearness: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidateSearch:
    """Two indices over unit vectors; `find` may be called from several threads at once.

    Parameters
    ----------
    label_index : VectorIndex
        Over label vectors, and what each label adds to its similarity.
    label_of_row : int32 (n_rows,)
        The label of each row of `label_index`.
    point_index : VectorIndex
        Over the training points.
    label_starts : int32 (n_points + 1,)
    label_ids : int32 (n_pairs,)
        The labels of point i are ``label_ids[label_starts[i]:label_starts[i + 1]]``.
    popular : int32 (n_popular,)
        Candidates of every point.
    n_labels : int
    sizes : SearchSizes
    training_rows : int32 (n_points,) or None
        Which row of the training data each point is, -1 for none of it; None where nobody knows.

    Examples
    --------
    The vector of label 0 is nearest; the nearest point brings labels 0 and 2, and votes for them.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.candidates import CandidateSearch, SearchSizes
    >>> unit = np.eye(3, dtype=np.float32)
    >>> labels = csr_array(np.array([[1, 0, 1], [0, 1, 0], [0, 0, 1]], np.float32))
    >>> sizes = SearchSizes(n_near_labels=1, n_near_points=1, n_voted=2, n_popular=0)
    >>> search = CandidateSearch.build(unit, unit, labels, sizes=sizes, seed=0, n_threads=1)
    >>> found = search.find(unit[:1], np.empty((1, 0), np.int32))
    >>> found.labels.tolist(), found.votes.tolist()
    ([[0, 2, -1]], [[1.0, 1.0, 0.0]])
    """

    label_index: VectorIndex
    label_of_row: Ids
    point_index: VectorIndex
    label_starts: Ids
    label_ids: Ids
    popular: Ids
    n_labels: int
    sizes: SearchSizes
    training_rows: Ids | None = None
    _spares: Spares[Floats] = field(default_factory=Spares, init=False, repr=False)

    @classmethod
    def build(
        cls,
        label_vectors: Floats,
        points: Floats,
        labels: csr_array,
        *,
        sizes: SearchSizes,
        seed: int,
        n_threads: int,
        n_asked: int | None = None,
        bias: Floats | None = None,
        in_place: bool = False,
        training_rows: NDArray[np.integer] | None = None,
    ) -> CandidateSearch:
        """Index label vectors and training points.

        Parameters
        ----------
        label_vectors : float32 (n_labels, dimension)
            Unit rows; a label with a row of zeros is not found by its vector.
        points : float32 (n_points, dimension)
            Unit rows.
        labels : csr_array (n_points, n_labels)
        sizes : SearchSizes
        seed, n_threads : int
            Same seed, same search, whatever `n_threads` is.
        n_asked : int or None
            For how many points labels will be searched, if it is not kept: little time is spent on
            building then.
        bias : float32 (n_labels,) or None
            What each label adds to its similarity, when labels are searched.
        in_place : bool
            Whether `points` may be written over: a copy of millions might not fit beside them.
        training_rows : int (n_points,) or None
            Which rows of the training data the points are.
        """
        known = np.flatnonzero(label_vectors.any(axis=1)).astype(np.int32)
        known_bias = some_of(as_bias(bias, len(label_vectors)), known)
        if len(known) < len(label_vectors):
            label_vectors = taken(label_vectors, known, n_threads)
        return cls(
            label_index=index_of_labels(
                label_vectors, known_bias, sizes.beam_size, seed, n_threads, n_asked
            ),
            label_of_row=known,
            point_index=index_of_points(
                points, sizes.beam_size, seed, n_threads, in_place=in_place
            ),
            label_starts=labels.indptr,
            label_ids=labels.indices,
            popular=popular_labels(labels, sizes.n_popular),
            n_labels=labels.shape[1],
            sizes=sizes,
            training_rows=None if training_rows is None else training_rows.astype(np.int32),
        )

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held, and refuse those that do not fit."""
        ids = ["label_of_row", "label_starts", "label_ids", "popular"]
        ids += [] if self.training_rows is None else ["training_rows"]
        hold_read_only(self, dict.fromkeys(ids, np.int32))
        fits = (
            len(self.label_of_row) == n_rows_of(self.label_index)
            and len(self.label_starts) == n_rows_of(self.point_index) + 1
            and fits_rows(self.label_starts, self.label_ids, self.n_labels)
            and is_within(self.label_of_row, 0, self.n_labels)
            and is_within(self.popular, 0, self.n_labels)
        )
        if self.training_rows is not None:
            fits = fits and self.training_rows.shape == (len(self.label_starts) - 1,)
        if not fits:
            raise InputError(
                f"The arrays of a candidate search do not belong together: "
                f"{len(self.label_of_row)} label vectors, {len(self.label_starts) - 1} points, "
                f"{self.n_labels} labels. Build it again."
            )

    def find(self, points: Floats, more: Ids, n_threads: int = 1) -> Candidates:
        """Return the candidates of each point.

        Parameters
        ----------
        points : float32 (n, dimension)
            Unit rows.
        more : int32 (n, n_more)
            Labels that are candidates whatever the searches find; may hold -1 and labels twice.
        n_threads : int
        """
        width = self.n_candidates(more.shape[1])
        labels = np.empty((len(points), width), np.int32)
        votes = np.empty((len(points), width), np.float32)
        nearness = np.zeros(len(points), np.float32)

        def work(start: int, stop: int) -> None:
            some = points[start:stop]
            found, near, similarities = self._searched(some, more[start:stop])
            nearness[start:stop] = similarities[:, 0]
            scratch = self._spares.taken(self._new_scratch)
            gather_candidates(
                found,
                near,
                read_only(similarities, np.float32),
                self.label_starts,
                self.label_ids,
                self.sizes.n_voted,
                0,
                len(some),
                scratch,
                labels[start:stop],
                votes[start:stop],
            )
            self._spares.keep(scratch)

        over_row_chunks(work, len(points), n_threads=n_threads, chunk=256)
        return Candidates(labels, votes, nearness)

    def confused(self, n_threads: int = 1, *, seed: int = 0) -> tuple[NDArray[np.int64], Ids]:
        """Return labels that training points are easily taken to have.

        They are those that most of a point's near points carry, some of them rightly. Nothing is
        searched: the point index knows near points. Where these have few labels, some are drawn
        with the `seed`: a classifier that has met only labels like its own would rank all others at
        random. Popular labels are asked for every point, so they are added to all points, or to
        `MOST_FAR` of them that are drawn: more would teach them nothing, and take most of the time.

        Returns
        -------
        starts : int64 (n_points + 1,)
        labels : int32 (n_pairs,)
            Those of point i are ``labels[starts[i]:starts[i + 1]]``, each once.
        """
        n_points = len(self.label_starts) - 1
        draws = np.random.default_rng(seed).random(n_points, np.float32)
        has_popular = draws < MOST_FAR / max(n_points, 1)
        near = self.point_index.near_rows(N_CONFUSED_POINTS)
        starts, found = np.zeros(n_points + 1, np.int64), {}

        def work(start: int, stop: int) -> None:
            some = slice(start, stop)
            rows = self._confused_rows(near[some], has_popular[some], start, seed)
            is_label = rows >= 0
            starts[1 + start : 1 + stop] = np.count_nonzero(is_label, axis=1)
            found[start] = rows[is_label]

        over_row_chunks(work, n_points, n_threads=n_threads, chunk=_POINTS_AT_ONCE)
        parts = [found.pop(start) for start in sorted(found)]
        return np.cumsum(starts, out=starts), np.concatenate(parts)

    def _confused_rows(
        self, near: Ids, has_popular: NDArray[np.bool_], first: int, seed: int
    ) -> Ids:
        """Return `confused` labels of points from the first one on, padded with -1."""
        n = len(near)
        popular = np.where(has_popular[:, np.newaxis], self.popular, np.int32(-1))
        size = min(len(self.popular) + N_CONFUSED_LABELS, self.n_labels)
        labels, votes = np.empty((n, size), np.int32), np.empty((n, size), np.float32)
        scratch = self._spares.taken(self._new_scratch)
        gather_candidates(
            read_only(popular, np.int32),
            read_only(near, np.int32),
            read_only(np.ones(near.shape), np.float32),
            self.label_starts,
            self.label_ids,
            N_CONFUSED_LABELS,
            0,
            n,
            scratch,
            labels,
            votes,
        )
        self._spares.keep(scratch)
        fill_up(labels, min(LEAST_CONFUSED, size), self.n_labels, seed, first)
        return labels

    def _searched(self, points: Floats, more: Ids) -> tuple[Ids, Ids, Floats]:
        """Return labels that are candidates, near points and their similarities."""
        n_found = min(self.sizes.n_near_labels, len(self.label_of_row))
        rows = self.label_index.query(points, max(1, n_found))[0][:, :n_found]
        near, similarities = self.near_points(points, self.sizes.n_near_points)
        known = np.full(rows.shape, -1, np.int32)
        known[rows >= 0] = self.label_of_row[rows[rows >= 0]]
        popular = np.broadcast_to(self.popular, (len(points), len(self.popular)))
        found = np.concatenate([known, popular, more], axis=1)
        silent = ~points.any(axis=1)  # nothing is known of them, so nothing is said
        found[silent], near[silent] = -1, -1
        return read_only(found, np.int32), read_only(near, np.int32), similarities

    def n_candidates(self, n_more: int = 0) -> int:
        """Return how many candidates a point has at most, so many from elsewhere among them."""
        return self.sizes.n_candidates(
            self.n_labels,
            n_vectors=len(self.label_of_row),
            n_popular=len(self.popular),
            n_more=n_more,
        )

    def near_points(self, points: Floats, n: int) -> tuple[Ids, Floats]:
        """Return at most n near training points of each, nearest first, and their similarities.

        Padded with -1, which is all there is where n is 0 or no points are kept.
        """
        n_near = min(n, len(self.label_starts) - 1)
        if not n_near:
            return np.full((len(points), 1), -1, np.int32), np.zeros((len(points), 1), np.float32)
        return self.point_index.query(points, n_near)

    def nearness_to_others(self, points: Floats, rows: NDArray[np.int64]) -> Floats:
        """Return how near the nearest other training point is, (at most n,), where there is any.

        Parameters
        ----------
        points : float32 (n, dimension)
            Some of the training points.
        rows : int64 (n,)
            Which ones they are.
        """
        found, similarities = self.near_points(points, 2)
        is_own = found[:, 0] == rows
        nearest: Floats = similarities[np.arange(len(rows)), is_own.astype(int)]
        return nearest[np.isfinite(nearest)]

    def labels_of_point(self, row: int) -> Ids:
        """Return the labels of a training point."""
        return self.label_ids[self.label_starts[row] : self.label_starts[row + 1]]

    def training_row_of(self, point: int) -> int | None:
        """Return which row of the training data a point is, where that is known."""
        return known_row(self.training_rows, point)

    def _new_scratch(self) -> Floats:
        """Return scratch: filling n_labels numbers a query would cost too much."""
        return np.zeros(self.n_labels, np.float32)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what the search is made of."""
        return {
            "label_of_row": self.label_of_row,
            "label_starts": self.label_starts,
            "label_ids": self.label_ids,
            "popular": self.popular,
            **({} if self.training_rows is None else {"training_rows": self.training_rows}),
            **with_prefix("label_index.", self.label_index.to_arrays()),
            **with_prefix("point_index.", self.point_index.to_arrays()),
        }

    def config(self) -> dict[str, Any]:
        """Return the rest as JSON values."""
        return {"n_labels": self.n_labels, "sizes": asdict(self.sizes)}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> CandidateSearch:
        """Make it again from `config` and `to_arrays`, on memory maps as they are."""
        sizes = SearchSizes(**config["sizes"])
        return cls(
            label_index=index_from_arrays(without_prefix("label_index.", arrays), sizes.beam_size),
            label_of_row=arrays["label_of_row"],
            point_index=index_from_arrays(without_prefix("point_index.", arrays), sizes.beam_size),
            label_starts=arrays["label_starts"],
            label_ids=arrays["label_ids"],
            popular=arrays["popular"],
            n_labels=config["n_labels"],
            sizes=sizes,
            training_rows=arrays.get("training_rows"),
        )


def known_row(training_rows: Ids | None, point: int) -> int | None:
    """Return which row of the training data a point is, or None where that is not known.

    Examples
    --------
    The second point was added later, and a damaged file may name a third one.

    >>> import numpy as np
    >>> from longtail.blend.candidates import known_row
    >>> rows = np.array([7, -1], np.int32)
    >>> [known_row(rows, point) for point in (0, 1, 2)], known_row(None, 0)
    ([7, None, None], None)
    """
    if training_rows is None or not 0 <= point < len(training_rows):
        return None
    row = int(training_rows[point])
    return row if row >= 0 else None


def popular_labels(labels: csr_array, n_most: int) -> Ids:
    """Return the labels with the most points, most first, ties by smaller id; none without.

    Examples
    --------
    Labels 0 and 2 have a point each, label 1 has two, and label 3 has none.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.candidates import popular_labels
    >>> labels = csr_array(np.array([[1, 1, 0, 0], [0, 1, 1, 0]]))
    >>> popular_labels(labels, 2).tolist(), popular_labels(labels, 9).tolist()
    ([1, 0], [1, 0, 2])
    """
    counts = np.bincount(labels.indices, minlength=labels.shape[1])
    n_popular = min(n_most, int(np.count_nonzero(counts)))
    return np.argsort(-counts, kind="stable")[:n_popular].astype(np.int32)
