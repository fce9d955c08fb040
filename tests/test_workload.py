"""What is counted of a data set, or foreseen from a sample, before its training is estimated."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import Astec, Dataset, LongtailClassifier
from longtail.costs.estimate import (
    Machine,
    Workload,
    estimate_training,
    workload_of,
)
from longtail.costs.of_recipe import costs_of
from longtail.data import LabelSpace, TextColumn
from longtail.estimators.splitting import split_data
from longtail.estimators.vocabulary import known_and_encoded
from longtail.recipes.names import RECIPES, recipe

ONE_CORE = Machine(rate=2e11, n_threads=1)


def texts_of(n_points):
    random = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(2000)])
    texts = TextColumn.from_strings(
        " ".join(row) for row in words[random.zipf(1.5, (n_points, 6)) % 2000]
    )
    labels = sp.csr_array(np.eye(n_points, 3, dtype=np.float32))
    return Dataset(texts, None, labels, LabelSpace(3))


def test_the_bags_of_texts_are_foreseen_from_a_sample(monkeypatch):
    monkeypatch.setattr("longtail.costs.estimate.SAMPLE", 1500)
    dataset = texts_of(6000)
    features, vectorizer, *_ = known_and_encoded(Astec(), dataset)
    workload = workload_of(dataset, Astec())
    assert workload.n_nonzero == pytest.approx(features.nnz, rel=0.2)
    assert workload.n_features == pytest.approx(vectorizer.n_features_, rel=0.5)
    n_words = vectorizer.is_word()[features.indices].sum()
    assert workload.n_word_entries == pytest.approx(n_words, rel=0.2)
    assert workload_of(dataset, Astec(max_features=10)).n_features == 10


def test_the_bags_of_few_texts_are_counted_as_they_will_be():
    dataset, settings = texts_of(300), Astec(min_df=1)
    features, vectorizer, *_ = known_and_encoded(settings, dataset)
    workload = workload_of(dataset, settings)
    assert workload.n_nonzero == features.nnz
    assert workload.n_features == vectorizer.n_features_
    assert workload.n_word_entries == vectorizer.is_word()[features.indices].sum()


def test_scripts_without_spaces_are_told_and_their_long_vectors_foreseen():
    spaced = texts_of(10)
    unspaced = dataclasses.replace(
        spaced, texts=TextColumn.from_strings(["\u9152\u8461\u8404"] * 10)
    )
    workloads = [workload_of(data, LongtailClassifier()) for data in (spaced, unspaced)]
    assert [workload.is_unspaced for workload in workloads] == [False, True]
    costs, many = costs_of(LongtailClassifier()), dataclasses.replace(workloads[0], n_points=30_000)
    assert costs.memory(dataclasses.replace(many, is_unspaced=True)) > costs.memory(many)


@pytest.mark.parametrize("name", ["attentionxml", "kimcnn", "deepxml-xmlcnn"])
def test_words_that_come_again_are_read_again(name, monkeypatch):
    """An AttentionXML of texts of 400 words was announced to take a third of its time."""
    monkeypatch.setattr("longtail.costs.estimate.FEW", 25)
    texts = ["red wine, red wine and " + "red " * n for n in range(100)]
    labels = sp.csr_array(np.ones((100, 1), np.float32))
    dataset = Dataset(TextColumn.from_strings(texts), None, labels, LabelSpace(1))
    lengths = np.minimum(5 + np.arange(100), 60)
    settings = recipe(name)(n_words=60)
    assert workload_of(dataset, settings).n_words_read == pytest.approx(lengths.sum(), rel=0.05)
    seconds = [
        sum(costs_of(model).stages(workload_of(dataset, model), ONE_CORE).values())
        for model in (settings, recipe(name)(n_words=60, word_ngrams=2))
    ]
    assert seconds[0] == pytest.approx(seconds[1], rel=0.01)  # no pair is read
    assert workload_of(dataset, Astec()).n_ordered_words is None


def test_the_bags_of_labels_count_where_the_recipe_looks_at_them():
    dataset = texts_of(200)
    dataset = dataclasses.replace(
        dataset, label_space=LabelSpace.from_names(["word0", "word1", "x"])
    )
    settings = LongtailClassifier()
    encoded = known_and_encoded(settings, dataset)
    data, _ = split_data(settings, dataset, encoded, None, n_threads=1)
    assert workload_of(dataset, settings).n_label_entries == data.label_features.nnz > 0
    assert workload_of(dataset, Astec()).n_label_entries == 0


def test_ready_made_features_are_counted():
    features = sp.csr_array(np.eye(4, 6, dtype=np.float32))
    labels = sp.csr_array(np.eye(4, 3, dtype=np.float32))
    workload = workload_of(Dataset(None, features, labels, LabelSpace(3)), LongtailClassifier())
    assert workload == Workload(
        n_points=4,
        n_features=6,
        n_labels=3,
        n_nonzero=4,
        n_label_pairs=3,
        n_word_entries=4,
        n_used_labels=3,
        holds_out=False,
    )


@pytest.mark.parametrize("name", ["longtail", "ngame"])
@pytest.mark.parametrize(("n_points", "n_examples"), [(30, 2), (1_200, 1), (1_200, 4)])
def test_again_is_announced_only_where_points_are_held_out(name, n_points, n_examples):
    """Few points, or questions with an answer each, were said to be learnt from twice."""
    texts = [f"question{i}" for i in range(n_points)]
    dataset = Dataset.of(texts, [[f"answer{i // n_examples}"] for i in range(n_points)])
    settings = recipe(name)()
    stages = costs_of(settings).stages(workload_of(dataset, settings), ONE_CORE)
    is_again = any(stage.startswith("again: ") for stage in stages)
    assert is_again == (n_examples == 4)
    if name == "longtail":
        assert stages.keys() <= settings.fit_dataset(dataset).run_.timings.keys()


def no_labels_of(dataset):
    labels = sp.csr_array(dataset.labels.shape, dtype=np.float32)
    return dataclasses.replace(dataset, labels=labels)


def numbers(array):
    labels = sp.csr_array(np.ones((len(array), 1), np.float32))
    return Dataset(None, sp.csr_array(np.float32(array)), labels, LabelSpace(1))


ONE_TEXT = Dataset(
    TextColumn.from_strings(["red wine"]), None, sp.csr_array(np.ones((1, 1))), LabelSpace(1)
)
ODD = {
    "one text": ONE_TEXT,
    "no labels": no_labels_of(ONE_TEXT),
    "no words": dataclasses.replace(ONE_TEXT, texts=TextColumn.from_strings([""])),
    "no points": ONE_TEXT.take([]),
    "dense numbers": numbers(np.ones((3, 12))),
    "one feature": numbers([[1]]),
    "only zeros": numbers(np.zeros((2, 5))),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", RECIPES)
def test_odd_data_are_no_reason_to_fail(name, odd):
    settings = recipe(name)()
    workload = workload_of(ODD[odd], settings)
    estimate = estimate_training(workload, costs_of(settings), ONE_CORE)
    assert 1e8 < estimate.memory < 1e10
    assert estimate.seconds is None or 0 < estimate.seconds < math.inf
