"""Every file format: what it means, and broken files."""

from __future__ import annotations

import csv
import gzip
import warnings

import numpy as np
import pytest

import small_files
from longtail.data import Dataset, InputWarning, LabelSpace, read_filter
from longtail.data.unlabelled import read_points
from longtail.errors import DataFormatError, InputError
from small_files import read


def rows_of(dataset):
    """The labels as lists of names."""
    return [[dataset.label_space.name(label) for label in row] for row in dataset.label_lists()]


# What a file means


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"text": "x y", "labels": ["b", "a"]}\n{"labels": ["a"], "text": "z"}\n'),
        ("a.json", '\ufeff{"text": "x y", "labels": ["b", "a"]}\r\n{"labels":["a"],"text":"z"}'),
        ("noname", '{"text": "x y", "labels": ["b", "a"], "id": 3}\n{"labels":["a"],"text":"z"}\n'),
        ("a.tsv", "x y\tb|a\nz\ta\n"),
        ("a.tsv", '\ufeffLabels\tText\tid\r\n"b | a"\tx y\t1\r\na\tz\t2\r\n'),
        ("a.csv", "x y,b|a\nz,a\n"),
        ("noname", "text,labels\nx y,b|a\nz,a\n"),
        ("noname", "x y\tb|a\nz\ta\n"),
        ("a.txt", "__label__b __label__a x y\n__label__a z\n"),
        ("a.ft", "x __label__b y __label__a\nz __label__a\n"),
    ],
)
def test_texts_in_every_format(tmp_path, name, content):
    dataset = read(tmp_path, content, name)
    assert list(dataset.texts) == ["x y", "z"]
    assert [set(row) for row in rows_of(dataset)] == [{"b", "a"}, {"a"}]
    assert list(dataset.label_space.names) == ["b", "a"]
    assert dataset.labels.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "3 4 3\n0,2 3:0.5 0:1e0\n 1:-2.5\n1\n"),
        ("a.txt", "3 4 3\n2,0 0:1 3:.5\n1:-2.5\n1 \n\n"),
        ("a.svm", "0,2 0:1 3:0.5  # remark\n# all remark\n 1:-2.5\n1\n"),
        ("noname", "0,2 0:1\t3:0.5\n 1:-2.5\n1\n"),
    ],
)
def test_features_in_every_format(tmp_path, name, content):
    with pytest.warns(InputWarning, match=r"points without labels \(kept\): 1, first at line"):
        dataset = read(tmp_path, content, name)
    assert dataset.features.toarray().tolist() == [[1, 0, 0, 0.5], [0, -2.5, 0, 0], [0, 0, 0, 0]]
    assert dataset.labels.toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert dataset.features.dtype == np.float32
    for matrix in (dataset.features, dataset.labels):
        assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
        assert matrix.has_canonical_format


def test_label_values_that_are_features(tmp_path):
    (tmp_path / "trn_X_Xf.txt").write_text("2 4\n3:1\n2:1\n")
    (tmp_path / "trn_X_Y.txt").write_text("2 4\n3:1 0:1\n2:0.417\n")
    with pytest.warns(InputWarning, match=r"other than 1 .* swapped\?\): 1, .* line 3"):
        dataset = Dataset.read(tmp_path / "trn_X_Xf.txt", labels_path=tmp_path / "trn_X_Y.txt")
    assert dataset.labels.nnz == 3


def test_pair_of_files(tmp_path):
    (tmp_path / "trn_X_Xf.txt").write_text("2 3\n0:1 2:0.5\n1:2\n")
    (tmp_path / "trn_X_Y.txt").write_text("2 4\n3:1.0 0:1 1:0\n2:1\n")
    dataset = Dataset.read(tmp_path / "trn_X_Xf.txt", labels_path=tmp_path / "trn_X_Y.txt")
    assert dataset.features.toarray().tolist() == [[1, 0, 0.5], [0, 2, 0]]
    assert dataset.labels.toarray().tolist() == [[1, 0, 0, 1], [0, 0, 1, 0]]
    with pytest.raises(DataFormatError, match=r"looks like one of a pair.*labels_path="):
        Dataset.read(tmp_path / "trn_X_Xf.txt")
    (tmp_path / "trn_X_Y.txt").write_text("1 4\n3:1.0\n")
    with pytest.raises(DataFormatError, match=r"trn_X_Y.txt, line 1: The file has 1 rows, but"):
        Dataset.read(tmp_path / "trn_X_Xf.txt", labels_path=tmp_path / "trn_X_Y.txt")


