"""What the default recipe chooses by itself, by the size of the training set."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail import LongtailClassifier
from longtail.errors import InputError
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
    assert LongtailClassifier()._space_for(data).dimension == 256


def test_held_out_points_count_where_they_are_learnt_from_in_the_end():
    few, many = (
        LongtailClassifier().shared_space(48_000, 9, 9, n_held_out=n).schedule
        for n in (2_000, 2_500)
    )
    assert (few.epochs, few.learning_rate) == (3, 0.02)
    assert (many.epochs, many.learning_rate) == (3, 0.04)


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


@pytest.mark.parametrize(("n_words", "pieces"), [(4, "beginnings"), (3.9, "all")])
def test_pieces_of_words_are_read_where_labels_have_enough_points(n_words, pieces):
    model = LongtailClassifier()
    assert model.pieces_for(50_000, 30_000, 5 * 30_000, n_words) == "no"
    assert model.pieces_for(50_000, 30_000, 5 * 30_000 + 1, n_words) == pieces
    of_rare = "no" if n_words >= 4 else "all"  # of few words, all pieces take no time worth naming
    assert model.pieces_for(50_001, 30_000, 20 * 30_000, n_words) == of_rare
    assert model.pieces_for(50_001, 30_000, 20 * 30_000 + 1, n_words) == pieces
    assert LongtailClassifier(pieces="no").pieces_for(9, 1, 90, n_words) == "no"


def test_only_pieces_that_there_are_can_be_asked_for():
    with pytest.raises(InputError, match="pieces must be one of None, 'no', 'beginnings', 'all'"):
        LongtailClassifier(pieces="endings").fit(["a"], [["b"]])


def test_a_blend_has_twenty_points_to_be_learnt_from_where_that_is_a_third():
    model = LongtailClassifier()
    assert [model.n_held_out(n) for n in (59, 60, 99, 1_000)] == [pytest.approx(11.8), 20, 20, 200]
    assert LongtailClassifier(held_out=0).n_held_out(90) == 0


@pytest.mark.parametrize(("n_pieces", "expected"), [(79.9, 30), (80, 150)])
def test_more_labels_are_scored_where_texts_are_strings(n_pieces, expected):
    assert LongtailClassifier().candidate_sizes(n_pieces).n_found == expected
    assert LongtailClassifier(n_found=40).candidate_sizes(n_pieces).n_found == 40


@pytest.mark.parametrize(("length", "expected"), [(15, 30), (60, 150)])
def test_a_model_of_strings_scores_more_labels(length, expected):
    random = np.random.default_rng(0)
    texts = ["".join(random.choice(list("abcdefgh"), length)) for _ in range(120)]
    labels = [[text[:1]] for text in texts]
    model = LongtailClassifier(epochs=1, dimension=8, n_threads=1).fit(texts, labels)
    assert model.predictor_.scorer.sizes.n_found == expected
