"""What a predictor is made of, taken out of a model folder again."""

from __future__ import annotations

import math
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from longtail import __version__
from longtail.blend.candidates import SearchSizes
from longtail.blend.encoded import EncodedScorer
from longtail.blend.relations import RelationSizes
from longtail.compiled.blended import BlendedScorer
from longtail.compiled.checks import check_search_sizes
from longtail.compiled.scorer import CompiledScorer
from longtail.data.label_space import LabelSpace
from longtail.data.point_input import PointInput
from longtail.data.vectorizer import TextVectorizer
from longtail.errors import RETRAIN, InputError, ModelFolderError, named
from longtail.held_arrays import held_by
from longtail.named_parts import without_prefix
from longtail.own_classes import require_kept_methods
from longtail.scorers.annexml import AnnexMLScorer
from longtail.scorers.calibration import Calibration
from longtail.scorers.deepxml import DeepXMLScorer
from longtail.scorers.energy import EnergyScorer
from longtail.scorers.energy_reranker import EnergyReranker, ShortlistEnergy
from longtail.scorers.ensemble import EnsembleScorer
from longtail.scorers.forest import ForestScorer
from longtail.scorers.hashed_labels import HashedLabelsScorer
from longtail.scorers.inner_transformers import sharing_transformers
from longtail.scorers.joined_features import JoinedTreeScorer
from longtail.scorers.label_attention import LabelAttentionScorer
from longtail.scorers.label_tree import LabelTreeScorer
from longtail.scorers.one_vs_all import OneVsAllScorer
from longtail.scorers.one_vs_rest import OneVsRestScorer
from longtail.scorers.probabilistic_tree import ProbabilisticTreeScorer
from longtail.scorers.slice import SliceScorer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from longtail.model_folder import ModelFolder
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Scorer

__all__ = ["SCORERS", "PredictorParts", "check_kept", "parts_in", "scorer_from"]


class PredictorParts(TypedDict):
    """The parameters of `longtail.predictor.Predictor`, which says what they are."""

    scorer: Scorer
    label_space: LabelSpace
    vectorizer: TextVectorizer | None
    n_features: int
    calibration: Calibration
    train_label_counts: NDArray[np.int64]
    description: Mapping[str, Any]
    reads: PointInput
    documents: Mapping[str, Mapping[str, Any]]


def parts_in(folder: ModelFolder) -> PredictorParts:
    """Return what `Predictor.save` wrote, on the memory-mapped arrays of a folder.

    Raises
    ------
    ModelFolderError
        If a part is missing or damaged, or the parts do not fit each other.
    """
    try:
        return _parts_in(folder)
    except ModelFolderError as error:
        if folder.version == __version__:
            raise
        raise ModelFolderError(
            f"{error} It was written by longtail {folder.version}, and this is {__version__}."
        ) from error


def _parts_in(folder: ModelFolder) -> PredictorParts:
    """See `parts_in`."""
    manifest, arrays = folder.manifest, folder.arrays
    try:
        if manifest["scorer"]["kind"] != "compiled":
            # Kernels of other recipes trust ids, which damaged arrays would lead out of the tables.
            # The default recipe's compare every id: its tables need not be read before their use.
            folder.check_arrays()
        parts = PredictorParts(
            scorer=scorer_from(manifest["scorer"], arrays),
            label_space=LabelSpace.from_arrays(
                manifest["n_labels"],
                without_prefix("labels/", arrays),
                texts_are_names=manifest["label_texts_are_names"],
            ),
            vectorizer=_vectorizer_from(manifest["vectorizer"], arrays),
            n_features=manifest["n_features"],
            calibration=_calibration_from(manifest["calibration"]),
            train_label_counts=np.asarray(arrays["labels/train_counts"], np.int64),
            description=_description_from(manifest["description"]),
            reads=PointInput.from_config(manifest["reads"]),
            documents=folder.documents(),
        )
        _check_sizes(parts)
    except ModelFolderError:
        raise
    except InputError as error:
        raise ModelFolderError(
            f"The parts of {folder.path} do not fit each other: {error} {RETRAIN}"
        ) from error
    except (KeyError, TypeError) as error:
        raise ModelFolderError(
            f"{folder.path} lacks a part that models of this version have, or has another: "
            f"{error}. It may be of an earlier version. {RETRAIN}"
        ) from error
    except (ValueError, AttributeError) as error:
        raise ModelFolderError(
            f"{folder.path} has a part that models of this version have not: {error}. It may be "
            "of a later version. Upgrade longtail, or train the model again."
        ) from error
    return parts


def _vectorizer_from(config: Mapping[str, Any] | None, arrays: Arrays) -> TextVectorizer | None:
    """Return the vectoriser that a model folder describes; None of a model of features."""
    if config is None:
        return None
    return TextVectorizer.from_arrays(config, without_prefix("vectorizer/", arrays))


