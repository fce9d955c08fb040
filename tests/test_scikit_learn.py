"""What scikit-learn asks of estimators, where no import of it is wanted."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field

import pytest
from sklearn.base import clone, is_classifier

from longtail import LongtailClassifier
from longtail.errors import InputError
from longtail.recipes.astec import Astec
from longtail.recipes.scikit_learn import Parameters


@dataclass(kw_only=True, repr=False)
class Inner(Parameters):
    size: int = 3


@dataclass(kw_only=True, repr=False)
class Outer(Parameters):
    part: Inner = field(default_factory=Inner)
    kind: type = Inner


def test_parameters_of_parameters():
    outer = Outer()
    assert outer.get_params()["part__size"] == 3
    assert set(outer.get_params(deep=False)) == {"part", "kind"}
    outer.set_params(part__size=5)
    assert outer.part.size == 5
    assert repr(outer) == "Outer(part=Inner(size=5))"
    assert repr(Outer()) == "Outer()"


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
