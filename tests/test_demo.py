"""The demo: its data, and the command from end to end on something small."""

from __future__ import annotations

from argparse import ArgumentParser
from importlib.resources import files

import pytest

from html_page import Page
from longtail import Dataset
from longtail.data.from_python import labels_from
from longtail.data.text_column import TextColumn
from longtail.demo import command
from longtail.errors import InputError, ModelFolderError
from small_wordnet import whole_wordnet


@pytest.fixture(scope="module")
def bundled():
    return whole_wordnet()


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
    where = ["--report", str(tmp_path / "r.html"), "--model", str(tmp_path / "model")]
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
        command.run_command(parsed(tmp_path, "--report", str(tmp_path / "missing" / "r.html")))
    with pytest.raises(InputError, match="is a folder"):
        command.run_command(parsed(tmp_path, "--report", str(tmp_path)))


@pytest.mark.parametrize("output", ["model", "model/training.json", "model/reports/a.html"])
def test_a_report_is_not_put_into_the_model_folder(tmp_path, output):
    parser = ArgumentParser()
    command.add_arguments(parser)
    words = ["--model", tmp_path / "model", "--report", tmp_path / output]
    with pytest.raises(InputError, match="would be in the model folder"):
        command.run_command(parser.parse_args([str(word) for word in words]))
    assert not (tmp_path / "model").exists()
