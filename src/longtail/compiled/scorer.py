"""A trained default model as it serves: one compiled call, tables of 32, 16 or 8 bits."""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

import numpy as np

from longtail.blend.candidates import SearchSizes, known_row
from longtail.blend.relations import RelationSizes
from longtail.blend.score_network import count_sources
from longtail.compiled.checks import check_answerer, check_search_sizes, check_training_rows
from longtail.compiled.layout import laid_out, network_laid_out, without_edges
from longtail.compiled.parts import (
    TRAINING_ROWS,
    answerer_from,
    arrays_of,
    dimension_of,
    most_frequent,
    training_rows_from,
)
from longtail.compiled.scratch import count_places, log_ranks_of, new_scratch
from longtail.data.csr import is_within
from longtail.errors import require_one_of
from longtail.kernels.answer import answer_bags, near_rows
from longtail.kernels.answer_text import answer_text
from longtail.kernels.arrays import read_only
from longtail.kernels.further_labels import largest_biases
from longtail.kernels.handle import handle_of
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.sparse_lookup import span_of
from longtail.row_store import RowStore, float_rows, token_vectors_of
from longtail.spares import Spares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.blend.score_network import ScoreNetwork
    from longtail.compiled.blended import BlendedScorer
    from longtail.data.bags import Bags
    from longtail.kernels.answer_parts import Answerer

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["CompiledScorer", "StorageType", "as_storage"]

MOST_HEADS = 3  # what was trained, the means of labels' points, and the labels' texts
NOT_RELATED = RelationSizes(n_likely=0, n_matches=0, n_linked=0)
StorageType = Literal["float32", "float16", "int8"]


