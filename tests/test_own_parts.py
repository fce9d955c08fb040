"""Parts that a stranger wrote, and wrote wrongly: a sentence, not a traceback or a wrong answer."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from longtail import Dataset, DeepXML, LongtailClassifier, load
from longtail.classifiers.reranker import Reranker
from longtail.classifiers.shortlisted import ShortlistedOneVsAll, ShortlistTraining
from longtail.energy.losses import SquaredError
from longtail.errors import InputError
from longtail.features.bag_encoder import BagEncoder, UnitBagEncoder
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.features.hashed_mlp import HashedMLP
from longtail.index.exact import ExactIndex
from longtail.label_changes.changes import with_labels
from longtail.label_changes.new_labels import SharedSpaceVectors
from longtail.matching.cluster_scores import NeuralMatcher
from longtail.negatives.nearest_labels import LabelShortlister, NearestLabels
from longtail.recipes.dexa import DEXA
from longtail.recipes.ngame import NGAME
from longtail.recipes.slice import Slice
from longtail.recipes.spen import SPEN
from longtail.recipes.xtransformer import XTransformer
from longtail.scorers.deepxml import Ranker
from longtail.scorers.label_vectors import LabelVectors
from longtail.siamese.pair_losses import TripletLoss
from longtail.surrogates.label_indexing import PointFeatures
from longtail.surrogates.low_rank import LowRankProjection
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.optimisers import RowwiseAdagrad
from longtail.transfer.transform import Rectified, Unchanged
from small_parts import (
    BAGS,
    BRIEF,
    LABELS,
    TEXTS,
    Clusters,
    Learns,
    Negatives,
    OwnTransfer,
    Unfrozen,
    encoded,
    fit,
    ranking,
)


@pytest.mark.parametrize("found", [[1, 0], np.array([0, 5]), np.array([0, -1], np.int64)])
def test_meta_labels_may_come_in_any_form(found):
    model = fit(surrogate=MetaLabelTask(clusters=Clusters(found), schedule=BRIEF))
    assert model.predictor_.predict("wine", k=1)[0][0] == "drink"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (np.array([-1, -1]), "and not -1 for all"),
        (np.array([0.0, 1.0]), r"whole numbers from 0, .* got float64 \(2,\)"),
        (["a", "b"], "whole numbers"),
        ([0], "Pass one cluster per label"),
        ([0, -2], "from -2 to 0. Number them from 0"),
        ([0, 10**7], "from 0 to 10000000. Number them from 0, since each takes memory"),
        (np.array([0, 2**64 - 1], np.uint64), "Number them from 0"),
    ],
)
def test_what_is_no_meta_label(found, message):
    with pytest.raises(InputError, match=message):
        fit(surrogate=MetaLabelTask(clusters=Clusters(found), schedule=BRIEF))


@pytest.mark.parametrize("found", [[[1], [1], [0], [-1]] * 10, np.zeros((40, 0))])
def test_negatives_may_come_in_any_form(found):
    brief = MetaLabelTask(schedule=BRIEF)
    model = fit(surrogate=brief, negatives=Negatives(found=found))
    assert model.predictor_.predict("wine", k=1)[0][0] == "drink"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (np.zeros((39, 1), int), r"one row for each of the 40 points, got int64 \(39, 1\)"),
        (np.zeros(40, int), "one row for each"),
        (np.zeros((40, 1)), "whole numbers"),
        (np.full((40, 1), 2), "labels from 2 to 2, allowed are 0 to 1, and -1 for none"),
        (np.full((40, 1), -2), "labels from -2 to -2"),
    ],
)
def test_what_is_no_negative(found, message):
    with pytest.raises(InputError, match=message):
        fit(surrogate=MetaLabelTask(schedule=BRIEF), negatives=Negatives(found=found))


class Builds(Negatives):
    """A sampler whose structure no model folder can keep."""

    def build(self, features, labels, *, seed, n_threads):
        return features


class Blocks:
    """A transfer whose block cannot be frozen."""

    def block(self, dimension, device):
        return torch.nn.Linear(dimension, dimension)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"negatives": Builds()}, "`build` must return a LabelShortlister, got an ndarray"),
        ({"transfer": Blocks()}, "such as a TransferBlock; a Linear has no dimension, learning"),
    ],
)
def test_what_parts_make_is_looked_at(parts, message):
    with pytest.raises(InputError, match=message):
        fit(surrogate=MetaLabelTask(schedule=BRIEF), **parts)


class OwnEncoder(BagEncoder):
    """An encoder of somebody else's, which no model folder knows how to make again."""

    def config(self):
        return {"kind": "own"}


