"""A trained blended model without some of its labels: nothing is left of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.sparse import csr_array

from longtail.blend.encoded import EncodedScorer
from longtail.blend.label_head import LabelHead
from longtail.blend.relations import postings_of
from longtail.blend.search_indices import N_LABEL_NEIGHBOURS, N_POINT_NEIGHBOURS
from longtail.compiled.blended import BlendedScorer
from longtail.label_changes.changed_index import with_fewer_rows
from longtail.row_store import some_rows
from longtail.scorers.sparse_label_vectors import SparseLabelVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.candidates import CandidateSearch
    from longtail.blend.relations import LabelRelations

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["keep_labels"]

Changed = TypeVar("Changed", bound=BlendedScorer | EncodedScorer)


def keep_labels(scorer: Changed, kept: NDArray[np.int64], n_threads: int) -> Changed:
    """Return the scorer of some of its labels, which are numbered anew in their order.

    Training points that have no label any more go too: a near one would make the network expect
    votes that do not come.

    Parameters
    ----------
    scorer : BlendedScorer or EncodedScorer
    kept : int64 (n_kept,)
        Ids, ascending.
    n_threads : int

    Examples
    --------
    Label 2 alone is kept, and is label 0 then.

    >>> import numpy as np
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.expanded import expanded
    >>> from longtail.label_changes.kept_labels import keep_labels
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink", "red"], ["vehicle"]] * 10
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> scorer = keep_labels(expanded(model.scorer), np.array([2]), n_threads=1)
    >>> scorer.top_k(model.bags(["old car"]), 3)[0].tolist()
    [[0, -1, -1]]
    """
    search = _kept_search(scorer.search, kept, scorer.commonness[kept], n_threads)
    first, *others = scorer.heads
    heads = [LabelHead.of_search(search, first.bias[kept], first.scale)]
    heads += [_kept_head(head, kept) for head in others]
    return replace(
        scorer,
        search=search,
        heads=tuple(heads),
        relations=None if scorer.relations is None else _kept_relations(scorer.relations, kept),
        linear=_kept_vectors(scorer.linear, kept),
        commonness=scorer.commonness[kept],
        tail_weights=scorer.tail_weights[kept],
    )


def _kept_search(
    search: CandidateSearch, kept: NDArray[np.int64], commonness: Floats, n_threads: int
) -> CandidateSearch:
    """Return a search that finds some labels only, of that commonness."""
    new_ids = _new_ids(search.n_labels, kept)
    label_of_row = new_ids[search.label_of_row]
    rows = np.flatnonzero(label_of_row >= 0)
    starts, labels, _ = _mapped(search.label_starts, search.label_ids, None, new_ids)
    has_labels, training_rows = np.diff(starts) > 0, search.training_rows
    sizes = {"beam_size": search.sizes.beam_size, "n_threads": n_threads}
    return replace(
        search,
        label_index=with_fewer_rows(
            search.label_index, rows, n_neighbours=N_LABEL_NEIGHBOURS, **sizes
        ),
        label_of_row=label_of_row[rows],
        point_index=with_fewer_rows(
            search.point_index,
            np.flatnonzero(has_labels),
            n_neighbours=N_POINT_NEIGHBOURS,
            **sizes,
        ),
        label_starts=np.append(starts[:-1][has_labels], starts[-1]),
        label_ids=labels,
        popular=_filled(new_ids[search.popular], commonness, search.sizes.n_popular),
        n_labels=len(kept),
        training_rows=None if training_rows is None else training_rows[has_labels],
    )


def _kept_head(head: LabelHead, kept: NDArray[np.int64]) -> LabelHead:
    """Return a head of some labels."""
    rows = head.row_of_label[kept]
    is_known = rows >= 0
    row_of_label = np.where(is_known, np.cumsum(is_known) - 1, -1)
    stored = some_rows(head.rows, rows[is_known])
    return LabelHead(stored, row_of_label, head.bias[kept], head.scale)


def _filled(popular: Ids, commonness: Floats, n_popular: int) -> Ids:
    """Return popular labels, -1 where one has gone, with the next ones in the place of those."""
    left = popular[popular >= 0]
    others = np.setdiff1d(np.flatnonzero(commonness), left)
    most_first = others[np.argsort(-commonness[others], kind="stable")]
    return np.concatenate([left, most_first])[:n_popular].astype(np.int32)


def _kept_relations(relations: LabelRelations, kept: NDArray[np.int64]) -> LabelRelations:
    """Return what the texts of some labels say."""
    new_ids = _new_ids(relations.texts.n_labels, kept)
    texts = _kept_vectors(relations.texts, kept)
    # Made anew: a token that was left out of the postings, as of too many labels, may now be rare.
    starts, labels, weights = postings_of(texts, len(relations.posting_starts) - 1)
    links = (relations.link_starts, relations.link_labels, relations.link_weights)
    link_starts, link_labels, link_weights = _mapped(*_taken(*links, kept), new_ids)
    return replace(
        relations,
        texts=texts,
        posting_starts=starts,
        posting_labels=labels,
        posting_weights=weights,
        link_starts=link_starts,
        link_labels=link_labels,
        link_weights=link_weights,
        taken=relations.taken[kept],
    )


def _kept_vectors(vectors: SparseLabelVectors, kept: NDArray[np.int64]) -> SparseLabelVectors:
    """Return the classifiers of some labels."""
    parts = _taken(vectors.starts, vectors.features, vectors.weights, kept)
    return SparseLabelVectors(*parts, vectors.bias[kept])


def _new_ids(n_labels: int, kept: NDArray[np.int64]) -> Ids:
    """Return the new id of each label, -1 for those that go."""
    new_ids = np.full(n_labels, -1, np.int32)
    new_ids[kept] = np.arange(len(kept), dtype=np.int32)
    return new_ids


def _mapped(starts: Any, labels: Ids, weights: Any, new_ids: Ids) -> tuple[Any, Ids, Any]:
    """Return rows of labels, with their weights if any, under their new ids."""
    mapped = new_ids[labels]
    stays = mapped >= 0
    before = np.concatenate([[0], np.cumsum(stays)])
    return before[starts], mapped[stays], None if weights is None else weights[stays]


def _taken(
    starts: NDArray[np.int64], columns: Ids, weights: Floats, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Ids, Floats]:
    """Return some of sparse rows."""
    shape = (len(starts) - 1, int(columns.max(initial=-1)) + 1)
    taken = csr_array((weights, columns, starts), shape)[rows]
    return taken.indptr.astype(np.int64), taken.indices.astype(np.int32), taken.data
