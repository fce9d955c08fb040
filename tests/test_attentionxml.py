"""AttentionXML: what is served is what was trained, down any number of levels."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import longtail
from killing import Batches, Killer
from longtail.classifiers import label_attention
from longtail.data.bags import Bags
from longtail.data.dataset import Dataset
from longtail.data.from_python import labels_from, texts_from
from longtail.errors import InputError
from longtail.features.word_table import WordTable
from longtail.kernels.attention import AttentionWeights
from longtail.metrics import precision_at_k
from longtail.recipes.attentionxml import AttentionXML
from longtail.scorers.ensemble import EnsembleScorer
from longtail.scorers.label_attention import AttentionLevel
from longtail.scorers.tree_nodes import children_of
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.run import TrainingData, TrainingRun

CPU = torch.device("cpu")
SMALL = {"dimension": 16, "n_hidden": 16, "n_words": 8, "batch_size": 16, "n_threads": 1}
SHALLOW = {"first_level": 8, "n_children": 2, "leaf_size": 3, "beam_size": 4}


def a_network(seed, widths=(3,), n_tokens=9, n_nodes=6):
    torch.manual_seed(seed)
    module = label_attention._Network(5, 4, widths, 0.0)
    tables = label_attention._Tables(
        WordTable(torch.randn(n_tokens, 5).numpy(), RowwiseAdagrad, CPU),
        WordTable(torch.randn(n_nodes, 8).numpy(), RowwiseAdagrad, CPU),
    )
    return module, tables


class TestKernel:
    @settings(max_examples=20, deadline=None)
    @given(
        st.integers(0, 2**16),
        st.lists(st.integers(0, 6), min_size=1, max_size=5),
        st.sampled_from([(3,), (3, 2), (2, 7)]),
    )
    def test_serves_what_torch_computes(self, seed, lengths, widths):
        random = np.random.default_rng(seed)
        words = random.integers(0, 9, (len(lengths), 6)).astype(np.int32)
        words[np.arange(6) >= np.array(lengths)[:, None]] = -1
        nodes = random.integers(-1, 6, (len(lengths), 4)).astype(np.int32)
        module, tables = a_network(seed, widths)
        level = AttentionLevel(module.frozen(tables), np.array([0, 6], np.int32))
        bags = Bags.of(csr_array((len(lengths), 9), dtype=np.float32))._replace(words=words)
        found = level.probabilities(bags, nodes)
        known = np.array(lengths) > 0
        expected = np.full(nodes.shape, -np.inf, np.float32)
        if known.any():
            read = torch.from_numpy(words[known]).long()
            chosen = torch.from_numpy(nodes[known]).long()
            with torch.no_grad():
                vectors, labels = tables.words.read(read), tables.labels.read(chosen)
                logits = module(vectors, (read >= 0).sum(dim=1), labels)
            expected[known] = torch.sigmoid(logits).numpy()
        expected[nodes < 0] = -np.inf
        np.testing.assert_allclose(found, expected, atol=1e-5)

    @pytest.mark.parametrize("widths", [(3,), (3, 2)])
    def test_starts_again_from_what_was_frozen(self, widths):
        module, tables = a_network(0, widths)
        weights = module.frozen(tables)
        other, _ = a_network(1, widths)
        other.start_from(weights)
        for name, value, again in zip(
            AttentionWeights._fields, weights, other.frozen(tables), strict=True
        ):
            if name != "output":  # its bias is that of the new level
                np.testing.assert_allclose(value, again, atol=1e-6, err_msg=name)
        np.testing.assert_array_equal(weights.output[:-1], other.frozen(tables).output[:-1])


@pytest.mark.parametrize(
    ("levels", "sizes"),
    [
        ((1, 8, 8), [1, 4, 32, 200]),
        ((3, 16, 4), [1, 4, 64, 200]),
        ((512, 8, 16), [1, 200]),
        ((16, 3, 16), [1, 16, 200]),
        ((8, 3, 16), [1, 8, 16, 200]),
    ],
)
def test_levels_are_nested(levels, sizes):
    first_level, n_children, leaf_size = levels
    model = AttentionXML(first_level=first_level, n_children=n_children, leaf_size=leaf_size)
    eye = csr_array(np.eye(200, dtype=np.float32))
    run = TrainingRun(seed=0, n_threads=1)
    tree = model._tree(TrainingData(eye, eye), run)
    nodes = [tree.nodes_of_labels(level) for level in range(tree.depth + 1)]
    assert [int(level.max()) + 1 for level in nodes] == sizes
    for above, below in pairwise(nodes):
        assert len(np.unique(np.stack([above, below]), axis=1).T) == below.max() + 1


def test_children_are_those_of_the_parents():
    starts = np.array([0, 2, 3, 6], np.int32)
    nodes, places = children_of(np.array([[2, 0], [1, -1]], np.int32), starts)
    assert nodes.tolist() == [[3, 4, 5, 0, 1, -1], [2, -1, -1, -1, -1, -1]]
    assert places.tolist() == [0, 0, 0, 1, 1, 1]


def test_a_childs_probability_is_that_of_its_parents_times_its_own():
    module, tables = a_network(0)
    level = AttentionLevel(module.frozen(tables), np.array([0, 2, 3, 6], np.int32))
    words = np.array([[1, 2, 3]], np.int32)
    bags = Bags.of(csr_array((1, 9), dtype=np.float32))._replace(words=words)
    parents, above = np.array([[2, 0]], np.int32), np.array([[0.5, 0.25]], np.float32)
    nodes, scores = level.children(bags, parents, above)
    assert nodes.tolist() == [[3, 4, 5, 0, 1, -1]]
    own = level.probabilities(bags, nodes)
    np.testing.assert_allclose(scores[0, :5], own[0, :5] * [0.5, 0.5, 0.5, 0.25, 0.25], rtol=1e-6)
    assert np.isneginf(scores[0, 5])


def test_a_training_follows_true_nodes_and_those_that_a_prediction_would():
    nodes = np.array([[0, 1, 2, 3, -1]], np.int32)
    scores = np.array([[0.1, 0.5, 0.3, 0.2, -np.inf]], np.float32)
    level = SimpleNamespace(children=lambda *_: (nodes, scores))
    labels = csr_array(np.eye(4, dtype=np.float32)[:1])
    root = np.zeros((1, 1), np.int32), np.ones((1, 1), np.float32)
    for size, followed, own in (
        (3, [0, 1, 2], [0.1, 0.5, 0.3]),
        (5, [0, 1, 2, 3, -1], [0.1, 0.5, 0.3, 0.2, -np.inf]),
    ):
        best, above = AttentionXML(beam_size=size)._followed(
            level,
            np.arange(4, dtype=np.int32),
            TrainingData(labels, labels),
            *root,
            TrainingRun(seed=0, n_threads=1),
        )
        assert best.tolist() == [followed]
        np.testing.assert_allclose(above, [own], atol=1e-6)


@pytest.fixture(scope="module")
def points():
    """Texts of a word that says the label, among others that say nothing."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 40, 1200)
    noise = random.integers(0, 30, (1200, 3))
    texts = [
        f"n{a} n{b} word{label} n{c}"
        for label, (a, b, c) in zip(labels.tolist(), noise.tolist(), strict=True)
    ]
    return texts, [[label] for label in labels.tolist()]


