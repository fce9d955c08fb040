"""Runs the Python snippets of the README and of the pages in docs/ as tests."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser


def _enter_empty_folder(namespace: dict[str, Any]) -> None:
    """Give the snippets of a page a folder of their own to write to."""
    namespace["_came_from"] = Path.cwd()
    os.chdir(tempfile.mkdtemp(prefix="longtail-docs-"))


def _leave_folder(namespace: dict[str, Any]) -> None:
    """Remove what the snippets wrote."""
    folder = Path.cwd()
    os.chdir(namespace["_came_from"])
    shutil.rmtree(folder)


# Until all tests are collected, as good as nothing is thrown away: a fifth of that time.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for no garbage among what is imported by now, for a tenth of the tests' time."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # and rarely among what comes


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "docs/*.md"],
    setup=_enter_empty_folder,
    teardown=_leave_folder,
).pytest()
