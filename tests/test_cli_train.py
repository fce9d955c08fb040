"""`longtail train`: what it tells and keeps, bad files, and going on after a stop."""

from __future__ import annotations

import errno
import gzip
import json
import subprocess
import sys
from dataclasses import fields

import pytest

from command_line import SMALL, SMALL_ASTEC, files_of, refused, run, write_lines
from longtail import model_folder
from longtail.cli.settings import parse_settings, setting_names, settings_help
from longtail.errors import ModelFolderError
from longtail.progress import ProgressBar
from longtail.recipes.names import RECIPES, recipe
from longtail.training.checkpoints import CheckpointFolder


def test_training_tells_statistics_estimate_progress_and_what_to_do_next(place, capsys, tmp_path):
    model = tmp_path / "model"
    code, out, err = run(capsys, "train", place / "train.jsonl", "--model", model, *SMALL)
    assert code == 0
    assert "40 points, 10 labels, 2.00 labels a point, 5.0 words a text." in err
    assert "Training will take about" in err
    assert "of memory" in err
    lines = err.splitlines()
    for scope, epochs in (("", "3 of 3"), ("again: ", "2 of 2")):
        start = f"{scope}shared space: epoch {epochs}, loss"
        assert any(line.startswith(start) for line in lines)
        assert f"{scope}search ... 0 s" in lines
        assert any(line.startswith(f"{scope}linear ... ") for line in lines)
    assert any(line.startswith("blend ... ") for line in lines)
    assert f"longtail predict {model} --text" in out
    assert f"longtail evaluate {model} TEST" in out
    assert sorted(tmp_path.iterdir()) == [model]  # the checkpoints are gone


