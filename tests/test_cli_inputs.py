"""What the commands read and write: points without labels, points of another kind, streams."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from command_line import SMALL, refused, run, stdin_of, write_lines
from longtail import Dataset, load
from longtail.errors import InputError, ModelFolderError

TEXTS = ["red wine in a glass", "old car on a road"]


@pytest.fixture
def stdin(monkeypatch):
    """A function that makes bytes standard input."""
    return lambda content: monkeypatch.setattr("sys.stdin", stdin_of(content))


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A folder with a pair of sparse files, and a model that was trained on them."""
    folder = tmp_path_factory.mktemp("pair")
    write_lines(folder / "X.txt", ["40 6", *(f"{i % 2}:1 {2 + i % 4}:0.5" for i in range(40))])
    write_lines(folder / "Y.txt", ["40 2", *(f"{i % 2}:1" for i in range(40))])
    return folder


def texts_in(out):
    return [json.loads(line)["text"] for line in out.splitlines()]


@pytest.mark.parametrize(
    ("content", "notice"),
    [
        ("id,text\n1,{0}\n2,{1}\n", ""),
        ("text\n{0}\n{1}\n", ""),
        ("Text,labels\n{0},x\n{1},\n", ""),
        ("id,more,TEXT\n1,,{0}\n2,,{1}\n", ""),
        ("id,title\n1,{0}\n2,{1}\n", "'title' is taken as the text"),
        ("query\n{0}\n{1}\n", "'query' is taken as the text"),
        ("{0}\n{1}\n", ""),
        ("{0},never seen\n{1},x|y\n", "the first of the two columns is taken as the text"),
    ],
)
def test_a_table_needs_no_labels_to_be_answered(content, notice, place, capsys, tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text(content.format(*TEXTS))
    code, out, err = run(capsys, "predict", place / "model", path)
    assert (code, texts_in(out)) == (0, TEXTS)
    if notice:
        assert f"longtail: warning: {path}: " in err
    assert notice in err
    assert bool(err) == bool(notice)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,red wine,x\n", "line 1: None of the 3 columns is called 'text'.*the first row is '1',"),
        ("id,title,name\n1,a,b\n", "None of the 3 columns is called 'text'"),
        ("labels,words\na,b\n", "None of the 2 columns is called 'text'.*Call it 'text'"),
        ("text,id,text\na,1,b\n", "The header has 2 columns 'text'. Rename"),
        (
            "red wine\nfast, old car\n",
            "line 2: The row has 2 cells.*the first has 1.*--format text",
        ),
        ("text\tlabels\nred wine\tx\n", r"'\\t' between its cells, .*pass tsv as --format"),
        ("id;words\n1;red wine\n2;x,y\n", "line 3: The row has 2 cells.*but the first has 1"),
    ],
)
def test_a_table_whose_texts_cannot_be_told_is_refused(content, message, place, capsys, tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text(content)
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(refused(capsys, "predict", place / "model", path))


@pytest.mark.parametrize("header", ["id,text", "labels,words"])
def test_half_a_header_is_no_row_to_learn_from(header, capsys, tmp_path):
    path = write_lines(tmp_path / "train.csv", [header, "1,red wine"])
    message = refused(capsys, "train", path, "--model", tmp_path / "model", *SMALL)
    assert "line 1: The first row is a header with a column" in message
    assert "Name both columns, 'text' and 'labels'" in message


@pytest.mark.parametrize(
    ("content", "is_told"),
    [
        ('{"text": "red wine"}\n\n \n{"text": "old car"}\n', True),
        ("__label__red wine\n\n \nold car\n", True),
        ("red wine\n\n", False),  # a text that is empty
    ],
)
def test_blank_lines_without_an_answer_are_told(content, is_told, place, capsys, tmp_path):
    path = tmp_path / "points.txt"
    path.write_text(content)
    code, out, err = run(capsys, "predict", place / "model", path)
    assert (code, len(out.splitlines())) == (0, 2)
    told = f"longtail: warning: {path}: blank lines (skipped): 2, first at line 2.\n"
    without = "No label for 1 point: none is probable enough, or the model knows nothing of what is"
    assert err == (told if is_told else f"{without} said there.\n")


def test_of_a_pair_of_files_only_the_points_are_asked(pair, capsys, stdin):
    model = pair / "model"
    trained = ("train", pair / "X.txt", "--label-pairs", pair / "Y.txt", "--model", model)
    assert run(capsys, *trained, "--recipe", "parabel")[0] == 0
    code, out, err = run(capsys, "predict", model, pair / "X.txt", "--top-k", 1)
    assert (code, err) == (0, "")
    found = [json.loads(line)["labels"] for line in out.splitlines()]
    assert found == [[str(i % 2)] for i in range(40)]
    stdin(gzip.compress((pair / "X.txt").read_bytes()))
    from_pipe = ("predict", model, "-", "--format", "repository", "--top-k", 1)
    assert run(capsys, *from_pipe)[:2] == (0, out)
    # The labels by mistake.
    err = run(capsys, "predict", model, pair / "Y.txt")[2]
    assert "the header says 2 columns, but the model reads 6 features" in err
    shutil.copy(pair / "Y.txt", pair / "copy.txt")
    err = run(capsys, "evaluate", model, pair / "copy.txt", "--label-pairs", pair / "Y.txt")[2]
    assert "the header says 2 columns, but the model reads 6 features" in err
    assert "--label-pairs" in refused(capsys, "evaluate", model, pair / "X.txt")


SPARSE = [
    ["2 5 5", "0,2 0:1 2:0.5", "1,3 1:1"],
    ["", "2 5", "0:1 2:0.5", "1:1"],
    ["0,2 0:1 2:0.5", "1,3 1:1 3:1e-3"],
]


@pytest.mark.parametrize("lines", SPARSE)
def test_lines_of_features_are_no_prose(lines, place, capsys, tmp_path, stdin):
    path = write_lines(tmp_path / "points.txt", lines)
    message = refused(capsys, "predict", place / "model", path)
    assert "points.txt holds ready-made features (id:value), but the model was trained" in message
    stdin("\n".join(lines).encode())
    message = refused(capsys, "predict", place / "model", "-")
    assert "standard input holds ready-made features" in message
    # Who says that they are texts is believed.
    code, out, _ = run(capsys, "predict", place / "model", path, "--format", "text")
    assert (code, texts_in(out)) == (0, lines)


@pytest.mark.parametrize("lines", [["10:30", "11:45"], ["2 5 5", "red wine"], ["2 5"], ["0 0:1"]])
def test_texts_with_numbers_are_texts(lines, place, capsys, tmp_path):
    path = write_lines(tmp_path / "points.txt", lines)
    code, out, err = run(capsys, "predict", place / "model", path)
    assert (code, texts_in(out)) == (0, lines)
    assert all(said.startswith("No label for ") for said in err.splitlines())


@pytest.mark.parametrize("name", ["texts.csv.txt", "texts.json.old", "v1.tsv.txt.gz"])
def test_what_a_file_is_tells_the_end_of_its_name(name, place, capsys, tmp_path):
    content = b"red wine\nfast car\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    code, out, err = run(capsys, "predict", place / "model", tmp_path / name)
    assert (code, err) == (0, "")
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["red wine", "fast car"]


def test_labels_of_fasttext_lines_are_no_words(place, capsys, tmp_path, stdin):
    lines = [f"__label__drink __label__red {TEXTS[0]}", "", TEXTS[1]]
    path = write_lines(tmp_path / "points.txt", lines)
    assert texts_in(run(capsys, "predict", place / "model", path)[1]) == TEXTS
    stdin("\n".join(lines).encode())
    assert texts_in(run(capsys, "predict", place / "model", "-")[1]) == TEXTS


def test_columns_that_are_taken_as_text_are_pointed_out(place, capsys, tmp_path):
    path = write_lines(tmp_path / "points.txt", [f"{text}\tdrink" for text in TEXTS])
    _, out, err = run(capsys, "predict", place / "model", path)
    assert texts_in(out) == [f"{text}\tdrink" for text in TEXTS]
    assert "points.txt: each line is taken as one text" in err
    assert "pass --format tsv" in err


def test_a_header_that_is_taken_as_text_is_pointed_out(place, capsys, tmp_path):
    path = write_lines(tmp_path / "points.txt", ["text,labels", "red wine,drink"])
    _, out, err = run(capsys, "predict", place / "model", path)
    assert len(texts_in(out)) == 2
    assert "looks like a header, included. If it is one, pass --format csv" in err


def test_lines_that_end_in_carriage_returns_alone_are_refused(place, capsys, tmp_path, stdin):
    (tmp_path / "points.txt").write_bytes(b"red wine\rfast car\r")
    message = refused(capsys, "predict", place / "model", tmp_path / "points.txt")
    assert "Lines end in a carriage return alone" in message
    stdin(b"red wine\r\n")
    assert run(capsys, "predict", place / "model", "-")[0] == 0


def test_texts_are_no_features(place, capsys, tmp_path):
    plain = write_lines(tmp_path / "texts.txt", TEXTS)
    for arguments in (
        ("predict", place / "sparse", plain),
        ("predict", place / "sparse", plain, "--format", "text"),
        ("predict", place / "sparse", place / "test.jsonl"),
        ("evaluate", place / "sparse", place / "test.jsonl"),
    ):
        message = refused(capsys, *arguments)
        assert "ready-made features" in message
        assert "texts" in message
    message = refused(capsys, "evaluate", place / "model", place / "sparse.txt")
    assert "holds ready-made features (id:value), but the model was trained on texts" in message


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["csv", "tsv", "json-lines", "fasttext", "text"])
def test_standard_input_may_have_any_format(name, pack, place, capsys, stdin):
    content = {
        "csv": "id,text\n1,{0}\n2,{1}\n",
        "tsv": "{0}\tx\n{1}\ty\n",
        "json-lines": '{{"text": "{0}"}}\n{{"text": "{1}"}}\n',
        "fasttext": "__label__x {0}\n{1}\n",
        "text": "{0}\n{1}\n",
    }[name]
    stdin(pack(content.format(*TEXTS).encode()))
    code, out, _ = run(capsys, "predict", place / "model", "-", "--format", name)
    assert (code, texts_in(out)) == (0, TEXTS)


