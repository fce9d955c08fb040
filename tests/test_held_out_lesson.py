"""What held-out points teach a blend: by which labels, by whose propensities, of which scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail.blend.evidence import Evidence
from longtail.blend.held_out_lesson import HeldOutLesson
from longtail.blend.network_training import NetworkTraining
from longtail.blend.score_network import ScoreNetwork, best_labels
from longtail.metrics.propensity import inverse_propensities_in
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.ngame import NGAME
from longtail.scorers.calibration import Calibration
from longtail.training.run import TrainingData, TrainingRun

RUN = TrainingRun(seed=0, n_threads=1)
N_LABELS = 4


def made_up(n=60):
    """Points whose candidates are all labels; a source mostly ranks the true one first."""
    random = np.random.default_rng(0)
    truth = np.eye(N_LABELS, dtype=np.float32)[random.integers(0, N_LABELS, n)]
    values = (truth + 1.2 * random.random((n, N_LABELS), np.float32))[:, np.newaxis]
    labels = np.tile(np.arange(N_LABELS, dtype=np.int32), (n, 1))
    none = np.zeros(N_LABELS, np.float32)
    return Evidence(labels, values, np.ones(n, np.float32), none), csr_array(truth)


def lesson_of(evidence, truth, *, seen=None, is_unseen=True):
    seen = truth if seen is None else seen
    return HeldOutLesson(evidence=evidence, truth=truth, seen=seen, is_unseen=is_unseen)


class Fixed:
    """Stands for a blend and its encoder."""

    @property
    def encoder(self):
        return self

    def encode(self, bags, n_threads):
        return bags.matrix(2).toarray()

    def evidence_of(self, points, bags, n_threads):
        n = len(points)
        labels = np.tile(np.arange(N_LABELS, dtype=np.int32), (n, 1))
        nearness, none = points[:, 0], np.zeros(N_LABELS, np.float32)
        return Evidence(labels, np.zeros((n, 1, N_LABELS), np.float32), nearness, none)


def test_what_is_set_aside_is_neither_true_nor_false():
    features = csr_array(np.array([[0.6, 0.8], [0.8, 0.6]], np.float32))
    labels, pairs = csr_array([[1, 0, 1, 0], [0, 1, 0, 0]]), csr_array([[1, 0, 0, 1], [0, 0, 0, 0]])
    data = TrainingData(features, labels, set_aside=pairs)
    beside = data.of_points(np.array([0]))
    shown = data._replace(unlabelled=beside)
    points = Fixed().encode(data.bags(), 1)
    lesson = HeldOutLesson.of(Fixed(), shown, points, labels, is_unseen=True, n_threads=1)
    assert lesson.evidence.judged.tolist() == [[-1, 1, 2, -1], [0, 1, 2, 3]]
    assert lesson.truth.toarray().tolist() == [[0, 0, 1, 0], [0, 1, 0, 0]]
    assert lesson.unlabelled.judged.tolist() == [[-1, 1, 2, -1]]
    assert lesson.unlabelled.nearness.tolist() == pytest.approx([0.6])


def test_rare_labels_are_those_of_few_points_that_the_sources_have_seen(monkeypatch):
    evidence, truth = made_up()
    seen = csr_array(np.tile([1, 0, 1, 0], (50, 1)))
    given, taught = [], NetworkTraining.taught

    def noted(training, evidence, truth, inverse_propensities, run):
        given.append((training.is_unseen, inverse_propensities))
        return taught(training, evidence, truth, inverse_propensities, run)

    monkeypatch.setattr(NetworkTraining, "taught", noted)
    lesson = lesson_of(evidence, truth, seen=seen, is_unseen=False)
    lesson.learn(np.zeros(N_LABELS, np.float32), RUN)
    ((is_unseen, inverse_propensities),) = given
    assert not is_unseen
    np.testing.assert_array_equal(inverse_propensities, inverse_propensities_in(seen))


@pytest.mark.parametrize("held_out", [0.3, 0.0])
def test_a_recipe_knows_whether_its_sources_have_seen_the_points(held_out, monkeypatch):
    shown, learn = [], HeldOutLesson.learn

    def noted(lesson, *arguments):
        shown.append(lesson.is_unseen)
        return learn(lesson, *arguments)

    monkeypatch.setattr(HeldOutLesson, "learn", noted)
    texts, labels = ["red wine", "old car"] * 50, [["drink"], ["vehicle"]] * 50
    texts = [f"{text} {i}" for i, text in enumerate(texts)]
    LongtailClassifier(dimension=8, epochs=1, n_threads=1, held_out=held_out).fit(texts, labels)
    assert shown == [bool(held_out)]


def test_probabilities_are_those_of_scores_as_they_are_told():
    evidence, truth = made_up()
    more = np.array([0, 0, 2, 3], np.float32)
    network, calibration = lesson_of(evidence, truth).learn(more, RUN)
    ids, scores = best_labels(network, evidence, more, N_LABELS)
    right = truth.toarray()[np.arange(60), ids[:, 0]]
    said = calibration.probabilities(scores)
    assert said[:, 0].mean() == pytest.approx(right.mean(), abs=0.05)
    assert said.mean() == pytest.approx(1 / N_LABELS, abs=0.03)


def test_probabilities_of_a_sum_are_right_of_labels_behind_the_first_five():
    """The true label is mostly one of six that are ahead: how far others are behind, all tell."""
    n, n_labels = 100, 40
    random = np.random.default_rng(0)
    true = random.integers(0, n_labels, n)
    values = random.random((n, 1, n_labels), np.float32)
    ahead = random.integers(0, n_labels, (n, 5))
    values[np.arange(n)[:, np.newaxis], 0, ahead] += 1
    values[np.arange(n), 0, true] += random.random(n) < 0.6
    labels = np.tile(np.arange(n_labels, dtype=np.int32), (n, 1))
    evidence = Evidence(labels, values, np.ones(n, np.float32), np.zeros(n_labels, np.float32))
    truth = csr_array(np.eye(n_labels)[true])
    none = np.zeros(n_labels, np.float32)
    network, calibration = lesson_of(evidence, truth, is_unseen=False).learn(none, RUN)
    scores = -np.sort(-network.scores(evidence), axis=1)
    n_said = calibration.probabilities(scores[:, :20]).sum(axis=1).mean()
    assert n_said == pytest.approx(0.8, abs=0.15)


def nearer_and_higher(n=100):
    """A lesson of which the first answer's score is three times the nearness, and a network."""
    near = np.linspace(0.2, 0.8, n, dtype=np.float32)
    values = np.stack([3 * near, 3 * near - 5], axis=1)[:, np.newaxis]
    labels = np.tile(np.arange(2, dtype=np.int32), (n, 1))
    evidence = Evidence(labels, values, near, np.zeros(2, np.float32))
    return lesson_of(evidence, csr_array(np.eye(2)[np.zeros(n, int)])), passing_on_values()