@pytest.mark.parametrize(
    ("levels", "n_levels"),
    [
        ({}, 1),
        ({**SHALLOW, "epochs": 3}, 3),
        pytest.param({"hidden_layers": (16,)}, 1, marks=pytest.mark.thorough),
        pytest.param(
            {"hidden_layers": (24, 16), "first_level": 8, "n_children": 4, "leaf_size": 5},
            2,
            marks=pytest.mark.thorough,
        ),
        pytest.param({"clip": 2.0}, 1, marks=pytest.mark.thorough),
        pytest.param({"average_after": 3}, 1, marks=pytest.mark.thorough),
    ],
    ids=["flat", "tree", "its own width", "two layers", "clipped", "averaged"],
)
def test_learns_and_comes_back(points, levels, n_levels, tmp_path):
    """The most frequent label has a P@1 of 4 % here."""
    texts, labels = points
    settings = {**SMALL, "epochs": 5, "held_out": 0, **levels}
    model = AttentionXML(**settings).fit(texts[:1000], labels[:1000])
    assert len(model.predictor_.scorer.levels) == n_levels
    ids, _ = model.predict_topk(texts[1000:], 1)
    truth = csr_array(np.array(labels[1000:]) == np.arange(40)).astype(np.float32)
    assert precision_at_k(ids, truth, 1) > 0.6
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(model.predict_topk(texts, 5), loaded.predict_topk(texts, 5))


