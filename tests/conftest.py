"""Small models that several test files ask."""

from __future__ import annotations

import gc
import json
import math

import pytest

from command_line import SMALL, SMALL_ASTEC, rows, write_lines
from longtail import LongtailClassifier, load
from longtail.cli import main
from longtail.kernels import code_cache

# Whether code has to be compiled depends on what ran before: tests of output must not.
code_cache.SECONDS_IN_SILENCE = math.inf
HOSTILE = '<img src=x onerror="window.hacked=1">'


@pytest.fixture(scope="module", autouse=True)
def _own_garbage():
    """Look for garbage after the last test of a file, which is then told what it left open.

    A file or a socket that is left open in a circle of references would fail whichever test Python
    looks for garbage in: one of those that compile, such as `test_products_of_vectors`.
    """
    yield
    gc.collect()


@pytest.fixture(scope="session")
def text_model_path(tmp_path_factory):
    """The folder of a default model of drinks and cars."""
    texts, labels = [], []
    for adjective in ("red", "white", "dry", "sweet"):
        texts.append(f"{adjective} wine in a glass")
        labels.append(
            ["drink", adjective, HOSTILE] if adjective == "sweet" else ["drink", adjective]
        )
    for adjective in ("fast", "old", "new", "small"):
        texts.append(f"{adjective} car on a road")
        labels.append(["vehicle", adjective])
    model = LongtailClassifier(dimension=16, epochs=3, batch_size=64, held_out=0.5)
    path = tmp_path_factory.mktemp("served") / "model"
    model.fit(texts * 5, labels * 5).save(path)
    return path


@pytest.fixture(scope="module", params=["as trained", "int8"])
def model(text_model_path, request):
    """The default model of drinks and cars, as it was trained and in whole numbers."""
    own = load(text_model_path)
    return own if request.param == "as trained" else own.compressed("int8")


@pytest.fixture(scope="module")
def browser():
    """Chromium, without a window."""
    from chromium import CHROMIUM, sync_api

    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder with training and test files, two models of texts and one of features."""
    folder = tmp_path_factory.mktemp("cli")
    lines = [json.dumps(row) for row in rows()]
    write_lines(folder / "train.jsonl", lines * 5)
    write_lines(folder / "test.jsonl", lines)
    points = [f"{i % 2},{2 + i % 3} {i % 2}:1 {2 + i % 3}:0.5" for i in range(60)]
    write_lines(folder / "sparse.txt", ["60 5 5", *points])
    assert main(["train", f"{folder}/train.jsonl", "--model", f"{folder}/model", *SMALL]) == 0
    assert main(["train", f"{folder}/train.jsonl", "--model", f"{folder}/astec", *SMALL_ASTEC]) == 0
    assert main(["train", f"{folder}/sparse.txt", "--model", f"{folder}/sparse", *SMALL]) == 0
    for command in (
        ["predict", f"{folder}/model", "--text", "wine"],
        ["inspect", f"{folder}/model"],
    ):
        assert main(command) == 0  # else other processes would compile, and say so
    return folder
