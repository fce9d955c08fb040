"""LabelSpace: ids, names, labels files."""

from __future__ import annotations

import gzip

import pytest

from longtail import Dataset
from longtail.data import InputWarning, LabelSpace, TextColumn
from longtail.data.label_matching import matched_labels
from longtail.errors import DataFormatError, InputError


def test_duplicate_names_keep_both_ids(tmp_path):
    path = tmp_path / "labels.txt.gz"
    path.write_bytes(gzip.compress(b"bank\nriver\nbank\tof a river\n"))
    space = LabelSpace.read(path)
    assert space.n_labels == 3
    assert space.id_of("bank") == 0
    assert (space.ids_of("bank"), space.ids_of("river")) == ([0, 2], [1])
    assert space.name(2) == "bank"
    assert list(space.texts) == ["bank", "river", "of a river"]
    assert not space.names_are_unique


BANKS = LabelSpace.from_names(["bank", "river", "bank"], ["money", "water", "shore"])


@pytest.mark.parametrize(
    ("names", "texts", "ids"),
    [
        (["bank", "bank"], ["shore", "money"], [2, 0]),  # by their texts
        (["new", "bank"], ["other", "shore"], [3, 2]),
        (["bank", "new", "bank", "new"], None, [0, 3, 2, 3]),  # by their order
        (["bank", "river", "bank"], ["money", "water", "money"], [0, 1, 2]),
    ],
)
def test_labels_that_share_a_name_are_told_apart(names, texts, ids):
    found, labels = matched_labels(LabelSpace.from_names(names, texts), BANKS)
    assert found.tolist() == ids
    assert labels.n_labels == max(3, max(ids) + 1)


@pytest.mark.parametrize(
    ("names", "texts"), [(["bank"], None), (["bank"] * 3, None), (["bank"], ["a park"])]
)
def test_of_labels_that_nothing_tells_apart_the_first_is_taken(names, texts):
    with pytest.warns(InputWarning, match=r"share a name, such as 'bank'.*\(names: 1\)"):
        found, _ = matched_labels(LabelSpace.from_names(names, texts), BANKS)
    assert set(found.tolist()) == {0}


def test_names_that_are_ids_are_those_of_a_model_of_ids():
    found, labels = matched_labels(LabelSpace.from_names(["2", "0"]), LabelSpace(3))
    assert (found.tolist(), labels) == ([2, 0], LabelSpace(3))
    for names in (["2", "3"], ["2", "02"], ["2", "two"], ["\u0662"], ["9" * 5000]):
        with pytest.raises(InputError, match="cannot be matched"):
            matched_labels(LabelSpace.from_names(names), LabelSpace(3))


def test_labels_are_shown_in_a_line():
    names = ["x" * 81, "b", "c", "d"]
    first = f"'{'x' * 80}...', 'b', 'c', ..."
    assert repr(LabelSpace.from_names(names)) == f"<LabelSpace of 4 labels: {first}>"
    with_texts = LabelSpace.from_names(names, ["long " * 100] * 4)
    assert repr(with_texts) == f"<LabelSpace of 4 labels with texts: {first}>"
    assert repr(LabelSpace(1)) == "<LabelSpace of 1 label>"


def test_a_name_of_blanks_that_only_unicode_knows_is_none(tmp_path):
    (tmp_path / "labels.txt").write_text("a\n\xa0\nb\n", encoding="utf-8")
    with pytest.raises(DataFormatError, match="line 2: A label's name is missing"):
        LabelSpace.read(tmp_path / "labels.txt")


