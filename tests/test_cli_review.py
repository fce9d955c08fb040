"""`longtail review`: what it finds, writes and reads again, and what it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

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
    assert "Each training will take about" in err
    assert [line for line in err.splitlines() if line.startswith("part ")] == [
        f"part {i} of 4" for i in (1, 2, 3, 4)
    ]
    assert sorted(tmp_path.iterdir()) == [path]  # nothing is kept beside it any more
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


def rows_in(path):
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


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
    assert out
    assert all(json.loads(line)["kind"] for line in out.splitlines())


def test_without_an_output_it_shows_the_surest(train, capsys):
    code, out, _ = run(capsys, "review", train, "--most", "1", *SMALL)
    assert code == 0
    assert "1 label may be missing:" in out
    assert "--apply" not in out


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("review.csv", "kind,point,text,label,probability,given,answers,label_id\n"),
        ("review.jsonl", ""),
        ("-", ""),
    ],
)
def test_clean_labels_leave_nothing_to_do(name, content, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"text": f"red wine of {year}", "labels": ["drink"]} for year in range(1960, 2000)]
    train = write_lines(tmp_path / "train.jsonl", map(json.dumps, rows))
    code, out, _ = run(capsys, "review", train, "--output", name, *SMALL)
    assert code == 0
    if name == "-":
        assert out == content
    else:
        assert out.splitlines() == ["0 labels may be missing.", "0 labels may be wrong."]
        assert (tmp_path / name).read_text() == content


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
    for name in ("review.parquet", "review.PARQUET", "review.xlsx", "review.npz", "review.zip"):
        said = refused(capsys, "review", train, "--output", tmp_path / name)
        assert "what a review finds is written as a page, as CSV, TSV or JSON lines" in said
    said = refused(capsys, "review", train, "--output", train)
    assert "is read by this command and would be lost" in said
    assert "epochs is a setting of the recipe" in refused(capsys, "review", train, "--epochs", "3")
    said = refused(capsys, "review", train, "--parts", "81", *SMALL)
    assert "from 2 to the number of different points, 80, got 81" in said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"point": 3},
            "whose point 3 is 'old car on a road 1961' and not 'old car on a road 1963'",
        ),
        ({"point": 80}, "which has 80 points, and none is number 80"),
        ({"point": -1}, "which has 80 points, and none is number -1"),
        ({"label": "drink"}, "whose label 1 is 'vehicle' and not 'drink'"),
        ({"label_id": 2}, "which has 2 labels, and none is number 2"),
        ({"kind": "doubtful"}, "puts the label 'vehicle' in, and one that takes it out"),
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


def test_lines_of_another_encoding_are_refused(train, capsys, tmp_path):
    path = tmp_path / "review.jsonl"
    path.write_bytes('{"kind": "missing", "point": 7, "label": "v\xe9hicle"}'.encode("latin-1"))
    told = refused(capsys, "review", train, "--apply", path, "--output", tmp_path / "out.jsonl")
    assert "line 1: The line is not UTF-8" in told


ROW = f"missing,{WRONG},old car on a road 1963,vehicle,1"
HEADER = "kind,point,text,label,label_id"


@pytest.mark.parametrize(
    "content",
    [
        f"{HEADER}\n{ROW}\n",
        f"\ufeff{HEADER}\r\n{ROW}\r\n",
        f"{HEADER.replace(',', ' ,').title()}\n{ROW}\n",
        f"\n,,,,\n{HEADER}\n,,,,\n{ROW}\n\n",
        f"label_id,kind,point,label\n1,missing,{WRONG},vehicle\n",
        f"{HEADER}\n{ROW}\n{ROW}\n",
        f"{HEADER}\n{ROW}\n{HEADER}\n{ROW}\n",
        f"{HEADER}\n{ROW}\ndoubtful,0,red wine in a glass 1960,vehicle,1\n",
        f"{HEADER}\n{ROW}\nmissing,0,red wine in a glass 1960,drink,0\n",
    ],
    ids=["plain", "windows", "capitals", "blank", "order", "twice", "joined", "absent", "present"],
)
def test_what_people_make_of_a_table_is_read_and_changes_are_counted(
    content, train, capsys, tmp_path
):
    path, target = tmp_path / "review.csv", tmp_path / "corrected.jsonl"
    path.write_bytes(content.encode())
    code, out, err = run(capsys, "review", train, "--apply", path, "--output", target)
    assert code == 0
    assert "1 label put in, 0 taken out: 80 points" in out
    assert ("1 row changed nothing" in err) == ("glass" in content)
    assert names_of(Dataset.read(target))[WRONG] == {"drink", "vehicle"}


def test_a_table_without_its_header_is_refused(train, capsys, tmp_path):
    path = write_lines(tmp_path / "review.csv", [ROW])
    told = refused(capsys, "review", train, "--apply", path, "--output", tmp_path / "out.jsonl")
    assert "line 1: The first row must name the columns, kind, point, label, label_id" in told


ODD = ["=1+1", "dri|nk, 'or'", 'a "quoted" one', "two\nlines", "a\tTAB ", "a\r\u2028c", "naïve"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".csv.gz"])
def test_names_and_texts_with_anything_in_them_come_back(suffix, capsys, tmp_path):
    rows = [
        {"text": f"{ODD[i % 7]} word{i % 7} {i}", "labels": [ODD[(i + (i == WRONG)) % 7]]}
        for i in range(140)
    ]
    train = write_lines(tmp_path / "train.jsonl", map(json.dumps, rows))
    path, target = tmp_path / f"review{suffix}", tmp_path / "corrected.jsonl"
    assert run(capsys, "review", train, "--output", path, *SMALL)[0] == 0
    code, out, _ = run(capsys, "review", train, "--apply", path, "--output", target)
    assert (code, out.partition(":")[0]) == (0, "1 label put in, 1 taken out")
    corrected = rows_in(target)
    assert corrected[WRONG]["labels"] == [ODD[0]]
    corrected[WRONG] = rows[WRONG]
    assert corrected == rows


def test_points_of_a_table_of_pairs_have_the_numbers_of_joined_points(capsys, tmp_path):
    pairs = [
        (f"{what} {year}", label)
        for year in range(1960, 2000)
        for what, both in (("wine", ("drink", "grape")), ("car", ("vehicle", "road")))
        for label in both
    ]
    pairs.remove(("car 1970", "vehicle"))
    lines = ["text,labels", *(",".join(pair) for pair in pairs)]
    train = write_lines(tmp_path / "train.csv", lines)
    path, target = tmp_path / "review.csv", tmp_path / "corrected.csv"
    code, _, err = run(capsys, "review", train, "--output", path, *SMALL)
    assert code == 0
    assert "159 rows are joined to 80 points" in err
    _, out, _ = run(capsys, "review", train, "--apply", path, "--output", target)
    assert "1 label put in, 0 taken out: 80 points" in out
    points = Dataset.read(target)
    assert list(points.texts) == [
        f"{what} {y}" for y in range(1960, 2000) for what in ("wine", "car")
    ]
    assert names_of(points)[21] == {"vehicle", "road"}


LABELS = ["boat\ta ship", "vehicle\ta car or a bus", "drink\twater, wine", "last"]


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.tsv.gz", "out.parquet", "out.ft"])
@pytest.mark.parametrize("by_name", [True, False])
def test_with_a_labels_file_it_is_the_same_data_set_again(name, by_name, train, capsys, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    labels = write_lines(tmp_path / "labels.txt", LABELS)
    if not by_name:
        rows = rows_in(train)
        rows = [{**row, "labels": [2 if "drink" in row["labels"] else 1]} for row in rows]
        train = write_lines(tmp_path / "train.jsonl", map(json.dumps, rows))
    good = {"kind": "missing", "point": WRONG, "label": "vehicle", "label_id": 1}
    path = write_lines(tmp_path / "review.jsonl", [json.dumps(good)])
    target = tmp_path / name
    options = ["--labels", labels, "--apply", path, "--output", target]
    code, out, _ = run(capsys, "review", train, *options)
    assert code == 0
    assert out.splitlines()[-1] == f"  longtail train {target} --labels {labels} --model model"
    before, after = (Dataset.read(file, labels_file=labels) for file in (train, target))
    assert after.label_space == before.label_space
    assert after.texts == before.texts
    assert (after.labels - before.labels).nonzero() == (WRONG, 1)


@pytest.mark.parametrize("kind", ["repository", "svmlight", "pair", "matrices"])
@pytest.mark.parametrize("name", ["out.txt", "out", "out.svm"])
def test_features_are_corrected_too(kind, name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    classes = np.arange(60) % 2
    features = np.hstack([np.eye(2)[classes], random.random((60, 2))]).astype(np.float32)
    given = classes.copy()
    given[WRONG] = 1 - given[WRONG]
    dataset = Dataset.of(features, given[:, np.newaxis].tolist())
    train, labels, format_name = {
        "repository": ("train.txt", None, "repository"),
        "svmlight": ("train.svm", None, None),
        "pair": ("Xf.txt", "Y.txt", None),
        "matrices": ("X.npz", "Y.npz", None),
    }[kind]
    dataset.write(train, labels_path=labels, format=format_name)
    options = [train, *([] if labels is None else ["--label-pairs", labels])]
    _, out, _ = run(capsys, "review", *options, "--output", "review.csv", *SMALL)
    shown = f"review {' '.join(options)} --apply review.csv --output corrected.txt"
    assert out.splitlines()[-1] == f"  longtail {shown}"
    assert run(capsys, *shown.replace("corrected.txt", name).split())[0] == 0
    after = Dataset.read(name)
    assert (after.features != dataset.features).nnz == 0
    assert list(after.label_lists()) == classes[:, np.newaxis].tolist()
    for refused_name in ("out.jsonl", "out.npz", "out.xlsx"):
        said = refused(capsys, *shown.replace("corrected.txt", refused_name).split())
        assert "features are written as in the Extreme Classification Repository" in said


def test_texts_are_not_written_by_the_name_of_features(train, reviewed, capsys, tmp_path):
    for name in ("out.svm", "out.txt", "out"):
        target = tmp_path / name
        said = refused(capsys, "review", train, "--apply", reviewed, "--output", target)
        assert "texts are written as JSON lines, CSV, TSV or Parquet. Name it .jsonl" in said


def test_a_second_round_is_shown_another_name(train, reviewed, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = ["review", train, "--apply", reviewed, "--output", "corrected.jsonl"]
    assert run(capsys, *first)[0] == 0
    rows = rows_in("corrected.jsonl")
    rows[0]["labels"] = ["vehicle"]
    write_lines(tmp_path / "corrected.jsonl", map(json.dumps, rows))
    _, out, _ = run(capsys, "review", "corrected.jsonl", "--output", "review.csv", *SMALL)
    shown = out.splitlines()[-1].split()
    assert shown[-1] == "corrected2.jsonl"
    assert run(capsys, *shown[1:])[0] == 0
