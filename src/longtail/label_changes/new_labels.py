"""Labels that a trained blended model learns of afterwards: from texts, from a few points."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from scipy.sparse import csr_array

from longtail.blend.encoded import EncodedScorer
from longtail.blend.label_head import LabelHead
from longtail.blend.links import kept_links
from longtail.blend.relations import postings_of
from longtail.blend.search_indices import N_LABEL_NEIGHBOURS, N_POINT_NEIGHBOURS
from longtail.compiled.blended import BlendedScorer
from longtail.data.bags import Bags
from longtail.data.rows import unit_rows
from longtail.errors import RETRAIN, InputError, ModelFolderError, named
from longtail.index.stored import search_bias_of
from longtail.label_changes.changed_index import with_more_rows
from longtail.row_store import RowStore, joined_rows
from longtail.scorers.sparse_label_vectors import SparseLabelVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.blend import Blend
    from longtail.blend.candidates import CandidateSearch
    from longtail.blend.relations import LabelRelations

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = [
    "ChangeableScorer",
    "NewLabelVectors",
    "NewLabels",
    "SharedSpaceVectors",
    "SiameseVectors",
    "add_labels",
]

ChangeableScorer: TypeAlias = BlendedScorer | EncodedScorer
Changed = TypeVar("Changed", bound=ChangeableScorer)

# What the linear classifier of a new label answers to everything. Those of trained labels answer
# about -1 where the label is wrong and more where it is right, and nobody knows which it is. With
# less, new labels are found less often; with more, they are before others that are right.
UNDECIDED = -0.2


MOST_OFF_UNIT = 1e-2  # how far the length of a row that was stored in few bits may be from 1


class NewLabels(NamedTuple):
    """What is known of n new labels.

    Attributes
    ----------
    texts : Bags or None
        Their texts, as points are read, n of them; None in a model of ready-made features. Not
        looked at by a model without label texts.
    points : Bags
        Example points; there may be none.
    label_of_point : int64 (n_points,)
        Which of the new labels, from 0, each point has.
    n : int

    Examples
    --------
    Label 0 has two points, label 1 has one, and label 2 has none.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.label_changes.new_labels import NewLabels
    >>> rows = np.array([[1, 0], [2, 5], [0, 7]], np.float32)
    >>> new = NewLabels(None, Bags.of(csr_array(rows)), np.array([0, 1, 0]), 3)
    >>> new.counts().tolist(), new.summed(rows).tolist()
    ([2, 1, 0], [[1.0, 7.0], [2.0, 5.0], [0.0, 0.0]])
    """

    texts: Bags | None
    points: Bags
    label_of_point: NDArray[np.int64]
    n: int

    def counts(self) -> NDArray[np.int64]:
        """Return how many points each label has."""
        return np.bincount(self.label_of_point, minlength=self.n)

    def summed(self, rows: Any) -> Any:
        """Return the sum of the rows of each label's points, dense or sparse as they are."""
        n_points = len(self.label_of_point)
        where = (self.label_of_point, np.arange(n_points))
        return csr_array((np.ones(n_points, np.float32), where), (self.n, n_points)) @ rows


class NewLabelVectors(Protocol):
    """How a recipe makes the vectors of a label, one a head, of what is known of it."""

    def reads_texts(self, scorer: ChangeableScorer) -> bool:
        """Return whether a label is known by its text."""
        ...

    def of_new(
        self, scorer: ChangeableScorer, new: NewLabels, means: Floats, n_threads: int
    ) -> list[Floats]:
        """Return unit rows (n, dimension) for each head; rows of zeros say nothing.

        Parameters
        ----------
        scorer : BlendedScorer or EncodedScorer
            As it was trained.
        new : NewLabels
        means : float32 (n, dimension)
            Directions of the means of the labels' points; zeros where there are none.
        n_threads : int
        """
        ...