def test_what_a_surrogate_learns_may_come_in_any_form():
    model = fit(surrogate=Learns(encoded(clusters=[-1, -1])))
    assert model.predictor_.scorer.label_clusters.dtype == np.int32


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "must return two things, .* got a NoneType"),
        ((np.ones(3), [0, 1]), "an ndarray has no encode, to_arrays, config"),
        (encoded(OwnEncoder), "is an OwnEncoder, which a model folder could not be opened with"),
        (encoded(n_tokens=-1), r"has \d+ token vectors, but the features have \d+ columns"),
        (encoded(clusters=[0]), r"one for each of the 2 labels, got int64 \(1,\)"),
        (encoded(clusters=None), "Return -1 for a label without one"),
        (encoded(clusters=[0, -5]), "meta-labels from -5 to 0, allowed are int32 from 0"),
        (encoded(clusters=[0, 2**40]), "meta-labels from 0 to 1099511627776"),
        (
            encoded(lambda vectors: BagEncoder(vectors[:, 0])),
            r"token vectors of the shape \(\d+,\)",
        ),
    ],
)
def test_what_is_no_encoder_with_meta_labels(found, message):
    with pytest.raises(InputError, match=message):
        fit(surrogate=Learns(found))


@pytest.mark.parametrize("says_so", [True, False])
def test_a_surrogate_that_says_so_is_given_the_texts_of_labels(says_so):
    given = []

    class Looks(Learns):
        def learn(self, architecture, data, run):
            given.append(data)
            return super().learn(architecture, data, run)

        if says_so:

            def looks_at_label_texts(self):
                return True

    dataset = Dataset.of(TEXTS, LABELS, label_texts={"drink": "wine to drink", "vehicle": "a car"})
    model = DeepXML(surrogate=Looks(encoded()), min_df=1, n_threads=1).fit_dataset(dataset)
    assert (given[0].label_features is not None) == says_so
    assert bool(model.predictor_.predict("drink")) == says_so  # a word of no point


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_encoded_points_are_finite(value):
    learnt = encoded(lambda vectors: BagEncoder(np.full_like(vectors, value)))
    with pytest.raises(InputError, match="What `encode` of the trained encoder returned holds NaN"):
        fit(surrogate=Learns(learnt))


def test_an_encoder_that_was_trained_on_is_looked_at():
    class Tuned(BagOfTokens):
        def frozen(self, network):
            return OwnEncoder(super().frozen(network).token_vectors)

    with pytest.raises(InputError, match="is an OwnEncoder"):
        fit(features=Tuned(dimension=4), surrogate=Learns(encoded()), fine_tune=True)


def test_features_cannot_be_trained_on_from_an_encoder_of_another_kind():
    message = "the surrogate returned, a BagEncoder, and HashedMLP cannot start from that"
    with pytest.raises(InputError, match=message):
        fit(features=HashedMLP(), surrogate=Learns(encoded()), fine_tune=True)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "must return LabelVectors, got a NoneType"),
        (LabelVectors(np.ones((1, 4)), np.ones(1)), r"vectors of \(1, 4\) .* there are 2 labels"),
        (LabelVectors(np.ones((2, 3)), np.ones(2)), r"Return vectors of \(2, 4\)"),
        (LabelVectors(np.ones((2, 4)), np.ones(1)), r"biases of \(1,\), but"),
        (LabelVectors(np.full((2, 4), np.nan), np.ones(2)), "returned holds NaN"),
    ],
)
def test_what_is_no_classifier(found, message):
    with pytest.raises(InputError, match=message):
        fit(surrogate=Learns(encoded()), classifier=Learns(found))