def test_peak_memory_is_the_same_wherever_it_is_said(place, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.estimators.estimator.peak_memory", lambda: 586_200_000)
    model = tmp_path / "model"
    code, out, _ = run(capsys, "train", place / "train.jsonl", "--model", model, *SMALL)
    assert code == 0
    assert "at most 586.0 MB of memory" in out
    assert json.loads((model / "training.json").read_text())["peak_memory_mb"] == 586
    assert "at most 586.0 MB of memory" in run(capsys, "inspect", model)[1]


def test_the_model_keeps_how_it_was_made(place):
    training = json.loads((place / "model" / "training.json").read_text())
    assert training["recipe"] == "longtail"
    assert training["settings"]["dimension"] == 16
    assert training["seed"] == 0
    assert training["peak_memory_mb"] > 10
    assert {entry["stage"] for entry in training["history"]} == {
        "shared space",
        "again: shared space",
    }
    stages = [stage for stage in training["stages"] if stage != "blend"]
    assert stages == [
        "tokens",
        "shared space",
        "search",
        "linear",
        "evidence",
        "again: shared space",
        "again: search",
        "again: linear",
    ]
    assert "blend" in training["stages"]  # the last, or of one thread behind the evidence


def test_the_seed_decides_the_model(place, capsys, tmp_path):
    for name, seed in (("a", 0), ("b", 1)):
        command = ("train", place / "train.jsonl", "--model", tmp_path / name, "--seed", seed)
        assert run(capsys, *command, *SMALL)[0] == 0
    assert files_of(tmp_path / "a") == files_of(place / "model")
    assert files_of(tmp_path / "b") != files_of(place / "model")


def test_a_labels_file_names_the_ids(capsys, tmp_path):
    data = [json.dumps({"text": "red wine", "labels": [1]})] * 4
    data += [json.dumps({"text": "fast car", "labels": [0]})] * 4
    train = write_lines(tmp_path / "train.jsonl", data)
    labels = write_lines(tmp_path / "labels.txt", ["vehicle", "drink"])
    model = tmp_path / "model"
    assert run(capsys, "train", train, "--labels", labels, "--model", model, *SMALL)[0] == 0
    out = run(capsys, "predict", model, "--text", "wine", "--top-k", 1)[1]
    assert out.split("\t")[1] == "drink\n"
    # Ids of a test file are the model's, with and without the labels file.
    plain = run(capsys, "evaluate", model, train)[1].splitlines()[:-1]
    named = run(capsys, "evaluate", model, train, "--labels", labels)[1].splitlines()[:-1]
    assert plain == named
    assert plain[1].split() == ["P", "100.00", "33.33", "20.00"]
    # With a labels file of another order, names decide.
    other = write_lines(tmp_path / "other.txt", ["drink", "vehicle", "animal"])
    swapped = [line.replace("[1]", "[2]") for line in data]
    swapped = [line.replace("[0]", "[1]").replace("[2]", "[0]") for line in swapped]
    test = write_lines(tmp_path / "test.jsonl", swapped)
    assert run(capsys, "evaluate", model, test, "--labels", other)[1].splitlines()[:-1] == plain


def test_labels_spelt_alike_are_told_unless_a_file_settles_their_names(capsys, tmp_path):
    names = ["Shoes", "shoes", "running  shoes", "Running shoes"] * 4
    lines = [json.dumps({"text": f"red {name}", "labels": [name]}) for name in names]
    train = write_lines(tmp_path / "train.jsonl", lines)
    command = ("train", train, "--model", tmp_path / "model", *SMALL)
    code, _, told = run(capsys, *command)
    assert code == 0
    said = "2 labels, such as 'shoes' beside 'Shoes', are called like others but for capital"
    assert told.count(said) == 1
    labels = write_lines(tmp_path / "labels.txt", names[:4])
    assert "are called like others" not in run(capsys, *command, "--labels", labels)[2]


def test_what_only_python_can_do_is_not_advised(place, capsys, tmp_path):
    labels = write_lines(tmp_path / "labels.txt", ["drink"])
    command = ("train", place / "train.jsonl", "--labels", labels, "--model", tmp_path / "model")
    message = refused(capsys, *command)
    assert "label 'red' is none of the 1 names of the labels file. Correct it, or add" in message
    assert "a line with it to that file. (Read as" in message
    assert "; pass --format if it is another.)" in message
    write_lines(tmp_path / "labels.txt", ["drink", "red ", "vehicle"])
    message = refused(capsys, *command)
    assert "is none of the 3 names of the labels file. It looks like 'red ', which is" in message


def test_a_pair_of_sparse_files_is_read(capsys, tmp_path):
    points = [f"{i % 2}:1 2:0.5" for i in range(20)]
    features = write_lines(tmp_path / "trn_X_Xf.txt", ["20 3", *points])
    labels = write_lines(tmp_path / "trn_X_Y.txt", ["20 2", *(f"{i % 2}:1" for i in range(20))])
    pair = (features, "--label-pairs", labels)
    assert run(capsys, "train", *pair, "--model", tmp_path / "model", *SMALL)[0] == 0
    code, out, _ = run(capsys, "evaluate", tmp_path / "model", *pair)
    assert code == 0
    assert out.splitlines()[1].split()[1] == "100.00"
    # What is named in errors is what can be typed here.
    assert "--label-pairs" in refused(capsys, "train", features, "--model", tmp_path / "other")


def test_the_help_lists_every_setting_with_its_default_and_a_text(capsys):
    code, out, _ = run(capsys, "train", "--recipe", "astec-3", "--help")
    assert code == 0
    settings = out[out.index("settings of the recipe 'astec-3'") :].splitlines()
    heads = [i for i, line in enumerate(settings) if line.startswith("  ") and line[2] != " "]
    assert len(heads) >= 20
    assert "  n_learners = 3" in settings
    own, of_all = (settings.index(f"  {line}") for line in ("n_hard = 20", "char_ngrams = auto"))
    assert own < of_all  # what only this recipe has comes first
    assert "`LabelEstimator`" not in out  # words for Python users
    assert all(i + 1 < len(settings) and settings[i + 1].startswith("      ") for i in heads)


WINE = '{"text": "red wine", "labels": ["drink"]}\n'


def test_an_option_that_took_the_file_is_pointed_out(capsys):
    code, _, err = run(capsys, "train", "--model", "m", "--set", "tail=0.5", "train.jsonl")
    assert code == 2
    assert "are required: TRAIN. --set takes all words after it: put it last" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "are required: TRAIN, --model. `longtail train --help` lists all options"),
        (["a.jsonl"], "are required: --model. `longtail train --help`"),
        (
            ["a.jsonl", "--modle", "m"],
            "required: --model. --modle is not an option (did you mean --model?).",
        ),
        (["a.jsonl", "b.jsonl", "--model", "m"], "train: error: unrecognized arguments: b.jsonl"),
        (["a.jsonl", "--model", "m", "tail=1"], "Settings such as KEY=VALUE go after --set"),
        (
            ["a.jsonl", "--model", "m", "--epochs", "3"],
            "--epochs 3. epochs is a setting of the recipe: write --set epochs=3. `longtail",
        ),
        (["a.jsonl", "--learning-rate=1", "--model", "m"], "write --set learning_rate=1."),
        (["a.jsonl", "--tail", "--recipe", "x", "--model", "m"], "arguments: --tail. `longtail"),
        (["a.jsonl", "--tail", "--model", "m"], "write --set tail=VALUE."),
        (
            ["a.jsonl", "--recipe=dismec", "--word-ngrams", "2", "--model", "m"],
            "write --set word_ngrams=2.",
        ),
        (
            ["a.jsonl", "--model", "m", "--text", "x"],
            "--text is not an option (did you mean --text-",
        ),
    ],
)
def test_wrong_usage_is_said_in_few_lines(arguments, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "a.jsonl", [WINE])
    code, out, err = run(capsys, "train", *arguments)
    assert (code, out) == (2, "")
    usage, example, error = err.splitlines()
    assert usage == "usage: longtail train TRAIN --model DIR [options]"
    assert example == "  such as: longtail train train.jsonl --model model"
    assert message in error


