"""Tables and JSON lines that call their texts and labels by names of their own."""

from __future__ import annotations

import json

import pytest

from command_line import SMALL, refused, rows, run, stdin_of
from longtail import load
from longtail.cli import main
from longtail.data import InputWarning
from longtail.data.columns import Columns
from longtail.errors import DataFormatError, InputError
from small_files import read

OWN = {"text_column": ["title", "more"], "labels_column": "tags", "label_separator": ";"}
OPTIONS = ["--text-column", "title", "more", "--labels-column", "tags", "--label-separator", ";"]


def csv_of(points):
    lines = [f"{i},{p['text']},{';'.join(p['labels'])},indeed" for i, p in enumerate(points)]
    return "\n".join(["id,Title,tags,more", *lines]) + "\n"


def names_in(dataset):
    return [[dataset.label_space.name(i) for i in ids] for ids in dataset.label_lists()]


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """A folder with a table of other names and a model that was trained on it."""
    folder = tmp_path_factory.mktemp("books")
    (folder / "books.csv").write_text(csv_of(list(rows()) * 8), encoding="utf-8")
    arguments = ["train", folder / "books.csv", "--model", folder / "model", *OPTIONS, *SMALL]
    assert main([str(argument) for argument in arguments]) == 0
    return folder


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "id,tags,more,Title\n1,a; b,knead,how to\n2,,,\n3,b,,tango\n"),
        ("a.tsv", "title\tmore\ttags\nhow to\tknead\ta;b;\n\t\t\ntango\t\tb\n"),
        (
            "a.jsonl",
            (
                '{"more": "knead", "tags": "a;b", "title": "how to"}\n'
                '{"title": null, "more": "", "tags": null}\n'
                '{"title": "tango", "more": null, "tags": ["b"], "text": 7}\n'
            ),
        ),
    ],
)
def test_names_of_a_users_own_are_read(tmp_path, name, content):
    with pytest.warns(InputWarning, match="empty texts .kept.: 1") as caught:
        dataset = read(tmp_path, content, name, **OWN)
    assert list(dataset.texts) == ["how to knead", "", "tango"]
    assert names_in(dataset) == [["a", "b"], [], ["b"]]
    assert "points without labels (kept): 1" in str(caught[0].message)
    assert ("beside ';' (left out): 1" in str(caught[0].message)) == (name == "a.tsv")


def test_what_is_not_named_is_called_as_usual(tmp_path):
    content = "name,tags,label\nred wine,a;b,c|d\n"
    assert names_in(read(tmp_path, content, text_column="name")) == [["c", "d"]]
    with pytest.warns(InputWarning, match="'name' is taken as the text"):
        assert list(read(tmp_path, content, labels_column="tags").texts) == ["red wine"]
    with pytest.warns(InputWarning, match="'name' is taken as the text"):
        assert names_in(read(tmp_path, "title,name\na,b\n", labels_column="title")) == [["a"]]
    assert names_in(read(tmp_path, "red wine,a;b|c\n", label_separator=";")) == [["a", "b|c"]]
    lines = '{"text": "red wine", "labels": "a, b"}\n'
    assert names_in(read(tmp_path, lines, "a.jsonl", label_separator=",")) == [["a", "b"]]


def test_numbers_are_ids_in_json_lines_and_names_in_tables(tmp_path):
    lines = '{"text": "a", "tag": 2}\n{"text": "b", "tag": [0, 1]}\n'
    dataset = read(tmp_path, lines, "a.jsonl", labels_column="tag")
    assert list(dataset.label_lists()) == [[2], [0, 1]]
    assert names_in(read(tmp_path, "text,tag\na,7\n", labels_column="tag")) == [["7"]]


def test_a_name_is_as_it_is_written_before_other_capital_letters_count(tmp_path):
    content = "Title,title,labels\none,two,a\n"
    assert list(read(tmp_path, content, text_column="title").texts) == ["two"]
    assert list(read(tmp_path, content, text_column="Title").texts) == ["one"]
    with pytest.raises(DataFormatError, match=r"2 columns 'TITLE'\. Rename"):
        read(tmp_path, content, text_column="TITLE")