class OwnTransform(Unchanged):
    """A transform of somebody else's."""

    def config(self):
        return {"kind": "own"}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (Unfrozen, "Unfrozen has no `frozen` of its own"),
        (None, "What `frozen` returns must be .* NoneType has no apply"),
        (OwnTransform(), "is an OwnTransform, which a model folder could not be opened with"),
        (Rectified(np.eye(3), np.ones(3)), r"matrix of \(3, 3\) .* Return one of \(4, 4\)"),
        (Rectified(np.eye(4), np.ones(3)), r"bias of \(3,\)"),
        (Rectified(np.full((4, 4), np.nan), np.ones(4)), "`frozen` returns holds NaN"),
    ],
)
def test_what_is_no_transform(found, message):
    own = LabelVectors(np.ones((2, 4)), np.ones(2))
    with pytest.raises(InputError, match=message):
        fit(surrogate=Learns(encoded()), classifier=Learns(own), transfer=OwnTransfer(found))


def test_a_reranker_of_somebody_elses():
    model = fit(surrogate=MetaLabelTask(schedule=BRIEF), reranker=Learns(ranking()))
    assert isinstance(model.predictor_.scorer.reranker, Ranker)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "of a re-ranker must return a Ranker, got a NoneType"),
        (ranking(-1), r"has \d+ token vectors, but the features have"),
        (ranking(n_labels=1), r"vectors of \(1, 4\) .* there are 2 labels"),
        (ranking(transform=OwnTransform()), "is an OwnTransform"),
        (ranking(dimension=4000), r"vectors of \(2, 4000\) .* features have 4 numbers"),
    ],
)
def test_what_is_no_ranker(found, message):
    with pytest.raises(InputError, match=message):
        fit(surrogate=MetaLabelTask(schedule=BRIEF), reranker=Learns(found))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "must return a UnitBagEncoder, got a NoneType"),
        (BagEncoder(np.eye(3)), "got a BagEncoder: a model folder"),
        (UnitBagEncoder(np.eye(3)), "has 3 token vectors, but the features have"),
    ],
)
def test_what_are_no_fixed_vectors(found, message):
    with pytest.raises(InputError, match=message):
        Slice(vectors=Learns(found), n_threads=1).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("found", "message"),
    [(torch.zeros(2, 3), r"got a Tensor \[2, 3\]"), (1.0, r"got a float \[\]")],
)
def test_what_is_no_loss_of_an_energy(found, message):
    class Loss:
        def value(self, terms, truth, descent):
            return found

    with pytest.raises(InputError, match=f"`value` of Loss must return the mean .* {message}"):
        SPEN(loss=Loss(), n_threads=1).fit(TEXTS, LABELS)


def test_a_loss_of_an_energy_has_a_gradient():
    class Detached:
        def value(self, terms, truth, descent):
            return SquaredError().value(terms, truth, descent).detach()

    with pytest.raises(InputError, match="`value` of Detached returned a loss without a gradient"):
        SPEN(loss=Detached(), unary_epochs=1, n_threads=1).fit(TEXTS, LABELS)


@dataclass(frozen=True)
class BuildsOtherwise(NearestLabels):
    """A sampler that changes the structure, or what it is built from."""

    labels: Any = None
    change: Any = None

    def build(self, features, labels, *, seed, n_threads):
        labels = labels if self.labels is None else self.labels(labels)
        built = super().build(features, labels, seed=seed, n_threads=n_threads)
        return built if self.change is None else replace(built, **self.change(built))

    def mine(self, shortlister, features, labels, *, seed, n_threads):
        return np.zeros((len(features), 1), int)


