"""What the pages claim is true: links, names in the code, commands. conftest.py runs snippets."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from itertools import chain, takewhile
from pathlib import Path

import pytest
from benchmarks.paper.__main__ import OF_IMAGES

from longtail.cli import main
from longtail.cli.commands import COMMANDS
from longtail.cli.settings import parse_settings, setting_names
from longtail.recipes.names import DEFAULT_RECIPE, RECIPES, recipe
from shown_commands import commands_shown, options_of

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "longtail"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
]


def page_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def defined_names(path: Path) -> set[str]:
    """Return the functions and classes of a module, methods as ``Class.method``."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{f.name}" for f in node.body if isinstance(f, ast.FunctionDef)}
    return names


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def places_in_the_code(page: Path) -> list[tuple[str, str]]:
    """Return the files and names that a page points to, as in ``data/vectorizer.py:Vectorizer``."""
    return re.findall(r"`([a-z_0-9/]+\.py):([\w.]+)`", page.read_text(encoding="utf-8"))


def test_the_architecture_names_places_of_the_paper():
    assert len(places_in_the_code(ROOT / "docs" / "architecture.md")) > 25


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_name_is_where_the_page_says(page):
    missing = [
        f"{file}:{name}"
        for file, name in places_in_the_code(page)
        if name not in defined_names((ROOT if file.startswith("tests/") else PACKAGE) / file)
    ]
    assert not missing


OF_OTHERS = {  # of scikit-learn, napkinXC, nginx, numba, pip and the Repository
    *("average_precision", "cross_val_predict", "cross_val_score", "partial_fit"),
    *("ens_on_the_trot", "plt_ensemble", "plt_final", "plt_jmlr", "keepalive_timeout"),
    *("NUMBA_CPU_NAME", "PIP_EXTRA_INDEX_URL", "trn_filter_labels"),
}
TODAY = [page for page in PAGES if page.name != "CHANGELOG.md"]
NAME = re.compile(r"\b(?:n|[A-Za-z]{2,})(?:_[A-Za-z0-9]{2,})+\b")  # and no `w_l` of a formula


@functools.cache
def names_in_the_code() -> frozenset[str]:
    """Return the names in modules and in their strings, docstrings aside, and those of tests."""
    names = set()
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        names.update(NAME.findall(path.as_posix()))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            names.update(str(getattr(node, field, "")) for field in ("id", "attr", "name", "arg"))
            if isinstance(node, ast.Constant) and id(node) not in docstrings:
                names.update(NAME.findall(str(node.value)))
    for path in (ROOT / "tests").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        names |= {path.stem, *re.findall(r"^ *(?:def )?(\w+)(?: = |\()", text, re.MULTILINE)}
    return frozenset(names)


def code_in(page: Path) -> str:
    """Return what stands between backticks in a page's lines, without its blocks of code."""
    text = re.sub(
        r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return "\n".join(re.findall(r"`([^`]+)`", text))


@pytest.mark.parametrize("page", TODAY, ids=page_name)
def test_every_name_that_a_page_tells_of_is_in_the_code(page):
    told = set(NAME.findall(code_in(page)))
    assert told
    assert told - OF_OTHERS <= names_in_the_code()


@functools.cache
def members() -> dict[str, set[str]]:
    """Return what each class of the library holds, or has from its bases, and their names."""
    names: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                names.setdefault(node.name, set()).update(bases, _held_by(node))
    return names


def _held_by(kind: ast.ClassDef) -> set[str]:
    defined = {node.name for node in kind.body if isinstance(node, ast.FunctionDef)}
    stored = [node for node in ast.walk(kind) if isinstance(node, ast.Name | ast.Attribute)]
    stored = [node for node in stored if isinstance(node.ctx, ast.Store)]
    return defined | {node.id if isinstance(node, ast.Name) else node.attr for node in stored}


def has(kind: str, name: str) -> bool:
    held = members().get(kind, set())
    return name in held or any(has(base, name) for base in held & {*members()} - {kind})


def test_what_pages_say_that_classes_have():
    assert has("NGAME", "epochs") is False
    assert has("NGAME", "fit")
    told = {
        (*pair, page_name(page))
        for page in TODAY
        for pair in re.findall(r"\b([A-Z]\w+)\.([a-z]\w*)", page.read_text(encoding="utf-8"))
        if pair[0] in members()
    }
    assert len(told) > 30
    assert [one for one in sorted(told) if not has(*one[:2])] == []


@pytest.mark.parametrize("page", TODAY, ids=page_name)
def test_recipes_take_the_settings_that_pages_show(page):
    text = page.read_text(encoding="utf-8")
    for program in ("longtail train", "python -m benchmarks", "--set"):
        for shown in commands_shown(text, program):
            said = " ".join(re.findall(r"--recipes? ([a-z0-9 -]+?)(?= --|$)", shown))
            by_default = {DEFAULT_RECIPE} if program == "longtail train" else {*RECIPES}
            named = [recipe(name) for name in {*said.split()} & {*RECIPES} or by_default]
            for pair in takewhile(lambda word: "=" in word, shown.partition("--set ")[2].split()):
                key, _, value = pair.partition("=")
                takers = [one for one in named if key in setting_names(one)]
                assert takers or key in {"KEY", *OF_IMAGES}, shown
                if takers and value == value.lower() and "benchmarks.paper" not in shown:
                    parse_settings(takers[0], [pair])


def protocols(path: Path) -> dict[str, int]:
    """Return how many methods each Protocol of a module has, properties aside."""
    classes = [n for n in ast.parse(path.read_text(encoding="utf-8")).body if is_protocol(n)]
    return {
        one.name: sum(isinstance(f, ast.FunctionDef) and not f.decorator_list for f in one.body)
        for one in classes
    }


def is_protocol(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases)


def test_every_seam_is_told_of_and_has_three_methods_at_most():
    pages = (ROOT / "docs" / name for name in ("architecture.md", "your-own-part.md"))
    told = "".join(page.read_text(encoding="utf-8") for page in pages)
    for path in PACKAGE.rglob("*.py"):
        for name, n_methods in protocols(path).items():
            is_own = name.startswith("_")  # of a module that is alone with it
            assert is_own or re.search(rf"\b{name}\b", told), f"{path}: {name}"
            assert n_methods <= 3, f"{path}: {name}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_make_commands_exist(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(
        re.findall(r"\bmake ([a-z]+)\b(?=`|\s+#)", (ROOT / page).read_text(encoding="utf-8"))
    )
    assert {"test"} < named <= targets


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_command_line_takes_what_the_pages_show(page, capsys):
    known = {}
    for shown in commands_shown(page.read_text(encoding="utf-8"), "longtail "):
        _, command, first, *_ = [*shown.split(), ""]
        if command not in COMMANDS:
            continue  # a sentence
        words = (command, *({first} & {"add", "remove"}))
        if words not in known:
            with pytest.raises(SystemExit) as stopped:
                main([*words, "--help"])
            assert stopped.value.code == 0
            known[words] = options_of(capsys.readouterr().out)
        assert options_of(shown) - {"--help"} <= known[words], shown
    assert known or page.name != "README.md"


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    del extras["tensorboard"]  # which `make install` leaves out
    required = [*project["dependencies"], *chain(*extras.values())]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.partition("==")[0].lower() for line in lines if "==" in line}
    assert {re.split(r"[<>=~! \[;]", name)[0].lower() for name in required} <= pinned