def _calibration_from(config: Mapping[str, Any]) -> Calibration:
    """Return the calibration that a model folder describes."""
    calibration = Calibration(**config)
    for name in ("slope", "intercept", "first", "first_slope"):
        number = getattr(calibration, name)
        if not (isinstance(number, int | float) and math.isfinite(number)):
            raise TypeError(f"`{name}` of the calibration is {number!r:.40}, which is no number")
    return calibration


def _description_from(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a model folder says of the training, of which others read some."""
    for name, kind in (("recipe", str), ("n_points", int), ("settings", dict)):
        found = description.get(name, kind())  # a predictor made by hand may say nothing
        if not isinstance(found, kind):
            raise TypeError(f"`{name}` of the description is {found!r:.40}, no {kind.__name__}")
    return description


def _check_sizes(parts: PredictorParts) -> None:
    """Raise InputError unless all parts of a model are for the same features and labels.

    A vectoriser of more tokens than the default recipe's tables have would lead out of them.
    """
    scorer, vectorizer = parts["scorer"], parts["vectorizer"]
    n_features = {parts["reads"].width(parts["n_features"])}
    n_labels = {parts["label_space"].n_labels, len(parts["train_label_counts"])}
    if vectorizer is not None:
        n_features.add(vectorizer.n_features_)
    if isinstance(scorer, CompiledScorer):
        n_features.add(scorer.n_tokens)
        n_labels.add(scorer.n_labels)
    if len(n_features) > 1 or len(n_labels) > 1:
        raise InputError(
            f"they are for {' and '.join(map(str, sorted(n_features)))} features, "
            f"{' and '.join(map(str, sorted(n_labels)))} labels."
        )


def scorer_from(config: Mapping[str, Any], arrays: Arrays) -> Scorer:
    """Return the scorer that a model folder describes."""
    return SCORERS[config["kind"]](config, arrays)


def check_kept(scorer: Scorer, config: Mapping[str, Any]) -> None:
    """Raise InputError unless a model folder with this scorer can be opened again.

    Examples
    --------
    >>> from longtail.restoring import check_kept
    >>> check_kept("a scorer of one's own", {"kind": "own"})
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: The scorer is a str, which a model folder could not be opened ...
    """
    if config.get("kind") not in SCORERS:
        raise InputError(
            f"The scorer is {named(scorer)}, which a model folder could not be opened with: it "
            "holds arrays and no code. Return one of those in longtail.scorers, or keep the model "
            "in memory."
        )
    for part in held_by(scorer, _is_kept):
        if _is_kept(part):
            answering = "top_k" if part is scorer else "encode"
            remedy = "Keep the model in memory, or return another."
            require_kept_methods(part, answering, remedy=remedy)


def _is_kept(part: object) -> bool:
    """Tell whether a part of a model has arrays of which a folder makes it again."""
    return hasattr(part, "to_arrays")


def _blend_from(
    kind: type[BlendedScorer | EncodedScorer], config: Mapping[str, Any], arrays: Arrays
) -> BlendedScorer | EncodedScorer:
    """Make a blend again, unless it would look for more than there is memory for."""
    check_search_sizes(SearchSizes(**config["search"]["sizes"]), RelationSizes())
    return kind.from_parts(config, arrays)


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
    energy = without_prefix("reranker-energy/", arrays)
    scorer = scorer_from(config["scorer"], without_prefix("reranked-", arrays))
    return EnergyReranker(scorer, ShortlistEnergy.from_parts(config["energy"], energy))


# What a model folder calls them, and how each is made again.
SCORERS: Mapping[str, Callable[[Mapping[str, Any], Arrays], Scorer]] = MappingProxyType(
    {
        "annexml": AnnexMLScorer.from_parts,
        "blended": partial(_blend_from, BlendedScorer),
        "compiled": CompiledScorer.from_parts,
        "deepxml": DeepXMLScorer.from_parts,
        "encoded": partial(_blend_from, EncodedScorer),
        "energy": EnergyScorer.from_parts,
        "energy-reranked": _reranked_from,
        "ensemble": _ensemble_from,
        "forest": ForestScorer.from_parts,
        "hashed-labels": HashedLabelsScorer.from_parts,
        "joined-tree": JoinedTreeScorer.from_parts,
        "label-attention": LabelAttentionScorer.from_parts,
        "label-tree": LabelTreeScorer.from_parts,
        "one-vs-all": OneVsAllScorer.from_parts,
        "one-vs-rest": OneVsRestScorer.from_parts,
        "probabilistic-tree": ProbabilisticTreeScorer.from_parts,
        "slice": SliceScorer.from_parts,
    }
)
