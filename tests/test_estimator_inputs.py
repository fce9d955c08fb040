"""What people pass to an estimator at their first tries; the base of all recipes deals with it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

from longtail.data.dataset import Dataset
from longtail.data.from_python import labels_from, texts_from
from longtail.errors import InputError
from longtail.recipes.astec import Astec
from longtail.recipes.json_values import json_value
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.names import recipe
from longtail.recipes.parabel import Parabel

TEXTS = ["red wine", "white wine", "fast car", "old red car"] * 6
NAMES = [["drink"], ["drink"], ["vehicle"], ["vehicle", "red"]] * 6
CLASSES = ["drink", "drink", "vehicle", "vehicle"] * 6
FEATURES = np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]] * 6)
TURNED = slice(None, None, -1)


def small():
    return LongtailClassifier(dimension=16, epochs=3, n_threads=1)


@pytest.fixture(scope="module")
def of_names():
    return small().fit(TEXTS, NAMES)


@pytest.fixture(scope="module")
def of_classes():
    return small().fit(TEXTS, CLASSES)


@pytest.fixture(scope="module")
def of_features():
    return small().fit(FEATURES.tolist(), CLASSES)


def dataset(texts, labels):
    return Dataset(texts_from(texts), None, *labels_from(labels, len(texts))[:2])


class TestScore:
    def test_names_count_and_not_the_order_in_which_they_come(self, of_names):
        expected = of_names.score(TEXTS, NAMES)
        assert expected > 0.9
        assert of_names.score(TEXTS[TURNED], NAMES[TURNED]) == expected
        found = of_names.evaluate(dataset(TEXTS[TURNED], NAMES[TURNED]))
        assert found["P@1"] == pytest.approx(100 * expected)
        assert of_names.evaluate(dataset(TEXTS, [["unheard of"]] * 24))["P@1"] == 0

    def test_ids_and_columns_are_those_of_the_model(self, of_names):
        ids = of_names.predictor_.label_space.ids_by_name
        by_id = [[ids[name] for name in row] for row in NAMES]
        expected = of_names.score(TEXTS, NAMES)
        assert of_names.score(TEXTS, by_id) == expected
        matrix = np.zeros((24, 3), int)
        for row, columns in enumerate(by_id):
            matrix[row, columns] = 1
        assert of_names.score(TEXTS, matrix) == expected

    def test_one_class_a_point(self, of_names, of_classes):
        assert of_classes.score(TEXTS, CLASSES) == 1
        assert of_classes.score(TEXTS, [[name] for name in CLASSES]) == 1
        assert of_names.score(TEXTS, CLASSES) > 0.9  # a name a point will do, too
        assert of_classes.score(TEXTS, [[], *([name, "x"] for name in CLASSES[1:])]) == 23 / 24

    def test_what_does_not_fit(self, of_names, of_classes):
        for model in (of_names, of_classes):
            with pytest.raises(InputError, match="rows but"):
                model.score(TEXTS, CLASSES[:-1])
            with pytest.raises(InputError, match="missing"):
                model.score(TEXTS, None)
        of_ids = small().fit(TEXTS, [[0], [0], [1], [1]] * 6)
        with pytest.raises(InputError, match="have names, so they cannot be matched"):
            of_ids.score(TEXTS, NAMES)
        with pytest.raises(InputError, match="have names, so they cannot be matched"):
            of_ids.evaluate(dataset(TEXTS, NAMES))


def test_the_class_of_a_text_of_which_nothing_is_known():
    texts, classes = ["red wine", "old car", "fast car"] * 6, ["drink", "vehicle", "vehicle"] * 6
    model = small().fit(texts, classes)
    assert model.predict(["日本語"]).tolist() == ["vehicle"]
    assert model.score(["日本語"], ["vehicle"]) == 1


@pytest.mark.parametrize("k", [2.0, "3", None])
def test_what_is_no_number_of_labels(of_names, k):
    with pytest.raises(InputError, match="k must be a whole number"):
        of_names.predict_topk(TEXTS, k)


def test_a_number_of_labels_of_numpy(of_names):
    assert of_names.predict_topk(TEXTS, np.int64(2))[0].shape == (24, 2)


def test_rows_may_be_lists(of_features):
    expected, _ = of_features.predict_topk(FEATURES, 2)
    assert np.array_equal(of_features.predict_topk(FEATURES.tolist(), 2)[0], expected)
    for wrong in (FEATURES[0].tolist(), TEXTS, []):
        with pytest.raises(InputError, match="texts or a single row"):
            of_features.predict(wrong)


class Column(list):
    """A column of pandas: its dtype is none that numpy knows, and it goes by rows."""

    ndim, dtype = 1, "category"

    def __array__(self, dtype=None, copy=None):
        return np.array([*self], dtype or object)


def test_columns_of_a_table():
    model = Parabel(n_threads=1).fit(Column(TEXTS), Column(CLASSES))
    assert model.predict(Column(TEXTS[:3])).tolist() == CLASSES[:3]
    with pytest.raises(InputError, match=r"Text 0 is nan \(float\), not a string"):
        model.fit(Column([float("nan"), *TEXTS[1:]]), CLASSES)


def test_classes_that_can_be_read_only_once():
    for classes in (iter(CLASSES), dict(enumerate(CLASSES)).values()):
        model = Parabel(n_threads=1).fit(TEXTS, classes)
        assert model.predict(TEXTS[:3]).tolist() == CLASSES[:3]


def test_a_data_set_goes_elsewhere(of_names):
    with pytest.raises(InputError, match="Pass it to fit_dataset"):
        small().fit(dataset(TEXTS, NAMES), NAMES)
    with pytest.raises(InputError, match="takes a Dataset, got a list"):
        small().fit_dataset(TEXTS)
    with pytest.raises(InputError, match="evaluate takes a Dataset, got a list"):
        of_names.evaluate(TEXTS, NAMES)


def test_it_works_within_scikit_learn():
    assert cross_val_score(small(), TEXTS, CLASSES, cv=2).mean() == 1
    matrix = MultiLabelBinarizer().fit_transform(NAMES)
    assert cross_val_score(small(), TEXTS, matrix, cv=KFold(2, shuffle=True)).mean() > 0.5
    search = GridSearchCV(small(), {"tail": [0.0, 0.5]}, cv=2).fit(TEXTS, CLASSES)
    assert search.predict(TEXTS[:3]).tolist() == CLASSES[:3]
    pipeline = make_pipeline(TfidfVectorizer(), small())
    assert pipeline.fit(TEXTS, NAMES).predict(TEXTS[:1]) == [["drink"]]


def test_tokens_of_a_single_text_count_where_texts_are_few():
    least = {n: LongtailClassifier().min_df_for(n) for n in (10, 20_000, 20_001)}
    assert least == {10: 1, 20_000: 1, 20_001: 2}
    assert [LongtailClassifier(min_df=3).min_df_for(n) for n in (20, 40, 100)] == [1, 2, 3]
    assert Astec().min_df_for(20_000) == 2
    texts = [f"{text} number{i}" for i, text in enumerate(TEXTS * 2)]
    rare, common = (
        Parabel(min_df=least_df).fit(texts, NAMES * 2).predictor_.n_features
        for least_df in (None, 2)
    )
    assert rare >= common + 48


def test_another_fit_leaves_nothing_of_the_one_before(of_features):
    model = small().fit(np.eye(24), CLASSES)
    assert hasattr(model, "classes_")
    model.fit(TEXTS, NAMES)
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("name", ["longtail", "parabel", "astec", "ngame"])
def test_labels_of_a_single_point_are_learnt(name):
    """Wherever chance would have put that point: what is left to learn from is never empty."""
    texts = [f"text {i} of {i % 7}" for i in range(200)]
    labels = [["only"] if i == 0 else [] for i in range(200)]
    for seed in range(6):
        model = recipe(name)(n_threads=1, held_out=0.5, random_state=seed).fit(texts, labels)
        assert model.predictor_.n_labels == 1


def test_settings_are_the_same_values_in_every_process():
    class Mine:
        def __init__(self):
            self.size, self.parts = 3, (1, 2)

    assert json_value(Mine()) == {"type": "Mine", "size": 3, "parts": [1, 2]}
    assert json_value([Mine, None, np.int64(2)]) == [Mine.__qualname__, None, 2]


@pytest.mark.parametrize("name", ["longtail", "parabel", "mach", "astec"])
def test_probabilities_of_few_points_choose_about_as_many_labels_as_there_are(name):
    random = np.random.default_rng(0)
    labels = [sorted(random.choice(8, 2, replace=False).tolist()) for _ in range(380)]
    texts = [f"w{a} w{b} n{i % 20}" for i, (a, b) in enumerate(labels)]
    model = recipe(name)(n_threads=1).fit(texts[:80], labels[:80])
    found = model.predict(texts[80:])
    assert 1 < np.mean([len(row) for row in found]) < 3
    exact = np.mean([sorted(row) == own for row, own in zip(found, labels[80:], strict=True)])
    assert exact > 0.5
