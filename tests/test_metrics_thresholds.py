"""Answers that are cut at a probability."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import precision_recall_fscore_support

from longtail import Dataset
from longtail.data import LabelSpace
from longtail.errors import InputError
from longtail.metrics import at_thresholds

IDS = np.array([[2, 0, -1], [0, 1, 3], [-1, -1, -1], [3, 1, 2]])
PROBABILITIES = np.array([[0.9, 0.5, -np.inf], [0.8, 0.3, 0.1], [-np.inf] * 3, [0.6, 0.5, 0.2]])
TRUTH = csr_array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]])


def test_as_scikit_learn_counts_over_all_pairs():
    wanted = [0.1, 0.3, 0.5, 0.85]
    for found, threshold in zip(
        at_thresholds(IDS, PROBABILITIES, TRUTH, wanted), wanted, strict=True
    ):
        answered = np.zeros(TRUTH.shape, int)
        for row, ids, own in zip(answered, IDS, PROBABILITIES, strict=True):
            row[ids[own >= threshold]] = 1
        expected = precision_recall_fscore_support(TRUTH.toarray(), answered, average="micro")
        assert (found.precision, found.recall, found.f1) == pytest.approx(expected[:3])
        assert found.labels_per_point == answered.sum() / 4
        assert found.threshold == threshold


def test_where_nothing_is_answered():
    (found,) = at_thresholds(IDS, PROBABILITIES, TRUTH, [0.95])
    assert (found.labels_per_point, found.precision, found.recall, found.f1) == (0, 0, 0, 0)


def test_ids_and_probabilities_belong_together():
    with pytest.raises(InputError, match=r"shape \(4, 3\) and `probabilities` \(4, 2\)"):
        at_thresholds(IDS, PROBABILITIES[:, :2], TRUTH)
    with pytest.raises(InputError, match="`ids` has 3 rows but `truth` has 4"):
        at_thresholds(IDS[:3], PROBABILITIES[:3], TRUTH)


def test_a_data_set_has_its_truth_in_a_model_s_ids_once_it_is_relabelled():
    own, known = Dataset.of(["a", "b"], [["x"], ["y"]]), LabelSpace.from_names(["y", "x"])
    with pytest.raises(InputError, match=r"not its labels\. .*relabelled\(model\.label_space\)"):
        at_thresholds(IDS, PROBABILITIES, own)
    ids, probabilities = np.array([[1], [0]]), np.array([[0.9], [0.9]])
    (found,) = at_thresholds(ids, probabilities, own.relabelled(known).labels, [0.5])
    assert (found.precision, found.recall) == (1, 1)