def test_names_are_the_texts_where_there_are_no_others(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\r\n\r\n \t\r\n")
    space = LabelSpace.read(path)
    assert list(space.names) == ["a", "b"]
    assert space.texts is space.names


def test_write_and_read_back(tmp_path):
    space = LabelSpace.from_names(["a b", "ü", "c"], ["a b", "longer\ttext", ""])
    space.write(tmp_path / "labels.txt.gz")
    again = LabelSpace.read(tmp_path / "labels.txt.gz")
    assert again.names == space.names
    assert list(again.texts) == ["a b", "longer\ttext", "c"]


@pytest.mark.parametrize("name", ["", "a\tb", "a\nb", "a\rb"])
def test_names_that_no_line_can_carry(tmp_path, name):
    with pytest.raises(DataFormatError, match="line 2: The label"):
        LabelSpace.from_names(["x", name]).write(tmp_path / "labels.txt")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "labels.txt: There is no name in it. Write one name a line"),
        (b"\n \n", "labels.txt: There is no name in it. Write one name a line"),
        (b"a\n\nb\n", "line 2: A label's name is missing"),
        (b"a\n \t\nc\n", "line 2: A label's name is missing"),
        (b"a\n\ttext only\nc\n", "line 2: A label's name is missing"),
        (b"a\n\ttext only\n", "line 2: A label's name is missing"),
        (b"a\n\n\ttext only\n", "line 2: A label's name is missing"),
        (b"a\nb\xff\n", "line 2: The line is not UTF-8 .byte 0xff at position 1"),
        (
            b'{"title": "a"}\n{"title": "", "t\xed": 1}\n',
            "line 2: The line is not UTF-8 .byte 0xed",
        ),
    ],
)
def test_broken_labels_files(tmp_path, content, message):
    path = tmp_path / "labels.txt"
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=message):
        LabelSpace.read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"uid":"1","of":"foo"}\n{"uid":"2"}\n', "line 1: Each line is an object.* key.*'title'"),
        ('{"uid":"1","title":"foo"}\n{"uid":"2"}\n', "line 2: There is no key 'title'"),
        ('{"uid":"1","title":"foo"}\nbar\n', "line 2: JSON is malformed"),
        ('{"uid":"1","title":"foo"}\n\n{"title":"bar"}\n', "line 2: A blank line is no label"),
        ('{"title":"foo"}\n{"title":" "}\n', "line 2: The label has no name, and no 'uid'"),
        ("id,name\n0,bread\n1,car\n", "line 1: This is a CSV file with ids: 'id,name' is its"),
        ("Nr;Name\n1;bread\n2;car\n", "line 1: This is a CSV file with ids: 'Nr;Name' is its"),
        (
            '"id","name"\r\n"1","a, b"\r\n"2",\r\n\r\n',
            'such as \'"1","a, b"\'.*Write one name a line',
        ),
        ("label\tdescription\nbread\tof flour\n", "line 1: 'label' and 'description' look like"),
        ("ID\tName\n0\tbread\n", "line 1: 'ID' and 'Name' look like a header"),
        ('["bread", "yeast"]\n', "line 1: The file is JSON, of which"),
        ('[\n "bread",\n "yeast"\n]\n', "line 1: The file is JSON, of which"),
        ('{"bread": 0, "yeast": 1}', "line 1: The file is JSON, of which"),
    ],
)
def test_labels_files_in_other_formats_are_refused(tmp_path, content, message):
    (tmp_path / "labels.txt").write_text(content, encoding="utf-8")
    with pytest.raises(DataFormatError, match=message):
        LabelSpace.read(tmp_path / "labels.txt")


def test_a_labels_file_may_be_json_lines_as_the_repositorys_raw_texts_are(tmp_path):
    path = tmp_path / "lbl.json.gz"
    lines = [
        '{"uid": "B1", "title": "Ballet tutu", "content": "three layers"}',
        '{"uid": "B2", "title": "", "content": "of steel"}',
        '{"uid": "B3", "title": "Tea", "content": null}',
    ]
    path.write_bytes(gzip.compress("\r\n".join([*lines, ""]).encode()))
    with pytest.warns(InputWarning, match=r"called by their id\): 1, first at line 2"):
        titles = LabelSpace.read(path)
    with pytest.warns(InputWarning, match="called by their id"):
        whole = LabelSpace.read(path, text_column=["title", "content"])
    with pytest.warns(InputWarning, match="called by their id"):
        others = LabelSpace.read(path, text_column=["abstract"])  # a key of the points alone
    assert list(titles.names) == list(whole.names) == ["Ballet tutu", "B2", "Tea"]
    assert list(titles.texts) == list(others.texts) == ["Ballet tutu", "", "Tea"]
    assert list(whole.texts) == ["Ballet tutu three layers", "of steel", "Tea"]


def test_points_and_labels_of_the_repositorys_raw_texts_are_read_together(tmp_path):
    (tmp_path / "trn.json").write_text('{"uid": "A", "title": "shoes", "target_ind": [1, 0]}\n')
    (tmp_path / "lbl.json").write_text('{"title": "tutu"}\n{"title": "socks", "content": "wool"}\n')
    names = {"text_column": "title", "labels_column": "target_ind"}
    dataset = Dataset.read(tmp_path / "trn.json", labels_file=tmp_path / "lbl.json", **names)
    assert [dataset.label_space.name(i) for i in next(dataset.label_lists())] == ["tutu", "socks"]
    assert dataset.label_space.texts_are_names


