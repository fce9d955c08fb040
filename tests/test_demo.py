"""The demo: its data, its report, and the command from end to end on something small."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from longtail import Dataset
from longtail.data.from_python import labels_from
from longtail.data.text_column import TextColumn
from longtail.demo import charts, command
from longtail.demo.data import wordnet
from longtail.demo.report import Evaluation, write_report
from longtail.errors import InputError, MissingExtraError, ModelFolderError
from longtail.metrics import FrequencyBin

VOID = {"meta", "br", "link", "img"}
NASTY = """<script>alert("x")</script> & 'co'"""


class Page(HTMLParser):
    """Checks that tags are balanced, and collects what a test wants to look at."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.ids, self.text = [], [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self._note(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self._note(tag, attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def _note(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def an_evaluation():
    return Evaluation(
        metrics={"P@1": 33.25, "P@5": 14.0, "PSP@1": 19.5, "PSP@5": 22.0, "R@10": 45.0},
        frequency_k=5,
        by_frequency=[FrequencyBin(20, 9.25, 0.1, 0.05), FrequencyBin(21, 1.0, 0.04, 0.17)],
        milliseconds=np.linspace(0.2, 1.2, 101),
        points_per_second=12345.0,
    )


def a_training():
    time = {"wall_seconds": 60.0, "cpu_seconds": 110.0}
    stages = ("shared space", "again: shared space")
    return {
        "recipe": "LongtailClassifier",
        "seed": 7,
        "settings": {"dimension": 128, "note": NASTY},
        "n_labels": 104_011,
        "stages": dict.fromkeys(stages, time),
        "wall_seconds": 120.0,
        "cpu_seconds": 220.0,
        "peak_memory_mb": 2048,
        "history": [
            {"stage": stage, "epoch": epoch + 1, "loss": 8.0 / (epoch + 1), "seconds": 1.0}
            for stage in stages
            for epoch in range(3)
        ],
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(
        path,
        title="A report",
        introduction=NASTY,
        training=a_training(),
        statistics={
            "training": {"n_points": 93_311, "labels_per_point": 3.114},
            "test": {"n_points": 23_057},
        },
        evaluation=an_evaluation(),
        examples=[(NASTY, [(NASTY, 0.75), ("boat", 0.125)]), ("nothing known", [])],
        file_sizes={"labels.safetensors": 12_500_000},
        command=f"longtail demo --output {NASTY}",
        versions={"longtail": "0.1.0"},
    )
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


def test_report_is_one_balanced_page_that_loads_nothing(source):
    page = Page(source)
    assert page.tags[0] == ("html", {"lang": "en"})
    assert len(page.ids) == len(set(page.ids)) > 0
    assert not page.all("script")
    assert not page.all("link")
    assert not page.all("img")
    targets = re.findall(r'(?:href|src)="([^"]*)"|url\(([^)]*)\)|@import', source)
    assert all((a or b).startswith("#") for a, b in targets)
    for target, _ in targets:
        assert not target or target[1:] in page.ids


def test_report_escapes_whatever_comes_from_data(source):
    page = Page(source)
    assert "<script" not in source
    shown = "".join(page.text)
    # introduction, example text, label name, setting, command
    assert shown.count(NASTY) == 5


def test_report_holds_figures_and_charts(source):
    page = Page(source)
    labels = [attributes["aria-label"] for attributes in page.all("svg")]
    assert all(attributes["role"] == "img" for attributes in page.all("svg"))
    assert [label.split(",")[0] for label in labels] == [
        "Contribution to P@5",
        "Contribution to PSP@5",
        "Histogram of the time that one text takes: median 0.70",
        "shared space: training loss by epoch: 8",
        "again: shared space: training loss by epoch: 8",
    ]
    assert "quantile 1: 10.00, quantile 2: 4.00" in labels[0]
    shown = "".join(page.text)
    for figure in (
        "33.25",
        "104,011",
        "2 min 0 s",
        "12.5 MB",
        "2.1 GB",
        "0.70 ms",
        "93,311",
        "3.11",
        "75 %",
    ):
        assert figure in shown
    assert source.count('style="width: 75.0%"') == 1


def test_report_can_be_read_without_seeing_it(source):
    page = Page(source)
    assert len(page.all("table")) == len(page.all("caption"))
    assert len(page.all("h1")) == 1
    assert len(page.all("h2")) == len(page.all("section")) == 7
    assert all(attributes["scope"] in {"row", "col"} for attributes in page.all("th"))


def test_charts_take_their_colours_from_the_page(source):
    assert "prefers-color-scheme: dark" in source
    assert "var(--bar)" in source
    assert "currentColor" in source
    drawings = "".join(re.findall(r"<svg.*?</svg>", source, flags=re.DOTALL))
    assert re.findall(r"#[0-9a-f]{6}\b", drawings) == []


def test_report_in_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        write_report(
            tmp_path / "missing" / "report.html",
            title="",
            introduction="",
            training=a_training(),
            statistics={},
            evaluation=an_evaluation(),
            examples=[],
            file_sizes={},
            command="",
            versions={},
        )


def test_missing_matplotlib_names_the_command(monkeypatch):
    monkeypatch.setattr(charts, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'longtail\[report\]'"):
        charts.loss_chart("module I", [1.0])


@pytest.fixture(scope="module")
def bundled():
    return wordnet()


def test_bundled_data_is_complete(bundled):
    train, test = bundled
    assert (train.n_points, test.n_points, train.n_labels) == (93_311, 23_057, 104_011)
    assert test.n_labels == train.n_labels
    assert train.labels.nnz == 290_599
    assert train.label_space.name(0) == "able"


def test_bundled_data_has_its_licence():
    folder = files("longtail.demo") / "wordnet"
    licence = (folder / "LICENSE.txt").read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved." in licence
    assert "93,311" in (folder / "README.txt").read_text(encoding="utf-8")


def test_examples_are_not_in_the_data(bundled):
    definitions = {text.partition(" : ")[2] for part in bundled for text in part.texts}
    assert len(definitions) > 100_000
    assert definitions.isdisjoint(command.EXAMPLES)


def small_dataset():
    texts = ["red wine", "white wine", "fast car", "old car"] * 10
    names = [["drink"], ["drink", "white"], ["vehicle"], ["vehicle"]] * 10
    labels, space, _ = labels_from(names, len(texts))
    return Dataset(TextColumn.from_strings(texts), None, labels, space)


def parsed(tmp_path, *more):
    parser = ArgumentParser()
    command.add_arguments(parser)
    where = ["--output", str(tmp_path / "r.html"), "--model", str(tmp_path / "model")]
    return parser.parse_args([*where, *more])


def test_command_from_end_to_end(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "wordnet", lambda: (small_dataset(), small_dataset()))
    assert command.run_command(parsed(tmp_path)) == 0
    out = capsys.readouterr().out
    assert "LongtailClassifier, learns from 40 WordNet definitions" in out
    assert "P@1" in out
    assert f"longtail inspect {tmp_path / 'model'}" in out
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "drink" in "".join(page.text)
    assert (tmp_path / "model" / "manifest.json").exists()
    assert {p.name for p in tmp_path.iterdir()} == {"r.html", "model"}


def must_not_be_called():
    pytest.fail("the command read the data before it checked its paths")


def test_paths_are_checked_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "wordnet", must_not_be_called)
    (tmp_path / "model").write_text("something else")
    with pytest.raises(ModelFolderError):
        command.run_command(parsed(tmp_path))
    (tmp_path / "model").unlink()
    with pytest.raises(InputError, match="no folder"):
        command.run_command(parsed(tmp_path, "--output", str(tmp_path / "missing" / "r.html")))
    with pytest.raises(InputError, match="is a folder"):
        command.run_command(parsed(tmp_path, "--output", str(tmp_path)))


@pytest.mark.parametrize("output", ["model", "model/training.json", "model/reports/a.html"])
def test_a_report_is_not_put_into_the_model_folder(tmp_path, output):
    parser = ArgumentParser()
    command.add_arguments(parser)
    words = ["--model", tmp_path / "model", "--output", tmp_path / output]
    with pytest.raises(InputError, match="would be in the model folder"):
        command.run_command(parser.parse_args([str(word) for word in words]))
    assert not (tmp_path / "model").exists()
