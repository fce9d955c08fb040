"""Labels that held-out points alone have do not teach a blend to trust what no point is seen of."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from longtail.blend.evidence import Evidence
from longtail.blend.held_out_lesson import HeldOutLesson
from longtail.blend.only_held_out import only_held_out, with_labels_hidden
from longtail.compiled.expanded import expanded
from longtail.data.dataset import Dataset
from longtail.data.from_python import labels_from
from longtail.data.text_column import TextColumn
from longtail.recipes import longtail as longtail_recipe
from longtail.recipes import longtail_training
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.ngame import NGAME
from small_wordnet import whole_wordnet

N_TRAIN, N_TEST = 2_000, 3_000


@given(st.integers(0, 20), st.integers(0, 10_000))
def test_as_many_stand_for_labels_without_points_as_there_are(n_without, seed):
    random = np.random.default_rng(seed)
    seen, held_out = np.zeros((2, 40 + n_without)), np.zeros((3, 40 + n_without))
    seen[:, :30] = 1
    held_out[random.integers(0, 3, 20), np.arange(20, 40)] = 1  # ten of them alone
    is_aside = only_held_out(csr_array(seen), csr_array(held_out), seed)
    assert is_aside.sum() == max(10 - n_without, 0)
    assert not is_aside[:30].any()
    assert not is_aside[40:].any()


@given(st.integers(0, 10_000), st.booleans())
def test_labels_are_set_aside_whether_true_or_false(seed, are_some_aside):
    random = np.random.default_rng(seed)
    labels = np.array([random.permutation(9)[:5] for _ in range(6)], np.int32)
    labels[random.random((6, 5)) < 0.2] = -1
    aside = random.random((6, 5)) < 0.3 if are_some_aside else None
    none = np.zeros(9, np.float32)
    evidence = Evidence(labels, np.zeros((6, 1, 5), np.float32), none[:6], none, aside)
    truth = csr_array(random_array((6, 9), density=0.4, rng=random))
    is_aside = random.random(9) < 0.4
    left, truth_left = with_labels_hidden(evidence, truth, is_aside)
    for row, label in np.ndindex(6, 5):
        gone = is_aside[labels[row, label]] or (are_some_aside and aside[row, label])
        assert left.judged[row, label] == (-1 if gone else labels[row, label])
    np.testing.assert_array_equal(truth_left.toarray(), truth.toarray() * ~is_aside)
    assert truth_left.has_sorted_indices


def named(dataset, rows):
    """Some points, with the names of their labels."""
    space = dataset.label_space
    texts = [dataset.texts[int(row)] for row in rows]
    names = [{space.name(int(label)) for label in dataset.labels[[row]].indices} for row in rows]
    return texts, [sorted(some) for some in names]


@pytest.fixture(scope="module")
def data():
    """Points whose labels are known by them alone, as those of most who train a model."""
    train, test = whole_wordnet()
    texts, names = named(train, np.arange(N_TRAIN))
    labels, space, _ = labels_from(names, N_TRAIN)
    points = Dataset(TextColumn.from_strings(texts), None, labels, space)
    return points, named(test, np.arange(N_TEST))


@pytest.mark.parametrize(
    "recipe", [pytest.param(NGAME, marks=pytest.mark.thorough), LongtailClassifier]
)
def test_what_is_new_is_not_trusted_for_being_new(data, recipe, monkeypatch):
    monkeypatch.setattr(longtail_recipe, "FEW_POINTS", 0)  # the sources do not learn again
    train, (texts, names) = data
    found = recipe(n_threads=1).fit_dataset(train).predictor_.predict(texts, k=1)
    right = [answer[0][0] in true for answer, true in zip(found, names, strict=True) if answer]
    assert 100 * np.mean(right) > 13.5  # about 16 where they are set aside, 11 where they are not


@pytest.mark.parametrize(
    ("few", "very_few", "expected"),
    [(0, 0, True), (0, 20_000, True), (50_000, 20_000, True), (50_000, 50, False)],
)
def test_they_count_where_many_points_are_learnt_from_in_the_end(
    few, very_few, expected, monkeypatch
):
    monkeypatch.setattr(longtail_recipe, "FEW_POINTS", few)
    monkeypatch.setattr(longtail_training, "VERY_FEW_POINTS", very_few)
    called, without = [], HeldOutLesson.without_own_labels

    def noted(lesson, labels, run):
        called.append(labels.shape[0])
        return without(lesson, labels, run)

    monkeypatch.setattr(HeldOutLesson, "without_own_labels", noted)
    texts, labels = [f"wine {i}" for i in range(100)], [[i % 9] for i in range(100)]
    LongtailClassifier(dimension=8, epochs=1, n_threads=1).fit(texts, labels)
    assert bool(called) == expected


@pytest.mark.thorough
def test_held_out_points_link_labels_where_nothing_else_learns_from_them(data, monkeypatch):
    train, _ = data
    linked = []
    for few in (0, 50_000):
        monkeypatch.setattr(longtail_recipe, "FEW_POINTS", few)
        model = LongtailClassifier(dimension=16, epochs=1, n_threads=1, min_df=2).fit_dataset(train)
        relations = expanded(model.predictor_.scorer).relations
        starts = relations.link_starts
        linked.append([relations.link_labels[i:j] for i, j in pairwise(starts.tolist())])
    sets = [({*one}, {*other}) for one, other in zip(*linked, strict=True)]
    apart = sum(len(one ^ other) for one, other in sets) / sum(
        len(one | other) for one, other in sets
    )
    assert apart < 0.2  # .31 without; which labels points are, they tell together and one by one
