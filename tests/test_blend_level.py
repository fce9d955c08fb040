"""Scores of a blend made comparable between points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from longtail.blend.evidence import Evidence
from longtail.blend.level import MOST_TAKEN, levelled
from longtail.blend.score_network import ScoreNetwork, log_sums


def made_points(n_points, *, offset, seed=0):
    """Points whose best candidate is right as often as a softmax of what is said would have it.

    All that is said of a point is moved by a random number, `offset` times.
    """
    random = np.random.default_rng(seed)
    said = 2 * random.standard_normal((n_points, 1, 6)).astype(np.float32)
    chances = np.exp(said[:, 0]) / np.exp(said[:, 0]).sum(axis=1, keepdims=True)
    drawn = (random.random((n_points, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    is_true = np.arange(6) == np.minimum(drawn, 5)[:, None]
    values = said + offset * random.standard_normal((n_points, 1, 1)).astype(np.float32)
    labels = np.tile(np.arange(6, dtype=np.int32), (n_points, 1))
    labels[::7, 4:] = -1
    return Evidence(labels, values, np.ones(n_points, np.float32), np.zeros(6, np.float32)), is_true


def passing_on():
    """A network that says what the one source says, the point's best and all."""
    behind_best = ScoreNetwork.of_source(0, 1)
    scale = behind_best.scale.copy()
    scale[0], scale[1] = scale[1] / 4, 0  # a quarter, so that what is large is not cut
    matrix1 = behind_best.matrix1.copy()
    matrix1[0] = matrix1[1]
    parts = {**behind_best.to_arrays(), "scale": scale, "matrix1": matrix1}
    return ScoreNetwork(**{**parts, "last": behind_best.last * 4})


@pytest.mark.parametrize(("offset", "least"), [(0.0, 0.5), (6.0, 0.9)])
def test_what_all_candidates_gain_together_is_taken_away(offset, least):
    evidence, is_true = made_points(600, offset=offset)
    network = levelled(passing_on(), evidence, is_true, is_unseen=False)
    assert least <= network.level[0] <= 1
    plain, level = passing_on().scores(evidence), network.scores(evidence)
    assert np.array_equal(np.isneginf(plain), np.isneginf(level))
    real = ~np.isneginf(plain)
    taken = network.level * log_sums(plain)[:, np.newaxis]
    np.testing.assert_allclose(level[real], (plain - taken)[real], rtol=1e-5, atol=1e-5)
    order = [np.argsort(-scores[real.all(axis=1)], axis=1).tolist() for scores in (plain, level)]
    assert order[0] == order[1]


def test_that_the_best_is_right_more_often_sets_no_level():
    """How large a score is tells all, but for a bonus of the best; no softmax is near that."""
    random = np.random.default_rng(0)
    ranked = -np.sort(-random.random((600, 6)), axis=1)
    values = 2 * random.standard_normal((600, 1)) + ranked
    chances = 1 / (1 + np.exp(1 - values - 3 * (np.arange(6) == 0)))
    is_true = random.random((600, 6)) < chances
    labels = np.tile(np.arange(6, dtype=np.int32), (600, 1))
    said, near = values[:, np.newaxis].astype(np.float32), np.ones(600, np.float32)
    evidence = Evidence(labels, said, near, np.zeros(6, np.float32))
    assert levelled(passing_on(), evidence, is_true).level[0] < 0.3  # 0.75 but for the bonus


def test_the_level_is_that_of_the_logistic_model_that_answers_follow():
    evidence, _ = made_points(4000, offset=0.0)
    scores = passing_on().scores(evidence)
    z = scores - 0.5 * log_sums(scores)[:, np.newaxis]
    is_true = np.random.default_rng(1).random(z.shape) < 1 / (1 + np.exp(-z))
    assert levelled(passing_on(), evidence, is_true).level[0] == pytest.approx(0.5, abs=0.1)


