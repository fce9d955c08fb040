"""Which trained model a folder holds, made again from its manifest and its arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longtail.blend.encoded import EncodedScorer
from longtail.compiled.blended import BlendedScorer
from longtail.compiled.scorer import CompiledScorer
from longtail.errors import InputError
from longtail.named_parts import without_prefix
from longtail.scorers.annexml import AnnexMLScorer
from longtail.scorers.deepxml import DeepXMLScorer
from longtail.scorers.encoders import sharing_transformers
from longtail.scorers.energy import EnergyScorer
from longtail.scorers.energy_inference import EnergyInference
from longtail.scorers.energy_reranker import EnergyReranker, ShortlistEnergy
from longtail.scorers.ensemble import EnsembleScorer
from longtail.scorers.forest import ForestScorer
from longtail.scorers.hashed_labels import HashedLabelsScorer
from longtail.scorers.joined_features import JoinedTreeScorer
from longtail.scorers.label_attention import LabelAttentionScorer
from longtail.scorers.label_tree import LabelTreeScorer
from longtail.scorers.one_vs_all import OneVsAllScorer
from longtail.scorers.one_vs_rest import OneVsRestScorer
from longtail.scorers.probabilistic_tree import ProbabilisticTreeScorer
from longtail.scorers.slice import SliceScorer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longtail.named_parts import Arrays
    from longtail.predictor import Predictor
    from longtail.scorers.protocols import Scorer

__all__ = ["check_sizes", "checks_all_it_reads", "scorer_from"]


def checks_all_it_reads(config: Mapping[str, Any]) -> bool:
    """Tell whether damaged arrays cannot lead the scorer of a model folder out of its tables.

    The default recipe's kernels compare every id with the table that it points into, so that its
    tables need not be read before they are used. Those of other recipes trust what they are given.
    """
    return bool(config["kind"] == "compiled")


def check_sizes(model: Predictor) -> None:
    """Raise InputError unless all parts of a model are for the same features and labels.

    A vectoriser of more tokens than the default recipe's tables have would lead out of them.
    """
    n_features = {model.reads.width(model.n_features)}
    n_labels = {model.n_labels, len(model.train_label_counts)}
    if model.vectorizer is not None:
        n_features.add(model.vectorizer.n_features_)
    if isinstance(model.scorer, CompiledScorer):
        n_features.add(model.scorer.n_tokens)
        n_labels.add(model.scorer.n_labels)
    if len(n_features) > 1 or len(n_labels) > 1:
        raise InputError(
            f"they are for {' and '.join(map(str, sorted(n_features)))} features, "
            f"{' and '.join(map(str, sorted(n_labels)))} labels."
        )


def scorer_from(config: Mapping[str, Any], arrays: Arrays) -> Scorer:
    """Return the scorer that a model folder describes."""
    kinds = {
        "annexml": AnnexMLScorer.from_parts,
        "blended": BlendedScorer.from_parts,
        "compiled": CompiledScorer.from_parts,
        "deepxml": DeepXMLScorer.from_parts,
        "encoded": EncodedScorer.from_parts,
        "energy": EnergyScorer.from_parts,
        "energy-reranked": _reranked_from,
        "ensemble": _ensemble_from,
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


def _ensemble_from(config: Mapping[str, Any], arrays: Arrays) -> EnsembleScorer:
    """Make an ensemble again, and its members."""
    arrays = dict(arrays)  # what several members have is stored once, and the same object in each
    arrays |= {name: arrays[first] for name, first in config.get("repeated", {}).items()}
    members = (
        scorer_from(member, without_prefix(f"learner{i}-", arrays))
        for i, member in enumerate(config["members"])
    )
    return sharing_transformers(EnsembleScorer(tuple(members), config["n_candidates"]))


def _reranked_from(config: Mapping[str, Any], arrays: Arrays) -> EnergyReranker:
    """Make a re-ranker again, and the scorer that it re-orders."""
    settings = dict(config["energy"])
    inference = EnergyInference(**settings.pop("inference"))
    parts: dict[str, Any] = without_prefix("reranker-energy/", arrays)
    energy = ShortlistEnergy(**parts, **settings, inference=inference)
    scorer = scorer_from(config["scorer"], without_prefix("reranked-", arrays))
    return EnergyReranker(scorer, energy)
