"""Scores into probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail.recipes.dismec import DiSMEC
from longtail.recipes.names import recipe as recipe_named
from longtail.scorers.calibration import Calibration, logistic_weights


def planted(slope=6.0, intercept=-2.0, n=20_000, seed=0):
    """Scores, and answers that are right with the probability of a known line."""
    random = np.random.default_rng(seed)
    scores = random.random(n).astype(np.float32)
    return scores, random.random(n) < 1 / (1 + np.exp(-(slope * scores + intercept)))


def test_finds_the_line():
    found = Calibration.fit(*planted())
    assert found.slope == pytest.approx(6, rel=0.05)
    assert found.intercept == pytest.approx(-2, rel=0.1)


def test_probabilities_are_shares():
    scores, right = planted()
    found = Calibration.fit(scores, right).probabilities(scores)
    for low in (0.2, 0.4, 0.6, 0.8):
        bucket = (found >= low) & (found < low + 0.1)
        assert right[bucket].mean() == pytest.approx(low + 0.05, abs=0.05)


def test_order_never_changes():
    scores, right = planted()
    found = Calibration.fit(scores, ~right)  # higher scores are worse
    assert found.slope > 0
    assert (np.diff(found.probabilities(np.sort(scores))) >= 0).all()


def test_padding_is_left_out_and_stays():
    scores, right = planted()
    padded = np.concatenate([scores, np.full(50_000, -np.inf, np.float32)])
    found = Calibration.fit(padded, np.concatenate([right, np.zeros(50_000, bool)]))
    assert found == Calibration.fit(scores, right)
    assert (found.probabilities(padded)[-50_000:] == -np.inf).all()


def test_nothing_to_learn_from():
    assert Calibration.fit(np.empty((0, 5), np.float32), np.empty((0, 5), bool)) == Calibration()


@pytest.mark.parametrize("low", [-9, 9, 1e-7])
@pytest.mark.parametrize(("are_right", "share"), [(True, 0.99), (False, 0.01)])
def test_where_all_are_right_or_wrong_any_is_as_probable(low, are_right, share):
    scores = np.linspace(low, 2 * low, 98).astype(np.float32)
    found = Calibration.fit(scores, np.full(98, are_right))
    assert found.slope > 0
    probabilities = found.probabilities(np.append(scores, np.float32(0)))
    np.testing.assert_allclose(probabilities, share, atol=0.001)


def test_where_all_score_the_same_the_share_counts():
    right = np.arange(98) < 24
    found = Calibration.fit(np.full(98, -0.5, np.float32), right)
    np.testing.assert_allclose(found.probabilities(np.full(1, -0.5, np.float32)), 0.25, atol=0.001)


def test_clean_parting_stays_finite():
    scores = np.linspace(0, 1, 100).astype(np.float32)
    found = Calibration.fit(scores, scores > 0.5)
    assert np.isfinite([found.slope, found.intercept]).all()
    probabilities = found.probabilities(scores)
    assert probabilities[0] < 0.1
    assert probabilities[-1] > 0.9
    few = np.repeat(np.array([0, 1], np.float32), 5)
    told = Calibration.fit(few, few > 0.5).probabilities(few)
    np.testing.assert_allclose(told, np.repeat([1 / 7, 6 / 7], 5), rtol=1e-4)  # Platt's prior


def test_a_score_that_stands_alone_is_of_no_best_label():
    assert Calibration(first=2.0).probabilities(np.zeros(1, np.float32)).tolist() == [0.5]


def test_extreme_scores_do_not_overflow():
    scores = np.array([-3e38, 3e38], np.float32)
    np.testing.assert_array_equal(Calibration(1e3, 0.0).probabilities(scores), [0, 1])


def test_the_best_label_is_likelier_than_its_score_says():
    random = np.random.default_rng(0)
    scores = -np.sort(-random.random((5_000, 3)), axis=1).astype(np.float32)
    z = 3 * scores - 2
    z[:, 0] += 1.5
    right = random.random(scores.shape) < 1 / (1 + np.exp(-z))
    found = Calibration.fit(scores, right)
    assert found.first + found.first_slope * scores[:, 0].mean() == pytest.approx(1.5, abs=0.1)
    probabilities = found.probabilities(scores)
    assert probabilities[:, 0].mean() == pytest.approx(right[:, 0].mean(), abs=0.01)
    assert (np.diff(probabilities, axis=1) <= 0).all()


@pytest.mark.parametrize(("n", "first"), [(5_000, -3.0), (100, 0.0)])
def test_the_best_label_loses_by_being_first_where_enough_of_them_tell(n, first):
    random = np.random.default_rng(0)
    scores = -np.sort(-random.random((n, 3)), axis=1).astype(np.float32)
    z = 3 * scores - 2
    z[:, 0] -= 3
    found = Calibration.fit(scores, random.random(scores.shape) < 1 / (1 + np.exp(-z)))
    more = found.first + found.first_slope * scores[:, 0].mean()
    assert more == pytest.approx(first, abs=0.2)
    assert (np.diff(found.probabilities(scores), axis=1) <= 0).all()


def test_the_score_of_the_best_label_may_say_more_than_that_of_others():
    random = np.random.default_rng(0)
    scores = -np.sort(-random.normal(size=(20_000, 3)), axis=1).astype(np.float32)
    z = scores - 1
    z[:, 0] = 2 * scores[:, 0] - 1.5
    right = random.random(scores.shape) < 1 / (1 + np.exp(-z))
    found = Calibration.fit(scores, right)
    learnt = (found.slope, found.intercept, found.first, found.first_slope)
    assert learnt == pytest.approx((1, -1, -0.5, 1), abs=0.1)
    said = found.probabilities(scores)[:, 0]
    for low in (0.1, 0.3, 0.5, 0.7):
        some = (said >= low) & (said < low + 0.2)
        assert said[some].mean() == pytest.approx(right[some, 0].mean(), abs=0.03)


def test_no_label_is_more_probable_than_the_best_one():
    steep = Calibration(1.0, 0.0, first=-1.0, first_slope=1.0)
    scores = np.array([[0, -0.5, -2], [3, 2, -np.inf]], np.float32)
    found = steep.probabilities(scores)
    expected = 1 / (1 + np.exp([[1, 1, 2], [-5, -2, np.inf]]))
    np.testing.assert_allclose(np.maximum(found, 0), expected, rtol=1e-4)
    np.testing.assert_allclose(steep.logits(scores), [[-1, -1, -2], [5, 2, -np.inf]], rtol=1e-3)
    for k in (1, 2):  # the first ones of more labels have the same probabilities
        np.testing.assert_array_equal(steep.probabilities(scores[:, :k]), found[:, :k])
    odds = steep.log_odds(scores[0, :2], scores[0, 1::-1])
    np.testing.assert_allclose(odds, [-1, -1], rtol=1e-3)


def test_labels_that_would_be_more_probable_than_the_best_one_keep_their_order():
    steep = Calibration(1.0, 0.0, first=-3.0, first_slope=1.0)
    scores = np.array([[0, -0.1, -0.2, -0.2, -9]], np.float32)
    probabilities = steep.probabilities(scores)[0]
    assert (np.diff(probabilities) < 0).all()
    odds = np.log(probabilities) - np.log1p(-probabilities)
    np.testing.assert_allclose(odds, steep.logits(scores)[0], atol=1e-5)


def test_scores_that_mislead_take_nothing_from_being_first():
    random = np.random.default_rng(0)
    scores = -np.sort(-random.random((5_000, 3)), axis=1).astype(np.float32)
    z = -6 * scores
    z[:, 0] += 6
    right = random.random(scores.shape) < 1 / (1 + np.exp(-z))
    probabilities = Calibration.fit(scores, right).probabilities(scores)
    shares = [right[:, 0].mean(), right[:, 1:].mean()]
    found = [probabilities[:, 0].mean(), probabilities[:, 1:].mean()]
    assert found == pytest.approx(shares, abs=0.01)


def test_answers_to_points_without_labels_are_wrong():
    ids = np.zeros((400, 1), np.int32)
    scores = np.linspace(-1, 1, 400, dtype=np.float32)[:, None]
    truth = csr_array(np.ones((400, 1)))
    found = Calibration.of_answers(ids, scores, truth, wrong=[(ids, scores), (ids, scores)])
    np.testing.assert_allclose(found.probabilities(scores), 1 / 3, atol=0.002)


def test_points_in_the_order_of_their_labels_are_seen_from_all_over():
    """Nothing is held out; what the first half says is right, and half of what the others say."""
    random = np.random.default_rng(0)
    things = np.sort(random.integers(20, size=6_000))
    is_same = (things < 10) | (random.random(6_000) < 0.5)
    labels = np.where(is_same, things, random.integers(10, 20, size=6_000))
    texts = [f"thing{thing} noise{random.integers(50)}" for thing in things]
    model = DiSMEC(held_out=0, n_threads=1).fit(texts, [f"label{label}" for label in labels])
    ids, probabilities = model.predict_topk(texts, 1)
    space = model.predictor_.label_space
    is_right = [
        space.name(i) == f"label{label}" for i, label in zip(ids[:, 0], labels, strict=True)
    ]
    assert probabilities.mean() == pytest.approx(np.mean(is_right), abs=0.05)


def test_newton_steps_that_lead_beyond_the_valley_are_halved():
    """Scores of which few are far below all others: whole steps go back and forth for ever."""
    random = np.random.default_rng(44)
    x = -random.pareto(1.2, 40)
    x = (x - x.mean()) / x.std()
    right = random.random(40) < 1 / (1 + np.exp(-(15 * x - 1.5)))
    design = np.stack([x, random.integers(0, 2, 40), np.ones(40)])
    weights = logistic_weights(design, right.astype(float))
    p = 1 / (1 + np.exp(np.clip(-weights @ design, -99, 99)))
    np.testing.assert_allclose(design @ (p - right), 0, atol=1e-3)  # the slope of the loss


@pytest.mark.parametrize("by", [0.02, 0.1, 0.3])
@pytest.mark.parametrize(("first", "more"), [(0.0, 0.0), (0.5, 0.0), (3.0, 0.0), (-0.5, 0.7)])
def test_best_labels_are_less_probable_by_what_is_doubted(by, first, more):
    scores = -np.sort(-np.random.default_rng(0).normal(size=(200, 5)), axis=1).astype(np.float32)
    scores[:20, 3:] = -np.inf
    sure = Calibration(1.5, -0.5, first, first_slope=more)
    less = sure.doubting(scores[:, 0], by)
    before, after = sure.probabilities(scores), less.probabilities(scores)
    assert before[:, 0].mean() - after[:, 0].mean() == pytest.approx(by, abs=1e-4)
    assert (np.diff(after[20:], axis=1) <= 0).all()
    np.testing.assert_allclose(after[:, 1:], np.minimum(before[:, 1:], after[:, :1]), atol=1e-3)


def test_what_is_doubted_leaves_a_tenth():
    scores = np.linspace(-2, 2, 50, dtype=np.float32)
    sure = Calibration(1.0, -3.0)
    assert sure.doubting(scores, 0.0) is sure
    assert sure.doubting(scores[:0], 0.5) is sure
    scores = scores[:, np.newaxis]
    doubted = sure.doubting(scores[:, 0], 0.9).probabilities(scores)
    assert doubted.mean() == pytest.approx(sure.probabilities(scores).mean() / 10, rel=1e-3)


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_others_are_as_probable_on_average(first):
    random = np.random.default_rng(0)
    scores = random.normal(size=200).astype(np.float32)
    lower = np.append(scores - random.random(200).astype(np.float32), np.float32(-np.inf))
    before = Calibration(1.5, -0.5, first)
    after = before.as_sure(lower, of=scores)
    assert (after.slope, after.first) == (before.slope, before.first)
    means = [
        known.probabilities(np.stack([some, some - 9], axis=1))[:, 0].mean()
        for known, some in ((before, scores), (after, lower[:200]))
    ]
    assert means[1] == pytest.approx(means[0], abs=1e-4)
    assert before.as_sure(lower[200:], of=scores) is before


def test_weights_may_be_added_to_what_is_known():
    scores, right = planted()
    known = 6.0 * scores.astype(np.float64)
    weights = logistic_weights(np.ones((1, len(scores))), right.astype(float), None, known)
    assert weights[0] == pytest.approx(-2.0, abs=0.1)


def test_shares_that_are_next_to_nothing_are_next_to_impossible():
    random = np.random.default_rng(0)
    shares = np.sort(random.random((2_000, 5)).astype(np.float32) ** 4, axis=1)[:, ::-1]
    right = random.random(shares.shape) < shares
    least = np.float32([[0.9, 1e-3, 1e-5, 0, -np.inf]])
    as_they_are = Calibration.fit(shares, right).probabilities(least)[0]
    of_shares = Calibration.fit(shares, right, of_shares=True)
    found = of_shares.probabilities(least)[0]
    assert found[0] > 0.7
    assert (found[1:4] < 0.01).all()
    assert (as_they_are[1:4] > 0.01).all()
    assert (np.diff(found) <= 0).all()
    assert found[4] == -np.inf
    assert Calibration(**of_shares.config()) == of_shares
    assert of_shares.doubting(shares[:, 0], 0.1).of_shares


def test_a_folder_of_before_knows_nothing_of_shares():
    assert Calibration(slope=2.0, intercept=0.0, first=0.0) == Calibration(2.0)


@pytest.mark.parametrize("recipe", ["parabel", "bonsai", "annexml", "mach", "slice", "astec"])
def test_recipes_whose_scores_are_shares_say_so(recipe):
    texts = [f"{word} {i}" for i in range(20) for word in ("red wine", "old car")]
    model = recipe_named(recipe)(n_threads=1, held_out=0.2)
    model.fit(texts, [["drink"], ["vehicle"]] * 20)
    assert model.predictor_.calibration.of_shares
    assert model.predictor_.explain("red wine", k=1).labels[0].label == "drink"