@pytest.mark.parametrize(
    ("name", "content", "own", "message"),
    [
        (
            "a.csv",
            "id,title,tags\n1,x,a\n",
            {"text_column": "titel", "labels_column": "tags"},
            "There is no column 'titel'. Did you mean 'title'. There are: 'id', .* text_column=.",
        ),
        (
            "a.csv",
            "id,title,tags\n1,x,a\n",
            {"text_column": "title", "labels_column": "xyz"},
            "no column 'xyz'. There are: .* as labels_column=.",
        ),
        ("a.csv", "title,title,tags\nx,y,a\n", OWN, "2 columns 'title'. Rename"),
        ("a.csv", "title,more,tags,tags\nx,y,a,b\n", OWN, "2 columns 'tags'. Rename"),
        ("a.csv", "title,text\nx,y\n", {"text_column": "title"}, "called 'labels'.*labels_column="),
        ("a.csv", "words,tags\nx,y\n", {"labels_column": "tags"}, "called 'text'.*text_column="),
        ("a.csv", "id,title,labels\n1,x\n", {"text_column": "title"}, "2 cells.*header has 3"),
        ("a.csv", "id,text\n1,x\n", {}, "without a column 'labels'.*labels_column="),
        (
            "a.jsonl",
            '{"title": "x", "Tags": "a"}\n',
            {"text_column": "title", "labels_column": "tags"},
            "line 1: There is no key 'tags'. Did you mean 'Tags'. There are: 'title', 'Tags'.",
        ),
        (
            "a.jsonl",
            '{"title": "x"}\n',
            {"text_column": "title"},
            "no key 'labels'.*labels_column=",
        ),
        ("a.jsonl", '{"tags": "x"}\n', {"labels_column": "tags"}, "no key 'text'.*text_column="),
        ("a.jsonl", '{"title": 7, "labels": []}\n', {"text_column": "title"}, "got .int.*title"),
        ("a.jsonl", '{"text": "x", "tags": 1.5}\n', {"labels_column": "tags"}, "got .float.*tags"),
        ("a.jsonl", '{"text": "x", "tags": [null]}\n', {"labels_column": "tags"}, "got .null.*tag"),
        ("a.jsonl", '{"text": "x", "tags": {}}\n', {"labels_column": "tags"}, "names or of ids"),
        ("a.jsonl", '{"text": "x", "labels": "a"}\n', {}, 'Write one object a line: {"text"'),
        (
            "a.jsonl",
            '{"größe": "x", "größe": "y", "labels": []}\n',
            {"text_column": "größe"},
            "line 1: The key 'größe' is there twice",
        ),
        ("a.jsonl", "[]\n", {"text_column": "title"}, "Expected .object"),
        ("a.jsonl", '{"title": "x"', {"text_column": "title"}, "truncated"),
    ],
)
def test_a_file_without_what_is_named_is_refused(tmp_path, name, content, own, message):
    with pytest.raises(DataFormatError, match=message):
        read(tmp_path, content, name, **own)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"label_separator": ""}, "empty string.*such as ';' as label_separator="),
        ({"label_separator": "\udcff"}, r"'\\udcff' is not UTF-8.* as label_separator="),
        ({"text_column": "\udcff"}, r"'\\udcff' is not UTF-8.* as text_column="),
        ({"label_separator": r"\t"}, r"a backslash and a letter.* TAB.* \$'\\t'"),
        ({"text_column": ""}, "empty string names nothing. Pass a name as text_column="),
        ({"labels_column": ""}, "as labels_column="),
        ({"text_column": ["a", "b", "a"]}, "'a' is named 2 times"),
        (
            {"text_column": "a", "labels_column": "a"},
            "2 times.* once, for the text or for the labels",
        ),
        ({"text_column": [1]}, "strings for names, got an int, 1"),
        ({"labels_column": ["a"]}, "strings for names, got a list"),
    ],
)
def test_names_that_name_nothing_are_refused(tmp_path, own, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, "text,labels\na,b\n", **own)


def test_a_key_that_cannot_be_looked_up_is_refused(tmp_path):
    with pytest.raises(InputError, match="A key cannot hold quotes"):
        read(tmp_path, "{}\n", "a.jsonl", text_column='a"b')


@pytest.mark.parametrize("name", ["a.ft", "a.svm"])
def test_formats_without_names_take_none(tmp_path, name):
    with pytest.raises(InputError, match="has no columns or keys"):
        read(tmp_path, "__label__a red wine\n", name, text_column="title")
    with pytest.raises(InputError, match="A pair of sparse files has no columns"):
        read(tmp_path, "", labels_path="b.txt", label_separator=";")


def test_a_model_remembers_the_names_of_its_training(books, tmp_path, capsys):
    test = tmp_path / "test.csv"
    test.write_text(csv_of(rows()), encoding="utf-8")
    code, out, err = run(capsys, "evaluate", books / "model", test)
    assert (code, "P " in out) == (0, True)
    assert "read as in training: text from 'title' and 'more', labels from 'tags', ';'" in err
    code, out, _ = run(capsys, "predict", books / "model", test)
    texts = [json.loads(line)["text"] for line in out.splitlines()]
    assert texts == [f"{point['text']} indeed" for point in rows()]
    assert load(books / "model").description["columns"]["labels"] == "tags"


