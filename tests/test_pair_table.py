"""A row for each pair of a text and a label is as good as a point for each text."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from command_line import SMALL, run, write_lines
from longtail import load
from longtail.data.dataset import Dataset
from longtail.data.input_notes import InputWarning
from longtail.data.label_space import LabelSpace
from longtail.data.pair_table import joined_points
from longtail.data.text_column import TextColumn
from longtail.errors import InputError
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.parabel import Parabel
from small_wordnet import small_wordnet

N_LABELS = 5
SPACE = LabelSpace(3)
TEXTS = [f"{thing} number{i}" for i, thing in enumerate(["red", "old", "new"] * 10)]


def table(rows, *, of_features=False):
    """A data set of rows (number of the text, labels)."""
    labels = np.zeros((len(rows), N_LABELS), np.float32)
    for row, (_, own) in enumerate(rows):
        labels[row, list(own)] = 1
    numbers = [number for number, _ in rows]
    space = LabelSpace(N_LABELS)
    if of_features:
        features = csr_array(np.eye(9, dtype=np.float32)[numbers] * 2)
        return Dataset(None, features, csr_array(labels), space)
    texts = TextColumn.from_strings(f"text{number}" for number in numbers)
    return Dataset(texts, None, csr_array(labels), space)


def quietly(dataset, pairs=None):
    """The points, whatever is said of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return joined_points(dataset, pairs)


def points_of(dataset):
    """How often each text has each set of labels."""
    if dataset.texts is None:
        names = [f"text{number}" for number in dataset.features.toarray().argmax(axis=1)]
    else:
        names = list(dataset.texts)
    return Counter(zip(names, map(tuple, dataset.label_lists()), strict=True))


def expected(rows):
    """The twin: the j-th time that a text has a label, it goes to the j-th point of the text."""
    found = Counter()
    for number in {number for number, _ in rows}:
        counts = Counter(label for other, own in rows if other == number for label in own)
        for time in range(max(counts.values(), default=0)):
            own = tuple(sorted(label for label, count in counts.items() if count > time))
            found[f"text{number}", own] += 1
        found[f"text{number}", ()] += sum(other == number and not own for other, own in rows)
    return +found


@given(
    st.lists(st.tuples(st.integers(0, 8), st.sets(st.integers(0, 4), max_size=1)), min_size=1),
    st.booleans(),
)
def test_each_text_has_a_point_with_all_labels_that_come_as_often(rows, of_features):
    dataset = table(rows, of_features=of_features)
    joined, _ = quietly(dataset)
    assert points_of(joined) == (expected(rows) if joined is not dataset else points_of(dataset))
    n_repeated = sum(count for count in Counter(n for n, _ in rows).values() if count > 1)
    is_table = n_repeated > 0.05 * len(rows) and sum(expected(rows).values()) < len(rows)
    assert (joined is not dataset) == is_table
    np.testing.assert_array_equal(joined.labels.sum(axis=0), dataset.labels.sum(axis=0))
    assert joined.labels.indices.dtype == np.int32


@given(
    st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.integers(0, 4)), min_size=1, max_size=9)
)
def test_rows_that_say_nothing_are_joined_to_none(rows):
    texts = [text for text, _ in rows]
    dataset = Dataset.of(texts, [[f"label {label}"] for _, label in rows])
    joined, _ = quietly(dataset)
    own = zip(joined.texts, joined.label_lists(), strict=True)
    of_nothing = [list(map(joined.label_space.name, labels)) for text, labels in own if not text]
    assert of_nothing == [[f"label {label}"] for text, label in rows if not text]


def test_zeros_that_are_stored_tell_no_rows_apart():
    features = csr_array((np.array([1, 0, 1, 0], np.float32), [0, 1, 0, 1], [0, 2, 3, 4]))
    joined, _ = quietly(Dataset(None, features, csr_array(np.eye(3, dtype=np.float32)), SPACE))
    assert [list(own) for own in joined.label_lists()] == [[0, 1], [2]]


