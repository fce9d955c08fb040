"""What parts that somebody else wrote are and hand over, checked where it comes in."""

from __future__ import annotations

from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.classifiers.reranker import Reranker
from longtail.classifiers.shortlisted import ShortlistedOneVsAll
from longtail.data.point_input import InputKind, PointInput
from longtail.errors import InputError, named
from longtail.estimators.limits import check_values_of_part
from longtail.features.bag_encoder import BagEncoder, UnitBagEncoder
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.features.encoder import ENCODERS
from longtail.negatives.nearest_labels import (
    LabelShortlister,
    NearestLabels,
    ShortlistSizes,
    check_shortlister_parts,
)
from longtail.own_classes import require_arguments, require_kept_methods
from longtail.scorers.deepxml import Ranker
from longtail.scorers.label_vectors import LabelVectors
from longtail.siamese.networks import SiameseNetwork
from longtail.surrogates.label_clusters import LabelClusters
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.transfer.block import TransferBlock
from longtail.transfer.bounded_residual import BoundedResidual
from longtail.transfer.residual import SquareLayer
from longtail.transfer.transform import TRANSFORMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch
    from numpy.typing import NDArray

    from longtail.features.architecture import FeatureArchitecture
    from longtail.features.encoder import Encoder
    from longtail.recipes.deepxml import DeepXML, Transfer

__all__ = [
    "check_block",
    "check_classifier",
    "check_encoder",
    "check_fixed_vectors",
    "check_part",
    "check_parts",
    "check_ranker",
    "check_shortlister",
    "check_siamese",
    "check_start",
    "check_transform",
    "check_unit_encoder",
    "checked_features",
    "checked_shortlists",
    "checked_surrogate",
    "checked_vectors",
]

# The seams of DeepXML: what a part must have, and one that is at hand.
SEAMS: Mapping[str, tuple[tuple[str, ...], type]] = MappingProxyType(
    {
        "features": (("reads", "network", "frozen"), BagOfTokens),
        "surrogate": (("learn",), MetaLabelTask),
        "negatives": (("build", "mine"), NearestLabels),
        "transfer": (("block",), BoundedResidual),
        "classifier": (("learn",), ShortlistedOneVsAll),
    }
)

# What a re-ranker's block has besides, where it starts from the first network's.
STARTS = ("start_from",), "a TransferBlock"

# What architectures call how they are trained, and what they start from. All their other whole
# numbers, truth values, tuples and strings decide what is learnt: a new one cannot be forgotten.
OF_TRAINING = ("dropout", "learning_rate", "clip", "fine_tune", "texts_at_once", "weights")

MOST_OFF_UNIT = 1e-2  # how much longer than 1 rounding may make a row


def check_parts(model: DeepXML) -> None:
    """Raise InputError unless each part of a `DeepXML` is an object with the methods of its seam.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.recipes.own_parts import check_parts
    >>> check_parts(DeepXML())
    """
    for seam, (members, example) in SEAMS.items():
        check_part(seam, getattr(model, seam), members, example)
    if not isinstance(model.features.reads, PointInput):
        raise InputError(
            f"`reads` of {type(model.features).__name__} must be a PointInput, got "
            f"{model.features.reads!r}. Return such as PointInput(InputKind.ROWS)."
        )
    if isinstance(model.surrogate, MetaLabelTask):
        check_part("clusters", model.surrogate.clusters, ("assign",), LabelClusters)
    if model.reranker is not None:
        check_part("reranker", model.reranker, ("learn",), Reranker)
    if isinstance(model.reranker, Reranker):
        _check_reranker(model.reranker, model.features)
        _check_transfers(model.reranker, model.transfer)
    if not isinstance(model.prediction_sizes, ShortlistSizes | None):
        raise InputError(
            "prediction_sizes must be an object such as ShortlistSizes(), or None for the "
            "sampler's, "
            f"got {model.prediction_sizes!r}."
        )
    for name in (*SEAMS, "reranker", "prediction_sizes"):
        check_values_of_part(name, getattr(model, name))
    if model.fine_tune and not _takes_network(model.classifier.learn):
        raise InputError(
            "fine_tune trains the features on in Module IV, but the `learn` of "
            f"{type(model.classifier).__name__} takes no `network`. Give it one, as that of "
            "ShortlistedOneVsAll has, or set fine_tune to False."
        )


