"""Points in one file and their labels in another: matrices of numpy and scipy, and texts."""

from __future__ import annotations

import io
import json
import os
import pickle
from threading import Thread

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, load_npz, save_npz

from command_line import SMALL, refused, run
from longtail import Dataset
from longtail.data import InputWarning
from longtail.data.unlabelled import read_points
from longtail.errors import DataFormatError, InputError
from small_files import damage_each_byte

FEATURES = np.array([[0, 0.5, 0], [2, 0, 0], [0, 0, 0], [0, 1, 4]], np.float32)
LABELS = np.array([[1, 0], [0, 1], [1, 0], [1, 1]], np.float32)


def saved(path, matrix):
    """Write a matrix, as its users do."""
    if path.suffix == ".npy":
        np.save(path, matrix)
    else:
        save_npz(path, csr_array(matrix))
    return path


def test_names_of_labels_in_place_of_the_labels_of_points(tmp_path, capsys):
    features, names = tmp_path / "X.txt", tmp_path / "labels.txt"
    features.write_text("2 3\n0:1\n1:1\n")
    names.write_text("bread\ndance\n")
    with pytest.raises(DataFormatError, match=r"got 'bread'\. If each .* pass it as labels_file="):
        Dataset.read(features, labels_path=names)
    model = tmp_path / "model"
    said = refused(capsys, "train", features, "--label-pairs", names, "--model", model)
    assert "If each line is the name of a label, pass it as --labels." in said


@pytest.mark.parametrize("points", ["X.trn.npz", "X.npy", "X.NPY"])
@pytest.mark.parametrize("labels", ["Y.trn.npz", "Y.npy"])
def test_matrices_are_read(tmp_path, points, labels):
    of_points = saved(tmp_path / points.lower(), FEATURES).rename(tmp_path / points)
    of_labels = saved(tmp_path / labels, LABELS)
    dataset = Dataset.read(of_points, labels_path=of_labels)
    np.testing.assert_array_equal(dataset.features.toarray(), FEATURES)
    np.testing.assert_array_equal(dataset.labels.toarray(), LABELS)
    np.testing.assert_array_equal(read_points(of_points, n_features=3).toarray(), FEATURES)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float64])
def test_labels_may_be_of_any_numbers(tmp_path, dtype):
    of_points = saved(tmp_path / "X.npz", FEATURES)
    of_labels = saved(tmp_path / "Y.npy", LABELS.astype(dtype))
    dataset = Dataset.read(of_points, labels_path=of_labels)
    np.testing.assert_array_equal(dataset.labels.toarray(), LABELS)


def test_one_label_a_point_may_be_its_id(tmp_path):
    of_points = saved(tmp_path / "X.npz", FEATURES)
    of_labels = saved(tmp_path / "y.npy", np.array([3, 0, 1, 3]))
    dataset = Dataset.read(of_points, labels_path=of_labels)
    assert list(dataset.label_lists()) == [[3], [0], [1], [3]]
    assert dataset.n_labels == 4


def test_one_label_a_point_may_be_its_name(tmp_path):
    of_points = saved(tmp_path / "X.npz", FEATURES)
    of_labels = saved(tmp_path / "y.npy", np.array(["rye", "oat", "rye", "rye"]))
    dataset = Dataset.read(of_points, labels_path=of_labels)
    assert list(dataset.label_space.names) == ["rye", "oat"]
    assert list(dataset.label_lists()) == [[0], [1], [0], [0]]


