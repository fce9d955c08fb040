"""What the default recipe chooses by itself, by the size of the training set."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail import LongtailClassifier
from longtail.blend import shared_space
from longtail.blend.candidates import SearchSizes
from longtail.blend.shared_space import SharedSpace
from longtail.errors import InputError
from longtail.metrics import inverse_propensities
from longtail.training.run import TrainingData


@pytest.mark.parametrize(
    ("n_points", "dimension", "epochs"),
    [(20_000, 256, 7), (20_001, 192, 3), (200_000, 192, 3), (200_001, 256, 3)],
)
def test_the_number_of_points_decides_how_long_vectors_are(n_points, dimension, epochs):
    space = LongtailClassifier().shared_space(n_points, 30_000, 3 * n_points)
    assert (space.dimension, space.schedule.epochs) == (dimension, epochs)
    assert LongtailClassifier(dimension=64).shared_space(n_points, 9, 9).dimension == 64


@pytest.mark.parametrize("n_points", [20_000, 20_001, 200_001])
def test_vectors_are_no_shorter_in_scripts_without_spaces(n_points):
    space = LongtailClassifier().shared_space(n_points, 3_000, n_points, is_unspaced=True)
    assert space.dimension == 256


def test_it_is_told_by_the_data_that_a_script_has_no_spaces():
    points = csr_array((20_001, 1), dtype=np.float32)
    data = TrainingData(points, points, is_word=np.array([False]), is_unspaced=True)
    assert LongtailClassifier().space_for(data).dimension == 256


def test_held_out_points_count_where_they_are_learnt_from_in_the_end():
    few, many = (
        LongtailClassifier().shared_space(48_000, 9, 9, n_held_out=n).schedule
        for n in (2_000, 2_500)
    )
    assert (few.epochs, few.learning_rate) == (3, 0.02)
    assert (many.epochs, many.learning_rate) == (3, 0.04)


def test_what_learns_again_keeps_its_vectors_length_and_scale(monkeypatch):
    """With the held-out points there are more than a bound, beyond which both are smaller."""
    for name, most in (("VERY_FEW_POINTS", 90), ("VERY_FREQUENT", 45)):
        monkeypatch.setattr(f"longtail.recipes.longtail.{name}", most)
    texts, labels = ["red wine", "old car"] * 50, [["drink"], ["vehicle"]] * 50
    model = LongtailClassifier(held_out=0.2, n_threads=1)
    parts = model.fit(texts, labels).predictor_.scorer.parts
    assert model.shared_space(100, 2, 100).dimension == 192
    assert model.shared_space(100, 2, 100).scale == 10
    assert parts.heads[0].rows.values.shape[1] == 256
    assert parts.heads[0].scale == 16


def points_and_labels(n_points, n_labels=1, n_pairs=0):
    """A training set of such a size; the first points have the first labels."""
    features, pairs = csr_array((n_points, 1), dtype=np.float32), np.arange(n_pairs)
    where = pairs // n_labels, pairs % n_labels
    labels = csr_array((np.ones(n_pairs, np.float32), where), (n_points, n_labels))
    return TrainingData(features, labels, is_word=np.ones(1, bool))


@pytest.mark.parametrize(("n_held_out", "expected"), [(0, False), (2_000, True), (2_001, False)])
def test_sources_learn_again_where_points_are_few_in_all(n_held_out, expected):
    data, held_out = points_and_labels(48_000), points_and_labels(n_held_out)
    assert LongtailClassifier().learns_again(data, held_out) == expected


def test_pieces_are_the_same_where_sources_learn_again():
    data, more = points_and_labels(200, 20, n_pairs=90), points_and_labels(50, 20, n_pairs=11)
    assert LongtailClassifier().pieces_of(data, more) == "all"  # 101 are more than 5 a label
    assert LongtailClassifier().pieces_of(data, points_and_labels(50, 20, n_pairs=10)) == "no"


def test_batches_are_smaller_where_their_points_have_many_labels():
    few, many = (
        LongtailClassifier().shared_space(100_000, 30_000, n * 100_000).batch_size for n in (5, 100)
    )
    assert few == 1024
    assert 50 <= many <= 100  # points of 10,000 labels


@pytest.mark.parametrize(
    ("settings", "expected"), [({}, 0.3), ({"label_texts": False}, 0.5), ({"tail": 2.0}, 2.0)]
)
def test_rare_labels_gain_more_where_labels_have_no_texts(settings, expected):
    texts, labels = [f"wine {i}" for i in range(100)], [[f"l{i % 9 % 4}"] for i in range(100)]
    model = LongtailClassifier(dimension=8, epochs=1, n_threads=1, **settings).fit(texts, labels)
    worth = np.log(inverse_propensities(model.predictor_.train_label_counts, 100))
    weights = model.predictor_.scorer.parts.tail_weights
    np.testing.assert_allclose(weights, expected * worth, rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [(7, 0.02), (2, 0.01)]),
        ({"epochs": 1, "learning_rate": 0.1}, [(1, 0.1), (1, 0.05)]),
        ({"held_out": 0.0}, [(7, 0.02)]),
    ],
)
def test_sources_learn_again_for_fewer_epochs_and_slower(settings, expected, monkeypatch):
    schedules, learn = [], SharedSpace.learn

    def noted(space, *arguments, **named):
        schedules.append((space.schedule.epochs, space.schedule.learning_rate))
        return learn(space, *arguments, **named)

    monkeypatch.setattr(SharedSpace, "learn", noted)
    texts, labels = [f"wine {i}" for i in range(100)], [[i % 9] for i in range(100)]
    LongtailClassifier(dimension=8, n_threads=1, **settings).fit(texts, labels)
    assert schedules == expected


def test_sources_that_learn_again_begin_with_neighbours(monkeypatch):
    sizes, batches = [], shared_space.NeighbourhoodBatches

    def noted(*arguments, **named):
        sizes.append((named["first_size"], named["cluster_size"]))
        return batches(*arguments, **named)

    monkeypatch.setattr(shared_space, "NeighbourhoodBatches", noted)
    texts, labels = [f"wine {i}" for i in range(100)], [[i % 9] for i in range(100)]
    LongtailClassifier(dimension=8, epochs=1, n_threads=1).fit(texts, labels)
    (first, largest), again = sizes
    assert first == 1 < largest
    assert again == (largest, largest)


def test_logits_keep_their_scale_where_sources_learn_again(monkeypatch):
    scales, learn = [], SharedSpace.learn

    def noted(space, *arguments, **named):
        scales.append(space.scale)
        return learn(space, *arguments, **named)

    monkeypatch.setattr(SharedSpace, "learn", noted)
    texts, labels = [f"wine {i}" for i in range(110)], [[i % 2] for i in range(110)]
    LongtailClassifier(dimension=8, epochs=1, n_threads=1).fit(texts, labels)
    assert scales == [16.0, 16.0]  # 55 points a label, of which fewer than 50 are not held out


@pytest.mark.parametrize(("n_points", "dimension"), [(50_000, 512), (50_001, 192)])
def test_vectors_are_longer_where_bags_are_of_words_alone(n_points, dimension):
    space = LongtailClassifier().shared_space(n_points, 30_000, 3 * n_points, has_pieces=False)
    assert space.dimension == dimension


def test_texts_stand_alone_where_labels_are_rare():
    rare = LongtailClassifier().shared_space(100_000, 30_000, 20 * 30_000)
    frequent = LongtailClassifier().shared_space(500_000, 30_000, 20 * 30_000 + 1)
    assert rare.texts_alone > 0
    assert frequent.texts_alone == 0
    assert LongtailClassifier(texts_alone=0.1).shared_space(9, 1, 90).texts_alone == 0.1


@pytest.mark.parametrize(
    ("n_labels", "n_points_each", "scale"),
    [(5_000, 51, 10.0), (5_000, 50, 16.0), (5_001, 51, 16.0)],
)
def test_logits_are_smaller_where_labels_are_few_and_frequent(n_labels, n_points_each, scale):
    size = 200_000, n_labels, n_points_each * n_labels
    assert LongtailClassifier().shared_space(*size).scale == scale
    assert LongtailClassifier(scale=12.0).shared_space(*size).scale == 12.0


@pytest.mark.parametrize(("n_words", "pieces"), [(4, "beginnings"), (3.9, "all")])
def test_pieces_of_words_are_read_where_labels_have_enough_points(n_words, pieces):
    model = LongtailClassifier()
    assert model.pieces_for(50_000, 30_000, 5 * 30_000, n_words) == "no"
    assert model.pieces_for(50_000, 30_000, 5 * 30_000 + 1, n_words) == pieces
    of_rare = "no" if n_words >= 4 else "all"  # of few words, all pieces take no time worth naming
    assert model.pieces_for(50_001, 30_000, 20 * 30_000, n_words) == of_rare
    assert model.pieces_for(50_001, 30_000, 20 * 30_000 + 1, n_words) == pieces
    assert LongtailClassifier(pieces="no").pieces_for(9, 1, 90, n_words) == "no"


@pytest.mark.parametrize(("n_pairs", "pieces"), [(40, "no"), (41, "all")])
def test_pieces_that_few_points_share_are_read_where_no_text_has_the_words_of_another(
    n_pairs, pieces
):
    data, model = points_and_labels(200, 20, n_pairs=n_pairs), LongtailClassifier()
    nothing = points_and_labels(50, 20)
    assert model.pieces_of(data, nothing) == "no"
    assert model.pieces_of(data._replace(is_unknown=True), nothing) == pieces


def test_only_pieces_that_there_are_can_be_asked_for():
    with pytest.raises(InputError, match="pieces must be one of None, 'no', 'beginnings', 'all'"):
        LongtailClassifier(pieces="endings").fit(["a"], [["b"]])


def test_a_blend_has_twenty_points_to_be_learnt_from_where_that_is_a_third():
    model = LongtailClassifier()
    assert [model.n_held_out(n) for n in (59, 60, 99, 1_000)] == [pytest.approx(11.8), 20, 20, 200]
    assert LongtailClassifier(held_out=0).n_held_out(90) == 0


@pytest.mark.parametrize(("n_pieces", "expected"), [(79.9, 30), (80, 150)])
def test_more_labels_are_scored_where_texts_are_strings(n_pieces, expected):
    assert LongtailClassifier().candidate_sizes(n_pieces).n_near_labels == expected
    given = {"n_near_labels": 40, "n_near_points": 3, "n_voted": 5, "beam_size": 9}
    assert LongtailClassifier(**given).candidate_sizes(n_pieces) == SearchSizes(**given)


@pytest.mark.parametrize(("length", "expected"), [(15, 30), (60, 150)])
def test_a_model_of_strings_scores_more_labels(length, expected):
    random = np.random.default_rng(0)
    texts = ["".join(random.choice(list("abcdefgh"), length)) for _ in range(120)]
    labels = [[text[:1]] for text in texts]
    model = LongtailClassifier(epochs=1, dimension=8, n_threads=1).fit(texts, labels)
    assert model.predictor_.scorer.sizes.n_near_labels == expected
