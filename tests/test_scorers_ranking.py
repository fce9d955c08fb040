"""The best labels of each row, first."""

from __future__ import annotations

import numpy as np

from longtail.scorers.ranking import best_first


class TestBestFirst:
    def test_ties_go_to_the_smaller_id(self):
        labels = np.array([[9, 3, 5, 1, -1]], np.int32)
        scores = np.array([[0.5, 0.7, 0.5, 0.5, -np.inf]], np.float32)
        ids, best = best_first(labels, scores, 3)
        assert ids.tolist() == [[3, 1, 5]]
        np.testing.assert_array_equal(best, np.float32([[0.7, 0.5, 0.5]]))

    def test_more_than_there_are_gives_padding(self):
        ids, best = best_first(np.array([[2, -1]], np.int32), np.zeros((1, 2), np.float32), 4)
        assert ids.tolist() == [[2, -1, -1, -1]]
        assert best.tolist() == [[0, -np.inf, -np.inf, -np.inf]]

    def test_threads_do_not_matter(self):
        random = np.random.default_rng(0)
        labels = np.argsort(random.random((600, 30))).astype(np.int32)
        scores = random.integers(0, 9, (600, 30)).astype(np.float32)
        one, three = best_first(labels, scores, 5), best_first(labels, scores, 5, n_threads=3)
        assert np.array_equal(one[0], three[0])
        assert np.array_equal(one[1], three[1])