class FindsOtherwise:
    """An index of somebody else's."""

    def __init__(self, inner, change):
        self.inner, self.change = inner, change

    def query(self, queries, k):
        return self.change(*self.inner.query(queries, k))

    def to_arrays(self):
        return self.inner.to_arrays()


class Searches(BuildsOtherwise):
    """One that asks the structure for negatives."""

    mine = NearestLabels.mine


def searching(change):
    """Return a sampler whose index of labels answers otherwise."""
    return Searches(change=lambda built: {"label_index": FindsOtherwise(built.label_index, change)})


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (
            BuildsOtherwise(labels=lambda labels: labels[:, :1]),
            "LabelShortlister of 1 labels, .* are 2",
        ),
        (BuildsOtherwise(change=lambda b: {"label_ids": b.label_ids + 9}), "do not belong togeth"),
        (BuildsOtherwise(change=lambda b: {"label_ids": b.label_ids - 9}), "do not belong togeth"),
        (BuildsOtherwise(change=lambda b: {"label_starts": b.label_starts * 9}), "do not belong"),
        (
            BuildsOtherwise(change=lambda _: {"label_of_representative": np.array([0, 9])}),
            "do not belong together",
        ),
        (searching(lambda ids, near: (ids + 9, near)), "must return rows from 0 to 1, .* to 10"),
        (searching(lambda ids, near: (ids - 9, near)), "from -10 to 0"),
        (searching(lambda ids, near: (ids[:1], near[:1])), "for 40 queries"),
        (searching(lambda ids, near: (ids, near[:, :1])), r"similarities of \(40, 1\)"),
    ],
)
def test_a_structure_that_would_lead_compiled_code_astray(sampler, message):
    with pytest.raises(InputError, match=message):
        fit(surrogate=MetaLabelTask(schedule=BRIEF), negatives=sampler)


def test_an_index_of_somebody_elses_may_find_long_integers():
    sampler = searching(lambda ids, near: (ids.astype(np.int64), near.astype(np.float64)))
    model = fit(surrogate=MetaLabelTask(schedule=BRIEF), negatives=sampler)
    assert model.predictor_.predict("wine", k=1)[0][0] == "drink"


@pytest.mark.parametrize("change", [lambda v: v[:-1], lambda v: v[:, 0], lambda _: None])
def test_features_have_a_row_a_point(change, monkeypatch):
    for kind in (BagEncoder, UnitBagEncoder):  # as a graph of ONNX of somebody else's might
        encode = kind.encode
        monkeypatch.setattr(kind, "encode", lambda *args, of=encode: change(of(*args)))
    message = r"`encode` of the trained encoder must return float32 \(40, .* got"
    with pytest.raises(InputError, match=message):
        fit(surrogate=Learns(encoded()))
    learnt = Learns(lambda features, _: UnitBagEncoder(np.ones((features.shape[1], 4))))
    with pytest.raises(InputError, match=message):
        Slice(vectors=learnt, n_threads=1).fit(TEXTS, LABELS)


@pytest.mark.parametrize("width", [2, 40])
def test_features_that_were_trained_on_keep_their_length(width):
    class Tuned(BagOfTokens):
        def frozen(self, network):
            return BagEncoder(np.ones((len(network.table), width), np.float32))

    with pytest.raises(InputError, match=rf"float32 \(40, 4\), .* got float32 \(40, {width}\)"):
        fit(features=Tuned(dimension=4), surrogate=Learns(encoded()), fine_tune=True)


