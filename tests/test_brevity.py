"""What is taken from the scores of a text that says less than texts do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import LongtailClassifier, load
from longtail.blend.brevity import Answered, Brevity
from longtail.blend.evidence import Evidence
from longtail.blend.score_network import ScoreNetwork, best_labels
from longtail.compiled.expanded import expanded
from longtail.compiled.scorer import CompiledScorer
from longtail.scorers.calibration import Calibration
from small_comparisons import assert_rows_are_as_alone

COUNTS = np.ones(3)


def answered(chance_of, n_tokens, seed=0):
    """Answers whose score means a chance of being right, where `chance_of` says which."""
    random = np.random.default_rng(seed)
    scores = -np.sort(-random.normal(size=(len(n_tokens), 3)), axis=1).astype(np.float32)
    is_right = random.random(scores.shape) < chance_of(scores)
    return Answered(scores, is_right, n_tokens)


def as_said(scores):
    return 1 / (1 + np.exp(-scores))


def less(by, factor=1.0):
    return lambda scores: 1 / (1 + np.exp(by - factor * scores))


WHOLE = answered(as_said, np.full(4_000, 19, np.int32))
SHORT = np.full(4_000, 4, np.int32)  # a quarter, with one more each


@pytest.mark.parametrize(("by", "factor"), [(1.0, 1.0), (0.0, 0.4), (1.0, 0.4)])
def test_what_fragments_lose_is_found(by, factor):
    fragments = answered(less(by, factor), SHORT, seed=1)
    brevity = Brevity.told_by(Calibration(), WHOLE, fragments, COUNTS)
    missing = np.log(4)
    assert brevity.usual == pytest.approx(np.log(20))
    assert brevity.lost * missing == pytest.approx(by, abs=0.15)
    assert 1 - brevity.shrunk * missing == pytest.approx(factor, abs=0.1)
    said = as_said(brevity.lowered(fragments.scores, fragments.n_tokens))
    assert said.mean() == pytest.approx(fragments.is_right.mean(), abs=0.02)


@pytest.mark.parametrize("intercept", [0.0, -2.0])
def test_fragments_that_are_answered_as_well_as_is_said_lose_nothing_much(intercept):
    sure = Calibration(1.5, intercept)
    chance_of = sure.probabilities
    whole = answered(chance_of, WHOLE.n_tokens)
    fragments = answered(chance_of, SHORT, seed=1)
    brevity = Brevity.told_by(sure, whole, fragments, COUNTS)
    assert brevity.middle == pytest.approx(-intercept / 1.5)
    said, left = (
        sure.probabilities(scores)
        for scores in (fragments.scores, brevity.lowered(fragments.scores, SHORT))
    )
    np.testing.assert_allclose(left, said, atol=0.05)


@pytest.mark.parametrize(("by", "factor"), [(-2.0, 1.0), (0.0, 1.5)])
def test_fragments_that_are_answered_better_gain_nothing(by, factor):
    fragments = answered(less(by, factor), SHORT, seed=1)
    brevity = Brevity.told_by(Calibration(), WHOLE, fragments, COUNTS)
    assert 0 <= brevity.lost < 0.1
    assert brevity.shrunk >= 0
    assert 0 in (brevity.lost, brevity.shrunk)


def test_where_whole_texts_are_as_short_these_tell():
    fragments = answered(less(3.0), SHORT, seed=1)
    as_short = Answered(WHOLE.scores, WHOLE.is_right, np.full(4_000, 4, np.int32))
    assert Brevity.told_by(Calibration(), as_short, fragments, COUNTS).is_none
    lengths = np.where(np.arange(4_000) % 12 == 0, 4, 19).astype(np.int32)  # fewer than a tenth
    some_short = Answered(WHOLE.scores, WHOLE.is_right, lengths)
    told, by_long = (
        Brevity.told_by(Calibration(), whole, fragments, COUNTS) for whole in (some_short, WHOLE)
    )
    assert 0 < told.lost < 0.8 * by_long.lost


def test_of_fragments_that_are_never_right_something_finite_is_lost():
    wrong = Answered(WHOLE.scores, np.zeros_like(WHOLE.is_right), SHORT)
    brevity = Brevity.told_by(Calibration(), WHOLE, wrong, COUNTS)
    assert as_said(brevity.lowered(wrong.scores, SHORT)).max() < 0.05
    assert np.isfinite(brevity).all()


@pytest.mark.parametrize("n_fragments", [0, 5])
def test_fragments_without_answers_tell_nothing(n_fragments):
    none = Answered(
        np.full((n_fragments, 3), -np.inf, np.float32),
        np.zeros((n_fragments, 3), bool),
        np.zeros(n_fragments, np.int32),
    )
    assert Brevity.told_by(Calibration(), WHOLE, none, COUNTS).is_none


@given(
    st.tuples(*(st.floats(0, high) for high in (5, 4, 3)), st.floats(-3, 3)),
    st.integers(0, 300),
    st.integers(0, 1_000),
)
def test_order_never_changes(numbers, n_tokens, seed):
    scores = -np.sort(-np.random.default_rng(seed).normal(size=(1, 6)), axis=1).astype(np.float32)
    scores[0, 4:] = -np.inf
    left = Brevity(*numbers).lowered(scores, np.array([n_tokens]))
    assert (np.diff(left[0, :4]) <= 0).all()
    assert np.isneginf(left[0, 4:]).all()
    if n_tokens >= np.expm1(numbers[0]) * 1.001:
        np.testing.assert_array_equal(left, scores)


def test_a_blend_takes_it_from_scores_with_what_rare_labels_gain():
    labels, values = np.array([[1, 0, -1]] * 2, np.int32), np.array([[[3, 1, 0]]] * 2, np.float32)
    none = np.zeros(2, np.float32)
    evidence = Evidence(labels, values, none, none, n_tokens=np.array([1, 9], np.int32))
    brevity = Brevity(np.log(4), 1.0, 0.5, 1.0)
    plain = ScoreNetwork.of_source(0, n_sources=1)
    network = replace(plain, brevity=np.array(brevity, np.float32))
    tail_weights = np.array([5, 0], np.float32)
    ids, scores = best_labels(plain, evidence, tail_weights, 3)
    assert ids.tolist() == [[0, 1, -1]] * 2
    assert scores.tolist() == [[3, 0, -np.inf]] * 2
    ids, left = best_labels(network, evidence, tail_weights, 3)
    assert ids.tolist() == [[0, 1, -1]] * 2
    factor = 1 - np.log(2) / 2
    assert left[0].tolist() == pytest.approx(
        [1 + 2 * factor - np.log(2), 1 - factor - np.log(2), -np.inf]
    )
    assert left[1].tolist() == scores[1].tolist()
    _, unknown = best_labels(network, replace(evidence, n_tokens=None), tail_weights, 3)
    assert unknown.tolist() == scores.tolist()


class TestServing:
    TEXTS = ("sweet wine in a glass", "wine", "small car on a", "car road", "sweet", "nothing")
    STRONG = (np.log(40), 0.7, 0.2, -1.0)

    def with_brevity(self, scorer, brevity):
        arrays = {**scorer.to_arrays(), "network/brevity": np.array(brevity, np.float32)}
        return CompiledScorer.from_parts(scorer.config(), arrays)

    @pytest.mark.parametrize("k", [3, 200])
    def test_compiled_code_takes_as_much_as_the_library(self, model, k):
        bags = model.bags(self.TEXTS)
        plain = self.with_brevity(model.scorer, np.zeros(4))
        brief = self.with_brevity(model.scorer, self.STRONG)
        ids, scores = plain.top_k(bags, k)
        same, left = brief.top_k(bags, k)
        np.testing.assert_array_equal(same, ids)
        expected = Brevity(*self.STRONG).lowered(scores, np.diff(bags.row_starts))
        assert (expected[scores > -np.inf] != scores[scores > -np.inf]).any()
        np.testing.assert_allclose(left, expected, rtol=1e-5, atol=1e-5)

    def test_one_text_and_a_batch_get_the_same_bits(self, model):
        brief = model.with_scorer(self.with_brevity(model.scorer, self.STRONG))
        assert_rows_are_as_alone(brief, self.TEXTS, 3)

    def test_it_is_kept(self, model, tmp_path):
        brief = model.with_scorer(self.with_brevity(model.scorer, self.STRONG))
        brief.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.scorer.parts.network.brevity.tolist() == pytest.approx(self.STRONG)
        assert expanded(again.scorer).network.brevity.tolist() == pytest.approx(self.STRONG)
        np.testing.assert_array_equal(
            again.predict_topk(self.TEXTS, 3)[1], brief.predict_topk(self.TEXTS, 3)[1]
        )


def test_fragments_of_held_out_texts_are_asked():
    """A topic has words of its own, of which any one may be in a text of another, too."""
    random = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(60)])
    topics = random.integers(0, 20, 1_500)
    own = 3 * topics[:, np.newaxis] + random.integers(0, 3, (1_500, 8))
    strays = random.random((1_500, 8)) < 0.5
    told = np.where(strays, random.integers(0, 60, (1_500, 8)), own)
    texts, labels = [" ".join(words[row]) for row in told], [[f"t{t}"] for t in topics]
    model = LongtailClassifier(dimension=16, epochs=2, n_threads=1, char_ngrams=None)
    model.fit(texts[:1_000], labels[:1_000])
    predictor = model.predictor_
    brevity = Brevity(*predictor.scorer.parts.network.brevity.tolist())
    assert brevity.lost > 0 or brevity.shrunk > 0
    truth = np.array([predictor.label_space.names.index(f"t{t}") for t in topics[1_000:]])
    single = [text.split()[0] for text in texts[1_000:]]
    ids, said = predictor.predict_topk(single, 1)
    is_right = (ids[:, 0] == truth).mean()
    assert said.mean() - is_right < 0.1
