"""Settings as JSON values: what tells one training from another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import InitVar, dataclass, field
from types import MappingProxyType

import numpy as np
import pytest
import torch

from longtail.errors import InputError
from longtail.estimators.json_values import json_value
from longtail.recipes.parabel import Parabel
from longtail.surrogates.assignments import RandomHashing
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.schedule import Schedule

PART = """
from dataclasses import dataclass
from longtail.estimators.json_values import json_value

@dataclass
class Part:
    size: int = 3
    names = {names}

    def assign(self, labels):
        {body}

print(json_value(Part({size})))
"""


def said(body="return [label for label in labels]", size=3, names='("a",)', seed="0"):
    """What another process says of a part with such code."""
    code = PART.format(body=body, size=size, names=names)
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return found.stdout


def test_a_part_is_known_by_its_code_in_every_process():
    body = "return labels in {'one', 'two', 'three', 'four'}"
    assert said(body) == said(body, seed="1")
    others = [
        said(),
        said("return [-label for label in labels]"),
        said(size=4),
        said(names='("b",)'),
    ]
    assert len({said(body), *others}) == 5


def test_longtails_own_parts_are_known_by_their_settings():
    assert json_value(RandomHashing(n_meta_labels=8)) == {
        "type": "RandomHashing",
        "n_meta_labels": 8,
    }
    task = MetaLabelTask(
        clusters=RandomHashing(n_meta_labels=8), schedule=Schedule(epochs=2, learning_rate=0.1)
    )
    assert "code" not in json.dumps(json_value(task))


def test_functions_are_known_by_what_they_do():
    def scaled(factor):
        return lambda x: factor * x

    assert json_value(scaled(2)) == json_value(scaled(2))
    assert json_value(scaled(2)) != json_value(scaled(3))
    assert json_value(lambda x: x + 1) != json_value(lambda x: x - 1)


class Table:
    """As other libraries' tables and columns are: an array, if asked."""

    __slots__ = ("numbers",)

    def __init__(self, numbers):
        self.numbers = numbers

    def __array__(self, dtype=None, copy=None):
        return self.numbers

    def __repr__(self):
        return "a table"


@dataclass
class Learnt:
    """A part of somebody else's that makes more of what it is given."""

    given: InitVar[np.ndarray]
    vectors: np.ndarray = field(init=False)

    def __post_init__(self, given):
        self.vectors = given


def numbers(last):
    """Return more numbers than any library shows, of which the last but one is this."""
    return np.append(np.zeros(5000, np.float32), [last, 0]).astype(np.float32)


@pytest.mark.parametrize(
    "made",
    [
        torch.tensor,
        lambda given: torch.nn.Parameter(torch.tensor(given)),
        lambda given: torch.tensor(given).bfloat16(),
        lambda given: torch.tensor(given).to_sparse(),
        lambda given: {"vectors": given},
        lambda given: {7: torch.tensor(given)},
        lambda given: {7: np.zeros(3), 8: given, 9: np.zeros(3)},
        lambda given: MappingProxyType({"vectors": given}),
        Table,
        Learnt,
        lambda given: np.array([given, "other"], object),
    ],
)
def test_a_part_is_known_by_all_its_numbers(made):
    """Else training would go on from the checkpoint of another."""
    assert json_value(made(numbers(1))) == json_value(made(numbers(1)))
    assert json_value(made(numbers(1))) != json_value(made(numbers(2)))
    json.dumps(json_value(made(numbers(1))))


def test_a_network_that_a_part_holds_is_known_by_its_weights():
    network = torch.nn.Linear(100, 100)
    before = json_value(network)
    assert json_value(network) == before
    with torch.no_grad():
        network.weight[50, 50] += 1
    assert json_value(network) != before


@pytest.mark.parametrize("kind", [set, frozenset])
def test_a_set_is_the_same_in_every_process(kind):
    names = [f"name {i:02}" for i in range(20)]
    assert json_value(kind(names)) == names


def test_the_order_of_a_list_counts():
    assert json_value(["two", "one"]) == json_value(("two", "one")) == ["two", "one"]


@pytest.mark.parametrize("value", [float("inf"), np.float32("nan"), "a\udcff", (1, float("-inf"))])
def test_any_value_can_be_written(value):
    text = json.dumps(json_value(value), allow_nan=False)
    assert text.encode()


def test_a_part_may_hold_the_settings_of_a_recipe():
    """Such as whose modules it takes; what the recipe has learnt is none of them."""

    @dataclass
    class Part:
        settings: object

    recipe = Parabel(n_threads=1)
    before = json_value(Part(recipe))
    assert before != json_value(Part(Parabel(n_threads=1, cost=2.0)))
    recipe.fit(["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10)
    assert json_value(Part(recipe)) == before


def test_a_part_that_holds_itself_is_refused():
    @dataclass
    class Part:
        other: object = None

    part = Part()
    part.other = part
    with pytest.raises(InputError, match="A Part holds itself"):
        json_value(part)