WRONG_FEATURES = [
    (lambda x: x[:, :3], r"\(40, 3\)"),
    (lambda x: torch.cat([x, x]), r"\(80, 16\)"),
    (lambda _: None, "a NoneType"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_FEATURES)
def test_a_network_gives_features_of_each_point(change, message):
    class Forwards(BagOfTokens):
        def network(self, *args, **kwargs):
            network = super().network(*args, **kwargs)
            forward = network.forward
            network.forward = lambda points: change(forward(points))
            return network

    with pytest.raises(InputError, match=rf"`forward` of .* of \(40, 16\), .* got {message}"):
        fit(features=Forwards(dimension=16), surrogate=MetaLabelTask(schedule=BRIEF))


@pytest.mark.parametrize(("change", "message"), WRONG_FEATURES)
def test_a_block_gives_features_of_each_point(change, message):
    class Block(Unfrozen):
        def forward(self, features):
            return change(features)

        def frozen(self):
            return Unchanged()

    class Blocked:
        def block(self, dimension, device):
            return Block(dimension, 0.1)

    with pytest.raises(InputError, match=rf"`forward` of Block .* \(40, 16\), .* got {message}"):
        fit(features=BAGS, surrogate=MetaLabelTask(schedule=BRIEF), transfer=Blocked())


def test_label_vectors_are_as_long_as_the_features():
    with pytest.raises(InputError, match="have 3 numbers, but the label vectors 2"):
        LabelVectors(np.eye(2), np.zeros(2)).logits(np.ones((1, 3)), np.array([[0]]))
    with pytest.raises(InputError, match="features of 3 points, but shortlists of 1"):
        LabelVectors(np.eye(2), np.zeros(2)).logits(np.ones((3, 2)), np.array([[0]]))


def test_a_shortlister_finds_as_a_loaded_one_does():
    class Otherwise(LabelShortlister):
        def query(self, features, n_threads=1):
            return np.full((len(features), 1), 10**8), np.zeros((len(features), 1))

    class Builds(NearestLabels):
        def build(self, features, labels, *, seed, n_threads):
            built = super().build(features, labels, seed=seed, n_threads=n_threads)
            return Otherwise(
                **{each.name: getattr(built, each.name) for each in fields(built) if each.init}
            )

    with pytest.raises(InputError, match="Otherwise has a `query` of its own"):
        fit(surrogate=MetaLabelTask(schedule=BRIEF), negatives=Builds())


def broken(rows):
    """Return rows whose indices lie far beyond them."""
    rows = rows.copy()
    rows.indices[:] = 10**8
    return rows


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:1], r"each of the 2 labels, .* got \(1, \d+\)"),
        (lambda _: None, "got a NoneType"),
        (broken, "What `represent` returns is a broken sparse matrix"),
    ],
)
def test_an_indexer_gives_a_row_a_label(change, message):
    class Represents:
        def represent(self, data, encoder, run):
            return change(PointFeatures().represent(data, encoder, run))

    with pytest.raises(InputError, match=message):
        XTransformer(indexers=(Represents(),), **FEW).fit(TEXTS, LABELS)


FEW: Any = {"leaf_size": 1, "dimension": 4, "epochs": 1, "n_threads": 1}


def fewer_tokens(found):
    return found._replace(encoder=UnitBagEncoder(found.encoder.token_vectors[:-1]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: None, "`match` must return a LearntMatcher, got a NoneType"),
        (lambda m: m._replace(vectors=m.vectors[:1]), r"of \(\(1, 4\), \(2,\), \(40, 4\)\)"),
        (lambda m: m._replace(points=m.points[:-1]), r"2 clusters, 40 points .* they must be of"),
        (lambda m: m._replace(bias=m.bias * np.nan), "returned NaN"),
        (lambda m: m._replace(encoder=None), "the encoder of a LearntMatcher must be"),
        (fewer_tokens, r"has \d+ token vectors, but the features have"),
    ],
)
def test_a_matcher_scores_all_clusters(change, message):
    class Matches(NeuralMatcher):
        def match(self, *args):
            return change(super().match(*args))

    with pytest.raises(InputError, match=message):
        XTransformer(matcher=Matches(), **FEW).fit(TEXTS, LABELS)


