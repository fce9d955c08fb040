"""Data sets of what Python users hold: lists, arrays, columns of tables."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.data import Dataset, InputWarning
from longtail.errors import InputError
from longtail.recipes.parabel import Parabel

TEXTS = ["red wine", "white wine", "fast car", "old car"] * 5
NAMES = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5


def test_texts_and_names_are_read_back_from_a_file(tmp_path):
    dataset = Dataset.of(tuple(TEXTS), np.array(NAMES, object)[:, 0].tolist())
    dataset.write(tmp_path / "a.jsonl")
    again = Dataset.read(tmp_path / "a.jsonl")
    assert list(again.texts) == list(dataset.texts) == TEXTS
    assert again.labels.toarray().tolist() == dataset.labels.toarray().tolist()


def test_features_and_a_matrix():
    dataset = Dataset.of([[0, 0.5], [2, 0]], np.eye(2))
    assert dataset.texts is None
    assert dataset.features.toarray().tolist() == [[0, 0.5], [2, 0]]
    assert list(dataset.label_lists()) == [[0], [1]]
    assert dataset.label_space.names is None


def test_vectors_take_the_labels_of_another_data_set():
    texts = Dataset.of(TEXTS, NAMES, label_texts={"drink": "to drink", "food": ""})
    vectors = np.arange(40, dtype=np.float64).reshape(20, 2)
    dataset = Dataset.of(vectors, texts)
    assert dataset.texts is None
    assert np.array_equal(dataset.features.toarray(), vectors)
    assert list(dataset.label_lists()) == list(texts.label_lists())
    assert list(dataset.label_space.texts) == ["to drink", "vehicle", "food"]
    assert Dataset.of(vectors, texts, label_texts={"tea": ""}).n_labels == 4
    assert texts.n_labels == 3
    with pytest.raises(InputError, match=r"\(20, 3\), but there are 3 points"):
        Dataset.of(vectors[:3], texts)


def test_label_texts_by_name():
    texts = {"vehicle": "a thing that drives", "plant": "a thing that grows", "drink": ""}
    dataset = Dataset.of(TEXTS, NAMES, label_texts=texts)
    assert dataset.labels.shape == (20, 3)
    assert list(dataset.label_space.names) == ["drink", "vehicle", "plant"]
    assert list(dataset.label_space.texts) == [
        "drink",
        "a thing that drives",
        "a thing that grows",
    ]
    assert dataset.label_space.id_of("plant") == 2


@pytest.mark.parametrize(
    ("labels", "texts", "message"),
    [
        ([[0], [1]], {"a": "b"}, "these labels have none"),
        ([["a"], ["b"]], ["a", "b"], "are a dict, {name: text}, got a list"),
        ([["a"], ["b"]], {"a": 3}, "text of the label 'a' is 3, not a string"),
        ([["a"]], None, "y has 1 rows, but there are 2 points"),
    ],
)
def test_what_makes_no_data_set(labels, texts, message):
    with pytest.raises(InputError, match=message):
        Dataset.of(["x", "y"], labels, label_texts=texts)


def test_a_model_is_evaluated_on_lists():
    model = Parabel(n_threads=1).fit(TEXTS, NAMES)
    test = Dataset.of(["an old car", "some wine"], [["vehicle"], ["drink", "unseen"]])
    assert model.evaluate(test, ks=[1])["P@1"] == 100
    with pytest.raises(InputError, match=r"Dataset\.of\(texts, labels\)"):
        model.evaluate(TEXTS, NAMES)


def test_a_warning_names_the_line_of_the_caller():
    twice = [["drink", "drink"], *NAMES[1:]]
    model = Parabel(n_threads=1)
    for read in (Dataset.of, model.fit, model.score):
        with pytest.warns(InputWarning, match="a label twice") as seen:
            read(TEXTS, twice)
        assert seen[0].filename == __file__


def test_ids_of_few_labels_are_made_as_wide_as_the_model():
    texts, ids = ["red wine", "fast car", "a tango"] * 7, [[0], [1], [5]] * 7
    model = Parabel(n_learners=1, n_threads=1).fit(texts, ids).predictor_
    test = Dataset.of(texts[:2], ids[:2])
    with pytest.warns(InputWarning, match=r"by dataset\.relabelled\(model\.label_space\), or"):
        found = model.evaluate(test)
    wide = test.relabelled(model.label_space)
    assert (wide.n_labels, list(wide.label_lists())) == (6, [[0], [1]])
    assert model.evaluate(wide) == found
    more = Dataset.of(["a ship"], [[7]])
    assert more.relabelled(model.label_space).n_labels == 8
