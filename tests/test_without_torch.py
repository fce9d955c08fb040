"""An installation without extras trains the default recipe and others, and says what it cannot."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

TORCH_FREE = ("longtail", "parabel", "bonsai", "dismec", "pfastrexml", "annexml")
# As where neither is installed: not to be imported, and not to be found.
WITHOUT = """
import importlib.util, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "sklearn"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
find_spec = importlib.util.find_spec
importlib.util.find_spec = (
    lambda name, *more: None if name in {"torch", "sklearn"} else find_spec(name, *more)
)
"""
TEXTS = ["red wine", "white wine", "fast car", "old car"] * 20
NAMES = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 20


def run_without(code, *arguments):
    command = [sys.executable, "-W", "error", "-c", WITHOUT + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    file = tmp_path_factory.mktemp("points") / "train.jsonl"
    lines = [json.dumps({"text": x, "labels": y}) for x, y in zip(TEXTS, NAMES, strict=True)]
    file.write_text("\n".join(lines))
    return file


def test_recipes_train_and_answer(points, tmp_path):
    """In one process, as each would load the compiled code anew."""
    code = """
from longtail.cli import main
train, folder, *recipes = sys.argv[1:]
for recipe in recipes:
    model = f"{folder}/{recipe}"
    main(["train", train, "--model", model, "--recipe", recipe, "--ignore-memory"])
    main(["predict", model, "--text", "an old wine", "--top-k", "1"])
assert "torch" not in sys.modules
"""
    done = run_without(code, points, tmp_path, *TORCH_FREE)
    assert done.returncode == 0, done.stderr
    answers = [line for line in done.stdout.splitlines() if line.endswith("\tdrink")]
    assert len(answers) == len(TORCH_FREE)


def test_an_estimator_says_what_is_missing():
    code = """
from longtail import LongtailClassifier
from longtail.errors import MissingExtraError
from longtail.recipes.names import recipe
for ask in (
    lambda: LongtailClassifier().predict(["a"]),
    lambda: LongtailClassifier(device="cuda").fit(["a", "b"], [["x"], ["y"]]),
    lambda: LongtailClassifier(energy_reranker="spen").fit(["a", "b"], [["x"], ["y"]]),
    lambda: recipe("astec"),
):
    try:
        ask()
    except (ValueError, MissingExtraError) as error:
        print(type(error).__name__, error)
"""
    done = run_without(code)
    assert done.returncode == 0, done.stderr
    not_fitted, *missing = done.stdout.splitlines()
    assert "is not fitted yet" in not_fitted
    assert len(missing) == 3
    for line, about in zip(missing, ["`device`", "`energy_reranker`", "'astec'"], strict=True):
        assert about in line
        assert "needs torch" in line or "trained by torch" in line
        assert "pip install 'longtail[train]'" in line


def test_help_leaves_out_what_needs_torch_and_asking_for_it_says_why():
    code = """
import inspect, pydoc
import longtail
from longtail.errors import MissingExtraError
print(len(longtail.__all__), "Astec" in dir(longtail))
pydoc.render_doc(longtail)
assert "load" in dict(inspect.getmembers(longtail))
asked = {}
exec("from longtail import *", asked)
print("load" in asked, "DeepXML" in asked)
for ask in ("longtail.Astec", "from longtail import Astec", "from longtail import load, DeepXML"):
    try:
        exec(ask)
    except MissingExtraError as error:
        print(error)
"""
    done = run_without(code)
    assert done.returncode == 0, done.stderr
    there, star, *errors = done.stdout.splitlines()
    assert (there, star) == ("7 False", "True False")
    advice = "trains models and needs torch. Install it with `pip install 'longtail[train]'`."
    names = ("Astec", "Astec", "DeepXML")
    assert errors == [f"longtail.{name} {advice}" for name in names]


def test_the_default_recipe_leaves_torch_alone_where_it_is_installed():
    code = (
        "import sys; from longtail import LongtailClassifier; "
        f"LongtailClassifier(dimension=16, epochs=1).fit({TEXTS!r}, {NAMES!r}); "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