class SharedSpaceVectors:
    """The default recipe's: the free vector is the mean of the points, the other that and the text.

    See `LearntSpace.heads`.

    Examples
    --------
    A new label without points is what its text says; the means of its points are zeros.

    >>> import numpy as np
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.expanded import expanded
    >>> from longtail.label_changes.new_labels import NewLabels, SharedSpaceVectors
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = LongtailClassifier(dimension=32).fit(texts, labels).predictor_
    >>> new = NewLabels(model.bags(["red car"]), model.bags([]), np.zeros(0, int), 1)
    >>> none = np.zeros((1, 32), np.float32)
    >>> first, means, texts = SharedSpaceVectors().of_new(expanded(model.scorer), new, none, 1)
    >>> np.allclose(first, texts, atol=1e-5), means.any().item()
    (True, False)
    """

    def reads_texts(self, scorer: ChangeableScorer) -> bool:
        """See `NewLabelVectors.reads_texts`."""
        return scorer.reads_label_texts

    def of_new(
        self, scorer: ChangeableScorer, new: NewLabels, means: Floats, n_threads: int
    ) -> list[Floats]:
        """See `NewLabelVectors.of_new`."""
        if new.texts is None or not scorer.reads_label_texts:
            return [means]
        texts = scorer.encoder.encode(new.texts, n_threads)
        return [unit_rows(means + texts), means, texts]


class SiameseVectors:
    """E(z), the encoder's vector of the text, and in Module II the direction of that plus points'.

    A label without points has no free vector. DEXA's auxiliary vectors are for the labels that they
    were trained with: those of new labels' clusters would take these further from their points.
    Where a model has learnt from ready-made features, those of a label's points stand for its text.

    Examples
    --------
    A new label without points is what its text says, in every head.

    >>> import numpy as np
    >>> from longtail.label_changes.new_labels import NewLabels
    >>> from longtail.label_changes.new_labels import SiameseVectors
    >>> from longtail.recipes.siamesexml import SiameseXML
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = SiameseXML(dimension=16).fit(texts, labels).predictor_
    >>> new = NewLabels(model.bags(["red car"]), model.bags([]), np.zeros(0, int), 1)
    >>> none = np.zeros((1, 16), np.float32)
    >>> vectors = SiameseVectors().of_new(model.scorer, new, none, 1)
    >>> [np.allclose(of_head, vectors[-1], atol=1e-5) for of_head in vectors]
    [True, True]
    """

    def reads_texts(self, scorer: ChangeableScorer) -> bool:  # noqa: ARG002 - all of them do
        """See `NewLabelVectors.reads_texts`."""
        return True

    def of_new(
        self, scorer: ChangeableScorer, new: NewLabels, means: Floats, n_threads: int
    ) -> list[Floats]:
        """See `NewLabelVectors.of_new`."""
        read = _points_as_texts(new) if new.texts is None else new.texts
        texts = scorer.encoder.encode(read, n_threads)
        return [unit_rows(texts + means), *[texts] * (len(scorer.heads) - 1)]


def _points_as_texts(new: NewLabels) -> Bags:
    """Return the summed features of each label's points, in the place of its text."""
    n_columns = int(new.points.columns.max(initial=-1)) + 1
    return Bags.of(unit_rows(new.summed(new.points.matrix(n_columns))))


