"""X-Transformer's three stages: what each learns, and how their scores are combined."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import longtail
from killing import Batches, Killer
from longtail.cli.settings import parse_settings, settings_help
from longtail.data.bags import Bags
from longtail.errors import InputError
from longtail.estimators.limits import check_settings
from longtail.features.bag_encoder import UnitBagEncoder
from longtail.matching.bag_training import BagTraining
from longtail.matching.cluster_scores import LinearMatcher, NeuralMatcher
from longtail.matching.cluster_vectors import ClusterVectors, squared_hinge
from longtail.matching.learnt_matcher import EncodedPoints, LearntMatcher
from longtail.metrics import precision_at_k
from longtail.recipes.ngame import NGAME
from longtail.recipes.xtransformer import XTransformer, _as_nodes
from longtail.scorers.ensemble import EnsembleScorer
from longtail.scorers.joined_features import JoinedFeatures
from longtail.siamese.pair_losses import DecoupledSoftmax, TripletLoss
from longtail.surrogates.label_indexing import LabelTexts, PointEmbeddings, PointFeatures
from longtail.training.batches import AllLabels, Batch
from longtail.training.run import TrainingData
from longtail.training.schedule import Schedule
from small_runs import a_run
from small_wordnet import small_wordnet

CPU = torch.device("cpu")
SMALL = {"dimension": 32, "leaf_size": 10, "epochs": 5, "beam_size": 5, "n_threads": 1}


def random_bags(n_rows=12, n_tokens=9, seed=0):
    dense = np.random.default_rng(seed).random((n_rows, n_tokens)).astype(np.float32)
    return csr_array(np.where(dense < 0.6, 0, dense))


@pytest.fixture(scope="module")
def data():
    return small_wordnet(1500, 400)


class TestMatcher:
    def test_the_slope_is_that_of_thesquared_hinge(self):
        targets = csr_array(np.random.default_rng(0).random((6, 4)) < 0.3)
        (batch,) = AllLabels(targets, 6).epoch(np.random.default_rng(0))
        scores = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)) * 2
        sign = torch.from_numpy(np.where(targets.toarray()[batch.points], 1.0, -1.0)).float()
        plain = scores.clone().requires_grad_()
        value = (1 - sign * plain).clamp_min(0).square().sum()
        loss, slope = squared_hinge(scores.clone(), batch)
        torch.testing.assert_close(slope, torch.autograd.grad(value, plain)[0])
        assert loss == pytest.approx(value.item() / 24, rel=1e-5)

    def test_the_first_step_is_that_of_the_cluster_that_points_are_in(self):
        clusters = ClusterVectors(3, 2, CPU)
        batch = Batch(np.arange(2), None, np.arange(2), np.array([1, 1]))
        clusters.learn(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), batch, 0.5)
        vectors, bias = clusters.so_far()
        np.testing.assert_allclose(bias, [-1, -0.5, -1], rtol=1e-5)
        np.testing.assert_allclose(vectors, [[0, 0], [0.5**0.5, 0], [0, 0]], rtol=1e-5)

    def test_learns_which_clusters_a_point_is_in(self):
        features, random = random_bags(200, 30), np.random.default_rng(1)
        weights = random.standard_normal((30, 8))
        targets = csr_array(np.argsort(-(features @ weights), axis=1)[:, :1] == np.arange(8))
        training = BagTraining(
            dimension=16,
            schedule=Schedule(epochs=30, learning_rate=0.05),
            batch_size=32,
            dropout=0.3,
            n_best=10,
        )
        data = TrainingData(features, targets)
        encoded = training.learn(data, targets, a_run())
        matcher = NeuralMatcher().match(encoded, data, targets, a_run())
        best = matcher.best_clusters(features, 1)[:, 0]
        assert (best == targets.toarray().argmax(axis=1)).mean() > 0.8


class TestClusterScores:
    """Points of eight clusters, of which the encoder knows by half of the tokens alone."""

    def encoded(self):
        features, random = random_bags(400, 30), np.random.default_rng(1)
        targets = csr_array(np.arange(8) == random.integers(8, size=400)[:, np.newaxis])
        # Tokens that are known say it of six points in ten, and those that are not of all.
        known = targets.toarray() & (random.random((400, 1)) < 0.6)
        features = csr_array(
            np.hstack([features.toarray()[:, :8], 2 * known, 2 * targets.toarray()])
        )
        features = features.astype(np.float32)
        table = np.vstack([np.eye(16, 16), np.zeros((8, 16))]).astype(np.float32)
        encoder = UnitBagEncoder(table)
        points = encoder.encode(Bags.of(features))
        return EncodedPoints(encoder, points), TrainingData(features, targets)

    def share_found(self, matcher, data):
        best = matcher.best_clusters(data.features, 1)[:, 0]
        return (best == data.labels.toarray().argmax(axis=1)).mean()

    def test_trained_vectors_are_kept(self):
        encoded, data = self.encoded()
        vectors, bias = np.ones((8, 16), np.float32), np.zeros(8, np.float32)
        trained = encoded._replace(vectors=vectors, bias=bias)
        matcher = NeuralMatcher().match(trained, data, data.labels, a_run())
        assert (matcher.vectors is vectors, matcher.bias is bias) == (True, True)
        assert (matcher.points is encoded.points, matcher.tokens) == (True, None)
        other = LinearMatcher().match(trained, data, data.labels, a_run())
        np.testing.assert_array_equal(
            other.vectors, LinearMatcher().match(encoded, data, data.labels, a_run()).vectors
        )

    def test_read_what_they_say(self):
        """One cluster in eight is right by chance."""
        encoded, data = self.encoded()
        neural, linear = (
            matcher.match(encoded, data, data.labels, a_run())
            for matcher in (NeuralMatcher(), LinearMatcher())
        )
        assert neural.tokens is None
        assert 0.5 < self.share_found(neural, data) < 0.8
        assert self.share_found(linear, data) > 0.95


class TestJoinedFeatures:
    def test_are_the_bag_and_its_encoding(self):
        bags = random_bags().toarray()
        bags[3] = 0
        table = np.random.default_rng(1).standard_normal((9, 4)).astype(np.float32)
        join = JoinedFeatures(UnitBagEncoder(table), 9)
        rows = csr_array(bags)
        joined = join.of(Bags.of(rows))
        found = csr_array(
            (joined.values, joined.columns, joined.row_starts), (12, join.n_features)
        ).toarray()
        encoded = join.encoder.encode(Bags.of(rows))
        np.testing.assert_allclose(found, np.hstack([bags, encoded]) * 0.5**0.5, atol=1e-6)
        assert joined.row_starts[4] == joined.row_starts[3]  # nothing is known of it


class TestScores:
    def test_are_the_product_of_matcher_and_ranker(self, data):
        """Scores by the formula, over all clusters at once."""
        model = XTransformer(**SMALL | {"beam_size": 1000}).fit_dataset(data[0])
        scorer, tree = model.predictor_.scorer, model.predictor_.scorer.tree.tree
        bags = model.predictor_.vectorizer.transform(data[1].texts)[:20]
        joined = scorer.join.of(Bags.of(bags))
        n_inner = len(tree.child_starts) - 1
        weights = np.zeros((tree.child_starts[-1], scorer.join.n_features))
        for node in range(n_inner):
            for place in range(tree.feature_starts[node], tree.feature_starts[node + 1]):
                own = slice(tree.weight_starts[place], tree.weight_starts[place + 1])
                children = tree.children[own] + tree.child_starts[node]
                weights[children, tree.features[place]] = tree.weights[own]
        x = csr_array((joined.values, joined.columns, joined.row_starts), (20, weights.shape[1]))
        gaps = np.maximum(1 - (x @ weights.T)[:, 1:] - tree.bias, 0)
        parents = np.repeat(np.arange(n_inner), np.diff(tree.child_starts))
        ranked = gaps[:, n_inner - 1 :]
        matched = gaps[:, parents[n_inner - 1 :] - 1]
        expected = np.sort(np.exp(-(ranked**2) - matched**2), axis=1)[:, ::-1][:, :5]
        _, scores = scorer.top_k(Bags.of(bags), 5)
        np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"teacher_forcing": False},
        {"matcher_aware": False},
        {"indexers": (PointEmbeddings(),)},
        {"indexers": (LabelTexts(),)},
        {"matcher": "linear"},
    ],
    ids=str,
)
def test_each_way_learns(data, settings):
    """The most frequent labels have a P@1 of 2 % here."""
    train, test = data
    model = XTransformer(**SMALL | settings).fit_dataset(train)
    ids, _ = model.predict_topk(test.texts, 1)
    assert precision_at_k(ids, test.labels, 1) > 0.25


def test_an_ensemble_over_indexers(data, tmp_path):
    train, test = data
    indexers = (PointFeatures(), PointEmbeddings(), LabelTexts())
    model = XTransformer(**SMALL, indexers=indexers).fit_dataset(train)
    assert isinstance(model.predictor_.scorer, EnsembleScorer)
    # One encoder is trained for both indexers that need one, then a matcher a member.
    assert sum("first" in name for name in model.run_.timings) == 2
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_topk(test.texts, 5)[0], model.predict_topk(test.texts, 5)[0]
    )


def test_a_bag_has_the_neural_matcher(data, tmp_path):
    usual, neural, linear = (
        XTransformer(**SMALL, matcher=matcher).fit_dataset(data[0])
        for matcher in (None, NeuralMatcher(), "linear")
    )
    arrays, same = (model.predictor_.scorer.to_arrays() for model in (usual, neural))
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, same[name], err_msg=name)
    texts = data[1].texts
    assert not np.array_equal(usual.predict_topk(texts)[1], linear.predict_topk(texts)[1])
    linear.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    for found, expected in zip(loaded.predict_topk(texts), linear.predict_topk(texts), strict=True):
        np.testing.assert_array_equal(found, expected)


class TestPatience:
    STOPPING = SMALL | {"epochs": 60, "patience": 2, "learning_rate": 0.1, "held_out": 0.2}

    def test_stops_once_held_out_points_gain_no_more(self, data):
        train, test = data
        model = XTransformer(**self.STOPPING).fit_dataset(train)
        qualities = [entry["quality"] for entry in model.run_.history]
        assert len(qualities) == int(np.argmax(qualities)) + 1 + 2 < 60
        ids, _ = model.predict_topk(test.texts, 1)
        assert precision_at_k(ids, test.labels, 1) > 0.25

    def test_each_matcher_stops_for_itself(self, data):
        indexers = (PointFeatures(), PointEmbeddings())
        model = XTransformer(**self.STOPPING, indexers=indexers).fit_dataset(data[0])
        stages = [entry["stage"] for entry in model.run_.history]
        assert list(dict.fromkeys(stages)) == [
            "index 1: matcher",
            "first matcher",
            "index 2: matcher",
        ]

    @pytest.mark.parametrize("matcher", ["neural", "linear"])
    def test_goes_on_to_the_same_model(self, data, tmp_path, matcher):
        all_batches, left = Batches(), Batches()
        whole = self.fitted(data[0], None, matcher, all_batches)
        for epoch in (2, len(whole.run_.history)):
            folder, killer = tmp_path / str(epoch), Killer(epoch)
            with pytest.raises(KeyboardInterrupt):
                self.fitted(data[0], folder, matcher, killer)
            left.n = 0
            resumed = self.fitted(data[0], folder, matcher, left)
            assert left.n < all_batches.n
            arrays, others = (m.predictor_.scorer.to_arrays() for m in (whole, resumed))
            for name, array in arrays.items():
                np.testing.assert_array_equal(array, others[name], err_msg=name)
            assert [e["epoch"] for e in resumed.run_.history] == [
                e["epoch"] for e in whole.run_.history
            ]

    def fitted(self, dataset, folder, matcher, *callbacks):
        return XTransformer(**self.STOPPING, matcher=matcher).fit_dataset(
            dataset, callbacks=callbacks, checkpoint_folder=folder, checkpoint_seconds=0
        )

    @pytest.mark.parametrize("settings", [{"held_out": 0}, {"held_out": 0.05}], ids=str)
    def test_needs_points_held_out(self, settings):
        texts, labels = ["red wine", "old car"] * 30, [["drink"], ["vehicle"]] * 30
        with pytest.raises(InputError, match=r"patience = 3 .* Hold out more"):
            XTransformer(patience=3, **settings).fit(texts, labels)


@pytest.mark.parametrize("reads_tokens", [True, False])
def test_nodes_say_of_joined_features_what_the_matcher_says(reads_tokens):
    random = np.random.default_rng(0)
    bags = csr_array(random.random((5, 4)).astype(np.float32))
    encoder = UnitBagEncoder(random.standard_normal((4, 3)).astype(np.float32))
    points = encoder.encode(Bags.of(bags))
    vectors, bias = (random.standard_normal(n).astype(np.float32) for n in ((2, 3), 2))
    tokens = csr_array(random.standard_normal((2, 4)).astype(np.float32))
    matcher = LearntMatcher(encoder, vectors, bias, points, tokens if reads_tokens else None)
    expected = points @ vectors.T + bias + (bags @ tokens.T).toarray() * reads_tokens
    joined = JoinedFeatures(encoder, 4).of(Bags.of(bags))
    clusters = np.tile(np.arange(2, dtype=np.int32), (5, 1))
    said = _as_nodes(matcher, 4).logits(joined, clusters)
    np.testing.assert_allclose(said, expected, atol=1e-5)


def test_recall_looks_at_no_more_than_half_of_the_clusters():
    matcher = LearntMatcher(
        encoder=UnitBagEncoder(np.eye(2, dtype=np.float32)),
        vectors=np.eye(4, 2, dtype=np.float32),
        bias=np.array([0, 0, 0.5, -1], np.float32),
        points=np.eye(2, dtype=np.float32),
    )
    features = csr_array(np.eye(2, dtype=np.float32))
    targets = csr_array(np.array([[1, 0, 1, 0], [0, 0, 0, 1]]))  # 0 and 2 are its best, 1 and 2
    assert matcher.recall(features, targets, 10) == 0.5


@pytest.mark.parametrize(
    ("settings", "warm_up"),
    [({}, 0.0), ({"warm_up": 0.3}, 0.3), ({"encoder": "a-folder", "fine_tune": True}, 0.1)],
    ids=str,
)
def test_a_transformer_warms_up_unless_told(settings, warm_up):
    assert XTransformer(**settings).schedule().warm_up == warm_up


def test_warm_up_changes_what_a_bag_learns(data):
    scores = [
        XTransformer(**SMALL, warm_up=warm_up).fit_dataset(data[0]).run_.history[0]["loss"]
        for warm_up in (0.0, 0.5)
    ]
    assert scores[0] < scores[1]


@pytest.mark.parametrize(
    "settings", [{"indexers": ()}, {"teacher_forcing": False, "matcher_aware": False}], ids=str
)
def test_refuses_to_go_without(settings):
    with pytest.raises(InputError, match="needs an indexer, and negatives"):
        XTransformer(**settings).fit(["red wine", "old car"], [["drink"], ["vehicle"]])


def few_points():
    """Sixty texts of two words, and both words as labels."""
    random = np.random.default_rng(0)
    pairs = random.integers(0, 12, (60, 2))
    names = [sorted({f"word{i}" for i in pair}) for pair in pairs]
    return [" ".join(own) for own in names], names


def test_either_kind_of_negatives_may_be_left_out():
    settings = {"dimension": 8, "leaf_size": 2, "epochs": 2, "beam_size": 1, "n_threads": 1}
    trees = [
        XTransformer(**settings, **without).fit(*few_points()).predictor_.scorer.tree.tree.weights
        for without in ({}, {"teacher_forcing": False}, {"matcher_aware": False})
    ]
    for one, other in combinations(trees, 2):
        assert one.shape != other.shape or (one != other).any()


def test_each_index_has_clusters_of_its_own():
    settings = {"dimension": 8, "leaf_size": 2, "epochs": 1, "n_threads": 1}
    model = XTransformer(**settings, indexers=("features", "features")).fit(*few_points())
    first, second = (member.tree.tree.labels for member in model.predictor_.scorer.members)
    assert not np.array_equal(first, second)  # in the order of the leaves
    assert sorted(first) == sorted(second)


def test_texts_are_needed_to_index_by_them():
    with pytest.raises(InputError, match="without texts cannot be clustered"):
        XTransformer(indexers=(LabelTexts(),)).fit(csr_array(np.eye(4)), np.eye(4, dtype=int))


def test_parts_may_be_words_on_the_command_line():
    settings = parse_settings(XTransformer, ["indexers=features,texts"])
    assert settings == {"indexers": ("features", "texts")}
    texts, labels = ["red wine", "fast car"] * 5, [["drink"], ["vehicle"]] * 5
    model = XTransformer(**settings, leaf_size=1, dimension=8, epochs=2).fit(texts, labels)
    assert len(model.predictor_.scorer.members) == 2
    with pytest.raises(InputError, match="'features', 'embeddings', 'texts', got 'nothing'"):
        check_settings(XTransformer(indexers=("nothing",)))
    assert parse_settings(XTransformer, ["matcher=neural"]) == {"matcher": "neural"}
    with pytest.raises(
        InputError, match="matcher must be one of 'linear', 'neural', got 'nothing'"
    ):
        check_settings(XTransformer(matcher="nothing"))
    with pytest.raises(InputError, match="matcher must be an object, got the class NeuralMatcher"):
        check_settings(XTransformer(matcher=NeuralMatcher))
    losses = parse_settings(NGAME, ["encoder_loss=softmax", "classifier_loss=triplet"])
    modules = NGAME(**losses).encoder_module(100), NGAME(**losses).classifier_module(100)
    assert [type(part.loss) for part in modules] == [DecoupledSoftmax, TripletLoss]
    with pytest.raises(InputError, match="encoder_loss must be one of 'triplet'"):
        check_settings(NGAME(encoder_loss="square"))
    assert "indexers =" in settings_help(XTransformer, "xtransformer")


@pytest.mark.parametrize("recipe", [NGAME, XTransformer])
def test_settings_of_a_transformer_are_refused_for_a_bag(recipe):
    with pytest.raises(InputError, match="n_pieces and fine_tune would change nothing"):
        check_settings(recipe(fine_tune=True, n_pieces=3))
    check_settings(recipe(n_pieces=128))