@pytest.mark.parametrize("found", [[0, -1], [0], [0.0, 1.0], [[0], [1]]])
def test_auxiliary_clusters_are_one_a_label(found):
    class Clustered(DEXA):
        def auxiliary_clusters(self, labels, texts, run):
            return np.asarray(found)

    with pytest.raises(InputError, match="`auxiliary_clusters` must return whole numbers from 0"):
        Clustered(dimension=4, n_threads=1).fit(TEXTS, LABELS)


@pytest.mark.parametrize("value", [None, "none", torch.zeros(2)])
def test_a_loss_of_pairs_is_a_number(value):
    class Loss(TripletLoss):
        def slope(self, cosines, rows, columns):
            return value, super().slope(cosines, rows, columns)[1]

    with pytest.raises(InputError, match="The loss that Loss returns must be a number"):
        NGAME(encoder_loss=Loss(), dimension=4, n_threads=1).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: None, "got a NoneType"),
        (lambda rows: rows[:1], "3 arrays of"),
        (lambda rows: [row[:, :3] for row in rows], r"got \[\(1, 3\)"),
        (lambda rows: [row * np.nan for row in rows], "returned NaN"),
        (lambda rows: [row.tolist() for row in rows], "arrays of float32"),
        (lambda rows: [5 * row for row in rows], "rows of length 1, or of zeros, got lengths from"),
    ],
)
def test_vectors_of_new_labels_fit_the_others(change, message):
    class Vectors(SharedSpaceVectors):
        def of_new(self, *args):
            return change(super().of_new(*args))

    model = LongtailClassifier(dimension=16, n_threads=1).fit(TEXTS, LABELS).predictor_
    with pytest.raises(InputError, match=message):
        with_labels(model, {"boat": "old boat"}, vectors=Vectors())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e38])
def test_a_slope_of_pairs_is_finite(value):
    class Loss(TripletLoss):
        def slope(self, cosines, rows, columns):
            return 1.0, torch.full_like(cosines, value)

    with pytest.raises(InputError, match="slope that Loss returns holds NaN, infinite or huge"):
        NGAME(encoder_loss=Loss(), dimension=4, n_threads=1).fit(TEXTS, LABELS)


def test_classifiers_are_arrays():
    with pytest.raises(InputError, match="Classifiers are arrays of float32, got a Tensor"):
        LabelVectors(torch.zeros(2, 4, requires_grad=True), np.ones(2))


def test_an_index_of_somebody_elses_finds_negatives_and_longtails_answers(tmp_path):
    sampler = searching(lambda ids, near: (ids[:, ::-1], -near[:, ::-1]))
    model = fit(surrogate=MetaLabelTask(schedule=BRIEF), negatives=sampler)
    assert isinstance(model.predictor_.scorer.shortlister.label_index, ExactIndex)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict(TEXTS, k=2) == model.predictor_.predict(TEXTS, k=2)


def test_an_index_that_derives_from_longtails_is_looked_at():
    class Far(ExactIndex):
        def query(self, queries, k):
            ids, near = super().query(queries, k)
            return ids + 10**8, near

    class Builds(Searches):
        def _index(self, vectors, seed, n_threads):
            return Far(vectors)

    with pytest.raises(InputError, match="must return rows from 0 to 1"):
        fit(surrogate=MetaLabelTask(schedule=BRIEF), negatives=Builds())


def test_an_index_says_what_its_rows_are():
    class Nameless(FindsOtherwise):
        def to_arrays(self):
            return {"rows": self.inner.to_arrays()["vectors"]}

    sampler = Searches(change=lambda built: {"label_index": Nameless(built.label_index, None)})
    with pytest.raises(InputError, match="`to_arrays` of Nameless must have `vectors`"):
        fit(surrogate=MetaLabelTask(schedule=BRIEF), negatives=sampler)


