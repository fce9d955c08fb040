"""`longtail inspect --card`: what it says is true, and whole whatever names are."""

from __future__ import annotations

import json
import shlex
import shutil
from itertools import pairwise

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from command_line import refused, run, stdin_of
from longtail import Dataset, LongtailClassifier, load
from longtail.cli import main, trained_settings
from longtail.cli.files import say_what_stayed
from longtail.cli.markdown import code, escaped, front_matter, table
from longtail.cli.metrics_file import MeasuredMetrics
from longtail.cli.model_card import model_card
from longtail.data.label_space import LabelSpace
from longtail.data.point_input import InputKind, PointInput
from longtail.errors import MissingExtraError
from longtail.features.onnx_encoder import OnnxEncoder
from longtail.features.text_pieces import PiecesOfTexts
from longtail.features.transformer_encoder import TransformerEncoder
from longtail.model_folder import ModelFolder, write_model_folder
from longtail.recipes.dismec import DiSMEC
from longtail.recipes.parabel import Parabel
from longtail.scorers.calibration import Calibration
from longtail.scorers.one_vs_all import OneVsAllScorer

TEXTS = ["red wine", "white wine", "fast car", "old car"] * 5
ODD = [
    "pipe | pipe \\| \\",
    "`tick` ``",
    "two\nlines\r\x00\x1b[31m",
    "<script>alert(1)</script> &amp; <!-- -->",
    "- dash",
    "---",
    "# title #",
    "1. one",
    "\"double\" 'single'",
    "🍷🏳️\u200d🌈",
    "עברית (ב) 12",
    "turned \u202e round",
    "closing \u2069\u202e early, ערב",
    "*a* _b_ ~~c~~ [d](http://e.example) ![f](g)",
    "http://www.example.org www.example.org me@example.org @me #1 :smile: $x$",
    "%TAG ! : , ? {a: b} [c]",
    "\u2028line\u2029\x85ends",
    "long " * 40,
    "\ufeff\u00a0",
    "null",
    "\\n",
]
MARKDOWN = MarkdownIt("commonmark").enable("table")


def texts_in(token):
    """Return what a reader sees of a token of text, and that it is nothing else."""
    assert {part.type for part in token.children} <= {"text", "text_special"}
    return "".join(part.content for part in token.children)


def cells(markdown, title):
    """Return the cells of the first table below a title, row by row."""
    tokens = MARKDOWN.parse(body_of(markdown))
    titles = [i for i, t in enumerate(tokens) if t.type == "heading_open" and t.tag == "h2"]
    start = next(i for i in titles if tokens[i + 1].content == title)
    end = next((i for i in titles if i > start), len(tokens))
    found, is_cell = [], False
    for token in tokens[start:end]:
        if token.type == "tr_open":
            found.append([])
        elif is_cell:
            found[-1].append(texts_in(token))
        is_cell = token.type in {"td_open", "th_open"}
        if token.type == "table_close":
            break
    return found


def facts_of(card):
    assert card.startswith("---\n")
    return yaml.safe_load(card.split("\n---\n", 1)[0])


def body_of(card):
    return card.split("\n---\n", 1)[-1]


def blocks(card):
    return [(t.info, t.content) for t in MARKDOWN.parse(body_of(card)) if t.type == "fence"]


def titles_of(card):
    tokens = MARKDOWN.parse(body_of(card))
    return [after.content for t, after in pairwise(tokens) if t.type == "heading_open"]


def card_of(model, folder, **keywords):
    model.save(folder)
    return model_card(load(folder), ModelFolder.open(folder), **keywords)


def as_shown(name):
    """Return a name as a table shows it, written otherwise than in the library."""
    cut = name if len(name) <= 60 else f"{name[:59]}…"
    for sign in "\n\r\x00\x1b\x85\u2028\u2029\u202e\u2069":
        cut = cut.replace(sign, sign.encode("unicode_escape").decode())
    return cut


@pytest.fixture
def measured(place, tmp_path, capsys):
    """What `evaluate --json` writes of the default model."""
    target = tmp_path / "metrics.json"
    command = "evaluate", place / "model", place / "test.jsonl", "--thresholds", "--json", target
    assert run(capsys, *command)[0] == 0
    return target


def shown_card(capsys, *arguments):
    code, out, _ = run(capsys, "inspect", *arguments)
    assert code == 0
    return out