@pytest.mark.parametrize(
    "content",
    [
        "0,bread\n1,car\n2,tea\n",
        'bread,"a, b"\ncar,c\ntea,d\n',
        "bread;of flour\ncar;of steel\ntea;of leaves\n",
    ],
)
def test_a_labels_file_that_is_called_csv_is_refused_where_it_is_one(tmp_path, content):
    (tmp_path / "labels.csv").write_text(content, encoding="utf-8")
    with pytest.raises(DataFormatError, match="line 1: This is a CSV file, of which each"):
        LabelSpace.read(tmp_path / "labels.csv")


@pytest.mark.parametrize(
    ("content", "remark"),
    [
        ("label\nbread\ncar\n", "the first label is called 'label': if that is a header"),
        ('"bread"\t"of flour"\n"car"\n', 'each name is in quotes, such as "bread"'),
        ("0,bread\n1,car\n2,tea\n", "begin with numbers that count up, such as '0,bread'"),
        ("1\tbread\n2\tcar\n3\ttea\n", "the names are numbers that count up: if these are"),
    ],
)
def test_names_that_look_unintended_are_pointed_out(tmp_path, content, remark):
    (tmp_path / "labels.txt").write_text(content, encoding="utf-8")
    with pytest.warns(InputWarning, match=remark):
        assert LabelSpace.read(tmp_path / "labels.txt").n_labels == len(content.splitlines())


@pytest.mark.parametrize(
    "names",
    [
        ["{}"],
        ['{"a": 1}', "{a}"],
        ['{"a": 1}', "a"],
        ["id,name", "0,5 mm"],
        ["id,name", "0,5 mm", "2,5 mm"],
        ["id,name", "2,a", "3,b"],
        ["0,a", "1,b", "3,c"],
        ["label", "text"],
        ['"a"', "b"],
        ["0", "1", "2"],
        ["[", "("],
        ['{"a": 1}'],
        ["sizes", "0,5 mm", "1,5 mm"],
        ["id,name", "0,bread", "car"],
    ],
)
def test_honest_names_are_not_taken_for_another_format(tmp_path, names):
    (tmp_path / "labels.txt").write_text("\n".join(names), encoding="utf-8")
    assert list(LabelSpace.read(tmp_path / "labels.txt").names) == names


def test_without_names():
    space = LabelSpace(3)
    assert space.name(2) == "2"
    assert space.id_of("2") == 2
    assert space.extended(["x"]) == LabelSpace(4)
    with pytest.raises(InputError, match="no names"):
        space.write("nowhere")
    with pytest.raises(InputError, match="named '3'"):
        space.id_of("3")
    with pytest.raises(InputError, match="Names of labels are strings, got 2"):
        space.id_of(2)
    with pytest.raises(InputError, match="is named"):
        space.id_of("9" * 5000)


def test_unknown_name_and_id():
    space = LabelSpace.from_names(["a"])
    with pytest.raises(InputError, match="None of the 1 labels is named 'A'"):
        space.id_of("A")
    with pytest.raises(IndexError, match="label -1 of 1"):
        space.name(-1)


def test_extended_keeps_ids_and_texts():
    space = LabelSpace.from_names(["a", "b"], ["text of a", "text of b"])
    more = space.extended(["c"])
    assert list(more.names) == ["a", "b", "c"]
    assert list(more.texts) == ["text of a", "text of b", "c"]
    assert space.extended([]) is space


@pytest.mark.parametrize("n_labels", [-1, 2.0, "3", None, True])
def test_what_is_no_number_of_labels(n_labels):
    with pytest.raises(InputError, match=f"0 or more, got {n_labels!r}"):
        LabelSpace(n_labels)


@pytest.mark.parametrize(("names", "texts"), [("abc", None), (["a", "b", "c"], "abc")])
def test_one_string_is_not_several(names, texts):
    with pytest.raises(InputError, match=r"got one, 'abc'\. Pass \['abc'\]"):
        LabelSpace.from_names(names, texts)


def test_sizes_must_agree():
    with pytest.raises(InputError, match="3 labels but 1 label texts"):
        LabelSpace(3, None, TextColumn.from_strings(["a"]))