def test_pairs_that_leave_nothing_of_joined_points_are_refused():
    rows = [(0, {1}), (0, {1}), (0, {2})]
    pairs = csr_array((np.ones(2), ([0, 0], [1, 2])), shape=(3, N_LABELS))
    with (
        pytest.warns(InputWarning, match="joined to 2 points"),
        pytest.raises(InputError, match="has all labels of all training points"),
    ):
        Parabel().fit_dataset(table(rows), set_aside=pairs)


def test_commands_tell_of_pairs(capsys, tmp_path):
    lines = [f"{text}\t{label}" for text in TEXTS for label in ("shelf", text.split()[0])]
    path = write_lines(tmp_path / "pairs.tsv", lines)
    code, _, err = run(capsys, "train", path, "--model", tmp_path / "model", *SMALL)
    assert code == 0
    said = err.splitlines()
    assert "60 rows are joined to 30 points" in said[0]
    assert said[1].startswith("30 points, 4 labels, 2.00 labels a point")
    code, out, err = run(capsys, "evaluate", tmp_path / "model", path)
    assert code == 0
    assert f"{path} has 60 points with 30 different texts, and each is measured by its own" in err
    assert "60 points, " in out
    code, _, err = run(capsys, "compress", tmp_path / "model", tmp_path / "less", "--test", path)
    assert code == 0
    assert err.count("has 60 points with 30 different texts") == 1
    with pytest.warns(InputWarning, match="The test set has 60 points with 30 different texts"):
        load(tmp_path / "model").evaluate(Dataset.read(path))
    # One answer that is asked for often is no pair.
    points = write_lines(tmp_path / "points.tsv", [f"{text}\tshelf" for text in TEXTS] * 2)
    assert "different texts" not in run(capsys, "evaluate", tmp_path / "model", points)[2]


def test_pairs_go_with_their_texts():
    rows = [(0, {1}), (1, {2}), (0, {3}), (0, {1})]
    pairs = csr_array((np.ones(2), ([1, 2], [4, 0])), shape=(4, N_LABELS))
    with pytest.warns(InputWarning, match="4 rows are joined to 3 points, each with all labels"):
        joined, theirs = joined_points(table(rows), pairs)
    assert list(joined.texts) == ["text0", "text1", "text0"]  # in the order of their first rows
    assert [list(own) for own in joined.label_lists()] == [[1, 3], [2], [1]]
    assert theirs.toarray().argmax(axis=1).tolist() == [0, 4, 0]


@pytest.mark.parametrize(
    "rows",
    [
        [(0, {1, 2}), (0, {2, 3}), (1, {4})],  # editions of one book
        [(0, {1}), (0, {1}), (0, {1}), (1, {2})],  # one answer, asked for often
        [(number % 9, {number % 5}) for number in range(9)],
    ],
)
def test_other_data_stays_as_it_is(rows):
    dataset = table(rows)
    assert joined_points(dataset) == (dataset, None)
    few = Dataset.of([*(f"text {n}" for n in range(60)), "text 0"], [["a"], ["b"]] * 30 + [["b"]])
    assert joined_points(few)[0] is few  # by chance


def test_a_table_of_pairs_trains_the_model_of_its_points():
    train, test = small_wordnet(300, 300, 5_000)
    rows = [
        (text, label)
        for text, own in zip(train.texts, train.label_lists(), strict=True)
        for label in own
    ]
    texts = TextColumn.from_strings(text for text, _ in rows)
    ids = np.array([label for _, label in rows])
    labels = csr_array(
        (np.ones(len(ids), np.float32), (np.arange(len(ids)), ids)),
        shape=(len(ids), train.n_labels),
    )
    pairs = Dataset(texts, None, labels, train.label_space)
    assert pairs.n_points > 1.2 * train.n_points
    for make in (lambda: LongtailClassifier(dimension=32), Parabel):
        with pytest.warns(InputWarning, match="rows are joined to 300 points"):
            of_pairs = make().fit_dataset(pairs)
        of_points = make().fit_dataset(train)
        for one, other in zip(
            of_pairs.predict_topk(test.texts, 5), of_points.predict_topk(test.texts, 5), strict=True
        ):
            np.testing.assert_array_equal(one, other)
        assert of_pairs.predictor_.description["n_points"] == 300