@pytest.mark.parametrize("name", ["model", "astec", "sparse"])
def test_a_card_says_what_the_model_is(name, place, capsys):
    card = shown_card(capsys, place / name, "--card")
    recipe = "astec" if name == "astec" else "longtail"
    kind, n = ("tabular", 5) if name == "sparse" else ("text", 10)
    tags = ["extreme-multi-label-classification", recipe]
    assert facts_of(card) == {
        "library_name": "longtail",
        "pipeline_tag": f"{kind}-classification",
        "tags": tags,
    }
    assert titles_of(card)[0] == name
    assert "Evaluation" not in titles_of(card)
    assert f"the most relevant of {n} labels. The recipe {recipe} trained it on " in card
    assert "is the probability that this label is right" in card
    assert ["dimension", "16"] in cells(card, "Training")
    assert "random_state" not in card
    size = sum(file.stat().st_size for file in (place / name).iterdir())
    assert cells(card, "Files")[-1] == ["in all", f"{size / 1000:.1f} kB"]
    model = load(place / name)
    counts = sorted(model.train_label_counts.tolist(), reverse=True)
    assert [row[1] for row in cells(card, "Labels")[1:]] == [str(count) for count in counts]
    names = [label for label, _ in cells(card, "Labels")[1:]]
    assert sorted(names) == sorted(map(model.label_space.name, range(n)))


@pytest.mark.parametrize("name", ["model", "sparse"])
@pytest.mark.parametrize("called", ["model", "-my model's `best`", "~", "a\nb", "weiß 🍷"])
def test_what_a_card_tells_to_run_runs(name, called, place, tmp_path, capsys, monkeypatch):
    shutil.copytree(place / name, tmp_path / called)
    monkeypatch.chdir(tmp_path)
    card = shown_card(capsys, f"./{called}", "--card")
    if not called.isprintable():
        (tmp_path / called).rename(tmp_path / "model")
    (language, command), (python, lines) = blocks(card)
    assert (language, python) == ("sh", "python")
    words = shlex.split(command)
    shutil.copy(place / "sparse.txt", tmp_path / "FILE")
    code, out, _ = run(capsys, *words[1:])
    assert (words[0], code) == ("longtail", 0)
    assert name == "model" or out
    exec(compile(lines, "card", "exec"), {})  # noqa: S102 - our own lines
    assert name == "model" or "0." in capsys.readouterr().out


def test_metrics_are_in_the_form_that_hubs_read(place, capsys, measured):
    card = shown_card(
        capsys, place / "model", "--card", "--metrics", measured, "--measured-on", "wines: first 8"
    )
    metrics = json.loads(measured.read_text())
    (index,) = facts_of(card)["model-index"]
    (result,) = index["results"]
    assert index["name"] == "model"
    assert result["task"] == {"type": "text-classification"}
    assert result["dataset"] == {"type": "wines-first-8", "name": "wines: first 8"}
    told = {metric["name"]: metric["value"] for metric in result["metrics"]}
    assert told == {k: metrics[k] for k in ("P@1", "P@5", "PSP@1", "PSP@5", "nDCG@5", "R@100")}
    assert all(isinstance(value, float) for value in told.values())
    rows = cells(card, "Evaluation")
    assert rows[0] == ["metric", "@1", "@3", "@5", "@10", "@100"]
    assert rows[1][:4] == ["P", *(f"{metrics[f'P@{k}']:.2f}" for k in (1, 3, 5))]
    assert "on wines\\: first 8, 8 points:" in card


def test_a_card_calls_points_by_their_file_where_nobody_names_them(place, capsys, measured):
    command = place / "model", "--card", "--metrics", measured
    card = shown_card(capsys, *command)
    assert "on test.jsonl, 8 points:" in card
    (index,) = facts_of(card)["model-index"]
    assert index["results"][0]["dataset"] == {"type": "test.jsonl", "name": "test.jsonl"}
    metrics = json.loads(measured.read_text())
    measured.write_text(json.dumps(metrics | {"test": "-"}))
    assert "In percent, on 8 points:" in shown_card(capsys, *command)
    of_before = {name: value for name, value in metrics.items() if "@" in name}
    measured.write_text(json.dumps(of_before))  # as earlier versions wrote it
    assert "In percent, on test points:" in shown_card(capsys, *command)


