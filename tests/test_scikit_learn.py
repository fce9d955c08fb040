"""What scikit-learn asks of estimators, where no import of it is wanted."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier

from longtail import Dataset, LongtailClassifier, load
from longtail.errors import InputError
from longtail.recipes.astec import Astec


def test_what_is_not_as_it_comes_is_named():
    model = LongtailClassifier(epochs=3).set_params(dimension=64)
    assert repr(model) == "LongtailClassifier(dimension=64, epochs=3)"
    assert repr(LongtailClassifier()) == "LongtailClassifier()"
    assert model.get_params(deep=False)["dimension"] == 64


def test_an_unknown_parameter_is_refused_with_those_there_are():
    with pytest.raises(InputError, match=r"Invalid parameter 'sise' .*Valid parameters are: "):
        LongtailClassifier().set_params(sise=5)


def test_a_clone_has_the_parameters_and_nothing_learnt():
    model = Astec(dimension=8)
    model.predictor_ = None
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "predictor_")
    assert is_classifier(copy)


def test_training_does_not_wait_for_scikit_learn():
    code = "import sys, longtail.recipes.longtail; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class Table:
    """As a data frame is read: an array, with names of its columns."""

    def __init__(self, values, columns):
        self.values, self.columns, self.shape = values, columns, values.shape

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


@pytest.fixture(scope="module")
def model():
    """A model of a table whose columns have names."""
    classes = np.array(["cake", "lemon", "fish"])[np.arange(30) % 3]
    table = Table(TestFeatureNames.X, TestFeatureNames.NAMES)
    return LongtailClassifier(n_threads=1).fit(table, classes)


class TestFeatureNames:
    NAMES = ("sweet", "sour", "salty")
    X = np.eye(3)[np.arange(30) % 3]

    def test_are_kept(self, model):
        assert model.feature_names_in_.tolist() == list(self.NAMES)
        assert model.predict(Table(self.X, self.NAMES)).tolist() == model.predict(self.X).tolist()

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (("sour", "sweet", "salty"), "the same columns, in another order"),
            (("sweet", "sour", "bitter"), "unknown are 'bitter'; missing are 'salty'"),
        ],
    )
    def test_must_be_the_same(self, model, names, message):
        for ask in (model.predict, model.predict_topk, model.predict_proba):
            with pytest.raises(InputError, match=message):
                ask(Table(self.X, names))

    def test_are_kept_with_the_model(self, model, tmp_path):
        model.save(tmp_path / "model")
        saved = load(tmp_path / "model")
        for loaded in (saved, saved.compressed("int8")):
            assert loaded.feature_names_in_ == self.NAMES
            named = loaded.predict(Table(self.X, self.NAMES))
            assert named == loaded.predict(self.X) == loaded.predict(csr_array(self.X))
            for ask in (loaded.predict, loaded.predict_topk):
                with pytest.raises(InputError, match="the same columns, in another order"):
                    ask(Table(self.X[:, ::-1], self.NAMES[::-1]))

    def test_go_with_another_fit(self, model):
        again = clone(model).fit(Table(self.X, self.NAMES), ["a", "b", "c"] * 10)
        again.fit(self.X, ["a", "b", "c"] * 10)
        assert not hasattr(again, "feature_names_in_")

    def test_stay_with_the_model_where_another_fit_is_stopped(self):
        class Stop:
            def on_stage(self, stage, seconds):
                raise KeyboardInterrupt

            def on_batch(self, stage, done, total, loss):
                pass

            def on_epoch(self, report):
                pass

        classes = ["a", "b", "c"] * 10
        model = LongtailClassifier(dimension=8, n_threads=1).fit(Table(self.X, self.NAMES), classes)
        before = model.training_report()["stages"]
        with pytest.raises(KeyboardInterrupt):
            model.fit_dataset(Dataset.of(self.X, classes), callbacks=[Stop()])
        assert model.training_report()["stages"] == before
        with pytest.raises(InputError, match="the same columns, in another order"):
            model.predict(Table(self.X, ("sour", "sweet", "salty")))
