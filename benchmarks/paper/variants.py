"""What a table has a row for. A new row is one more entry in the list of its table."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from longtail.classifiers.reranker import Reranker
from longtail.classifiers.shortlisted import ShortlistedOneVsAll
from longtail.errors import InputError
from longtail.features.convolutions import XMLCNN, KimCNN
from longtail.features.hashed_mlp import HashedMLP
from longtail.features.transformer import Transformer
from longtail.negatives.nearest_labels import NearestLabels
from longtail.negatives.samplers import FrequentLabels, InBatch, TreeLeaves, UniformLabels
from longtail.recipes.astec import Astec
from longtail.recipes.deepxml_with import DeepXMLKimCNN, DeepXMLMACH, DeepXMLXMLCNN
from longtail.recipes.dismec import DiSMEC
from longtail.recipes.end_to_end import KimCNNClassifier, XMLCNNClassifier
from longtail.recipes.mach import MACH
from longtail.recipes.parabel import Parabel
from longtail.recipes.slice import Slice
from longtail.surrogates.assignments import LabelSelection, RandomHashing
from longtail.surrogates.in_batch import InBatchTask
from longtail.surrogates.label_clusters import LabelClusters
from longtail.surrogates.low_rank import LowRankProjection
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.surrogates.self_supervised import SelfSupervised
from longtail.training.schedule import Schedule
from longtail.transfer.bounded_residual import BoundedResidual
from longtail.transfer.plain import FullyConnected, Identity

from .on_features import OnFeatures

if TYPE_CHECKING:
    from collections.abc import Callable

    from longtail.estimators.estimator import LabelEstimator
    from longtail.recipes.deepxml import Classifier, DeepXML

    Settings = dict[str, Any]
    Make = Callable[[Settings, int], LabelEstimator | OnFeatures]

__all__ = ["OF_SHORTLISTS", "TABLES", "Variant"]

OF_SHORTLISTS = ("own_only", "neighbourhood_size")  # of Astec's classifier, and no recipe's


@dataclass(frozen=True)
class Variant:
    """A row of a table.

    Parameters
    ----------
    group : str
        What is varied.
    name : str
    make : callable
        From the user's settings and the number of training points to a recipe.
    published : str
        What the paper has, on its data set.
    rival : str
        The variant that it is held against, point by point.
    """

    group: str
    name: str
    make: Make
    published: str = ""
    rival: str = "Astec"


def named(kind: type[LabelEstimator], **own: Any) -> Callable[[Settings, int], LabelEstimator]:
    """Return what makes a recipe, with the user's settings as far as it knows them."""
    known = {field.name for field in fields(kind) if field.init}

    def make(settings: Settings, n_points: int) -> LabelEstimator:  # noqa: ARG001 - as the others
        return kind(**own | {k: v for k, v in settings.items() if k in known})

    return make


def astec(change: Callable[[DeepXML], Settings]) -> Callable[[Settings, int], DeepXML]:
    """Return what makes Astec, without the re-ranker and pieces of words, with a part exchanged.

    With ``reranker=true`` there is one, of the same features as the rest.
    """

    def make(settings: Settings, n_points: int) -> DeepXML:
        known = {field.name for field in fields(Astec) if field.init}
        own = {"reranker": False} | {k: v for k, v in settings.items() if k in known}
        estimator = Astec(**own)
        parts = estimator.deepxml(n_points)
        base = replace(
            parts,
            char_ngrams=settings.get("char_ngrams"),
            random_state=estimator.random_state,
            n_threads=estimator.n_threads,
            classifier=with_training(parts.classifier, settings),
        )
        changed = replace(base, **change(base))
        if not isinstance(changed.reranker, Reranker):
            return changed
        reranker = replace(changed.reranker, architecture=changed.features)
        return replace(changed, reranker=reranker)

    return make


def classifier(kind: type[LabelEstimator]) -> Callable[[Settings, int], OnFeatures]:
    """Return what trains another classifier on the features of Astec's Module I."""

    def make(settings: Settings, n_points: int) -> OnFeatures:
        features = astec(lambda base: {"classifier": for_no_epoch(base.classifier)})
        own = {key: settings[key] for key in ("random_state", "n_threads") if key in settings}
        return OnFeatures(features(settings, n_points), kind(**own))

    return make


def for_no_epoch(classifier: Classifier) -> Classifier:
    """Return Astec's classifier as it starts."""
    if not isinstance(classifier, ShortlistedOneVsAll):
        return classifier
    rate = classifier.training.schedule.learning_rate
    none = replace(classifier.training, schedule=Schedule(epochs=0, learning_rate=rate))
    return replace(classifier, training=none)


def on_shortlists(base: DeepXML, **own: Any) -> Settings:
    """Exchange how Module IV's classifiers are trained on shortlists."""
    if not isinstance(base.classifier, ShortlistedOneVsAll):
        return {}
    training = replace(base.classifier.training, **own)
    return {"classifier": replace(base.classifier, training=training)}


def transformer(settings: Settings, n_points: int) -> DeepXML:
    """Make Astec on the features of a pretrained transformer."""
    if "encoder" not in settings:
        raise InputError("Name a transformer's folder: `--set encoder='\"FOLDER\"'`")
    features = Transformer(folder=settings["encoder"])

    def change(base: DeepXML) -> Settings:
        if not isinstance(base.surrogate, MetaLabelTask):
            return {}
        rate = base.surrogate.schedule.learning_rate
        frozen = Schedule(epochs=0, learning_rate=rate)
        return {"features": features, "surrogate": replace(base.surrogate, schedule=frozen)}

    return astec(change)(settings, n_points)


