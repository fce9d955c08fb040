"""Parquet: read as pyarrow, pandas, polars and Spark write it, and written."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import sys
import warnings
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pytest

from command_line import SMALL, files_of, refused, rows, run, stdin_of, write_lines
from longtail.data import Dataset, InputWarning, LabelSpace
from longtail.errors import DataFormatError, InputError, MissingExtraError

pa = pytest.importorskip("pyarrow", reason="needs the extra 'parquet'")
pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'parquet'")

TEXTS = ["how to knead", "", "first steps, in tango", "\u00e4 \U0001f600\0"]
NAMES = [["bread", "a|b; c"], [], ["dance"], ["bread"]]
IDS = [[0, 1], [], [2], [0]]


def parquet(folder, table=None, name="x.parquet", *, labels=NAMES, texts=TEXTS, **how):
    """Write a table, or these texts and labels, and return the path."""
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.table(table or {"text": texts, "labels": labels}), path, **how)
    return path


def read(path, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return Dataset.read(path, **how)


def said(path, **how):
    """Return what is said of what is odd."""
    with pytest.warns(InputWarning) as caught:
        Dataset.read(path, **how)
    return str(caught[0].message).removeprefix(f"{path}: ")


def why_not(path, **how):
    """Return why a file is refused, once its name is said."""
    with pytest.raises(DataFormatError) as caught:
        read(path, **how)
    assert str(caught.value).startswith(str(path))
    return str(caught.value).removeprefix(str(path))


def names_of(dataset):
    return [[dataset.label_space.name(i) for i in row] for row in dataset.label_lists()]


@pytest.mark.parametrize(
    ("text_type", "labels_type"),
    [
        ("string", pa.list_(pa.string())),
        ("large_string", pa.large_list(pa.large_string())),
        ("string_view", pa.list_(pa.string_view())),
        (pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    ],
)
@pytest.mark.parametrize("how", [{}, {"row_group_size": 1, "compression": "zstd"}])
def test_strings_of_every_type(tmp_path, text_type, labels_type, how):
    texts, labels = pa.array(TEXTS, text_type), pa.array(NAMES, labels_type)
    try:
        path = parquet(tmp_path, {"more": IDS, "labels": labels, "text": texts}, **how)
    except pa.ArrowNotImplementedError as error:
        pytest.skip(f"this version of pyarrow cannot write it: {error}")
    dataset = read(path)
    assert list(dataset.texts) == TEXTS
    assert names_of(dataset) == NAMES


@pytest.mark.parametrize("compression", ["snappy", "gzip", "brotli", "lz4", "none"])
def test_any_compression_is_unpacked(tmp_path, compression):
    path = parquet(tmp_path, compression=compression, data_page_version="2.0")
    assert names_of(read(path)) == NAMES


@pytest.mark.parametrize("item", ["int8", "int64", "uint32"])
def test_whole_numbers_are_ids(tmp_path, item):
    path = parquet(tmp_path, labels=pa.array(IDS, pa.list_(pa.type_for_alias(item))))
    assert list(read(path).label_lists()) == IDS
    (tmp_path / "labels.txt").write_text("bread\na|b; c\ndance\n")
    assert names_of(read(path, labels_file=tmp_path / "labels.txt")) == NAMES
    one = parquet(tmp_path, labels=pa.array([2, None, 0, 1], pa.type_for_alias(item)))
    assert list(read(one).label_lists()) == [[2], [], [0], [1]]
    message = why_not(one, label_space=LabelSpace(2))
    assert message.startswith(", row 0: The label id 2 is out of range")


def test_a_string_is_a_cell_of_a_table(tmp_path):
    path = parquet(tmp_path, labels=["bread | baking", "", None, "bread"])
    assert names_of(read(path)) == [["bread", "baking"], [], [], ["bread"]]
    path = parquet(tmp_path, labels=["bread, baking", "", None, "dance, bread"])
    dataset = read(path, label_separator=", ")
    assert names_of(dataset) == [["bread", "baking"], [], [], ["bread", "dance"]]
    path = parquet(tmp_path, labels=["['a', 'b']"] * 4)
    assert why_not(path).startswith(", row 0: The label \"['a', 'b']\" is the text of a list.")


def test_nulls_are_empty_and_counted_from_row_0(tmp_path):
    table = {"text": ["a", None, None], "labels": [None, ["b"], ["b"]]}
    path = parquet(tmp_path, table)
    dataset = read(path)
    assert list(dataset.texts) == ["a", "", ""]
    assert names_of(dataset) == [[], ["b"], ["b"]]
    assert said(path) == (
        "points without labels (kept): 1, first at row 0; empty texts (kept): 2, first at row 1."
    )
    nothing = parquet(tmp_path, {"text": ["a", "b"], "labels": [[], []]})  # a list of nulls
    assert list(read(nothing).label_lists()) == [[], []]
    message = why_not(parquet(tmp_path, labels=[["b"], [], ["a", None], []]))
    assert message == ", row 2: A label is null. Leave it out of the list, which may be empty."


def test_columns_are_found_as_in_a_table(tmp_path):
    table = {"id": [1], "Title": ["how to knead"], "LABEL": [["bread"]]}
    path = parquet(tmp_path, table)
    assert said(path) == "no column is called 'text', so 'title' is taken as the text."
    assert why_not(path, labels_column="tags").startswith(": There is no column 'tags'.")
    named = parquet(tmp_path, {"a.b": ["x"], "a": [{"b": 1}], "c": ["y"], "tags": [[]]})
    dataset = read(named, text_column=["c", "a.b"], labels_column="tags")
    assert list(dataset.texts) == ["y x"]
    assert why_not(named) == (
        ": None of the 4 columns is called 'text', so it is unclear which is the text: they are "
        "'a.b', 'a', 'c', 'tags'. Call it 'text'. Or pass its name as text_column=."
    )
    assert "None of the 1 columns is called 'labels': they are 'text'. Call one so." in why_not(
        parquet(tmp_path, {"text": ["a"]})
    )
    with pytest.raises(InputError, match="would be the text and the labels as well"):
        read(parquet(tmp_path), text_column="labels")
    twice = pa.table(
        [pa.array(["a"]), pa.array(["b"]), pa.array([["c"]])], ["text", "text", "labels"]
    )
    assert ": The header has 2 columns 'text'." in why_not(parquet(tmp_path, twice))


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1, 2], "int64"),
        ([b"a", b"b"], "binary"),
        ([{"a": "b"}] * 2, "struct<a: string>"),
        ([dt.datetime(2026, 1, 2)] * 2, "timestamp"),
        ([["a"], ["b"]], "list<element: string>"),
        ([{f"field{i}": "b" for i in range(99)}] * 2, "struct<field0: string, "),
    ],
)
def test_texts_of_another_type_are_refused(tmp_path, values, shown):
    message = why_not(parquet(tmp_path, texts=values, labels=[["a"], ["b"]]))
    assert message.startswith(f": The column 'text' is of type {shown}")
    assert message.endswith(
        ", and texts are strings. Cast it to strings. Or pass another column as text_column=."
    )
    assert len(message) < 240


@pytest.mark.parametrize(
    "values",
    [
        [0.5, 1.0],
        [[0.5], [1.0]],
        [True, False],
        [b"a", b"b"],
        [{"a": 1}] * 2,
        [[{"a": 1}]] * 2,
        [[["a"]]] * 2,
        [dt.date(2026, 1, 2)] * 2,
        [Decimal(1), Decimal(2)],
    ],
)
def test_labels_of_another_type_are_refused(tmp_path, values):
    message = why_not(parquet(tmp_path, texts=["a", "b"], labels=values))
    shown = str(pa.array(values).type).replace("item:", "element:")
    assert message.startswith(f": The column 'labels' is of type {shown}. Labels are")
    assert "lists of strings (names) or of whole numbers (ids)" in message


def test_strings_that_are_not_utf8_are_refused(tmp_path):
    offsets, letters = pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer(b"a\xff\xfe")
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, letters])
    path = parquet(tmp_path, texts=texts, labels=[["a"], ["b"]])
    assert why_not(path).startswith(", row 0: Among the 2 rows from this one on is a string that")


def test_a_file_is_told_by_its_bytes(tmp_path, monkeypatch):
    content = parquet(tmp_path).read_bytes()
    for name in ("x", "x.csv", "x.jsonl.gz"):
        (tmp_path / name).write_bytes(content)
        assert list(read(tmp_path / name).texts) == TEXTS
    text = tmp_path / "genes.tsv"
    text.write_text("PAR1 is a receptor\tgenes\n")
    assert list(read(text).texts) == ["PAR1 is a receptor"]
    lines = tmp_path / "lines.parquet"
    lines.write_text('{"text": "a", "labels": ["b"]}\n')
    assert "(Read as 'parquet' because of the file's name; pass format=" in why_not(lines)
    assert list(read(lines, format="json-lines").texts) == ["a"]
    assert "a Parquet file, not plain text" in why_not(parquet(tmp_path), format="csv")
    monkeypatch.setattr("sys.stdin", stdin_of(content))
    with pytest.raises(InputError, match=r"standard input can be read only once, .* Name a file\."):
        Dataset.read("-", format="parquet")


def test_a_broken_file_is_named(tmp_path):
    path = parquet(tmp_path, texts=TEXTS * 50, labels=NAMES * 50)
    whole = path.read_bytes()
    broken = [whole[:n] for n in (5, 50, len(whole) // 2, len(whole) - 1)]
    broken += [b"PAR1PAR1", b"PAR1\0\0\0\0PAR1", whole[:-40] + b"x" * 32 + whole[-8:]]
    for content in broken:
        path.write_bytes(content)
        assert "If it was cut off or damaged, copy or write it again." in why_not(path)
    for content in (b"PAR1", b"PA"):
        path.write_bytes(content)
        assert why_not(path)
    path.write_bytes(b"")
    assert why_not(path).startswith(": The file is empty. Pass a file with points in it.")
    path.write_bytes(b"PARE" + whole[4:-4] + b"PARE")
    assert why_not(path) == ": The file is encrypted. Write it without encryption."
    none = {"text": pa.array([], pa.string()), "labels": pa.array([], pa.list_(pa.string()))}
    assert why_not(parquet(tmp_path, none)) == ": The file is empty. Pass a file with points in it."


def test_no_byte_that_is_wrong_ends_in_an_error_of_pyarrow(tmp_path):
    whole = parquet(tmp_path).read_bytes()
    path = tmp_path / "x.parquet"
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with suppress(InputError):  # and no other
            read(path)


def test_a_folder_is_read_as_spark_writes_it(tmp_path):
    folder = tmp_path / "train"
    for i, (text, labels) in enumerate(zip(TEXTS, NAMES, strict=True)):
        table = {"text": pa.array([text]), "labels": pa.array([labels], pa.list_(pa.string()))}
        parquet(folder, table, f"part-{8 + i}.snappy.parquet")
    parquet(
        folder,
        {"labels": pa.array([], pa.list_(pa.string())), "text": pa.array([], "string")},
        "x.parquet",
    )
    for name in (
        "_SUCCESS",
        ".part-8.crc",
        "._x.parquet",
        "_metadata",
        "_tmp/y.parquet",
        "z/a.parquet",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"no rows")
    dataset = read(folder)
    assert list(dataset.texts) == TEXTS
    assert names_of(dataset) == NAMES
    assert said(folder).endswith("first at row 1.")  # of all
    parquet(folder / "year=2026", name="a.parquet")
    assert len(read(folder)) == 2 * len(TEXTS)
    parquet(folder, {"text": ["a"]}, "part-99.parquet")
    with pytest.raises(DataFormatError, match=r"part-99\.parquet: There are no columns 'labels'"):
        read(folder)
    parquet(folder, name="part-99.parquet", labels=[[0.5]] * 4)
    with pytest.raises(DataFormatError, match=r"part-99\.parquet: The column 'labels' is of type"):
        read(folder)
    (folder / "part-99.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataFormatError, match=r"part-99\.parquet: pyarrow cannot read"):
        read(folder)


def test_folders_of_other_things_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"is a folder without Parquet files\. Name a file\."):
        read(tmp_path)
    parquet(tmp_path, name="train-00000-of-00001.parquet")
    assert len(read(tmp_path)) == len(TEXTS)
    parquet(tmp_path, name="test-00000-of-00001.parquet")
    with pytest.raises(InputError, match=r"files of several splits, test and train\. Name one"):
        read(tmp_path)
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(InputError, match=r"is a Delta table, whose log says which of its files"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("labels", "item"), [(NAMES, "string"), (IDS, "int64")], ids=["names", "ids"]
)
def test_what_is_written_is_read(tmp_path, labels, item):
    dataset = Dataset.of(TEXTS, labels)
    dataset.write(tmp_path / "x.parquet")
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert [schema.field("text").type, schema.field("labels").type.value_type] == ["string", item]
    again = read(tmp_path / "x.parquet")
    assert again.texts == dataset.texts
    assert list(again.label_lists()) == list(dataset.label_lists())
    assert again.label_space.names == dataset.label_space.names
    with pytest.raises(
        InputError, match="Parquet files hold texts, and this data set has features"
    ):
        Dataset.of([[1.0]], [[0]]).write(tmp_path / "y.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_texts_stand_beside_a_matrix_of_labels(tmp_path):
    Dataset.of(np.eye(4), IDS).write(tmp_path / "X.npz", labels_path=tmp_path / "Y.npz")
    path = parquet(tmp_path, {"title": TEXTS})
    dataset = read(path, labels_path=tmp_path / "Y.npz")
    assert list(dataset.texts) == TEXTS
    assert list(dataset.label_lists()) == IDS


def test_the_command_line_reads_it_as_json_lines(place, tmp_path, capsys):
    points = [*rows()]
    table = {"labels": [x["labels"] for x in points], "text": [x["text"] for x in points]}
    test = parquet(tmp_path, table, "test.parquet")
    train = parquet(tmp_path, {name: column * 5 for name, column in table.items()})
    assert run(capsys, "train", train, "--model", tmp_path / "model", *SMALL)[0] == 0
    assert files_of(tmp_path / "model") == files_of(place / "model")
    for source in (test, shutil.copy(test, tmp_path / "test"), place / "test.jsonl"):
        code, out, _ = run(capsys, "predict", place / "model", source)
        assert (code, out) == (0, run(capsys, "predict", place / "model", place / "test.jsonl")[1])
        code, out, _ = run(capsys, "evaluate", place / "model", source)
        assert code == 0
        assert out.splitlines()[1].split() == ["P", "100.00", *out.splitlines()[1].split()[2:]]
    assert "test.parquet holds texts" in refused(capsys, "predict", place / "sparse", test)
    message = refused(capsys, "predict", place / "model", test, "--text-column", "titel")
    assert "There is no column 'titel'." in message
    assert message.endswith("Name one of them as --text-column.")
    words = ("predict", place / "model", tmp_path, "--output", tmp_path / "answers.jsonl")
    assert "all of which this command reads" in refused(capsys, *words)


def test_a_model_reads_columns_as_in_training(place, tmp_path, capsys):
    points = [*rows()] * 5
    lines = [json.dumps({"title": x["text"], "tags": x["labels"]}) for x in points]
    names = ("--text-column", "title", "--labels-column", "tags")
    train = write_lines(tmp_path / "train.jsonl", lines)
    model = tmp_path / "model"
    assert run(capsys, "train", train, "--model", model, *names, *SMALL)[0] == 0
    table = {"title": [x["text"] for x in points], "tags": [x["labels"] for x in points]}
    code, _, err = run(capsys, "evaluate", model, parquet(tmp_path, table))
    assert code == 0
    assert "is read as in training: text from 'title', labels from 'tags'." in err
    answers = tmp_path / "answers.parquet"
    assert run(capsys, "predict", model, parquet(tmp_path, table), "--output", answers)[0] == 0
    code, _, err = run(capsys, "evaluate", model, answers)
    assert code == 0
    assert "is read as `predict` writes it" in err


def test_answers_are_written_as_in_json_lines(place, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("longtail.cli.points.POINTS_AT_ONCE", 3)
    monkeypatch.setattr("longtail.data.parquet._ROWS_AT_ONCE", 2)
    test, target = place / "test.jsonl", tmp_path / "answers.parquet"
    assert run(capsys, "predict", place / "model", test, "--output", target)[0] == 0
    expected = [
        json.loads(x) for x in run(capsys, "predict", place / "model", test)[1].splitlines()
    ]
    table = pq.read_table(target)
    assert str(table.schema) == str(
        pa.schema(
            {
                "text": pa.string(),
                "labels": pa.list_(pa.field("element", pa.string())),
                "scores": pa.list_(pa.field("element", pa.float32())),
            }
        )
    )
    for row, other in zip(table.to_pylist(), expected, strict=True):
        assert (row["text"], row["labels"]) == (other["text"], other["labels"])
        np.testing.assert_allclose(row["scores"], other["scores"], rtol=1e-6)
    run(capsys, "predict", place / "sparse", place / "sparse.txt", "--output", target)
    assert pq.read_schema(target).names == ["labels", "scores"]
    monkeypatch.setattr("sys.stdin", stdin_of(b"red wine\n"))
    assert run(capsys, "predict", place / "model", "-", "--output", target)[0] == 0
    assert pq.read_table(target)["text"].to_pylist() == ["red wine"]
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_what_is_kept_has_its_type(place, tmp_path, capsys):
    table = {
        "text": ["red wine", "old car"],
        "id": [2**60 + 1, None],
        "price": [0.5, 2.0],
        "is_new": [True, None],
        "none": pa.array([None, None]),
        "at": pa.array([1, None], pa.timestamp("ns")),
        "day": [dt.date(2026, 1, 2)] * 2,
        "cost": [Decimal("1.50"), None],
        "tags": [["a"], []],
        "kind": pa.array(["a", None]).dictionary_encode(),
        "raw": [b"\xff", None],
    }
    source, target = parquet(tmp_path, table), tmp_path / "answers.parquet"
    kept = [name for name in table if name not in {"text", "id"}]
    words = ("predict", place / "model", source, "--output", target)
    assert run(capsys, *words, "--keep", "id", *kept)[0] == 0
    answers = pq.read_table(target)
    types = ("int64", "double", "bool", *("string",) * 7)
    assert [str(answers.schema.field(name).type) for name in ["id", *kept]] == [*types]
    for name in ("id", "price", "is_new"):
        assert answers[name].to_pylist() == table[name]
    assert answers["none"].to_pylist() == [None, None]
    assert answers["kind"].to_pylist() == ["a", None]
    assert answers["raw"].to_pylist() == ["/w==", None]
    assert answers["at"].to_pylist() == ["1970-01-01 00:00:00.000000001", None]
    assert answers["day"].to_pylist() == ["2026-01-02"] * 2
    assert answers["cost"].to_pylist() == ["1.50", None]
    assert answers["tags"].to_pylist() == ['["a"]', "[]"]
    assert run(capsys, *words)[0] == 0  # of which the id is kept without being asked for
    assert pq.read_table(target)["id"].to_pylist() == table["id"]
    twice = pa.table([pa.array(["a"]), pa.array([1]), pa.array([2])], ["text", "id", "id"])
    message = refused(capsys, "predict", place / "model", parquet(tmp_path, twice))
    assert "There are 2 columns 'id', of which one is read." in message
    values = [[1, None], [1.0, 2.5, None], ["1", "2.5", None, "1e400", "x"], [str(2**63)]]
    written = ["1 null", "1 2.5 null", '1 2.5 null 1e400 "x"', str(2**63)]
    for some, values_of_lines in zip(values, written, strict=True):
        lines = [f'{{"text": "dry wine", "n": {n}}}' for n in values_of_lines.split()]
        source = write_lines(tmp_path / "in.jsonl", lines)
        words = ("predict", place / "model", source, "--keep", "n", "--output", target)
        assert run(capsys, *words)[0] == 0
        assert pq.read_table(target)["n"].to_pylist() == some


def test_a_run_that_was_stopped_is_gone_on_with(place, tmp_path, capsys, monkeypatch):
    from longtail.predictor import Predictor

    monkeypatch.setattr("longtail.cli.points.POINTS_AT_ONCE", 3)
    monkeypatch.setattr("longtail.data.blocks.POINTS_AT_ONCE", 3)
    source = parquet(tmp_path, {"id": [*range(10)], "text": [f"red wine {i}" for i in range(10)]})
    whole, target = tmp_path / "whole.parquet", tmp_path / "answers.parquet"
    words = ("predict", place / "model", source, "--output")
    assert run(capsys, *words, whole)[0] == 0
    answer, sizes = Predictor.predict_topk, []

    def stopping(self, points, *arguments, **keywords):
        sizes.append(len(points))
        if len(sizes) == 3:
            raise KeyboardInterrupt
        return answer(self, points, *arguments, **keywords)

    monkeypatch.setattr(Predictor, "predict_topk", stopping)
    assert run(capsys, *words, target)[0] == 130
    assert not target.exists()
    code, _, err = run(capsys, *words, target)
    assert code == 0
    assert "has answered: 6 points." in err
    assert sizes == [3, 3, 3, 3, 1]
    assert target.read_bytes() == whole.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {source.name, whole.name, target.name}


def test_without_pyarrow_the_command_that_installs_it_is_said(place, tmp_path, capsys, monkeypatch):
    path = parquet(tmp_path)
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"Parquet needs pyarrow.* 'longtail\[parquet\]'"):
        read(path)
    target = tmp_path / "answers.parquet"
    message = refused(capsys, "predict", place / "model", place / "test.jsonl", "--output", target)
    assert message.endswith("Install it with `pip install 'longtail[parquet]'`.")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def of_classes(folder, ids, feature, name="x.parquet"):
    """Write ids whose names a file of Hugging Face's tells."""
    features = {"text": {"dtype": "string", "_type": "Value"}, "labels": feature}
    told = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({"text": TEXTS[: len(ids)], "labels": ids})
    pq.write_table(table.replace_schema_metadata(told), folder / name)
    return folder / name


