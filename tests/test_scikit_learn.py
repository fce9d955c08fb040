"""What scikit-learn asks of estimators, where no import of it is wanted."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sklearn.base import clone, is_classifier

from longtail import LongtailClassifier
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
