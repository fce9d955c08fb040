"""A trained DeepXML model: from bags of tokens to scored labels, without torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from longtail.classifiers.annexml_scorer import AnnexScorer
from longtail.classifiers.blended import BlendedScorer
from longtail.classifiers.compiled import CompiledScorer
from longtail.classifiers.dense_scorer import DenseScorer
from longtail.classifiers.encoded import EncodedScorer
from longtail.classifiers.energy_inference import EnergyInference
from longtail.classifiers.energy_reranker import EnergyReranker, ShortlistEnergy
from longtail.classifiers.energy_scorer import EnergyScorer
from longtail.classifiers.forest_scorer import ForestScorer
from longtail.classifiers.fusion import PartialScores, ScoreFusion, best_first, fused_top_k
from longtail.classifiers.hashed_labels_scorer import HashedLabelsScorer
from longtail.classifiers.joined_features import JoinedTreeScorer
from longtail.classifiers.label_attention_scorer import LabelAttentionScorer
from longtail.classifiers.label_tree_scorer import LabelTreeScorer
from longtail.classifiers.label_vectors import LabelVectors
from longtail.classifiers.one_vs_all_scorer import OneVsAllScorer
from longtail.classifiers.one_vs_rest_scorer import OneVsRestScorer
from longtail.classifiers.probabilistic_tree import ProbabilisticTreeScorer
from longtail.classifiers.slice_scorer import SliceScorer
from longtail.features.encoder import Encoder, HasTokenVectors, encoder_from
from longtail.named_parts import joined_parts, with_prefix, without_prefix
from longtail.negatives.nearest_labels import LabelShortlister, NearestLabels
from longtail.transfer.transform import Transform, transform_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags

    Arrays = Mapping[str, NDArray[np.generic]]

__all__ = [
    "DeepXMLScorer",
    "EnsembleScorer",
    "HasVectors",
    "KnowsPoints",
    "Ranker",
    "Scorer",
    "scorer_from",
]


class Scorer(Protocol):
    """What a model folder holds and a predictor asks."""

    def top_k(
        self, bags: Bags, k: int, n_threads: int = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the k best labels of each bag and their scores, padded with -1 and -inf."""
        ...

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return all arrays, named ``"group/name"``."""
        ...

    def config(self) -> dict[str, Any]:
        """Return the rest, as JSON values."""
        ...


@runtime_checkable
class HasVectors(Protocol):
    """A scorer that knows labels by vectors, which people may compare."""

    @property
    def dimension(self) -> int:
        """Length of a vector, as numbers."""
        ...

    def vectors_of_labels(self) -> NDArray[np.float32]:
        """Return float32 (n_labels, dimension), a row of zeros for a label without a vector."""
        ...

    def vectors_of_tokens(self) -> NDArray[np.float32] | None:
        """Return float32 (n_features, any dimension); None where tokens have no vectors."""
        ...


@runtime_checkable
class KnowsPoints(Protocol):
    """A scorer that keeps the training points, to search in."""

    def near_points(self, bag: Bags, n: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return at most n training points near one bag, nearest first, and their similarities."""
        ...

    def labels_of_point(self, row: int) -> NDArray[np.int32]:
        """Return the labels of a training point."""
        ...


@dataclass(frozen=True)
class Ranker:
    """An encoder, a transfer block and classifiers: scores given labels of given points."""

    encoder: Encoder
    residual: Transform
    classifier: LabelVectors

    def logits(
        self, bags: Bags, labels: NDArray[np.int32], n_threads: int = 1
    ) -> NDArray[np.float32]:
        """Return float32 (n, size), padded with -inf."""
        features = self.residual.apply(self.encoder.encode(bags, n_threads), n_threads)
        return self.classifier.logits(features, labels, n_threads)

    def to_arrays(self, group: str) -> dict[str, NDArray[np.generic]]:
        """Return all arrays, named ``"group/name"``."""
        return {
            **with_prefix(f"{group}-encoder/", self.encoder.to_arrays()),
            **with_prefix(f"{group}-residual/", self.residual.to_arrays()),
            **with_prefix(f"{group}-classifier/", self.classifier.to_arrays()),
        }

    def config(self) -> dict[str, Any]:
        """Return of what kind the parts are, as JSON values."""
        return {"encoder": self.encoder.config(), "residual": self.residual.config()}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays, group: str) -> Ranker:
        """Make it again, on memory maps as they are."""
        encoder = without_prefix(f"{group}-encoder/", arrays)
        residual = without_prefix(f"{group}-residual/", arrays)
        classifier: dict[str, Any] = without_prefix(f"{group}-classifier/", arrays)
        return cls(
            encoder_from(config.get("encoder", {}), encoder),
            transform_from(config.get("residual", {}), residual),
            LabelVectors(**classifier),
        )