CLASS = {"names": ["bread", "baking", "dance"], "_type": "ClassLabel"}


class TestNamesOfClasses:
    @pytest.mark.parametrize("ids", [[2, -1, 0], [[2], [-1], [0]], [[2], [], [0]]])
    @pytest.mark.parametrize("kind", [CLASS, {"feature": CLASS, "_type": "List"}, [CLASS]])
    def test_are_the_labels(self, tmp_path, ids, kind):
        assert names_of(read(of_classes(tmp_path, ids, kind))) == [["dance"], [], ["bread"]]

    def test_are_those_of_labels_that_are_known(self, tmp_path):
        path = of_classes(tmp_path, [0, 2], CLASS)
        known = LabelSpace.from_names(["dance", "bread"])
        assert list(read(path, label_space=known).label_lists()) == [[1], [0]]

    def test_are_not_read_where_ids_are_lines_of_a_labels_file(self, tmp_path):
        (tmp_path / "labels.txt").write_text("Brot\nBacken\nTanz\n")
        path = of_classes(tmp_path, [0, 2], CLASS)
        found = names_of(read(path, labels_file=tmp_path / "labels.txt"))
        assert found == [["Brot"], ["Tanz"]]

    def test_are_not_read_where_known_labels_have_others_or_none(self, tmp_path):
        path = of_classes(tmp_path, [0, 2], CLASS)
        for known in (LabelSpace.from_names(["Brot", "Backen", "Tanz"]), LabelSpace(3)):
            assert list(read(path, label_space=known).label_lists()) == [[0], [2]]

    @pytest.mark.parametrize(
        "told",
        [{"names": "bread"}, {"names": [1]}, {"_type": "Value"}, [], 7, None, {"feature": 3}],
    )
    def test_what_says_something_else_is_passed_over(self, tmp_path, told):
        assert list(read(of_classes(tmp_path, [0, 2], told)).label_lists()) == [[0], [2]]

    def test_an_id_of_no_class_is_told(self, tmp_path):
        assert "ids here but names" in why_not(of_classes(tmp_path, [0, 3], CLASS))
