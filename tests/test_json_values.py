"""Settings as JSON values: what tells one training from another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from longtail.errors import InputError
from longtail.estimators.json_values import json_value
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


@pytest.mark.parametrize("value", [float("inf"), np.float32("nan"), "a\udcff", (1, float("-inf"))])
def test_any_value_can_be_written(value):
    text = json.dumps(json_value(value), allow_nan=False)
    assert text.encode()


def test_a_part_that_holds_itself_is_refused():
    @dataclass
    class Part:
        other: object = None

    part = Part()
    part.other = part
    with pytest.raises(InputError, match="A Part holds itself"):
        json_value(part)
