"""The command line, as a user meets it."""

from __future__ import annotations

import errno
import gzip
import io
import json
import subprocess
import sys

import numpy as np
import pytest

from longtail import load
from longtail.cli import main
from longtail.cli.settings import parse_settings
from longtail.errors import InputError
from longtail.recipes.astec import Astec
from longtail.recipes.limits import check_settings
from longtail.recipes.names import RECIPES, recipe
from longtail.recipes.parabel import Parabel
from longtail.training.checkpoints import CheckpointFolder
from longtail.training.progress import ProgressBar

# A half is held out: of less than 40 points, none would be, and nothing would be learnt again.
SMALL = ["--set", "dimension=16", "epochs=3", "batch_size=64", "held_out=0.5"]
SMALL_ASTEC = [
    "--recipe",
    "astec",
    "--set",
    "dimension=16",
    "surrogate_epochs=3",
    "extreme_epochs=3",
    "reranker_epochs=2",
    "n_meta_labels=4",
    "batch_size=64",
]
DRINKS, CARS = ["red", "white", "dry", "sweet"], ["fast", "old", "new", "small"]
METRICS = {f"{name}@{k}" for name in ("P", "nDCG", "PSP", "PSnDCG", "coverage") for k in (1, 3, 5)}
METRICS |= {"R@10", "R@100", "points_per_second"}


def rows():
    for adjective in DRINKS:
        yield {"text": f"{adjective} wine in a glass", "labels": ["drink", adjective]}
    for adjective in CARS:
        yield {"text": f"{adjective} car on a road", "labels": ["vehicle", adjective]}


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
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
    return folder