def test_what_a_user_wrote_is_said_as_it_was_written(capsys, tmp_path):
    name = "device=, format= {}.jsonl"
    (tmp_path / name).write_text('{"text": "wine", "labels": ["labels_path="]}\n')
    (tmp_path / "labels.txt").write_text("drink\n")
    files = (tmp_path / name, "--labels", tmp_path / "labels.txt")
    message = refused(capsys, "train", *files, "--model", tmp_path / "model")
    assert (
        f"{name}, line 1: The label 'labels_path=' is none of the 1 names of the labels file."
        in message
    )
    assert "unknown_labels" not in message


def test_one_setting_is_not_set_twice(capsys, tmp_path):
    for option, given, key, other in (
        ("--seed", "1", "random_state", "2"),
        ("--device", "cpu", "device", "cuda"),
    ):
        words = (option, given, "--model", tmp_path / "model", "--set", f"{key}={other}")
        message = refused(capsys, "train", __file__, *words)
        assert f"{key} is set by {option} ({given}) and by --set ({other}). Keep one." in message


def test_more_texts_for_a_token_than_there_are(place, capsys, tmp_path):
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", *SMALL)
    message = refused(capsys, *command, "min_df=1000")
    assert "min_df=1,000 leaves no token: there are only 40 training texts" in message
    assert "Pass at most 2, one text in twenty." in message
    code, _, err = run(capsys, *command, "min_df=30")
    assert code == 0
    assert "min_df=30 is lowered to 2, one in twenty of the 40 training texts." in err