def test_json_ids_without_a_labels_file(tmp_path):
    dataset = read(tmp_path, '{"text": "x", "labels": [4, 0]}\n', "a.jsonl")
    assert read(
        tmp_path, '{"text": "x", "labels": [8, 1]}\n', "b.jsonl"
    ).labels.indices.tolist() == [1, 8]
    assert dataset.labels.toarray().tolist() == [[1, 0, 0, 0, 1]]
    assert dataset.label_space == LabelSpace(5)


def test_a_label_called_like_a_key_is_no_key_twice(tmp_path):
    line = '{"text": "x", "more": {"text": "y"}, "labels": ["text", "labels"]}\n'
    dataset = read(tmp_path, line, "a.jsonl")
    assert list(dataset.texts) == ["x"]
    assert list(dataset.label_space.names) == ["text", "labels"]


@pytest.mark.parametrize("labels", ["[1]", '["b"]'])
def test_labels_file(tmp_path, labels):
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    content = f'{{"text": "x", "labels": {labels}}}\n'
    dataset = read(tmp_path, content, "a.jsonl", labels_file=tmp_path / "labels.txt")
    assert dataset.labels.toarray().tolist() == [[0, 1, 0]]
    assert list(dataset.label_space.names) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("name", "content", "new_name"),
    [
        ("a.jsonl", '{"text": "x", "labels": ["new", "b"]}\n', "new"),
        ("a.jsonl", '{"text": "x", "labels": [3, 1]}\n', "3"),
        ("a.tsv", "x\tb|new\n", "new"),
        ("a.txt", "1 2 9\n1,3 0:1\n", "3"),
    ],
)
def test_labels_that_the_model_does_not_know(tmp_path, name, content, new_name):
    model = LabelSpace.from_names(["a", "b", "c"])
    extended = read(tmp_path, content, name, label_space=model, unknown_labels="extend")
    assert extended.labels.toarray().tolist() == [[0, 1, 0, 1]]
    assert extended.label_space.name(3) == new_name
    with pytest.warns(InputWarning, match=r"unknown labels \(skipped\): 1, first at line"):
        skipped = read(tmp_path, content, name, label_space=model, unknown_labels="skip")
    assert skipped.labels.toarray().tolist() == [[0, 1, 0]]
    assert skipped.label_space is model
    with pytest.raises(DataFormatError, match=r"line \d: The label .*unknown_labels='extend'"):
        read(tmp_path, content, name, label_space=model)


def test_numbers_are_names_in_tsv(tmp_path):
    dataset = read(tmp_path, "x\t2005\ny\t7\n", "a.tsv")
    assert list(dataset.label_space.names) == ["2005", "7"]


def test_svmlight_width(tmp_path):
    assert read(tmp_path, "0 1:1\n", "a.svm", n_features=5).features.shape == (1, 5)
    with pytest.raises(InputError, match="up to id 7, but only 5 features"):
        read(tmp_path, "0 7:1\n", "a.svm", n_features=5)


def test_filter_file(tmp_path):
    path = tmp_path / "filter.txt"
    path.write_bytes(b"1 0\r\n0 2\n1 0\n\n")
    pairs = read_filter(path, 2, 3)
    assert pairs.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    path.write_bytes(b"")
    assert read_filter(path, 2, 3).nnz == 0


@pytest.mark.parametrize("line", ["0", "0 1 2", "a 1", "-1 0", "2 0", "0 3"])
def test_broken_filter_file(tmp_path, line):
    (tmp_path / "filter.txt").write_text(f"0 0\n{line}\n")
    with pytest.raises(DataFormatError, match="line 2"):
        read_filter(tmp_path / "filter.txt", 2, 3)


