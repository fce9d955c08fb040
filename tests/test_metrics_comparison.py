"""Metrics by point, and whether two models differ."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import random_array

from longtail.errors import InputError
from longtail.metrics import by_point, compare, evaluate

N_POINTS, N_LABELS = 400, 30


def answers(seed):
    generator = np.random.default_rng(seed)
    ids = np.argsort(generator.random((N_POINTS, N_LABELS)), axis=1)[:, :10]
    return ids, -np.sort(-generator.random(ids.shape), axis=1)


@pytest.fixture(scope="module")
def judged():
    truth = random_array((N_POINTS, N_LABELS), density=0.1, rng=0).tocsr()
    how = {
        "train_label_counts": np.arange(N_LABELS),
        "n_train_points": 300,
        "ks": (1, 3),
        "recall_ks": (10,),
        "set_aside": random_array(truth.shape, density=0.05, rng=1).tocsr(),
    }
    return truth, how


def test_means_over_the_points_are_the_metrics(judged):
    truth, how = judged
    found, expected = (each(*answers(0), truth, **how) for each in (by_point, evaluate))
    assert set(found) == {name for name in expected if not name.startswith("coverage")}
    for name, of_points in found.items():
        assert of_points.shape == (N_POINTS,)
        assert of_points.mean() == pytest.approx(expected[name]), name


def test_a_standard_error_is_how_far_differences_spread(judged):
    truth, how = judged
    ours, theirs = (by_point(*answers(seed), truth, **how)["P@3"] for seed in (0, 1))
    found = compare({"P@3": ours}, {"P@3": theirs, "R@10": theirs})
    generator = np.random.default_rng(2)
    drawn = generator.integers(N_POINTS, size=(2000, N_POINTS))
    means = (ours - theirs)[drawn].mean(axis=1)
    assert list(found) == ["P@3"]
    assert found["P@3"].value == pytest.approx(ours.mean() - theirs.mean())
    assert found["P@3"].standard_error == pytest.approx(means.std(), rel=0.1)


def test_other_points_are_refused():
    with pytest.raises(InputError, match="3 points of one model and 2 of the other"):
        compare({"P@1": np.zeros(3)}, {"P@1": np.zeros(2)})


def test_a_single_point_says_nothing_of_chance():
    found = compare({"P@1": np.array([100.0])}, {"P@1": np.array([0.0])})["P@1"]
    assert found.value == 100
    assert np.isnan(found.standard_error)
