"""What a user can import, and the rules that every source file keeps."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import json
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import longtail

PACKAGE = Path(longtail.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
HOLDS_CODE = [path for path in SOURCES if path.name != "__main__.py"]
MOST_LINES = 500
MOST_STATEMENT_LINES = 60


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def short_name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def lines_of_statements(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count from the first statement behind the docstring to the end."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def is_for_types_alone(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def room_of(path: Path) -> str:
    """Name the folder of a module, or the module where it lies beside the folders."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def rooms_imported(path: Path) -> set[str]:
    """Name the other rooms that a module needs to be imported itself."""
    statements = ast.parse(path.read_text(encoding="utf-8")).body
    kept = [node for node in statements if not is_for_types_alone(node)]
    names = [node.module or "" for node in kept if isinstance(node, ast.ImportFrom)]
    for node in kept:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    own = [name.split(".") for name in names if name.startswith(f"{PACKAGE.name}.")]
    return {parts[1] for parts in own} - {room_of(path)}


def test_the_public_names_are_these():
    assert set(longtail.__all__) == {
        "Astec",
        "Astec3",
        "Dataset",
        "DeepXML",
        "LongtailClassifier",
        "Predictor",
        "TextVectorizer",
        "__version__",
        "evaluate",
        "load",
    }
    assert longtail.__all__ == sorted(longtail.__all__)


@pytest.mark.parametrize("name", longtail.__all__)
def test_every_public_name_is_there(name):
    assert getattr(longtail, name) is not None


def test_baselines_stay_in_their_own_module():
    assert {"Bonsai", "Parabel"} <= set(importlib.import_module("longtail.recipes.parabel").__all__)
    assert not any(hasattr(longtail, name) for name in ("Bonsai", "Parabel"))


def test_what_completion_offers_is_public_and_there():
    rooms = {"data", "errors", "metrics", "predictor", "progress", "recipes", "review"}
    code = "import longtail; longtail.progress.ProgressBar; print(*dir(longtail));"
    code += "longtail.recipes.names.recipe('parabel')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    offered = {name for name in run.stdout.split() if not name.startswith("_")}
    assert offered == rooms | {*longtail.__all__} - {"__version__"}


@pytest.mark.parametrize("method", ["predict", "predict_topk"])
def test_a_predictor_takes_for_type_checkers_what_an_estimator_takes(method):
    """Columns of tables and arrays, which work, are no `Sequence[str]`."""
    models = longtail.Predictor, longtail.LongtailClassifier
    taken = {inspect.signature(getattr(m, method)).parameters["X"].annotation for m in models}
    assert taken == {"Any"}


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Astecc'"):
        _ = longtail.Astecc


@pytest.mark.parametrize(
    "statement",
    [
        "import longtail",
        "from longtail import load",
        "import longtail.predictor, longtail.data, longtail.explain, longtail.cli.serve",
        "from longtail.serve import app; app('model')",
    ],
)
def test_serving_imports_neither_torch_nor_scikit_learn(statement):
    code = f"{statement}\nimport sys\nprint({{'torch', 'sklearn'}} & set(sys.modules) or 'neither')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "neither"


def test_the_version_is_that_of_the_distribution():
    assert longtail.__version__ == importlib.metadata.version("longtail")


def test_a_model_is_saved_where_only_the_source_is_there(monkeypatch, tmp_path):
    def nothing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata.Distribution, "from_name", nothing)
    model = longtail.LongtailClassifier(dimension=8, epochs=1, n_threads=1)
    model.fit(["red wine", "old car"] * 9, [["wine"], ["car"]] * 9).save(tmp_path / "model")
    body = json.loads((tmp_path / "model" / "manifest.json").read_text(encoding="utf-8"))
    assert body["longtail_version"] == longtail.__version__


def test_windows_is_told_that_it_is_not_supported():
    code = "import os; os.name = 'nt'; import longtail"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("ImportError: longtail runs on Linux and macOS")


@pytest.mark.parametrize("path", HOLDS_CODE, ids=short_name)
def test_every_module_says_what_it_exports_and_documents_it(path):
    module = importlib.import_module(module_name(path))
    assert module.__doc__, "the module has no docstring"
    if path.name == "__init__.py" and len(ast.parse(path.read_text()).body) == 1:
        return  # a room that only names itself
    assert hasattr(module, "__all__"), "the module has no __all__"
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            assert inspect.getdoc(value), f"{name} has no docstring"


@pytest.mark.parametrize("path", SOURCES, ids=short_name)
def test_no_source_file_breaks_the_rules(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {func.id for func in calls if isinstance(func, ast.Name)}
    assert not called & {"print", "exit", "quit", "eval", "exec"}
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert len(text.splitlines()) <= MOST_LINES
    long = {
        f.name: n for f in functions(tree) if (n := lines_of_statements(f)) > MOST_STATEMENT_LINES
    }
    assert not long, f"functions over {MOST_STATEMENT_LINES} lines, docstring aside: {long}"


def test_imports_between_rooms_go_one_way():
    needs: dict[str, set[str]] = {}
    for path in SOURCES:
        needs.setdefault(room_of(path), set()).update(rooms_imported(path))
    order = list(TopologicalSorter(needs).static_order())  # CycleError names the rooms of a cycle
    assert order.index("kernels") < order.index("blend") < order.index("compiled")
    assert order.index("compiled") < order.index("recipes") < order.index("cli")
