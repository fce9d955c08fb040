"""What rarity adds to scores for the order's sake is not told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail import LongtailClassifier, load
from longtail.blend.evidence import Evidence
from longtail.blend.rarity import MOST, share_for_order, told_scores
from longtail.blend.score_network import ScoreNetwork, best_labels
from longtail.compiled.expanded import expanded
from longtail.compiled.scorer import CompiledScorer
from longtail.errors import InputError
from longtail.scorers.ranking import best_first
from small_comparisons import assert_rows_are_as_alone

N_LABELS = 40
TAIL = np.linspace(0, 2, N_LABELS, dtype=np.float32)


def answers_of(bias, n=6_000, k=3, seed=0):
    """Answers ranked by chance, a `bias` for rare labels and what rarity adds; and the truth."""
    random = np.random.default_rng(seed)
    labels = np.argsort(random.random((n, N_LABELS)), axis=1)[:, :10].astype(np.int32)
    chance = random.normal(-1, 1, labels.shape)
    is_right = random.random(labels.shape) < 1 / (1 + np.exp(-chance))
    scores = chance + bias * TAIL[labels] + TAIL[labels]
    points = np.repeat(np.arange(n), 10)[is_right.ravel()]
    cells = np.ones(len(points)), (points, labels[is_right])
    truth = csr_array(cells, shape=(n, N_LABELS))
    truth.sort_indices()
    return best_first(labels, scores.astype(np.float32), k), truth


@pytest.mark.parametrize(("bias", "share"), [(0.0, 1.0), (0.5, 1.5), (-0.6, 0.4)])
def test_as_much_as_makes_no_label_likelier_is_for_the_order(bias, share):
    answers, truth = answers_of(bias)
    assert share_for_order([answers], truth, TAIL, np.ones(3)) == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize(("bias", "share"), [(4.0, MOST), (-3.0, 0.0)])
def test_the_share_is_held_within_bounds(bias, share):
    answers, truth = answers_of(bias)
    assert share_for_order([answers], truth, TAIL, np.ones(3)) == share


def test_few_answers_hardly_tell():
    answers, truth = answers_of(1.0, n=20)
    assert share_for_order([answers], truth, TAIL, np.ones(3)) == pytest.approx(1, abs=0.4)


def test_points_without_labels_tell_too():
    """Rare labels of these are as wrong as all others, which makes rarity look like an error."""
    answers, truth = answers_of(0.0)
    random = np.random.default_rng(1)
    labels = random.integers(N_LABELS // 2, N_LABELS, (6_000, 3)).astype(np.int32)
    further = labels, np.full((6_000, 3), answers[1].mean(), np.float32)
    alone = share_for_order([answers], truth, TAIL, np.ones(3))
    assert share_for_order([answers, further], truth, TAIL, np.ones(3)) > alone + 0.1


@pytest.mark.parametrize(
    ("labels", "truth", "tail_weights"),
    [
        (np.full((4, 2), -1), csr_array((4, N_LABELS)), TAIL),
        (np.tile([[3, 5]], (4, 1)), csr_array((4, N_LABELS)), np.zeros(N_LABELS, np.float32)),
        (np.tile([[3, 5]], (4, 1)), csr_array((4, N_LABELS)), TAIL),
    ],
    ids=["no answers", "rarity adds nothing", "none is right"],
)
def test_where_nothing_is_told_all_of_it_is_for_the_order(labels, truth, tail_weights):
    scores = np.where(labels >= 0, np.float32(0), -np.inf).astype(np.float32)
    answers = labels.astype(np.int32), scores
    assert share_for_order([answers], truth, tail_weights, np.ones(2)) == 1


@given(st.floats(0, MOST), st.integers(0, 1_000), st.integers(1, 8))
def test_scores_fall_and_the_first_ones_of_many_are_those_of_few(share, seed, k):
    random = np.random.default_rng(seed)
    ids = np.argsort(random.random((3, N_LABELS)), axis=1)[:, :8].astype(np.int32)
    ranked = -np.sort(-random.normal(size=(3, 8)), axis=1).astype(np.float32)
    ids[:, 6:], ranked[:, 6:] = -1, -np.inf
    told = told_scores(ids, ranked, TAIL, share)
    if share:
        assert (np.diff(told[:, :6]) < 0).all()
    assert np.isneginf(told[:, 6:]).all()
    first = ranked[:, 0] - np.float32(share) * TAIL[ids[:, 0]]
    np.testing.assert_array_equal(told[:, 0], first)
    np.testing.assert_array_equal(told_scores(ids[:, :k], ranked[:, :k], TAIL, share), told[:, :k])


def test_a_blend_ranks_by_it_and_tells_scores_without_it():
    labels, values = np.array([[1, 0, 2]], np.int32), np.array([[[3, 1, 0]]], np.float32)
    evidence = Evidence(labels, values, np.ones(1, np.float32), np.zeros(3, np.float32))
    plain = ScoreNetwork.of_source(0, n_sources=1)
    network = replace(plain, for_order=np.ones(1, np.float32))
    weights = np.array([5, 0, 0], np.float32)
    ids, ranked = best_labels(plain, evidence, weights, 3)
    same, told = best_labels(network, evidence, weights, 3)
    assert ids.tolist() == same.tolist() == [[0, 1, 2]]
    assert ranked.tolist() == [[3, 0, -3]]  # 1 - 3 + 5, 3 - 3 and 0 - 3
    np.testing.assert_allclose(told, [[-2, -2, -3]], atol=1e-4)


def test_a_network_refuses_another_shape():
    with pytest.raises(InputError, match="do not fit together"):
        replace(ScoreNetwork.of_source(0, n_sources=1), for_order=np.ones(2, np.float32))


class TestServing:
    TEXTS = ("sweet wine in a glass", "wine", "small car on a", "car road", "sweet", "nothing")

    def with_share(self, scorer, share):
        n_labels = len(scorer.to_arrays()["labels/tail_weights"])
        weights = np.random.default_rng(0).normal(scale=2, size=n_labels).astype(np.float32)
        changed = {
            "network/for_order": np.full(1, share, np.float32),
            "network/brevity": np.zeros(4, np.float32),
            "labels/tail_weights": weights,
        }
        return CompiledScorer.from_parts(scorer.config(), scorer.to_arrays() | changed), weights

    @pytest.mark.parametrize("k", [1, 3, 200])
    def test_compiled_code_tells_what_the_library_tells(self, model, k):
        bags = model.bags(self.TEXTS)
        (plain, weights), (told, _) = (self.with_share(model.scorer, x) for x in (0, 0.8))
        n_candidates = (plain.candidates(bags)[0] >= 0).sum(axis=1).max()
        ids, ranked = plain.top_k(bags, k)
        same, scores = told.top_k(bags, k)
        np.testing.assert_array_equal(same, ids)
        expected = told_scores(ids, ranked, weights, 0.8)[:, :n_candidates]
        assert (expected != ranked[:, :n_candidates]).any()
        np.testing.assert_allclose(scores[:, :n_candidates], expected, rtol=1e-4, atol=1e-4)
        for row in scores:
            assert (np.diff(row[row > -np.inf]) < 0).all()

    def test_one_text_and_a_batch_get_the_same_bits(self, model):
        told = model.with_scorer(self.with_share(model.scorer, 0.8)[0])
        assert_rows_are_as_alone(told, self.TEXTS, 3)

    def test_it_is_kept(self, model, tmp_path):
        told = model.with_scorer(self.with_share(model.scorer, 0.8)[0])
        told.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.scorer.parts.network.for_order.item() == pytest.approx(0.8)
        assert expanded(again.scorer).network.for_order.item() == pytest.approx(0.8)
        np.testing.assert_array_equal(
            again.predict_topk(self.TEXTS, 3)[1], told.predict_topk(self.TEXTS, 3)[1]
        )


def test_frequent_and_rare_labels_are_as_probable_as_they_are_right():
    """Each text has words of one of two topics at random; half of the topics have few texts."""
    random = np.random.default_rng(0)
    n = 4_000
    sizes = np.where(np.arange(60) < 6, 9, 1)
    topics = random.choice(60, (n, 2), p=sizes / sizes.sum())
    texts = [f"w{a} w{b} number{i}" for i, (a, b) in enumerate(np.sort(topics, axis=1))]
    labels = [[f"t{row[random.integers(2)]}"] for row in topics]
    model = LongtailClassifier(dimension=16, n_threads=1, char_ngrams=None, tail=1.0)
    predictor = model.fit(texts[:2_000], labels[:2_000]).predictor_
    names = np.array(predictor.label_space.names)
    ids, said = predictor.predict_topk(texts[2_000:], 1)
    truth = np.array([own[0] for own in labels[2_000:]])
    is_right = names[ids[:, 0]] == truth
    is_frequent = np.array([int(name[1:]) < 6 for name in names[ids[:, 0]]])
    for some in (is_frequent, ~is_frequent):
        assert said[some].mean() == pytest.approx(is_right[some].mean(), abs=0.1)