def test_ids_need_not_name_each_line_of_a_labels_file(tmp_path):
    of_points, names = saved(tmp_path / "X.npz", FEATURES), tmp_path / "names.txt"
    names.write_text("bread\nyeast\nrye\n")
    of_labels = saved(tmp_path / "y.npy", np.array([1, 0, 1, 0]))
    dataset = Dataset.read(of_points, labels_path=of_labels, labels_file=names)
    assert (dataset.n_labels, list(dataset.label_lists())) == (3, [[1], [0], [1], [0]])
    of_labels = saved(tmp_path / "y.npy", np.array([1, 3, 1, 0]))
    with pytest.raises(DataFormatError, match=r"line 2: The label id 3 .* the ids 0 to 2"):
        Dataset.read(of_points, labels_path=of_labels, labels_file=names)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.array([[3], [0], [1], [3]]), r"got 3 in row 0\. Are these ids\? .* array\[:, 0\]"),
        (np.array([[1, 0], [1, -1], [0, 1], [1, -1]]), r"got -1 in row 1\. Are these ids\?"),
        (np.array([0.5, 1, 1, 0]), "one label a point, or its name, got float64"),
        (np.array([1, 2**31, 1, 0]), r"line 2: The label id 2147483648 is out of range"),
        (np.array([1, 734_512_345, 1, 0]), "An id is a row number"),
        (csr_array(([1.0], ([0], [2**31]))), "at most 2,147,483,647 labels have ids"),
    ],
)
def test_labels_that_are_no_matrix_of_zeros_and_ones(tmp_path, labels, said):
    of_points = saved(tmp_path / "X.npz", FEATURES)
    name = "Y.npy" if isinstance(labels, np.ndarray) else "Y.npz"
    if name == "Y.npz":
        labels.resize((4, labels.shape[1]))
    with pytest.raises(DataFormatError, match=said):
        Dataset.read(of_points, labels_path=saved(tmp_path / name, labels))


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("which", ["X.npz", "Y.npz"])
def test_indices_beyond_a_matrix_are_found_before_they_are_followed(tmp_path, kind, which):
    paths = {"X.npz": FEATURES, "Y.npz": LABELS}
    for name, matrix in paths.items():
        wrong = coo_array(matrix).asformat(kind)
        if name == which:
            wrong.indices[-1] += 10_000_000
        save_npz(tmp_path / name, wrong)
    with pytest.raises(DataFormatError, match=r"It is a broken sparse matrix") as caught:
        Dataset.read(tmp_path / "X.npz", labels_path=tmp_path / "Y.npz")
    assert caught.value.path == str(tmp_path / which)


def test_values_other_than_one_are_told_and_stored_zeros_are_none(tmp_path):
    of_points = saved(tmp_path / "X.npz", FEATURES)
    graded = csr_array((np.array([0, 0.5], np.float32), ([0, 1], [1, 0])), (4, 2))
    save_npz(tmp_path / "Y.npz", graded)
    with pytest.warns(InputWarning, match=r"values other than 1 .*: 1, first at line 2"):
        dataset = Dataset.read(of_points, labels_path=tmp_path / "Y.npz")
    assert list(dataset.label_lists()) == [[], [0], [], []]


def test_names_are_lines_of_a_file(tmp_path):
    of_points, of_labels = saved(tmp_path / "X.npz", FEATURES), saved(tmp_path / "Y.npz", LABELS)
    (tmp_path / "names.txt").write_text("bread\nyeast\n")
    dataset = Dataset.read(of_points, labels_path=of_labels, labels_file=tmp_path / "names.txt")
    assert list(dataset.label_space.names) == ["bread", "yeast"]
    (tmp_path / "names.txt").write_text("bread\nyeast\nrye\n")
    with pytest.raises(DataFormatError, match="matrix has 2 labels, but the labels file has 3"):
        Dataset.read(of_points, labels_path=of_labels, labels_file=tmp_path / "names.txt")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("X.trn.txt", "12 20\n\n1 o'clock\n  old car\n"),  # a blank line is a text, too
        ("X.jsonl", "".join(json.dumps({"text": t}) + "\n" for t in "abcd")),
        ("X", "".join(json.dumps({"text": t}) + "\n" for t in "abcd")),
        ("X.trn", "__label__x a\nb\nc __label__y __label__x\nd\n"),
        ("X.csv", "id,text\n1,a\n2,b\n3,c\n4,d\n"),
        ("X.tsv", "text\tid\na\t1\nb\t2\nc\t3\nd\t4\n"),
    ],
)
def test_texts_beside_a_matrix_of_labels(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    of_labels = saved(tmp_path / "Y.npz", LABELS)
    dataset = Dataset.read(tmp_path / name, labels_path=of_labels)
    expected = content.splitlines() if name.endswith("txt") else ["a", "b", "c", "d"]
    assert list(dataset.texts) == expected
    np.testing.assert_array_equal(dataset.labels.toarray(), LABELS)


def test_the_text_of_a_table_may_have_any_name(tmp_path):
    (tmp_path / "X.csv").write_text("title,year\na,1\nb,2\nc,3\nd,4\n")
    pair = {"labels_path": saved(tmp_path / "Y.npz", LABELS), "text_column": "title"}
    assert list(Dataset.read(tmp_path / "X.csv", **pair).texts) == ["a", "b", "c", "d"]
    with pytest.raises(InputError, match="A matrix"):
        Dataset.read(saved(tmp_path / "X.npz", FEATURES), **pair)


@pytest.mark.parametrize("name", ["X.npz", "X.npy"])
def test_no_damaged_byte_is_an_error_of_another_kind(tmp_path, name):
    path, of_labels = saved(tmp_path / name, FEATURES), saved(tmp_path / "Y.npz", LABELS)
    step = 1 if name == "X.npy" else 7
    damage_each_byte(path, lambda: Dataset.read(path, labels_path=of_labels), step)


@pytest.mark.parametrize("name", ["X.svm", "X.txt"])
def test_lines_with_labels_of_their_own_are_refused_beside_others(tmp_path, name):
    (tmp_path / name).write_text("1 0:1 2:2\n0 1:0.5 2:1\n1 0:1\n0 1:1\n")
    of_labels = saved(tmp_path / "Y.npz", LABELS)
    with pytest.raises(InputError, match="begins with labels of its own"):
        Dataset.read(tmp_path / name, labels_path=of_labels)


@pytest.mark.parametrize("lines", ["a\n\nb\nc\n", '{"text": "a"}\n' * 4])
def test_texts_come_from_a_pipe_whole(tmp_path, lines):
    pipe, of_labels = tmp_path / "pipe", saved(tmp_path / "Y.npz", LABELS)
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_text, args=[lines])
    writer.start()
    assert Dataset.read(pipe, labels_path=of_labels).n_points == 4
    writer.join()