def test_every_command_reads_standard_input(place, capsys, stdin, tmp_path):
    test = (place / "test.jsonl").read_bytes()
    expected = run(capsys, "evaluate", place / "model", place / "test.jsonl")[1].splitlines()
    stdin(gzip.compress(test))
    code, out, _ = run(capsys, "evaluate", place / "model", "-", "--format", "json-lines")
    assert (code, out.splitlines()[:-1]) == (0, expected[:-1])
    stdin(b"port\tsweet red wine\n")
    assert run(capsys, "labels", "add", place / "model", "-", tmp_path / "more")[0] == 0
    assert load(tmp_path / "more").label_space.name(10) == "port"
    labels = write_lines(tmp_path / "labels.txt", ["port"])
    stdin(b"sweet red wine\tport\n")
    examples = ("--examples", "-", "--format", "tsv")
    code = run(capsys, "labels", "add", place / "model", labels, tmp_path / "more", *examples)[0]
    assert code == 0
    stdin(test)
    options = ("--test", "-", "--format", "json-lines")
    code, out, _ = run(capsys, "compress", place / "model", tmp_path / "small", *options)
    assert code == 0
    assert "P@1" in out


def test_labels_that_are_not_the_models_are_told_once(place, capsys, tmp_path):
    test = write_lines(tmp_path / "test.tsv", ["red wine\tdrink|claret|cup", "old car\tsaloon"])
    _, _, err = run(capsys, "compress", place / "model", tmp_path / "small", "--test", test)
    assert "3 of its 4 labels" in err
    assert err.count("longtail: warning:") == 1