@pytest.mark.parametrize(
    ("levels", "n_levels"),
    [
        pytest.param({}, 1, marks=pytest.mark.thorough),
        ({"first_level": 8, "n_children": 4, "leaf_size": 5, "beam_size": 4}, 2),
    ],
    ids=["flat", "tree"],
)
def test_each_level_stops_by_held_out_points(points, levels, n_levels):
    texts, labels = points
    waiting = {"epochs": 60, "patience": 2, "warm_up": 0.05, "held_out": 0.2}
    settings = {**SMALL, **levels, **waiting, "batch_size": 32}
    model = AttentionXML(**settings).fit(texts[:1000], labels[:1000])
    by_stage = {}
    for entry in model.run_.history:
        by_stage.setdefault(entry["stage"], []).append(entry["quality"])
    assert list(by_stage) == [f"level {depth}: level" for depth in range(1, n_levels + 1)]
    for qualities in by_stage.values():
        assert len(qualities) == int(np.argmax(qualities)) + 1 + 2 < 60
    truth = csr_array(np.array(labels[1000:]) == np.arange(40)).astype(np.float32)
    reached = precision_at_k(model.predict_topk(texts[1000:], 1)[0], truth, 1)
    assert reached > 0.6
    # The quality of the last level is P@1 of the answers.
    assert reached == pytest.approx(max(qualities), abs=0.15)


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({}, "level 2: level"),
        pytest.param({"n_learners": 2}, "learner 2: level 1: level", marks=pytest.mark.thorough),
        pytest.param(
            {"clip": 1.5, "average_after": 1, "hidden_layers": (16, 8)},
            "level 2: level",
            marks=pytest.mark.thorough,
        ),
    ],
    ids=["one tree", "second learner", "all else"],
)
def test_a_killed_training_stops_where_it_would_have(points, tmp_path, changes, stage):
    labels, space, _ = labels_from(points[1][:150], 150)
    dataset = Dataset(texts_from(points[0][:150]), None, labels, space)
    settings = {"epochs": 30, "patience": 1, "held_out": 0.2, **changes}

    def fitted(*callbacks, folder=None):
        return AttentionXML(**SMALL, **SHALLOW, **settings).fit_dataset(
            dataset, callbacks=callbacks, checkpoint_folder=folder, checkpoint_seconds=0
        )

    all_batches, left = Batches(), Batches()
    whole = fitted(all_batches)
    last = max(entry["epoch"] for entry in whole.run_.history if entry["stage"] == stage)
    for epoch in (1, last):
        with pytest.raises(KeyboardInterrupt):
            fitted(Killer(epoch, stage), folder=tmp_path / str(epoch))
        left.n = 0
        resumed = fitted(left, folder=tmp_path / str(epoch))
        assert left.n < all_batches.n
        arrays, others = (model.predictor_.scorer.to_arrays() for model in (whole, resumed))
        assert arrays.keys() == others.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, others[name], err_msg=name)


def test_one_hidden_layer_is_saved_without_a_second(points):
    texts, labels = points
    model = AttentionXML(**SMALL, epochs=1).fit(texts[:50], labels[:50])
    names = model.predictor_.scorer.to_arrays()
    assert "level0/hidden" in names
    assert not {name for name in names if "second" in name}


@pytest.mark.thorough
def test_a_mean_of_weights_is_what_early_stopping_looks_at(points):
    texts, labels = points
    settings = {**SMALL, "held_out": 0.2, "patience": 50}

    def qualities(**changes):
        model = AttentionXML(**settings, epochs=4, **changes).fit(texts[:1000], labels[:1000])
        return [entry["quality"] for entry in model.run_.history], model

    usual, _ = qualities()
    averaged, model = qualities(average_after=1)
    assert averaged[:1] == usual[:1]
    assert averaged[1:] != usual[1:]
    truth = csr_array(np.array(labels[1000:]) == np.arange(40)).astype(np.float32)
    reached = precision_at_k(model.predict_topk(texts[1000:], 1)[0], truth, 1)
    assert reached == pytest.approx(max(averaged), abs=0.15)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clip": 0.5}, "each step would be shorter"),
        ({"hidden_layers": ()}, "widths of one or two layers"),
        ({"hidden_layers": (4, 4, 4)}, "widths of one or two layers"),
        ({"hidden_layers": (4, 0)}, "widths of one or two layers"),
        ({"hidden_layers": 512}, "a tuple of whole numbers, got 512"),
        ({"epochs": 3, "average_after": 3}, "leaves none of the 3 epochs"),
        ({"average_after": -1}, "average_after must be between"),
        ({"n_learners": 0}, "n_learners must be between"),
    ],
)
def test_settings_that_cannot_be_are_refused(points, settings, message):
    with pytest.raises(InputError, match=message):
        AttentionXML(**settings).fit(points[0][:50], points[1][:50])