def test_sparse_text_beside_a_matrix_of_labels(tmp_path):
    (tmp_path / "X.txt").write_text("4 3\n1:0.5\n0:2\n\n1:1 2:4\n")
    dataset = Dataset.read(tmp_path / "X.txt", labels_path=saved(tmp_path / "Y.npz", LABELS))
    np.testing.assert_array_equal(dataset.features.toarray(), FEATURES)


def test_what_is_written_is_read_again(tmp_path):
    dataset = Dataset.of(csr_array(FEATURES), csr_array(LABELS))
    dataset.write(tmp_path / "X.npz", labels_path=tmp_path / "Y.npz")
    np.testing.assert_array_equal(load_npz(tmp_path / "Y.npz").toarray(), LABELS)
    again = Dataset.read(tmp_path / "X.npz", labels_path=tmp_path / "Y.npz")
    np.testing.assert_array_equal(again.features.toarray(), FEATURES)
    with pytest.raises(InputError, match=r"would hold each zero. Name it Y.npz"):
        dataset.write(tmp_path / "X.txt", labels_path=tmp_path / "Y.npy")
    assert not (tmp_path / "Y.npy").exists()


class Evil:
    def __reduce__(self):
        return (print, ("run",))


def written(save, matrix):
    """Return the bytes of a file that has another name than its kind."""
    stream = io.BytesIO()
    save(stream, matrix)
    return stream.getvalue()


def broken_files():
    """Names and contents that are no matrix, and what is said of them."""
    evil = pickle.dumps(Evil())
    objects = np.array([Evil()], dtype=object)
    return [
        ("X.npz", b"", "not a sparse matrix saved by scipy"),
        ("X.npz", b"PK\x03\x04 cut off", "not a sparse matrix saved by scipy"),
        ("X.npz", b"red wine\n", "not a sparse matrix saved by scipy"),
        ("X.npz", evil, "not a sparse matrix saved by scipy"),
        ("X.npy", b"", "not an array saved by numpy"),
        ("X.npy", evil, "not an array saved by numpy"),
        ("X.npy", objects, "not an array saved by numpy"),
        ("X.npy", np.zeros((2, 2, 2)), "has 3 dimensions"),
        ("X.npy", np.array([[1, np.nan]]), "NaN"),
        ("X.npy", np.array([["a"]]), "cannot be read as a matrix of numbers"),
        ("X.npz", {"table": np.eye(2)}, "not a sparse matrix saved by scipy"),
        ("X.npz", written(np.save, np.eye(2)), "not a sparse matrix saved by scipy"),
        ("X.npy", written(np.savez, np.eye(2)), "not an array saved by numpy"),
    ]