@pytest.mark.parametrize(
    "parts",
    [
        {"surrogate": MetaLabelTask(schedule=BRIEF)},
        {"surrogate": LowRankProjection(schedule=BRIEF)},
        {"surrogate": Learns(encoded()), "fine_tune": True},
        {"surrogate": Learns(encoded()), "reranker": True},
    ],
)
@pytest.mark.parametrize("found", [None, torch.nn.Linear(2, 2)])
def test_what_is_no_network(found, parts):
    class Networks(BagOfTokens):
        def network(self, *args, **kwargs):
            return found

    features = Networks(dimension=4)
    if "reranker" in parts:
        parts = parts | {"reranker": Reranker(architecture=features, from_first=False)}
    with pytest.raises(InputError, match="`network` must return an object that has dimension, "):
        fit(features=features, **parts)


class Stateless:
    """A network, batches or an optimiser, with a state that is none."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def state(self):
        return None


class StatelessNetworks(BagOfTokens):
    """Features whose network says nothing of its state."""

    def network(self, *args, **kwargs):
        return Stateless(super().network(*args, **kwargs))


class StatelessBatches(ShortlistTraining):
    """A training whose batches say nothing of their state."""

    def batches(self, *args):
        return Stateless(super().batches(*args))


@pytest.mark.parametrize(
    "parts",
    [
        {"features": StatelessNetworks(dimension=4)},
        {"features": BagOfTokens(make_optimiser=lambda table: Stateless(RowwiseAdagrad(table)))},
        {
            "surrogate": Learns(encoded()),
            "classifier": ShortlistedOneVsAll(training=StatelessBatches(schedule=BRIEF)),
        },
    ],
)
def test_a_state_that_is_none(parts):
    with pytest.raises(InputError, match=r"`state` of Stateless must return .* got a NoneType"):
        fit(**parts)


@pytest.mark.parametrize("method", ["forward", "state"])
def test_a_network_takes_what_it_is_called_with(method):
    class Networks(BagOfTokens):
        def network(self, *args, **kwargs):
            network = super().network(*args, **kwargs)
            setattr(network, method, lambda *, tokens: tokens)
            return network

    with pytest.raises(InputError, match=f"`{method}` of BagOfTokensNetwork is called as {method}"):
        fit(features=Networks(dimension=4))


def test_features_of_doubles_are_taken():
    class Doubles(BagOfTokens):
        def network(self, *args, **kwargs):
            network = super().network(*args, **kwargs)
            forward = network.forward
            network.forward = lambda points: forward(points).double()
            return network

    model = fit(features=Doubles(dimension=16), surrogate=MetaLabelTask(schedule=BRIEF))
    assert model.predictor_.predict("wine", k=1)[0][0] == "drink"


def test_a_transform_is_made_of_arrays():
    own = LabelVectors(np.ones((2, 4)), np.ones(2))
    layer = torch.nn.Linear(4, 4)
    found = Rectified(layer.weight, layer.bias)
    with pytest.raises(InputError, match=r"a Parameter and a Parameter. Make it of numpy's arrays"):
        fit(surrogate=Learns(encoded()), classifier=Learns(own), transfer=OwnTransfer(found))


def test_batches_of_somebody_elses():
    class Twice(ShortlistTraining):
        def batches(self, *args):
            return TwiceAnEpoch(super().batches(*args))

    class TwiceAnEpoch:
        def __init__(self, inner):
            self.inner, self.labels = inner, inner.labels

        def n_batches(self):
            return 2 * self.inner.n_batches()

        def epoch(self, random):
            yield from self.inner.epoch(random)
            yield from self.inner.epoch(random)

        def state(self):
            return self.inner.state()

    told = []
    hears = SimpleNamespace(on_stage=Mock(), on_epoch=Mock(), on_batch=lambda *of: told.append(of))
    parts = {"surrogate": MetaLabelTask(schedule=BRIEF)}
    classifier = ShortlistedOneVsAll(training=Twice(schedule=BRIEF))
    model = DeepXML(**parts, classifier=classifier, n_threads=1)
    model.fit_dataset(Dataset.of(TEXTS, LABELS), callbacks=[hears])
    assert [total for stage, _, total, _ in told if stage == "module IV"] == 4 * [4]
