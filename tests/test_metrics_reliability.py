"""Whether answers are right as often as their probabilities say."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail.errors import InputError
from longtail.metrics import by_probability

TRUTH = csr_array([[1, 0, 1], [0, 1, 0]])


def test_every_answer_is_in_one_part():
    ids = np.array([[0, 1], [1, -1]])
    found = by_probability(ids, np.array([[1.0, 0.0], [0.95, -np.inf]]), TRUTH)
    assert [part.n_answers for part in found] == [1, 2]
    assert found[0].share_right == 0.0
    assert (found[1].probability, found[1].share_right) == (pytest.approx(0.975), 1.0)


def test_answers_of_many_points_are_counted_some_points_at_a_time():
    random = np.random.default_rng(0)
    said = random.random((20_000, 50)).astype(np.float32)
    ids, truth = np.tile(np.arange(50), (20_000, 1)), csr_array((20_000, 50))
    tracemalloc.start()
    found = by_probability(ids, said, truth)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < ids.nbytes
    bins = np.minimum((said.astype(np.float64) * 10).astype(int), 9)
    assert [part.n_answers for part in found] == np.bincount(bins.ravel()).tolist()
    for i, part in enumerate(found):
        assert part.probability == pytest.approx(said[bins == i].mean(dtype=np.float64))


def test_there_are_ten_parts_of_which_each_has_its_lower_bound():
    said = np.repeat([0.0, 0.0625, 0.125, 0.1875, 0.25, 0.5, 0.75, 0.9375], 2).reshape(-1, 2)
    truth = csr_array((len(said), 2), dtype=np.float32)
    found = by_probability(np.zeros(said.shape, np.int64), said, truth)
    assert [part.n_answers for part in found] == [4, 4, 2, 2, 2, 2]


def test_honest_probabilities_are_found_to_be_honest():
    random = np.random.default_rng(0)
    said = random.random((20_000, 1))
    truth = csr_array((random.random((20_000, 1)) < said).astype(np.float32))
    for part in by_probability(np.zeros((20_000, 1), np.int64), said, truth):
        assert part.share_right == pytest.approx(part.probability, abs=0.04)


@pytest.mark.parametrize("wrong", [-0.5, 1.5, np.nan])
def test_scores_are_no_probabilities(wrong):
    with pytest.raises(InputError, match="Probabilities are from 0 to 1, and these from"):
        by_probability(np.array([[0], [1]]), np.array([[wrong], [0.5]]), TRUTH)


def test_shapes_must_agree():
    with pytest.raises(InputError, match="as `predict_topk` returns them"):
        by_probability(np.array([[0], [1]]), np.array([0.5, 0.5]), TRUTH)
    with pytest.raises(InputError, match="n_bins"):
        by_probability(np.array([[0], [1]]), np.array([[0.5], [0.5]]), TRUTH, n_bins=0)


def test_no_answer_is_in_no_part():
    assert by_probability(np.full((2, 1), -1), np.full((2, 1), -np.inf), TRUTH) == []
