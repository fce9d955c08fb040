"""The learning rate over the steps of a training, with warm-up and without."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import InputError
from longtail.training.schedule import Schedule

EPOCHS = 8
PLACES = st.floats(0, EPOCHS, exclude_max=True)
WAYS = st.sampled_from([(), (2,), (3, 5)])
WARM_UPS = st.floats(0.01, 0.99)


def rate_at(place, halve_at=(), warm_up=0.0):
    schedule = Schedule(epochs=EPOCHS, learning_rate=0.3, halve_at=halve_at, warm_up=warm_up)
    return schedule.rate_at(int(place), place % 1)


@given(PLACES, WAYS, WARM_UPS)
def test_warm_up_is_never_faster_and_the_same_after_it(place, halve_at, warm_up):
    warmed, plain = rate_at(place, halve_at, warm_up), rate_at(place, halve_at)
    assert 0 < warmed <= plain
    if place >= warm_up * EPOCHS:
        assert warmed == plain


@given(PLACES, WAYS, WARM_UPS)
def test_warm_up_has_no_leaps(place, halve_at, warm_up):
    """Its share of the rate without it rises by no more than the steps that were taken."""
    first, second = place, min(place + 1e-4, EPOCHS - 1e-9)
    shares = [rate_at(at, halve_at, warm_up) / rate_at(at, halve_at) for at in (first, second)]
    assert -1e-9 <= shares[1] - shares[0] <= 1.01e-4 / (warm_up * EPOCHS) + 1e-9


def test_warm_up_starts_from_almost_nothing_and_is_straight():
    assert rate_at(0, (4,), 0.5) == pytest.approx(0.003)
    assert [rate_at(at, (4,), 0.5) for at in (1, 2, 3)] == pytest.approx([0.075, 0.15, 0.225])


@pytest.mark.parametrize("warm_up", [-0.1, 1.0, float("nan")])
def test_warm_up_must_end(warm_up):
    with pytest.raises(InputError, match=r"warm_up is a share of all steps.*below 1, got"):
        Schedule(epochs=1, learning_rate=0.1, warm_up=warm_up)


def test_epochs_and_rate_must_be_possible():
    for settings in ({"epochs": -1, "learning_rate": 0.1}, {"epochs": 1, "learning_rate": 0.0}):
        with pytest.raises(InputError, match="epochs must be at least 0"):
            Schedule(**settings)


def test_going_on_is_shorter_and_slower_but_no_longer_than_before():
    first = Schedule(epochs=5, learning_rate=0.2, halve_at=(1,), warm_up=0.1)
    assert first.again() == Schedule(epochs=2, learning_rate=0.1)
    assert replace(first, epochs=1).again().epochs == 1


def test_the_rate_is_halved_at_the_start_of_epochs():
    schedule = Schedule(epochs=4, learning_rate=1.0, halve_at=(1, 3))
    assert [schedule.rate_at(epoch, 0.0) for epoch in range(4)] == [1, 0.5, 0.5, 0.25]
