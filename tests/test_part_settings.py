"""What parts are and how they are set, looked at before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from longtail import DeepXML
from longtail.classifiers.reranker import Reranker
from longtail.classifiers.shortlisted import ShortlistedOneVsAll, ShortlistTraining
from longtail.data.point_input import InputKind
from longtail.errors import InputError
from longtail.estimators.limits import check_values_of_part
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.features.convolutions import XMLCNN, KimCNN
from longtail.features.hashed_mlp import HashedMLP
from longtail.features.transformer import Transformer
from longtail.negatives.nearest_labels import NearestLabels
from longtail.own_classes import require_arguments
from longtail.recipes.ngame import NGAME
from longtail.recipes.own_parts import check_parts
from longtail.recipes.slice import Slice
from longtail.recipes.spen import SPEN
from longtail.row_store import RowStore
from longtail.siamese.pair_losses import ProbabilisticContrast, TripletLoss
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.schedule import Schedule
from longtail.transfer.block import TransferBlock
from longtail.transfer.bounded_residual import BoundedResidual
from longtail.transfer.plain import FullyConnected, Identity
from longtail.transfer.transform import Rectified, Unchanged
from small_parts import BAGS, BRIEF, LABELS, TEXTS, Clusters, Learns, Negatives, encoded, fit


@dataclass(frozen=True, kw_only=True)
class ReadsInWords(BagOfTokens):
    """An architecture that says in words what it reads."""

    reads: Any = InputKind.ROWS


class ForFrozenFeatures:
    """A classifier that cannot fine-tune."""

    def learn(self, features, block, shortlists, labels, run):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"classifier": ForFrozenFeatures(), "fine_tune": True},
            "`learn` of ForFrozenFeatures takes no `network`",
        ),
        ({"features": ReadsInWords()}, r"`reads` of ReadsInWords must be a PointInput, got <Input"),
        ({"features": HashedMLP}, r"got the class HashedMLP\. Pass HashedMLP\(\)\."),
        ({"transfer": "identity"}, r"such as BoundedResidual\(\); a str has no block"),
        ({"classifier": None}, "a NoneType has no learn"),
        ({"negatives": MetaLabelTask()}, "a MetaLabelTask has no build, mine"),
    ],
)
def test_what_is_no_part(parts, message):
    with pytest.raises(InputError, match=message):
        fit(**parts)


class OwnArguments:
    """A part whose methods are called otherwise than they were written."""

    def assign(self, features, labels):
        raise NotImplementedError

    def learn(self, features, *, seed):
        raise NotImplementedError

    def slope(self):
        raise NotImplementedError

    value = 5


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            DeepXML(surrogate=MetaLabelTask(clusters=OwnArguments())),
            r"assign\(features, labels, seed=, n_threads=\): got an unexpected keyword .*'seed'",
        ),
        (
            DeepXML(classifier=OwnArguments()),
            r"learn\(features, block, shortlists, labels, run\): too many positional arguments",
        ),
        (DeepXML(reranker=OwnArguments()), r"learn\(data, shortlists, features, first, run\)"),
        (NGAME(encoder_loss=OwnArguments()), r"slope\(cosines, rows, columns\)"),
        (SPEN(loss=OwnArguments()), "5 is not a callable object"),
        (Slice(vectors=OwnArguments()), r"learn\(features, run\)"),
    ],
)
def test_methods_are_called_with_what_they_take(model, message):
    with pytest.raises(InputError, match=message):
        model.check()


def test_a_method_may_be_a_function_that_does_not_say_what_it_takes():
    require_arguments(SimpleNamespace(slope=max), "slope", TripletLoss)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"reranker": "spen"}, "reranker must be an object that has learn"),
        ({"surrogate": MetaLabelTask(clusters=Clusters)}, r"clusters .*Pass Clusters\(\)"),
        ({"surrogate": MetaLabelTask(clusters=Negatives())}, "a Negatives has no assign"),
        ({"prediction_sizes": 5}, r"prediction_sizes must be an object such as ShortlistSizes\(\)"),
    ],
)
def test_further_parts_are_looked_at_before_training(parts, message):
    with pytest.raises(InputError, match=message):
        fit(**parts)


FOUR = ShortlistTraining(schedule=BRIEF, n_random=4)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"features": BagOfTokens(dimension=0)}, r"features\.dimension must be between 1 and"),
        ({"features": BagOfTokens(dropout=1.5)}, r"features\.dropout must be between 0.0 and 0.99"),
        ({"surrogate": MetaLabelTask(batch_size=0)}, r"surrogate\.batch_size must be between 1"),
        (
            {"surrogate": MetaLabelTask(residual=BoundedResidual(dropout="half"))},
            r"surrogate\.residual\.dropout must be a number, got 'half'",
        ),
        ({"negatives": NearestLabels(beam_size=0)}, r"negatives\.beam_size must be between 1 and"),
        (
            {"negatives": NearestLabels(point_weight=2)},
            r"negatives\.point_weight must be between 0",
        ),
        (
            {"classifier": ShortlistedOneVsAll(training=replace(FOUR, batch_size=0))},
            r"classifier\.training\.batch_size must be between 1 and",
        ),
        (
            {"classifier": ShortlistedOneVsAll(training=replace(FOUR, n_hard=-1))},
            r"classifier\.training\.n_hard must be between 0 and",
        ),
        (
            {"classifier": ShortlistedOneVsAll(training=replace(FOUR, neighbourhood_size=-1))},
            r"classifier\.training\.neighbourhood_size must be between 0 and",
        ),
        (
            {"surrogate": MetaLabelTask(schedule=5)},
            r"surrogate\.schedule must be a schedule, such as Schedule\(epochs=20, .* got 5",
        ),
        (
            {"classifier": ShortlistedOneVsAll(training=replace(FOUR, schedule=Schedule))},
            r"classifier\.training\.schedule must be a schedule, .* got <class",
        ),
        (
            {"features": BagOfTokens(make_optimiser=RowwiseAdagrad(torch.zeros(1, 1)))},
            r"features\.make_optimiser must be a class or a function, got <",
        ),
        ({"features": BagOfTokens(make_optimiser=None)}, "must be a class or a function, got None"),
        (
            {"features": KimCNN(widths="345")},
            r"features\.widths must be a tuple of whole numbers, got '345'",
        ),
    ],
)
def test_settings_of_parts_are_looked_at_before_training(parts, message):
    model = DeepXML(**parts, n_threads=1)
    with pytest.raises(InputError, match=message):
        model.fit(TEXTS, LABELS)
    assert not hasattr(model, "run_")


def test_settings_of_parts_may_be_at_their_bounds():
    alone = replace(FOUR, neighbourhood_size=0)
    check_parts(DeepXML(classifier=ShortlistedOneVsAll(training=alone), n_threads=1))


@pytest.mark.parametrize("part", [RowStore("int8"), Schedule, None])
def test_what_has_no_settings_has_none_to_look_at(part):
    check_values_of_part("part", part)


def test_settings_of_a_part_of_ones_own_are_its_own():
    @dataclass(frozen=True)
    class ByHand(Learns):
        dimension: str = "four"

    fit(surrogate=ByHand(encoded()))


@pytest.mark.parametrize(
    "settings", [{"epochs": 2.5}, {"learning_rate": "0.1"}, {"halve_at": 14}, {"halve_at": (0.5,)}]
)
def test_a_schedule_of_other_things_is_refused(settings):
    with pytest.raises(InputError, match=r"whole number of epochs, .* Schedule\(epochs=20, "):
        replace(BRIEF, **settings)


def reranking(architecture, **settings):
    on_shortlists = ShortlistTraining(schedule=BRIEF)
    return Reranker(
        architecture=architecture, transfer=BoundedResidual(), training=on_shortlists, **settings
    )


@dataclass(frozen=True, kw_only=True)
class OwnBags(BagOfTokens):
    """An architecture of somebody else's, with a size that nobody else has."""

    n_groups: int = 4
    momentum: float = 0.9