def with_training(classifier: Classifier, settings: Settings) -> Classifier:
    """Return Astec's classifier with the user's `ShortlistTraining`, as far as he says.

    With ``own_only=true neighbourhood_size=0 n_random=0 n_hard=500`` a point is told apart from the
    labels of its own shortlist alone, as in the paper; by default it is from all in its batch.
    """
    own = {key: settings[key] for key in OF_SHORTLISTS if key in settings}
    if not isinstance(classifier, ShortlistedOneVsAll):
        return classifier
    return replace(classifier, training=replace(classifier.training, **own))


def surrogate(kind: Callable[..., Any], **own: Any) -> Callable[[DeepXML], Settings]:
    """Return what exchanges the surrogate task, at the schedule of Astec's."""

    def change(base: DeepXML) -> Settings:
        task = base.surrogate
        if not isinstance(task, MetaLabelTask):
            return {}
        same = {
            "schedule": task.schedule,
            "batch_size": task.batch_size,
            "residual": task.residual,
        }
        return {"surrogate": kind(**same | own)}

    return change


def clusters(assignment: Callable[[int], Any]) -> Callable[[DeepXML], Settings]:
    """Return what exchanges the meta-labels, given how many clusters Astec has."""

    def change(base: DeepXML) -> Settings:
        task = base.surrogate
        if not isinstance(task, MetaLabelTask) or not isinstance(task.clusters, LabelClusters):
            return {}
        return {"surrogate": replace(task, clusters=assignment(task.clusters.n_meta_labels))}

    return change


def dimension_of(base: DeepXML) -> int:
    """Return the length of Astec's features."""
    return int(getattr(base.features, "dimension", 256))


TABLE_4 = (
    Variant("XML-CNN", "XML-CNN", named(XMLCNNClassifier), "35.02"),
    Variant(
        "XML-CNN",
        "DeepXML + XML-CNN",
        named(DeepXMLXMLCNN),
        "+1.89, 10 times faster",
        rival="XML-CNN",
    ),
    Variant("MACH", "MACH", named(MACH, char_ngrams=None), "34.92"),
    Variant(
        "MACH",
        "DeepXML + MACH",
        named(DeepXMLMACH, char_ngrams=None),
        "+2.41, 5 times faster",
        rival="MACH",
    ),
    Variant("Kim's CNN", "Kim's CNN", named(KimCNNClassifier)),
    Variant("Kim's CNN", "DeepXML + Kim's CNN", named(DeepXMLKimCNN), rival="Kim's CNN"),
)

TABLE_6 = (
    Variant("all parts", "Astec", astec(lambda _: {}), "39.12 / 32.07"),
    Variant(
        "features",
        "MLP (MACH's)",
        astec(lambda base: {"features": HashedMLP(hidden_layers=(dimension_of(base),))}),
        "37.41 / 30.65",
    ),
    Variant(
        "features",
        "CNN (XML-CNN's)",
        astec(lambda base: {"features": XMLCNN(bottleneck=dimension_of(base))}),
        "36.91 / 30.76",
    ),
    Variant("features", "CNN (Kim's)", astec(lambda _: {"features": KimCNN()})),
    Variant("features", "a pretrained transformer, frozen", transformer, "36.15 / 29.65, BERT"),
    Variant(
        "surrogate",
        "clusters without label correlation",
        astec(clusters(lambda n: LabelClusters(n_meta_labels=n, label_correlation=False))),
    ),
    Variant(
        "surrogate",
        "label selection",
        astec(clusters(lambda _: LabelSelection())),
        "38.3 / 31.25",
    ),
    Variant(
        "surrogate",
        "random hashing",
        astec(clusters(lambda n: RandomHashing(n_meta_labels=n))),
        "38.11 / 30.97",
    ),
    Variant("surrogate", "low-rank projection", astec(surrogate(LowRankProjection))),
    Variant("surrogate", "self-supervised", astec(surrogate(SelfSupervised)), "34.80 / 27.42"),
    Variant("surrogate", "in-batch negatives", astec(surrogate(InBatchTask))),
    Variant(
        "negatives",
        "label centroids alone (Slice)",
        astec(
            lambda base: {
                "negatives": replace(base.negatives, n_near_points=0)
                if isinstance(base.negatives, NearestLabels)
                else base.negatives
            }
        ),
        "32.33 / 14.37 against 45.45 / 17.64",
    ),
    Variant(
        "negatives",
        "by frequency^.75 (NEG)",
        astec(lambda _: {"negatives": FrequentLabels()}),
        "30.62 / 11.87 against 45.45 / 17.64",
    ),
    Variant(
        "negatives",
        "uniform",
        astec(lambda _: {"negatives": UniformLabels()}),
        "27.3 / 11.4 against 45.45 / 17.64",
    ),
    Variant("negatives", "leaves of a tree", astec(lambda _: {"negatives": TreeLeaves()})),
    Variant(
        "negatives",
        "in-batch",
        astec(lambda base: {"negatives": InBatch(), **on_shortlists(base, n_random=0)}),
    ),
    Variant("classifier", "Parabel", classifier(Parabel), "37.07 / 28.75"),
    Variant("classifier", "Slice", classifier(Slice), "36.73 / 30.07"),
    Variant("classifier", "DiSMEC", classifier(DiSMEC), "38.42 / 31.44"),
    Variant(
        "transfer",
        "residual without a bound",
        astec(lambda _: {"transfer": BoundedResidual(max_norm=None)}),
    ),
    Variant("transfer", "fully connected", astec(lambda _: {"transfer": FullyConnected()})),
    Variant("transfer", "identity", astec(lambda _: {"transfer": Identity()})),
    Variant("transfer", "fine-tuning", astec(lambda _: {"fine_tune": True})),
)

TABLES = {"table4": TABLE_4, "table6": TABLE_6}