def test_scores_that_are_better_where_they_are_wrong_set_no_level():
    evidence, _ = made_points(200, offset=3.0)
    network = passing_on()
    fourth = np.argsort(-network.scores(evidence), axis=1)[:, 3:4]
    is_true = np.arange(6) == fourth
    assert levelled(network, evidence, is_true) is network


def test_too_few_right_answers_teach_no_level():
    evidence, is_true = made_points(15, offset=1.0)
    network = passing_on()
    assert levelled(network, evidence, is_true) is network


def test_points_without_candidates_keep_their_padding():
    evidence, is_true = made_points(200, offset=3.0)
    evidence.labels[0] = -1
    network = levelled(passing_on(), evidence, is_true & (evidence.labels >= 0))
    assert np.isneginf(network.scores(evidence)[0]).all()


def told_by_the_point(n_points, seed=0):
    """Two sources that rank alike; the first says more of all candidates where the best is right.

    Beside the evidence and what is true, what tells that.
    """
    evidence, _ = made_points(n_points, offset=0.0, seed=seed)
    tells = np.random.default_rng(seed + 1).standard_normal(n_points).astype(np.float32)
    values = np.concatenate([evidence.values + tells[:, None, None], evidence.values], axis=1)
    evidence = Evidence(evidence.labels, values, evidence.nearness, evidence.commonness)
    best = np.where(evidence.labels >= 0, evidence.values[:, 1], -np.inf).argmax(axis=1)
    is_true = (np.arange(6) == best[:, None]) & (tells > 0.3)[:, None]
    return evidence, is_true, tells


def test_views_of_a_point_tell_how_sure_its_best_candidate_is():
    evidence, is_true, _ = told_by_the_point(600)
    network = ScoreNetwork.of_weights([0, 1])
    told = levelled(network, evidence, is_true)
    asked, _, tells = told_by_the_point(400, seed=5)
    first, before = (one.scores(asked).max(axis=1) for one in (told, network))
    assert (before == 0).all()  # how far behind the best the best is
    assert np.corrcoef(first, tells)[0, 1] > 0.7
    of_seen = levelled(network, evidence, is_true, is_unseen=False)
    np.testing.assert_array_equal(of_seen.last, network.last)


@pytest.mark.parametrize("weights", [[0, 1], [2, 0.5]])
def test_what_views_of_a_point_tell_is_added_to_all_its_candidates(weights):
    evidence, is_true, _ = told_by_the_point(300)
    network = ScoreNetwork.of_weights(weights)
    told = levelled(network, evidence, is_true)
    assert 0 <= told.level[0] <= MOST_TAKEN
    plain, scores = network.scores(evidence), told.scores(evidence)
    real = ~np.isneginf(plain)
    assert np.array_equal(real, ~np.isneginf(scores))
    added = np.where(real, scores, np.nan) - np.where(real, plain, np.nan)
    assert np.nanmax(np.ptp(added[real.all(axis=1)], axis=1)) < 1e-3
    assert np.ptp(np.nanmean(added, axis=1)) > 0.5


def test_points_that_are_nearly_training_points_are_sure_beyond_a_straight_line():
    """Whether the best is right does not depend on nearness, but is sure where that is 0.9."""
    evidence, _, _ = told_by_the_point(4000)
    random = np.random.default_rng(2)
    near = random.uniform(0.2, 1, len(evidence.labels)).astype(np.float32)
    best = np.where(evidence.labels >= 0, evidence.values[:, 1], -np.inf).argmax(axis=1)
    is_right = (random.random(len(near)) < 0.5) | (near > 0.9)
    is_true = (np.arange(6) == best[:, None]) & is_right[:, None]
    evidence = replace(evidence, nearness=near)
    first = levelled(ScoreNetwork.of_weights([0, 1]), evidence, is_true).scores(evidence).max(1)
    bins = [(0.2, 0.5), (0.5, 0.88), (0.97, 1)]
    said = [first[(near >= low) & (near <= high)].mean() for low, high in bins]
    assert said[2] - said[1] > 3 * abs(said[1] - said[0])