class CompiledScorer:
    """Answers by one compiled call a row; any number of threads may use one at once.

    A row is computed the same way alone and in a batch. What is loaded from a folder is not read
    before it is needed; ids that lead out of bounds, in a damaged folder, are passed over.

    Parameters
    ----------
    parts : Answerer
    sizes : SearchSizes
    related : RelationSizes
        All 0 where labels have no texts.
    training_rows : int32 (n_points,) or None
        See `CandidateSearch`: no answer depends on them.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.expanded import expanded
    >>> from longtail.compiled.scorer import CompiledScorer
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> scorer = CompiledScorer.of(expanded(model.scorer), "int8")
    >>> scorer.top_k(model.bags(["wine", ""]), 2)[0].tolist()
    [[0, 1], [-1, -1]]
    """

    def __init__(
        self,
        parts: Answerer,
        sizes: SearchSizes,
        related: RelationSizes,
        training_rows: Ids | None = None,
    ) -> None:
        check_answerer(parts)
        check_training_rows(training_rows, len(parts.point_starts) - 1)
        self.parts = parts
        self.sizes = sizes
        self.related = related
        self.training_rows = training_rows
        self._model = _handle_of(parts)
        self._spares: Spares[Any] = Spares()
        self._wider: tuple[bytes, CompiledScorer] | None = None

    @classmethod
    def of(
        cls,
        scorer: BlendedScorer,
        storage: StorageType = "float32",
        n_threads: int = 1,
        like: CompiledScorer | None = None,
        *,
        is_last: bool = False,
    ) -> Self:
        """Lay a trained model out for serving.

        Parameters
        ----------
        scorer : BlendedScorer
        storage : {"float32", "float16", "int8"}
            How vectors and weights are kept; int8 with one scale a row, and 4 bits a number for
            tokens and training points.
        n_threads : int
        like : CompiledScorer or None
            What `scorer` was expanded from, of the same `storage`: the 4-bit codes of labels and
            points keep their steps, and so are the same as before. Vectors that were cut to a step
            are longer, so one that is made anew would be larger each time.
        is_last : bool
            Nobody else needs `scorer`, which is left without its largest sparse parts: each is
            freed once it is laid out.

        Raises
        ------
        InputError
            If there is no such `storage`.
        """
        store = RowStore(as_storage(storage), n_threads)
        steps = (None, None) if like is None else (like.parts.labels.step, like.parts.points.step)
        related = NOT_RELATED if scorer.relations is None else scorer.relations.sizes
        tokens = scorer.encoder.stored(store)
        parts = laid_out(scorer, tokens, store, related, steps, is_last=is_last)
        return cls(parts, scorer.search.sizes, related, scorer.search.training_rows)

    @property
    def storage(self) -> StorageType:
        """How vectors and weights are kept."""
        return as_storage(RowStore.of(self.parts.tokens).dtype)

    @property
    def n_tokens(self) -> int:
        """Number of tokens that a bag may be of."""
        return len(self.parts.tokens.values)

    @property
    def n_labels(self) -> int:
        """Number of labels, also of those that are never answered."""
        return len(self.parts.commonness)

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> tuple[Ids, Floats]:
        """See `longtail.scorers.protocols.Scorer.top_k`.

        Candidates come first. Where `k` is more than these, labels follow that the search has met,
        or whose texts are like the bag's, then the most frequent of those with training points, at
        most 10,000.
        """
        return self._answers(self._model_for(k), bags, k, n_threads)

    def candidates(self, bags: Bags, n_threads: int = 1) -> tuple[Ids, Floats]:
        """Return what the network has scored of each bag, (n, width), best first."""
        return self._answers(self._model, bags, self.width, n_threads)

    def _answers(self, model: Any, bags: Bags, k: int, n_threads: int) -> tuple[Ids, Floats]:
        """Return the k best labels of each bag and their scores."""
        ids = np.empty((bags.n_rows, k), np.int32)
        scores = np.empty((bags.n_rows, k), np.float32)
        points = bags.for_kernels()[:3]

        def work(start: int, stop: int) -> None:
            scratch = self._spares.taken(self._new_scratch)
            answer_bags(model, scratch, *points, start, stop, ids, scores)
            self._spares.keep(scratch)

        over_row_chunks(work, bags.n_rows, n_threads=n_threads, chunk=256)
        return ids, scores

    def top_k_of_one(self, columns: Ids, values: Floats, k: int) -> tuple[Ids, Floats]:
        """Return ids and scores (1, k) of one bag: the same numbers as `top_k`, sooner."""
        ids, scores = np.empty((1, k), np.int32), np.empty((1, k), np.float32)
        row_starts = np.array([0, len(columns)], np.int32)
        for array in (row_starts, columns, values):
            array.flags.writeable = False  # kernels are compiled for what memory maps are
        scratch = self._spares.taken(self._new_scratch)
        answer_bags(self._model_for(k), scratch, row_starts, columns, values, 0, 1, ids, scores)
        self._spares.keep(scratch)
        return ids, scores

    def answer_text(
        self,
        vocabulary: Any,
        room: Any,
        codes: NDArray[np.uint32],
        curve: tuple[float, float, float, float],
        k: int,
    ) -> tuple[Ids, Floats]:
        """Return ids and probabilities (1, k) of one text; see `OneText`, which has the rest."""
        ids, probabilities = np.empty((1, k), np.int32), np.empty((1, k), np.float32)
        scratch = self._spares.taken(self._new_scratch)
        model = self._model_for(k)
        answer_text(vocabulary, model, scratch, room, codes, *curve, ids, probabilities)
        self._spares.keep(scratch)
        return ids, probabilities

    @property
    def dimension(self) -> int:
        """See `HasVectors`."""
        return dimension_of(self.parts)

    def vectors_of_labels(self) -> Floats:
        """See `HasVectors`: those of the first head, as they are stored."""
        head = self.parts.heads[0]
        vectors = float_rows(head.rows)[head.row_of_label]
        vectors[head.row_of_label < 0] = 0
        return vectors

    def vectors_of_tokens(self) -> Floats:
        """See `HasVectors`, as they are stored."""
        return token_vectors_of(self.parts.tokens, self.dimension)

    @property
    def width(self) -> int:
        """Most candidates that a point can have."""
        return len(self.parts.network.log_ranks)

    def finding_also(self, labels: Ids) -> CompiledScorer:
        """Return the same model, on the same tables, that scores some labels for every point.

        The last one is kept, with its scratch: most who allow some labels allow the same again.
        """
        key = labels.tobytes()
        kept = self._wider  # once: another thread may put its own there
        if kept is None or kept[0] != key:
            ranks = log_ranks_of(self.width + len(labels))
            wider = self._with(
                popular=read_only(np.concatenate([self.parts.popular, labels]), np.int32),
                network=self.parts.network._replace(log_ranks=ranks),
            )
            self._wider = kept = key, wider
        return kept[1]

    def near_points(self, bag: Bags, n: int) -> tuple[Ids, Floats]:
        """See `KnowsPoints`; at most as many as the beam is long."""
        ids, similarities = np.empty(n, np.int32), np.empty(n, np.float32)
        _, columns, values, *_ = bag.for_kernels()
        scratch = self._spares.taken(self._new_scratch)
        n_found = near_rows(self._model, scratch, columns, values, ids, similarities)
        self._spares.keep(scratch)
        return ids[:n_found], similarities[:n_found]

    def labels_of_point(self, row: int) -> Ids:
        """See `KnowsPoints`; of a damaged file, those that there are."""
        starts, labels = self.parts.point_starts, self.parts.point_labels
        if not 0 <= row < len(starts) - 1:
            return labels[:0]
        first, after = span_of(starts, row, len(labels))
        of_point = labels[first:after]
        return of_point if is_within(of_point, 0, self.n_labels) else of_point[:0]

    def training_row_of(self, point: int) -> int | None:
        """See `KnowsPoints`."""
        return known_row(self.training_rows, point)

    def with_network(self, network: ScoreNetwork) -> CompiledScorer:
        """Return the same model, on the same tables, that blends scores by another network.

        Raises
        ------
        InputError
            If the network was learnt from another number of sources.
        """
        has_relations = bool(self.parts.has_relations)
        network.check_sources(count_sources(len(self.parts.heads), has_relations=has_relations))
        return self._with(network=network_laid_out(network, self.width))

    def with_further_scales(self, scale: float, text_scale: float) -> CompiledScorer:
        """Return the same model, on the same tables, whose further labels have other scales.

        See `longtail.blend.further_scale`.
        """
        further, of_texts = np.float32(scale), np.float32(text_scale)
        return self._with(further_scale=further, further_text_scale=of_texts)

    def with_exact_search(self) -> CompiledScorer:
        """Return the same model, on the same tables, that compares each point with all labels.

        By their codes, then the best half as many again as are wanted by their vectors.
        """
        return self._with(labels=without_edges(self.parts.labels))

    def _with(self, **changed: Any) -> CompiledScorer:
        """Return a model on the same tables, some of whose small parts are others."""
        parts = self.parts._replace(**changed)
        other = CompiledScorer(parts, self.sizes, self.related, self.training_rows)
        other._n_places = self._n_places
        return other

    def _model_for(self, k: int) -> Any:
        """Return the handle of a model that answers so many labels.

        Popular labels are candidates of every point, so fewer labels need no others.
        """
        return self._model if k <= len(self.parts.popular) else self._model_of_many

    @cached_property
    def _model_of_many(self) -> Any:
        """A handle of the model that lets further labels follow the candidates."""
        parts, frequent = self.parts, most_frequent(self.parts.commonness)
        node_bias = np.empty(len(parts.labels.member_starts) - 1, np.float32)
        largest_biases(parts.labels, parts.label_of_row, parts.heads[0].bias, node_bias)
        node_bias = read_only(node_bias, np.float32)
        return _handle_of(parts._replace(frequent=frequent, node_bias=node_bias))

    @cached_property
    def _n_places(self) -> int:
        """Looked for once: all features are gone through."""
        return count_places(self.parts)

    def _new_scratch(self) -> Any:
        """Return scratch: making it for each query would cost too much."""
        return handle_of(new_scratch(self.parts, self.sizes, self.related, self._n_places))

    def __reduce__(self) -> Any:
        """Leave out what belongs to this process."""
        return type(self).from_parts, (self.config(), self.to_arrays())

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `longtail.scorers.protocols.Scorer.to_arrays`."""
        rows = {} if self.training_rows is None else {TRAINING_ROWS: self.training_rows}
        return arrays_of(self.parts) | rows

    def config(self) -> dict[str, Any]:
        """See `longtail.scorers.protocols.Scorer.config`."""
        return {
            "kind": "compiled",
            "storage": self.storage,
            "scales": [float(head.scale) for head in self.parts.heads],
            "further_scale": float(self.parts.further_scale),
            "further_text_scale": float(self.parts.further_text_scale),
            "sizes": asdict(self.sizes),
            "related": asdict(self.related),
            "has_relations": bool(self.parts.has_relations),
        }

    @classmethod
    def from_parts(
        cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[np.generic]]
    ) -> CompiledScorer:
        """Make it again from `config` and `to_arrays`, on memory maps as they are."""
        scales = [float(scale) for scale in config["scales"]]
        further = float(config["further_scale"]), float(config["further_text_scale"])
        parts = answerer_from(arrays, scales, further, has_relations=config["has_relations"])
        sizes, related = SearchSizes(**config["sizes"]), RelationSizes(**config["related"])
        check_search_sizes(sizes, related)
        return cls(parts, sizes, related, training_rows_from(arrays))


def as_storage(name: str) -> StorageType:
    """Return the way to keep numbers that has this name, or raise InputError.

    Examples
    --------
    >>> from longtail.compiled.scorer import as_storage
    >>> as_storage("i8")
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: storage must be one of 'float32', 'float16', 'int8', got 'i8'.
    """
    require_one_of("storage", name, get_args(StorageType))
    return cast("StorageType", name)


def _handle_of(parts: Answerer) -> Any:
    """Return a handle, always with as many heads: else code is compiled for each number of them."""
    filled = parts.heads + parts.heads[:1] * (MOST_HEADS - len(parts.heads))
    return handle_of(parts._replace(heads=filled))
