"""Curves for TensorBoard; a stand-in for its writer, which `make install` leaves out."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from longtail.cli import main
from longtail.errors import MissingExtraError
from longtail.training.tensorboard import TensorBoard


class Writer:
    """Keeps what it is told."""

    folders: list[str] = []  # noqa: RUF012 - of all writers
    points: list[tuple[str, float, int]] = []  # noqa: RUF012

    def __init__(self, folder):
        self.folders.append(folder)

    def add_scalar(self, name, value, step):
        self.points.append((name, value, step))

    def flush(self):
        pass

    def close(self):
        self.folders.append("closed")


def test_curves_of_a_training(monkeypatch, tmp_path):
    monkeypatch.setitem(
        sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer)
    )
    train = tmp_path / "train.jsonl"
    kinds = [("wine", "drink"), ("car", "vehicle")] * 20
    points = [{"text": f"{i} {word}", "labels": [kind]} for i, (word, kind) in enumerate(kinds)]
    train.write_text("\n".join(map(json.dumps, points)))
    command = ["train", str(train), "--model", str(tmp_path / "model"), "--recipe", "xtransformer"]
    settings = ["epochs=3", "dimension=8", "held_out=0.5", "patience=3"]
    assert main([*command, "--tensorboard", "curves", "--set", *settings]) == 0
    assert Writer.folders == ["curves", "closed"]
    steps = {}
    for name, _, step in Writer.points:
        steps.setdefault(name, []).append(step)
    assert steps["loss of an epoch/index 1: matcher"] == [1, 2, 3]
    assert steps["quality of an epoch/index 1: matcher"] == [1, 2, 3]
    assert steps["loss of a batch/index 1: matcher"] == [1, 2, 3]
    assert steps["seconds/index 1: ranker"] == [0]
    assert all(value >= 0 for _, value, _ in Writer.points)


def test_the_command_says_what_is_missing_before_it_reads_anything(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    train = tmp_path / "train.jsonl"
    train.write_text("this is no JSON")
    command = ["train", str(train), "--model", str(tmp_path / "model")]
    assert main([*command, "--tensorboard", str(tmp_path / "curves")]) == 2
    assert capsys.readouterr().err.startswith("longtail: error: Curves for TensorBoard need ")
    assert [*tmp_path.iterdir()] == [train]


def test_curves_in_a_file_are_refused_before_anything_is_read(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(
        sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer)
    )
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "train.jsonl").write_text("this is no JSON")
    command = ["train", str(tmp_path / "train.jsonl"), "--model", str(tmp_path / "model")]
    for place in ("file", "file/curves"):
        assert main([*command, "--tensorboard", str(tmp_path / place)]) == 2
        assert f"{tmp_path / 'file'} is no folder that can be written to" in capsys.readouterr().err


def test_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"longtail\[tensorboard\]"):
        TensorBoard(tmp_path)


def test_what_is_missing_comes_with_the_extra_that_is_named():
    """The writer is one of torch, which who installed no extra does not have either."""
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    (torch,) = (needed for needed in extras["train"] if needed.startswith("torch"))
    assert torch in extras["tensorboard"]