def test_metrics_of_another_model_are_remarked_on(place, capsys, measured):
    command = "--card", "--metrics", measured
    assert run(capsys, "inspect", place / "model", *command)[2] == ""
    err = run(capsys, "inspect", place / "astec", *command)[2]
    assert f"longtail: warning: {measured} was measured with another model" in err
    assert f"longtail evaluate {place / 'astec'} TEST --json FILE" in err


def test_a_hubs_own_library_reads_the_card(place, capsys, measured):
    hub = pytest.importorskip("huggingface_hub")
    card = hub.ModelCard(shown_card(capsys, place / "model", "--card", "--metrics", measured))
    found = {result.metric_name: result for result in card.data.eval_results}
    assert found["P@1"].metric_value == json.loads(measured.read_text())["P@1"]
    assert found["P@1"].dataset_type == "test.jsonl"
    assert card.data.library_name == "longtail"
    assert card.data.pipeline_tag == found["R@100"].task_type == "text-classification"


def test_metrics_may_come_from_a_pipe(place, capsys, measured, monkeypatch):
    command = place / "model", "--card", "--metrics"
    expected = shown_card(capsys, *command, measured)
    monkeypatch.setattr("sys.stdin", stdin_of(measured.read_bytes()))
    assert shown_card(capsys, *command, "-") == expected


def test_a_card_is_written_beside_its_model(place, tmp_path, capsys):
    model, other = tmp_path / "model", tmp_path / "other"
    shutil.copytree(place / "model", model)
    shutil.copytree(place / "model", other)
    said = shown_card(capsys, model, "--card")
    for target in (model / "README.md", tmp_path / "card.MD", model / "README.md"):
        code, out, err = run(capsys, "inspect", model, "--card", target)
        assert (code, out, err) == (0, "", f"The card is {target}.\n")
        assert target.read_text(encoding="utf-8") == said
    assert shown_card(capsys, model, "--card", "--verify") == said  # it is none of the model's
    assert "is in the model folder" in refused(
        capsys, "inspect", model, "--card", other / "README.md"
    )
    for name in ("manifest.json", "README", "train.jsonl"):
        message = refused(capsys, "inspect", model, "--card", model / name)
        assert "name a file that ends in .md" in message
    assert "there is no folder" in refused(
        capsys, "inspect", model, "--card", tmp_path / "none" / "a.md"
    )
    metrics = tmp_path / "metrics.md"
    metrics.write_text("{}")
    command = "inspect", model, "--card", metrics, "--metrics", metrics
    assert "would be lost" in refused(capsys, *command)


def test_options_that_do_not_go_together(place, capsys, measured):
    model = place / "model"
    assert "Add --card" in refused(capsys, "inspect", model, "--metrics", measured)
    assert "Add --card" in refused(capsys, "inspect", model, "--measured-on", "wines")
    assert "add --metrics" in refused(capsys, "inspect", model, "--card", "--measured-on", "wines")
    for option in (["--label", "drink"], ["--token", "wine"], ["--compile"]):
        assert f"Omit {option[0]}" in refused(capsys, "inspect", model, "--card", "-", *option)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"P@1 51.2\n", "is not JSON"),
        (b"", "is not JSON"),
        (b"[51.2]", "Expected a JSON object, got a list"),
        (b'{"accuracy": 0.9}', "There is no P@1, no P@5, no PSP@1"),
        (b'{"P@1": 1, "P@5": 1, "PSP@1": 1, "PSP@5": 1, "nDCG@5": 1}', "There is no R@100."),
        (b"\xff\xfe{\x00}\x00", "UTF-16"),
        (b'{"P@1": "\xff"}', "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_metrics_of_something_else_are_refused(place, capsys, tmp_path, content, message):
    path = tmp_path / "m.json"
    path.write_bytes(content)
    told = refused(capsys, "inspect", place / "model", "--card", "--metrics", path)
    assert message in told
    assert str(path) in told


@pytest.mark.parametrize(
    "value",
    [
        "NaN",
        "Infinity",
        "-1",
        "100.5",
        '"51.2"',
        "true",
        "null",
        pytest.param("1" * 400, id="long"),
    ],
)
@pytest.mark.parametrize("key", ["PSP@5", "R@10"])
def test_metrics_that_are_no_shares_are_refused(place, capsys, measured, key, value):
    metrics = json.loads(measured.read_text())
    text = json.dumps(metrics | {key: 12345}).replace("12345", value)
    measured.write_text(text)
    message = refused(capsys, "inspect", place / "model", "--card", "--metrics", measured)
    assert f"{key} is a number from 0 to 100, got" in message


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("n_points", 0, "n_points is a whole number above 0, got 0."),
        ("n_points", True, "n_points is a whole number above 0, got True."),
        ("n_points", "8", "n_points is a whole number above 0, got '8'."),
        ("test", 3, "test is a string, got 3."),
        ("model_checksum", [], "model_checksum is a string, got []."),
    ],
)
def test_what_was_measured_is_checked(place, capsys, measured, key, value, message):
    measured.write_text(json.dumps(json.loads(measured.read_text()) | {key: value}))
    told = refused(capsys, "inspect", place / "model", "--card", "--metrics", measured)
    assert message in told


