"""The network that blends scores, and how it is learnt."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from longtail.blend.evidence import Evidence
from longtail.blend.held_out_lesson import HeldOutLesson
from longtail.blend.network_training import NetworkTraining
from longtail.blend.ranking_examples import RankingExamples
from longtail.blend.ranking_network import RankingNetwork
from longtail.blend.score_network import ScoreNetwork
from longtail.blend.weighted_sum import weighted_sum
from longtail.kernels.blend import N_CONTEXT_VIEWS, N_VIEWS
from longtail.metrics.hits import true_among
from longtail.training.ranking_loss import ranking_loss
from longtail.training.ranking_slope import log_counts_of, ranking_slope
from longtail.training.run import TrainingRun

N_LABELS, SIZE = 50, 8
RUN = TrainingRun(seed=0, n_threads=1)
SAME = np.ones(N_LABELS)


def made_up(n, seed=0, size=SIZE):
    """One true candidate a point, which source 0 ranks first where training points are near.

    Elsewhere source 1 ranks it first. Where a source is wrong, it is as sure as where it is right.
    """
    random = np.random.default_rng(seed)
    labels = np.array([random.permutation(N_LABELS)[:size] for _ in range(n)], np.int32).reshape(
        n, size
    )
    values = random.random((n, 2, size), np.float32)
    true, nearness = random.integers(0, size, n), random.random(n, np.float32)
    right = np.where(nearness > 0.5, 0, 1)
    values[np.arange(n), right, true] += 1
    values[np.arange(n), 1 - right, (true + random.integers(1, size, n)) % size] += 1
    truth = np.zeros((n, N_LABELS))
    truth[np.arange(n), labels[np.arange(n), true]] = 1
    return Evidence(labels, values, nearness, np.zeros(N_LABELS, np.float32)), csr_array(truth)


def padded(evidence, seed=1):
    """The same with up to half of the candidates gone, from the end."""
    n, size = evidence.labels.shape
    counts = np.random.default_rng(seed).integers(size // 2, size + 1, (n, 1))
    return replace(evidence, labels=np.where(np.arange(size) < counts, evidence.labels, -1))


def share_right(network, evidence, truth):
    best = network.scores(evidence).argmax(axis=1)
    rows = np.arange(len(best))
    return truth.toarray()[rows, evidence.labels[rows, best]].mean()


def same(first, second):
    return all(
        np.array_equal(getattr(first, part.name), getattr(second, part.name))
        for part in fields(ScoreNetwork)
    )


@pytest.fixture(scope="module")
def learnt():
    return NetworkTraining(epochs=25).taught(*made_up(500), SAME, RUN).network


@pytest.mark.parametrize("source", [0, 1])
def test_a_source_alone_ranks_as_the_source_does(source):
    evidence = made_up(30)[0]
    scores = ScoreNetwork.of_source(source, 2).scores(evidence)
    np.testing.assert_array_equal(
        np.argsort(scores, axis=1), np.argsort(evidence.values[:, source], axis=1)
    )


def test_a_source_alone_ranks_whatever_its_values_are():
    evidence = made_up(30)[0]
    for moved in (evidence.values * 10, evidence.values - 500, evidence.values + 500):
        scores = ScoreNetwork.of_source(1, 2).scores(replace(evidence, values=moved))
        places = np.argsort(scores, axis=1)
        np.testing.assert_array_equal(places, np.argsort(moved[:, 1], axis=1))


def test_all_sources_are_added_in_units_of_their_spread():
    evidence = padded(made_up(30)[0])
    factors = np.array([1, 100], np.float32)  # so that the second alone would decide
    louder = replace(evidence, values=evidence.values * factors[:, np.newaxis])
    scores = ScoreNetwork.of_all(louder).scores(louder)
    real = evidence.labels >= 0
    behind = evidence.values - np.where(real[:, None], evidence.values, -np.inf).max(2)[..., None]
    spread = [behind[:, source][real].std() for source in range(2)]
    expected = behind[:, 0] / spread[0] + behind[:, 1] / spread[1]
    np.testing.assert_allclose(scores[real], expected[real], rtol=1e-4, atol=1e-4)


def test_padding_is_not_the_commonest():
    evidence = replace(
        padded(made_up(30)[0]), commonness=np.arange(N_LABELS, dtype=np.float32)
    )  # the last label is the most frequent
    real = evidence.labels >= 0
    most = np.where(real, evidence.labels, 0).max(axis=1, keepdims=True)
    expected = np.where(real, evidence.labels - most, 0)
    np.testing.assert_array_equal(evidence.behind_commonest(), expected)


def test_what_is_common_is_added_with_its_weight():
    evidence = replace(made_up(30)[0], commonness=np.arange(N_LABELS, dtype=np.float32) / 10)
    scores = ScoreNetwork.of_weights([0.5, 2.0], 0.75).scores(evidence)
    expected = evidence.behind_best() @ [0.5, 2.0] + 0.75 * evidence.behind_commonest()
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)


def test_a_source_that_says_the_same_of_all_is_left_out_of_the_sum():
    evidence = made_up(30)[0]
    values = np.stack([evidence.values[:, 0], np.full_like(evidence.values[:, 1], 3)], axis=1)
    network = ScoreNetwork.of_all(replace(evidence, values=values))
    assert np.count_nonzero(network.scale) == 1
    nothing = replace(evidence, labels=np.full_like(evidence.labels, -1))
    assert not ScoreNetwork.of_all(nothing).scale.any()


def test_padding_scores_minus_infinity_and_has_no_views(learnt):
    evidence = padded(made_up(40)[0])
    assert (np.isneginf(learnt.scores(evidence)) == (evidence.labels < 0)).all()
    assert not evidence.views()[evidence.labels < 0].any()
    nothing = replace(evidence, labels=np.full_like(evidence.labels, -1))
    assert np.isneginf(learnt.scores(nothing)).all()


def test_views_have_the_shape_that_a_network_takes(learnt):
    evidence = made_up(5)[0]
    assert evidence.views().shape == (5, SIZE, 2 * N_VIEWS + N_CONTEXT_VIEWS)
    assert evidence.views().shape[2] == len(learnt.centre) == len(learnt.matrix1)


def test_threads_and_other_points_do_not_matter(learnt):
    evidence = padded(made_up(300)[0])
    scores = learnt.scores(evidence)
    assert learnt.scores(evidence, n_threads=3).tobytes() == scores.tobytes()
    assert evidence.views(n_threads=3).tobytes() == evidence.views().tobytes()
    one = Evidence(
        evidence.labels[7:8], evidence.values[7:8], evidence.nearness[7:8], evidence.commonness
    )
    assert learnt.scores(one).tobytes() == scores[7].tobytes()


def test_a_learnt_network_beats_each_source(learnt):
    evidence, truth = made_up(400, seed=1)
    alone = [share_right(ScoreNetwork.of_source(i, 2), evidence, truth) for i in range(2)]
    assert max(alone) < 0.6
    assert share_right(learnt, evidence, truth) > 0.85


def test_what_is_learnt_does_not_depend_on_threads_or_earlier_random_numbers():
    training = NetworkTraining(epochs=10)
    first = training.taught(*made_up(300), SAME, RUN).network
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002 - that nothing draws from numpy's own state is the test
    assert same(training.taught(*made_up(300), SAME, replace(RUN, n_threads=2)).network, first)
    assert not same(training.taught(*made_up(300), SAME, replace(RUN, seed=1)).network, first)


def noisy(n, n_sources=6):
    """`made_up`, with sources that tell nothing."""
    evidence, truth = made_up(n)
    noise = np.random.default_rng(1).normal(size=(n, n_sources, SIZE)).astype(np.float32)
    return replace(evidence, values=np.concatenate([evidence.values, noise], axis=1)), truth


def test_a_trial_says_how_far_a_network_is_followed():
    shares = []
    for evidence, truth in (noisy(60), noisy(120), noisy(300)):
        is_true = true_among(evidence.labels, truth)
        shares.append(NetworkTraining()._tried(evidence, is_true, RUN).share)
    assert 0 <= shares[0] < shares[1] < shares[2] <= 1
    assert shares[2] > 0.9


def test_the_share_is_that_of_the_least_loss():
    evidence, truth = made_up(80)
    evidence = padded(evidence)
    is_true = true_among(evidence.labels, truth)
    random = np.random.default_rng(0)
    examples = RankingExamples.of(evidence, is_true, 1)
    examples = examples.saying(np.where(evidence.labels < 0, -np.inf, evidence.values[:, 0]))
    assert not examples.said[evidence.labels < 0].any()
    helps = is_true.astype(np.float32)
    noise = 3 * random.standard_normal(is_true.shape, np.float32)
    some = 2 * helps + noise
    for added, expected in ((helps, 1.0), (-helps, 0.0), (some, None)):
        shares = np.linspace(0, 1, 101, dtype=np.float32)
        real = is_true.any(axis=1)
        losses = [
            loss_of(
                torch.from_numpy(examples.said + share * added)[real],
                is_true[real],
                examples.log_counts[real],
            ).item()
            for share in shares
        ]
        best = examples.best_share(added)
        assert best == pytest.approx(shares[np.argmin(losses)], abs=0.015)
        assert expected is None or best == expected
    assert 0 < best < 1


def test_a_network_on_another_scale_says_the_same():
    evidence, truth = made_up(60)
    evidence = padded(evidence)
    examples = RankingExamples.of(evidence, true_among(evidence.labels, truth), 1)
    total = ScoreNetwork.of_weights([0.5, 0.25]).with_best_match(0, -0.75)
    moved = examples.on_their_scale(total)
    np.testing.assert_array_equal(moved.centre, examples.centre)
    np.testing.assert_allclose(moved.scores(evidence), total.scores(evidence), atol=1e-4)


def test_a_sum_of_values_ranks_as_one_of_what_is_behind_the_best():
    evidence = padded(made_up(60)[0])
    of_commonness = replace(evidence, commonness=np.arange(N_LABELS, dtype=np.float32))
    total = ScoreNetwork.of_weights([0.5, 0.25], 0.01).with_best_match(0, -0.75)
    is_real = evidence.labels >= 0
    relative, absolute = (
        np.where(is_real, one.scores(of_commonness), 0) for one in (total, total.of_values())
    )
    best = np.where(is_real[:, np.newaxis], evidence.values, 0).max(axis=2) @ [0.5, 0.25]
    expected = np.where(is_real, best[:, np.newaxis], 0)
    np.testing.assert_allclose(absolute - relative, expected, atol=1e-4)


def test_networks_are_added_up(learnt):
    evidence = padded(made_up(40)[0])
    plain = replace(learnt, level=np.zeros(1, np.float32))
    other = ScoreNetwork.of_source(0, 2).on_scale(learnt.centre, learnt.scale)
    both = plain.plus(other.times(3)).scores(evidence)
    expected = plain.scores(evidence) + 3 * other.scores(evidence)
    np.testing.assert_allclose(both, expected, rtol=1e-4, atol=1e-3)


def test_the_sum_and_its_correction_together_have_the_size_of_a_network(learnt):
    """Vector instructions take so many units without a rest."""
    assert (len(learnt.bias1), len(learnt.bias2)) == NetworkTraining().hidden_layers


def test_few_points_get_a_sum_of_sources_that_are_as_good():
    evidence, truth = made_up(15)
    network = NetworkTraining().taught(evidence, truth, SAME, RUN).network
    assert is_a_sum(network)
    weights = network.scale[network.scale > 0]
    assert weights.size == 2


@pytest.mark.parametrize(("n", "is_sum"), [(19, True), (21, False)])
def test_fewer_than_twenty_points_never_teach_a_network(monkeypatch, n, is_sum):
    monkeypatch.setattr(RankingExamples, "best_share", lambda *_: 0.5)
    assert is_a_sum(NetworkTraining().taught(*made_up(n), SAME, RUN).network) == is_sum


def test_a_trial_judges_by_the_half_that_it_has_not_learnt_from():
    evidence, truth = made_up(200)
    is_true = true_among(evidence.labels, truth)
    tells = is_true + 0.5 * np.random.default_rng(1).random(is_true.shape)
    noise = 0.5 * np.random.default_rng(2).random(is_true.shape)
    values = np.stack([tells, noise], axis=1).astype(np.float32)
    values[100:] = values[100:, ::-1]  # each half is told of by the source that the other distrusts
    trial = NetworkTraining()._tried(replace(evidence, values=values), is_true, RUN)
    assert is_true[np.arange(200), trial.scores.argmax(axis=1)].mean() < 0.4


def test_few_points_leave_out_a_source_that_is_wrong():
    evidence, truth = made_up(15)
    worse = replace(evidence, values=np.stack([-evidence.values[:, 0], evidence.values[:, 1]], 1))
    network = NetworkTraining().taught(worse, truth, SAME, RUN).network
    own = ScoreNetwork.of_source(1, 2)
    order, expected = (np.argsort(one.scores(worse), axis=1) for one in (network, own))
    np.testing.assert_array_equal(order, expected)


def test_chance_hits_do_not_tell_the_sources_apart():
    evidence, _ = made_up(600)
    truth = np.ones((600, N_LABELS))
    np.put_along_axis(truth, evidence.labels, 0, axis=1)
    truth[0, evidence.labels[0, 0]] = 1
    network = NetworkTraining().taught(evidence, csr_array(truth), SAME, RUN).network
    assert same(network, ScoreNetwork.of_all(evidence))


def test_one_source_that_finds_true_labels_is_enough_to_learn_from():
    evidence, truth = made_up(100)
    is_true = true_among(evidence.labels, truth)[:, np.newaxis]
    last_and_first = np.array([-3, 3], np.float32)[:, np.newaxis]
    evidence = replace(evidence, values=np.where(is_true, last_and_first, evidence.values))
    network = NetworkTraining().taught(evidence, truth, SAME, RUN).network
    assert share_right(network, evidence, truth) > 0.95


def test_of_points_that_the_sources_know_a_sum_is_learnt():
    evidence, truth = made_up(400)
    assert not is_a_sum(NetworkTraining().taught(evidence, truth, SAME, RUN).network)
    wrong = np.stack([-evidence.values[:, 0], evidence.values[:, 1]], 1)
    worse = replace(evidence, values=wrong)
    shares = []
    for alike in (0, 3, 1e4):  # of the wrong source, which is trusted as the other in the end
        training = NetworkTraining(is_unseen=False, alike=alike)
        network = training.taught(worse, truth, SAME, RUN).network
        assert is_a_sum(network)
        weights = network.scale[[1, 1 + N_VIEWS]] * worse.behind_best().std(axis=(0, 1))
        shares.append(weights[0] / weights[1])
    assert shares[0] <= shares[1] < 0.9
    assert shares[2] == pytest.approx(1, abs=0.01)


def test_a_source_that_finds_nothing_by_itself_counts_for_nothing():
    evidence, truth = made_up(400)
    is_true = true_among(evidence.labels, truth)
    of_nothing = np.where(is_true, -1, evidence.values[:, 0])[:, None]
    three = replace(evidence, values=np.concatenate([evidence.values, of_nothing], axis=1))
    network = weighted_sum(three, is_true, np.arange(400), alike=1e4)
    weights = network.scale[1 : 3 * N_VIEWS : N_VIEWS] * three.behind_best().std(axis=(0, 1))
    assert weights[1] == pytest.approx(weights[0], rel=0.01)
    assert weights[2] == 0


def test_what_is_set_aside_does_not_count_against_a_source():
    evidence, truth = made_up(100)
    is_true = true_among(evidence.labels, truth)
    aside = np.zeros_like(is_true)
    aside[:, :2] = ~is_true[:, :2]
    first = np.where(aside, 9, is_true + evidence.values[:, 0] / 9).astype(np.float32)
    other = is_true + evidence.values[:, 1] / 9
    values = np.stack([first, other], axis=1).astype(np.float32)
    judged = replace(evidence, values=values).with_aside(aside)
    network = weighted_sum(judged, is_true, np.arange(100), alike=1e4)
    weights = network.scale[[1, 1 + N_VIEWS]] * judged.behind_best().std(axis=(0, 1))
    assert weights[0] == pytest.approx(weights[1], rel=0.01)


def test_the_mean_of_the_last_parameters_has_their_size():
    evidence, truth = made_up(40)
    examples = RankingExamples.of(evidence, true_among(evidence.labels, truth), 1)
    training = NetworkTraining(learning_rate=0.0)  # so they stay what they are
    still = training._fit(examples, np.arange(40), RUN, 3)
    random = np.random.default_rng(RUN.seed_for("score network"))
    start = RankingNetwork(len(examples.centre), 61, 29, training.dropout, random).parameters
    np.testing.assert_allclose(still.parameters, start, rtol=1.3e-6, atol=1e-5)


def test_weights_that_nothing_moves_decay_over_all_steps_as_rates_fall():
    evidence, truth = made_up(200)
    examples = RankingExamples.of(evidence, true_among(evidence.labels, truth), 1)
    says_nothing = ~examples.inputs.any(axis=(0, 1))
    assert says_nothing.any()
    training = NetworkTraining(averaged=0.01)  # the last step alone
    learnt = training._fit(examples, np.arange(200), RUN, 0)
    random = np.random.default_rng(RUN.seed_for("score network"))
    start = RankingNetwork(len(examples.centre), *training.hidden_layers, training.dropout, random)
    left, before = (one.layers.matrix1[: len(says_nothing)] for one in (learnt, start))
    left = left[says_nothing] / before[says_nothing]
    np.testing.assert_allclose(left, np.exp(-training.decay), atol=0.03)


def test_points_of_which_none_has_a_true_candidate_teach_nothing_but_decay():
    """As a half of the points may be."""
    examples = RankingExamples.of(made_up(40)[0], np.zeros((40, SIZE), bool), 1)
    training = NetworkTraining(averaged=0.01)
    learnt = training._fit(examples, np.arange(40), RUN, 0)
    random = np.random.default_rng(RUN.seed_for("score network"))
    start = RankingNetwork(len(examples.centre), *training.hidden_layers, training.dropout, random)
    left = learnt.parameters / start.parameters
    np.testing.assert_allclose(left, np.exp(-training.decay), atol=0.03)


@pytest.mark.parametrize(
    ("n_points", "most_steps", "expected"),
    [
        (5_000, None, (125, 40 * 24)),
        (5_001, None, (62, 81 * 24)),
        (5_000, 100, (125, 40 * 3)),
        (125, 100, (125, 40)),
        (0, None, (125, 24)),
    ],
)
def test_many_points_have_smaller_batches_and_a_trial_few_steps(n_points, most_steps, expected):
    assert NetworkTraining()._sizes(n_points, most_steps) == expected


def test_a_source_that_is_always_right_is_followed():
    evidence, truth = made_up(200)
    rows = np.arange(200)[:, np.newaxis]
    perfect = truth.toarray()[rows, evidence.labels].astype(np.float32)
    evidence = replace(evidence, values=np.stack([evidence.values[:, 0], perfect], axis=1))
    network = NetworkTraining().taught(evidence, truth, SAME, RUN).network
    assert share_right(network, evidence, truth) == 1


def test_points_with_nothing_but_true_candidates_and_padding_are_learnt_from():
    evidence, truth = made_up(300)
    evidence = padded(evidence)
    truth = truth.tolil()
    for i in range(0, 300, 10):
        truth[i, evidence.labels[i][evidence.labels[i] >= 0]] = 1
    network = (
        NetworkTraining(epochs=3)
        .taught(evidence, truth.tocsr(), np.ones(truth.shape[1]), RUN)
        .network
    )
    assert all(np.isfinite(getattr(network, part.name)).all() for part in fields(network))


def test_fewer_candidates_than_places_in_the_metrics():
    evidence, truth = made_up(100, size=2)
    assert (
        share_right(NetworkTraining().taught(evidence, truth, SAME, RUN).network, evidence, truth)
        > 0.5
    )


def test_the_loss_is_the_decoupled_softmax():
    random = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 5, generator=random, dtype=torch.float64)
    is_true = torch.rand(6, 5, generator=random) < 0.4
    is_true[:, 0] = True
    is_real = is_true | (torch.rand(6, 5, generator=random) < 0.7)
    expected = 0.0
    for i in range(6):
        of_false = logits[i][is_real[i] & ~is_true[i]].exp().sum()
        of_true = logits[i][is_true[i]].exp()
        loss = -(of_true / (of_true + of_false)).log().sum()
        expected += float(loss) / np.sqrt(int(is_true[i].sum())) / 6
    loss = ranking_loss(logits, is_true, torch.from_numpy(log_counts(is_real.numpy())))
    assert loss.item() == pytest.approx(expected)


def log_counts(is_real):
    """Each candidate stands for itself."""
    return log_counts_of(np.where(is_real, 0, -1))


def test_a_candidate_that_stands_for_others_counts_as_often():
    logits = np.array([[2.0, 1.0, 0.5, 0.5, 0.5]], np.float32)
    is_true = np.array([[True, False, False, False, False]])
    all_of_them = ranking_slope(logits, is_true, np.zeros((1, 5), np.float32))[0]
    counts = np.log(np.array([[1, 1, 3]], np.float32))
    fewer = ranking_slope(logits[:, :3].copy(), is_true[:, :3].copy(), counts)[0]
    np.testing.assert_allclose(fewer[:2], all_of_them[:2], rtol=1.3e-6, atol=1e-5)
    np.testing.assert_allclose(fewer[2], all_of_them[2:].sum(), rtol=1.3e-6, atol=1e-5)


def test_candidates_that_are_hard_to_tell_apart_are_kept_and_others_stand_for_the_rest():
    evidence, truth = made_up(50, size=30)
    evidence = padded(evidence)
    is_true = true_among(evidence.labels, truth)
    examples = RankingExamples.of(evidence, is_true, n_threads=1)
    scores = ScoreNetwork.of_source(0, 2).scores(evidence)
    examples = examples.saying(scores)
    assert examples.hardest(scores, (20, 10), np.random.default_rng(0)) is examples
    fewer = examples.hardest(scores, (6, 3), np.random.default_rng(0))
    every = np.where(is_true, np.inf, scores)
    best = -np.sort(-every, axis=1)[:, :6]
    kept = np.where(fewer.is_true, np.inf, fewer.said)
    np.testing.assert_array_equal(kept[:, :6], best)
    assert fewer.is_true.sum() == examples.is_true.sum()
    n_real = (evidence.labels >= 0).sum(axis=1)
    np.testing.assert_allclose(np.exp(fewer.log_counts).sum(axis=1), n_real, rtol=1e-5)


def test_views_are_those_of_the_evidence_on_one_scale():
    """Each has mean 0 and deviation 1 over all real candidates, and is cut where it is far off."""
    evidence, truth = made_up(50)
    evidence = padded(evidence)
    is_real = evidence.labels >= 0
    views = evidence.views()
    deviation = np.maximum(views[is_real].std(axis=0), 1e-4)
    expected = np.clip((views - views[is_real].mean(axis=0)) / deviation, -5, 5)
    examples = RankingExamples.of(evidence, true_among(evidence.labels, truth), 1)
    own = expected[:, :, [0, 1, 3, 5, 6, 8, 10, 11]]
    np.testing.assert_allclose(examples.inputs[is_real], own[is_real], atol=1e-4)
    np.testing.assert_allclose(examples.of_points, expected[:, 0, [2, 4, 7, 9, 12]], atol=1e-4)


def test_hard_candidates_of_points_that_are_viewed_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr("longtail.blend.ranking_examples._POINTS_AT_ONCE", 16)
    evidence, truth = made_up(50, size=30)
    evidence = padded(evidence)
    is_true = true_among(evidence.labels, truth)
    examples = RankingExamples.of(evidence, is_true, n_threads=1)
    trial, total = (ScoreNetwork.of_source(source, 2) for source in (0, 1))
    of_points = (evidence, is_true, (trial, total))
    every = examples.hardest_of(*of_points, (20, 10), seed=0, n_threads=1)
    np.testing.assert_array_equal(every.inputs, examples.inputs)
    np.testing.assert_array_equal(every.of_points, examples.of_points)
    fewer = examples.without_points().hardest_of(*of_points, (6, 3), seed=0, n_threads=2)
    said, judged = total.scores(evidence), trial.scores(evidence)
    whole = examples.saying(said).hardest(judged, (6, 3), np.random.default_rng(0))
    np.testing.assert_array_equal(fewer.said[:, :6], whole.said[:, :6])
    np.testing.assert_array_equal(fewer.inputs[:, :6], whole.inputs[:, :6])  # others are drawn
    for part, expected in zip(fewer[2:4], whole[2:4], strict=True):
        np.testing.assert_allclose(part.sum(axis=1), expected.sum(axis=1), rtol=1.3e-6, atol=1e-5)


def test_what_is_added_is_the_scores_of_the_frozen_network():
    evidence, truth = made_up(40)
    evidence = padded(evidence)
    examples = RankingExamples.of(evidence, true_among(evidence.labels, truth), 1)
    network = RankingNetwork(len(examples.centre), 8, 4, 0.0, np.random.default_rng(3))
    expected = examples.frozen(network.layers).scores(evidence)
    added = examples.added(network, np.arange(40))
    np.testing.assert_allclose(added, np.where(evidence.labels < 0, 0, expected), atol=1e-4)


def ranked(n, size, seed=0):
    """True candidates and real ones; point 0 has no true one, point 1 no false one."""
    random = np.random.default_rng(seed)
    is_real = random.random((n, size)) < 0.8
    is_true = is_real & (random.random((n, size)) < 0.3)
    is_true[0], is_true[1] = False, is_real[1]
    return is_true, is_real


def loss_of(logits, is_true, counts):
    """The loss of logits that have a gradient."""
    return ranking_loss(logits, torch.from_numpy(is_true), torch.from_numpy(counts))


def test_slopes_are_those_of_the_loss():
    is_true, is_real = ranked(20, 7)
    drawn = np.random.default_rng(1).standard_normal((20, 7), np.float32)
    logits, counts = torch.tensor(drawn, requires_grad=True), log_counts(is_real)
    teaches = is_true.any(axis=1)  # the loss of a point without true candidates is 0 / 0
    loss_of(logits[teaches], is_true[teaches], counts[teaches]).backward()
    own, expected = 20 * ranking_slope(drawn, is_true, counts), teaches.sum() * logits.grad
    np.testing.assert_allclose(own[teaches], expected[teaches], rtol=1.3e-6, atol=1e-5)
    assert 0 < teaches.sum() < 20
    assert not own[~teaches].any()


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_gradient_of_a_network_is_that_of_automatic_differentiation(dropout):
    is_true, is_real = ranked(12, 9)
    is_true[:, 0] = is_real[:, 0] = True
    views = np.random.default_rng(2).standard_normal((12, 9, 3), np.float32)
    of_points = np.random.default_rng(4).standard_normal((12, 2), np.float32)
    network, twin = (RankingNetwork(5, 8, 4, dropout, np.random.default_rng(3)) for _ in range(2))
    layers = [torch.tensor(part, requires_grad=True) for part in twin.layers]
    matrix1, bias1, matrix2, bias2, last = layers
    drawn = [torch.tensor(twin._drawn(12, len(bias)))[:, None] for bias in (bias1, bias2)]
    kept = [(lots >= dropout) / (1 - dropout) for lots in drawn]
    repeated = np.repeat(of_points[:, np.newaxis], 9, axis=1)
    inputs = torch.from_numpy(np.concatenate([views, repeated], axis=2))
    units = (inputs @ matrix1 + bias1).relu() * kept[0]
    said = np.random.default_rng(5).standard_normal((12, 9), np.float32)
    logits = ((units @ matrix2 + bias2).relu() * kept[1]) @ last + torch.from_numpy(said)
    counts = log_counts(is_real)
    loss_of(logits, is_true, counts).backward()
    expected = np.concatenate([part.grad.ravel() for part in layers])
    for _ in range(2):  # scratch is not remembered
        gradient = network.gradient(views, of_points, is_true, counts, said)
        network._random = np.random.default_rng(3)
        RankingNetwork(5, 8, 4, dropout, network._random)  # draws as much as its start did
        np.testing.assert_allclose(gradient, expected, rtol=1.3e-6, atol=1e-5)


def test_a_network_is_what_its_arrays_say(learnt, tmp_path):
    arrays = {}
    for name, array in learnt.to_arrays().items():
        np.save(tmp_path / name, array)
        arrays[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    again = ScoreNetwork.from_arrays(arrays)
    assert same(again, learnt)
    evidence = made_up(20)[0]
    assert again.scores(evidence).tobytes() == learnt.scores(evidence).tobytes()


def test_arrays_of_a_network_cannot_be_written(learnt):
    with pytest.raises(ValueError, match="read-only"):
        learnt.matrix1[0, 0] = 1


class TestWeighedSum:
    """What is learnt where a network would learn chance."""

    def test_the_unit_of_a_source_does_not_matter(self):
        evidence, truth = made_up(100)
        is_true = true_among(evidence.labels, truth)
        factors = np.array([1, 1000], np.float32)
        louder = replace(evidence, values=evidence.values * factors[:, np.newaxis])
        first, second = (
            weighted_sum(one, is_true, np.arange(100)).scores(one) for one in (evidence, louder)
        )
        np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-3)

    def test_it_makes_the_loss_smaller_than_a_plain_sum_and_each_source(self):
        evidence, truth = made_up(400)
        is_true = true_among(evidence.labels, truth)
        learnt = weighted_sum(evidence, is_true, np.arange(400))
        others = [ScoreNetwork.of_all(evidence), *(ScoreNetwork.of_source(i, 2) for i in (0, 1))]
        counts = np.zeros(is_true.shape, np.float32)
        losses = [
            float(loss_of(torch.from_numpy(one.scores(evidence)), is_true, counts))
            for one in (learnt, *others)
        ]
        assert losses[0] == min(losses)

    def test_padding_and_points_without_a_true_candidate_teach_nothing(self):
        evidence, truth = made_up(60)
        is_true = true_among(evidence.labels, truth)
        longer = replace(
            evidence,
            labels=np.pad(evidence.labels, ((0, 0), (0, 3)), constant_values=-1),
            values=np.pad(evidence.values, ((0, 0), (0, 0), (0, 3)), constant_values=99),
        )
        rows = np.arange(60)
        own = weighted_sum(evidence, is_true, rows)
        padded_too = weighted_sum(longer, np.pad(is_true, ((0, 0), (0, 3))), rows)
        np.testing.assert_allclose(own.scale, padded_too.scale, rtol=1e-4)
        nothing = weighted_sum(evidence, np.zeros_like(is_true), rows)
        assert not nothing.scale.any()

    def test_what_is_common_is_the_guess_where_sources_tell_nothing(self):
        """Three of four points have the commonest of ten labels, and what is said is noise."""
        random = np.random.default_rng(0)
        labels = np.tile(np.arange(10, dtype=np.int32), (200, 1))
        evidence = Evidence(
            labels,
            random.standard_normal((200, 2, 10)).astype(np.float32),
            np.ones(200, np.float32),
            np.log(np.append(np.ones(9), 27)).astype(np.float32),
        )
        is_true = (
            labels == np.where(random.random(200) < 0.75, 9, random.integers(0, 9, 200))[:, None]
        )
        scores = weighted_sum(evidence, is_true, np.arange(200)).scores(evidence)
        assert (scores.argmax(axis=1) == 9).mean() > 0.99
        told = replace(evidence, values=evidence.values + 9 * is_true[:, np.newaxis])
        scores = weighted_sum(told, is_true, np.arange(200)).scores(told)
        assert is_true[np.arange(200), scores.argmax(axis=1)].all()

    def test_few_points_say_little_of_what_is_common(self):
        """One of two sources is right of each point, and its label is always the commonest."""
        weights = []
        for n in (10, 300):
            evidence, _ = made_up(n)
            commonness = np.zeros(N_LABELS, np.float32)
            is_true = evidence.labels % SIZE == 0
            evidence = replace(evidence, commonness=commonness + (np.arange(N_LABELS) % SIZE == 0))
            network = weighted_sum(evidence, is_true, np.arange(n))
            weights.append(network.scale[1 - N_CONTEXT_VIEWS])
        assert 0 < weights[0] < 0.5 * weights[1]

    def test_a_point_is_not_its_own_label(self):
        """The likest text is that of the point itself, the next that of the one true label."""
        random = np.random.default_rng(0)
        labels = np.tile(np.arange(10, dtype=np.int32), (200, 1))
        texts = random.uniform(0.1, 0.4, (200, 1, 10)).astype(np.float32)
        is_true = labels == random.integers(0, 9, 200)[:, np.newaxis]
        texts[:, 0][is_true], texts[:, 0, 9] = 0.6, random.uniform(0.7, 1.0, 200)
        none = np.zeros(10, np.float32)
        evidence = Evidence(labels, texts, np.ones(200, np.float32), none)
        told = replace(evidence, source_of_texts=0)
        for one, share in ((evidence, 0.0), (told, 1.0)):
            scores = weighted_sum(one, is_true, np.arange(200)).scores(one)
            assert is_true[np.arange(200), scores.argmax(axis=1)].mean() == share
        padded = Evidence(np.full((1, 2), -1, np.int32), np.ones((1, 1, 2), np.float32), none, none)
        assert not replace(padded, source_of_texts=0).best_match().any()


def is_a_sum(network):
    """Return whether a network is but a weighted sum: two units that say the same."""
    return len(network.bias1) == 2


def test_what_a_network_knows_by_heart_makes_it_less_sure():
    """Its first answers are right more often of points that it has learnt from than of others."""
    evidence, truth = noisy(120)
    taught = NetworkTraining().taught(evidence, truth, SAME, RUN)
    assert not is_a_sum(taught.network)
    right = share_right(taught.network, evidence, truth)
    assert 0.05 < taught.by_heart < right
    lesson = HeldOutLesson(evidence=evidence, truth=truth, seen=truth, is_unseen=True)
    network, calibration = lesson.learn(np.zeros(N_LABELS, np.float32), RUN)
    said = calibration.probabilities(np.sort(network.scores(evidence), axis=1)[:, ::-1])[:, 0]
    assert said.mean() < right - taught.by_heart / 2


def test_a_weighted_sum_is_not_doubted():
    evidence, truth = made_up(10)
    assert NetworkTraining().taught(evidence, truth, SAME, RUN).by_heart == 0
