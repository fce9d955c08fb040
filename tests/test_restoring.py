"""Model folders whose manifest or documents say what no training has written."""

from __future__ import annotations

import copy

import pytest

import longtail
from command_line import run
from longtail import LongtailClassifier
from longtail.errors import ModelFolderError
from longtail.model_folder import ModelFolder, write_model_folder
from longtail.recipes.ngame import NGAME

TEXTS, NAMES = ["red wine", "old car"] * 20, [["drink"], ["vehicle"]] * 20
RECIPES = {
    "longtail": LongtailClassifier(dimension=16, n_threads=1),
    "ngame": NGAME(dimension=16, encoder_epochs=1, classifier_epochs=1, n_threads=1),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder of models by the names of recipes."""
    place = tmp_path_factory.mktemp("models")
    for name, recipe in RECIPES.items():
        recipe.fit(TEXTS, NAMES).save(place / name)
    return place


def rewritten(source, target, keys, value):
    """Write a model anew with another value in its manifest, or in a document of that name."""
    folder = ModelFolder.open(source)
    written = copy.deepcopy({"manifest": folder.manifest, **folder.documents()})
    *outer, last = keys
    inner = written
    for key in outer:
        inner = inner[key]
    inner[last] = value
    manifest = written.pop("manifest")
    write_model_folder(target, manifest=manifest, arrays=folder.arrays, documents=written)
    return target


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (["reads", "kind"], "sounds", "'sounds' is not a valid InputKind. It may be of a later"),
        (["reads"], [], "lacks a part"),
        (["calibration", "slope"], "1", "`slope` of the calibration is '1', which is no number"),
        (["calibration", "first"], None, "`first` of the calibration is None"),
        (["description", "n_points"], "40", "`n_points` of the description is '40', no int"),
        (["description", "settings"], [], r"`settings` of the description is \[\], no dict"),
        (["description", "recipe"], [], r"`recipe` of the description is \[\], no str"),
        (["scorer", "scales"], [[], 1.0, 1.0], "lacks a part"),
        (["scorer", "further_scale"], [], "lacks a part"),
        (["scorer", "sizes"], {"n_found": 30}, "or has another: .*'n_found'. It may be of an ear"),
        (["reads"], {"kind": "bags"}, "lacks a part .*: 'dense'. It may be of an earlier"),
        (["description"], "DEXA", "has a part that models of this version have not"),
    ],
)
def test_a_manifest_that_says_something_else_is_refused(saved, tmp_path, keys, value, message):
    path = rewritten(saved / "longtail", tmp_path / "model", ["manifest", *keys], value)
    with pytest.raises(ModelFolderError, match=message) as refused:
        longtail.load(path)
    assert "written by longtail" not in str(refused.value)  # it was by this version


@pytest.mark.parametrize(
    ("keys", "value"),
    [(["reads"], []), (["vectorizer"], {"min_df": 1}), (["scorer", "kind"], "oracle")],
)
def test_which_version_wrote_what_cannot_be_loaded_is_said(
    saved, tmp_path, monkeypatch, keys, value
):
    monkeypatch.setattr("longtail.manifest.__version__", "99.1.2")
    path = rewritten(saved / "longtail", tmp_path / "model", ["manifest", *keys], value)
    both = rf"\. It was written by longtail 99\.1\.2, and this is {longtail.__version__}\.$"
    with pytest.raises(ModelFolderError, match=both):
        longtail.load(path)


def test_a_model_of_another_version_is_loaded_where_its_parts_are_known(
    saved, tmp_path, monkeypatch, capsys
):
    with monkeypatch.context() as later:
        later.setattr("longtail.manifest.__version__", "99.1.2")
        longtail.load(saved / "longtail").save(tmp_path / "model")
    assert longtail.load(tmp_path / "model").predict("red wine", 1)[0][0] == "drink"
    told = run(capsys, "inspect", tmp_path / "model")[1].splitlines()
    assert told[1] == "saved by longtail 99.1.2"


@pytest.mark.parametrize("size", [10**9, -1, 2.5, "20", True])
@pytest.mark.parametrize(
    ("recipe", "keys"), [("longtail", ["sizes"]), ("ngame", ["search", "sizes"])]
)
def test_sizes_that_cannot_be_are_refused(saved, tmp_path, recipe, keys, size):
    keys = ["manifest", "scorer", *keys, "n_voted"]
    path = rewritten(saved / recipe, tmp_path / "model", keys, size)
    with pytest.raises(ModelFolderError, match="n_voted must be between 0 and 1,000,000"):
        longtail.load(path)


@pytest.mark.parametrize(
    ("key", "value"), [("history", [7]), ("stages", [1]), ("wall_seconds", "long")]
)
def test_a_training_that_cannot_be_shown_is_said_to_be_so(saved, tmp_path, capsys, key, value):
    path = rewritten(saved / "ngame", tmp_path / "model", ["training.json", key], value)
    assert longtail.load(path).predict("red wine", 1)[0][0] == "drink"
    code, _, err = run(capsys, "inspect", path)
    assert (code, "training.json says something else than how training went" in err) == (2, True)