def test_options_stand_above_what_a_model_remembers(books, tmp_path, capsys):
    usual = tmp_path / "usual.csv"
    usual.write_text("text,labels\nred wine,drink|red\n", encoding="utf-8")
    message = refused(capsys, "evaluate", books / "model", usual)
    assert "There is no column 'title'" in message
    assert "Name one of them as --text-column." in message
    told = ["--text-column", "text", "--labels-column", "labels", "--label-separator", "|"]
    assert run(capsys, "evaluate", books / "model", usual, *told)[0] == 0
    assert run(capsys, "compress", books / "model", tmp_path / "s", "--test", usual, *told)[0] == 0
    assert load(tmp_path / "s").description["columns"]["labels"] == "tags"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "red wine indeed\n"),
        ("a.ft", "__label__a red wine indeed\n"),
        ("a.jsonl", '{"title": "red wine", "more": "indeed"}\n'),
        ("a.txt", '{"more": "indeed", "title": "red wine"}\n'),
    ],
)
def test_what_is_remembered_is_read_where_there_are_names(books, tmp_path, capsys, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    code, out, _ = run(capsys, "predict", books / "model", tmp_path / name)
    assert (code, json.loads(out)["text"]) == (0, "red wine indeed")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"t\xedtulo": "red wine"}\n', "line 1: The line is not UTF-8"),
        (
            "a.jsonl",
            b'{"title": "red", "more": ""}\n{"title": "red", "m\xed": ""}\n',
            "line 2: The line is n",
        ),
        ("a.jsonl", b'{"title": ' + b"[" * 20_000 + b"\n", "line 1: Expected `str | null`"),
        ("a.csv", b"x" * 131_073 + b",title\n", "line 1: A cell has more than 131,072 characters"),
    ],
)
def test_lines_that_cannot_be_read_are_said_to_be_so(
    books, tmp_path, capsys, name, content, message
):
    (tmp_path / name).write_bytes(content)
    assert message in refused(capsys, "predict", books / "model", tmp_path / name)


def test_answers_are_given_to_columns_that_are_named(place, tmp_path, capsys, monkeypatch):
    lines = b'{"headline": "red wine"}\n{"headline": null}\n'
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines)
    own = ["--text-column", "headline"]
    code, out, _ = run(capsys, "predict", place / "model", path, *own)
    assert (code, [json.loads(line)["text"] for line in out.splitlines()]) == (0, ["red wine", ""])
    monkeypatch.setattr("sys.stdin", stdin_of(lines))
    from_stdin = run(capsys, "predict", place / "model", "-", "--format", "json-lines", *own)
    assert from_stdin[:2] == (0, out)
    path = tmp_path / "a.csv"
    path.write_text("id,headline\n1,red wine\n", encoding="utf-8")
    code, out, _ = run(capsys, "predict", place / "model", path, *own)
    assert (code, json.loads(out)["text"]) == (0, "red wine")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{a}", "--text-column", "titel"], "no column 'titel'. Did you mean 'title'"),
        (
            ["{a}", "--format", "text", "--text-column", "title"],
            "Plain text has no columns or keys",
        ),
        (["-", "--text-column", "title"], "cannot be guessed. Pass --format"),
        (["--text-column", "title", "{a}"], "--text-column takes all words after it: put it last"),
        (["--text", "red wine", "--text-column", "title"], "--text-column and --keep belong to a"),
        (["{a}", "--text-column", ""], "An empty string names nothing. Pass a name as --text-col"),
    ],
)
def test_points_without_what_is_named_are_not_answered(place, tmp_path, capsys, arguments, message):
    (tmp_path / "a.csv").write_text("id,title\n1,red wine\n", encoding="utf-8")
    words = [word.format(a=tmp_path / "a.csv") for word in arguments]
    assert message in refused(capsys, "predict", place / "model", *words)