BAD = {
    "empty.jsonl": ("", "empty"),
    "unlabelled.jsonl": ('{"text": "wine", "labels": []}\n', "has a label"),
    "no_words.jsonl": ('{"text": "", "labels": ["x"]}\n', "vocabulary"),
    "negative.jsonl": ('{"text": "wine", "labels": [-1]}\n', "line 1"),
    "fraction.jsonl": ('{"text": "wine", "labels": [1.5]}\n', "line 1"),
    "mixed.jsonl": (WINE + '{"text": "car", "labels": [3]}\n', "line 2"),
    "bytes.jsonl": (WINE.encode() + b'{"text": "\xff", "labels": ["x"]}\n', "line 2"),
    "cut.jsonl.gz": (gzip.compress(WINE.encode() * 9)[:30], "gzip"),
    "range.txt": ("2 3 2\n0 0:1\n1 5:1\n", "line 3"),
    "label_range.txt": ("2 3 2\n0 0:1\n2 1:1\n", "line 3"),
    "header.txt": ("3 3 2\n0 0:1\n1 2:1\n", "header"),
    "nan.txt": ("1 3 2\n0 0:nan\n", "line 2"),
    "infinite.txt": ("1 3 2\n0 0:inf\n", "line 2"),
    "twice.txt": ("1 3 2\n0 1:1 1:2\n", "line 2"),
    "strange.dat": ("nothing like it\n", "--format"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_training_files_are_refused_and_leave_nothing_behind(name, capsys, tmp_path):
    content, words = BAD[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert words in refused(capsys, "train", path, "--model", tmp_path / "model", *SMALL)
    assert list(tmp_path.iterdir()) == [path]


def test_odd_but_harmless_files_are_read_with_a_counted_warning(capsys, tmp_path):
    path = write_lines(tmp_path / "odd.jsonl", [WINE.strip() + "\r", "", WINE.strip()] * 5)
    code, _, err = run(capsys, "train", path, "--model", tmp_path / "model", *SMALL)
    assert code == 0
    assert f"longtail: warning: {path}: blank lines (skipped): 5, first at line 2." in err


def test_a_missing_file_a_missing_folder_and_a_taken_place_are_refused(place, capsys, tmp_path):
    train = place / "train.jsonl"
    assert "cannot be opened" in refused(capsys, "train", "none.jsonl", "--model", tmp_path / "m")
    assert "is a file" in refused(capsys, "train", train, "--model", train)
    assert "not a model folder" in refused(capsys, "train", train, "--model", place)
    below_a_file = train / "model"
    assert "cannot be written" in refused(capsys, "train", train, "--model", below_a_file)
    checkpoint = tmp_path / "model.checkpoint"
    checkpoint.write_text("mine")
    message = refused(capsys, "train", train, "--model", tmp_path / "model", "--fresh")
    assert "model.checkpoint" in message
    assert checkpoint.read_text() == "mine"


def test_a_damaged_model_is_refused(place, capsys, tmp_path):
    for file in (place / "model").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    encoder = tmp_path / "encoder.safetensors"
    content = encoder.read_bytes()
    encoder.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert run(capsys, "inspect", tmp_path)[0] == 0
    assert "checksum" in refused(capsys, "inspect", tmp_path, "--label", "drink")
    assert "checksum" in refused(capsys, "inspect", tmp_path, "--token", "wine")
    assert "checksum" in refused(capsys, "inspect", tmp_path, "--verify")
    encoder.write_bytes(content[:-9])
    assert "truncated" in refused(capsys, "predict", tmp_path, "--text", "wine")
    encoder.unlink()
    assert "missing" in refused(capsys, "evaluate", tmp_path, place / "test.jsonl")


def stop_in(monkeypatch, stage, at_batch):
    """Press Ctrl-C in the middle of a stage."""
    shown = ProgressBar.on_batch

    def on_batch(self, name, done, total, loss):
        shown(self, name, done, total, loss)
        if name == stage and done == at_batch:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressBar, "on_batch", on_batch)


def save_every_epoch(monkeypatch):
    save = CheckpointFolder.save

    def at_once(self, *what, **how):
        self._every_seconds = 0
        save(self, *what, **how)

    monkeypatch.setattr(CheckpointFolder, "save", at_once)


@pytest.mark.parametrize(
    ("whole", "settings", "stage"),
    [
        ("model", SMALL, "shared space"),
        ("model", SMALL, "again: shared space"),
        ("astec", SMALL_ASTEC, "module I"),
        ("astec", SMALL_ASTEC, "module IV"),
        ("astec", SMALL_ASTEC, "re-ranker"),
    ],
)
def test_the_same_command_resumes_to_the_same_model(
    whole, settings, stage, place, capsys, tmp_path, monkeypatch
):
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", *settings)
    with monkeypatch.context() as patch:
        save_every_epoch(patch)
        stop_in(patch, stage, 2)
        code, out, err = run(capsys, *command)
    assert (code, out) == (130, "")
    assert "the same command resumes from the last checkpoint" in err.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["model.checkpoint"]

    code, _, err = run(capsys, *command)
    assert code == 0
    assert "Resuming from" in err
    assert f"{stage}: resumes after 1 of " in err
    assert files_of(tmp_path / "model") == files_of(place / whole)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_other_settings_leave_what_a_stopped_training_has_kept(
    place, capsys, tmp_path, monkeypatch
):
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", *SMALL)
    with monkeypatch.context() as patch:
        stop_in(patch, "again: shared space", 1)
        assert run(capsys, *command)[0] == 130
    code, _, err = run(capsys, *command, "tail=0.5")
    assert code == 0
    assert "starts over" in err
    assert ", not 0.5. It is kept" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "model.checkpoint"]
    code, _, err = run(capsys, *command)
    assert "Resuming from" in err
    assert "\nshared space: epoch 1 of 3" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_fresh_starts_anew(place, capsys, tmp_path, monkeypatch):
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", *SMALL)
    with monkeypatch.context() as patch:
        stop_in(patch, "again: shared space", 1)
        assert run(capsys, *command)[0] == 130
    code, _, err = run(capsys, *command, "--fresh")
    assert code == 0
    assert "Resuming" not in err
    assert "shared space: epoch 1 of 3" in err


def test_stopped_before_the_first_checkpoint_nothing_is_kept(place, capsys, tmp_path, monkeypatch):
    stop_in(monkeypatch, "shared space", 1)
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", *SMALL)
    code, _, err = run(capsys, *command)
    assert code == 130
    assert "nothing was kept" in err.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_a_full_disk_costs_the_saving_but_not_the_training(place, capsys, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", *SMALL)
    with monkeypatch.context() as patch:
        patch.setattr("longtail.model_folder.write_arrays", full)
        assert "the disk is full" in refused(capsys, *command)
    assert [path.name for path in tmp_path.iterdir()] == ["model.checkpoint"]
    code, _, err = run(capsys, *command)
    assert code == 0
    assert "epoch" not in err  # all stages were read from their checkpoints
    assert files_of(tmp_path / "model") == files_of(place / "model")


def test_a_model_that_cannot_be_saved_is_kept_elsewhere(place, capsys, tmp_path, monkeypatch):
    target = tmp_path / "away" / "model"
    here = tmp_path / "here"
    here.mkdir()
    write = model_folder.write_model_folder

    def gone(path, **content):
        if str(path) == str(target):
            raise ModelFolderError("The disk is gone.")
        write(path, **content)

    monkeypatch.setattr("longtail.predictor.write_model_folder", gone)
    monkeypatch.chdir(here)
    message = refused(capsys, "train", place / "train.jsonl", "--model", target, *SMALL)
    (kept,) = here.iterdir()
    assert f"The disk is gone. The trained model is not lost: it is in {kept}." in message
    assert files_of(kept) == files_of(place / "model")


def test_the_folder_where_one_is_can_be_trained_into(place, capsys, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for _ in range(2):
        assert run(capsys, "train", place / "train.jsonl", "--model", ".", *SMALL)[0] == 0
        assert files_of(tmp_path / "here") == files_of(place / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert not (tmp_path / "here" / ".checkpoint").exists()


@pytest.mark.parametrize(
    ("flag", "is_said"), [pytest.param("-O", False, marks=pytest.mark.thorough), ("-OO", True)]
)
def test_settings_without_docstrings_say_why_nothing_is_said_of_them(flag, is_said):
    code = """
from longtail.cli.settings import settings_help
from longtail.recipes.parabel import Parabel
print(settings_help(Parabel, "parabel"))
"""
    command = [sys.executable, flag, "-c", code]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert ("PYTHONOPTIMIZE" in lines[1]) == is_said
    assert "  random_state = 0" in lines


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_takes_settings_from_the_command_line(name):
    kind = recipe(name)
    assert parse_settings(kind, ["random_state=3"]) == {"random_state": 3}
    lines = settings_help(kind, name).splitlines()[1:]
    is_head = [not line.startswith("   ") for line in lines]
    assert "  random_state = 0" in lines
    bare = [line for i, line in enumerate(lines) if is_head[i] and all(is_head[i + 1 : i + 2])]
    assert not bare  # settings of which nothing is said


@pytest.mark.parametrize("name", RECIPES)
def test_a_default_that_the_help_shows_can_be_set(name):
    kind = recipe(name)
    lines = settings_help(kind, name).splitlines()[1:]
    shown = [line.split("=", 1) for line in lines if not line.startswith("   ")]
    pairs = [f"{key.strip()}={value.strip()}" for key, value in shown]
    assert len(pairs) == len(setting_names(kind))
    settings = parse_settings(kind, pairs)
    defaults = {field.name: field.default for field in fields(kind)}
    of_an_object = {key for key, value in settings.items() if value == "its own"}
    assert of_an_object <= {"encoder_loss", "classifier_loss"}
    assert all(settings[key] == defaults[key] for key in settings.keys() - of_an_object)
