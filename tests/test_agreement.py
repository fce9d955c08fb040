"""Whether points that are near have labels in common."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail.data.agreement import LabelAgreement
from longtail.data.damping import unit_rows_of_power


def of(asked, others, own_labels, labels):
    return LabelAgreement(
        *(csr_array(np.array(part)) for part in (asked, others, own_labels, labels))
    )


@pytest.mark.parametrize("n_zeros", [0, 30])  # columns: the products of dense rows and of bags
def test_of_the_labels_of_near_points_a_share_is_the_point_s_own(n_zeros):
    points = np.pad([[1.0, 0.05], [0.9, 0.1], [0.8, 0.2]], [(0, 0), (0, n_zeros)])
    agreement = of(points[:1], points[1:], [[1, 0, 0]], [[1, 0, 0], [1, 1, 1]])
    assert agreement.of_near_points(unit_rows_of_power) == 2 / 4  # of both there are


def test_only_the_nearest_are_looked_at():
    random = np.random.default_rng(0)
    others = np.vstack([np.ones((10, 2)), [[-1.0, 1]] * 20]) + 0.1 * random.random((30, 2))
    agreement = of([[1.0, 1]], others, [[1, 0]], np.repeat(np.eye(2), [10, 20], axis=0))
    assert agreement.of_near_points(unit_rows_of_power) == 1


@pytest.mark.parametrize("n_points", [0, 1, 2, 7])
def test_points_are_drawn_once(n_points):
    numbers = np.arange(1, n_points + 1, dtype=np.float32)[:, None]
    drawn = LabelAgreement.drawn(csr_array(numbers), csr_array(numbers), seed=0)
    found = [*drawn.asked.toarray().ravel(), *drawn.others.toarray().ravel()]
    assert sorted(found) == numbers.ravel().tolist()
    np.testing.assert_array_equal(drawn.own_labels.toarray(), drawn.asked.toarray())
    np.testing.assert_array_equal(drawn.labels.toarray(), drawn.others.toarray())
    assert drawn.of_near_points(unit_rows_of_power) == (n_points > 1)
    assert drawn.of_directions(unit_rows_of_power) == (n_points > 1)


def test_of_a_point_s_labels_a_share_is_the_nearest():
    """The third label has no point among the others, and is not found."""
    others = [[1.0, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]]
    labels = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    asked = [[1.0, 0.3, 0.1], [0.1, 1, 0], [1, 0, 0.1], [0, 0, 0], [1, 1, 1]]
    own = [[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    expected = np.mean([2 / 2, 0, 1 / 2, 0])  # a point without labels is not asked
    assert of(asked, others, own, labels).of_directions(unit_rows_of_power) == expected


def test_without_labels_nothing_agrees():
    agreement = of([[1.0, 0]], [[1.0, 0]], [[0, 0]], [[0, 0]])
    assert agreement.of_directions(unit_rows_of_power) == 0
    assert agreement.of_near_points(unit_rows_of_power) == 0