def add_labels(
    scorer: Changed, new: NewLabels, vectors: NewLabelVectors, n_threads: int
) -> Changed:
    """Return the scorer with new labels behind those that it has.

    A new label starts as training would start it: its vectors are what the recipe makes of its text
    and of its points. Its points vote, its text is matched, and its points' texts link it. It
    counts as common as the mean label, or as it has points if those are more, and has the bias that
    labels as common have. Its linear classifier is undecided: to train one takes the training
    points.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.expanded import expanded
    >>> from longtail.label_changes.new_labels import NewLabels, SharedSpaceVectors, add_labels
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> known = model.bags(["red car"])
    >>> new = NewLabels(texts=known, points=known, label_of_point=np.array([0]), n=1)
    >>> scorer = add_labels(expanded(model.scorer), new, SharedSpaceVectors(), n_threads=1)
    >>> scorer.top_k(model.bags(["red car", "old car"]), 1)[0].tolist()
    [[2], [1]]
    """
    points = scorer.encoder.encode(new.points, n_threads)
    commonness = _commonness(scorer, new.counts())
    means = unit_rows(new.summed(points))
    rows = vectors.of_new(scorer, new, means, n_threads)
    first, *others = scorer.heads
    _check_vectors(rows, len(scorer.heads), means.shape)
    bias = _as_common_ones(scorer, first.bias, commonness)
    added = LabelHead.of(rows[0], bias, first.scale)
    search = _longer_search(scorer.search, added, points, new, n_threads)
    heads = [LabelHead.of_search(search, np.concatenate([first.bias, bias]), first.scale)]
    heads += [
        _longer_head(scorer, head, new_vectors, commonness)
        for head, new_vectors in zip(others, rows[1:], strict=True)
    ]
    relations = scorer.relations
    tail_weights = _as_common_ones(scorer, scorer.tail_weights, commonness)
    return replace(
        scorer,
        search=search,
        heads=tuple(heads),
        relations=None if relations is None else _longer_relations(relations, new, n_threads),
        linear=SparseLabelVectors.joined([scorer.linear, _undecided(scorer.linear, new.n)]),
        commonness=np.concatenate([scorer.commonness, commonness]),
        tail_weights=np.concatenate([scorer.tail_weights, tail_weights]),
    )


def _check_vectors(found: Any, n_heads: int, shape: tuple[int, ...]) -> None:
    """Raise InputError unless `NewLabelVectors.of_new` returned unit rows for each head."""
    shapes = [np.shape(rows) for rows in found] if isinstance(found, list | tuple) else named(found)
    if shapes != [shape] * n_heads:
        raise InputError(
            f"`of_new` must return a list of {n_heads} arrays of {shape}, one for each head of "
            f"the model, got {shapes}."
        )
    if not all(isinstance(rows, np.ndarray) and rows.dtype.kind == "f" for rows in found):
        raise InputError(f"`of_new` must return arrays of float32, got {found!r:.200}.")
    if not all(np.isfinite(rows).all() for rows in found):
        raise InputError("`of_new` returned NaN, or infinite numbers.")
    lengths = np.concatenate([np.linalg.norm(rows, axis=1) for rows in found])
    if ((np.abs(lengths - 1) > MOST_OFF_UNIT) & (lengths > MOST_OFF_UNIT)).any():
        raise InputError(
            f"`of_new` must return rows of length 1, or of zeros, got lengths from "
            f"{lengths.min():.3g} to {lengths.max():.3g}. Divide each row by its length."
        )


def _commonness(scorer: Blend, counts: NDArray[np.int64]) -> Floats:
    """Return how common new labels pass for: as their points say, or else as the mean label."""
    known = np.expm1(scorer.commonness[scorer.commonness > 0])
    mean = float(known.mean()) if len(known) else 1.0
    return np.asarray(np.log1p(np.maximum(counts, mean)), np.float32)


def _as_common_ones(scorer: Blend, values: Floats, commonness: Floats) -> Floats:
    """Return what a straight line through the trained labels' values says of new labels."""
    trained = scorer.commonness > 0
    design = np.stack([scorer.commonness[trained], np.ones(trained.sum(), np.float32)], axis=1)
    if not (np.isfinite(scorer.commonness).all() and np.isfinite(values[trained]).all()):
        raise ModelFolderError(
            f"The model is damaged: its labels have NaN, or infinite numbers. {RETRAIN}"
        )
    slope, level = np.linalg.lstsq(design, values[trained], rcond=None)[0]
    line: Floats = slope * commonness + level
    return line.astype(np.float32)


