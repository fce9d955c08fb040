"""Points in one file and their labels in another: matrices of numpy and scipy, and texts."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array, load_npz, save_npz

from command_line import SMALL, refused, run
from longtail import Dataset
from longtail.data import InputWarning
from longtail.data.unlabelled import read_points
from longtail.errors import DataFormatError, InputError

FEATURES = np.array([[0, 0.5, 0], [2, 0, 0], [0, 0, 0], [0, 1, 4]], np.float32)
LABELS = np.array([[1, 0], [0, 1], [1, 0], [1, 1]], np.float32)


def saved(path, matrix):
    """Write a matrix, as its users do."""
    if path.suffix == ".npy":
        np.save(path, matrix)
    else:
        save_npz(path, csr_array(matrix))
    return path


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
    with pytest.raises(DataFormatError, match="says 2 labels, but the labels file has 3"):
        Dataset.read(of_points, labels_path=of_labels, labels_file=tmp_path / "names.txt")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("X.trn.txt", "red wine\n\n1 o'clock\n  old car\n"),  # a blank line is a text, too
        ("X.jsonl", "".join(json.dumps({"text": t}) + "\n" for t in "abcd")),
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
    with pytest.raises(DataFormatError, match=r"has the label -1\. Ids of labels count from 0"):
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


def test_a_model_of_texts_is_not_asked_with_a_matrix(place, capsys, tmp_path):
    path = saved(tmp_path / "X.npz", FEATURES)
    assert "the model was trained on texts" in refused(capsys, "predict", place / "model", path)
