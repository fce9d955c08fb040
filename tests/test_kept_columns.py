"""Columns of points, such as their id, that stand beside the answers."""

from __future__ import annotations

import csv
import json

import pytest

from command_line import refused, run, stdin_of
from longtail import Dataset
from longtail.errors import InputError
from longtail.predictor import Predictor

TABLE = "ID,text,labels,shelf\na1,red wine,x,\na2,old car,y|z,7\n"
LINES = '{"uid": 17, "text": "red wine"}\n{"uid": {"a": "ä"}, "text": "old car"}\n'


def written(tmp_path, content, name="a.csv"):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


def answers(out):
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("key", ["id", "uid", "key"])
def test_an_id_is_carried_to_the_answers(place, tmp_path, capsys, key):
    path = written(tmp_path, f"text,{key}\nred wine,a1\nold car,\n")
    _, out, _ = run(capsys, "predict", place / "model", path)
    assert [(row[key], row["text"]) for row in answers(out)] == [
        ("a1", "red wine"),
        ("", "old car"),
    ]
    path = written(tmp_path, f'{{"text": "x", "{key}": 17}}\n{{"text": "y"}}\n', "a.jsonl")
    _, out, _ = run(capsys, "predict", place / "model", path)
    assert [row[key] for row in answers(out)] == [17, None]


def test_without_an_id_answers_are_as_before(place, tmp_path, capsys):
    for content, name in (("red wine\n", "a.txt"), ('{"text": "x", "a": 1}\n', "a.jsonl")):
        _, out, _ = run(capsys, "predict", place / "model", written(tmp_path, content, name))
        assert [*answers(out)[0]] == ["text", "labels", "scores"]


def test_an_id_that_the_first_line_lacks_is_missed_aloud(place, tmp_path, capsys):
    lines = '{"text": "\\"id\\""}\n{"text": "y", "uid": 2}\n{"text": "z", "id": 3}\n'
    _, out, err = run(capsys, "predict", place / "model", written(tmp_path, lines, "a.jsonl"))
    assert [[*row] for row in answers(out)] == [["text", "labels", "scores"]] * 3
    assert err.count("warning") == 1
    assert "line 2: there is a key 'uid', which the first line has not, so no answer" in err
    assert "pass --keep uid" in err


@pytest.mark.parametrize("name", ["out.csv", "out.tsv"])
@pytest.mark.parametrize(
    ("content", "source", "options", "head", "first", "second"),
    [
        (TABLE, "a.csv", [], ["ID"], ["a1"], ["a2"]),
        (TABLE, "a.csv", ["--keep", "shelf", "id"], ["shelf", "id"], ["", "a1"], ["7", "a2"]),
        (LINES, "a.jsonl", [], ["uid"], ["17"], ['{"a": "ä"}']),
    ],
)
def test_tables_of_answers_have_the_columns_in_front(
    place, tmp_path, capsys, name, content, source, options, head, first, second
):
    path, target = written(tmp_path, content, source), tmp_path / name
    assert run(capsys, "predict", place / "model", path, "--output", target, *options)[0] == 0
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t" if name.endswith("tsv") else ","))
    assert rows[0] == [*head, "text", "labels", "scores"]
    assert [row[: len(head)] for row in rows[1:]] == [first, second]
    assert list(Dataset.read(target).texts) == ["red wine", "old car"]


def test_keys_are_kept_as_they_are(place, tmp_path, capsys, monkeypatch):
    lines = '{"n": 1.50, "text": "x", "tags": ["a", null]}\n{"tags": "b", "n": null, "text": "y"}\n'
    monkeypatch.setattr("sys.stdin", stdin_of(lines.encode()))
    arguments = ["-", "--format", "json-lines", "--keep", "tags", "n"]
    code, out, _ = run(capsys, "predict", place / "model", *arguments)
    kept = [(row["tags"], row["n"]) for row in answers(out)]
    assert (code, kept) == (0, [(["a", None], 1.5), ("b", None)])
    assert '"n":1.50,' in out