def _longer_head(scorer: Blend, head: LabelHead, vectors: Floats, commonness: Floats) -> LabelHead:
    """Return a head that knows the new labels too."""
    bias = _as_common_ones(scorer, head.bias, commonness)
    added = LabelHead.of(vectors, bias, head.scale, RowStore.of(head.rows))
    places = np.where(added.row_of_label < 0, -1, added.row_of_label + len(head.rows.values))
    return replace(
        head,
        rows=joined_rows(head.rows, added.rows),
        row_of_label=np.concatenate([head.row_of_label, places]),
        bias=np.concatenate([head.bias, bias]),
    )


def _longer_search(
    search: CandidateSearch, head: LabelHead, points: Floats, new: NewLabels, n_threads: int
) -> CandidateSearch:
    """Return a search over all label vectors, of which `head` has the new ones, and all points."""
    point_index, labels_of_points = search.point_index, new.label_of_point
    if not search.sizes.n_near_points:  # then none is asked for its labels
        points, labels_of_points = points[:0], labels_of_points[:0]
    if len(points):
        point_index = with_more_rows(
            point_index,
            points,
            None,
            n_neighbours=N_POINT_NEIGHBOURS,
            beam_size=search.sizes.beam_size,
            n_threads=n_threads,
        )
    rows = search.training_rows
    if rows is not None:  # the new points are none of those
        rows = np.concatenate([rows, np.full(len(points), -1, np.int32)])
    known = np.flatnonzero(head.row_of_label >= 0)
    bias = head.bias_of_cosine()[known] if len(search_bias_of(search.label_index)) else None
    first = len(search.label_ids) + 1
    return replace(
        search,
        label_index=with_more_rows(
            search.label_index,
            head.vectors[known],
            bias,
            n_neighbours=N_LABEL_NEIGHBOURS,
            beam_size=search.sizes.beam_size,
            n_threads=n_threads,
        ),
        label_of_row=np.concatenate([search.label_of_row, search.n_labels + known]),
        point_index=point_index,
        label_starts=np.concatenate([search.label_starts, first + np.arange(len(points))]),
        label_ids=np.concatenate([search.label_ids, search.n_labels + labels_of_points]),
        n_labels=search.n_labels + new.n,
        training_rows=rows,
    )


def _undecided(trained: SparseLabelVectors, n: int) -> SparseLabelVectors:
    """Return linear classifiers that answer the same to everything; 0 where those trained do."""
    is_trained = len(trained.weights) > 0
    level = UNDECIDED if is_trained else 0
    return replace(SparseLabelVectors.empty(n), bias=np.full(n, level, np.float32))


def _longer_relations(relations: LabelRelations, new: NewLabels, n_threads: int) -> LabelRelations:
    """Return what the texts of all labels say, and what the new points link the new labels to."""
    texts = SparseLabelVectors.joined([relations.texts, _texts_of(new)])
    starts, labels, weights = postings_of(texts, len(relations.posting_starts) - 1)
    unlinked = np.full(new.n, relations.link_starts[-1])
    longer = replace(
        relations,
        texts=texts,
        posting_starts=starts,
        posting_labels=labels,
        posting_weights=weights,
        link_starts=np.concatenate([relations.link_starts, unlinked]),
        taken=np.concatenate([relations.taken, np.zeros(new.n, np.float32)]),
    )
    matched = longer.matches(new.points, n_threads).by_point(texts.n_labels)
    starts, labels, weights = kept_links(new.summed(matched))
    return replace(
        longer,
        link_starts=np.concatenate([relations.link_starts[:-1], unlinked[:1] + starts]),
        link_labels=np.concatenate([relations.link_labels, labels]),
        link_weights=np.concatenate([relations.link_weights, weights]),
    )


def _texts_of(new: NewLabels) -> SparseLabelVectors:
    """Return the bags of the new labels' texts as sparse label vectors; empty ones without."""
    if new.texts is None:
        return SparseLabelVectors.empty(new.n)
    starts, columns, values = new.texts[:3]
    return SparseLabelVectors(starts.astype(np.int64), columns, values, np.zeros(new.n, np.float32))
