"""Near points tell which row of the training data they are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import longtail
from command_line import SMALL, run, write_lines
from longtail import Dataset, LongtailClassifier
from longtail.blend.candidates import CandidateSearch
from longtail.compiled.expanded import expanded
from longtail.data.copies import points_of_rows
from longtail.data.input_notes import InputWarning
from longtail.errors import InputError, ModelFolderError
from longtail.model_folder import ModelFolder, write_model_folder
from longtail.recipes.siamesexml import SiameseXML
from small_recipes import BRIEF

ROWS = "points_index/training_rows"
GONE = "label 3"


def texts_and_labels():
    """Texts in no order, each up to three times, a sixth of them without a label."""
    random = np.random.default_rng(0)
    letters = random.choice([*"abcdefghijklmnopqrstuvwxyz"], (80, 6))
    words = ["".join(row) for row in letters]
    every = [f"{word} {words[(7 * i + 3) % 80]}" for i, word in enumerate(words)]
    names = [[] if i % 6 == 5 else [f"label {i % 5}", f"rare {i % 9}"] for i in range(80)]
    order = random.permutation(np.repeat(np.arange(80), random.integers(1, 4, 80)))
    return [every[i] for i in order], [names[i] for i in order]


TEXTS, LABELS = texts_and_labels()
SOME = range(0, len(TEXTS), 7)


@pytest.fixture(scope="module")
def trained():
    """Some points are held out at first, and learnt from after the others."""
    model = LongtailClassifier(dimension=32, held_out=0.25, n_threads=1, storage="float32")
    return model.fit(TEXTS, LABELS).predictor_


def rows_of_copies(text):
    return {row for row, other in enumerate(TEXTS) if other == text and LABELS[row]}


def check_rows(model, labels=LABELS, least=0.9):
    """The nearest points of a training text are the rows that have it."""
    for text in {TEXTS[row] for row in SOME if labels[row]}:
        copies = rows_of_copies(text)
        near = model.explain(text, k=1).near_points[: len(copies)]
        assert {point.row for point in near} == copies
        for point in near:
            assert least < point.similarity <= 1  # of vectors in four bits a number
            assert {*point.labels} == {*labels[point.row]}


def test_points_are_learnt_from_in_another_order_than_they_come(trained):
    rows = trained.scorer.training_rows
    assert sorted(rows) == [row for row, names in enumerate(LABELS) if names]
    assert (np.diff(rows) < 0).any()  # else rows would be right by chance


def test_each_text_is_nearest_to_the_rows_that_have_it(trained):
    check_rows(trained)


@pytest.mark.parametrize("storage", [pytest.param("float16", marks=pytest.mark.thorough), "int8"])
def test_a_compressed_model_knows_its_rows(trained, storage):
    check_rows(trained.compressed(storage))


def test_a_saved_model_knows_its_rows(trained, tmp_path):
    trained.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    check_rows(loaded)
    check_rows(pickle.loads(pickle.dumps(loaded)))  # noqa: S301 - our own


def test_a_model_with_other_labels_knows_its_rows(trained):
    left = [[name for name in names if name != GONE] for names in LABELS]
    check_rows(trained.without_labels([GONE]), left)
    unlabelled = next(text for text, names in zip(TEXTS, LABELS, strict=True) if not names)
    added = trained.with_labels(["new"], {"new": [unlabelled]})
    check_rows(added.without_labels([GONE]).compressed("int8"), left)


def test_points_whose_labels_are_removed_take_their_rows_along(trained):
    gone = {name for names in LABELS for name in names} - {"rare 1"}
    model = trained.without_labels(sorted(gone))
    assert {*model.scorer.training_rows.tolist()} == {
        row for row, names in enumerate(LABELS) if "rare 1" in names
    }


def test_points_of_labels_that_were_added_have_no_row(trained):
    word = TEXTS[0].split()[0]
    model = trained.with_labels(["new"], {"new": [word]})
    near = model.explain(word, k=1).near_points
    assert (near[0].labels, near[0].row) == (("new",), None)
    assert all(point.row is not None for point in near[1:])
    assert "row" not in repr(near[0])
    assert repr(near[1]).startswith(f"<NearPoint in row {near[1].row:,}, of similarity")


@pytest.fixture
def of_before(trained, tmp_path):
    """A model folder as versions wrote it that did not keep rows."""
    trained.save(tmp_path / "new")
    return changed(tmp_path / "new", tmp_path / "old", None)


def changed(folder, other, rows):
    """Write a model folder with other rows, or without any."""
    now = ModelFolder.open(folder)
    arrays = {name: array for name, array in now.arrays.items() if name != ROWS}
    assert len(arrays) == len(now.arrays) - 1
    arrays |= {} if rows is None else {ROWS: rows}
    write_model_folder(other, manifest=now.manifest, arrays=arrays, documents=now.documents())
    return other


def test_a_model_of_before_has_no_rows(trained, of_before, capsys):
    model = longtail.load(of_before)
    now, then = (one.explain(TEXTS[0], k=1) for one in (trained, model))
    assert now.labels == then.labels
    assert {point.row for point in then.near_points} == {None}
    assert [point.labels for point in then.near_points] == [p.labels for p in now.near_points]
    changed_since = model.with_labels(["new"], {"new": [TEXTS[0]]}).without_labels([GONE])
    for one in (changed_since, model.compressed("int8")):
        assert one.scorer.training_rows is None
    out = run(capsys, "predict", of_before, "--text", TEXTS[0], "--explain")[1]
    assert "\nlabels of the nearest training points\n" in out
    assert "\trow" not in out


@pytest.mark.parametrize(
    ("n_missing", "dtype", "said"),
    [(1, np.int32, "but the model keeps"), (0, np.float32, "is float32 of 1 dimensions")],
)
def test_rows_of_other_points_are_refused(trained, tmp_path, n_missing, dtype, said):
    trained.save(tmp_path / "model")
    rows = np.zeros(len(trained.scorer.training_rows) - n_missing, dtype)
    folder = changed(tmp_path / "model", tmp_path / "other", rows)
    with pytest.raises(ModelFolderError, match=said):
        longtail.load(folder)


def test_rows_that_a_search_has_no_points_for_are_refused(trained):
    config = expanded(trained.scorer).search.config()
    arrays = expanded(trained.scorer).search.to_arrays()
    assert CandidateSearch.from_parts(config, arrays).training_row_of(0) is not None
    arrays["training_rows"] = arrays["training_rows"][1:]
    with pytest.raises(InputError, match="do not belong together"):
        CandidateSearch.from_parts(config, arrays)


@pytest.mark.parametrize("form", ["as trained", "saved", "compressed"])
def test_rows_of_a_recipe_with_label_texts(form, tmp_path):
    model = SiameseXML(**BRIEF, held_out=0.25).fit(TEXTS, LABELS).predictor_
    if form == "saved":
        model.save(tmp_path / "model")
        model = longtail.load(tmp_path / "model")
    if form == "compressed":
        model = model.compressed("int8")
    check_rows(model, least=0.7)  # held-out points are encoded by what the others know of them


def test_a_recipe_that_keeps_no_points_keeps_no_rows():
    none = {"n_near_points": 0, "linear": False}
    scorer = SiameseXML(**BRIEF, **none).fit(TEXTS, LABELS).predictor_.scorer
    assert len(scorer.search.training_rows) == 0


def test_of_rows_that_are_joined_or_copied_it_is_the_first():
    random = np.random.default_rng(0)
    numbers = random.permutation(np.repeat(np.arange(100), 5))
    texts = [f"text {number}" for number in numbers]
    for labels in (numbers % 7, random.integers(0, 7, 500)):  # copies, and a table of pairs
        dataset = Dataset.of(texts, [[f"label {label}"] for label in labels])
        with pytest.warns(InputWarning):
            points, _ = points_of_rows(dataset)
        assert points.n_points < 500
        assert [texts[row] for row in points.rows] == list(points.texts)
        firsts = {texts.index(text) for text in texts}
        assert firsts <= {*points.rows.tolist()}
        assert [*points.rows[np.sort(np.unique(list(points.texts), return_index=True)[1])]] == (
            sorted(firsts)
        )


def test_points_taken_from_a_data_set_are_numbered_in_it():
    dataset = Dataset.of(["a", "b", "c", "d"], [["x"], ["y"], ["x"], ["y"]])
    assert dataset.rows is None
    some = dataset.take([3, 1, 0])
    assert some.rows.tolist() == [3, 1, 0]
    assert some.take([False, True, True]).rows.tolist() == [1, 0]
    assert some.relabelled(Dataset.of(["a"], [["y"]]).label_space).rows.tolist() == [3, 1, 0]
    with pytest.raises(InputError, match=r"`rows` must be 4 numbers, got \(3,\)"):
        Dataset(dataset.texts, None, dataset.labels, dataset.label_space, some.rows)


def test_the_command_tells_rows_of_the_file(capsys, tmp_path):
    """A table of pairs, of which several are joined, with blank lines between."""
    texts = [f"{text}{i % 4}" for i in range(24) for text in ("wine", "car", "road")]
    labels = [f"{text[:-1]} {'old' if i < 36 else 'new'}" for i, text in enumerate(texts)]
    lines = [f"{text}\t{label}" for text, label in zip(texts, labels, strict=True)]
    points = write_lines(tmp_path / "train.tsv", "\n\n".join(lines).split("\n"))
    run(capsys, "train", points, "--model", tmp_path / "model", *SMALL)
    out = run(capsys, "predict", tmp_path / "model", "--text", "road2", "--explain")[1]
    told = out.partition("training points, and their rows of the training data from 0\n")[2]
    similarity, names, row = told.splitlines()[0].split("\t")
    assert float(similarity) > 0.95
    assert {*names.split(" | ")} == {"road old", "road new"}
    assert texts[int(row.removeprefix("row "))] == "road2"
