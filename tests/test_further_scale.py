"""How much similarity and texts count among the labels that follow the candidates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

import longtail
from longtail.blend.further_scale import (
    N_BEST,
    SHARES,
    TEXT_SCALES,
    learn_further_scale,
    learn_further_text_scale,
)
from longtail.blend.label_head import LabelHead
from longtail.blend.relations import LabelRelations
from longtail.compiled.expanded import expanded
from longtail.compiled.scorer import CompiledScorer
from longtail.data.rows import evenly_spaced
from longtail.metrics import recall_at_k
from longtail.recipes import longtail_training
from longtail.recipes.longtail import LongtailClassifier

N_LABELS, DIMENSION = 400, 8


@pytest.fixture(scope="module")
def points():
    """Forty points whose labels are frequent ones, wherever these are, and their near ones."""
    random = np.random.default_rng(0)
    vectors = random.standard_normal((N_LABELS, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    counts = random.zipf(1.5, N_LABELS).clip(1, 1000)
    head = LabelHead.of(vectors, np.log(counts).astype(np.float32), 16.0)
    encoded = vectors[random.integers(0, N_LABELS, 40)]
    truth = np.zeros((40, N_LABELS))
    for row in range(40):
        truth[row, random.choice(N_LABELS, 6, replace=False, p=counts / counts.sum())] = 1
    return encoded, head, csr_array(truth)


def recall_with(share, encoded, head, truth):
    logits = share * head.scale * encoded @ head.vectors.T + head.bias
    best = np.argsort(-logits, axis=1, kind="stable")[:, :N_BEST].astype(np.int32)
    return recall_at_k(best, truth, N_BEST)


def test_the_share_that_finds_most_is_taken(points):
    encoded, head, truth = points
    recalls = [recall_with(share, encoded, head, truth) for share in SHARES]
    assert recalls[0] < max(recalls)
    learnt = learn_further_scale(encoded, head, truth) / head.scale
    # Rates of labels, not of points, are counted, so another may be as good as the best.
    assert recall_with(learnt, encoded, head, truth) > max(recalls) - 0.02


def test_labels_of_near_points_keep_the_scale(points):
    encoded, head, _ = points
    nearest = (encoded @ head.vectors.T) > 0.99
    assert learn_further_scale(encoded, head, csr_array(nearest.astype(float))) == head.scale


def test_nothing_to_learn_from_keeps_the_scale(points):
    encoded, head, truth = points
    assert learn_further_scale(encoded[:0], head, truth[:0]) == head.scale
    assert learn_further_scale(encoded, head, csr_array(truth.shape)) == head.scale


def test_points_in_the_order_of_what_they_are_about_are_asked_from_all_over(points, monkeypatch):
    encoded, head, truth = points
    nearest = csr_array(((encoded @ head.vectors.T) > 0.99).astype(float))
    monkeypatch.setattr("longtail.blend.further_scale.POINTS", (40, 40))
    in_order, both = np.concatenate([encoded] * 2), vstack([nearest, truth]).tocsr()
    assert learn_further_scale(in_order[:40], head, both[:40]) == head.scale
    assert learn_further_scale(in_order, head, both) < head.scale


def test_labels_without_a_vector_are_passed_over(points):
    encoded, head, truth = points
    rows = head.row_of_label.copy()
    rows[::2] = -1
    bias = np.where(rows < 0, 99, head.bias).astype(np.float32)  # they would be the best hundred
    some = LabelHead(head.rows, rows, bias, head.scale)
    odd = np.arange(1, N_LABELS, 2)
    alone = LabelHead.of(head.vectors[odd], head.bias[odd], head.scale)
    expected = learn_further_scale(encoded, alone, truth[:, odd])
    assert learn_further_scale(encoded, some, truth) == expected < head.scale


def test_texts_count_where_they_find_more(points):
    encoded, head, truth = points
    random = np.random.default_rng(1)
    texts = csr_array((random.random((N_LABELS, 30)) < 0.05).astype(np.float32))
    relations = LabelRelations.build(texts, csr_array(texts.shape[:1] * 2), texts, n_threads=1)

    def learnt(features):
        return learn_further_text_scale(encoded, head, truth, head.scale, features, relations)

    named, silent = csr_array(truth.astype(np.float32) @ texts), csr_array((40, 30))
    assert learnt(named) in TEXT_SCALES[1:]
    assert learnt(silent.astype(np.float32)) == 0
    some = csr_array(texts[random.integers(0, N_LABELS, 40)] * -1)  # what they are not called
    assert learnt(some) == 0


def test_texts_are_those_of_the_points_that_are_asked(points, monkeypatch):
    encoded, head, truth = points
    texts = csr_array(np.eye(N_LABELS, dtype=np.float32))
    relations = LabelRelations.build(texts, csr_array(texts.shape), texts, n_threads=1)
    asked = evenly_spaced(10, 40)
    monkeypatch.setattr("longtail.blend.further_scale.POINTS", (10, 10))
    learnt = []
    for named in (asked, np.setdiff1d(np.arange(40), asked)):
        features = np.zeros((40, N_LABELS), np.float32)
        features[named] = truth.toarray()[named]
        arguments = (encoded, head, truth, head.scale, csr_array(features), relations)
        learnt.append(learn_further_text_scale(*arguments))
    assert learnt[0] > learnt[1] == 0


def test_nothing_is_learnt_of_texts_without_points_or_texts(points):
    encoded, head, truth = points
    texts = csr_array(np.ones((N_LABELS, 1), np.float32))
    relations = LabelRelations.build(texts, csr_array((N_LABELS, N_LABELS)), texts, n_threads=1)
    arguments = (head, truth[:0], head.scale, texts[:0])
    assert learn_further_text_scale(encoded[:0], *arguments, relations) == 0
    assert learn_further_text_scale(encoded, head, truth, head.scale, texts[:40], None) == 0


def test_a_model_has_the_scales_that_held_out_points_taught(monkeypatch):
    monkeypatch.setattr(longtail_training, "learn_further_scale", lambda *_: 3.0)
    monkeypatch.setattr(longtail_training, "learn_further_text_scale", lambda *_: 7.0)
    texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    model = LongtailClassifier(dimension=8, epochs=1, n_threads=1).fit(texts, labels)
    parts = model.predictor_.scorer.parts
    assert (parts.further_scale, parts.further_text_scale) == (3, 7)


def test_a_model_keeps_its_scales(text_model_path):
    scorer = longtail.load(text_model_path).scorer.with_further_scales(4.0, 20.0)
    config, arrays = scorer.config(), scorer.to_arrays()
    parts = CompiledScorer.from_parts(config, arrays).parts
    assert (parts.further_scale, parts.further_text_scale) == (4, 20)
    expanded_again = CompiledScorer.of(expanded(scorer)).parts
    assert (expanded_again.further_scale, expanded_again.further_text_scale) == (4, 20)