# Odd but readable: kept or skipped, counted, told once


def test_one_warning_counts_everything(tmp_path):
    content = "\n".join(
        [
            '{"text": "", "labels": ["a", "a"]}',
            "",
            '{"text": "x", "labels": []}',
            "  ",
            '{"text": "y", "labels": []}',
        ]
    )
    with pytest.warns(InputWarning) as caught:
        dataset = read(tmp_path, content, "a.jsonl")
    assert len(caught) == 1
    message = str(caught[0].message)
    assert caught[0].filename == small_files.__file__  # where `Dataset.read` is called
    for part in (
        "a label twice (merged): 1, first at line 1",
        "empty texts (kept): 1, first at line 1",
        "blank lines (skipped): 2, first at line 2",
        "points without labels (kept): 2, first at line 3",
    ):
        assert part in message
    assert dataset.n_points == 3


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.tsv", "x\ta\n\ny\ta\n"), ("a.ft", "__label__a x\n \n__label__a y\n")],
)
def test_blank_lines_are_skipped(tmp_path, name, content):
    with pytest.warns(InputWarning, match=r"blank lines \(skipped\): 1, first at line 2"):
        assert list(read(tmp_path, content, name).texts) == ["x", "y"]


def test_svmlight_blank_line_and_empty_texts(tmp_path):
    with pytest.warns(InputWarning, match="blank lines"):
        assert read(tmp_path, "0 1:1\n\n0 1:1\n", "a.svm").n_points == 2
    for name, content in (("a.csv", ",a\n"), ("a.ft", "__label__a\n")):
        with pytest.warns(InputWarning, match="empty texts"):
            assert list(read(tmp_path, content, name).texts) == [""]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "sep=,\r\ntext,labels\r\nx,a\r\n"),
        ("a.csv", "\ufeffSEP=,\nlabels,text\na,x\n"),
        ("a.tsv", "sep=\t\ntext\tlabels\nx\ta\n"),
        ("a.csv", "sep=;\ntext;labels\nx;a\n"),
        ("a.csv", '"sep=|"\ntext|labels\nx|a\n'),
    ],
)
def test_a_first_line_that_names_the_separator_is_no_point(tmp_path, name, content):
    dataset = read(tmp_path, content, name)
    assert (list(dataset.texts), list(dataset.label_space.names)) == (["x"], ["a"])
    assert list(read_points(tmp_path / name, n_features=None)) == ["x"]


@pytest.mark.parametrize(
    "content",
    [
        "\ufefftext;labels\r\nrye, to knead;bread|dough\r\n",
        'id;Label;Text\n1;bread|dough;"rye, to knead"\n',
        'Labels;title;"more, or less"\nbread|dough;rye, to knead;x\n',
    ],
)
def test_semicolons_between_cells_are_told_from_the_header(tmp_path, content):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # that a title is the text
        dataset = read(tmp_path, content, "a.csv")
        points = read_points(tmp_path / "a.csv", n_features=None)
    assert list(dataset.texts) == list(points) == ["rye, to knead"]
    assert list(dataset.label_space.names) == ["bread", "dough"]


def test_a_header_with_semicolons_tells_a_format_without_a_suffix(tmp_path):
    assert list(read(tmp_path, "text;labels\nrye, to knead;bread\n", "a").texts) == [
        "rye, to knead"
    ]


def test_semicolons_in_cells_stay_there(tmp_path):
    content = "text,labels\nrye; to knead,bread\n"
    assert list(read(tmp_path, content, "a.csv").texts) == ["rye; to knead"]
    with pytest.raises(DataFormatError, match=r"line 2: The row has 1 cell .separated by ';'."):
        read(tmp_path, "text;labels\nx,a\n", "a.csv")