def _check_reranker(reranker: Reranker, first: FeatureArchitecture) -> None:
    """Raise InputError unless a re-ranker reads what the first network reads, and can start so."""
    own = reranker.architecture
    check_part("the architecture of reranker", own, *SEAMS["features"])
    if own.reads.kind not in {first.reads.kind, InputKind.BAGS}:
        raise InputError(
            f"The re-ranker's {type(own).__name__} reads {own.reads.kind.value}, but features is "
            f"{named(first)}, and points come as {first.reads.kind.value}. Give the re-ranker an "
            "architecture that reads these."
        )
    if reranker.from_first and (type(own) is not type(first) or _sizes(own) != _sizes(first)):
        raise InputError(
            f"The re-ranker starts from the first network, whose features are {_sized(first)}, but "
            f"its own are {_sized(own)}. Pass it the same architecture, or "
            "Reranker(..., from_first=False), which starts it afresh."
        )


def _check_transfers(reranker: Reranker, first: Transfer) -> None:
    """Raise InputError unless a re-ranker's transfer is one, and what it starts from is alike."""
    own = reranker.transfer
    check_part("the transfer of reranker", own, *SEAMS["transfer"])
    if reranker.from_first and type(own) is not type(first):
        raise InputError(
            f"The re-ranker starts from the first network, whose transfer is {named(first)}, but "
            f"its own is {named(own)}, which would make other features of the same numbers. Pass "
            "it the same transfer, or Reranker(..., from_first=False), which starts it afresh."
        )


def check_start(found: Any, model: DeepXML, device: torch.device) -> None:
    """Raise InputError unless the block of a re-ranker can start from what `found` will be.

    It is tried with both as they are before training: else the first network would be trained
    in vain.
    """
    if not (isinstance(model.reranker, Reranker) and model.reranker.from_first):
        return
    block = model.reranker.transfer.block(found.dimension, device)
    check_part("what `block` of the re-ranker's transfer returns", block, *STARTS)
    block.start_from(found.frozen())


def _sized(architecture: FeatureArchitecture) -> str:
    """Return the name of an architecture with its sizes."""
    sizes = (f"{name}={value!r}" for name, value in _sizes(architecture).items())
    return f"{type(architecture).__name__}({', '.join(sizes)})"


def _sizes(architecture: FeatureArchitecture) -> dict[str, Any]:
    """Return the settings of an architecture that decide what it learns, and the size of that."""
    return {
        name: value
        for name, value in getattr(architecture, "__dict__", {}).items()
        if name not in OF_TRAINING and isinstance(value, bool | int | tuple | str)
    }


def _takes_network(learn: Callable[..., Any]) -> bool:
    """Return whether a classifier can be told to train features on."""
    parameters = signature(learn).parameters
    return "network" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def check_part(name: str, part: Any, members: Sequence[str], example: str | type) -> None:
    """Raise InputError unless a setting is an object with these methods, as the example is.

    Parameters
    ----------
    name : str
        What it is called in messages.
    part : object
    members : sequence of str
    example : str or type
        A class of longtail's says with which arguments methods are called, too.

    Examples
    --------
    >>> from longtail.recipes.own_parts import check_part
    >>> from longtail.siamese.pair_losses import TripletLoss
    >>> check_part("encoder_loss", TripletLoss(), ["slope"], TripletLoss)
    """
    if isinstance(part, type):
        raise InputError(
            f"{name} must be an object, got the class {part.__name__}. Pass {part.__name__}()."
        )
    missing = [member for member in members if not hasattr(part, member)]
    at_hand = f"{example.__name__}()" if isinstance(example, type) else example
    if missing:
        raise InputError(
            f"{name} must be an object that has {', '.join(members)}, such as {at_hand}; "
            f"{named(part)} has no {', '.join(missing)}."
        )
    if isinstance(example, type):
        for member in members:
            require_arguments(part, member, example)


