"""Each benchmark as a command: its help, its errors, and its table on a small set."""

from __future__ import annotations

import argparse
import bz2
import doctest
import gzip
import importlib
import json
import math
import os
import re
import socket
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from benchmarks import (
    ablation,
    copied_rows,
    few_points,
    imperfect_labels,
    named_in_texts,
    pair_tables,
    unlike_prose,
    varied_texts,
)
from benchmarks.command import run
from benchmarks.data_folder import drawn_points, read_both, read_train, texts_of
from benchmarks.debian_sets import descriptions
from benchmarks.set_files import read_part, read_parts, write_parts

import longtail
from longtail.errors import InputError
from longtail.estimators.limits import check_settings
from longtail.recipes.names import recipe
from shown_commands import commands_shown, options_of

pytestmark = pytest.mark.filterwarnings("ignore::longtail.data.InputWarning")

FOLDER = Path(__file__).parents[1] / "benchmarks"
TABLE = re.findall(r"^\| `python (.+?)` \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
COMMANDS = sorted({line.split()[1] for line in TABLE})
NEEDS_NOTHING = {"benchmarks.made_titles"}  # but a folder to write


class ParserSeenError(Exception):
    """Holds the parser that a benchmark has made."""


def main_of(command):
    """Return the function that a command runs, and its module."""
    is_package = (FOLDER.parent / command.replace(".", "/")).is_dir()
    module = importlib.import_module(f"{command}.__main__" if is_package else command)
    return module.main, module


def parser_made_by(main, monkeypatch):
    """Return the parser of a benchmark."""

    def seen(parser, *_):
        raise ParserSeenError(parser)

    with monkeypatch.context() as patched:
        patched.setattr(argparse.ArgumentParser, "parse_args", seen)
        with pytest.raises(ParserSeenError) as caught:
            main()
    return caught.value.args[0]


def told_by(command, monkeypatch, capsys, *arguments):
    """Run a benchmark; return its exit code, and what it says."""
    monkeypatch.setattr("sys.argv", [command, *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        run(main_of(command)[0])
    said = capsys.readouterr()
    return stopped.value.code, said.out, said.err


def test_the_readme_lists_all_benchmarks():
    runnable = [p for p in FOLDER.rglob("*.py") if "    run(main)" in p.read_text()]
    parts = [path.relative_to(FOLDER.parent).with_suffix("").parts for path in runnable]
    names = sorted(".".join(part for part in own if part != "__main__") for own in parts)
    assert names == COMMANDS
    assert all(line.startswith("-m benchmarks.") for line in TABLE)


WITH_EXAMPLES = [path for path in FOLDER.rglob("*.py") if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples(path):
    name = ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_a_command_and_tells_of_each_option(command, monkeypatch):
    main, module = main_of(command)
    parser = parser_made_by(main, monkeypatch)
    untold = [action.dest for action in parser._actions if not action.help]
    assert untold == []
    assert f"python -m {command} " in parser.format_help()
    assert parser.description == module.__doc__


def test_benchmarks_take_what_the_pages_show(monkeypatch):
    pages = [*FOLDER.parent.glob("docs/*.md"), *FOLDER.rglob("*.md"), *FOLDER.rglob("*.py")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    shown = commands_shown(text, "python -m benchmarks")
    helps = {
        command: parser_made_by(main_of(command)[0], monkeypatch).format_help()
        for command in {line.split()[2] for line in shown}
    }
    assert {*COMMANDS} <= {*helps}
    for line in shown:
        assert options_of(line) <= options_of(helps[line.split()[2]]), line


@pytest.mark.parametrize("command", sorted({*COMMANDS} - NEEDS_NOTHING))
def test_what_is_missing_is_told_in_one_sentence(command, monkeypatch, capsys, tmp_path):
    main, _ = main_of(command)
    needed = []
    for action in parser_made_by(main, monkeypatch)._actions:
        if action.required or action.dest == "data":
            value = next(iter(action.choices)) if action.choices else tmp_path / f"no-{action.dest}"
            needed += [*action.option_strings[:1], value]
    code, out, error = told_by(command, monkeypatch, capsys, *needed)
    assert (code, out) == (2, "")
    assert error.startswith("error: ")
    assert f"{tmp_path}/no-" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [("print('a table')", 1, ""), ("raise KeyboardInterrupt", 130, "Stopped.\n")],
)
def test_who_has_seen_enough_gets_no_traceback(body, code, said):
    reader, writer = os.pipe()
    os.close(reader)
    script = f"from benchmarks.command import run\ndef main():\n    {body}\nrun(main)"
    with os.fdopen(writer, "w") as left:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=left, stderr=subprocess.PIPE, text=True,
            check=False, cwd=FOLDER.parent,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, said)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with points whose texts tell all of their labels, the names of which are alike."""
    folder = tmp_path_factory.mktemp("benchmarks") / "data"
    kinds = [f"{a}{b}" for a, b in product(("ba", "de", "fi", "go"), ("ku", "lo", "me", "ni"))]
    points = [(f"{kind} {other} {i}", [kind, other]) for i in range(10)
              for kind, other in zip(kinds, kinds[1:] + kinds[:1], strict=True)]  # fmt: skip
    write_parts(folder, {"train": points, "test": points[::3]})
    rows = [f"{i % 4},{4 + i % 3} {i % 4}:1 {4 + i % 3}:1" for i in range(60)]
    for part in ("train", "test"):
        lines = "\n".join(["60 7 7", *rows, ""])
        (folder.parent / f"{part}.txt.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


@pytest.fixture(scope="module")
def model(data):
    """The folder of a model of these points."""
    train = longtail.Dataset.read(data / "train.jsonl.gz", labels_file=data / "labels.txt.gz")
    longtail.LongtailClassifier(dimension=16, epochs=2).fit_dataset(train).save(data / "model")
    return data / "model"


def rows_in(out):
    """Return the rows of the tables of an output, by their first two cells; all cells are sound."""
    lines = [line for line in out.splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    assert len({len(row) for row in table}) == 1, out
    kept = [row for row in table if set("".join(row)) != {"-"}][1:]
    assert kept, out
    for cell in (cell for row in kept for cell in row):
        assert cell.lower() not in {"nan", "inf", "none"}, out
    return kept


ON_TEXTS = {
    "held_out": ["--set", "dimension=16", "epochs=2"],
    "tail": [],
    "probabilities": ["--points", "100"],
    "found_labels": ["--known-labels"],
    "sources": [],
    "many_answers": [],
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.thorough] * (name == "tail")) for name in ON_TEXTS],
)
def test_what_asks_held_out_training_points(name, monkeypatch, capsys, data):
    places = (data / "train.jsonl.gz", "--labels", data / "labels.txt.gz")
    code, out, _ = told_by(f"benchmarks.{name}", monkeypatch, capsys, *places, *ON_TEXTS[name])
    assert code == 0
    found = [float(cell) for row in rows_in(out) for cell in row[1:] if cell]
    assert all(math.isfinite(value) for value in found)
    assert max(found) > 60


@pytest.mark.parametrize("name", ON_TEXTS)
def test_too_few_points_to_hold_a_tenth_out(name, monkeypatch, capsys, tmp_path):
    write_parts(tmp_path, {"train": [(f"red {i}", ["wine"]) for i in range(9)]})
    capsys.readouterr()
    places = (tmp_path / "train.jsonl.gz", "--labels", tmp_path / "labels.txt.gz")
    code, out, error = told_by(f"benchmarks.{name}", monkeypatch, capsys, *places)
    assert (code, out) == (2, "")
    assert "train.jsonl.gz has 9 points, of which a tenth is to be asked. Pass 10 or more" in error


def test_more_points_than_are_not_asked(monkeypatch, capsys, data):
    asked = (data / "train.jsonl.gz", "--points", 145)
    code, out, error = told_by("benchmarks.held_out", monkeypatch, capsys, *asked)
    assert (code, out) == (2, "")
    assert "--points 145 are more than the 144 that are not asked" in error


@pytest.mark.parametrize("name", ["linear_svc", "energy"])
def test_texts_where_features_are_needed(name, monkeypatch, capsys, data):
    code, _, error = told_by(f"benchmarks.{name}", monkeypatch, capsys, "--data", data)
    assert code == 2
    assert error.startswith("error: This benchmark needs ready-made features.")


def test_a_setting_that_not_all_models_have(monkeypatch, capsys, data):
    asked = ("--data", data.parent, "--set", "conditional=false")
    code, out, error = told_by("benchmarks.energy", monkeypatch, capsys, *asked)
    assert (code, out) == (2, "")
    assert error.startswith("error: The recipe icnn has no setting 'conditional'.")


def test_a_training_that_fails_says_why(monkeypatch, capsys, tmp_path):
    write_parts(tmp_path, {"train": [("red", ["wine"])] * 3})
    places = (tmp_path / "train.jsonl.gz", "--labels", tmp_path / "labels.txt.gz")
    code, _, error = told_by("benchmarks.scaling", monkeypatch, capsys, *places)
    assert code == 2
    assert error.startswith("error: longtail.errors.InputError: The training data has no points.")
    assert error.count("\n") == 1


def test_descriptions_that_are_compressed_otherwise(tmp_path):
    (tmp_path / "Translation-ja.bz2").write_bytes(bz2.compress(b"Package: a"))
    with pytest.raises(InputError, match=r"Translation-ja.bz2 is not compressed by xz"):
        descriptions(tmp_path / "Translation-ja.bz2")


def test_a_folder_of_data_is_read_in_one_way(data, tmp_path):
    train, test = read_both(data)
    assert (train.n_points, train.label_space) == (160, test.label_space)
    again, others = drawn_points(data, 20, 7, dev=True)
    assert (again.n_points, others.n_points) == (20, 7)
    with pytest.raises(InputError, match=r"has no file train\.\*\. Name a folder"):
        read_train(tmp_path)
    for name in ("train.txt", "train.csv"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"one file train\.\*, but holds train\.csv, train\.txt"):
        read_train(tmp_path)
    with pytest.raises(InputError, match="needs points with texts"):
        texts_of(read_train(data.parent))


def test_recipes_beside_each_other(monkeypatch, capsys, data):
    features = ("--data", data.parent)
    classics = (*features, "--recipes", "parabel", "dismec", "--set", "n_threads=1")
    code, out, _ = told_by("benchmarks.classics", monkeypatch, capsys, *classics)
    assert code == 0
    assert [(row[0], float(row[1]) > 90) for row in rows_in(out)] == [
        ("parabel", True),
        ("dismec", True),
    ]
    code, out, _ = told_by("benchmarks.linear_svc", monkeypatch, capsys, *features, "--every", 2)
    assert code == 0
    assert "4 labels, 60 training points" in out
    assert [float(row[1]) for row in rows_in(out)] == [100.0, 100.0]
    epochs = ("unary_epochs=30", "energy_epochs=1", "joint_epochs=1", "dimension=16")
    energy = (*features, "--seeds", 0, 1, "--models", "spen", "icnn", "--set", *epochs)
    code, out, _ = told_by("benchmarks.energy", monkeypatch, capsys, *energy)
    assert code == 0
    assert [row[0] for row in rows_in(out)] == ["spen", "icnn"]
    assert all(float(row[2]) > 90 for row in rows_in(out))


@pytest.mark.parametrize("test", [["test.jsonl.gz"], []])
def test_parts_of_a_recipe(test, monkeypatch, capsys, data):
    asked = [data / name for name in test]
    places = (data / "train.jsonl.gz", *asked, "--labels", data / "labels.txt.gz")
    names = ["in one epoch", "without near points"]
    code, out, _ = told_by(
        "benchmarks.ablation", monkeypatch, capsys, *places, "--variants", *names
    )
    assert code == 0
    assert [row[0] for row in rows_in(out)] == names
    assert all(float(row[1]) > 60 for row in rows_in(out))


def test_a_test_set_leaves_no_tenth_to_ask(monkeypatch, capsys, data):
    asked = (data / "train.jsonl.gz", data / "test.jsonl.gz", "--known-labels")
    code, _, error = told_by("benchmarks.ablation", monkeypatch, capsys, *asked)
    assert code == 2
    assert error.startswith("error: --points and --known-labels belong to the tenth")


def test_all_variants_are_settings_that_a_recipe_can_have():
    for name, variants in ablation.VARIANTS.items():
        for settings in variants.values():
            check_settings(recipe(name)(**settings))


@pytest.mark.parametrize(
    ("command", "number"),
    [
        ("latency model test --n-texts", "0"),
        ("serving model test --n-texts", "0"),
        ("serving model test --seconds", "nan"),
        ("made_titles folder --labels", "0"),
        ("new_labels --data folder --examples", "1.5"),
        ("few_points data out --points 100", "-1"),
    ],
)
def test_a_count_that_is_none_is_refused_by_name(command, number, monkeypatch, capsys):
    name, *arguments = command.split()
    option = next(one for one in arguments if one.startswith("--") and one != "--data")
    code, out, error = told_by(f"benchmarks.{name}", monkeypatch, capsys, *arguments, number)
    assert (code, out) == (2, "")
    assert f"error: argument {option}: must be " in error
    assert f"over 0, got '{number}'" in error


@pytest.mark.parametrize("held_to", [(), ("--allowed", 3)])
def test_time_of_a_text(held_to, monkeypatch, capsys, data, model):
    asked = (model, data / "test.jsonl.gz", "--n-texts", 12, *held_to)
    code, out, _ = told_by("benchmarks.latency", monkeypatch, capsys, *asked)
    assert code == 0
    ((n_texts, *milliseconds),) = rows_in(out)
    assert n_texts == "12"
    assert 0 < float(milliseconds[0]) <= float(milliseconds[-1])


def test_more_labels_than_a_model_has(monkeypatch, capsys, data, model):
    asked = (model, data / "test.jsonl.gz", "--allowed", 1000)
    code, _, error = told_by("benchmarks.latency", monkeypatch, capsys, *asked)
    assert (code, error) == (2, "error: The model has 16 labels. Use no more for --allowed.\n")


def test_a_server_that_does_not_start_says_why(monkeypatch, capsys, data):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    asked = (data / "no-model", data / "test.jsonl.gz", "--port", port)
    code, out, error = told_by("benchmarks.serving", monkeypatch, capsys, *asked)
    assert (code, out) == (2, "")
    assert "The server did not start. There is no model folder" in error


def test_a_port_that_another_server_has_is_refused(monkeypatch, capsys, data, model):
    with socket.create_server(("127.0.0.1", 0)) as other:
        asked = (model, data / "test.jsonl.gz", "--port", other.getsockname()[1])
        code, _, error = told_by("benchmarks.serving", monkeypatch, capsys, *asked)
    assert code == 2
    assert "already in use" in error


@pytest.mark.thorough
def test_labels_with_texts(monkeypatch, capsys, data):
    more = ("--recipes", "ngame", "--set", "encoder_epochs=2", "dimension=16", "--threads", 1)
    code, out, _ = told_by("benchmarks.label_text", monkeypatch, capsys, "--data", data, *more)
    assert code == 0
    assert {row[0] for row in rows_in(out)} == {"ngame"}
    assert all(len(row) == 8 for row in rows_in(out))
    unseen = (*more, "--unseen", 3, "--reversed-aside")
    code, out, _ = told_by("benchmarks.label_text", monkeypatch, capsys, "--data", data, *unseen)
    assert code == 0
    assert "3 unseen of 16 labels" in out
    assert all(len(row) == 4 for row in rows_in(out))
    code, _, error = told_by(
        "benchmarks.label_text", monkeypatch, capsys, "--data", data, "--unseen", 17
    )
    assert (code, error) == (2, "error: The test set has 16 labels. Use fewer for --unseen.\n")


def test_labels_added_afterwards(monkeypatch, capsys, data, tmp_path):
    kept = ("--data", data, "--models", tmp_path)
    code, out, _ = told_by("benchmarks.new_labels", monkeypatch, capsys, *kept, "--labels", 2)
    assert code == 0
    recall = {row[0]: float(row[1]) for row in rows_in(out)}
    assert recall["not added"] == 0
    assert recall["from both"] > 50
    code, _, error = told_by("benchmarks.new_labels", monkeypatch, capsys, "--data", data)
    assert code == 2
    assert "16 labels have points enough to be taken out, 500 are wanted" in error
    other = (*kept, "--recipe", "parabel")
    code, out, error = told_by("benchmarks.new_labels", monkeypatch, capsys, *other)
    assert (code, out) == (2, "")
    assert "There is no recipe for new labels 'parabel'. There are longtail, dexa" in error
    _, _, error = told_by("benchmarks.new_labels", monkeypatch, capsys, *kept, "--labels", 3)
    assert f"The models in {tmp_path} were made with --labels 2, not 3. Ask for the same" in error
    (tmp_path / "arguments.json").unlink()
    _, _, error = told_by("benchmarks.new_labels", monkeypatch, capsys, *kept, "--labels", 2)
    assert "does not say by arguments.json what made its models" in error


def test_x_transformer_beside_others(monkeypatch, capsys, data):
    command, settings = "benchmarks.peers.xtransformer", ("--set", "epochs=2", "dimension=16")
    asked = ("--data", data, "--recipes", "parabel", "--negatives", "both", *settings)
    code, out, _ = told_by(command, monkeypatch, capsys, *asked)
    assert code == 0
    assert [row[0] for row in rows_in(out)] == ["parabel", "X-Transformer (bag)"]
    assert all(float(row[4]) > 60 for row in rows_in(out))
    code, _, error = told_by(command, monkeypatch, capsys, "--data", data, "--dev")
    assert code == 2
    assert "No training points are left for --dev. Use fewer than 160." in error


def test_x_transformer_s_rival_that_cannot_run_says_why(monkeypatch, capsys, data, tmp_path):
    command = "benchmarks.peers.xtransformer"
    monkeypatch.setattr(f"{command}.python_of", lambda *_: tmp_path / "no-python")
    asked = ("--data", data, "--encoder", "--environments", tmp_path)
    code, _, error = told_by(command, monkeypatch, capsys, *asked)
    assert code == 2
    assert error == f"error: {tmp_path / 'no-python'} cannot be run: No such file or directory\n"


def test_reversed_pairs(monkeypatch, capsys, tmp_path):
    (tmp_path / "labels.txt").write_text("ox\ncow\nfly\n")
    for part, rows in (("train", [("ox : it", [1])]), ("test", [("cow : it", [0]), ("fly", [0])])):
        lines = [json.dumps({"text": text, "labels": labels}) for text, labels in rows]
        (tmp_path / f"{part}.jsonl").write_text("\n".join(lines))
    places = [tmp_path / name for name in ("train.jsonl", "test.jsonl", "filter.txt")]
    code, out, _ = told_by("benchmarks.reciprocal_pairs", monkeypatch, capsys, *places, "--labels",
                           tmp_path / "labels.txt")  # fmt: skip
    assert (code, places[2].read_text()) == (0, "0 0\n")
    assert out.startswith("50.0% of 2 test labels are reciprocal.")


def test_sets_of_what_registries_have_said(monkeypatch, capsys, tmp_path):
    said = tmp_path / "said.jsonl"
    npm = [{"name": f"p{i}", "description": f"Reads\n{i}", "keywords": "xml; Data",
            "dependencies": {"b": "1", "a": "2"}, "devDependencies": None}
           for i in range(5)]  # fmt: skip
    pypi = [{"name": f"p{i}", "summary": f"Reads {i}", "classifiers": ["A :: B"],
             "keywords": "XML Data", "requires_dist": ["Some_Thing>=1", "b; extra == 'x'"]}
            for i in range(5)]  # fmt: skip
    (tmp_path / "names.json").write_text(json.dumps([one["name"] for one in npm]))
    (tmp_path / "names.html").write_text("".join(f'<a href="/simple/p{i}/">' for i in range(5)))
    for registry, kept, names in (("npm", npm, "names.json"), ("pypi", pypi, "names.html")):
        said.write_text("".join(json.dumps(one) + "\n" for one in kept))
        asked = (tmp_path, "--names", tmp_path / names, "--metadata", said)
        assert told_by(f"benchmarks.{registry}_sets", monkeypatch, capsys, *asked)[0] == 0
    found = {
        path.parent.name: {
            label for _, labels in read_part(path.parent, "train") for label in labels
        }
        for path in tmp_path.glob("*/train.jsonl.gz")
    }
    assert found == {
        "npm-keywords": {"xml", "data"},
        "npm-depends": {"a", "b"},
        "npm-dev": set(),
        "pypi-classifiers": {"A :: B"},
        "pypi-depends": {"some-thing"},
        "pypi-keywords": {"xml", "data"},
    }


class TestSetsThatAreCut:
    """Of a set that is there; that of the tests is smaller than what the commands draw."""

    @pytest.mark.parametrize(
        "command",
        [
            "copied_rows",
            "imperfect_labels",
            "long_strings",
            "pair_tables",
            "unlike_prose",
            "varied_texts",
        ],
    )
    def test_a_set_that_is_too_small(self, command, monkeypatch, capsys, data, tmp_path):
        code, out, error = told_by(f"benchmarks.{command}", monkeypatch, capsys, data, tmp_path)
        assert (code, out) == (2, "")
        assert "has 160 points in train.jsonl.gz" in error

    @pytest.mark.parametrize("command", ["few_points", "named_in_texts"])
    def test_more_points_than_there_are(self, command, monkeypatch, capsys, data, tmp_path):
        code, _, error = told_by(f"benchmarks.{command}", monkeypatch, capsys, data, tmp_path)
        assert code == 2
        assert "are more than 160." in error

    def test_few_points(self, monkeypatch, capsys, data, tmp_path):
        monkeypatch.setattr(few_points, "N_TEST", 20)
        asked = (data, tmp_path, "--points", 30, 140)
        assert told_by("benchmarks.few_points", monkeypatch, capsys, *asked)[0] == 0
        few, many = (read_parts(tmp_path / n, int(n), 20) for n in ("30", "140"))
        assert few[1] == many[1]
        assert few[0] == many[0][:30]
        assert len(many[0]) == 140

    def test_texts_with_the_names_of_their_labels(self, monkeypatch, capsys, data, tmp_path):
        monkeypatch.setattr(named_in_texts, "N_TEST", 20)
        asked = (data, tmp_path, "--points", 30, "--other-words", 4)
        assert told_by("benchmarks.named_in_texts", monkeypatch, capsys, *asked)[0] == 0
        for text, labels in read_parts(tmp_path, 30, 20)[0]:
            assert set(labels) <= set(text.split())
            assert len(text.split()) == 4 + len(labels)

    @pytest.mark.thorough
    def test_statements_and_typos(self, monkeypatch, capsys, data, tmp_path):
        for name, value in {"N_TRAIN": 100, "N_TEST": 20, "LEAST_POINTS": 1}.items():
            monkeypatch.setattr(unlike_prose, name, value)
        asked = (data, tmp_path)
        assert told_by("benchmarks.unlike_prose", monkeypatch, capsys, *asked)[0] == 0
        for text, labels in read_parts(tmp_path / "statements", 100, 20)[0]:
            assert labels != ["Return"] or text.startswith("return")
        texts = {text for part in read_parts(data, 100, 20) for text, _ in part}
        typed = read_parts(tmp_path / "typos", 90, 10)[0]
        assert sum(text in texts for text, _ in typed) < len(typed) / 2

    def test_labels_that_are_spoilt(self, monkeypatch, capsys, data, tmp_path):
        monkeypatch.setattr(imperfect_labels, "N_TRAIN", 100)
        monkeypatch.setattr(imperfect_labels, "N_TEST", 20)
        asked = (data, tmp_path)
        assert told_by("benchmarks.imperfect_labels", monkeypatch, capsys, *asked)[0] == 0
        right, test = (dict(part) for part in read_parts(tmp_path / "right", 100, 20))
        for name, least, most in (("wrong", 5, 40), ("very-wrong", 25, 75)):
            spoilt, asked_of = read_parts(tmp_path / name, 100, 20)
            assert dict(asked_of) == test
            assert least < sum(right[text] != sorted(labels) for text, labels in spoilt) < most
        for name, least, most in (("missing", 80, 98), ("many-missing", 45, 80)):
            assert least < len(read_parts(tmp_path / name, 20, 20)[0]) < most
        without = read_parts(tmp_path / "unlabelled", 100, 20)[0]
        assert 30 < sum(not labels for _, labels in without) < 70
        for part in read_parts(tmp_path / "everywhere", 100, 20):
            assert sum("whatever it is" in labels for _, labels in part) > 0.8 * len(part)
        for _, labels in read_parts(tmp_path / "synonyms", 100, 20)[0]:
            assert all(label.endswith((" group", " kind")) for label in labels)
        for name in ("codes", "swapped"):
            others, _ = read_parts(tmp_path / name, 100, 20)
            assert [len(labels) for _, labels in others] == [len(own) for own in right.values()]

    def test_variants_of_texts(self, monkeypatch, capsys, data, tmp_path):
        monkeypatch.setattr(varied_texts, "N_TRAIN", 30)
        monkeypatch.setattr(varied_texts, "N_TEST", 20)
        assert told_by("benchmarks.varied_texts", monkeypatch, capsys, data, tmp_path)[0] == 0
        once, _ = read_parts(tmp_path / "once", 30, 20)
        order, words = (read_parts(tmp_path / name, 300, 20)[0] for name in ("order", "words"))
        turned = [" ".join(sorted(text.split())) for text, _ in order]
        assert sorted(set(turned)) == sorted({" ".join(sorted(text.split())) for text, _ in once})
        assert len({text for text, _ in words}) > 100
        assert sorted(map(str, (labels for _, labels in words))) == sorted(
            str(labels) for _, labels in once * 10
        )

    def test_copies_and_pairs(self, monkeypatch, capsys, data, tmp_path):
        for module in (copied_rows, pair_tables):
            monkeypatch.setattr(module, "N_TRAIN", 100)
            monkeypatch.setattr(module, "N_TEST", 20)
            asked = (data, tmp_path)
            assert told_by(module.__name__, monkeypatch, capsys, *asked)[0] == 0
        five, _ = read_parts(tmp_path / "five", 500, 20)
        assert sorted(five)[::5] == sorted(read_parts(tmp_path / "once", 100, 20)[0])
        pairs, _ = read_parts(tmp_path / "pairs", 200, 20)
        assert {len(labels) for _, labels in pairs} == {1}
        assert len(pairs) == 200