def test_metrics_that_are_not_there_are_refused(place, capsys, tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        message = refused(capsys, "inspect", place / "model", "--card", "--metrics", path)
        assert f"{path} cannot be opened" in message


def odd_model(**keywords):
    labels = [[name] for name in ODD] * 2
    texts = [f"{i % 7} wine {i}" for i in range(len(labels))]
    return Parabel(n_threads=1, **keywords).fit(texts, labels).predictor_


def test_odd_names_stay_names(tmp_path):
    model = odd_model()
    name = '<b>|`x` \\ "q"\' # 🍷: -\u202e'
    metrics = dict.fromkeys(("P@1", "P@5", "PSP@1", "PSP@5", "nDCG@5", "R@100"), 50.0)
    card = card_of(model, tmp_path / name, measured=MeasuredMetrics(metrics), test_name="x: |<i>\n")
    facts = facts_of(card)
    assert facts["model-index"][0]["name"] == name
    assert facts["model-index"][0]["results"][0]["dataset"]["name"] == "x: |<i>\n"
    shown = [row[0] for row in cells(card, "Labels")[1:]]
    order = np.argsort(-model.train_label_counts, kind="stable")[:10].tolist()
    wanted = [as_shown(model.label_space.name(i)) for i in order]
    assert [label.strip("\u2068\u2069") for label in shown] == [label.strip() for label in wanted]
    kinds = {token.type for token in MARKDOWN.parse(body_of(card))}
    assert "html_block" not in kinds
    assert "\u202e" not in body_of(card)


@pytest.mark.parametrize("name", ODD)
def test_each_odd_name_in_a_cell(name):
    tokens = MARKDOWN.parse(f"# {escaped(name)}\n\n{table(['label', 'n'], [[name, '1']])}")
    shown = [texts_in(t) for t in tokens if t.type == "inline"]
    assert len(shown) == 5
    for text in (shown[0], shown[3]):
        inside = text.removeprefix("\u2068").removesuffix("\u2069")
        assert inside.strip() == as_shown(name).strip()
    assert shown[4] == "1"
    is_from_the_right = any("\u0590" <= sign <= "\u05ff" for sign in as_shown(name))
    assert shown[3].startswith("\u2068") == is_from_the_right == shown[3].endswith("\u2069")


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=40), st.text(st.sampled_from("|\\`\n\r <>-#*_[]()!&;:'\"~$@"), max_size=12))
def test_any_text_is_one_cell_and_one_yaml_string(first, second):
    rows = table(["label", "n"], [[first, "1"], [second, "2"]])
    inline = [t for t in MARKDOWN.parse(rows) if t.type == "inline"]
    assert len(inline) == 6
    assert [texts_in(t) for t in (inline[3], inline[5])] == ["1", "2"]
    assert texts_in(inline[4]).strip() == as_shown(second).strip()
    facts = front_matter({"a": first, "b": [second, {"c": first, "d": 1.5}]})
    read = yaml.safe_load(facts.removeprefix("---\n").removesuffix("\n---"))
    assert read == {"a": first, "b": [second, {"c": first, "d": 1.5}]}


def test_code_with_backticks():
    text = "a ``` b ```` c"
    (token,) = MARKDOWN.parse(code("sh", text))
    assert (token.info, token.content) == ("sh", f"{text}\n")


def test_numbers_for_names_and_labels_without_points(tmp_path):
    labels = LabelSpace(4)
    points = Dataset.of(TEXTS, [[0], [0], [1], [3]] * 5)
    model = DiSMEC(n_threads=1).fit_dataset(points).predictor_
    assert model.label_space == labels
    card = card_of(model, tmp_path / "m")
    assert "4 labels, which have numbers in place of names. Half of them" in card
    assert "; 1 have none." in card
    assert cells(card, "Labels")[1:] == [["0", "10"], ["1", "5"], ["3", "5"], ["2", "0"]]
    assert "with names" not in card
    assert "All settings are the recipe's defaults." in card