def test_a_folder_that_was_forgotten_is_no_label(place, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refused(capsys, "labels", "remove", place / "model", "red", "white")
    assert "'white' is a label, too. Name the folder behind the labels" in message
    assert not list(tmp_path.iterdir())
    assert run(capsys, "labels", "remove", place / "model", "red", "./white")[0] == 0
    assert run(capsys, "labels", "remove", "white", "dry", "white")[0] == 0
    assert load("white").n_labels == 8


def test_standard_input_is_read_once(place, capsys, tmp_path):
    for arguments in (
        ("evaluate", place / "model", "-", "--labels", "-"),
        ("train", "-", "--labels", "-", "--model", tmp_path / "model"),
        ("labels", "add", place / "model", "-", tmp_path / "model", "--examples", "-"),
        ("compress", place / "model", tmp_path / "model", "--test", "-", "--label-pairs", "-"),
        ("distill", place / "model", tmp_path / "model", "--texts", "-", "--labels", "-"),
    ):
        assert "(-) is named 2 times, but it can be read only once" in refused(capsys, *arguments)
    message = refused(capsys, "evaluate", place / "model", "-")
    assert "so its format cannot be guessed. Pass --format, one of json-lines" in message
    message = refused(capsys, "predict", place / "sparse", "-")
    assert "so its format cannot be guessed. Pass --format, one of json-lines" in message


def test_standard_output_is_an_output(place, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ("predict", place / "model", place / "test.jsonl")
    assert run(capsys, *command, "--output", "-") == run(capsys, *command)
    command = ("evaluate", place / "model", place / "test.jsonl", "--json")
    code, out, err = run(capsys, *command, "-")
    assert code == 0
    assert "PSnDCG" in err
    assert run(capsys, *command, "metrics.json")[0] == 0
    written, kept = json.loads(out), json.loads(Path("metrics.json").read_text())
    Path("metrics.json").unlink()
    for metrics in (written, kept):
        assert metrics.pop("points_per_second") > 0
    assert written == kept
    for arguments in (
        ("train", place / "train.jsonl", "--model", "-"),
        ("compress", place / "model", "-"),
        ("labels", "remove", place / "model", "red", "-"),
    ):
        assert "A model is a folder, which - (standard output) is not" in refused(
            capsys, *arguments
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("train", "", "--model", "x"), "The word behind train"),
        (("train", "MODEL", "--model", "x", "--labels", ""), "The word behind --labels"),
        (("predict", "MODEL", "POINTS", "--output="), "--output"),
        (("inspect", ""), "The word behind inspect"),
        (("labels", "remove", "MODEL", "red", ""), "The word behind red"),
    ],
)
def test_an_empty_name_is_not_the_folder_where_one_is(
    place, capsys, tmp_path, monkeypatch, words, what
):
    monkeypatch.chdir(tmp_path)
    words = [str(place / "model") if word == "MODEL" else word for word in words]
    message = refused(capsys, *words)
    assert f"{what} is empty, as a shell leaves it where a variable is not set" in message
    assert "A model is a folder, which an empty name is not. Name one." in refused(
        capsys, "train", place / "train.jsonl", "--model", ""
    )
    assert run(capsys, "predict", place / "model", "--text", "")[0] == 0
    assert not list(tmp_path.iterdir())


