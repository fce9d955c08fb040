"""Which points make a batch, and which labels they are scored against."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import InputError
from longtail.training.batches import POOL_MULTIPLE, AllLabels, SharedPool
from longtail.training.neighbourhoods import neighbourhoods
from longtail.training.schedule import Schedule

few = settings(max_examples=25, deadline=None)


def planted(n_points=50, n_labels=30, size=8, seed=0):
    """Labels of points, some of which have none, and shortlists with padding at the end."""
    random = np.random.default_rng(seed)
    labels = sp.csr_array((random.random((n_points, n_labels)) < 0.1).astype(np.float32))
    shortlists = np.argsort(random.random((n_points, n_labels)), axis=1)[:, :size].astype(np.int32)
    shortlists[random.random((n_points, 1)) * size < np.arange(size)] = -1
    return labels, shortlists


def epoch(batches, seed=0):
    return list(batches.epoch(np.random.default_rng(seed)))


def marked(batch):
    """The places of true labels as a dense array."""
    truth = np.zeros((len(batch.points), len(batch.pool)), bool)
    truth[batch.positive_rows, batch.positive_columns] = True
    return truth


def assert_same(first, second):
    for one, other in zip(first, second, strict=True):
        for name in ("points", "pool", "positive_rows", "positive_columns", "in_loss"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@few
@given(st.integers(0, 99), st.integers(1, 60), st.integers(0, 40), st.booleans())
def test_no_true_label_is_ever_a_negative(seed, batch_size, n_random, own_only):
    labels, shortlists = planted(seed=seed)
    dense = labels.toarray().astype(bool)
    batches = SharedPool(
        labels=labels,
        shortlists=shortlists,
        batch_size=batch_size,
        n_hard=3,
        n_random=n_random,
        own_only=own_only,
    )
    found = epoch(batches, seed)
    assert len(found) == batches.n_batches()
    assert sorted(np.concatenate([b.points for b in found])) == list(range(50))
    for batch in found:
        assert (np.diff(batch.pool) > 0).all()  # each label once, no padding
        assert batch.pool.min(initial=0) >= 0
        np.testing.assert_array_equal(marked(batch), dense[batch.points][:, batch.pool])
        assert marked(batch).sum() == dense[batch.points].sum()  # none is left out
        if batch.in_loss is not None:
            assert batch.in_loss[marked(batch)].all()


def test_own_only_counts_what_is_true_or_on_the_own_shortlist():
    labels, shortlists = planted()
    batches = SharedPool(
        labels=labels,
        shortlists=shortlists,
        batch_size=16,
        n_hard=shortlists.shape[1],
        n_random=0,
        own_only=True,
    )
    for batch in epoch(batches):
        for row, point in enumerate(batch.points):
            counted = set(batch.pool[batch.in_loss[row]].tolist())
            own = set(shortlists[point].tolist()) - {-1}
            assert counted == own | set(labels[[point]].indices.tolist())


def test_random_labels_count_for_all_points():
    labels, shortlists = planted()
    batches = SharedPool(
        labels=labels,
        shortlists=np.full_like(shortlists, -1),
        batch_size=50,
        n_hard=20,
        n_random=3,
        own_only=True,
    )
    (batch,) = epoch(batches)
    for_all = batch.in_loss.all(axis=0)
    assert 1 <= for_all.sum() <= 3
    np.testing.assert_array_equal(batch.in_loss[:, ~for_all], marked(batch)[:, ~for_all])


def test_hard_negatives_are_of_the_points_and_drawn_anew():
    labels, shortlists = planted(n_labels=400, size=40)
    batches = SharedPool(labels=labels, shortlists=shortlists, batch_size=5, n_hard=4, n_random=0)
    first, second = epoch(batches, 0), epoch(batches, 1)
    for batch in first:
        possible = set(shortlists[batch.points].ravel()) | set(labels[batch.points].indices)
        assert len(set(batch.pool) - possible) < POOL_MULTIPLE
    pools = [{p: b.pool.tolist() for b in run for p in b.points} for run in (first, second)]
    assert pools[0] != pools[1]


@few
@given(st.integers(0, 99), st.integers(1, 60), st.integers(8, 300))
def test_pools_are_filled_with_labels_that_were_not_in_them(seed, batch_size, n_labels):
    labels, shortlists = planted(n_labels=n_labels, seed=seed)
    batches = SharedPool(
        labels=labels, shortlists=shortlists, batch_size=batch_size, n_hard=20, n_random=2
    )
    for batch in epoch(batches, seed):
        assert len(batch.pool) % POOL_MULTIPLE == 0 or len(batch.pool) == n_labels
        assert (np.diff(batch.pool) > 0).all()
        assert batch.pool[0] >= 0
        assert batch.pool[-1] < n_labels
    assert_same(epoch(batches, seed), epoch(batches, seed))


def test_same_random_same_batches():
    labels, shortlists = planted()
    batches = SharedPool(labels=labels, shortlists=shortlists, batch_size=7, n_hard=2, n_random=5)
    assert_same(epoch(batches, 5), epoch(batches, 5))
    assert epoch(batches, 5)[0].points.tolist() != epoch(batches, 6)[0].points.tolist()


def test_groups_stay_together():
    labels, shortlists = planted()
    groups = [np.arange(start, start + 10) for start in range(0, 50, 10)]
    batches = SharedPool(
        labels=labels, shortlists=shortlists, batch_size=10, n_hard=20, n_random=500, groups=groups
    )
    found = epoch(batches)
    assert sorted(b.points[0] for b in found) == [0, 10, 20, 30, 40]
    assert all(np.ptp(b.points) == 9 for b in found)


def test_all_labels():
    labels, _ = planted()
    batches = AllLabels(labels, 16)
    found = epoch(batches)
    assert len(found) == batches.n_batches() == 4
    assert sorted(np.concatenate([b.points for b in found])) == list(range(50))
    for batch in found:
        assert batch.pool is None
        truth = np.zeros((len(batch.points), 30))
        truth[batch.positive_rows, batch.positive_columns] = 1
        np.testing.assert_array_equal(truth, labels[batch.points].toarray())


def test_neighbourhoods_hold_similar_points():
    random = np.random.default_rng(0)
    side = np.repeat([0, 1], 32)
    features = np.eye(2, 6, dtype=np.float32)[side] + 0.05 * random.random((64, 6), np.float32)
    groups = neighbourhoods(features, 16, seed=0, n_threads=1)
    assert sorted(np.concatenate(groups)) == list(range(64))
    assert max(map(len, groups)) <= 16
    assert all(len(set(side[group])) == 1 for group in groups)


@pytest.mark.parametrize("n_points", [1, 2, 5])
def test_few_points_are_one_neighbourhood(n_points):
    features = np.ones((n_points, 3), np.float32)
    (group,) = neighbourhoods(features, 200, seed=0, n_threads=1)
    assert sorted(group) == list(range(n_points))


class TestSchedule:
    def test_falls_in_a_straight_line(self):
        schedule = Schedule(epochs=4, learning_rate=0.2)
        rates = [schedule.rate_at(e, s) for e in range(4) for s in (0.0, 0.5)]
        np.testing.assert_allclose(rates, np.linspace(0.2, 0.0, 9)[:-1])

    def test_never_reaches_zero(self):
        assert Schedule(epochs=1, learning_rate=1.0).rate_at(0, 0.9999) == 0.01

    def test_is_halved_at_the_start_of_epochs(self):
        schedule = Schedule(epochs=6, learning_rate=0.8, halve_at=(2, 4))
        assert [schedule.rate_at(e, 0.9) for e in range(6)] == [0.8, 0.8, 0.4, 0.4, 0.2, 0.2]

    @pytest.mark.parametrize("wrong", [{"epochs": -1}, {"learning_rate": 0.0}])
    def test_refuses_what_is_no_schedule(self, wrong):
        with pytest.raises(InputError, match="epochs must be at least 0"):
            Schedule(**{"epochs": 1, "learning_rate": 0.1, **wrong})
