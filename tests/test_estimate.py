"""Time and memory told before training starts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from longtail import Astec, Dataset
from longtail.data import LabelSpace, TextColumn
from longtail.training.estimate import (
    Workload,
    available_memory,
    estimate_training,
    product_rate,
    workload_of,
)

# 110 K titles with 38 K labels, and what a run with three epochs a stage took on two cores that
# multiply at about 400 GFlop/s in bfloat16. The re-ranker's time has since been cut.
TITLES = Workload(
    n_points=110_401,
    n_features=195_000,
    n_labels=38_267,
    n_nonzero=17_995_000,
    n_label_pairs=315_700,
)
MEASURED = {"label clusters": 3.8, "module I": 20.8, "module II": 63.5, "module IV": 12.3}
MEASURED_BYTES = 4.5e9
THREE_EPOCHS = Astec(surrogate_epochs=3, extreme_epochs=3, reranker_epochs=3)


def estimated(workload=TITLES, settings=THREE_EPOCHS, **changes):
    settings = settings.__class__(**(settings.get_params() | changes))
    return estimate_training(workload, settings, rate=4e11, n_threads=2)


@pytest.mark.parametrize("stage", MEASURED)
def test_each_stage_is_within_a_factor_of_two_of_a_real_run(stage):
    assert MEASURED[stage] / 2 < estimated().stages[stage] < 2 * MEASURED[stage]


def test_memory_is_within_a_factor_of_two_of_a_real_run():
    assert MEASURED_BYTES / 2 < estimated().memory < 2 * MEASURED_BYTES


@pytest.mark.parametrize(
    "changes",
    [
        {"surrogate_epochs": 6},
        {"extreme_epochs": 6},
        {"reranker_epochs": 6},
        {"dimension": 512},
        {"n_learners": 3},
        {"n_near_points": 200},
    ],
)
def test_more_work_takes_longer(changes):
    assert estimated(**changes).seconds > estimated().seconds


def test_leaving_the_re_ranker_out_saves_time_and_memory():
    without = estimated(reranker=False)
    assert "re-ranker" not in without.stages
    assert without.memory < estimated().memory


def test_label_clusters_shrink_with_the_labels():
    few = dataclasses.replace(TITLES, n_labels=100)
    assert estimated(few).stages["module I"] < estimated().stages["module I"]
    one = dataclasses.replace(TITLES, n_labels=1)
    assert estimated(one).seconds > 0


def texts_of(n_points):
    random = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(2000)])
    texts = TextColumn.from_strings(
        " ".join(row) for row in words[random.zipf(1.5, (n_points, 6)) % 2000]
    )
    labels = sp.csr_array(np.eye(n_points, 3, dtype=np.float32))
    return Dataset(texts, None, labels, LabelSpace(3))


def test_the_bags_of_texts_are_foreseen_from_a_sample(monkeypatch):
    monkeypatch.setattr("longtail.training.estimate.SAMPLE", 1500)
    dataset = texts_of(6000)
    vectorizer, features = Astec()._vectorized(dataset)
    workload = workload_of(dataset, Astec())
    assert workload.n_nonzero == pytest.approx(features.nnz, rel=0.2)
    assert workload.n_features == pytest.approx(vectorizer.n_features_, rel=0.5)
    assert workload_of(dataset, Astec(max_features=10)).n_features == 10


def test_ready_made_features_are_counted():
    features = sp.csr_array(np.eye(4, 6, dtype=np.float32))
    labels = sp.csr_array(np.eye(4, 3, dtype=np.float32))
    workload = workload_of(Dataset(None, features, labels, LabelSpace(3)), Astec())
    assert workload == Workload(n_points=4, n_features=6, n_labels=3, n_nonzero=4, n_label_pairs=3)


def test_one_point_is_enough_for_an_estimate():
    texts = TextColumn.from_strings(["red wine"])
    dataset = Dataset(texts, None, sp.csr_array(np.ones((1, 1), np.float32)), LabelSpace(1))
    assert estimate_training(workload_of(dataset, Astec()), Astec(), rate=1e10).seconds > 0


def test_the_speed_of_this_machine_is_measured():
    assert product_rate(torch.device("cpu"), 1, seconds=0.02) > 1e8


def test_available_memory_is_some_but_not_more_than_there_is():
    assert 1e7 < available_memory() < 1e14