@pytest.mark.thorough
def test_learners_have_trees_of_their_own_and_the_mean_of_their_probabilities(points, tmp_path):
    texts, labels = points
    settings = {**SMALL, **SHALLOW, "epochs": 3, "held_out": 0}
    model = AttentionXML(**settings, n_learners=2).fit(texts[:400], labels[:400])
    scorer = model.predictor_.scorer
    assert isinstance(scorer, EnsembleScorer)
    first, second = scorer.members
    assert not np.array_equal(first.labels, second.labels)  # in the order of the leaves
    assert sorted(first.labels) == sorted(second.labels)
    stages = {entry["stage"] for entry in model.run_.history}
    assert {"learner 1: level 1: level", "learner 2: level 1: level"} <= stages
    bags = model.predictor_.bags(texts[400:420])
    totals = np.zeros((20, 40), np.float32)
    for member in scorer.members:
        ids, scores = member.top_k(bags, 40)
        rows, places = np.nonzero(ids >= 0)
        totals[rows, ids[rows, places]] += scores[rows, places]
    ids, scores = scorer.top_k(bags, 3)
    expected = -np.sort(-totals, axis=1)[:, :3] / 2
    np.testing.assert_allclose(scores, expected, rtol=1e-6)
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(model.predict_topk(texts, 5), loaded.predict_topk(texts, 5))


def test_patience_needs_points_held_out(points):
    texts, labels = points
    with pytest.raises(InputError, match=r"patience = 2 .* Hold out more"):
        AttentionXML(**SMALL, patience=2, held_out=0).fit(texts[:50], labels[:50])


def test_a_beam_may_be_wider_than_the_tree(points):
    texts, labels = points
    settings = {**SMALL, **SHALLOW, "epochs": 1, "held_out": 0}
    answers = [
        AttentionXML(**settings | {"beam_size": beam_size})
        .fit(texts[:200], labels[:200])
        .predict_topk(texts[200:300], 5)
        for beam_size in (40, 1_000_000)
    ]
    np.testing.assert_array_equal(*answers)


def test_a_level_looks_at_no_more_parents_than_there_are(points, monkeypatch):
    """Padding was scored, too: sixteen times the first level's nodes, most of them none."""
    texts, labels = points
    model = AttentionXML(**SMALL, epochs=1, beam_size=16).fit(texts[:200], labels[:200])
    asked = []
    own = AttentionLevel.probabilities

    def probabilities(level, bags, nodes, n_threads=1):
        asked.append(nodes.shape[1])
        return own(level, bags, nodes, n_threads)

    monkeypatch.setattr(AttentionLevel, "probabilities", probabilities)
    model.predict_topk(texts[:10], 5)
    assert asked == [len(model.predictor_.scorer.labels)]


def test_a_single_word_tells_labels_apart():
    """All labels look at the same state here: how well it fits must count, too."""
    labels = np.random.default_rng(0).integers(0, 12, 300).tolist()
    texts = [f"word{label}" for label in labels]
    model = AttentionXML(**SMALL, epochs=8, held_out=0).fit(texts, [[label] for label in labels])
    ids, _ = model.predict_topk(texts, 1)
    assert (ids[:, 0] == labels).mean() > 0.9


def test_points_without_words_say_nothing_of_where_labels_start():
    module = a_network(0)[0]
    words = np.random.default_rng(0).normal(size=(3, module.lstm.input_size)).astype(np.float32)
    texts = np.array([[0, 1], [2, -1], [-1, -1]], np.int32)
    starts = label_attention._centroids(module, words, texts, csr_array(np.eye(3)))
    assert not starts[2].any()
    np.testing.assert_allclose(starts[0], -starts[1], atol=1e-5)  # apart from their mean


def test_bags_are_refused(points):
    texts, labels = points
    model = AttentionXML(**SMALL, epochs=1).fit(texts[:50], labels[:50])
    with pytest.raises(InputError, match="words of a text in order"):
        model.predictor_.scorer.top_k(Bags.of(csr_array((2, 9), dtype=np.float32)), 2)


@pytest.mark.parametrize("after", [0, 4])
def test_a_mean_of_few_steps_is_of_each(points, after):
    texts, labels = points
    usual, averaged = (
        AttentionXML(**SMALL, epochs=5, **changes).fit(texts[:60], labels[:60])
        for changes in ({}, {"average_after": after})
    )
    found = [model.predict_topk(texts[:60])[1] for model in (usual, averaged)]
    assert not np.array_equal(*found)