@pytest.mark.parametrize(("name", "content", "said"), broken_files())
def test_broken_files_are_told_and_nothing_is_unpickled(tmp_path, capsys, name, content, said):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        np.savez(path, **content)
    else:
        np.save(path, content, allow_pickle=True)
    for which in ({"path": path, "labels_path": saved(tmp_path / "Y.npz", LABELS)},):
        with pytest.raises(DataFormatError, match=said) as caught:
            Dataset.read(**which)
        assert caught.value.path == str(path)
    assert "run" not in capsys.readouterr().out


def test_what_does_not_fit_together(tmp_path):
    of_points, of_labels = saved(tmp_path / "X.npz", FEATURES), saved(tmp_path / "Y.npz", LABELS)
    with pytest.raises(DataFormatError, match=r"has 3 rows, but .*X.npz has 4"):
        Dataset.read(of_points, labels_path=saved(tmp_path / "few.npy", LABELS[:3]))
    with pytest.raises(DataFormatError, match=r"y.npy, line 2: The label id -1 is negative"):
        Dataset.read(of_points, labels_path=saved(tmp_path / "y.npy", np.array([0, -1, 0, 0])))
    with pytest.raises(InputError, match="named twice"):
        Dataset.read(of_points, labels_path=of_points)
    with pytest.raises(InputError, match=r"matrix of features, without labels.*labels_path="):
        Dataset.read(of_points)
    with pytest.raises(InputError, match=r"no.npz cannot be opened: No such file"):
        Dataset.read(tmp_path / "no.npz", labels_path=of_labels)
    with pytest.raises(InputError, match="only 2 features are expected"):
        read_points(of_points, n_features=2)
    with pytest.raises(InputError, match="the model was trained on texts"):
        read_points(of_points, n_features=None)


def test_on_the_command_line(capsys, tmp_path):
    random = np.random.default_rng(0)
    features = random.random((60, 5)) * (np.arange(5) != np.arange(60)[:, np.newaxis] % 2)
    of_points = saved(tmp_path / "X.trn.npz", features)
    of_labels = saved(tmp_path / "Y.trn.npz", np.eye(2)[np.arange(60) % 2])
    pair, model = (of_points, "--label-pairs", of_labels), tmp_path / "model"
    assert run(capsys, "train", *pair, "--model", model, *SMALL)[0] == 0
    code, out, _ = run(capsys, "evaluate", model, *pair)
    assert code == 0
    assert out.splitlines()[1].split()[1] == "100.00"
    code, out, err = run(capsys, "predict", model, of_points, "--top-k", 1)
    assert (code, err) == (0, "")
    found = [json.loads(line)["labels"] for line in out.splitlines()]
    assert found == [[str(i % 2)] for i in range(60)]
    said = refused(capsys, "train", of_points, "--model", tmp_path / "other")
    assert "--label-pairs" in said


def test_the_text_is_called_as_in_training(capsys, tmp_path):
    rows = [["wine red", "car"][i % 2] for i in range(60)]
    table = "text,title\n" + "".join(f"nothing,{row} {i}\n" for i, row in enumerate(rows))
    (tmp_path / "X.csv").write_text(table)
    (tmp_path / "plain.txt").write_text("".join(f"{row}\n" for row in rows))
    of_labels = saved(tmp_path / "Y.npz", np.eye(2)[np.arange(60) % 2])
    pair, model = (tmp_path / "X.csv", "--label-pairs", of_labels), tmp_path / "model"
    columns = ("--text-column", "title")
    assert run(capsys, "train", *pair, *columns, "--model", model, *SMALL)[0] == 0
    for path in (tmp_path / "X.csv", tmp_path / "plain.txt"):
        code, out, err = run(capsys, "evaluate", model, path, "--label-pairs", of_labels)
        assert (code, out.splitlines()[1].split()[1]) == (0, "100.00")
        assert ("read as in training: text from 'title'" in err) == (path.suffix == ".csv")
    told = (tmp_path / "X.csv", "--label-pairs", of_labels, "--text-column", "text")
    code, out, err = run(capsys, "evaluate", model, *told)
    assert (code, "as in training" in err) == (0, False)
    assert out.splitlines()[1].split()[1] != "100.00"


def test_a_model_of_texts_is_not_asked_with_a_matrix(place, capsys, tmp_path):
    path = saved(tmp_path / "X.npz", FEATURES)
    assert "the model was trained on texts" in refused(capsys, "predict", place / "model", path)
