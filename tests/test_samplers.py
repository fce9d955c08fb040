"""Samplers of negatives: what each draws, and that DeepXML takes any of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import longtail
from longtail.classifiers.shortlisted import ShortlistedOneVsAll, ShortlistTraining
from longtail.errors import InputError
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.negatives.nearest_labels import NearestLabels
from longtail.negatives.samplers import (
    FrequentLabels,
    InBatch,
    NearestCentroids,
    TreeLeaves,
    UniformLabels,
)
from longtail.recipes.deepxml import DeepXML
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.schedule import Schedule

N_POINTS, N_LABELS = 200, 24
SAMPLERS = {
    "Astec": NearestLabels(n_near_labels=20, n_near_points=10),
    "Slice": NearestCentroids(n_near_labels=20),
    "uniform": UniformLabels(size=10),
    "unigram": FrequentLabels(size=10),
    "in batch": InBatch(),
    "tree": TreeLeaves(size=10, leaf_size=4),
}


def some_data(seed=0):
    """Points of 24 labels in 6 groups of 4, the vectors of a group near each other."""
    random = np.random.default_rng(seed)
    label = random.integers(0, N_LABELS, N_POINTS)
    vectors = np.eye(6)[label // 4] + 0.1 * random.random((N_POINTS, 6))
    labels = csr_array((np.ones(N_POINTS), (np.arange(N_POINTS), label)), (N_POINTS, N_LABELS))
    return vectors.astype(np.float32), labels, label


def mined(sampler, seed=0, n_threads=1):
    vectors, labels, _ = some_data()
    built = sampler.build(vectors, labels, seed=seed, n_threads=n_threads)
    return sampler.mine(built, vectors, labels, seed=seed, n_threads=n_threads)


@pytest.fixture(params=SAMPLERS.values(), ids=SAMPLERS.keys())
def sampler(request):
    return request.param


def test_rows_are_labels_once_each_then_padding(sampler):
    found = mined(sampler)
    assert found.dtype == np.int32
    assert len(found) == N_POINTS
    assert found.min(initial=0) >= -1
    assert found.max(initial=-1) < N_LABELS
    assert (np.diff((found >= 0).astype(int), axis=1) <= 0).all()
    if not isinstance(sampler, UniformLabels | FrequentLabels):  # what chance draws may come twice
        assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in found)


def test_same_seed_same_negatives_whatever_the_threads(sampler):
    np.testing.assert_array_equal(mined(sampler, seed=3), mined(sampler, seed=3, n_threads=3))


@pytest.mark.parametrize("name", ["uniform", "unigram"])
def test_chance_follows_the_seed(name):
    assert not np.array_equal(mined(SAMPLERS[name]), mined(SAMPLERS[name], seed=1))


def test_in_batch_mines_nothing():
    assert mined(InBatch()).shape == (N_POINTS, 0)
    with pytest.raises(TypeError):
        InBatch(size=5)  # of nothing there is no number


def test_uniform_is_uniform():
    vectors, labels = np.zeros((4000, 2), np.float32), csr_array((4000, 50))
    drawn = UniformLabels(size=5).mine(None, vectors, labels, seed=0, n_threads=1)
    counts = np.bincount(drawn[drawn >= 0], minlength=50)
    assert counts.min() > 0.8 * counts.mean()
    assert counts.max() < 1.2 * counts.mean()


def test_unigram_follows_frequency_to_the_power_of_three_quarters():
    vectors = np.zeros((5000, 2), np.float32)
    labels = csr_array(np.arange(5000)[:, None] < np.array([[16, 1, 0, 256]]) * 16)
    drawn = FrequentLabels(size=2).mine(None, vectors, labels, seed=0, n_threads=1)
    counts = np.bincount(drawn.ravel(), minlength=4)
    expected = np.array([8, 1, 0, 64]) / 73 * 10_000
    np.testing.assert_allclose(counts, expected, atol=5 * np.sqrt(expected.max()) / 4)
    assert counts[2] == 0


def test_tree_leaves_hold_like_labels():
    found = mined(TreeLeaves(size=10, leaf_size=np.int64(6)))
    _, _, label = some_data()
    for row, own in zip(found, label, strict=True):
        assert own in row
        assert (row >= 0).sum() == 6  # four leaves of 24 labels


def test_slice_leaves_points_out():
    vectors, labels, _ = some_data()
    built = NearestCentroids().build(vectors, labels, seed=0, n_threads=1)
    assert built.to_arrays()["point_index.vectors"].shape[0] == 0


@pytest.mark.parametrize("sampler", [UniformLabels(size=0), TreeLeaves(size=0)])
def test_refuses_none_at_all(sampler):
    with pytest.raises(InputError, match="size must be at least 1"):
        mined(sampler)


def test_deepxml_takes_it(sampler, tmp_path):
    things = {"drink": ["wine", "beer", "tea"], "vehicle": ["car", "bus", "train"]}
    texts = [
        f"{colour} {thing}" for colour in ("red", "old") for own in things.values() for thing in own
    ]
    names = [[name] for _ in range(2) for name, own in things.items() for _ in own]
    brief = Schedule(epochs=20, learning_rate=0.1)
    model = DeepXML(
        features=BagOfTokens(dimension=16),
        surrogate=MetaLabelTask(schedule=brief),
        negatives=sampler,
        classifier=ShortlistedOneVsAll(training=ShortlistTraining(schedule=brief, n_random=0)),
        n_threads=1,
    ).fit(texts * 4, names * 4)
    assert model.score(texts, names) > 0.75
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_topk(texts, 2)[0], model.predict_topk(texts, 2)[0])


def test_labels_without_points_are_never_drawn():
    vectors, labels = np.eye(3, dtype=np.float32), csr_array(np.eye(5)[[0, 0, 3]])
    sampler = FrequentLabels(size=50, power=0.0)
    built = sampler.build(vectors, labels, seed=0, n_threads=1)
    assert set(sampler.mine(built, vectors, labels, seed=0, n_threads=1).ravel()) == {0, 3}


def test_of_a_large_leaf_each_point_gets_others():
    vectors, labels, _ = some_data()
    sampler = TreeLeaves(size=3, leaf_size=N_LABELS)
    drawn = sampler.mine(None, vectors, labels, seed=0, n_threads=1)
    assert np.bincount(drawn.ravel(), minlength=N_LABELS).min() > 5


def test_labels_of_a_leaf_come_once_to_a_point_that_has_several_of_them():
    labels = csr_array(np.ones((4, 6)))
    sampler = TreeLeaves(size=6, leaf_size=6)
    drawn = sampler.mine(None, np.eye(4, dtype=np.float32), labels, seed=0, n_threads=1)
    assert np.sort(drawn, axis=1).tolist() == [list(range(6))] * 4


def test_how_long_points_are_does_not_part_labels():
    vectors, labels, _ = some_data()
    longer = vectors * np.random.default_rng(0).uniform(0.01, 100, (N_POINTS, 1)).astype("f4")
    for sampler in (TreeLeaves(size=10, leaf_size=4), NearestCentroids(n_near_labels=20)):
        first, second = (
            sampler.mine(
                sampler.build(some, labels, seed=0, n_threads=1), some, labels, seed=0, n_threads=1
            )
            for some in (vectors, longer)
        )
        np.testing.assert_array_equal(first, second)
