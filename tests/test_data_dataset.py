"""Dataset: pieces that fit, statistics, saved folders."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail.data import Dataset, LabelSpace, TextColumn
from longtail.errors import DataFormatError, InputError
from small_files import damage_each_byte


def text_dataset(space=None):
    labels = csr_array(np.array([[1, 0, 1], [0, 0, 0], [0, 0, 1]], dtype=np.float32))
    texts = TextColumn.from_strings(["one  two", "", "drei\nvier fünf "])
    return Dataset(texts, None, labels, space or LabelSpace.from_names(["a", "b", "a"]))


def feature_dataset():
    features = csr_array(np.array([[0, 2.5], [1, 0], [0, 0]], dtype=np.float32))
    return Dataset(None, features, text_dataset().labels, LabelSpace(3))


def test_describe():
    facts = text_dataset().describe()
    assert facts == {
        "n_points": 3,
        "n_labels": 3,
        "labels_per_point": 1.0,
        "points_per_label": 1.0,
        "points_without_labels": 1,
        "labels_without_points": 1,
        "words_per_text": 5 / 3,
        "empty_texts": 1,
    }
    assert feature_dataset().describe()["features_per_point"] == pytest.approx(2 / 3)
    assert feature_dataset().describe()["n_features"] == 2


def test_a_data_set_is_shown_in_a_line_however_long_its_texts_are():
    shown = repr(Dataset.of(["red wine " * 1000, "old car"] * 600, [["a", "b"], []] * 600))
    assert shown == "<Dataset of 1,200 points (texts) and 2 labels, 1.0 a point>"
    shown = repr(Dataset.of(np.eye(3), [[0], [1, 0], [0]]))
    assert shown == "<Dataset of 3 points (3 features) and 2 labels, 1.3 a point>"
    nothing = csr_array((0, 1), dtype=np.float32)
    shown = repr(Dataset(TextColumn.from_strings([]), None, nothing, LabelSpace(1)))
    assert shown == "<Dataset of 0 points (texts) and 1 label, 0.0 a point>"


def test_words_at_the_edges_of_texts_are_counted_apart():
    texts = TextColumn.from_strings(["ab", "cd", " e", "", "f"])
    dataset = Dataset(texts, None, csr_array((5, 1), dtype=np.float32), LabelSpace(1))
    assert dataset.describe()["words_per_text"] == 4 / 5


@pytest.mark.parametrize("rows", [[2, 0], np.array([2, 0]), np.array([True, False, True])])
def test_take(rows):
    for dataset in (text_dataset(), feature_dataset()):
        part = dataset.take(rows)
        expected = [2, 0] if np.asarray(rows).dtype != bool else [0, 2]
        assert len(part) == part.n_points == 2
        assert part.n_labels == 3
        assert part.labels.toarray().tolist() == dataset.labels.toarray()[expected].tolist()
        if dataset.texts is not None:
            assert list(part.texts) == [dataset.texts[row] for row in expected]
        else:
            assert part.features.toarray().tolist() == (
                dataset.features.toarray()[expected].tolist()
            )


@pytest.mark.parametrize("rows", [[3], [-4], [0.5], ["a"], np.array([True, False])])
def test_rows_that_are_not_there(rows):
    for dataset in (text_dataset(), feature_dataset()):
        with pytest.raises(InputError, match="row numbers, from 0 to 2, or a mask of 3"):
            dataset.take(rows)


def test_rows_from_the_end_are_those_of_their_labels():
    dataset = text_dataset()
    for row in (-1, -2, -3):
        part = dataset.take([row])
        assert list(part.texts) == [dataset.texts[row]]
        assert part.labels.toarray().tolist() == [dataset.labels.toarray()[row].tolist()]


def test_labels_that_share_a_name_stay_apart_when_a_model_has_more():
    dataset = text_dataset()
    for names in (["a", "b", "a"], ["a", "b", "a", "c"]):
        moved = dataset.relabelled(LabelSpace.from_names(names))
        assert moved.labels.shape == (3, len(names))
        assert list(moved.label_lists()) == [[0, 2], [], [2]]
        assert list(moved.label_space.names) == names
    others = dataset.relabelled(LabelSpace.from_names(["b", "a", "c"]))
    assert list(others.label_lists()) == [[1], [], [1]]


def test_pieces_must_fit():
    dataset = text_dataset()
    with pytest.raises(InputError, match="Pass exactly one"):
        Dataset(None, None, dataset.labels, dataset.label_space)
    with pytest.raises(InputError, match="Pass exactly one"):
        Dataset(dataset.texts, csr_array((3, 2)), dataset.labels, dataset.label_space)
    with pytest.raises(InputError, match=r"shape \(3, 3\), but there are 2 points and 3 labels"):
        Dataset(dataset.texts[:2], None, dataset.labels, dataset.label_space)
    with pytest.raises(InputError, match="3 points and 4 labels"):
        Dataset(dataset.texts, None, dataset.labels, LabelSpace(4))


@pytest.mark.parametrize(("part", "place", "value"), [("indices", 0, 7), ("indptr", 1, 9)])
@pytest.mark.parametrize("name", ["features", "labels"])
def test_broken_matrices_are_refused(name, part, place, value):
    dataset = feature_dataset()
    getattr(getattr(dataset, name), part)[place] = value
    with pytest.raises(InputError, match=f"`{name}` is a broken sparse matrix"):
        Dataset(None, dataset.features, dataset.labels, dataset.label_space)


@pytest.mark.parametrize("value", [0, 2, np.nan])
def test_labels_that_are_not_ones_are_refused(value):
    dataset = feature_dataset()
    dataset.labels.data[1] = value
    with pytest.raises(InputError, match=rf"`labels` must hold ones .* got {float(value)}\."):
        Dataset(None, dataset.features, dataset.labels, dataset.label_space)


@pytest.mark.parametrize("ids", [[0, 0, 1], [1, 0, 1]])
def test_a_label_twice_at_a_point_is_refused(ids):
    """It counted twice: as two points of the label, and as two true answers."""
    dataset = feature_dataset()
    labels = csr_array((np.ones(4, np.float32), [2, *ids], [0, 1, 4, 4]), shape=(3, 3))
    with pytest.raises(InputError, match=r"row 1 has one twice\. Dataset\.of merges them"):
        Dataset(None, dataset.features, labels, dataset.label_space)
    unsorted = csr_array((np.ones(3, np.float32), [2, 1, 0], [0, 1, 3, 3]), shape=(3, 3))
    assert Dataset(None, dataset.features, unsorted, dataset.label_space).n_points == 3
    assert Dataset.of(dataset.features, labels).labels.nnz == 3


def test_features_that_are_no_floats_are_refused():
    dataset = feature_dataset()
    with pytest.raises(InputError, match="`features` must be of float32, got int64"):
        Dataset(None, dataset.features.astype(np.int64), dataset.labels, dataset.label_space)


def test_lists_of_texts_and_no_label_space_are_refused():
    labels = csr_array(np.eye(2, dtype=np.float32))
    with pytest.raises(InputError, match=r"`texts` must be a TextColumn, got a list\. Dataset\.of"):
        Dataset(["how to knead", "the tango"], None, labels, LabelSpace(2))
    with pytest.raises(InputError, match="`label_space` must be a LabelSpace, got an int"):
        Dataset(None, labels, labels, 2)


@pytest.mark.parametrize("kind", [lambda matrix: matrix.tocsc(), lambda matrix: matrix.toarray()])
@pytest.mark.parametrize("name", ["features", "labels"])
def test_other_matrices_are_refused(name, kind):
    parts = {"features": feature_dataset().features, "labels": feature_dataset().labels}
    with pytest.raises(InputError, match=rf"`{name}` must be .*csr_array, got .* Dataset\.of"):
        Dataset(None, **parts | {name: kind(parts[name])}, label_space=LabelSpace(3))


def test_a_data_set_that_is_replaced_while_it_is_opened_is_opened_again(tmp_path, monkeypatch):
    text_dataset().save(tmp_path / "saved")
    load, n_loaded = np.load, []

    def replacing(*arguments, **keywords):
        n_loaded.append(1)
        if len(n_loaded) == 1:
            feature_dataset().save(tmp_path / "saved")
        return load(*arguments, **keywords)

    monkeypatch.setattr(np, "load", replacing)
    opened = Dataset.open(tmp_path / "saved")
    assert (opened.texts, opened.features.shape) == (None, (3, 2))


@pytest.mark.parametrize(
    "dataset",
    [
        text_dataset(),
        text_dataset(LabelSpace(3)),
        text_dataset(LabelSpace.from_names(["a", "b", "c"], ["text of a", "", "ü"])),
        text_dataset(LabelSpace(3, TextColumn.from_strings(["a", "b", "c"]))),
        feature_dataset(),
        feature_dataset().take([]),
    ],
)
def test_saved_and_opened_as_memory_maps(tmp_path, dataset):
    dataset.save(tmp_path / "saved")
    opened = Dataset.open(tmp_path / "saved")
    assert opened.texts == dataset.texts
    assert opened.label_space == dataset.label_space
    assert opened.labels.toarray().tolist() == dataset.labels.toarray().tolist()
    if dataset.features is not None:
        assert opened.features.toarray().tolist() == dataset.features.toarray().tolist()
    assert not opened.labels.data.flags.writeable
    assert opened.describe() == dataset.describe()
    rows = np.arange(dataset.n_points)[::-1]
    assert opened.take(rows).describe()["n_points"] == dataset.n_points


def test_opened_arrays_are_not_copied(tmp_path):
    feature_dataset().save(tmp_path / "saved")
    opened = Dataset.open(tmp_path / "saved")
    for part in (opened.features.indices, opened.features.indptr, opened.features.data):
        base = part
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)


def test_texts_that_are_the_names_are_saved_once(tmp_path):
    names = ["a", "b", "c"]
    equal = LabelSpace(3, TextColumn.from_strings(names), TextColumn.from_strings(names))
    text_dataset(equal).save(tmp_path / "saved")
    assert not [file.name for file in (tmp_path / "saved").glob("label_texts*")]
    opened = Dataset.open(tmp_path / "saved").label_space
    assert opened.texts_are_names
    assert list(opened.texts) == names


def test_saving_replaces_a_data_set_and_nothing_else(tmp_path):
    feature_dataset().save(tmp_path / "saved")
    text_dataset().save(tmp_path / "saved")
    assert Dataset.open(tmp_path / "saved").texts is not None
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("all of it")
    with pytest.raises(InputError, match=r"is not a saved data set\. Choose another name"):
        text_dataset().save(tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "saved"]


def test_a_data_set_can_be_saved_onto_itself(tmp_path):
    text_dataset().save(tmp_path / "saved")
    opened = Dataset.open(tmp_path / "saved")
    opened.save(tmp_path / "saved")
    assert Dataset.open(tmp_path / "saved").texts == text_dataset().texts


def test_who_works_in_a_saved_data_set_stays_in_it(tmp_path, monkeypatch):
    feature_dataset().save(tmp_path / "saved")
    monkeypatch.chdir(tmp_path / "saved")
    text_dataset().save(".")
    assert Dataset.open(".").texts == text_dataset().texts
    assert not list(Path().glob("features*"))
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_a_failed_save_leaves_the_old_one(tmp_path, monkeypatch):
    feature_dataset().save(tmp_path / "saved")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="No space left"):
        text_dataset().save(tmp_path / "saved")
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert Dataset.open(tmp_path / "saved").features is not None


@pytest.mark.parametrize("name", ["labels.indices.npy", "texts.buffer.npy", "texts.offsets.npy"])
def test_damaged_folders(tmp_path, name):
    text_dataset().save(tmp_path / "saved")
    file = tmp_path / "saved" / name
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(InputError, match="is damaged"):
        Dataset.open(tmp_path / "saved")
    file.unlink()
    with pytest.raises(InputError, match=r"is damaged|either texts or features"):
        Dataset.open(tmp_path / "saved")


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("labels.indices", 0, 10**9),
        ("labels.indices", 0, -5),
        ("labels.indptr", 1, 10**9),
        ("labels.indptr", 1, -7),
        ("texts.offsets", 1, 10**9),
        ("texts.offsets", 1, -3),
    ],
)
def test_arrays_that_lead_out_of_bounds_are_damage(tmp_path, name, place, value):
    text_dataset().save(tmp_path / "saved")
    array = np.load(tmp_path / "saved" / f"{name}.npy")
    array[place] = value
    np.save(tmp_path / "saved" / f"{name}.npy", array)
    with pytest.raises(InputError, match=r"is damaged \("):
        Dataset.open(tmp_path / "saved")


@pytest.mark.parametrize("name", ["labels.indptr.npy", "features.data.npy"])
def test_no_damaged_byte_of_a_folder_is_an_error_of_another_kind(tmp_path, name):
    feature_dataset().save(tmp_path / "saved")
    damage_each_byte(tmp_path / "saved" / name, lambda: Dataset.open(tmp_path / "saved"))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ("{", "is not a saved data set"),
        ("[" * 100_000, "is not a saved data set"),
        ("[]", r"does not describe a data set of longtail\. Make one"),
        ('{"format": "other"}', "does not describe a data set"),
        ('{"format": "longtail-dataset", "format_version": 2}', "format version 2"),
        ('{"format": "longtail-dataset", "format_version": 1}', "is damaged"),
    ],
)
def test_foreign_folders(tmp_path, facts, message):
    (tmp_path / "dataset.json").write_text(facts)
    with pytest.raises(InputError, match=message):
        Dataset.open(tmp_path)


def test_a_shape_that_disagrees_is_damage(tmp_path):
    text_dataset().save(tmp_path / "saved")
    facts = json.loads((tmp_path / "saved" / "dataset.json").read_text())
    facts["n_points"] = 7
    (tmp_path / "saved" / "dataset.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match="is damaged"):
        Dataset.open(tmp_path / "saved")


def test_saving_again_keeps_what_is_not_its_own(tmp_path):
    text_dataset().save(tmp_path / "saved")
    (tmp_path / "link").symlink_to(tmp_path / "saved")
    feature_dataset().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert Dataset.open(tmp_path / "saved").texts is None
    (tmp_path / "saved" / "notes.txt").write_text("all of it")
    with pytest.raises(InputError, match=r"holds notes\.txt, which saving would delete"):
        text_dataset().save(tmp_path / "saved")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "saved"]


def test_cells_that_could_not_be_read_back_are_not_written(tmp_path):
    space = LabelSpace.from_names(["a"])
    long = Dataset(
        TextColumn.from_strings(["x" * 200_000]), None, csr_array(np.ones((1, 1))), space
    )
    with pytest.raises(DataFormatError, match="cell of 200,000 characters"):
        long.write(tmp_path / "long.csv")
    long.write(tmp_path / "long.jsonl")
    assert len(Dataset.read(tmp_path / "long.jsonl").texts[0]) == 200_000
