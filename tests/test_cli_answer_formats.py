"""Answers that are written as a table."""

from __future__ import annotations

import csv
import gzip
import json

import pytest

from command_line import refused, run, write_lines
from longtail import load
from longtail.cli.answer_formats import lines_of
from longtail.data import Dataset

TEXTS = ['red "dry" wine, in a glass', "", "old\tcar", "a new car", "sweet\rwine"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("longtail.cli.points.POINTS_AT_ONCE", 2)


@pytest.fixture
def source(tmp_path):
    return write_lines(tmp_path / "in.jsonl", [json.dumps({"text": text}) for text in TEXTS])


@pytest.mark.parametrize(("name", "delimiter"), [("out.csv", ","), ("out.TSV.gz", "\t")])
def test_a_table_holds_what_json_lines_do(name, delimiter, place, source, capsys, tmp_path):
    target = tmp_path / name
    assert run(capsys, "predict", place / "model", source, "--output", target)[0] == 0
    lines = run(capsys, "predict", place / "model", source)[1].splitlines()
    content = target.read_bytes()
    content = gzip.decompress(content) if name.endswith("gz") else content
    rows = list(csv.reader(content.decode().split("\n")[:-1], delimiter=delimiter))
    assert rows.pop(0) == ["text", "labels", "scores"]
    for row, line in zip(rows, map(json.loads, lines), strict=True):
        scores = "|".join(map(str, line["scores"]))
        assert row == [line["text"], "|".join(line["labels"]), scores]


@pytest.mark.filterwarnings("ignore::longtail.data.InputWarning")  # one text is empty
def test_what_was_answered_can_be_learnt_from(place, source, capsys, tmp_path):
    target = tmp_path / "out.csv"
    run(capsys, "predict", place / "model", source, "--output", target, "--top-k", 2)
    dataset = Dataset.read(target)
    assert list(dataset.texts) == TEXTS
    answers = load(place / "model").predict(TEXTS, k=2)
    assert [{dataset.label_space.name(i) for i in row} for row in dataset.label_lists()] == [
        {name for name, _ in answer} for answer in answers
    ]


def test_features_have_no_column_of_texts(place, capsys, tmp_path):
    target = tmp_path / "out.tsv"
    test = place / "sparse.txt"
    run(capsys, "predict", place / "sparse", test, "--output", target, "--top-k", 1)
    assert target.read_text().splitlines()[0] == "labels\tscores"


def test_a_name_that_would_be_two_is_refused_first(place, capsys, tmp_path, source):
    model = load(place / "model").with_labels({"port|claret": "port or claret"})
    model.save(tmp_path / "model")
    options = ("predict", tmp_path / "model", source, "--output", tmp_path / "out.csv")
    message = refused(capsys, *options)
    assert "'port|claret' holds '|'" in message
    assert "such as out.jsonl, for JSON lines" in message
    assert not list(tmp_path.glob("*.csv"))


@pytest.mark.parametrize("name", ["port ", "\u00a0port"])
def test_a_name_that_blanks_belong_to_is_refused_first(place, capsys, tmp_path, source, name):
    load(place / "model").with_labels({name: "port wine"}).save(tmp_path / "model")
    options = ("predict", tmp_path / "model", source, "--output")
    message = refused(capsys, *options, tmp_path / "out.csv")
    assert f"{name!r} begins or ends with a blank" in message
    assert "such as out.jsonl, for JSON lines" in message
    assert run(capsys, *options, tmp_path / "out.jsonl")[0] == 0


def test_a_cell_that_is_too_long_to_be_read_is_told(place, capsys, tmp_path):
    long = {"text": "wine " * 30_000}
    source = write_lines(tmp_path / "in.jsonl", map(json.dumps, [long, {"text": "a car"}, long]))
    options = ("predict", place / "model", source, "--output")
    code, _, err = run(capsys, *options, tmp_path / "out.csv")
    assert code == 0
    assert err.count("cells of more than 131,072 characters") == 1
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 4
    assert "cells" not in run(capsys, *options, tmp_path / "out.jsonl")[2]


def test_a_stopped_table_is_gone_on_with(place, capsys, tmp_path, monkeypatch, source):
    whole, target = tmp_path / "whole.csv", tmp_path / "out.csv"
    run(capsys, "predict", place / "model", source, "--output", whole)
    from longtail.predictor import Predictor

    answers, seen = Predictor.predict_topk, []

    def predict_topk(self, points, *arguments, **keywords):
        seen.append(points)
        if len(seen) > 1:
            raise KeyboardInterrupt
        return answers(self, points, *arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(Predictor, "predict_topk", predict_topk)
        assert run(capsys, "predict", place / "model", source, "--output", target)[0] == 130
    _, _, err = run(capsys, "predict", place / "model", source, "--output", target)
    assert "has answered: 2 points" in err
    assert target.read_bytes() == whole.read_bytes()


def test_kept_values_of_json_are_written_as_they_stood(text_model_path, capsys, tmp_path):
    values = [
        "1e400",
        "-1e999",
        '[1e400, "a"]',
        '{"a": 1}',
        "1.50",
        "true",
        "null",
        '"a\\u00e9"',
        '""',
    ]
    lines = [f'{{"text": "dry wine", "n" : {value} }}' for value in values]
    source, target = write_lines(tmp_path / "in.jsonl", lines), tmp_path / "out.csv"
    words = ("predict", text_model_path, source, "--keep", "n", "--top-k", 1)
    assert run(capsys, *words, "--output", target)[0] == 0
    kept = [row["n"] for row in csv.DictReader(target.read_text("utf-8").splitlines())]
    assert kept == [*values[:6], "", "a\N{LATIN SMALL LETTER E WITH ACUTE}", ""]
    assert '"n":1e400' in run(capsys, *words)[1]


@pytest.mark.parametrize("name", ["a.xlsx", "a.Parquet.gz", "a.csv.zst", "a.xml.gz"])
def test_a_name_of_what_is_not_written_is_refused(place, source, capsys, tmp_path, name):
    message = refused(capsys, "predict", place / "model", source, "--output", tmp_path / name)
    assert "answers are not written as '." in message
    assert message.endswith("Name it .csv, .tsv, .parquet, .npz or .jsonl.")
    assert not (tmp_path / name).exists()


def test_no_points_are_no_lines():
    assert lines_of([], ",", with_header=True) == lines_of([]) == b""
