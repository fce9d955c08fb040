"""Astec's parts and sizes, and what each of them does to a model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail import Astec, Astec3, Dataset
from longtail.data import LabelSpace, TextColumn
from longtail.training.optimisers import LazyAdam


@pytest.mark.parametrize(
    ("n_points", "sizes"),
    [(1, (512, 32, .5)), (5_000, (512, 32, .5)), (14_000, (512, 64, .5)),
     (50_001, (256, 128, .4)), (10**6, (256, 512, .4))],
)  # fmt: skip
def test_sizes_follow_the_number_of_points(n_points, sizes):
    assert Astec().sizes_for(n_points) == sizes


def test_given_sizes_are_kept():
    assert Astec(dimension=300, batch_size=100, dropout=0.0).sizes_for(10) == (300, 100, 0.0)


def test_shortlist_batches_are_twice_as_large():
    framework = Astec(batch_size=64).deepxml(1000)
    assert framework.surrogate.batch_size == 64
    assert framework.classifier.training.batch_size == 128


def test_as_in_code_is_the_published_training():
    framework = Astec(as_in_code=True).deepxml(100_000)
    assert framework.features.dimension == 300
    assert framework.features.make_optimiser is LazyAdam
    assert framework.surrogate.mean_loss
    assert framework.surrogate.clusters.max_label_frequency == 5000
    assert framework.surrogate.residual.learning_rate == 0.01
    assert framework.transfer.always_divide
    assert framework.transfer.learning_rate == 0.002
    assert framework.classifier.training.own_only
    assert framework.classifier.training.batch_size == 255
    assert framework.negatives.n_representatives == 300
    assert framework.fusion_as_in_code
    assert not framework.reranker.from_first


def test_astec_3_is_three_astecs():
    assert Astec3().deepxml(10).n_learners == 3
    assert Astec(reranker=False).deepxml(10).reranker is None


def test_the_reranker_starts_from_the_first_network_and_leaves_it_alone():
    texts = ["red wine", "white wine", "fast car", "old car"] * 10
    labels = [["drink", "red"], ["drink", "white"], ["car", "fast"], ["car", "old"]] * 10
    small = {"dimension": 8, "surrogate_epochs": 2, "extreme_epochs": 2, "held_out": 0.0}
    with_one = Astec(**small, reranker_epochs=0).fit(texts, labels).predictor_.scorer
    without = Astec(**small, reranker=False).fit(texts, labels).predictor_.scorer
    first, again, alone = (
        {
            f"{name}.{key}": array
            for name in ("encoder", "transform", "classifier")
            for key, array in getattr(part, name).to_arrays().items()
        }
        for part in (with_one.ranker, with_one.reranker, without.ranker)
    )
    assert first.keys() == again.keys() == alone.keys()
    for key, array in first.items():
        np.testing.assert_allclose(again[key], array, rtol=1e-5, err_msg=key)
        np.testing.assert_array_equal(alone[key], array, err_msg=key)


def test_a_label_without_points_is_found_by_its_text():
    texts = ["red wine", "white wine", "fast car", "old car"] * 10
    labels = csr_array(np.eye(4, dtype=np.float32)[[0, 0, 1, 1] * 10])
    space = LabelSpace.from_names(["wine", "car", "unheard of", "white"])
    data = Dataset(TextColumn.from_strings(texts), None, labels, space)
    small = {"dimension": 16, "surrogate_epochs": 4, "extreme_epochs": 8, "held_out": 0.0}
    with_texts = Astec(**small, label_texts=True).fit_dataset(data)
    assert 3 in with_texts.predict_topk(["white"], 2)[0]
    assert 3 not in Astec(**small).fit_dataset(data).predict_topk(["white"], 2)[0]