@pytest.mark.parametrize(
    ("reranker", "message"),
    [
        (reranking(HashedMLP()), r"features are BagOfTokens\(dimension=16\), but its own are Hash"),
        (reranking(BagOfTokens(dimension=8)), r"\(dimension=8\)\. Pass .* from_first=False"),
        (reranking(KimCNN(), from_first=False), "KimCNN reads words, but .* points come as bags"),
        (reranking(HashedMLP), r"architecture of reranker must .* Pass HashedMLP\(\)"),
    ],
)
def test_a_reranker_that_cannot_start_is_refused_before_training(reranker, message):
    model = DeepXML(features=BAGS, reranker=reranker, n_threads=1)
    with pytest.raises(InputError, match=message):
        model.fit(TEXTS, LABELS)
    assert not hasattr(model, "run_")


class Layer(TransferBlock):
    """A block whose parameters are called otherwise than the arrays that are kept of it."""

    def __init__(self, dimension, *_):
        super().__init__(dimension, 0.01)
        self.layer = torch.nn.Linear(dimension, dimension)

    def forward(self, features):
        return torch.relu(self.layer(features))

    def frozen(self):
        return Rectified(*(part.detach().numpy().copy() for part in self.layer.parameters()))


class StartingLayer(Layer):
    """One that says how it starts from a trained one."""

    def start_from(self, trained):
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor(trained.matrix))
            self.layer.bias.copy_(torch.tensor(trained.bias))


@dataclass(frozen=True)
class LayerTransfer:
    """A transfer of somebody else's, whose blocks are of this class."""

    block: Any = Layer