def test_only_fitted_numbers_are_called_probabilities(tmp_path):
    model = odd_model()
    for unfitted in (Calibration(), Calibration(of_shares=True)):
        card = card_of(model.replaced(calibration=unfitted), tmp_path / "m")
        assert "So it is no probability" in card
        assert "is the probability" not in card
    assert "So it is no probability" not in card_of(model, tmp_path / "m")


def test_labels_that_came_and_went_are_told(tmp_path, text_model_path):
    model = load(text_model_path)
    model = model.with_labels({"orange": "orange wine"}, {"orange": ["amber wine"] * 2})
    model = model.without_labels(["old", "new"]).with_names({"red": "rot|"})
    card = card_of(model, tmp_path / "m")
    assert "; since then, 1 label added, 2 labels removed and 1 label renamed." in card
    assert "Since then, 2 labels were removed: the others are called too probable" in card
    assert ["orange", "2"] in cells(card, "Labels")
    assert ["rot|", "5"] in cells(card, "Labels")
    assert "their examples are counted" in card
    assert "too probable" not in card_of(load(text_model_path), tmp_path / "m")


def test_numbers_that_were_put_into_fewer_bits_after_training_are_told(tmp_path):
    settings = {"dimension": 16, "epochs": 1, "n_threads": 1}
    trained = LongtailClassifier(**settings, storage="float32").fit(TEXTS, [["a"], ["b"]] * 10)
    model = trained.predictor_
    assert "were put into" not in card_of(model, tmp_path / "m")
    card = card_of(model.compressed("int8"), tmp_path / "m")
    assert " Since then its numbers were put into int8." in card
    assert ["storage", "float32"] in cells(card, "Training")


def test_a_model_made_by_hand_has_a_card(tmp_path):
    model = odd_model()
    bare = type(model)(
        scorer=model.scorer,
        label_space=model.label_space,
        vectorizer=model.vectorizer,
        n_features=model.n_features,
        calibration=model.calibration,
        train_label_counts=model.train_label_counts,
        description={},
    )
    card = card_of(bare, tmp_path / "m")
    assert facts_of(card)["tags"] == ["extreme-multi-label-classification"]
    assert "recipe" not in body_of(card)


def test_models_with_transformers_and_of_images(place):
    model, folder = load(place / "model"), ModelFolder.open(place / "model")
    pieces = PiecesOfTexts("{}", 8, 0)
    labels = np.zeros((10, 3)), np.arange(10)
    encoders = {
        "longtail[onnx]": OnnxEncoder(pieces, np.zeros(0, np.uint8), 2),
        "longtail[train,transformers]": TransformerEncoder(pieces, {}, {}),
    }
    for extra, encoder in encoders.items():
        card = model_card(model.replaced(scorer=OneVsAllScorer(encoder, *labels)), folder)
        assert f"With longtail installed as `{extra}`, for its transformer, beside" in card
    assert "transformer" not in model_card(model, folder)
    images = PointInput(InputKind.IMAGES, image_shape=(3, 16, 16))
    card = model_card(model.replaced(vectorizer=None, reads=images), folder)
    assert facts_of(card)["pipeline_tag"] == "image-classification"
    assert "it answers an image with" in card
    ((language, lines),) = blocks(card)
    assert language == "python"
    assert "points = np.ones((1, 3, 16, 16))" in lines
    assert "words" not in card


def test_a_training_of_another_version_is_left_out(tmp_path):
    model = odd_model()
    model.documents["training.json"] = {"seconds": 3}
    assert "of memory" not in card_of(model, tmp_path / "m")
    assert "of memory" in card_of(odd_model(), tmp_path / "m")


@pytest.mark.parametrize("has_torch", [True, False])
def test_settings_beside_the_defaults(tmp_path, monkeypatch, has_torch):
    if not has_torch:

        def missing(name):
            raise MissingExtraError(name)

        monkeypatch.setattr(trained_settings, "recipe", missing)
    model = odd_model(leaf_size=7)
    kept = {**model.description["settings"], "gone": "/home/me/vectors.bin", "odd": [1, "a|b"]}
    model.description["settings"] = kept
    shown = dict(cells(card_of(model, tmp_path / "m"), "Training")[1:])
    changed = {"leaf_size": "7", "gone": "vectors.bin", "odd": '[1, "a|b"]'}
    assert shown.items() >= changed.items()
    assert (shown == changed) == has_torch
    assert has_torch or shown["word_ngrams"] == "2"


