"""Recipes that a stranger derives from longtail's: their settings count, or a sentence says not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from longtail import Astec, DeepXML, load
from longtail.errors import InputError
from longtail.estimators.estimator import LabelEstimator
from longtail.negatives.nearest_labels import NearestLabels
from longtail.recipes.dismec import DiSMEC
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.transfer.plain import FullyConnected
from small_parts import BAGS, BRIEF, LABELS, TEXTS

FEW: Any = {"dimension": 8, "surrogate_epochs": 1, "extreme_epochs": 2, "n_threads": 1}


@dataclass(kw_only=True, eq=False, repr=False)
class Named(Astec):
    """A recipe with settings whose names other recipes of longtail's have for others."""

    scale: str = "linear"
    alpha: float = 7.5
    n_hidden: tuple[int, ...] = (64, 32)
    reranker: bool = False
    n_hard: int = 5

    def deepxml(self, n_points):
        return replace(super().deepxml(n_points), transfer=FullyConnected())


def test_settings_of_a_recipe_of_ones_own(tmp_path):
    model = clone(Named(alpha=9.0, **FEW)).fit(TEXTS, LABELS)
    assert model.alpha == 9
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").description["settings"]["n_hidden"] == [64, 32]


def test_its_settings_of_longtails_are_looked_at():
    with pytest.raises(InputError, match=r"dropout must be between 0\.0 and 0\.99, got 2"):
        Named(dropout=2, **FEW).fit(TEXTS, LABELS)


class Undecorated(Astec):
    """A recipe whose default nobody reads."""

    n_hard = 5


@dataclass(kw_only=True, eq=False, repr=False)
class Untyped(Astec):
    """The same, since a field of a dataclass has a type."""

    n_hard = 5


@dataclass(kw_only=True, eq=False, repr=False)
class Further(Undecorated):
    """A recipe that has it from another."""

    beam: int = 3


class Sampler(NearestLabels):
    """A part whose default nobody reads."""

    n_near_labels = 7


@pytest.mark.parametrize("kind", [Undecorated, Untyped, Further])
def test_a_default_that_the_constructor_does_not_know(kind):
    message = (
        rf"{kind.__name__} has n_hard = 5, but its constructor sets 20\. Write @dataclass\("
        r"kw_only=True, eq=False, repr=False\) above .*: n_hard: int = 5\."
    )
    with pytest.raises(InputError, match=message):
        kind(**FEW).fit(TEXTS, LABELS)
    kind(n_hard=5, **FEW).fit(TEXTS, LABELS)  # as both have it


def test_a_default_of_a_part_that_the_constructor_does_not_know():
    message = r"Sampler has n_near_labels = 7, .* sets 300\. Write @dataclass\(.*, frozen=True\)"
    with pytest.raises(InputError, match=message):
        DeepXML(negatives=Sampler(), n_threads=1).fit(TEXTS, LABELS)


def test_a_constructor_that_copies_would_lose_a_setting_of():
    class Constructed(Astec):
        def __init__(self, gamma=1.0, **settings):
            super().__init__(**settings)
            self.gamma = gamma

    with pytest.raises(InputError, match="The constructor of Constructed takes gamma, which is no"):
        Constructed(gamma=2.0, **FEW).fit(TEXTS, LABELS)


def test_a_constructor_of_the_settings_that_there_are():
    class Constructed(DiSMEC):
        def __init__(self, cost=2.0, **settings):
            super().__init__(cost=cost, **settings)

    assert clone(Constructed(n_threads=1)).fit(TEXTS, LABELS).cost == 2


def test_a_recipe_learns_a_scorer():
    class Nothing(LabelEstimator):
        def _learn(self, data, held_out, run):
            return None

    with pytest.raises(
        InputError, match=r"must return a scorer, .* a NoneType has no top_k, to_ar"
    ):
        Nothing(n_threads=1).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"transfer": "identity"}, "transfer must be an object that has block"),
        ({"transfer": FullyConnected()}, "whose transfer is a FullyConnected, but its own is a Bo"),
    ],
)
def test_parts_that_a_recipe_puts_together_are_looked_at(parts, message):
    class Other(Astec):
        def deepxml(self, n_points):
            return replace(super().deepxml(n_points), **parts)

    with pytest.raises(InputError, match=message):
        Other(**FEW).fit(TEXTS, LABELS)


def test_settings_may_be_numbers_of_numpy(tmp_path):
    numbers: Any = {"random_state": np.int64(3), "held_out": np.float32(0.25)}
    parts: Any = {"features": BAGS, "surrogate": MetaLabelTask(schedule=BRIEF)}
    model = DeepXML(**parts, **numbers, n_learners=np.int8(1), n_threads=np.int64(1))
    model.fit(TEXTS, LABELS).save(tmp_path / "model")
    assert load(tmp_path / "model").description["seed"] == 3