def test_what_only_begins_like_a_separator_is_a_point(tmp_path):
    assert list(read(tmp_path, "sep=,\nx,a\n", "a.csv").texts) == ["x"]
    assert list(read(tmp_path, "sep=x,a\nsep=,a\n", "a.csv").texts) == ["sep=x", "sep="]


# Broken files


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", "", "The file is empty"),
        ("a.tsv", "text\tlabels\n", "The file has a header and no points. Write a row for each"),
        ("a.csv", "id,labels,text\n\n", "The file has a header and no points"),
        ("a.csv", "sep=,\n", "The file is empty"),
        ("a.csv", "", "The file is empty"),
        ("a.ft", "", "The file is empty"),
        ("a.svm", "# nothing\n", "The file is empty"),
        ("a.txt", "", "The file is empty"),
        ("a.txt", "free text\n", "No format is known that begins with 'free text'"),
        ("a.jsonl", '{"text": "x"}\n', "line 1: There is no key 'labels'. .*Read as 'json"),
        ("a.jsonl", '{"labels": []}\n', "no key 'text'. There are: 'labels'. Write one object"),
        ("a.jsonl", "{}\n", "There is no key 'text' and no key 'labels'. Write one object"),
        (
            "a.jsonl",
            '{"title": "x", "labels": []}\n',
            "There are: 'title', 'labels'. Write one.* the key that is the text as text_column=",
        ),
        ("a.jsonl", '{"text": "x", "tags": []}\n', "no key 'labels'. .*labels as labels_column="),
        ("a.jsonl", '{"title": "x", "tags": []}\n', "and no key .* text_column=.* labels_column="),
        ("a.jsonl", '{"text": "x", "labels": "a"}\n', "got `str`.* between them as label_sep"),
        (
            "a.jsonl",
            '[{"text": "x", "labels": []}]\n',
            r"line 1: Expected `object`, got `array`\. If the file is one list, .* as jq -c",
        ),
        ("a.json", "[\n", "line 1: .*Write one object a line"),
        ("a.jsonl", '{"text": 3, "labels": []}\n', r"got `int` - at `\$.text`"),
        ("a.jsonl", '{"text": "x", "labels": "a"}\n', r"got `str` - at `\$.labels`"),
        ("a.jsonl", '{"text": "x", "labels": [1.5]}\n', "got `float`"),
        ("a.jsonl", '{"text": "x", "labels": [NaN]}\n', "malformed"),
        ("a.jsonl", '{"text": "x", "labels": [true]}\n', "got `bool`"),
        ("a.jsonl", '{"text": "x", "labels": [-1]}\n', "line 1: The label id -1 is negative"),
        ("a.jsonl", '{"text": "x", "labels": [2147483648]}\n', "2147483648 is out of range"),
        ("a.jsonl", '{"text": "x", "labels": ["a", 1]}\n', "line 1: .*mix names and ids"),
        (
            "a.jsonl",
            '{"text": "x", "labels": ["a"]}\n{"text": "x", "labels": [1]}\n',
            "line 2: The labels are ids here but names further up",
        ),
        (
            "a.jsonl",
            '{"text": "x", "labels": []}\n{"text": "x", "labels": [1], "labels": [2]}\n',
            "line 2: The key 'labels' is there twice. Write each key once",
        ),
        ("a.jsonl", b'{"text": "x", "labels": []}\n{"text": "\xff"', "line 2: The line is not UTF"),
        (
            "a.jsonl",
            b'{"t\xedtulo": "x"}\n',
            "line 1: The line is not UTF-8 .byte 0xed at position 3",
        ),
        (
            "a.jsonl",
            b'{"text": "x", "labels": []}\n{"text": "x", "t\xed": []}\n',
            "line 2: The line is not UTF-8",
        ),
        (
            "a.jsonl",
            b'{"text": "x", "labels": [], "more": {"text": "\xed"}}\n',
            "line 1: The line is not UTF-8",
        ),
        (
            "a.jsonl",
            f'{{"text": "x", "labels": [], "more": {{"text": {"1" * 5000}}}, "text": "y"}}\n',
            "line 1: The key 'text' is there twice",
        ),
        ("a.tsv", "x\ta\ny\n", r"line 2: The row has 1 cell .separated by '\\t'., not 2"),
        ("a.csv", "x,a\ny,a,b\n", "line 2: The row has 3 cells"),
        ("a.csv", "id,title,tags\n1,x,a\n", "call two of them 'text' and 'labels' in the first"),
        ("a.csv", "x;a\ny;b\n", "line 1: .*If ';' separates the cells here, write text;labels"),
        ("a.csv", "text\tlabels\tid\nx\ta\t1\n", "If TABs separate .*, pass tsv as format="),
        ("a.tsv", "text,labels\nx,a\n", "If commas separate the cells here, pass csv as format="),
        ("a.csv", "sep=;\ntext,labels\nx,a\n", "line 2: The row has 1 cell .separated by ';'."),
        ("a.tsv", "sep=;\ntext;labels\nx;a\n", r"says that ';' .* read with '\\t'. If that is"),
        ("a.tsv", "sep=,\ntext\tlabels\n", "line 1: The first line says that ',' is between"),
        ("a.csv", "text,text,labels\nx,y,a\n", "line 1: The header has 2 columns 'text'. Rename"),
        ("a.tsv", "labels\ttext\tLabels\na\tx\tb\n", "line 1: The header has 2 columns 'labels'"),
        ("a.csv", 'x,a\n"y" z,b\n', "line 2: The quotes are broken"),
        ("a.csv", 'x,a\n"y,b\nz,c\n', "line 3: The quotes are broken"),
        ("a.tsv", b"x\ta\n\xfc\tb\n", "line 2: The line is not UTF-8 .byte 0xfc"),
        ("a.ft", b"__label__a \xfc\n", "line 1: The line is not UTF-8"),
        ("a.ft", "__label__a x\n__label__ y\n", "line 2: A label has no name"),
        ("a.csv", f"{'x' * 131_073},a\n", "line 1: A cell has more than 131,072 characters"),
        ("a.tsv", "x\ta\ry\tb\r", "line 1: Lines end in a carriage return alone"),
        ("a.jsonl", '{"text": "x", "labels": [2000000000]}\n', "run up to 2,000,000,000, but"),
        ("a.txt", "2 3 4\n0 0:1\n", "promises 2 rows, but the file has 1"),
        ("a.txt", "1 3 4\n0 0:1\n1 0:1\n", "line 3: The header promises 1 rows, but here is one"),
        (
            "a.txt",
            "1 3 4\n4 0:1\n",
            "line 2: The label id 4 is out .* 0 to 3.*count from 1",
        ),
        ("a.txt", "1 3 4\n-1 0:1\n", "line 2: Expected label ids .* got '-1'"),
        ("a.txt", "1 3 4\n0.5 0:1\n", "line 2: Expected label ids .* got '0.5'"),
        ("a.txt", "1 3 4\n0,,1 0:1\n", "line 2: Expected label ids"),
        (
            "a.txt",
            "1 3 4\n0 3:1\n",
            "line 2: The id 3 is out of .* 0 to 2.*count from 1",
        ),
        ("a.txt", "1 3 4\n0 1:1 0:2 1:3\n", "line 2: The id 1 appears twice"),
        ("a.txt", "1 3 4\n0 0:1 1:nan\n", "line 2: Expected id:value, got '1:nan'"),
        ("a.txt", "1 3 4\n0 0:inf\n", "line 2: Expected id:value, got '0:inf'"),
        ("a.txt", "1 3 4\n0 0:1e39\n", "line 2: A value is too large"),
        ("a.txt", "1 3 4\n0 1:2:3 4\n", "line 2: Expected id:value, got '1:2:3'"),
        ("a.txt", "1 3 4\n0 -1:2\n", "line 2: Expected id:value, got '-1:2'"),
        ("a.txt", "1 3 4\n0 1.5:2\n", "line 2: Expected id:value, got '1.5:2'"),
        ("a.txt", "1 3 4\n0 1\n", "line 2: Expected id:value, got '1'"),
        ("a.txt", "1 3 4\n0 1:\n", "line 2: Expected id:value, got '1:'"),
        ("a.svm", "0 99999999999999999999:1\n", "line 1: The id 99999999999999999999 is out"),
        ("a.svm", "0 qid:3 1:1\n", "line 1: 'qid:3' is the number of a query"),
        (
            "a.jsonl.gz",
            gzip.compress(b'{"text": "x", "labels": []}\n', mtime=0)[:-8],
            "gzip data end too",
        ),
    ],
)
def test_broken_files(tmp_path, name, content, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        with pytest.raises(DataFormatError, match=message) as caught:
            read(tmp_path, content, name)
    assert name in str(caught.value)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("name", "content", "n_points", "is_odd"),
    [
        ("a.tsv", '"one\ta\ntwo\tb\nthree 12"\tc\nfour\td\n', 2, True),
        ("a.tsv", '"one\na line"\tc\n', 1, False),
        ("a.csv", '"one,a\ntwo,b\nthree 12",c\nfour,d\n', 2, True),
        ("a.csv", '"Dear reader,\nall is well",c\n', 1, False),
    ],
)
def test_rows_within_a_cell_are_pointed_out(tmp_path, name, content, n_points, is_odd):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert read(tmp_path, content, name).n_points == n_points
    said = [str(warning.message) for warning in found]
    assert [("looks like further rows" in message) for message in said] == [True] * is_odd


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("test.svm", "0 1:1\n1 1:1e-300 2:1e-320\n0 1:1e-300 2:1\n", 2),
        ("test.txt", "2 3 2\n0 1:1 2:1e-300\n1 1:1e-300 2:0\n", 3),
    ],
)
def test_numbers_that_are_too_small_are_told(tmp_path, name, content, line):
    message = rf"{name}: .* nearer to 0 than 32 bits hold .*: 1, first at line {line}"
    with pytest.warns(InputWarning, match=message):
        read(tmp_path, content, name)


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.csv", "text,labels\na b,x\ntext,labels\ntext,labels,\n", None),
        ("a.csv", "text,labels\na b,x\n\ufefftext,labels\ntext,more\n", ["a b", "text"]),
        ("a.tsv", "id\ttext\tlabels\n1\ta\tx\nid\ttext\tlabels\n2\tb\ty\n", ["a", "b"]),
    ],
)
def test_a_header_once_more_is_no_point(tmp_path, name, content, texts):
    if texts is None:  # it is of another width
        with pytest.raises(DataFormatError, match="line 4: The row has 3 cells"):
            read(tmp_path, content, name)
        return
    path = tmp_path / name
    message = r"rows that are the header once more \(skipped\): 1, first at line 3"
    with pytest.warns(InputWarning, match=message):
        assert list(read(tmp_path, content, name).texts) == texts
    with pytest.warns(InputWarning, match=message):
        assert list(read_points(path, n_features=None)) == texts


