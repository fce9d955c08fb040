"""`longtail review`: what it finds, writes and reads again, and what it refuses."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from command_line import SMALL, refused, run, write_lines
from longtail import Dataset
from longtail.data import InputWarning

WRONG = 7


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """A training set in which one car is called a drink."""
    place = tmp_path_factory.mktemp("review")
    rows = [
        {"text": f"{what} {year}", "labels": [label]}
        for year in range(1960, 2000)
        for what, label in (("red wine in a glass", "drink"), ("old car on a road", "vehicle"))
    ]
    rows[WRONG]["labels"] = ["drink"]
    return write_lines(place / "train.jsonl", map(json.dumps, rows))


@pytest.fixture(scope="module")
def reviewed(train, tmp_path_factory):
    """The review of it as JSON lines."""
    from longtail.cli import main

    path = tmp_path_factory.mktemp("reviewed") / "review.jsonl"
    assert main(["review", train, "--output", str(path), *SMALL]) == 0
    return path


def test_it_shows_what_it_finds_and_what_to_do_next(train, capsys, tmp_path):
    path = tmp_path / "my review.csv"
    code, out, err = run(
        capsys, "review", train, "--format", "json-lines", "--output", path, *SMALL
    )
    assert code == 0
    assert "80 points, 2 labels" in err
    assert "4 models are trained, each on 3 of 4 parts of the points." in err
    assert "Training will take about" in err
    assert [line for line in err.splitlines() if line.startswith("part ")] == [
        f"part {i} of 4" for i in (1, 2, 3, 4)
    ]
    assert "1 label may be missing:" in out
    assert "vehicle  old car on a road 1963" in out
    command = out.splitlines()[-1].strip()
    shown = f"longtail review {train} --format json-lines --apply '{path}' --output corrected.jsonl"
    assert command == shown
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[0]["kind"] == "missing"
    assert rows[0]["point"] == str(WRONG)
    assert rows[0]["label"] == "vehicle"
    assert rows[0]["answers"] == "vehicle|drink"
    assert float(rows[0]["probability"]) >= 0.5


def test_what_is_left_of_it_puts_the_labels_right(train, reviewed, capsys, tmp_path):
    target = tmp_path / "corrected.jsonl"
    rows = [json.loads(line) for line in reviewed.read_text().splitlines()]
    left = [row for row in rows if row["kind"] == "missing"]
    accepted = write_lines(tmp_path / "accepted.jsonl", map(json.dumps, left))
    code, out, _ = run(capsys, "review", train, "--apply", accepted, "--output", target)
    assert code == 0
    assert f"1 label put in, 0 taken out: 80 points in {target}" in out
    before, after = Dataset.read(train), Dataset.read(target)
    changed = [
        point
        for point, names in enumerate(zip(*map(names_of, (before, after)), strict=True))
        if names[0] != names[1]
    ]
    assert changed == [WRONG]
    assert names_of(after)[WRONG] == {"drink", "vehicle"}


def names_of(dataset):
    return [set(map(dataset.label_space.name, labels)) for labels in dataset.label_lists()]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".csv.gz"])
def test_all_kinds_of_files_say_the_same(suffix, train, capsys, tmp_path):
    path, target = tmp_path / f"review{suffix}", tmp_path / "corrected.jsonl"
    assert run(capsys, "review", train, "--output", path, *SMALL)[0] == 0
    assert run(capsys, "review", train, "--apply", path, "--output", target)[0] == 0
    assert "vehicle" in names_of(Dataset.read(target))[WRONG]


def test_a_spreadsheets_semicolons_and_cells_of_one_line_are_read(train, capsys, tmp_path):
    path, target = tmp_path / "review.csv", tmp_path / "corrected.jsonl"
    row = f"doubtful;{WRONG}; old car  on a road 1963;drink;0,01;vehicle|drink;0;done"
    write_lines(path, ["kind;point;text;label;probability;answers;label_id;note", row, ""])
    assert run(capsys, "review", train, "--apply", path, "--output", target)[0] == 0
    with pytest.warns(InputWarning, match="points without labels"):
        dataset = Dataset.read(target)
    assert names_of(dataset)[WRONG] == set()


def test_it_writes_json_lines_to_standard_output_and_nothing_else(train, capsys):
    code, out, _ = run(capsys, "review", train, "--output", "-", *SMALL)
    assert code == 0
    assert all(json.loads(line)["kind"] for line in out.splitlines())


def test_without_an_output_it_shows_the_surest(train, capsys):
    code, out, _ = run(capsys, "review", train, "--most", "1", *SMALL)
    assert code == 0
    assert "1 label may be missing:" in out
    assert "--apply" not in out


def test_clean_labels_leave_nothing_to_do(capsys, tmp_path):
    rows = [{"text": f"red wine of {year}", "labels": ["drink"]} for year in range(1960, 2000)]
    train = write_lines(tmp_path / "train.jsonl", map(json.dumps, rows))
    output = tmp_path / "review.csv"
    code, out, _ = run(capsys, "review", train, "--output", output, *SMALL)
    assert code == 0
    assert out.splitlines() == ["0 labels may be missing.", "0 labels may be wrong."]


def test_matrices_have_no_texts_to_show(capsys, tmp_path):
    random = np.random.default_rng(0)
    rows = [
        f"{label} {label}:1 {2 + random.integers(3)}:0.5"
        for label in random.integers(0, 2, 60).tolist()
    ]
    train = write_lines(tmp_path / "train.txt", ["60 5 2", *rows])
    output = tmp_path / "review.jsonl"
    code, out, _ = run(capsys, "review", train, "--output", output, "--most", "3", *SMALL)
    assert code == 0
    assert "labels may be wrong" in out


def test_what_cannot_be_done_is_refused_before_the_work(train, capsys, tmp_path):
    assert "--parts 1" in refused(capsys, "review", train, "--parts", "1")
    assert "--most 0" in refused(capsys, "review", train, "--most", "0")
    assert "Name a file for them" in refused(capsys, "review", train, "--apply", train)
    said = refused(capsys, "review", train, "--output", tmp_path / "review.parquet")
    assert "is written as CSV, TSV or JSON lines" in said
    said = refused(capsys, "review", train, "--output", train)
    assert "is read by this command and would be lost" in said
    assert "epochs is a setting of the recipe" in refused(capsys, "review", train, "--epochs", "3")
    said = refused(capsys, "review", train, "--parts", "81", *SMALL)
    assert "from 2 to the number of points, 80, got 81" in said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"point": 3}, "Point 3 and the label 'vehicle', 1, are not those of the training set"),
        ({"point": 80}, "are not those of the training set"),
        ({"point": -1}, "are not those of the training set"),
        ({"label": "drink"}, "are not those of the training set"),
        ({"label_id": 2}, "are not those of the training set"),
        ({"kind": "perhaps"}, "The row is not one of a review (Invalid enum value 'perhaps'"),
        ({"point": "many"}, "The row is not one of a review (Expected `int`"),
        ({"label": None}, "The row is not one of a review (Expected `str`"),
    ],
)
def test_rows_of_something_else_are_refused_with_their_line(row, said, train, capsys, tmp_path):
    good = {"kind": "missing", "point": WRONG, "text": "old car on a road 1963"}
    good |= {"label": "vehicle", "label_id": 1}
    path = write_lines(tmp_path / "review.jsonl", map(json.dumps, [good, good | row]))
    target = tmp_path / "corrected.jsonl"
    told = refused(capsys, "review", train, "--apply", path, "--output", target)
    assert f"{path}, line 2: " in told
    assert said in told
    assert not target.exists()


@pytest.mark.parametrize("lines", [[], ["kind,point,text,label,label_id"]])
def test_a_review_of_which_nothing_is_left_is_refused(lines, train, capsys, tmp_path):
    path = write_lines(tmp_path / "review.csv", lines)
    told = refused(capsys, "review", train, "--apply", path, "--output", tmp_path / "out.jsonl")
    assert told.endswith("has no rows, so there is nothing to put right.")


def test_lines_that_are_no_json_are_refused(train, capsys, tmp_path):
    path = write_lines(tmp_path / "review.jsonl", ["old car on a road 1963"])
    told = refused(capsys, "review", train, "--apply", path, "--output", tmp_path / "out.jsonl")
    assert "line 1: The row is not one of a review" in told