@dataclass(frozen=True, kw_only=True)
class DeepXMLScorer:
    """Log-time prediction (DeepXML paper, section 4).

    Encode, shortlist by the frozen features, transfer, classify the shortlist, re-rank it, and
    fuse: O(D^2 + D log L) a point.

    Parameters
    ----------
    ranker : Ranker
        The first network: its encoder gives the frozen features.
    shortlister : LabelShortlister
    reranker : Ranker or None
    label_clusters : int32 (n_labels,)
        The meta-label of each label, for people to look at.
    fusion : ScoreFusion
    """

    ranker: Ranker
    shortlister: LabelShortlister
    reranker: Ranker | None
    label_clusters: NDArray[np.int32]
    fusion: ScoreFusion

    def top_k(
        self, bags: Bags, k: int, n_threads: int = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `Scorer.top_k`."""
        return fused_top_k(self.partial_scores, self.fusion, bags, k, n_threads)

    @property
    def dimension(self) -> int:
        """See `HasVectors`."""
        return int(self.ranker.classifier.vectors.shape[1])

    def vectors_of_labels(self) -> NDArray[np.float32]:
        """See `HasVectors`: those of the classifiers."""
        return self.ranker.classifier.vectors

    def vectors_of_tokens(self) -> NDArray[np.float32] | None:
        """See `HasVectors`."""
        encoder = self.ranker.encoder
        return encoder.vectors_of_tokens() if isinstance(encoder, HasTokenVectors) else None

    def partial_scores(self, bags: Bags, n_threads: int = 1) -> PartialScores:
        """Return what each part says of each bag's shortlist."""
        features = self.ranker.encoder.encode(bags, n_threads)
        labels, nearness = self.shortlister.query(features, n_threads)
        final = self.ranker.residual.apply(features, n_threads)
        logits = self.ranker.classifier.logits(final, labels, n_threads)
        reranked = np.empty((bags.n_rows, 0), np.float32)
        if self.reranker is not None:
            reranked = self.reranker.logits(bags, labels, n_threads)
        return PartialScores(labels, nearness, logits, reranked)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        arrays = self.ranker.to_arrays("ranker")
        arrays["labels/clusters"] = self.label_clusters
        if self.reranker is not None:
            arrays |= self.reranker.to_arrays("reranker")
        return arrays | with_prefix("shortlist/", self.shortlister.to_arrays())

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {
            "kind": "deepxml",
            "shortlist": asdict(self.shortlister.settings),
            "n_labels": self.shortlister.n_labels,
            "has_reranker": self.reranker is not None,
            "ranker": self.ranker.config(),
            "reranker": None if self.reranker is None else self.reranker.config(),
            "fusion": self.fusion.config(),
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> DeepXMLScorer:
        """Make it again from `config` and `to_arrays`."""
        shortlist = without_prefix("shortlist/", arrays)
        settings = NearestLabels(**config["shortlist"])
        reranker = None
        if config["has_reranker"]:
            reranker = Ranker.from_parts(config.get("reranker", {}), arrays, "reranker")
        return cls(
            ranker=Ranker.from_parts(config.get("ranker", {}), arrays, "ranker"),
            shortlister=LabelShortlister.from_arrays(settings, shortlist, config["n_labels"]),
            reranker=reranker,
            label_clusters=np.asarray(arrays["labels/clusters"], np.int32),
            fusion=ScoreFusion(**config["fusion"]),
        )


@dataclass(frozen=True)
class EnsembleScorer:
    """Several models whose scores are averaged; a label that a model leaves out scores 0 there.

    Astec-3 is three (DeepXML paper, section 5).

    Parameters
    ----------
    members : tuple of Scorer
    n_candidates : int
        Best labels of each member that can be in the answer.
    """

    members: tuple[Scorer, ...]
    n_candidates: int = 100

    def top_k(
        self, bags: Bags, k: int, n_threads: int = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `Scorer.top_k`."""
        found = [
            member.top_k(bags, max(k, self.n_candidates), n_threads) for member in self.members
        ]
        ids = np.concatenate([ids for ids, _ in found], axis=1)
        scores = np.concatenate([scores for _, scores in found], axis=1)
        best, totals = best_first(*_summed(ids, scores), k, n_threads)
        # Divided last: rounding would otherwise part labels whose sums are equal.
        return best, totals / np.float32(len(self.members))

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        members = {f"learner{i}": member.to_arrays() for i, member in enumerate(self.members)}
        return joined_parts(members, "-")

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        members = [member.config() for member in self.members]
        return {"kind": "ensemble", "members": members, "n_candidates": self.n_candidates}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> EnsembleScorer:
        """Make it again from `config` and `to_arrays`."""
        members = (
            scorer_from(member, without_prefix(f"learner{i}-", arrays))
            for i, member in enumerate(config["members"])
        )
        return cls(tuple(members), config["n_candidates"])


def scorer_from(config: Mapping[str, Any], arrays: Arrays) -> Scorer:
    """Return the scorer that a model folder describes."""
    kinds = {
        "annexml": AnnexScorer.from_parts,
        "blended": BlendedScorer.from_parts,
        "compiled": CompiledScorer.from_parts,
        "deepxml": DeepXMLScorer.from_parts,
        "dense-one-vs-all": DenseScorer.from_parts,
        "encoded": EncodedScorer.from_parts,
        "energy": EnergyScorer.from_parts,
        "energy-reranked": _reranker_from_parts,
        "ensemble": EnsembleScorer.from_parts,
        "forest": ForestScorer.from_parts,
        "joined-tree": JoinedTreeScorer.from_parts,
        "label-attention": LabelAttentionScorer.from_parts,
        "label-tree": LabelTreeScorer.from_parts,
        "one-vs-rest": OneVsRestScorer.from_parts,
        "probabilistic-tree": ProbabilisticTreeScorer.from_parts,
        "slice": SliceScorer.from_parts,
        "hashed-labels": HashedLabelsScorer.from_parts,
        "one-vs-all": OneVsAllScorer.from_parts,
    }
    make: Any = kinds[config["kind"]]
    scorer: Scorer = make(config, arrays)
    return scorer


def _reranker_from_parts(config: Mapping[str, Any], arrays: Arrays) -> EnergyReranker:
    """Make a re-ranker again, and the scorer that it re-orders."""
    settings = dict(config["energy"])
    inference = EnergyInference(**settings.pop("inference"))
    own: dict[str, Any] = without_prefix("reranker-energy/", arrays)
    energy = ShortlistEnergy(**own, **settings, inference=inference)
    return EnergyReranker(
        scorer_from(config["scorer"], without_prefix("reranked-", arrays)), energy
    )


def _summed(
    ids: NDArray[np.int32], scores: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Add the scores of equal labels of a row; each label stays once, padding at the end."""
    order = np.argsort(np.where(ids < 0, np.iinfo(np.int32).max, ids), axis=1, kind="stable")
    ids = np.take_along_axis(ids, order, axis=1)
    scores = np.where(ids < 0, 0, np.take_along_axis(scores, order, axis=1))
    is_first = np.ones(ids.shape, bool)
    is_first[:, 1:] = ids[:, 1:] != ids[:, :-1]
    flat_starts = np.flatnonzero(is_first.ravel())
    totals = np.zeros(ids.size, np.float32)
    totals[flat_starts] = np.add.reduceat(scores.ravel(), flat_starts)
    kept = is_first & (ids >= 0)
    # Bring the kept labels of each row to its front.
    order = np.argsort(~kept, axis=1, kind="stable")
    kept = np.take_along_axis(kept, order, axis=1)
    ids = np.where(kept, np.take_along_axis(ids, order, axis=1), -1).astype(np.int32)
    totals = np.take_along_axis(totals.reshape(ids.shape), order, axis=1)
    return ids, np.where(kept, totals, -np.inf).astype(np.float32)