def test_an_empty_path_is_not_a_folder_in_python_either():
    with pytest.raises(InputError, match="An empty path names no file"):
        Dataset.read("")
    with pytest.raises(ModelFolderError, match="An empty path names no model folder"):
        load("")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["predict", "m", "--k", "3"], "--k is not an option (did you mean --top-k?)"),
        (["predict", "m", "--top=3"], "--top is not an option (did you mean --top-k?)"),
        (["evaluate", "m", "t", "--threshold", "1"], "(did you mean --thresholds?)"),
        (["evaluate", "m", "t", "--label", "x"], "(did you mean --labels?)"),
        (["labels", "add", "m", "l", "o", "--example", "x"], "(did you mean --examples?)"),
        (
            ["predict", "--model", "m"],
            "--model is not an option: the model folder comes first, without one. `longtail",
        ),
        (["inspect", "m", "--colour"], "unrecognized arguments: --colour. `longtail inspect"),
        (["inspect", "m", "--hlep"], "(did you mean --help?)"),
        (
            ["labels", "remove", "m", "--label", "x", "o"],
            "need none, as in `longtail labels remove MODEL NAME ... OUT`. If --label is a name,",
        ),
        (["labels", "rename", "m", "--label", "x", "y", "o"], "labels rename MODEL NAME ... OUT`"),
        (["labels", "remove", "m", "--form=x", "o"], "(did you mean --from?)"),
    ],
)
def test_options_are_not_abbreviated_but_hinted_at(words, meant, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "mt":
        (tmp_path / name).mkdir()
    message = refused(capsys, *words)
    assert "unrecognized arguments: --" in message
    assert meant in message


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["inspect", "m", "--label", "-wine"], "--label=-wine"),
        (["predict", "m", "--text", "-a;b"], "--text='-a;b'"),
        (["predict", "m", "t", "--keep", "-id"], "--keep=-id"),
    ],
)
def test_how_to_write_a_value_that_begins_with_a_dash(words, meant, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "mt":
        (tmp_path / name).mkdir()
    said = f"A value that begins with a dash is written as {meant}. `longtail"
    assert said in refused(capsys, *words)


def test_standard_input_is_not_shared_by_processes(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WORLD_SIZE", "2")
    message = refused(capsys, "train", "-", "--format", "tsv", "--model", tmp_path / "model")
    assert "Standard input (-) can be read by one process, and there are 2 of them" in message
