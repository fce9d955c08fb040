"""A trained default model: candidates, several scores of each, one learned blend; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.classifiers.candidates import CandidateSearch, search_rows_of
from longtail.classifiers.compiled import CompiledScorer
from longtail.classifiers.relations import LabelRelations
from longtail.classifiers.score_network import Evidence, ScoreNetwork, count_sources
from longtail.classifiers.sparse_label_vectors import SparseLabelVectors
from longtail.errors import InputError
from longtail.features.bag_encoder import UnitBagEncoder
from longtail.index.protocol import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.scoring import angle_logits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.classifiers.candidates import Candidates
    from longtail.classifiers.relations import Matches
    from longtail.data.bags import Bags

    Arrays = Mapping[str, NDArray[np.generic]]
    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["BlendedScorer", "LabelHead"]


@dataclass(frozen=True)
class LabelHead:
    """One unit vector a label, scored by angle: ``scale * cos(w_l, x) + b_l``.

    Parameters
    ----------
    vectors : float32 (n_rows, dimension)
        Unit rows.
    row_of_label : int32 (n_labels,)
        Where each label's vector is; -1 for a label of which the head knows nothing but `bias`.
    bias : float32 (n_labels,)
    scale : float

    Raises
    ------
    InputError
        If the arrays do not fit each other.
    """

    vectors: Floats
    row_of_label: Ids
    bias: Floats
    scale: float

    @classmethod
    def of(cls, vectors: Floats, bias: Floats, scale: float) -> LabelHead:
        """Return a head of one row a label; a row of zeros says nothing."""
        every = np.arange(len(vectors), dtype=np.int32)
        return cls(vectors, np.where(vectors.any(axis=1), every, -1), bias, scale)

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held, and refuse those that do not fit."""
        object.__setattr__(self, "vectors", read_only(self.vectors, np.float32))
        object.__setattr__(self, "row_of_label", read_only(self.row_of_label, np.int32))
        object.__setattr__(self, "bias", read_only(self.bias, np.float32))
        rows = self.row_of_label
        if (
            len(rows) != len(self.bias)
            or rows.min(initial=0) < -1
            or rows.max(initial=-1) >= len(self.vectors)
        ):
            raise InputError(
                f"A label head of {len(self.bias)} labels needs the row of each among its "
                f"{len(self.vectors)} vectors, or -1: got {len(rows)} rows from "
                f"{rows.min(initial=0)} to {rows.max(initial=-1)}. Build it again."
            )

    def logits(self, points: Floats, labels: Ids, n_threads: int = 1) -> Floats:
        """Return float32 (n, size) of unit points and labels padded with -1; 0 for padding."""
        logits = np.zeros(labels.shape, np.float32)
        own = (self.vectors, self.row_of_label, self.bias, np.float32(self.scale))
        points, labels = read_only(points, np.float32), read_only(labels, np.int32)

        def work(start: int, stop: int) -> None:
            angle_logits(points, *own, labels, start, stop, logits)

        over_row_chunks(work, len(points), n_threads=n_threads, chunk=256)
        return logits

    @classmethod
    def of_search(cls, search: CandidateSearch, bias: Floats, scale: float) -> LabelHead:
        """Return a head whose vectors are those of the search's label index."""
        vectors, places = search_rows_of(search.label_index)
        row_of_label = np.full(search.n_labels, -1, np.int32)
        row_of_label[search.label_of_row] = places
        return cls(vectors, row_of_label, bias, scale)


