"""Full one-versus-all: chunks of labels, the part for DeepXML, the recipe, a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from longtail.classifiers.classifier_training import ClassifierTraining
from longtail.classifiers.shortlisted import FullOneVsAll
from longtail.data.bags import Bags
from longtail.features.bag_encoder import BagEncoder, UnitBagEncoder
from longtail.recipes.deepxml import DeepXML
from longtail.recipes.one_vs_all import OneVsAll
from longtail.restoring import scorer_from
from longtail.scorers import one_vs_all
from longtail.scorers.one_vs_all import OneVsAllScorer
from longtail.training import label_table
from longtail.training.batches import AllLabels
from longtail.training.label_table import LabelTable
from longtail.training.schedule import Schedule

CPU = torch.device("cpu")


def points_and_labels(n_points=400, n_labels=12, seed=0):
    """Points that carry the labels of whichever of their first features are large."""
    random = np.random.default_rng(seed)
    dense = random.random((n_points, 40)) * (random.random((n_points, 40)) < 0.25)
    dense[:, -1] += 0.1
    labels = dense[:, :n_labels] > 0.4
    labels[np.arange(n_points), dense[:, :n_labels].argmax(axis=1)] = True
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    return csr_array(dense.astype(np.float32)), csr_array(labels.astype(np.float32))


def test_chunks_of_labels_change_nothing(monkeypatch):
    monkeypatch.setattr(label_table, "product_dtype", lambda _: torch.float32)
    _, labels = points_and_labels()
    features = torch.rand(50, 6, generator=torch.Generator().manual_seed(0))
    batch = next(AllLabels(labels[:50], 50).epoch(np.random.default_rng(0)))
    found = []
    for at_once in (2**26, 50 * 5):  # all 12 labels, then 5, 5 and 2
        monkeypatch.setattr(label_table, "LOGITS_AT_ONCE", at_once)
        table = LabelTable(12, 6, frequencies=None, seed=3, device=CPU)
        for _ in range(3):
            loss, gradient = table.learn(features, batch, 0.1, measure=True)
        found.append((loss, gradient, table.vectors, table.bias))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    for whole, chunked in zip(found[0][1:], found[1][1:], strict=True):
        torch.testing.assert_close(whole, chunked, rtol=1e-4, atol=1e-5)


def test_is_a_classifier_of_deepxml():
    features, labels = points_and_labels()
    training = ClassifierTraining(schedule=Schedule(epochs=20, learning_rate=0.1))
    model = DeepXML(classifier=FullOneVsAll(training=training, batch_size=32), n_threads=1)
    model.fit(features[:320], labels[:320])
    assert model.score(features[320:], labels[320:]) > 0.7


class TestOneVsAllScorer:
    TOKENS = np.array([[1, -2], [-1, -1], [3, 1]], np.float32)
    CLASSIFIERS = np.array([[1, 0, 0.5], [0, 2, 0], [-1, 1, 1]], np.float32)
    USED = np.array([0, 3, 4], np.int32)
    POINTS = Bags.of(csr_array(np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 2.0]])))

    def scorer(self, *, encoder=BagEncoder, as_probability=False):
        return OneVsAllScorer(encoder(self.TOKENS), self.CLASSIFIERS, self.USED, as_probability)

    @pytest.mark.parametrize("as_probability", [False, True])
    def test_a_saved_one_is_made_again(self, as_probability):
        scorer = self.scorer(as_probability=as_probability)
        again = scorer_from(scorer.config(), scorer.to_arrays())
        for found, expected in zip(
            again.top_k(self.POINTS, 4), scorer.top_k(self.POINTS, 4), strict=True
        ):
            np.testing.assert_array_equal(found, expected)

    def test_logits_are_products_and_a_point_without_tokens_has_none(self):
        ids, scores = self.scorer().top_k(self.POINTS, 4)
        none = -np.inf
        assert ids.tolist() == [[0, 3, 4, -1], [-1] * 4, [4, 0, 3, -1], [0, 3, 4, -1]]
        assert scores.tolist() == [
            [4.5, 0, -3, none],
            [none] * 4,
            [1, 0.5, 0, none],  # of a known token, though the ReLU leaves nothing
            [6.5, 4, -3, none],
        ]

    @pytest.mark.parametrize("encoder", [BagEncoder, UnitBagEncoder])
    @pytest.mark.parametrize("as_probability", [False, True])
    def test_blocks_change_nothing(self, monkeypatch, encoder, as_probability):
        scorer = self.scorer(encoder=encoder, as_probability=as_probability)
        at_once = scorer.top_k(self.POINTS, 3)
        monkeypatch.setattr(one_vs_all, "ROWS_AT_ONCE", 3)
        for found, expected in zip(scorer.top_k(self.POINTS, 3), at_once, strict=True):
            np.testing.assert_array_equal(found, expected)

    def test_a_probability_is_the_sigmoid_of_a_score(self):
        ids, scores = self.scorer().top_k(self.POINTS, 4)
        same_ids, chances = self.scorer(as_probability=True).top_k(self.POINTS, 4)
        assert same_ids.tolist() == ids.tolist()
        expected = np.where(ids < 0, -np.inf, 1 / (1 + np.exp(-scores)))
        np.testing.assert_allclose(chances, expected, rtol=1e-6)


class TestOneVsAll:
    @pytest.fixture
    def fitted(self):
        features, labels = points_and_labels()
        return OneVsAll(dimension=32, batch_size=32, epochs=20, learning_rate=0.1, n_threads=1).fit(
            features[:320], labels[:320]
        )

    def test_learns(self, fitted):
        features, labels = points_and_labels()
        assert fitted.score(features[320:], labels[320:]) > 0.7

    def test_scores_every_label(self, fitted):
        features, _ = points_and_labels()
        scorer = fitted.predictor_.scorer
        vectors = scorer.encoder.encode(Bags.of(features[:20]))
        expected = vectors @ scorer.classifiers[:, :-1].T + scorer.classifiers[:, -1]
        again = scorer_from(scorer.config(), scorer.to_arrays())
        for one, n_threads in ((scorer, 1), (scorer, 3), (again, 1)):
            ids, scores = one.top_k(Bags.of(features[:20]), 12, n_threads)
            assert (np.sort(ids, axis=1) == np.arange(12)).all()
            found = np.take_along_axis(expected, ids.astype(np.int64), axis=1)
            np.testing.assert_allclose(scores, found, rtol=1e-4, atol=1e-5)

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
    def test_learns_on_a_gpu(self):
        features, labels = points_and_labels()
        model = OneVsAll(dimension=32, batch_size=32, epochs=20, learning_rate=0.1, device="cuda")
        model.fit(features[:320], labels[:320])
        assert model.score(features[320:], labels[320:]) > 0.7
