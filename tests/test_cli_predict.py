"""`longtail predict`."""

from __future__ import annotations

import errno
import gzip
import json
import os
import sys

import numpy as np
import pytest

from command_line import refused, rows, run, stdin_of, write_lines
from longtail import LongtailClassifier, load
from longtail.metrics import read_scores, top_k


def test_one_text_is_answered_with_probabilities_and_names(place, capsys):
    code, out, err = run(capsys, "predict", place / "model", "--text", "red wine", "--top-k", 3)
    assert (code, err) == (0, "")
    expected = load(place / "model").predict("red wine", k=3)
    assert out == "".join(f"{score:.4f}\t{name}\n" for name, score in expected)
    out = run(capsys, "predict", place / "model", "--text", "red wine", "--threshold", 1)[1]
    assert out == ""
    for threshold in (1.1, -0.1, "nan"):
        message = refused(
            capsys, "predict", place / "model", "--text", "red wine", "--threshold", threshold
        )
        assert "from 0 to 1" in message


def test_a_label_that_is_just_probable_enough_is_answered(place, capsys, tmp_path):
    texts = write_lines(tmp_path / "texts.txt", ["red wine"])
    least = float(load(place / "model").predict_topk(["red wine"], 1)[1][0, 0])
    for threshold, n_labels in ((least, 1), (least + 1e-6, 0)):
        options = ["--threshold", repr(threshold), "--top-k", 1]
        _, out, _ = run(capsys, "predict", place / "model", texts, *options)
        assert len(json.loads(out)["labels"]) == n_labels
    _, out, err = run(
        capsys, "predict", place / "model", "--text", "red wine", "--explain", "--threshold", 1
    )
    assert out.startswith("\nlabels of the nearest training points, and their rows of the training")
    assert all(line.partition("\trow ")[2].isdecimal() for line in out.splitlines()[2:])
    assert "No label: none is probable enough" in err


def test_answers_can_be_held_to_labels_of_a_file(place, capsys, tmp_path):
    model, allowed = load(place / "model"), ["drink", "vehicle", "red"]
    some = write_lines(tmp_path / "some.txt", ["drink\tsomething to drink", *allowed[1:]])
    masked = write_lines(tmp_path / "masked.txt", ["red"])
    options = ["--allowed", some, "--masked", masked, "--top-k", 10]
    expected = model.predict("red wine", 10, allowed=allowed, masked=["red"])
    assert {name for name, _ in expected} == {"drink", "vehicle"}
    out = run(capsys, "predict", place / "model", "--text", "red wine", *options)[1]
    assert out == "".join(f"{score:.4f}\t{name}\n" for name, score in expected)
    out = run(capsys, "predict", place / "model", "--text", "red wine", "--explain", *options)[1]
    for score, name in ((score, name) for name, score in expected):
        assert f"{score:.4f}\t{name}\n" in out
    assert "0\tred\n" not in out
    texts = write_lines(tmp_path / "texts.txt", ["red wine", "old car"])
    lines = run(capsys, "predict", place / "model", texts, *options)[1].splitlines()
    rows_found = model.predict(["red wine", "old car"], 10, allowed=allowed, masked=["red"])
    assert [json.loads(line)["labels"] for line in lines] == [[n for n, _ in r] for r in rows_found]
    out = run(capsys, "predict", place / "model", "--text", "red wine", "--masked", masked)[1]
    assert "drink" in out
    assert "red" not in out


def test_names_that_no_label_has_and_missing_files_of_names_are_said(place, capsys, tmp_path):
    wrong = write_lines(tmp_path / "wrong.txt", ["drink", "drinks"])
    more = write_lines(tmp_path / "more.txt", ["drink", "drinks", "vehicles"])
    (tmp_path / "empty.txt").write_text("")
    asked = ["predict", place / "model", "--text", "red wine"]
    for option in ("--allowed", "--masked"):
        said = refused(capsys, *asked, option, wrong)
        assert "is named 'drinks'" in said
        assert "names, " not in said
        assert "Of the 3 names, 2 are no label's." in refused(capsys, *asked, option, more)
        said = refused(capsys, *asked, option, tmp_path / "empty.txt")
        assert f"empty.txt is empty, so no label is {option[2:]}. Name labels in it" in said
        assert "none.txt cannot be opened" in refused(capsys, *asked, option, tmp_path / "none.txt")


def test_a_name_stays_on_its_line(capsys, tmp_path):
    names = ["two\nlines", "wine\u2028"]
    model = LongtailClassifier(epochs=1).fit(
        ["red wine", "fast car", "old car"] * 20, [names[:1], names[1:], names[1:]] * 20
    )
    model.save(tmp_path / "model")
    for more in ([], ["--explain"]):
        out = run(capsys, "predict", tmp_path / "model", "--text", "red wine", *more)[1]
        assert r"two\nlines" in out
        assert all(name not in out for name in names)


def test_k_may_exceed_the_labels_but_not_reason(place, capsys):
    out = run(capsys, "predict", place / "model", "--text", "red wine", "--top-k", 500)[1]
    assert 1 <= len(out.splitlines()) <= 10
    assert "--top-k must be between 1 and 10,000, got 0" in refused(
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


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", ".", "--text", "wine", "--text=beer"],
        ["predict", ".", "-", "--allowed", "wine", "--allowed", "beer"],
        ["predict", ".", "-", "--masked", "wine", "--masked", "beer"],
        ["labels", "add", "m", "new.txt", "n", "--examples", "wine", "--examples", "beer"],
        ["labels", "remove", "m", "n", "--from", "wine", "--from", "beer"],
    ],
)
def test_what_would_be_lost_is_refused(arguments, capsys):
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "came twice, with 'wine' and 'beer'. Pass one; a file, or standard input, may" in err


