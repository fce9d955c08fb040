"""Astec's shortlist: near label representatives, and the labels of near points.

DeepXML paper (Dahiya et al., WSDM 2021), section 4, Module II, and appendix A.4. The same object
mines hard negatives for training and shortlists labels at prediction.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.clustering.k_means import spherical_k_means
from longtail.data.csr import fits_rows, is_within
from longtail.data.rows import binary, unit_vectors
from longtail.errors import InputError, require_positive
from longtail.held_arrays import hold_read_only
from longtail.index.exact import ExactIndex
from longtail.index.stored import built_index, found_by, index_from_arrays, n_rows_of
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.scoring import merge_shortlists
from longtail.named_parts import with_prefix, without_prefix
from longtail.own_classes import is_ours
from longtail.spares import Spares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.index.protocol import VectorIndex
    from longtail.named_parts import Arrays

    Scratch = tuple[NDArray[np.float32], NDArray[np.float32]]

__all__ = ["LabelShortlister", "NearestLabels", "ShortlistSizes", "check_shortlister_parts"]

_ARRAY_NAMES = (
    "label_of_representative",
    "label_starts",
    "label_ids",
    "label_index.vectors",
    "point_index.vectors",
)


@dataclass(frozen=True, kw_only=True)
class ShortlistSizes:
    """How much a shortlister looks at for a prediction, where that is less than in training.

    A negative that training never saw cannot be told from the truth, so training mines many; in a
    prediction, labels far down the shortlist only cost time.

    Parameters
    ----------
    n_near_labels, n_near_points, size, beam_size
        See `NearestLabels`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.negatives.nearest_labels import NearestLabels, ShortlistSizes
    >>> points = np.eye(3, dtype=np.float32)  # point i has label i
    >>> nearest = NearestLabels(size=2, exact=True)
    >>> shortlister = nearest.build(points, csr_array(points), seed=0, n_threads=1)
    >>> resized = shortlister.resized(ShortlistSizes(size=1))
    >>> shortlister.query(points)[0].shape, resized.query(points)[0].tolist()
    ((3, 2), [[0], [1], [2]])
    """

    n_near_labels: int = 80
    n_near_points: int = 30
    size: int = 150
    beam_size: int = 64


@dataclass(frozen=True, kw_only=True)
class NearestLabels:
    """Mine negatives with two nearest-neighbour structures over frozen features v.

    A label's similarity to a point is ``(1 - w) cos(v, mu) + w s_x``: mu is the label's nearest
    representative, and s_x the sum of the cosines of the near points that carry the label, over the
    point's largest such sum; what was not found counts as 0. The paper has the two structures, and
    shortlists of 500; the merge, with w = .075, is the published code's. Both have a label at the
    mean of its points' v; here it is at that of v at unit length, so that all points count alike.

    Parameters
    ----------
    n_near_labels : int
        Label representatives that a query takes from ANNS^mu (400 in the code, 300 in Slice).
    n_near_points : int
        Points that a query takes from ANNS^x (100 in the code); 0 leaves that structure out, as
        Slice does.
    size : int
        Labels kept of both together.
    point_weight : float
        w; where near points are left out, it is 0.
    n_representatives : int
        Extra k-means centres for each head label (300 in the code); 0 for none.
    head_frequency : int
        A label with at least that many points is a head label (7500 in the code).
    beam_size : int
        Of `GraphIndex`: more finds more, and takes longer.
    exact : bool
        Search by scanning all vectors instead of following a graph.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.negatives.nearest_labels import NearestLabels
    >>> points = np.array([[1, 0], [0.9, 0.1], [0, 1]], np.float32)
    >>> labels = csr_array(np.eye(3))
    >>> shortlister = NearestLabels(size=2).build(points, labels, seed=0, n_threads=1)
    >>> ids, similarities = shortlister.query(points)
    >>> ids.tolist()
    [[0, 1], [1, 0], [2, 1]]
    """

    n_near_labels: int = 300
    n_near_points: int = 100
    size: int = 500
    point_weight: float = 0.075
    n_representatives: int = 0
    head_frequency: int = 7500
    beam_size: int = 160
    exact: bool = False

    def build(
        self,
        features: NDArray[np.float32],
        labels: csr_array,
        *,
        seed: int,
        n_threads: int,
    ) -> LabelShortlister:
        """Index the labels and points of the training data.

        Parameters
        ----------
        features : float32 (n_points, dimension)
            Frozen intermediate features v, as the encoder gives them.
        labels : csr_array (n_points, n_labels)
            An entry other than zero means: relevant.
        seed, n_threads : int
            Same seed, same shortlists, whatever `n_threads` is.

        Raises
        ------
        InputError
            If features and labels do not belong together, or a number is out of range.
        """
        require_positive("size", self.size)
        require_positive("n_near_labels", self.n_near_labels)
        if features.shape[0] != labels.shape[0]:
            raise InputError(
                f"`features` has {features.shape[0]} rows but `labels` has {labels.shape[0]}. "
                "Pass one row of each per point."
            )
        points, labels = unit_vectors(features), binary(labels)
        representatives, label_of = self._representatives(points, labels, seed)
        no_points = np.zeros((0, features.shape[1]), np.float32)
        return LabelShortlister(
            settings=self,
            label_index=self._index(representatives, seed, n_threads),
            label_of_representative=label_of,
            point_index=self._index(points if self.n_near_points else no_points, seed, n_threads),
            label_starts=labels.indptr,
            label_ids=labels.indices,
            n_labels=labels.shape[1],
        )

    def mine(
        self,
        shortlister: LabelShortlister,
        features: NDArray[np.float32],
        labels: csr_array,  # noqa: ARG002 - true labels may be among the negatives
        *,
        seed: int,  # noqa: ARG002 - nothing is drawn
        n_threads: int,
    ) -> NDArray[np.int32]:
        """Return the shortlists of the training points; see `NegativeSampler.mine`."""
        return shortlister.query(features, n_threads)[0]

    def _representatives(
        self, points: NDArray[np.float32], labels: csr_array, seed: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Return unit means of each label's points, then the head labels' further centres."""
        by_label = labels.T.tocsr()
        frequency = np.diff(by_label.indptr)
        with_points = np.flatnonzero(frequency).astype(np.int32)
        vectors = [unit_vectors(by_label[with_points] @ points)]
        label_of = [with_points]
        if self.n_representatives:
            for label in np.flatnonzero(frequency >= self.head_frequency):
                rows = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
                centres = spherical_k_means(points[rows], self.n_representatives, seed=seed)
                vectors.append(centres)
                label_of.append(np.full(len(centres), label, np.int32))
        return np.concatenate(vectors), np.concatenate(label_of)

    def _index(self, vectors: NDArray[np.float32], seed: int, n_threads: int) -> VectorIndex:
        """Return a structure to search `vectors` with."""
        if self.exact:
            return ExactIndex(vectors)
        return built_index(vectors, beam_size=self.beam_size, seed=seed, n_threads=n_threads)


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelShortlister:
    """Two indices and what joins them; made by `NearestLabels.build` or `from_parts`.

    `query` may be called from several threads at once.

    Parameters
    ----------
    settings : NearestLabels
    label_index : VectorIndex
        ANNS^mu, over the label representatives.
    label_of_representative : int32 (n_representatives,)
    point_index : VectorIndex
        ANNS^x, over the points; empty where it is left out.
    label_starts : int32 (n_points + 1,)
    label_ids : int32 (nnz,)
        The labels of point i are ``label_ids[label_starts[i]:label_starts[i + 1]]``.
    n_labels : int

    Examples
    --------
    Label 1 is nearest; label 2, at a right angle, is the one for which no place is left.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.negatives.nearest_labels import NearestLabels
    >>> points = np.eye(3, dtype=np.float32)  # point i has label i
    >>> nearest = NearestLabels(size=2, exact=True)
    >>> shortlister = nearest.build(points, csr_array(points), seed=0, n_threads=1)
    >>> shortlister.query(np.array([[0.6, 0.8, 0]], np.float32))[0].tolist()
    [[1, 0]]
    """

    settings: NearestLabels
    label_index: VectorIndex
    label_of_representative: NDArray[np.int32]
    point_index: VectorIndex
    label_starts: NDArray[np.int32]
    label_ids: NDArray[np.int32]
    n_labels: int
    _spares: Spares[Scratch] = field(default_factory=Spares, init=False, repr=False)

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held."""
        ids = ("label_of_representative", "label_starts", "label_ids")
        hold_read_only(self, dict.fromkeys(ids, np.int32))

    def query(
        self, features: NDArray[np.float32], n_threads: int = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the shortlist of each point.

        Parameters
        ----------
        features : float32 (n, dimension)
        n_threads : int

        Returns
        -------
        labels : int32 (n, size)
            Descending by similarity, padded with -1. A point without features gets none.
        similarities : float32 (n, size)
            Padded with -inf.
        """
        settings = self.settings
        point_weight = float(settings.point_weight) if settings.n_near_points else 0.0
        queries = unit_vectors(features)
        size = min(settings.size, self.n_labels)
        labels = np.empty((len(queries), size), np.int32)
        similarities = np.empty((len(queries), size), np.float32)
        labels_of_points = (self.label_starts, self.label_ids, point_weight)

        def work(start: int, stop: int) -> None:
            some = queries[start:stop]
            near, near_similarities = found_by(self.label_index, some, settings.n_near_labels)
            points, point_similarities = self._near_points(some)
            silent = ~some.any(axis=1)
            near[silent], points[silent] = -1, -1
            found = (near, near_similarities, self.label_of_representative)
            given = (*found, points, point_similarities, *labels_of_points)
            scratch = self._spares.taken(self._new_scratch)
            out = labels[start:stop], similarities[start:stop]
            merge_shortlists(*given, 0, len(some), *scratch, *out)
            self._spares.keep(scratch)

        over_row_chunks(work, len(queries), n_threads=n_threads, chunk=256)
        return labels, similarities

    def resized(self, sizes: ShortlistSizes) -> LabelShortlister:
        """Return a shortlister over the same vectors that looks at no more than `sizes`."""
        own = self._settings()
        smaller = {name: min(own[name], most) for name, most in asdict(sizes).items()}
        return self.from_parts(self.config() | {"shortlist": own | smaller}, self.to_arrays())

    def _new_scratch(self) -> Scratch:
        """Return scratch: filling n_labels numbers a query would cost too much."""
        return np.full(self.n_labels, -np.inf, np.float32), np.zeros(self.n_labels, np.float32)

    def _near_points(
        self, queries: NDArray[np.float32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return near training points, none where that structure is left out."""
        if not self.settings.n_near_points:
            return np.empty((len(queries), 0), np.int32), np.empty((len(queries), 0), np.float32)
        return found_by(self.point_index, queries, self.settings.n_near_points)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what the shortlister is made of."""
        return {
            "label_of_representative": self.label_of_representative,
            "label_starts": self.label_starts,
            "label_ids": self.label_ids,
            **with_prefix("label_index.", self.label_index.to_arrays()),
            **with_prefix("point_index.", self.point_index.to_arrays()),
        }

    def config(self) -> dict[str, Any]:
        """Return the rest as JSON values."""
        return {"shortlist": self._settings(), "n_labels": self.n_labels}

    def _settings(self) -> dict[str, Any]:
        """Return those of `NearestLabels`: what derives from that may have others besides."""
        return {own.name: getattr(self.settings, own.name) for own in fields(NearestLabels)}

    def as_loaded(self) -> LabelShortlister:
        """Return it as a model folder holds it: indices of a user's are made longtail's again."""
        if all(is_ours(type(index)) for index in (self.label_index, self.point_index)):
            return self
        return self.from_parts(self.config(), self.to_arrays())

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> LabelShortlister:
        """Make it again from `config` and `to_arrays`, on memory maps as they are.

        Raises
        ------
        InputError
            If an array is missing or they do not belong together.
        """
        for name in _ARRAY_NAMES:
            if name not in arrays:
                raise InputError(f"A label shortlister needs the array {name!r}. Build it again.")
        settings = NearestLabels(**config["shortlist"])
        shortlister = cls(
            settings=settings,
            label_index=index_from_arrays(
                without_prefix("label_index.", arrays), settings.beam_size
            ),
            label_of_representative=read_only(arrays["label_of_representative"], np.int32),
            point_index=index_from_arrays(
                without_prefix("point_index.", arrays), settings.beam_size
            ),
            label_starts=read_only(arrays["label_starts"], np.int32),
            label_ids=read_only(arrays["label_ids"], np.int32),
            n_labels=config["n_labels"],
        )
        check_shortlister_parts(shortlister)
        return shortlister


def check_shortlister_parts(shortlister: LabelShortlister) -> None:
    """Refuse arrays that would lead a kernel out of bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.negatives.nearest_labels import NearestLabels, check_shortlister_parts
    >>> points = np.eye(3, dtype=np.float32)
    >>> built = NearestLabels().build(points, csr_array(points), seed=0, n_threads=1)
    >>> check_shortlister_parts(built)
    """
    starts, ids = shortlister.label_starts, shortlister.label_ids
    label_of, n_labels = shortlister.label_of_representative, shortlister.n_labels
    fits = (
        len(label_of) == n_rows_of(shortlister.label_index)
        and len(starts) > n_rows_of(shortlister.point_index)
        and fits_rows(starts, ids, n_labels)
        and is_within(label_of, 0, n_labels)
    )
    if not fits:
        raise InputError(
            f"The arrays of the label shortlister do not belong together: {len(label_of)} "
            f"representatives, {len(starts) - 1} points, {n_labels} labels. Build it again."
        )
