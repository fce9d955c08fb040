"""Models learn: floors on real data that a broken model does not reach.

2,000 dictionary entries of WordNet with its 300 most frequent labels. On their test points the most
frequent labels have a P@1 of 2 %, the 20 nearest points 52 %; the model below, small and trained
briefly, had 33 % with no training at all, 45 % with it, and 36 % as the published code has it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from longtail.blend.relations import LabelRelations
from longtail.blend.score_network import ScoreNetwork
from longtail.compiled.expanded import expanded
from longtail.data.label_space import LabelSpace
from longtail.metrics import precision_at_k
from longtail.recipes import longtail as longtail_recipe
from longtail.recipes.astec import Astec
from longtail.recipes.longtail import LongtailClassifier
from small_wordnet import small_wordnet

N_LABELS, N_TRAIN, N_TEST = 300, 2000, 500
NO_EPOCHS = {"surrogate_epochs": 0, "extreme_epochs": 0, "reranker_epochs": 0}


@pytest.fixture(scope="module")
def data():
    """Training and test points."""
    return small_wordnet(N_TRAIN, N_TEST, N_LABELS)


def learnt(data, **settings):
    """A model and its metrics on the test points."""
    small = {
        "dimension": 64,
        "surrogate_epochs": 10,
        "extreme_epochs": 5,
        "reranker_epochs": 5,
        "batch_size": 256,
        "n_near_labels": 100,
        "n_near_points": 30,
        "shortlist_size": 120,
    }
    model = Astec(**small | settings).fit_dataset(data[0])
    return model, model.evaluate(data[1])


@pytest.fixture(scope="module")
def trained(data):
    return learnt(data)


def losses(model, stage):
    return [entry["loss"] for entry in model.run_.history if entry["stage"] == stage]


def test_beats_what_it_starts_from(data, trained):
    _, untrained = learnt(data, **NO_EPOCHS)
    assert trained[1]["P@1"] > untrained["P@1"] + 5
    assert trained[1]["P@1"] > 38
    assert trained[1]["R@10"] > 60


def test_loss_falls_in_every_stage(trained):
    for stage in ("module I", "module IV", "re-ranker"):
        found = losses(trained[0], stage)
        assert found[-1] < 0.8 * found[0], stage


def test_probabilities_are_calibrated(data, trained):
    """Of the five best labels, about as many are right as their probabilities say."""
    _, probabilities = trained[0].predict_topk(data[1].texts, 5)
    assert 100 * probabilities.mean() == pytest.approx(trained[1]["P@5"], abs=4)


def test_without_a_reranker(data, trained):
    model, found = learnt(data, reranker=False)
    assert model.predictor_.scorer.reranker is None
    assert not losses(model, "re-ranker")
    assert 30 < found["P@1"] < trained[1]["P@1"] + 5


def test_without_near_points(data):
    assert learnt(data, n_near_points=0, reranker=False)[1]["P@1"] > 30


@pytest.mark.thorough
def test_as_in_the_published_code(data):
    model, found = learnt(data, as_in_code=True, reranker=False)
    assert found["P@1"] > 28
    for stage in ("module I", "module IV"):
        assert losses(model, stage)[-1] < 0.5 * losses(model, stage)[0], stage


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_cuda_learns_as_the_cpu(data, trained):
    _, found = learnt(data, device="cuda")
    assert found["P@1"] == pytest.approx(trained[1]["P@1"], abs=5)


def learnt_by_default(data):
    return LongtailClassifier(dimension=64, epochs=4, n_threads=1).fit_dataset(data[0])


@pytest.fixture(scope="module")
def default(data):
    return learnt_by_default(data)


def alone(model, data):
    """P@1 of each source of scores, among the candidates of all."""
    scorer, bags = expanded(model.predictor_.scorer), model.predictor_.bags(data[1].texts)
    scorer = replace(scorer, tail_weights=np.zeros_like(scorer.tail_weights))
    networks = [ScoreNetwork.of_source(i, scorer.n_sources) for i in range(scorer.n_sources)]
    best = [replace(scorer, network=network).top_k(bags, 1)[0] for network in networks]
    return [100 * precision_at_k(ids, data[1].labels, 1) for ids in best]


class TestLongtailClassifier:
    """With a dimension of 64 and 4 epochs four seeds had a P@1 of 62 to 65 %.

    Without label texts they had 55 to 57 %, without relations 60 to 63 %. R@10 was 87 to 88 %, and
    without relations 85 to 87 %, each 1 to 2 less.

    Its sources alone had 52, 52 and 49 % (the heads; 30, 28 and 19 % untrained), 56 % (linear),
    48 % (votes of near points; 26 % untrained), 42 % (lexical matches) and 30 % (links). Of the
    best label it said 65 to 70 %, and 97 % when probabilities came from points learnt from.
    """

    def test_every_source_learns_and_the_blend_beats_them(self, data, default):
        found = default.evaluate(data[1])
        sources = alone(default, data)
        for source, floor in enumerate((45, 40, 34, 48, 40, 35, 14)):
            assert sources[source] > floor, source
        assert found["P@1"] > max(sources) + 3  # 4.4, and with the oldest numpy and numba 3.4
        assert found["P@1"] > 60
        assert found["R@10"] > 82

    def test_probabilities_are_calibrated_though_the_held_out_points_were_learnt_from(
        self, data, default
    ):
        _, probabilities = default.predict_topk(data[1].texts, 5)
        found = default.evaluate(data[1])
        assert 100 * probabilities[:, 0].mean() == pytest.approx(found["P@1"], abs=12)
        assert 100 * probabilities.mean() == pytest.approx(found["P@5"], abs=5)

    def test_label_texts_pay(self, data, default):
        nameless = [replace(part, label_space=LabelSpace(N_LABELS)) for part in data]
        without = learnt_by_default(nameless)
        assert not without.predictor_.scorer.parts.has_relations
        found = without.evaluate(nameless[1])["P@1"]
        assert 50 < found < default.evaluate(data[1])["P@1"] - 3

    def test_relations_pay_beside_the_texts(self, data, default, monkeypatch):
        monkeypatch.setattr(LabelRelations, "of_data", lambda *_: None)
        found, of_all = learnt_by_default(data).evaluate(data[1]), default.evaluate(data[1])
        assert found["P@1"] > 55
        assert found["R@10"] < of_all["R@10"] - 0.5  # P@1 of 500 points varies by 2

    def test_labels_of_one_point_each(self):
        """No held-out point has a label that was met; the first head alone has 85 %."""
        random = np.random.default_rng(0)
        words = [random.choice(3000, 8, replace=False) for _ in range(1500)]
        others = [[*own[:5], *random.choice(3000, 2)] for own in words]
        labels = [[f"label {i}"] for i in range(1500)]
        texts, queries = (
            [" ".join(f"w{w}" for w in row) for row in some] for some in (words, others)
        )
        model = LongtailClassifier(dimension=64, label_texts=False).fit(texts, labels)
        assert model.score(queries, labels) > 0.95

    def test_with_the_held_out_points_there_may_be_too_many_for_long_vectors(self, monkeypatch):
        monkeypatch.setattr(longtail_recipe, "VERY_FEW_POINTS", 90)  # between 80 and 100
        words = np.random.default_rng(0).choice(20, (100, 5))
        texts = [" ".join(f"{'ab'[i % 2]}{w}" for w in row) for i, row in enumerate(words)]
        labels = [[f"label {i % 2}"] for i in range(100)]
        model = LongtailClassifier(n_threads=1).fit(texts, labels)
        assert model.score(texts, labels) > 0.9
        assert model.predictor_.scorer.parts.labels.rows.values.shape[1] == 256

    def test_loss_falls(self, default):
        for stage in ("shared space", "again: shared space"):
            assert losses(default, stage)[-1] < 0.8 * losses(default, stage)[0]