def test_a_training_with_an_empty_separator_is_refused_at_once(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("text,labels\na,b\n", encoding="utf-8")
    options = ["--model", tmp_path / "model", "--label-separator", ""]
    assert "--label-separator" in refused(capsys, "train", tmp_path / "a.csv", *options)


def test_examples_of_new_labels_may_have_names_of_their_own(books, tmp_path, capsys):
    (tmp_path / "labels.txt").write_text("tea\n", encoding="utf-8")
    (tmp_path / "tea.csv").write_text("words,kind\nred tea,tea\ndry tea,tea\n", encoding="utf-8")
    own = ["--text-column", "words", "--labels-column", "kind"]
    what = ["labels", "add", books / "model", tmp_path / "labels.txt", tmp_path / "larger"]
    code, _, err = run(capsys, *what, "--examples", tmp_path / "tea.csv", *own)
    assert (code, err) == (
        0,
        (
            f"{tmp_path / 'tea.csv'} is read as in training: ';' between labels.\n"
            f"{tmp_path / 'larger'} knows 11 labels; {books / 'model'} knew 10.\n"
        ),
    )


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("a.csv", {"text_column": "labels"}),
        ("a.jsonl", {"text_column": "labels"}),
        ("a.jsonl", {"labels_column": "text"}),
    ],
)
def test_one_column_is_not_both(tmp_path, name, names):
    content = {"a.csv": "text,labels\na,b\n", "a.jsonl": '{"text": "a", "labels": ["b"]}\n'}[name]
    other = "labels_column" if "text_column" in names else "text_column"
    with pytest.raises(InputError, match=f"would be the text and the labels as well.*{other}="):
        read(tmp_path, content, name, **names)


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["compress", "{model}", "out", "--labels", "l.txt"], "test"),
        (["compress", "{model}", "out", "--text-column", "title"], "test"),
        (["labels", "add", "{model}", "{new}", "out", "--format", "csv"], "examples"),
        (["labels", "add", "{model}", "{new}", "out", "--label-separator", ";"], "examples"),
    ],
)
def test_options_of_a_file_that_is_not_named_are_refused(
    words, file, text_model_path, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.txt").write_text("port\tport wine\n")
    names = {"model": text_model_path, "new": "new.txt"}
    message = refused(capsys, *(word.format(**names) for word in words))
    assert f"{words[-2]} says how --{file} is read, which is not there" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_answers_of_a_model_are_read_as_it_writes_them(books, tmp_path, capsys, name):
    answers = tmp_path / name
    what = [books / "model", books / "books.csv"]
    assert run(capsys, "predict", *what, "--top-k", 3, "--output", answers)[0] == 0
    code, out, err = run(capsys, "evaluate", books / "model", answers)
    assert (code, "is read as `predict` writes it" in err) == (0, True)
    assert out.splitlines()[1].split()[:2] == ["P", "100.00"]
    again = run(capsys, "predict", books / "model", answers, "--top-k", 3)
    assert (again[0], len(again[1].splitlines())) == (0, 8 * len(list(rows())))


def test_a_separator_of_the_training_is_told(place, tmp_path, capsys):
    train, model = tmp_path / "a.csv", tmp_path / "model"
    lines = [f"{point['text']},{';'.join(point['labels'])}" for point in list(rows()) * 8]
    train.write_text("\n".join(["text,labels", *lines]) + "\n", encoding="utf-8")
    options = ["--label-separator", ";", "--model", model, *SMALL]
    assert run(capsys, "train", train, *options)[0] == 0
    answers = tmp_path / "answers.csv"
    assert run(capsys, "predict", model, train, "--top-k", 3, "--output", answers)[0] == 0
    code, out, err = run(capsys, "evaluate", model, answers)
    assert out.splitlines()[1].split()[:2] == ["P", "100.00"]
    assert "labels are parted by '|'" in err
    code, _, err = run(capsys, "evaluate", model, train, "--text-column", "text")
    assert (code, "read as in training: ';' between labels" in err) == (0, True)


@pytest.mark.parametrize("word", ["TAB", "tab", "newline"])
def test_a_separator_is_no_word(word):
    with pytest.raises(InputError, match=r"is a word. Pass the character itself: in a shell, \$'"):
        Columns.of(label_separator=word)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            {},
            r'There is no key .labels., which the lines before have\. Write "labels": \[\] for no',
        ),
        ({"labels_column": "labels"}, r'Write "labels": null for no labels, or leave the line out'),
    ],
)
def test_a_key_that_other_lines_have_is_not_to_be_called_otherwise(tmp_path, own, message):
    lines = '{"text": "a", "labels": ["b"]}\n{"text": "a", "id": 3}\n'
    with pytest.raises(DataFormatError, match=message):
        read(tmp_path, lines, "a.jsonl", **own)
    lines = '{"text": "a", "labels": ["b"]}\n{"labels": [], "id": 3}\n'
    with pytest.raises(DataFormatError, match=r'Write "text": (null|"") for an empty text'):
        read(tmp_path, lines, "a.jsonl", **own)