@pytest.mark.parametrize("source", ["a.csv", "a.jsonl"])
def test_a_run_that_goes_on_keeps_the_same(place, tmp_path, capsys, monkeypatch, source):
    monkeypatch.setattr("longtail.cli.points.POINTS_AT_ONCE", 3)
    monkeypatch.setattr("longtail.data.blocks.POINTS_AT_ONCE", 3)
    lines = ["id,text", *(f"a{i},red wine {i}" for i in range(10))]
    if source == "a.jsonl":
        lines = [json.dumps({"id": f"a{i}", "text": f"red wine {i}"}) for i in range(10)]
    path = written(tmp_path, "\n".join(lines) + "\n", source)
    assert run(capsys, "predict", place / "model", path, "--output", tmp_path / "whole.csv")[0] == 0
    answer, asked = Predictor.predict_topk, []

    def stopped_later(self, *arguments, **keywords):
        asked.append(1)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return answer(self, *arguments, **keywords)

    target = tmp_path / "out.csv"
    with monkeypatch.context() as patch:
        patch.setattr(Predictor, "predict_topk", stopped_later)
        assert run(capsys, "predict", place / "model", path, "--output", target)[0] == 130
    code, _, err = run(capsys, "predict", place / "model", path, "--output", target)
    assert (code, "6 points" in err) == (0, True)
    assert target.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert target.read_text().splitlines()[10].startswith("a9,red wine 9,")


def test_other_columns_begin_anew(place, tmp_path, capsys, monkeypatch):
    path, target = written(tmp_path, TABLE), tmp_path / "out.csv"
    monkeypatch.setattr("longtail.data.blocks.POINTS_AT_ONCE", 1)
    answer, asked = Predictor.predict_topk, []

    def stopped_later(self, *arguments, **keywords):
        asked.append(1)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return answer(self, *arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(Predictor, "predict_topk", stopped_later)
        run(capsys, "predict", place / "model", path, "--output", target)
    arguments = ["predict", place / "model", path, "--output", target, "--keep", "shelf"]
    code, _, err = run(capsys, *arguments)
    assert (code, "--keep None, not shelf" in err) == (0, True)
    assert target.read_text().startswith("shelf,text,labels,scores\n")


@pytest.mark.parametrize(
    ("content", "name", "options", "message"),
    [
        (TABLE, "a.csv", ["--keep", "shelve"], "mean 'shelf'? There are: 'ID', 'text', "),
        (TABLE, "a.csv", ["--keep", "shelve"], "'shelf'. Name one of them as --keep."),
        (TABLE, "a.csv", ["--keep", "labels"], "Answers have 'labels' of their own"),
        (TABLE, "a.csv", ["--keep", "ID", "ID"], "named 2 times. Name each column once."),
        (TABLE, "a.csv", ["--keep", ""], "Pass a name as --keep."),
        ("ID,x\n1,red wine\n", "a.csv", ["--keep", "ID"], "None of the 2 columns is called 'text'"),
        ("id,ID,text\n1,2,red wine\n", "a.csv", ["--keep", "iD"], "2 columns 'iD'. Rename"),
        (LINES, "a.jsonl", ["--keep", "uuid"], "no key 'uuid'. Did you mean 'uid'?"),
        (LINES, "a.jsonl", ["--keep", "uuid"], "Name one of them as --keep."),
        ("red wine\n", "a.ft", ["--keep", "id"], "'fasttext' has no columns or keys"),
        (TABLE, "a.csv", ["--format", "text", "--keep", "ID"], "Plain text has no columns or keys"),
    ],
)
def test_what_cannot_be_kept_is_refused(place, tmp_path, capsys, content, name, options, message):
    path = written(tmp_path, content, name)
    assert message in refused(capsys, "predict", place / "model", path, *options)


def test_keep_before_the_file_takes_the_file(place, capsys):
    message = refused(capsys, "predict", place / "model", "--keep", "id", "a.csv")
    assert "--keep takes all words after it: put it last" in message
    message = refused(capsys, "predict", place / "model", "--text", "red wine", "--keep", "id")
    assert "belong to a FILE" in message


def test_columns_without_names_are_refused_by_python_too():
    from longtail.data.kept_columns import Kept

    with pytest.raises(InputError, match="named 2 times"):
        Kept(["a", "a"])