def check_shortlister(found: Any, n_labels: int) -> None:
    """Raise InputError unless `NegativeSampler.build` returned what a model folder can keep.

    Nobody checks its label numbers later on.
    """
    if not isinstance(found, LabelShortlister):
        raise InputError(
            f"`build` must return a LabelShortlister, got {named(found)}. Return such as "
            "NearestLabels().build(features, labels, seed=seed, n_threads=n_threads)."
        )
    remedy = "Return a LabelShortlister of other vectors or settings, or do otherwise in `mine`."
    require_kept_methods(found, remedy=remedy)
    if found.n_labels != n_labels:
        raise InputError(
            f"`build` returned a LabelShortlister of {found.n_labels:,} labels, but there are "
            f"{n_labels:,}. Build it over all labels, in their order."
        )
    check_shortlister_parts(found)


def check_block(found: Any) -> None:
    """Raise InputError unless `Transfer.block` returned a module that can be trained and frozen."""
    members = ("forward", "dimension", "learning_rate", "frozen")
    check_part("what `block` returns", found, members, "a TransferBlock")
    if getattr(type(found), "frozen", None) is TransferBlock.frozen:
        raise InputError(
            f"{type(found).__name__} has no `frozen` of its own. Give it one that returns what the "
            "trained block is to a model, such as Rectified of longtail.transfer.transform."
        )


def checked_surrogate(
    found: Any, n_tokens: int, n_labels: int
) -> tuple[Encoder, NDArray[np.int32]]:
    """Return what `Surrogate.learn` found, with int32 (n_labels,), or raise InputError.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> from longtail.recipes.own_parts import checked_surrogate
    >>> checked_surrogate((BagEncoder(np.eye(3)), [0, -1]), 3, 2)[1].dtype
    dtype('int32')
    """
    if not isinstance(found, tuple) or len(found) != 2:
        raise InputError(
            "`learn` of a surrogate must return two things, the encoder and the meta-label of "
            f"each label, got {named(found)}."
        )
    encoder, clusters = found[0], np.asarray(found[1])
    check_encoder(encoder, n_tokens)
    if clusters.shape != (n_labels,) or clusters.dtype.kind not in "iu":
        raise InputError(
            f"The meta-labels of a surrogate must be whole numbers, one for each of the {n_labels} "
            f"labels, got {clusters.dtype} {clusters.shape}. Return -1 for a label without one."
        )
    if clusters.size and not (
        int(clusters.min()) >= -1 and int(clusters.max()) <= np.iinfo(np.int32).max
    ):
        raise InputError(
            f"`learn` of a surrogate returned meta-labels from {clusters.min()} to "
            f"{clusters.max()}, allowed are int32 from 0, and -1 for none."
        )
    return encoder, clusters.astype(np.int32)


def checked_features(
    found: Any, n_points: int, dimension: int | None = None
) -> NDArray[np.float32]:
    """Return what `Encoder.encode` found, float32 (n_points, dimension), or raise InputError.

    Parameters
    ----------
    found : object
    n_points : int
    dimension : int or None
        None for any.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.recipes.own_parts import checked_features
    >>> checked_features(np.ones((2, 3)), 2).dtype
    dtype('float32')
    """
    shape = getattr(found, "shape", ())
    wanted = (n_points, shape[-1] if dimension is None and shape else dimension)
    if not isinstance(found, np.ndarray) or found.dtype.kind != "f" or shape != wanted:
        got = f"{found.dtype} {shape}" if isinstance(found, np.ndarray) else named(found)
        raise InputError(
            f"`encode` of the trained encoder must return float32 ({n_points}, "
            f"{dimension or 'dimension'}), a row for each point, got {got}."
        )
    _check_finite("What `encode` of the trained encoder returned", found)
    return np.ascontiguousarray(found, np.float32)


