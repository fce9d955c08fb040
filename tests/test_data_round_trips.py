"""Every file format: what is written is read again, and what a format cannot carry is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail.data import Dataset, InputWarning, LabelSpace, TextColumn
from longtail.data.csr import csr_from_rows
from longtail.errors import DataFormatError, InputError


def text_dataset(texts, labels, names):
    lengths = np.array([len(set(row)) for row in labels], dtype=np.int64)
    indices = np.array([label for row in labels for label in sorted(set(row))], dtype=np.int32)
    matrix = csr_from_rows(indices, lengths, len(names))
    return Dataset(TextColumn.from_strings(texts), None, matrix, LabelSpace.from_names(names))


any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
plain_name = any_text.map(lambda s: s.replace("|", "/").strip()).filter(bool)


@st.composite
def text_datasets(draw, text=any_text, name=any_text):
    names = draw(st.lists(name, min_size=1, max_size=5, unique=True))
    texts = draw(st.lists(text, min_size=1, max_size=5))
    row = st.lists(st.integers(0, len(names) - 1), max_size=3)
    labels = draw(st.lists(row, min_size=len(texts), max_size=len(texts)))
    return text_dataset(texts, labels, names)


def written_and_read(dataset, path, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        dataset.write(path)
        return Dataset.read(path, label_space=dataset.label_space, **keywords)


def assert_same(first, second):
    assert first.texts == second.texts
    assert first.labels.shape == second.labels.shape
    assert (first.labels != second.labels).nnz == 0
    if first.features is not None:
        assert first.features.shape == second.features.shape
        assert (first.features != second.features).nnz == 0


@settings(max_examples=25, deadline=None)
@given(text_datasets())
def test_json_lines_round_trip(tmp_path_factory, dataset):
    path = tmp_path_factory.mktemp("json") / "a.jsonl.gz"
    assert_same(dataset, written_and_read(dataset, path))


@pytest.mark.parametrize("name", ["a.tsv", "a.csv.gz"])
@settings(max_examples=25, deadline=None)
@given(dataset=text_datasets(name=plain_name))
def test_delimited_round_trip(tmp_path_factory, name, dataset):
    path = tmp_path_factory.mktemp("delimited") / name
    assert_same(dataset, written_and_read(dataset, path))


@settings(max_examples=50, deadline=None)
@given(text_datasets())
def test_fasttext_round_trip_or_refusal(tmp_path_factory, dataset):
    path = tmp_path_factory.mktemp("fasttext") / "a.ft"
    try:
        again = written_and_read(dataset, path)
    except DataFormatError as error:
        assert "cannot be written as a fastText line" in str(error)  # noqa: PT017
        assert not path.exists()
    else:
        assert_same(dataset, again)


def test_words_of_fasttext_are_parted_by_its_own_blanks_alone(tmp_path):
    path = tmp_path / "a.ft"
    path.write_text("__label__a b\nbig __label__\u2028 a\n")
    with pytest.raises(DataFormatError, match="line 2: A label has no name"):
        Dataset.read(path)
    path.write_text("__label__New\u00a0York\v__label__b big\u3000city\nbig __label__c a\u00a0b\n")
    dataset = Dataset.read(path)
    assert list(dataset.texts) == ["big\u3000city", "big a\u00a0b"]
    assert list(dataset.label_space.names) == ["New\u00a0York", "b", "c"]
    assert_same(dataset, written_and_read(dataset, path))


def test_fasttext_round_trip(tmp_path):
    dataset = text_dataset(["how  to\tknead", "", "übung"], [[0, 1], [1], []], ["baking", "brot"])
    assert_same(dataset, written_and_read(dataset, tmp_path / "a.ft"))


@pytest.mark.parametrize(
    ("name", "text", "label"),
    [
        ("a.ft", "two\nlines", "a"),
        ("a.ft", " x", "a"),
        ("a.ft", "a __label__b", "a"),
        ("a.ft", "x", "a b"),
        ("a.tsv", "x", "a|b"),
        ("a.csv", "x", " a"),
    ],
)
def test_what_a_format_cannot_carry(tmp_path, name, text, label):
    dataset = text_dataset(["fine", text], [[0], [1]], ["ok", label])
    with pytest.raises(DataFormatError, match=r"line [23]: .*cannot be written.*Use JSON lines"):
        dataset.write(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_json_lines_fall_back_to_ids_where_names_are_shared(tmp_path):
    dataset = text_dataset(["x", "y"], [[0], [1]], ["bank", "bank"])
    assert_same(dataset, written_and_read(dataset, tmp_path / "a.jsonl"))
    assert '"labels":[1]' in (tmp_path / "a.jsonl").read_text()


float32s = st.floats(width=32, allow_nan=False, allow_infinity=False).filter(bool)


@st.composite
def feature_datasets(draw):
    n_points, n_features, n_labels = (draw(st.integers(1, 4)) for _ in range(3))
    cells = st.lists(st.just(0.0) | float32s, min_size=n_features, max_size=n_features)
    features = draw(st.lists(cells, min_size=n_points, max_size=n_points))
    marks = st.lists(st.booleans(), min_size=n_labels, max_size=n_labels)
    labels = draw(st.lists(marks, min_size=n_points, max_size=n_points))
    return Dataset(
        None,
        csr_array(np.array(features, dtype=np.float32)),
        csr_array(np.array(labels, dtype=np.float32)),
        LabelSpace(n_labels),
    )


@settings(max_examples=25, deadline=None)
@given(feature_datasets())
def test_sparse_round_trips(tmp_path_factory, dataset):
    folder = tmp_path_factory.mktemp("sparse")
    dataset.write(folder / "a.txt", format="repository")
    dataset.write(folder / "X.txt", labels_path=folder / "Y.txt.gz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        assert_same(dataset, Dataset.read(folder / "a.txt"))
        assert_same(dataset, Dataset.read(folder / "X.txt", labels_path=folder / "Y.txt.gz"))
        with pytest.raises(InputError, match="Pass labels_path or format, not both"):
            Dataset.read(folder / "X.txt", labels_path=folder / "Y.txt.gz", format="csv")
    try:
        again = written_and_read(dataset, folder / "a.svm", n_features=dataset.features.shape[1])
    except DataFormatError as error:
        assert "neither labels nor features" in str(error)  # noqa: PT017
    else:
        assert_same(dataset, again)


def test_writing_needs_the_right_contents(tmp_path):
    texts = text_dataset(["x"], [[0]], ["a"])
    features = Dataset(None, csr_array([[1.0]]), csr_array([[1.0]]), LabelSpace(1))
    for name in ("a.jsonl", "a.tsv", "a.csv", "a.ft"):
        with pytest.raises(InputError, match=r"this data set has features\. Use 'repository'"):
            features.write(tmp_path / name)
    for keywords in ({"format": "repository"}, {"format": "svmlight"}, {"labels_path": "Y.txt"}):
        with pytest.raises(InputError, match=r"this data set has texts\. Use 'json-lines'"):
            texts.write(tmp_path / "a.txt", **keywords)
    with pytest.raises(InputError, match="does not show the format"):
        texts.write(tmp_path / "a.txt")


def test_empty_names_are_written_as_ids(tmp_path):
    dataset = text_dataset(["x"], [[1]], ["a", " "])
    dataset.write(tmp_path / "a.jsonl")
    assert '"labels":[1]' in (tmp_path / "a.jsonl").read_text()