def test_a_text_that_is_called_like_its_only_column_is_one(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text\ntext\n")
    assert list(read_points(path, n_features=None)) == ["text"]


def test_one_file_is_no_pair(tmp_path):
    path = tmp_path / "X.txt"
    with pytest.raises(InputError, match=r"X\.txt is named twice"):
        read(tmp_path, "1 2\n0:1\n", "X.txt", labels_path=path)


def test_numbers_of_a_pair_that_are_too_small_are_told(tmp_path):
    labels_path = tmp_path / "Y.txt"
    labels_path.write_text("1 1\n0:1\n")
    with pytest.warns(InputWarning, match=r"X\.txt: .* nearer to 0 .* first at line 2"):
        read(tmp_path, "1 2\n0:1e-300\n", "X.txt", labels_path=labels_path)


def test_zeros_are_no_features(tmp_path):
    for name, content in (("a.txt", "1 3 1\n0 0:0 2:5\n"), ("a.svm", "0 0:0.0 2:5\n")):
        assert read(tmp_path, content, name).features.indices.tolist() == [2]


@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_a_header_may_have_the_singular(tmp_path, name):
    dataset = read(tmp_path, "label,text\nb,an a\n", name)
    assert dataset.n_points == 1
    assert (dataset.texts[0], dataset.label_space.name(0)) == ("an a", "b")


def test_what_looks_like_a_header_is_pointed_out(tmp_path):
    for header in ("id,title,labels\n1,{}\n", "Title,Label\n{}\n"):
        with pytest.warns(InputWarning, match=r"no column is called 'text', so 'title' is taken"):
            dataset = read(tmp_path, header.format("red wine,drink|red"), "a.csv")
        assert (list(dataset.texts), list(dataset.label_space.names)) == (
            ["red wine"],
            ["drink", "red"],
        )
    with pytest.raises(DataFormatError, match="line 1: The row has 3 cells"):
        read(tmp_path, "title,name,labels\nred,wine,drink\n", "a.csv")
    with pytest.warns(InputWarning, match="a first row like a header, .* call its columns so"):
        assert read(tmp_path, "title,category\nred wine,drink\n", "a.csv").n_points == 2


def test_no_guess_in_the_error_of_a_named_format(tmp_path):
    with pytest.raises(DataFormatError) as caught:
        read(tmp_path, "x", "a.txt", format="json-lines")
    assert "Read as" not in str(caught.value)


def test_arguments_that_do_not_fit(tmp_path):
    (tmp_path / "labels.txt").write_text("a\n")
    with pytest.raises(InputError, match="not both"):
        Dataset.read("x", labels_file="y", label_space=LabelSpace(1))
    with pytest.raises(InputError, match=r"no format 'xml'\. Pass one of json-lines"):
        read(tmp_path, "x", "a.txt", format="xml")
    with pytest.raises(InputError, match="unknown_labels must be one of"):
        read(tmp_path, "x\ta", "a.tsv", unknown_labels="drop")
    with pytest.raises(InputError, match=r"missing.tsv cannot be opened: No such file"):
        Dataset.read(tmp_path / "missing.tsv")
    with pytest.raises(InputError, match="is a folder"):
        Dataset.read(tmp_path)
    with pytest.raises(InputError, match=r"path of a file, got a list\..* passed to Dataset\.of"):
        Dataset.read(["a.jsonl"])
    with pytest.raises(DataFormatError, match="header says 4 labels, but the labels file has 1"):
        read(tmp_path, "1 3 4\n0 1:1\n", "a.txt", labels_file=tmp_path / "labels.txt")
    with pytest.raises(DataFormatError, match="known labels have ids only"):
        read(tmp_path, "x\ta\n", "a.tsv", label_space=LabelSpace(3))
    with pytest.raises(DataFormatError, match="line 2: The labels are names, such as '3', but"):
        read(tmp_path, "x\t2\ny\t3\n", "a.tsv", label_space=LabelSpace(3))
    dataset = read(tmp_path, "x\t2|0\n", "a.tsv", label_space=LabelSpace(3))
    assert (list(dataset.label_lists()), dataset.label_space) == ([[0, 2]], LabelSpace(3))


def test_the_csv_limit_on_a_cell_is_an_error_with_a_line(tmp_path):
    with pytest.raises(DataFormatError, match=r"line 2: A cell has more than .*JSON lines"):
        read(tmp_path, "x\ta\n" + "y" * (csv.field_size_limit() + 1) + "\ta\n", "a.tsv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 5000000000 5\n0 4000000000:1\n", "n_features is 5,000,000,000; at most"),
        ("1 5 5000000000\n4000000000 0:1\n", "n_labels is 5,000,000,000; at most"),
        ("1 5 5\n" + "9" * 5000 + " 0:1\n", "Expected label ids"),
        ("1 5 " + "9" * 5000 + "\n0 0:1\n", "Expected a header of 3 whole numbers"),
    ],
)
def test_numbers_that_nothing_can_hold(tmp_path, text, message):
    path = tmp_path / "train.txt"
    path.write_text(text)
    with pytest.raises(DataFormatError, match=message):
        Dataset.read(path, format="repository")
