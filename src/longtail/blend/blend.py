"""What blended models share: candidates, what each source says of them, and the blend; no torch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.blend.candidates import CandidateSearch
from longtail.blend.evidence import Evidence
from longtail.blend.label_head import LabelHead
from longtail.blend.relations import LabelRelations
from longtail.blend.score_network import ScoreNetwork, count_sources
from longtail.errors import InputError
from longtail.metrics.propensity import inverse_propensities_in
from longtail.named_parts import joined_parts, without_prefix
from longtail.row_store import AS_THEY_ARE
from longtail.scorers.sparse_label_vectors import SparseLabelVectors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.blend.candidates import Candidates
    from longtail.blend.matches import Matches
    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays

    Floats = NDArray[np.float32]

__all__ = ["Blend"]


@dataclass(frozen=True, kw_only=True)
class Blend:
    """Find candidates, let every source score them, and blend the scores by a small network.

    The sources are the heads, the linear classifiers, the votes of near training points and, where
    labels have texts, lexical matches and links. The vector of a point is what scorers add.

    Parameters
    ----------
    search : CandidateSearch
    heads : tuple of LabelHead
        The first shares its vectors with the label index of the search.
    further_scale : float
        The scale of the first head where it ranks labels that follow the candidates.
    further_text_scale : float
        How much rare tokens that a point shares with their texts count beside that; 0 for nothing.
    relations : LabelRelations or None
        None where labels have no texts.
    linear : SparseLabelVectors
        On the bags themselves.
    is_read : bool (n_features,) or None
        Which features `linear` looks at; None for all.
    commonness : float32 (n_labels,)
        ``log(1 + number of training points)`` of each label.
    tail_weights : float32 (n_labels,)
        Added to the scores: what trades P@k for PSP@k.
    network : ScoreNetwork

    Examples
    --------
    Label 0 is found by its vector, and by the one training point near by, which votes for it. The
    linear part says nothing yet.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.blend import Blend
    >>> from longtail.blend.candidates import CandidateSearch, SearchSizes
    >>> from longtail.blend.label_head import LabelHead
    >>> from longtail.data.bags import Bags
    >>> unit, sizes = np.eye(3, dtype=np.float32), SearchSizes(n_near_labels=1, n_popular=0)
    >>> labels = csr_array(unit)
    >>> search = CandidateSearch.build(unit, unit, labels, sizes=sizes, seed=0, n_threads=1)
    >>> head = LabelHead.of_search(search, np.zeros(3), scale=10.0)
    >>> blend = Blend.untaught(search, [head], None, labels, tail=0.0)
    >>> evidence = blend.evidence_of(unit[:1], Bags.of(labels[[0]]))
    >>> evidence.labels[0, :1].tolist(), evidence.values[0, :, 0].tolist()  # head, linear, votes
    ([0], [10.0, 0.0, 1.0])
    """

    search: CandidateSearch
    heads: tuple[LabelHead, ...]
    further_scale: float
    further_text_scale: float
    relations: LabelRelations | None
    linear: SparseLabelVectors
    is_read: NDArray[np.bool_] | None
    commonness: Floats
    tail_weights: Floats
    network: ScoreNetwork

    @staticmethod
    def untaught(
        search: CandidateSearch,
        heads: Sequence[LabelHead],
        relations: LabelRelations | None,
        labels: csr_array,
        *,
        tail: float,
    ) -> Blend:
        """Return a blend that answers as its first head does; its linear part says nothing yet.

        Parameters
        ----------
        search : CandidateSearch
        heads : sequence of LabelHead
            The first is that of the search.
        relations : LabelRelations or None
        labels : csr_array (n_points, n_labels)
            Of the training points: how common labels are.
        tail : float
            This times the logarithm of a label's inverse propensity is added to its score.
        """
        counts = np.bincount(labels.indices, minlength=labels.shape[1])
        n_sources = count_sources(len(heads), has_relations=relations is not None)
        return Blend(
            search=search,
            heads=tuple(heads),
            further_scale=heads[0].scale,
            further_text_scale=0.0,
            relations=relations,
            linear=SparseLabelVectors.empty(labels.shape[1]),
            is_read=None,
            commonness=np.log1p(counts).astype(np.float32),
            tail_weights=(tail * np.log(inverse_propensities_in(labels))).astype(np.float32),
            network=ScoreNetwork.of_source(0, n_sources),
        )

    def check_parts(self, dimension: int, n_tokens: int | None = None) -> None:
        """Raise InputError if parts are of other labels, tokens or dimensions than each other.

        Parameters
        ----------
        dimension : int
            Of the points' vectors.
        n_tokens : int or None
            Of the bags; None where the parts alone say.
        """
        labels = [len(head.bias) for head in self.heads]
        labels += [self.linear.n_labels, len(self.commonness), len(self.tail_weights)]
        tokens = [] if self.is_read is None else [len(self.is_read)]
        if self.relations is not None:
            labels.append(self.relations.texts.n_labels)
            tokens.append(len(self.relations.posting_starts) - 1)
        if n_tokens is None:
            n_tokens = tokens[0] if tokens else 0
        dimensions = {head.dimension for head in self.heads}
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

    @property
    def reads_label_texts(self) -> bool:
        """Whether labels have texts, which points are matched with."""
        return self.relations is not None

    @property
    def dimension(self) -> int:
        """Length of the vectors of points and labels, as numbers."""
        return self.heads[0].dimension

    def vectors_of_labels(self) -> Floats:
        """Return those of the first head: see `HasVectors`."""
        return self.heads[0].vectors_of_labels()

    def vectors_of_tokens(self) -> Floats | None:
        """See `HasVectors`; there are none but where a scorer says so."""
        return None

    def evidence_of(self, points: Floats, bags: Bags, n_threads: int = 1) -> Evidence:
        """Return the candidates of points and what each source says of them.

        Parameters
        ----------
        points : float32 (n, dimension)
            Unit vectors.
        bags : Bags
            Of the same points.
        n_threads : int
        """
        matches = None if self.relations is None else self.relations.matches(bags, n_threads)
        labels, votes, nearness = self._candidates(points, matches, n_threads)
        sources = [head.logits(points, labels, n_threads) for head in self.heads]
        read = bags if self.is_read is None else bags.kept(self.is_read)
        sources += [self.linear.logits(read, labels, n_threads), votes]
        source_of_texts = None
        if self.relations is not None and matches is not None:
            source_of_texts = len(sources)
            sources.append(self.relations.texts.logits(bags, labels, n_threads))
            sources.append(self.relations.votes(matches, labels, n_threads))
        values = np.stack(sources, axis=1)
        values[np.broadcast_to((labels < 0)[:, None], values.shape)] = 0
        n_tokens = np.diff(bags.row_starts).astype(np.int32)
        of_points = (labels, values, nearness, self.commonness)
        return Evidence(*of_points, source_of_texts=source_of_texts, n_tokens=n_tokens)

    def _candidates(self, points: Floats, matches: Matches | None, n_threads: int) -> Candidates:
        """Return what search and relations find."""
        more = np.empty((len(points), 0), np.int32)
        if self.relations is not None and matches is not None:
            linked = self.relations.linked(matches, n_threads)
            more = np.concatenate([matches.labels, linked], axis=1)
        return self.search.find(points, more, n_threads)

    def labels_of_point(self, row: int) -> NDArray[np.int32]:
        """See `KnowsPoints`."""
        return self.search.labels_of_point(row)

    def training_row_of(self, point: int) -> int | None:
        """See `KnowsPoints`."""
        return self.search.training_row_of(point)

    def parts(self) -> dict[str, Any]:
        """Return all parts but the encoder, by name."""
        return {field.name: getattr(self, field.name) for field in fields(Blend)}

    def let_go(self, name: str) -> None:
        """Free a part that will not be asked for any more: the blend is without it from now on."""
        object.__delattr__(self, name)

    def parts_to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return all arrays but the encoder's, named ``"group/name"``."""
        parts: dict[str, Mapping[str, NDArray[np.generic]]] = {
            "search": self.search.to_arrays(),
            "linear": self.linear.to_arrays(),
            "labels": {"commonness": self.commonness, "tail_weights": self.tail_weights},
            "network": self.network.to_arrays(),
        }
        for i, head in enumerate(self.heads):
            rows = {} if i == 0 else {"vectors": head.vectors, "row_of_label": head.row_of_label}
            parts[f"head{i}"] = {"bias": head.bias, **rows}  # the first shares those of the search
        if self.relations is not None:
            parts["relations"] = self.relations.to_arrays()
        if self.is_read is not None:
            parts["linear"] = {**parts["linear"], "is_read": self.is_read}
        return joined_parts(parts, "/")

    def parts_config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        return {
            "scales": [head.scale for head in self.heads],
            "further_scale": self.further_scale,
            "further_text_scale": self.further_text_scale,
            "search": self.search.config(),
        }

    @staticmethod
    def parts_from(config: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
        """Return all parts but the encoder, by name, from what the two above have returned."""

        def part(name: str) -> dict[str, Any]:
            return without_prefix(f"{name}/", arrays)

        search = CandidateSearch.from_parts(config["search"], part("search"))
        first, *others = config["scales"]
        heads = [LabelHead.of_search(search, part("head0")["bias"], first)]
        for i, scale in enumerate(others, start=1):
            head = part(f"head{i}")
            rows = AS_THEY_ARE.rows(head.pop("vectors"))
            heads.append(LabelHead(rows, **head, scale=scale))
        linear, relations = part("linear"), part("relations")
        labels = part("labels")
        return {
            "search": search,
            "heads": tuple(heads),
            "further_scale": config["further_scale"],
            "further_text_scale": config["further_text_scale"],
            "relations": LabelRelations.from_arrays(relations) if relations else None,
            "is_read": linear.pop("is_read", None),
            "linear": SparseLabelVectors(**linear),
            "commonness": np.asarray(labels["commonness"], np.float32),
            "tail_weights": np.asarray(labels["tail_weights"], np.float32),
            "network": ScoreNetwork.from_arrays(part("network")),
        }