@dataclass(frozen=True, kw_only=True)
class BlendedScorer:
    """Find candidates, let every source score them, and blend the scores by a small network.

    The sources are the heads, the linear classifiers, the votes of near training points and, where
    labels have texts, lexical matches and links.

    Parameters
    ----------
    encoder : UnitBagEncoder
    search : CandidateSearch
    heads : tuple of LabelHead
        The first shares its vectors with the label index of the search.
    relations : LabelRelations or None
        None where labels have no texts.
    linear : SparseLabelVectors
        On the bags themselves.
    is_word : bool (n_features,) or None
        Columns that `linear` looks at; None for all.
    commonness : float32 (n_labels,)
        ``log(1 + number of training points)`` of each label.
    tail_weights : float32 (n_labels,)
        Added to the scores: what trades P@k for PSP@k.
    network : ScoreNetwork

    Raises
    ------
    InputError
        If the parts are of different labels, tokens or dimensions.
    """

    encoder: UnitBagEncoder
    search: CandidateSearch
    heads: tuple[LabelHead, ...]
    relations: LabelRelations | None
    linear: SparseLabelVectors
    is_word: NDArray[np.bool_] | None
    commonness: Floats
    tail_weights: Floats
    network: ScoreNetwork

    def __post_init__(self) -> None:
        """Refuse parts that do not fit."""
        n_tokens, dimension = self.encoder.token_vectors.shape
        labels = [len(head.bias) for head in self.heads]
        labels += [self.linear.n_labels, len(self.commonness), len(self.tail_weights)]
        tokens = [] if self.is_word is None else [len(self.is_word)]
        if self.relations is not None:
            labels.append(self.relations.texts.n_labels)
            tokens.append(len(self.relations.posting_starts) - 1)
        dimensions = {head.vectors.shape[1] for head in self.heads}
        if (
            {*labels} != {self.search.n_labels}
            or {*tokens} - {n_tokens}
            or dimensions != {dimension}
        ):
            raise InputError(
                "The parts of a blended model do not belong together: the search has "
                f"{self.search.n_labels} labels, others have {labels}; the encoder has {n_tokens} "
                f"tokens of {dimension} dimensions, others have {tokens} and {sorted(dimensions)}. "
                "Train again."
            )

    @property
    def n_sources(self) -> int:
        """How many scores a candidate has before they are blended."""
        return count_sources(len(self.heads), has_relations=self.relations is not None)

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> tuple[Ids, Floats]:
        """See `Scorer.top_k`."""
        return self.compiled.top_k(bags, k, n_threads)

    @cached_property
    def compiled(self) -> CompiledScorer:
        """The same model as one compiled call, made at the first answer."""
        return CompiledScorer.of(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process."""
        return {name: part for name, part in self.__dict__.items() if name != "compiled"}

    def evidence(self, bags: Bags, n_threads: int = 1) -> Evidence:
        """Return the candidates of each bag and what each source says of them."""
        points = self.encoder.encode(bags, n_threads)
        matches = None if self.relations is None else self.relations.matches(bags, n_threads)
        labels, votes, nearness = self._candidates(points, matches, n_threads)
        sources = [head.logits(points, labels, n_threads) for head in self.heads]
        words = bags if self.is_word is None else bags.kept(self.is_word)
        sources += [self.linear.logits(words, labels, n_threads), votes]
        if self.relations is not None and matches is not None:
            sources.append(self.relations.texts.logits(bags, labels, n_threads))
            sources.append(self.relations.votes(matches, labels, n_threads))
        values = np.stack(sources, axis=1)
        values[np.broadcast_to((labels < 0)[:, None], values.shape)] = 0
        return Evidence(labels, values, nearness, self.commonness)

    def _candidates(self, points: Floats, matches: Matches | None, n_threads: int) -> Candidates:
        """Return what search and relations find."""
        more = np.empty((len(points), 0), np.int32)
        if self.relations is not None and matches is not None:
            linked = self.relations.linked(matches, n_threads)
            more = np.concatenate([matches.labels, linked], axis=1)
        return self.search.find(points, more, n_threads)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        parts: dict[str, Mapping[str, NDArray[np.generic]]] = {
            "encoder": {"token_vectors": self.encoder.token_vectors},
            "search": self.search.to_arrays(),
            "linear": self.linear.to_arrays(),
            "labels": {"commonness": self.commonness, "tail_weights": self.tail_weights},
            "network": self.network.to_arrays(),
        }
        for i, head in enumerate(self.heads):
            own = {} if i == 0 else {"vectors": head.vectors, "row_of_label": head.row_of_label}
            parts[f"head{i}"] = {"bias": head.bias, **own}  # the first shares those of the search
        if self.relations is not None:
            parts["relations"] = self.relations.to_arrays()
        if self.is_word is not None:
            parts["linear"] = {**parts["linear"], "is_word": self.is_word}
        return {
            f"{part}/{name}": array
            for part, arrays in parts.items()
            for name, array in arrays.items()
        }

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {
            "kind": "blended",
            "scales": [head.scale for head in self.heads],
            "search": self.search.config(),
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> BlendedScorer:
        """Make it again from `config` and `to_arrays`, on memory maps as they are."""

        def group(name: str) -> Any:
            prefix = f"{name}/"
            return {k[len(prefix) :]: arrays[k] for k in arrays if k.startswith(prefix)}

        search = CandidateSearch.from_parts(config["search"], group("search"))
        first, *others = config["scales"]
        heads = [LabelHead.of_search(search, group("head0")["bias"], first)]
        for i, scale in enumerate(others, start=1):
            own = group(f"head{i}")
            heads.append(LabelHead(own["vectors"], own["row_of_label"], own["bias"], scale))
        linear, relations = group("linear"), group("relations")
        return cls(
            encoder=UnitBagEncoder(group("encoder")["token_vectors"]),
            search=search,
            heads=tuple(heads),
            relations=LabelRelations.from_arrays(relations) if relations else None,
            is_word=linear.pop("is_word", None),
            linear=SparseLabelVectors(**linear),
            commonness=np.asarray(group("labels")["commonness"], np.float32),
            tail_weights=np.asarray(group("labels")["tail_weights"], np.float32),
            network=ScoreNetwork.from_arrays(group("network")),
        )