def passing_on_values():
    """A network that says what the one source says."""
    return ScoreNetwork.of_source(0, n_sources=1).of_values()


@pytest.mark.parametrize(("rises_by", "lower"), [(0.4, 0.3), (0.0, 0.0), (-0.4, 0.0)])
def test_scores_that_rise_since_points_are_nearer_are_not_wholly_believed(rises_by, lower):
    lesson, network = nearer_and_higher()
    usual, none = Calibration(slope=2.0, first=1.0), np.zeros(2, np.float32)
    nearness = lesson.evidence.nearness[::7] + np.float32(rises_by)
    told = lesson.with_more_points(network, usual, none, nearness, 100)
    scores = np.array([[1.5, -3.5]], np.float32)
    expected = usual.logits(scores - np.float32(lower))
    np.testing.assert_allclose(told.logits(scores), expected, atol=0.1)
    if not lower:
        assert told == usual


def test_what_rarity_adds_for_the_order_is_taken_from_scores_once():
    near = np.linspace(0.2, 0.8, 100, dtype=np.float32)
    ahead = np.stack([3 * near, 3 * near - 5], axis=1)
    ahead[50:] = ahead[50:, ::-1]  # from here on the rare label is first
    labels = np.tile(np.arange(2, dtype=np.int32), (100, 1))
    evidence = Evidence(labels, ahead[:, np.newaxis], near, np.zeros(2, np.float32))
    lesson, network = (
        lesson_of(evidence, csr_array(np.eye(2)[np.zeros(100, int)])),
        passing_on_values(),
    )
    usual, higher = Calibration(slope=2.0), near[::7] + np.float32(0.4)
    ordered = replace(network, for_order=np.ones(1, np.float32))
    told = [
        lesson.with_more_points(one, usual, np.array(weights, np.float32), higher, 100)
        for one, weights in ((network, [0, 0]), (ordered, [0, 2]))
    ]
    assert told[0] != usual
    scores = np.array([[1.5, -3.5]], np.float32)
    np.testing.assert_allclose(told[1].logits(scores), told[0].logits(scores), rtol=1e-4)


def test_points_that_are_known_alike_or_few_tell_of_no_rise():
    lesson, network = nearer_and_higher()
    usual, none, higher = Calibration(slope=2.0), np.zeros(2, np.float32), np.ones(5, np.float32)
    same = replace(lesson.evidence, nearness=np.full(100, 0.5, np.float32))
    known, alike = replace(lesson, is_unseen=False), replace(lesson, evidence=same)
    for some, nearness, n_points in (
        (known, higher, 100),
        (alike, higher, 100),
        (lesson, higher, 15),
        (lesson, higher[:0], 100),
    ):
        assert some.with_more_points(network, usual, none, nearness, n_points) == usual
    assert lesson.with_more_points(network, usual, none, higher, 100) != usual


@pytest.mark.parametrize(
    ("recipe", "settings"),
    [
        (LongtailClassifier, {}),
        (NGAME, {"encoder_epochs": 1, "classifier_epochs": 1}),
        (NGAME, {"encoder_epochs": 1, "classifier_epochs": 1, "n_near_points": 0, "linear": False}),
    ],
    ids=["longtail", "ngame", "without near points"],
)
def test_a_recipe_asks_how_near_other_points_are_in_the_end(recipe, settings, monkeypatch):
    asked = {}

    def with_more_points(self, network, calibration, tail_weights, nearness, n_points, n_threads):
        asked.update(nearness=nearness, n_points=n_points, before=self.evidence.nearness)
        return calibration

    monkeypatch.setattr(HeldOutLesson, "with_more_points", with_more_points)
    random = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in random.integers(0, 40, 6)) for _ in range(400)]
    labels = [[text.split()[0]] for text in texts]
    recipe(dimension=16, n_threads=1, char_ngrams=None, **settings).fit(texts, labels)
    assert 70 < len(asked["nearness"]) == asked["n_points"] <= 80
    assert asked["nearness"].max() < 0.99  # not itself
    assert np.median(asked["nearness"]) > np.median(asked["before"]) - 0.05