def test_a_text_in_place_of_a_file_is_told_how_to_be_passed(place, capsys):
    assert "a text is passed as --text" in refused(capsys, "predict", place / "model", "red wine")


def test_the_name_of_json_lines_is_believed(place, capsys, tmp_path):
    path = write_lines(tmp_path / "texts.json", ["[", '{"text": "red wine"}', "]"])
    message = refused(capsys, "predict", place / "model", path)
    assert "texts.json, line 1: " in message
    assert 'Write one object a line: {"text": "some words"}.' in message
    write_lines(tmp_path / "texts", ["{curly} wine", "car"])
    assert "pass --format text" in refused(capsys, "predict", place / "model", tmp_path / "texts")
    (tmp_path / "latin.jsonl").write_bytes('{"text": "caf\xe9"}\n'.encode("latin-1"))
    message = refused(capsys, "predict", place / "model", tmp_path / "latin.jsonl")
    assert "line 1: The line is not UTF-8 (byte 0xe9 at position 13)" in message


def test_the_file_may_stand_behind_the_options(place, capsys):
    expected = run(capsys, "predict", place / "model", place / "test.jsonl", "--top-k", 1)
    assert run(capsys, "predict", place / "model", "--top-k", 1, place / "test.jsonl") == expected
    code, _, err = run(capsys, "predict", place / "model", place / "test.jsonl", "more")
    assert code == 2
    assert "unrecognized arguments: more" in err


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
        monkeypatch.setattr(sys, "stdin", stdin_of("\n".join(TEXTS).encode()))
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


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n\r\n", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("is_json", [True, False])
def test_what_stands_before_the_first_text(start, is_json, place, capsys, tmp_path, monkeypatch):
    texts = [json.dumps({"text": "red wine"})] * 2 if is_json else ["red wine"] * 2
    content = start + "\n".join(texts).encode()
    source = tmp_path / "texts.txt"
    source.write_bytes(content)
    n_blank = 0 if is_json else start.count(b"\n")  # of plain text, each line is a point
    for file in (source, "-"):
        monkeypatch.setattr(sys, "stdin", stdin_of(content))
        out = run(capsys, "predict", place / "model", file)[1]
        found = [json.loads(line)["text"] for line in out.splitlines()]
        assert found == [""] * n_blank + ["red wine"] * 2


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
    deep = write_lines(tmp_path / "in.jsonl", ['{"text": "red wine", "more": ' + "[" * 100_000])
    assert "line 1" in refused(capsys, "predict", place / "model", deep)
    assert "line 1" in refused(capsys, "evaluate", place / "model", deep)
    empty = write_lines(tmp_path / "empty.txt", [])
    assert "is empty" in refused(capsys, "predict", place / "model", empty)


def test_the_input_is_no_output(place, capsys, tmp_path):
    source = tmp_path / "texts.txt"
    write_lines(source, ["red wine", "fast car"])
    link = tmp_path / "link.txt"
    link.symlink_to(source)
    for target in (source, link):
        message = refused(capsys, "predict", place / "model", source, "--output", target)
        assert "is read by this command and would be lost. Name another file" in message
    assert source.read_text() == "red wine\nfast car\n"


def test_an_output_that_is_a_pipe_stays_one(place, capsys, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        code = run(capsys, "predict", place / "model", place / "test.jsonl", "--output", pipe)[0]
        lines = os.read(reader, 60_000).splitlines()
    finally:
        os.close(reader)
    assert code == 0
    assert pipe.is_fifo()
    assert [json.loads(line)["text"] for line in lines] == [row["text"] for row in rows()]


def test_a_disk_that_fills_up_is_said_in_one_sentence(place, capsys, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("longtail.cli.answer_formats.msgspec.json.encode", full)
    command = ("predict", place / "model", place / "test.jsonl", "--output", tmp_path / "out.jsonl")
    assert "No space left on device. Free some space" in refused(capsys, *command)
    assert not list(tmp_path.iterdir())


def test_answers_are_written_as_a_sparse_matrix(place, capsys, tmp_path):
    model, texts = load(place / "model"), ["red wine", "zzz", "old car"]
    file, out = write_lines(tmp_path / "texts.txt", texts), tmp_path / "scores.npz"
    code, printed, err = run(capsys, "predict", place / "model", file, "--output", out)
    assert (code, printed) == (0, "")
    assert f"Wrote the labels of 3 points to {out}" in err
    ids, probabilities = model.predict_topk(texts, 5)
    scores = read_scores(out)
    assert scores.shape == (3, model.n_labels)
    found = top_k(scores, 5)
    assert np.array_equal(np.sort(found[0]), np.sort(ids))
    assert np.array_equal(found[1], probabilities)
    least = float(probabilities[0, 1])
    run(capsys, "predict", place / "model", file, "--output", out, "--threshold", repr(least))
    assert np.array_equal(read_scores(out).data, scores.data[scores.data >= least])


def test_what_a_matrix_cannot_hold_is_refused_and_no_file_is_left(place, capsys, tmp_path):
    out = tmp_path / "scores.npz"
    file, empty = write_lines(tmp_path / "texts.txt", ["red wine"]), tmp_path / "empty.txt"
    empty.touch()
    refused_keep = refused(
        capsys, "predict", place / "model", file, "--output", out, "--keep", "id"
    )
    assert "keeps no columns" in refused_keep
    assert "empty" in refused(capsys, "predict", place / "model", empty, "--output", out)
    packed = tmp_path / "scores.npz.gz"
    assert "'.npz'" in refused(capsys, "predict", place / "model", file, "--output", packed)
    assert not out.exists()
