"""The rooms of many files say in their docstrings what each is for."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest


@pytest.mark.parametrize("room", ["data", "kernels", "report", "training"])
def test_every_file_is_listed_once(room):
    package = import_module(f"longtail.{room}")
    files = [path.stem for path in Path(package.__file__).parent.glob("*.py")]
    listed = re.findall(r"`(\w+)`", package.__doc__)
    assert sorted(listed) == sorted(set(files) - {"__init__"})