def check_encoder(found: Any, n_tokens: int) -> None:
    """Raise InputError unless a trained encoder is one that a model folder can keep.

    Nobody checks a bag's token numbers later on.
    """
    _check_kept("The trained encoder", found, "encode", ENCODERS, "BagEncoder")
    if not isinstance(found, BagEncoder | UnitBagEncoder):
        return
    if found.token_vectors.ndim != 2:
        raise InputError(
            f"The trained {type(found).__name__} has token vectors of the shape "
            f"{found.token_vectors.shape}. Return a matrix of a vector for each token."
        )
    if len(found.token_vectors) != n_tokens:
        raise InputError(
            f"The trained {type(found).__name__} has {len(found.token_vectors):,} token vectors, "
            f"but the features have {n_tokens:,} columns. Return a vector for each."
        )


def check_siamese(found: Any) -> None:
    """Raise InputError unless `SiameseArchitecture.start` returned what can be trained."""
    members = ("dimension", "pairs", "vectors", "frozen")
    check_part("what `start` returns", found, members, "a BagNetwork")
    for member in members[1:]:
        require_arguments(found, member, SiameseNetwork)


def checked_vectors(found: Any, n_rows: int, dimension: int) -> NDArray[np.float32]:
    """Return what `SiameseNetwork.vectors` found, float32 (n_rows, dimension), or raise InputError.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.recipes.own_parts import checked_vectors
    >>> checked_vectors(np.eye(2), 2, 2).dtype
    dtype('float32')
    """
    shape = (n_rows, dimension)
    is_array = isinstance(found, np.ndarray) and found.dtype.kind == "f"
    if not is_array or found.shape != shape:
        got = f"{found.dtype} {found.shape}" if isinstance(found, np.ndarray) else named(found)
        raise InputError(
            f"`vectors` of a siamese network must return float32 {shape}, a row for each point or "
            f"label, got {got}."
        )
    _check_finite("What `vectors` of a siamese network returned", found)
    longest = float(np.sqrt(np.einsum("ij,ij->i", found, found).max(initial=0.0)))
    if longest > 1 + MOST_OFF_UNIT:
        raise InputError(
            "`vectors` of a siamese network must return rows of length 1, or of zeros, got one of "
            f"length {longest:.3g}. Divide each row by its length."
        )
    return np.ascontiguousarray(found, np.float32)


def check_unit_encoder(found: Any, n_tokens: int, dimension: int) -> None:
    """Raise InputError unless `SiameseNetwork.frozen` returned what a model folder can keep."""
    check_part("What `frozen` returns", found, ("encode", "dimension"), "UnitBagEncoder")
    check_encoder(found, n_tokens)
    if found.dimension != dimension:
        raise InputError(
            f"`frozen` returned vectors of {found.dimension} numbers, but those of the network "
            f"have {dimension}. Return the encoder that `vectors` is made by."
        )


def check_fixed_vectors(found: Any, n_tokens: int) -> None:
    """Raise InputError unless `FixedVectors.learn` returned what a model folder of Slice keeps."""
    if not isinstance(found, UnitBagEncoder):
        raise InputError(
            f"`learn` of vectors must return a UnitBagEncoder, got {named(found)}: a model folder "
            "keeps its token vectors, and takes them for those of one."
        )
    check_encoder(found, n_tokens)


def check_transform(found: Any, dimension: int) -> None:
    """Raise InputError unless a trained block is one that a model folder can keep."""
    _check_kept("What `frozen` returns", found, "apply", TRANSFORMS, "Rectified")
    if not isinstance(found, SquareLayer):
        return
    if not (isinstance(found.matrix, np.ndarray) and isinstance(found.bias, np.ndarray)):
        raise InputError(
            f"`frozen` returned {named(found)} of {named(found.matrix)} and {named(found.bias)}. "
            "Make it of numpy's arrays, such as layer.weight.detach().cpu().numpy()."
        )
    square = (dimension, dimension)
    if found.matrix.shape != square or found.bias.shape != (dimension,):
        raise InputError(
            f"`frozen` returned a matrix of {found.matrix.shape} and a bias of {found.bias.shape}, "
            f"but the features have {dimension} numbers. Return one of {square}."
        )
    _check_finite("What `frozen` returns", found.matrix, found.bias)


