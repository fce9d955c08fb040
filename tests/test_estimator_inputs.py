"""What people pass to an estimator at their first tries; the base of all recipes deals with it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

from longtail.data.dataset import Dataset
from longtail.data.from_python import labels_from, texts_from
from longtail.data.input_notes import InputWarning
from longtail.data.label_space import LabelSpace
from longtail.errors import InputError
from longtail.estimators.json_values import code_of, json_value
from longtail.estimators.limits import check_settings
from longtail.predictor import Predictor
from longtail.progress import ProgressBar
from longtail.recipes.astec import Astec
from longtail.recipes.dismec import DiSMEC
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.names import recipe
from longtail.recipes.one_vs_all import OneVsAll
from longtail.recipes.parabel import Parabel
from longtail.training.processes import Processes

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

    def test_ids_and_columns_are_those_of_the_model(self, of_names):
        ids = of_names.predictor_.label_space.ids_by_name
        by_id = [[ids[name] for name in row] for row in NAMES]
        expected = of_names.score(TEXTS, NAMES)
        assert of_names.score(TEXTS, by_id) == expected
        matrix = np.zeros((24, 3), int)
        for row, columns in enumerate(by_id):
            matrix[row, columns] = 1
        assert of_names.score(TEXTS, matrix) == expected

    def test_a_matrix_of_another_width(self, of_names):
        for wrong in (np.eye(24, 2, dtype=int), csr_array(np.eye(24, 4))):
            with pytest.raises(InputError, match=r"y has \d columns, but the model has 3 labels"):
                of_names.score(TEXTS, wrong)
        with pytest.warns(InputWarning, match="has 2 labels without names, the model 3"):
            of_names.evaluate(dataset(TEXTS, np.eye(24, 2, dtype=int)))

    @pytest.mark.parametrize("unknown", [[["unheard of"]] * 24, [[7]] * 24])
    def test_labels_that_the_model_knows_none_of(self, of_names, unknown):
        with pytest.raises(InputError, match=r"None of the labels .* it has '(7|unheard of)'"):
            of_names.evaluate(dataset(TEXTS, unknown))
        with pytest.warns(InputWarning, match="does not know 24 of the 24 labels"):
            assert of_names.score(TEXTS, unknown) == 0
        with pytest.raises(InputError, match="No point of the test set has a label"):
            of_names.evaluate(dataset(TEXTS, csr_array((24, 3))))

    def test_few_labels_that_the_model_knows(self, of_names):
        few = [["drink"]] * 4 + [["Drink"]] * 20
        texts = [f"{text} {i}" for i, text in enumerate(TEXTS)]  # no table of pairs
        with pytest.warns(InputWarning, match=r"does not know 20 of the 24 labels .* as misses"):
            of_names.evaluate(dataset(texts, few))
        few = [["drink"]] * 12 + [["Drink"]] * 12
        assert of_names.evaluate(dataset(texts, few))["P@1"] > 0  # the rest may be new

    def test_one_class_a_point(self, of_names, of_classes):
        assert of_classes.score(TEXTS, CLASSES) == 1
        assert of_classes.score(TEXTS, [[name] for name in CLASSES]) == 1
        # A name a point will do, too; but of "old red car", "red" is right as well.
        assert of_names.score(TEXTS, CLASSES) >= 0.75
        assert of_classes.score(TEXTS, [[], *([name, "x"] for name in CLASSES[1:])]) == 23 / 24

    def test_what_does_not_fit(self, of_names, of_classes):
        for model in (of_names, of_classes):
            with pytest.raises(InputError, match="rows, but there are"):
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
    with pytest.raises(InputError, match=r"Text 0 is nan .*, not a string\. Leave .*fillna"):
        model.fit(Column([float("nan"), *TEXTS[1:]]), CLASSES)


def test_classes_that_can_be_read_only_once():
    for classes in (iter(CLASSES), dict(enumerate(CLASSES)).values()):
        model = Parabel(n_threads=1).fit(TEXTS, classes)
        assert model.predict(TEXTS[:3]).tolist() == CLASSES[:3]


def test_a_data_set_goes_elsewhere(of_names):
    for others in ([], [NAMES]):
        with pytest.raises(InputError, match="Pass it to fit_dataset"):
            small().fit(dataset(TEXTS, NAMES), *others)
    with pytest.raises(InputError, match="requires y to be passed"):
        small().fit(TEXTS)
    with pytest.raises(InputError, match="takes a Dataset, got a list"):
        small().fit_dataset(TEXTS)
    with pytest.raises(InputError, match="evaluate takes a Dataset, got a list"):
        of_names.evaluate(TEXTS, NAMES)


class Hears(ProgressBar):
    """A callback with an `on_epoch` of its own."""

    def on_epoch(self):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        (ProgressBar(), r"must be a list, got a ProgressBar\. Pass \[callback\]"),
        (iter(()), "must be a list"),  # it could be heard once
        ([print], "with the methods on_stage, on_batch and on_epoch, .* got <built-in"),
        ([ProgressBar], "got <class"),
        ([Hears()], r"`on_epoch` of Hears is called as on_epoch\(report\): too many"),
    ],
)
def test_what_is_no_callback_is_said_at_once(callbacks, message):
    with pytest.raises(InputError, match=message):
        small().fit_dataset(dataset(TEXTS, NAMES), callbacks=callbacks)


class Table:
    """A table of pandas or polars: an array whose columns have names."""

    def __init__(self, columns, values):
        self.columns, self._values = columns, np.asarray(values)
        self.shape, self.ndim = self._values.shape, 2

    def __array__(self, dtype=None, copy=None):
        return self._values


def test_the_columns_of_a_table_name_the_labels():
    matrix = MultiLabelBinarizer().fit(NAMES)
    y = Table(matrix.classes_, matrix.transform(NAMES))
    model = small().fit(TEXTS, y)
    assert list(model.predictor_.label_space.names) == list(matrix.classes_)
    assert model.predictor_.label_space.texts == model.predictor_.label_space.names
    found = model.predict(TEXTS)
    assert (found.shape, found.dtype) == ((24, len(matrix.classes_)), int)
    turned = Table(matrix.classes_[::-1], matrix.transform(NAMES)[:, ::-1])
    assert model.score(TEXTS, turned) == model.score(TEXTS, NAMES) > 0.9
    counted = small().fit(TEXTS, Table(range(3), matrix.transform(NAMES)))
    assert counted.predictor_.label_space.names is None
    years = small().fit(TEXTS, Table([1990, 2000, 2010], matrix.transform(NAMES))).predictor_
    assert (list(years.label_space.names), years.label_space.texts) == (
        ["1990", "2000", "2010"],
        None,
    )
    with pytest.raises(InputError, match=r"y, column 1: got ' ', a label without a name\. Rename"):
        small().fit(TEXTS, Table(["drink", " ", "red"], matrix.transform(NAMES)))


SCORERS = ["f1_micro", "f1_samples", "precision_samples", "accuracy", "roc_auc"]


def test_scorers_of_scikit_learn_take_several_labels():
    matrix = MultiLabelBinarizer().fit_transform(NAMES * 2)
    own = {"cv": KFold(2, shuffle=True, random_state=0), "error_score": "raise"}
    found = cross_validate(small(), TEXTS * 2, matrix, scoring=SCORERS, **own)
    assert all(found[f"test_{name}"].min() > 0.5 for name in SCORERS)
    search = GridSearchCV(small(), {"tail": [0.0, 0.5]}, scoring="f1_micro", **own)
    assert search.fit(TEXTS * 2, matrix).best_score_ > 0.5


def test_scorers_of_scikit_learn_take_a_sparse_matrix():
    matrix = MultiLabelBinarizer(sparse_output=True).fit_transform(NAMES)
    model = small().fit(TEXTS, matrix)
    for name in SCORERS[:4]:  # the others take none from anybody
        assert get_scorer(name)(model, TEXTS, matrix) > 0.5


def test_scorers_of_scikit_learn_take_two_labels_and_classes(of_classes):
    two = np.array([[1, 0], [1, 0], [0, 1], [0, 1]] * 6)
    model = small().fit(TEXTS, two)
    assert get_scorer("roc_auc")(model, TEXTS, two) > 0.9  # not taken for two classes
    assert get_scorer("roc_auc")(of_classes, TEXTS, CLASSES) > 0.9
    assert get_scorer("neg_log_loss")(of_classes, TEXTS, CLASSES) > -0.7


def test_scorers_of_scikit_learn_cannot_read_lists(of_names):
    with pytest.raises(AttributeError, match=r"a matrix of 0 and 1.*MultiLabelBinarizer\(\)\.fit"):
        get_scorer("f1_micro")(of_names, TEXTS, NAMES)


def test_all_probabilities(of_names, of_classes, monkeypatch):
    found = of_names.predict_proba(TEXTS)
    ids, probabilities = of_names.predict_topk(TEXTS, 3)
    for row, labels, own in zip(found, ids, probabilities, strict=True):
        assert np.array_equal(row[labels[labels >= 0]], own[labels >= 0])
    assert found[ids[:, 0] < 0].sum() == 0
    of_each = of_classes.predict_proba([*TEXTS, "日本語"])
    np.testing.assert_allclose(of_each.sum(axis=1), 1)
    assert of_each[-1].tolist() == [0.5, 0.5]  # as in training
    assert (of_classes.classes_[of_each[:24].argmax(axis=1)] == of_classes.predict(TEXTS)).all()
    monkeypatch.setattr("longtail.estimators.answers.MOST_NUMBERS", 71)
    with pytest.raises(InputError, match=r"All probabilities of 24 points and 3 labels .*topk"):
        of_names.predict_proba(TEXTS)


def test_a_class_that_is_no_answer_has_no_probability():
    texts, classes = [f"{word} {i}" for i in range(4) for word in "abcd"], list("abcd") * 4
    model = Parabel(n_learners=1, leaf_size=2, beam_size=1, n_threads=1).fit(texts, classes)
    ids, _ = model.predict_topk(texts, 4)
    is_answer = (ids[:, :, None] == np.arange(4)).any(axis=1)
    assert not is_answer.all(axis=1).any()
    assert np.array_equal(model.predict_proba(texts) > 0, is_answer)


def test_what_is_one_text_is_no_points_to_any_answer(of_names):
    for ask in (of_names.predict, of_names.predict_topk, of_names.predict_proba):
        with pytest.raises(InputError, match="For one text, pass"):
            ask(np.array("red wine"))


def test_a_data_set_has_points_to_ask_for(of_names):
    dataset = Dataset.of(TEXTS, [["a"]] * len(TEXTS))
    with pytest.raises(InputError, match=r"Pass its points: dataset\.texts\."):
        of_names.predict(dataset)
    assert of_names.predict(dataset.texts) == of_names.predict(TEXTS)


def test_a_table_that_is_not_computed_yet_is_told_from_one_that_is():
    class LazyFrame:
        def collect(self): ...

    with pytest.raises(InputError, match=r"A LazyFrame holds no values yet\. .* collect\(\)"):
        Parabel(n_threads=1).fit(LazyFrame(), CLASSES)


@pytest.mark.parametrize("dtype", [object, np.float16])
def test_a_matrix_of_a_type_that_scipy_lacks(dtype):
    y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]] * 6, dtype)
    found = small().fit(TEXTS, y).predict(TEXTS)
    assert found.dtype == np.float32
    assert found.tolist() == y.tolist()


def test_pairs_to_set_aside_have_the_label_ids_of_the_test_set(of_names):
    test = dataset(TEXTS[TURNED], NAMES[TURNED])
    model = of_names.predictor_
    assert test.label_space.names[:1] != model.label_space.names[:1]
    assert model.evaluate(test, ks=[1], set_aside=test.labels)["P@1"] == 0
    others = csr_array(1 - test.labels.toarray())
    assert model.evaluate(test, ks=[1], set_aside=others)["P@1"] == 100
    with pytest.raises(InputError, match=r"`set_aside` has the shape \(24, 2\)"):
        model.evaluate(test, set_aside=csr_array((24, 2)))
    assert model.evaluate(test, ks=[1], set_aside=coo_matrix(test.labels))["P@1"] == 0


def test_a_test_set_is_answered_block_by_block(of_names, monkeypatch):
    expected = of_names.evaluate(dataset(TEXTS, NAMES))
    asked, bags = [], Predictor.bags

    def counted(self, X):
        asked.append(len(X))
        return bags(self, X)

    monkeypatch.setattr("longtail.data.blocks.POINTS_AT_ONCE", 10)
    monkeypatch.setattr(Predictor, "bags", counted)
    assert of_names.evaluate(dataset(TEXTS, NAMES)) == expected
    assert asked == [10, 10, 4]


def test_it_works_within_scikit_learn():
    assert cross_val_score(small(), TEXTS, CLASSES, cv=2).mean() == 1
    matrix = MultiLabelBinarizer().fit_transform(NAMES)
    assert cross_val_score(small(), TEXTS, matrix, cv=KFold(2, shuffle=True)).mean() > 0.5
    assert cross_val_score(small(), TEXTS, NAMES, cv=KFold(2, shuffle=True)).mean() > 0.5
    search = GridSearchCV(small(), {"tail": [0.0, 0.5]}, cv=2).fit(TEXTS, CLASSES)
    assert search.predict(TEXTS[:3]).tolist() == CLASSES[:3]
    pipeline = make_pipeline(TfidfVectorizer(), small())
    assert pipeline.fit(TEXTS, NAMES).predict(TEXTS[:1]) == [["drink"]]


def test_tokens_of_a_single_text_count_where_texts_are_few():
    assert [Parabel(min_df=None).min_df_for(n) for n in (10, 20_000, 20_001)] == [1, 1, 2]
    least = [LongtailClassifier().min_df_for(n) for n in (10, 50_000, 50_001)]
    assert least == [(1, 1, 1), (1, 2, 1), 1]
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


@pytest.mark.parametrize(
    ("name", "brief"),
    [
        ("longtail", {"epochs": 1}),
        ("parabel", {}),
        ("astec", {"surrogate_epochs": 1, "extreme_epochs": 1, "reranker_epochs": 1}),
        ("ngame", {"encoder_epochs": 1, "classifier_epochs": 1}),
    ],
)
def test_labels_of_a_single_point_are_learnt(name, brief):
    """Wherever chance would have put that point: what is left to learn from is never empty."""
    texts = [f"text {i} of {i % 7}" for i in range(200)]
    labels = [["only"] if i == 0 else [] for i in range(200)]
    for seed in range(6):
        settings = {"n_threads": 1, "held_out": 0.5, "random_state": seed, **brief}
        model = recipe(name)(**settings).fit(texts, labels)
        assert model.predictor_.n_labels == 1


def test_settings_are_the_same_values_in_every_process():
    class Mine:
        def __init__(self):
            self.size, self.parts = 3, (1, 2)

    code = code_of(Mine)["code"]
    assert json_value(Mine()) == {"type": "Mine", "size": 3, "parts": [1, 2], "code": code}
    assert json_value([Mine, None, np.int64(2)]) == [f"{Mine.__qualname__} {code}", None, 2]


def test_functions_with_other_arguments_are_other_settings():
    parts = [
        partial(pow, 2),
        partial(pow, 3),
        partial(int, base=2),
        lambda x: x + 1,
        lambda x: x + 2,
    ]
    values = [json_value(part) for part in parts]
    assert all(a != b for i, a in enumerate(values) for b in values[:i])
    assert json_value(partial(pow, 2)) == values[0]


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


@pytest.mark.parametrize("name", ["longtail", "pfastrexml", "astec"])
def test_labels_that_all_points_have_are_probable(name):
    model = recipe(name)(n_threads=1).fit(TEXTS, [["drink", "red"]] * len(TEXTS))
    assert model.predict_proba(["wine"]).min() > 0.95
    assert [sorted(row) for row in model.predict(["red wine", "car"])] == [["drink", "red"]] * 2


def test_texts_that_can_be_read_once_only():
    model = small().fit((text for text in TEXTS), NAMES)
    assert model.score(TEXTS, NAMES) > 0.5


def test_a_table_of_texts_is_told_how_to_be_passed(of_names):
    for ask in (of_names.predict, of_names.predict_topk, of_names.predictor_.predict):
        with pytest.raises(InputError, match=r"trained on texts.*table\['text'\], not .*\[:, 0\]"):
            ask(np.array(TEXTS)[:, np.newaxis])


@pytest.mark.parametrize("form", ["matrix", "ids"])
def test_more_than_a_hundred_labels_may_be_chosen(form):
    """Points of two kinds, each of which has half of the labels, and lacks some of these."""
    random, kinds = np.random.default_rng(0), np.arange(400) % 2
    has = (np.arange(300) % 2 == kinds[:, None]) & (random.random((400, 300)) < 0.9)
    texts = [f"{('wine', 'car')[kind]} {random.integers(50)}" for kind in kinds]
    y = has if form == "matrix" else [np.flatnonzero(row) for row in has]
    model = OneVsAll(dimension=16, n_threads=1).fit(texts, y)
    asked = texts[:40]
    found = model.predict(iter(asked))
    probable = model.predict_proba(asked) >= 0.5
    assert probable.sum(axis=1).max() > 120
    if form == "ids":
        assert [sorted(row) for row in found] == [np.flatnonzero(row).tolist() for row in probable]
    else:
        np.testing.assert_array_equal(found, probable)
    assert (probable == has[:40]).mean() > 0.9


@pytest.mark.parametrize(
    ("make", "seeds"),
    [
        (lambda seed: OneVsAll(dimension=16, n_threads=1, random_state=seed), [0]),
        (lambda seed: DiSMEC(n_threads=1, random_state=seed), [0]),
        # The points that tell are others with each seed, and of so few they say different things.
        (lambda seed: LongtailClassifier(dimension=16, n_threads=1, random_state=seed), range(5)),
    ],
)
def test_labels_that_few_of_many_right_ones_follow_are_not_all_probable(make, seeds):
    """The first five are right of nearly every point, which says nothing of those behind them."""
    random, kinds = np.random.default_rng(0), np.arange(600) % 2
    has = (np.arange(60) % 2 == kinds[:, None]) & (random.random((600, 60)) < 0.9)
    texts = [f"{('wine', 'car')[kind]} {random.integers(50)}" for kind in kinds]
    found = [make(seed).fit(texts, has).predict_proba(texts).sum(axis=1).mean() for seed in seeds]
    assert np.mean(found) == pytest.approx(has.sum(axis=1).mean(), rel=0.15)


def test_zeros_that_are_stored_change_nothing():
    random = np.random.default_rng(0)
    dense = (random.random((200, 60)) * (random.random((200, 60)) < 0.1)).astype(np.float32)
    stored = csr_array(np.ones_like(dense))
    stored.data[:] = dense.ravel()
    labels = csr_array(np.eye(40, dtype=np.float32)[np.arange(200) % 40])
    models = [
        LongtailClassifier(dimension=16, n_threads=1).fit_dataset(
            Dataset(None, features, labels, LabelSpace(40))
        )
        for features in (csr_array(dense), stored)
    ]
    answers = [model.predict_topk(csr_array(dense), 3) for model in models]
    np.testing.assert_array_equal(*[scores for _, scores in answers])
    assert stored.nnz == dense.size  # what was passed stays as it was


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dropout": float("nan")}, r"dropout must be between 0.0 and 0.99, got nan"),
        ({"epochs": True}, "epochs must be a whole number, got True"),
        ({"label_texts": 1}, "label_texts must be True or False, got 1"),
        ({"device": "toaster"}, "toaster"),
    ],
)
def test_settings_are_checked_before_anything_is_read(settings, message):
    with pytest.raises(InputError, match=message):
        check_settings(LongtailClassifier(**settings))


def test_a_model_counts_all_training_points_also_those_held_out():
    texts, labels = [f"word{i} other{i % 9}" for i in range(90)], [[i % 4] for i in range(90)]
    model = Parabel(held_out=0.5, n_learners=1, n_threads=1).fit(texts, labels)
    assert model.predictor_.train_label_counts.tolist() == [23, 23, 22, 22]


def test_of_several_processes_the_first_one_saves(monkeypatch, tmp_path):
    texts, labels = ["red wine", "old car"] * 20, [["drink"], ["vehicle"]] * 20
    model = Parabel(n_learners=1, n_threads=1).fit(texts, labels)
    for rank in (1, 0):
        place = Processes(rank=rank, count=2)
        monkeypatch.setattr("longtail.estimators.estimator.processes", lambda place=place: place)
        model.save(tmp_path / "model")
        assert (tmp_path / "model").exists() == (rank == 0)


def test_classes_that_are_written_otherwise_are_told():
    texts, classes = ["red wine", "old car"] * 20, [0, 1] * 20
    model = LongtailClassifier(dimension=16, n_threads=1).fit(texts, classes)
    assert model.score(texts, classes) == 1.0
    assert model.score(texts, [0, 7] * 20) == 0.5  # half may be new ones
    with pytest.warns(InputWarning, match="does not know 40 of the 40 classes .* such as '0'.* 0,"):
        assert model.score(texts, [str(one) for one in classes]) == 0.0
