"""Label names in files that are none, or several in one."""

from __future__ import annotations

import unicodedata

import pytest

from longtail.data import Dataset, InputWarning, LabelSpace
from longtail.data.label_names import packed_by
from longtail.errors import DataFormatError
from small_files import read


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"text": "x", "labels": ["a"]}\n{"text": "y", "labels": ["b", "%s"]}\n'),
        ("a.tsv", "x\ta\ny\t%s\n"),
        ("a.ft", "__label__a x\n__label__%s y\n"),
    ],
)
def test_names_that_are_none(tmp_path, name, content):
    for label in ("", " "):
        if name == "a.tsv":
            with pytest.warns(InputWarning, match=r"points without labels \(kept\): 1"):
                assert read(tmp_path, content % label, name).n_labels == 1
            continue
        with pytest.raises(DataFormatError, match="line 2: A label has no name"):
            read(tmp_path, content % label, name)
    if name != "a.ft":
        with pytest.raises(DataFormatError, match=r"line 2: The label .* is the text of a list"):
            read(tmp_path, content % "['a', 'b']", name)


def test_empty_names_between_separators_are_counted(tmp_path):
    message = r"empty names between or beside '\|' \(left out\): 2, first at line 1"
    with pytest.warns(InputWarning, match=message):
        dataset = read(tmp_path, "x\ta||b\ny\t|a\nz\ta | b\n", "a.tsv")
    assert [list(row) for row in dataset.label_lists()] == [[0, 1], [0], [0, 1]]


def test_labels_packed_into_one_string_are_pointed_out(tmp_path):
    for name, content in {
        "a.tsv": "x\ta;b\ny\tb;c\nz\ta\n",
        "b.tsv": "x\ta, b\ny\tb, c\nz\ta\n",
        "d.tsv": "x\ta\ny\tb\nz\ta b\n",
        "c.tsv": "x\ta\ny\tb\nz\ta, b\nu\ta\nv\tc\n",  # fewer than half, but made of labels
        "a.jsonl": '{"text": "x", "labels": ["a|b"]}\n{"text": "y", "labels": []}\n',
    }.items():
        with pytest.warns(InputWarning, match="a single one that holds .* as label_separator"):
            read(tmp_path, content, name)
    assert read(tmp_path, "x\ta|b\ny\tb;c\n", "a.tsv").n_labels == 3
    assert read(tmp_path, "x\tLyon, France\ny\tParis, France\n", "a.tsv").n_labels == 2
    towns = "x\tLyon, France\ny\tRome, Italy\nz\tFrance\nu\tItaly\nv\tSpain\n"
    assert read(tmp_path, towns, "a.tsv").n_labels == 5
    known = LabelSpace.from_names(["a;b"])  # who trained with it means it
    assert read(tmp_path, "x\ta;b\n", "a.tsv", label_space=known).n_labels == 1


@pytest.mark.parametrize("name", ["nan", "None", "NULL"])
def test_a_label_called_what_programs_write_for_none_is_pointed_out(tmp_path, name):
    path = tmp_path / "train.csv"
    path.write_text(f"text,labels\nred wine,drink\nold rope,{name}\n")
    with pytest.warns(InputWarning, match=rf"'{name}' is taken as the name of a label"):
        dataset = Dataset.read(path)
    assert list(dataset.label_space.names) == ["drink", name]


def test_a_known_label_may_be_called_nan(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("text,labels\nwarm flat bread,nan\n")
    dataset = Dataset.read(path, label_space=LabelSpace.from_names(["nan"]))
    assert dataset.labels.toarray().tolist() == [[1]]


def test_names_that_look_the_same_are_pointed_out(tmp_path):
    words = [unicodedata.normalize(form, "cr\xeape") for form in ("NFC", "NFD")]
    content = "".join(f"{word}\t{word}\n" for word in words)
    with pytest.warns(InputWarning, match="1 label names, .* are written with accents apart from"):
        assert read(tmp_path, content, "a.tsv").n_labels == 2
    assert read(tmp_path, f"x\t{words[1]}\n", "b.tsv").n_labels == 1  # means the one that is there


def test_null_is_refused_with_how_to_read_it(tmp_path):
    content = '{"text": "x", "labels": ["a"]}\n{"text": %s, "labels": %s}\n'
    for text, labels, names in (
        ('"y"', "null", {"labels_column": "labels"}),
        ("null", "[]", {"text_column": "text"}),
    ):
        (column,) = names
        with pytest.raises(DataFormatError, match=f"If null stands for .* as {column}="):
            read(tmp_path, content % (text, labels), "a.jsonl")
        with pytest.warns(InputWarning, match="kept"):
            assert read(tmp_path, content % (text, labels), "a.jsonl", **names).n_points == 2


def test_names_that_differ_by_blanks_are_pointed_out(tmp_path):
    message = r"1 label names with blanks at their ends, such as 'bread ', are taken for other"
    path, labels = tmp_path / "a.jsonl", tmp_path / "labels.txt"
    path.write_text(
        '{"text": "a", "labels": ["bread", " yeast"]}\n{"text": "b", "labels": ["bread "]}\n'
    )
    with pytest.warns(InputWarning, match=message):
        dataset = Dataset.read(path)
    assert list(dataset.label_space.names) == ["bread", " yeast", "bread "]
    with pytest.warns(InputWarning, match=message):
        Dataset.of(["a", "b"], [["bread", " yeast"], ["bread "]])
    labels.write_text("bread\n yeast\nbread \n")
    with pytest.warns(InputWarning, match=message):
        LabelSpace.read(labels)


@pytest.mark.parametrize("separator", ["\t", "\n", "|", ";"])
def test_what_hardly_stands_in_a_name_parts_several(separator):
    names = {f"bread{separator}baking": 1, f"rye{separator}oats": 1, "dance": 1}
    assert packed_by(names)[0] == separator


def test_a_name_that_lines_of_a_labels_file_share_is_told(tmp_path):
    (tmp_path / "labels.txt").write_text("bank\tmoney\nbank\tshore\nriver\tstream\n")
    points = '{"text": "a shore", "labels": ["bank"]}\n{"text": "a stream", "labels": ["river"]}\n'
    (tmp_path / "train.jsonl").write_text(points)
    with pytest.warns(InputWarning, match=r"by a name that several lines .* share .*: 1, first at"):
        dataset = Dataset.read(tmp_path / "train.jsonl", labels_file=tmp_path / "labels.txt")
    assert list(dataset.label_lists()) == [[0], [2]]