class Shift(torch.nn.Module):
    """A block that is no `TransferBlock`."""

    def __init__(self, dimension, *_):
        super().__init__()
        self.dimension, self.learning_rate = dimension, 0.01
        self.shift = torch.nn.Parameter(torch.zeros(dimension))

    def forward(self, features):
        return features + self.shift

    def frozen(self):
        return Unchanged()


def with_transfers(first, own, **settings):
    """Fit with these transfers of the first network and of the re-ranker."""
    reranker = replace(reranking(BAGS, **settings), transfer=own)
    return fit(
        features=BAGS, surrogate=MetaLabelTask(schedule=BRIEF), transfer=first, reranker=reranker
    )


@pytest.mark.parametrize(
    ("first", "own", "message"),
    [
        (BoundedResidual(), FullyConnected(), "transfer is a BoundedResidual, but its own is a Fu"),
        (Identity(), BoundedResidual(), r"same transfer, or Reranker\(\.\.\., from_first=False\)"),
        (BoundedResidual(), BoundedResidual, r"transfer of reranker .* Pass BoundedResidual\(\)"),
        (
            LayerTransfer(),
            LayerTransfer(),
            r"Layer cannot start .* keeps matrix \(16, 16\), .* are layer.weight \(16, 16\)",
        ),
        (LayerTransfer(Shift), LayerTransfer(Shift), "a Shift has no start_from"),
    ],
)
def test_a_transfer_that_a_reranker_cannot_start_from_is_refused(first, own, message):
    with pytest.raises(InputError, match=message):
        with_transfers(first, own)


@pytest.mark.parametrize(
    ("first", "own", "settings"),
    [
        (BoundedResidual(), BoundedResidual(max_norm=None), {}),
        (BoundedResidual(), FullyConnected(), {"from_first": False}),
        (LayerTransfer(), LayerTransfer(), {"from_first": False}),
        (LayerTransfer(StartingLayer), LayerTransfer(StartingLayer), {}),
    ],
)
def test_a_reranker_has_any_transfer_that_it_can_start_from(first, own, settings):
    model = with_transfers(first, own, **settings)
    assert model.predictor_.predict("wine", k=1)[0][0] == "drink"


@pytest.mark.parametrize(
    ("first", "change"),
    [
        (XMLCNN(), {"along_embedding": True}),
        (XMLCNN(along_embedding=True), {"n_words": 16}),
        (XMLCNN(), {"n_chunks": 3}),
        (HashedMLP(), {"n_token_buckets": 50}),
        (Transformer(folder="small"), {"folder": "large"}),
        (OwnBags(), {"n_groups": 8}),
    ],
)
def test_a_reranker_starts_from_what_has_the_same_sizes(first, change):
    """Any setting but those of training, whatever it is called."""
    ((name, value),) = change.items()
    model = DeepXML(features=first, reranker=reranking(replace(first, **change)), n_threads=1)
    with pytest.raises(InputError, match=rf"own are \w+\(.*{name}={value!r}.* from_first=False"):
        check_parts(model)
    check_parts(replace(model, reranker=replace(model.reranker, from_first=False)))


@pytest.mark.parametrize(
    ("first", "change"),
    [
        (XMLCNN(), {"learning_rate": 1e-2, "dropout": 0}),
        (KimCNN(word_vectors=np.zeros((3, 128), np.float32)), {"word_vectors": None}),
        (Transformer(folder="small"), {"fine_tune": True, "texts_at_once": 8}),
        (OwnBags(), {"momentum": 0.5}),
    ],
)
def test_a_reranker_that_starts_so_may_be_trained_otherwise(first, change):
    check_parts(DeepXML(features=first, reranker=reranking(replace(first, **change)), n_threads=1))


@pytest.mark.parametrize(
    "reranker",
    [
        reranking(replace(BAGS, dropout=0.0)),
        reranking(HashedMLP(hidden_layers=(8,)), from_first=False),
    ],
)
def test_a_reranker_may_differ_where_that_can_be(reranker):
    brief = MetaLabelTask(schedule=BRIEF)
    model = fit(features=BAGS, surrogate=brief, reranker=reranker)
    assert model.predictor_.predict("wine", k=1)[0][0] == "drink"


@pytest.mark.parametrize(
    "make",
    [
        lambda: HashedMLP(hidden_layers=()),
        lambda: BoundedResidual(max_norm=0.0),
        lambda: ProbabilisticContrast(largest_chance=1.0),
        lambda: Schedule(epochs=1, learning_rate=float("nan")),
        lambda: fit(surrogate=MetaLabelTask(batch_size=0)),
    ],
)
def test_settings_of_parts_are_within_bounds(make):
    with pytest.raises(InputError, match=r"got|0"):
        make()