def test_a_damaged_folder_gets_no_card(tmp_path, capsys):
    LongtailClassifier(dimension=16, epochs=1, n_threads=1).fit(TEXTS, [["a"], ["b"]] * 10).save(
        tmp_path / "m"
    )
    path = tmp_path / "m" / "labels.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert "checksum" in refused(capsys, "inspect", tmp_path / "m", "--card")


@pytest.mark.parametrize("change", ["add", "remove", "rename", "compress", "train", "elsewhere"])
def test_a_card_outlives_what_changes_the_model(change, place, tmp_path, capsys):
    model = tmp_path / "my model"
    shutil.copytree(place / "model", model)
    new = tmp_path / "new.txt"
    new.write_text("orange wine\n")
    beside = {"README.md": "# Mine", ".gitattributes": "* text", "LICENSE": "free"}
    for name, text in beside.items():
        (model / name).write_text(text)
    target = tmp_path / "other" if change == "elsewhere" else model
    commands = {
        "add": ["labels", "add", model, new, target],
        "remove": ["labels", "remove", model, "old", target],
        "rename": ["labels", "rename", model, "old", "ancient", target],
        "compress": ["compress", model, target],
        "train": ["train", place / "train.jsonl", "--model", target, "--recipe", "parabel"],
        "elsewhere": ["compress", model, target],
    }
    before = (model / "manifest.json").read_bytes()
    code, _, err = run(capsys, *commands[change])
    assert code == 0
    assert {name: (model / name).read_text() for name in beside} == beside
    if change == "elsewhere":
        assert not (target / "README.md").exists()
        assert "stayed" not in err
        return
    assert change == "compress" or (model / "manifest.json").read_bytes() != before
    assert f"LICENSE, README.md in {model} stayed as before.\n" in err
    told = err[err.index("`longtail inspect") + 1 :].partition("`")[0]
    assert main(shlex.split(told)[1:]) == 0
    assert (model / "README.md").read_text(encoding="utf-8").startswith("---\nlibrary_name: ")
    assert sorted(place.name for place in tmp_path.iterdir() if place.name.startswith(".")) == []


@pytest.mark.parametrize("name", ["labels.safetensors", "manifest.json"])
def test_a_card_takes_no_place_of_a_models_own_file(place, tmp_path, capsys, name):
    shutil.copytree(place / "model", tmp_path / "m")
    (tmp_path / "m" / "README.md").symlink_to(name)
    card = tmp_path / "m" / "README.md"
    assert "would be lost" in refused(capsys, "inspect", tmp_path / "m", "--card", card)
    assert run(capsys, "inspect", tmp_path / "m", "--verify")[0] == 0


def test_odd_names_beside_a_model_are_told_in_one_line(tmp_path, capsys):
    write_model_folder(tmp_path / "m", manifest={}, arrays={})
    (tmp_path / "m" / "two\nlines\x1b[31m").touch()
    say_what_stayed(str(tmp_path / "m"))
    told = capsys.readouterr().err
    assert told.startswith(r"two\nlines\x1b[31m in ")
    assert told.count("\n") == 1


def test_a_readme_is_in_nobodys_way(place, tmp_path, capsys):
    shutil.copytree(place / "model", tmp_path / "m")
    answers = load(tmp_path / "m").predict("red wine")
    (tmp_path / "m" / "README.md").write_bytes(b"\xff\x00 not even text")
    assert load(tmp_path / "m", verify=True).predict("red wine") == answers
    assert run(capsys, "inspect", tmp_path / "m", "--verify")[0] == 0
    assert run(capsys, "evaluate", tmp_path / "m", place / "test.jsonl")[0] == 0
    load(tmp_path / "m").save(tmp_path / "m")
    assert (tmp_path / "m" / "README.md").read_bytes() == b"\xff\x00 not even text"
    write_model_folder(tmp_path / "n", manifest={}, arrays={})
    assert "lacks a part" in refused(capsys, "inspect", tmp_path / "n", "--card")