def run(capsys, *arguments):
    """Return exit code, standard output and standard error."""
    capsys.readouterr()
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys, *arguments):
    """Run what must fail with one clear sentence, and return that."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("longtail")
    return err.splitlines()[-1]


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


# ------------------------------------------------------------------------------------- starting


def test_help_version_and_prediction_need_neither_torch_nor_scikit_learn(place):
    script = (
        "import sys\nfrom longtail.cli import main\n"
        "for arguments in (['--help'], ['--version'], ['predict', '--help']):\n"
        "    try:\n        main(arguments)\n    except SystemExit as stop:\n"
        "        assert stop.code == 0\n"
        f"assert main(['predict', {str(place / 'model')!r}, '--text', 'red wine']) == 0\n"
        f"assert main(['evaluate', {str(place / 'model')!r}, {str(place / 'test.jsonl')!r}]) == 0\n"
        f"assert main(['inspect', {str(place / 'model')!r}]) == 0\n"
        "heavy = {'torch', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "predict" in done.stdout


def test_the_installed_command_says_errors_without_a_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from longtail.cli import main; sys.exit(main())",
         "predict", tmp_path / "none", "--text", "x"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("longtail: error: There is no model folder")
    assert done.stderr.count("\n") == 1


def test_no_command_and_unknown_commands_are_refused(capsys):
    assert "COMMAND" in run(capsys)[2]
    code, _, err = run(capsys, "trian")
    assert code == 2
    assert "train" in err


# ------------------------------------------------------------------------------------- training


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


def test_the_model_keeps_how_it_was_made(place):
    training = json.loads((place / "model" / "training.json").read_text())
    assert training["recipe"] == "LongtailClassifier"
    assert training["settings"]["dimension"] == 16
    assert training["seed"] == 0
    assert training["peak_memory_mb"] > 10
    assert {entry["stage"] for entry in training["history"]} == {
        "shared space",
        "again: shared space",
    }
    assert list(training["stages"]) == [
        "shared space",
        "search",
        "linear",
        "blend",
        "again: shared space",
        "again: search",
        "again: linear",
    ]


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
    assert "  char_ngrams = 3,5" in settings
    assert all(i + 1 < len(settings) and settings[i + 1].startswith("      ") for i in heads)


# ------------------------------------------------------------------------------------- settings


def test_settings_are_read_as_their_types():
    pairs = ["dropout=0.5", "max_features=none", "char_ngrams=none", "as_in_code=true", "min_df=3"]
    assert parse_settings(Astec, [*pairs, "device=cpu"]) == {
        "dropout": 0.5,
        "max_features": None,
        "char_ngrams": None,
        "as_in_code": True,
        "min_df": 3,
        "device": "cpu",
    }


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("dimension", "key=value"),
        ("n_meta_labels=many", "n_meta_labels must be a whole number, got 'many'"),
        ("dimension=1.5", "a whole number"),
        ("n_meta_labels=none", "a whole number"),
        ("dropout=nan", "finite"),
        ("reranker=perhaps", "true or false"),
        ("char_ngrams=3", "2 values such as 3,5 or none"),
        ("char_ngrams=3,x", "2 values such as 3,5 or none"),
        ("dimensoin=3", "Did you mean 'dimension'? It has: word_ngrams, "),
        ("predictor_=3", "no setting"),
    ],
)
def test_wrong_settings_are_explained(pair, words):
    with pytest.raises(InputError) as caught:
        parse_settings(Astec, [pair])
    assert words in str(caught.value)


@pytest.mark.parametrize("pair", ["dimension=0", "dropout=1", "batch_size=-1", "n_threads=0"])
def test_settings_out_of_range_are_refused_before_any_work(pair, place, capsys, tmp_path):
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", "--set", pair)
    assert f"{pair.split('=')[0]} must be between" in refused(capsys, *command)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("longtail", "epochs=-1"),
        ("longtail", "learning_rate=0"),
        ("longtail", "tail=11"),
        ("longtail", "cost=0"),
        ("longtail", "n_found=0"),
        ("longtail", "beam=0"),
        ("parabel", "leaf_size=0"),
        ("parabel", "beam_size=0"),
        ("parabel", "prune=-1"),
        ("bonsai", "n_children=0"),
        ("bonsai", "max_depth=0"),
    ],
)
def test_settings_of_every_recipe_have_limits(name, pair):
    with pytest.raises(InputError, match=f"{pair.split('=')[0]} must be between"):
        check_settings(recipe(name)(**parse_settings(recipe(name), [pair])))


def test_an_unknown_recipe_names_the_one_that_was_meant(place, capsys, tmp_path):
    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", "--recipe", "astek")
    assert "Did you mean 'astec'?" in refused(capsys, *command)
    assert "No such device" not in refused(capsys, *command[:4], "--device", "abacus")


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_there(name):
    assert callable(recipe(name).fit_dataset)


# ------------------------------------------------------------------------------------ bad input

WINE = '{"text": "red wine", "labels": ["drink"]}\n'
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
    assert "checksum" in refused(capsys, "inspect", tmp_path, "--verify")
    encoder.write_bytes(content[:-9])
    assert "truncated" in refused(capsys, "predict", tmp_path, "--text", "wine")
    encoder.unlink()
    assert "missing" in refused(capsys, "evaluate", tmp_path, place / "test.jsonl")


# ------------------------------------------------------------------------------ kill and resume


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

    def at_once(self, stage, epoch, tensors, history, **_):
        save(self, stage, epoch, tensors, history, at_once=True)

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
    assert "the same command goes on from there" in err.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["model.checkpoint"]

    code, _, err = run(capsys, *command)
    assert code == 0
    assert "Resuming from" in err
    assert f"{stage}: goes on after 1 of " in err
    assert files_of(tmp_path / "model") == files_of(place / whole)
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
    assert "nothing is kept" in err.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_a_full_disk_costs_the_saving_but_not_the_training(place, capsys, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    command = ("train", place / "train.jsonl", "--model", tmp_path / "model", *SMALL)
    with monkeypatch.context() as patch:
        patch.setattr("longtail.model_folder.save_file", full)
        assert "the disk is full" in refused(capsys, *command)
    assert [path.name for path in tmp_path.iterdir()] == ["model.checkpoint"]
    code, _, err = run(capsys, *command)
    assert code == 0
    assert "epoch" not in err  # all stages were read from their checkpoints
    assert files_of(tmp_path / "model") == files_of(place / "model")


# ----------------------------------------------------------------------------------- evaluation


def test_evaluation_prints_a_table_and_writes_flat_json(place, capsys, tmp_path):
    target = tmp_path / "metrics.json"
    code, out, _ = run(capsys, "evaluate", place / "model", place / "test.jsonl", "--json", target)
    assert code == 0
    metrics = json.loads(target.read_text())
    assert set(metrics) == METRICS
    assert all(0 <= value <= 100.01 for name, value in metrics.items() if "@" in name)
    assert metrics["points_per_second"] > 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["%", "@1", "@3", "@5"]
    assert lines[1] == ["P", *(f"{metrics[f'P@{k}']:.2f}" for k in (1, 3, 5))]
    assert lines[4][0] == "PSnDCG"
    assert lines[5] == ["R@10", f"{metrics['R@10']:.2f}", "R@100", f"{metrics['R@100']:.2f}"]
    model = load(place / "model")
    ids, _ = model.predict_topk([row["text"] for row in rows()], 1)
    right = [
        model.label_space.name(label) in row["labels"]
        for label, row in zip(ids[:, 0].tolist(), rows(), strict=True)
    ]
    assert metrics["P@1"] == pytest.approx(100 * np.mean(right))


def test_unknown_labels_count_as_missed(place, capsys, tmp_path):
    lines = [json.dumps({"text": "red wine", "labels": ["animal"]})]
    test = write_lines(tmp_path / "test.jsonl", lines)
    out = run(capsys, "evaluate", place / "model", test, "--by-frequency")[1]
    assert out.splitlines()[1].split() == ["P", "0.00", "0.00", "0.00"]


def test_contributions_by_frequency_add_up(place, capsys):
    out = run(capsys, "evaluate", place / "model", place / "test.jsonl", "--by-frequency")[1]
    total = float(out.splitlines()[1].split()[3])
    parts = [line.split() for line in out.splitlines()[-5:]]
    assert sum(float(part[-2]) for part in parts) == pytest.approx(total, abs=0.05)


def test_filter_files_and_propensities_are_used(place, capsys, tmp_path):
    test = place / "test.jsonl"
    everything = [f"{point} {label}" for point in range(8) for label in range(10)]
    filters = write_lines(tmp_path / "filter.txt", everything)
    out = run(capsys, "evaluate", place / "model", test, "--filter", filters)[1]
    assert out.splitlines()[1].split() == ["P", "0.00", "0.00", "0.00"]
    # A frequent label that is found, and a rare one that is not.
    half = json.dumps({"text": "red wine in a glass", "labels": ["drink", "fast"]})
    test = write_lines(tmp_path / "half.jsonl", [half])
    plain = run(capsys, "evaluate", place / "model", test)[1].splitlines()
    other = run(capsys, "evaluate", place / "model", test, "--propensity", "0.5,0.4")[1]
    assert other.splitlines()[1] == plain[1]
    assert other.splitlines()[3] != plain[3]
    err = run(capsys, "evaluate", place / "model", test, "--propensity", "much")[2]
    assert "expected A,B such as 0.55,1.5, got 'much'" in err


def test_evaluation_without_labels_or_output_folder_is_refused(place, capsys, tmp_path):
    line = json.dumps({"text": "red wine", "labels": []})
    test = write_lines(tmp_path / "test.jsonl", [line])
    assert "No point of" in refused(capsys, "evaluate", place / "model", test)
    target = tmp_path / "none" / "metrics.json"
    command = ("evaluate", place / "model", place / "test.jsonl", "--json", target)
    assert "there is no folder" in refused(capsys, *command)


# ----------------------------------------------------------------------------------- prediction


def test_one_text_is_answered_with_probabilities_and_names(place, capsys):
    code, out, err = run(capsys, "predict", place / "model", "--text", "red wine", "--top-k", 3)
    assert (code, err) == (0, "")
    expected = load(place / "model").predict("red wine", k=3)
    assert out == "".join(f"{score:.4f}\t{name}\n" for name, score in expected)
    out = run(capsys, "predict", place / "model", "--text", "red wine", "--threshold", 1.1)[1]
    assert out == ""


def test_k_may_exceed_the_labels_but_not_reason(place, capsys):
    out = run(capsys, "predict", place / "model", "--text", "red wine", "--top-k", 500)[1]
    assert 1 <= len(out.splitlines()) <= 10
    assert "k must be" in refused(
        capsys, "predict", place / "model", "--text", "red wine", "--top-k", 0
    )


def test_an_unknown_text_gets_no_label_and_a_notice(place, capsys):
    code, out, err = run(capsys, "predict", place / "model", "--text", "qqq")
    assert (code, out) == (0, "")
    assert "No label" in err


def test_either_a_text_or_a_file(place, capsys):
    assert "Pass either" in refused(capsys, "predict", place / "model")
    assert "Pass either" in refused(
        capsys, "predict", place / "model", place / "test.jsonl", "--text", "x"
    )


TEXTS = ["red wine in a glass", "", "old car \N{SNOWMAN}"]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("longtail.cli.points.POINTS_AT_ONCE", 2)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", ["plain", "json", "json with labels", "gzip", "tsv", "stdin"])
def test_files_of_texts_are_answered_line_by_line(kind, place, capsys, tmp_path, monkeypatch):
    objects = [json.dumps({"text": text, "more": 1}) for text in TEXTS]
    source = tmp_path / "texts.txt"
    if kind == "plain":
        write_lines(source, TEXTS)
    elif kind == "tsv":
        source = write_lines(tmp_path / "texts.tsv", [f"{text}\tnever seen" for text in TEXTS])
    elif kind == "gzip":
        source.write_bytes(gzip.compress("\n".join(objects).encode()))
    elif kind == "stdin":
        stdin = io.TextIOWrapper(io.BytesIO("\n".join(TEXTS).encode()))
        monkeypatch.setattr(sys, "stdin", stdin)
        source = "-"
    else:
        labelled = kind == "json with labels"
        write_lines(
            source, [o.replace("1}", '1, "labels": [7]}') if labelled else o for o in objects]
        )
    target = tmp_path / "out.jsonl"
    code, out, err = run(
        capsys, "predict", place / "model", source, "--output", target, "--top-k", 2
    )
    assert (code, out) == (0, "")
    assert "3 points" in err
    answers = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [answer["text"] for answer in answers] == TEXTS
    expected = load(place / "model").predict(TEXTS, k=2)
    assert [answer["labels"] for answer in answers] == [
        [name for name, _ in answer] for answer in expected
    ]
    assert answers[1] == {"text": "", "labels": [], "scores": []}
    for answer, pairs in zip(answers, expected, strict=True):
        assert answer["scores"] == pytest.approx([score for _, score in pairs], abs=1e-6)


@pytest.mark.usefixtures("small_blocks")
def test_without_output_the_answers_are_printed(place, capsys):
    code, out, _ = run(capsys, "predict", place / "model", place / "test.jsonl")
    assert code == 0
    assert [json.loads(line)["text"] for line in out.splitlines()] == [r["text"] for r in rows()]


def test_files_of_features_are_answered(place, capsys):
    code, out, _ = run(capsys, "predict", place / "sparse", place / "sparse.txt", "--top-k", 1)
    assert code == 0
    assert len(out.splitlines()) == 60
    assert json.loads(out.splitlines()[0]).keys() == {"labels", "scores"}
    message = refused(capsys, "predict", place / "sparse", "--text", "red wine")
    assert "features" in message
    assert "features" in refused(capsys, "predict", place / "sparse", place / "test.jsonl")
    assert "texts" in refused(
        capsys, "predict", place / "model", place / "sparse.txt", "--format", "repository"
    )


def test_nothing_half_written_is_left_where_a_file_breaks_off(place, capsys, tmp_path):
    source = write_lines(tmp_path / "in.jsonl", ['{"text": "red wine"}', '{"text": 3}'])
    target = tmp_path / "out.jsonl"
    message = refused(capsys, "predict", place / "model", source, "--output", target)
    assert "line 2" in message
    assert not target.exists()
    assert len(list(tmp_path.iterdir())) == 1
    empty = write_lines(tmp_path / "empty.txt", [])
    assert "is empty" in refused(capsys, "predict", place / "model", empty)


def test_a_disk_that_fills_up_is_said_in_one_sentence(place, capsys, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("longtail.cli.predict.msgspec.json.encode", full)
    command = ("predict", place / "model", place / "test.jsonl", "--output", tmp_path / "out.jsonl")
    assert "No space left on device. Free some space" in refused(capsys, *command)
    assert not list(tmp_path.iterdir())


# ----------------------------------------------------------------------------------- inspection


def test_inspection_shows_sizes_labels_words_clusters_and_training(place, capsys):
    code, out, _ = run(capsys, "inspect", place / "astec")
    assert code == 0
    assert out.startswith("Astec, trained on 40 points (texts): 10 labels, ")
    lines = [line.split() for line in out.splitlines()]
    assert ["drink", "20"] in lines
    assert ["vehicle", "20"] in lines
    size = sum(file.stat().st_size for file in (place / "astec").iterdir())
    assert f"{size / 1000:.1f} kB" in out
    assert "dimension = 16" in out
    assert "Label clusters (4 in all)" in out
    assert {"module", "re-ranker"} <= {line[0] for line in lines if line}
    words = out[out.index("Most frequent words") :].splitlines()[2].split()
    assert {"wine", "car"} <= set(words)


@pytest.mark.parametrize("name", ["model", "astec"])
def test_neighbours_of_labels_and_tokens_are_shown(name, place, capsys):
    out = run(capsys, "inspect", place / name, "--label", "drink")[1]
    assert "labels near 'drink'" in out
    assert len(out.splitlines()) == 10
    assert ["drink"] not in [line.split()[:1] for line in out.splitlines()]
    out = run(capsys, "inspect", place / name, "--token", "Wine")[1]
    assert out.splitlines()[0].startswith("tokens near 'wine'")
    assert "Similar ones: 'drink'" in refused(
        capsys, "inspect", place / "model", "--label", "drinks"
    )
    assert "no token 'winr'" in refused(capsys, "inspect", place / "model", "--token", "winr")
    assert "has no tokens" in refused(capsys, "inspect", place / "sparse", "--token", "wine")


def test_checksums_are_verified_when_asked(place, capsys):
    assert "checksums" in run(capsys, "inspect", place / "model", "--verify")[1]
    assert run(capsys, "inspect", place / "sparse")[0] == 0


def inspected(capsys, folder, *options):
    """Return what is shown of a model, and the words of each line."""
    code, out, _ = run(capsys, "inspect", folder, *options)
    assert code == 0
    return out, [line.split() for line in out.splitlines()]


def test_inspection_of_a_blended_model(capsys, place):
    out, lines = inspected(capsys, place / "model")
    assert out.startswith("LongtailClassifier, trained on 40 points (texts): 10 labels, ")
    assert ", 16 dimensions\n" in out
    assert ["drink", "20"] in lines
    assert {"encoder.safetensors", "manifest.json"} <= {line[0] for line in lines if line}
    assert "epochs = 3" in out
    assert "Label clusters" not in out
    assert {"shared", "blend", "again:"} <= {line[0] for line in lines if line}
    out = inspected(capsys, place / "sparse")[0]
    assert "(ready-made features): 5 labels, 5 features" in out


@pytest.mark.parametrize("n_learners", [1, 2])
def test_inspection_of_label_trees(capsys, tmp_path, n_learners):
    texts, names = zip(*((row["text"], row["labels"]) for row in list(rows()) * 5), strict=True)
    Parabel(n_learners=n_learners, leaf_size=4, n_threads=1).fit(texts, names).save(tmp_path)
    out, lines = inspected(capsys, tmp_path)
    first = out.splitlines()[0]
    assert first.startswith("Parabel, trained on 40 points (texts): 10 labels, ")
    assert first.endswith(" features" if n_learners == 1 else " features, 2 learners")
    assert ["drink", "20"] in lines
    assert "leaf_size = 4" in out
    assert "Label clusters" not in out
    assert "first loss" not in out  # no epochs
    assert "wall seconds" in out
    message = refused(capsys, "inspect", tmp_path, "--label", "drink")
    assert "LabelTreeScorer has no vectors" in message
    assert "has no vectors" in refused(capsys, "inspect", tmp_path, "--token", "wine")