def _check_kept(what: str, found: Any, method: str, kinds: Mapping[str, Any], example: str) -> None:
    """Raise InputError unless a model folder that holds this can be opened again."""
    check_part(what, found, (method, "to_arrays", "config"), example)
    if found.config().get("kind") not in kinds:
        raise InputError(
            f"{what} is {named(found)}, which a model folder could not be opened with: it holds "
            f"arrays and no code. Return one of longtail's, such as {example}."
        )
    remedy = f"Return one of longtail's, such as {example}, whose arrays say all."
    require_kept_methods(found, method, remedy=remedy)


def check_classifier(found: Any, n_labels: int, dimension: int) -> None:
    """Raise InputError unless `Classifier.learn` returned a vector for each label.

    Nobody checks label numbers later on.
    """
    if not isinstance(found, LabelVectors):
        raise InputError(f"`learn` of a classifier must return LabelVectors, got {named(found)}.")
    require_kept_methods(found, remedy="Return LabelVectors whose vectors and biases say all.")
    if found.vectors.shape != (n_labels, dimension) or found.bias.shape != (n_labels,):
        raise InputError(
            f"`learn` of a classifier returned vectors of {found.vectors.shape} and biases of "
            f"{found.bias.shape}, but there are {n_labels:,} labels, and features have {dimension} "
            f"numbers. Return vectors of {(n_labels, dimension)} and biases of {(n_labels,)}."
        )
    _check_finite("What `learn` of a classifier returned", found.vectors, found.bias)


def _check_finite(what: str, *arrays: NDArray[np.floating]) -> None:
    """Raise InputError if numbers are none; a sum says so without memory of its own."""
    if not all(np.isfinite(array.sum(dtype=np.float64)) for array in arrays):
        raise InputError(f"{what} holds NaN, or infinite numbers.")


def check_ranker(found: Any, n_tokens: int, n_labels: int) -> None:
    """Raise InputError unless `Reranking.learn` returned what orders all labels of all points."""
    if not isinstance(found, Ranker):
        raise InputError(f"`learn` of a re-ranker must return a Ranker, got {named(found)}.")
    require_kept_methods(found, remedy="Return a Ranker of parts of longtail's.")
    check_encoder(found.encoder, n_tokens)
    dimension = found.classifier.vectors.shape[-1]
    encoder = found.encoder
    if isinstance(encoder, BagEncoder | UnitBagEncoder):
        dimension = encoder.token_vectors.shape[1]
    check_transform(found.transform, dimension)
    check_classifier(found.classifier, n_labels, dimension)


def checked_shortlists(found: Any, n_points: int, n_labels: int) -> NDArray[np.int32]:
    """Return what `NegativeSampler.mine` found, int32 (n_points, size), or raise InputError.

    Examples
    --------
    >>> from longtail.recipes.own_parts import checked_shortlists
    >>> checked_shortlists([[1, -1], [0, 2]], 2, 3).dtype
    dtype('int32')
    """
    try:
        lists = np.asarray(found)
    except ValueError:  # rows of several lengths
        lists = np.asarray(found, object)
    if lists.ndim != 2 or len(lists) != n_points or (lists.size and lists.dtype.kind not in "iu"):
        raise InputError(
            f"`mine` must return whole numbers, one row for each of the {n_points} points, got "
            f"{lists.dtype} {lists.shape}. Pad shorter rows with -1."
        )
    if lists.size and not (lists.min() >= -1 and lists.max() < n_labels):
        raise InputError(
            f"`mine` returned labels from {lists.min()} to {lists.max()}, allowed are 0 to "
            f"{n_labels - 1}, and -1 for none."
        )
    return np.ascontiguousarray(lists, np.int32)
