"""The tables of the paper as commands, on data small enough for a test."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.paper import scale
from benchmarks.paper.__main__ import main
from benchmarks.paper.cells import cells, difference
from benchmarks.paper.comparisons import COMPARISONS, compared, propensity_of, published
from benchmarks.paper.scale import SHAPES, Shape, synthetic, train_and_predict
from benchmarks.paper.variants import TABLES, Variant, named
from scipy.sparse import csr_array

from longtail import Dataset
from longtail.data.label_space import LabelSpace
from longtail.errors import InputError
from longtail.recipes.parabel import Parabel

pytestmark = pytest.mark.filterwarnings("ignore::longtail.data.InputWarning")

SMALL = Shape(300, 200, 60, 50, 3.0, 5.0)


@pytest.fixture
def folder(tmp_path):
    rows = [
        {"text": f"{w} number {i % 7}", "labels": [w]} for i in range(20) for w in ("ox", "fly")
    ]
    for part in ("train", "test"):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{part}.jsonl").write_text(lines)
    return tmp_path


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["paper", *map(str, arguments)])
    main()
    return capsys.readouterr().out


def dense(size, random):
    """Vectors of two kinds, and which kind each is."""
    kinds = random.integers(0, 2, size)
    rows = random.random((size, 12), np.float32)
    rows[:, :6] += kinds[:, None]
    labels = csr_array((np.ones(size, np.float32), (np.arange(size), kinds)), (size, 2))
    return Dataset(None, csr_array(rows), labels, LabelSpace(2))


class TestComparisons:
    def test_every_published_method_has_a_row_or_is_known_to_be_missing(self):
        missing = {
            method
            for table, comparison in COMPARISONS.items()
            for method in published(table, comparison.beside)
            if method not in comparison.methods
        }
        assert missing == {"ProXML"}

    def test_values_are_the_paper_s(self):
        assert published("table1", "AmazonTitles-3M")["Astec"] == {
            "P@1": 47.64,
            "P@3": 44.66,
            "P@5": 42.36,
            "PSP@3": 18.59,
            "PSP@5": 20.60,
            "hours": 4.38,
        }
        assert len(published("table11", "AmazonTitles-670K")) == 12
        assert published("table10", "Wikipedia-500K")["XT"]["P@5"] == 35.46

    def test_propensities_are_those_of_the_collection(self):
        assert propensity_of("AmazonTitles-670K") == (0.6, 2.6)
        assert propensity_of("WikiTitles-500K") == (0.5, 0.4)
        assert propensity_of("WikiSeeAlsoTitles-350K") == (0.55, 1.5)
        for others in ("eurlex-4k", "Wiki10-31K", "AmazonCat-13K", "my-Amazon-sets"):
            assert propensity_of(others) == (0.55, 1.5)
        assert propensity_of("LF-AmazonTitles-131K") == (0.6, 2.6)
        assert propensity_of("WikiLSHTC-325K") == (0.5, 0.4)

    def test_another_data_set_is_shown_beside_the_paper_s(self, monkeypatch, capsys, folder):
        out = run(
            monkeypatch, capsys, "table10", "--data", folder, "--variants", "Parabel", "ProXML"
        )
        lines = out.splitlines()
        assert "another data set" in out
        assert lines[-4].startswith("| Parabel | 100.00 |")
        assert lines[-3].startswith("| the paper's, on Amazon-670K | 44.89 |")
        assert lines[-2].startswith("| ProXML: not in longtail |")

    def test_what_cannot_be_run_says_why(self):
        data = dense(40, np.random.default_rng(0))
        lines = [*compared("table1", "Amazon", data, data, {}, ["AttentionXML"])]
        assert lines[-2].startswith("| AttentionXML: not run. This model reads the words")

    def test_a_set_of_the_paper_s_has_its_own_values(self):
        data = dense(40, np.random.default_rng(0))
        lines = [*compared("table1", "AmazonTitles-3M", data, data, {}, ["Parabel"])]
        assert lines[-1].startswith("| the paper's, on AmazonTitles-3M | 46.42 |")
        assert lines[-1].endswith("| 1.54 h |")

    @pytest.mark.parametrize(
        "more", [{}, pytest.param({"image_shape": [3, 2, 2]}, marks=pytest.mark.thorough)]
    )
    def test_vectors_and_images(self, more):
        data = dense(60, np.random.default_rng(0))
        settings = {"n_meta_labels": 2, "surrogate_epochs": 1, **more}
        lines = [*compared("table9", "images", data, data, settings, ["DeepXML", "Slice"])]
        floor = 80
        for method in ("DeepXML", "Slice"):
            row = next(line for line in lines if line.startswith(f"| {method} |"))
            assert float(row.split("|")[2]) > floor


class TestScale:
    def test_the_shape_is_the_one_that_was_asked_for(self):
        train, test = synthetic(SMALL, seed=0)
        assert (train.n_points, train.n_labels, train.features.shape[1]) == (300, 60, 200)
        assert test.n_points == 50
        assert train.labels.nnz / 300 == pytest.approx(3.0, rel=0.1)
        assert train.features.nnz / 300 == pytest.approx(5.0, rel=0.2)
        assert (train.labels.data == 1).all()

    def test_the_paper_s_average_counts_the_test_points_too(self):
        shape = SHAPES["AmazonTitles-3M"]
        pairs = (shape.n_points + shape.n_test_points) * shape.labels_a_point
        assert pairs / shape.n_labels == pytest.approx(27.09, abs=0.01)

    def test_a_cut_keeps_the_averages(self):
        cut = SHAPES["AmazonTitles-3M"].cut(0.01)
        assert (cut.n_points, cut.n_labels, cut.labels_a_point) == (15_176, 28_122, 35.06)

    def test_labels_can_be_learnt(self, tmp_path, capsys):
        for part, data in zip(("train", "test"), synthetic(SMALL, seed=0), strict=True):
            data.save(tmp_path / part)
        train_and_predict(str(tmp_path), "parabel", {"n_threads": 1})
        figures = json.loads(capsys.readouterr().out)
        assert len(figures) == len(scale.COLUMNS) - 3
        assert figures[-1] > 20  # P@1; by chance 100 * 3 / 60

    def test_a_row_a_shape(self, monkeypatch, capsys):
        monkeypatch.setattr(scale, "_measured", lambda *_: [1.0] * 6 + [12.5])
        out = run(monkeypatch, capsys, "scale", "--share", "0.0001", "--shapes", "WikiTitles-500K")
        row = out.splitlines()[-1]
        assert row.startswith("| WikiTitles-500K | 169 | 50 |")
        assert row.endswith("| 12.50 |")


def test_classifiers_on_the_features_of_another(monkeypatch, capsys, folder):
    names = ["Parabel", "Slice", "DiSMEC", "a pretrained transformer, frozen"]
    command = ("table6", "--data", folder, "--variants", *names, "--set", "dimension=16")
    rows = [line.split("|") for line in run(monkeypatch, capsys, *command).splitlines()[4:]]
    assert "not run. Name a transformer's folder" in rows[0][2]
    assert [float(row[3]) for row in rows[1:]] == [100.0] * 3


def test_table_6_takes_how_a_classifier_is_trained_on_shortlists():
    own = {"own_only": True, "neighbourhood_size": 0, "n_random": 0}
    for variant in TABLES["table6"]:
        if variant.group == "classifier" or "transformer" in variant.name:
            continue
        training = variant.make(own, 1000).classifier.training
        assert (training.own_only, training.neighbourhood_size, training.n_random) == (True, 0, 0)
        assert not variant.make({}, 1000).classifier.training.own_only


def test_the_command_takes_how_a_classifier_is_trained_on_shortlists(monkeypatch, capsys, folder):
    quick = ("dimension=16", "surrogate_epochs=1", "extreme_epochs=1")
    own = ("own_only=true", "neighbourhood_size=0", "n_random=0", "n_hard=1")
    command = ("table6", "--data", folder, "--variants", "Astec", "--set", *quick, *own)
    assert "| Astec |" in run(monkeypatch, capsys, *command).splitlines()[-1]


class TestCells:
    def test_a_variant_is_held_against_its_rival(self):
        data = dense(40, np.random.default_rng(0))
        variants = [
            Variant("trees", name, named(Parabel), rival=rival)
            for name, rival in (("one", "one"), ("same", "one"), ("other", "not run"))
        ]
        rows = [line.strip("| ").split(" | ") for line in cells(variants, {}, data, data, (1, 1))]
        place = rows[0].index("P@1 and P@5 more")
        assert [row[place].strip() for row in rows[2:]] == ["", "+0.00 ± 0.00, +0.00 ± 0.00", ""]

    def test_the_standard_error_is_of_pairs(self):
        random = np.random.default_rng(0)
        hard = 100.0 * random.integers(0, 2, (400, 2))
        ahead = random.integers(-1, 2, (400, 2))
        said = [part.split(" ± ") for part in difference(hard + ahead, hard).split(", ")]
        assert [float(mean) for mean, _ in said] == pytest.approx(ahead.mean(axis=0), abs=0.01)
        assert [float(error) for _, error in said] == pytest.approx([0.04, 0.04], abs=0.01)

    def test_rivals_are_astec_and_what_is_alone(self):
        assert {variant.rival for variant in TABLES["table6"]} == {"Astec"}
        for variant in TABLES["table4"]:
            if variant.name.startswith("DeepXML"):
                assert variant.name == f"DeepXML + {variant.rival}"


@pytest.mark.parametrize("table", ["table6", "table11"])
def test_a_variant_that_there_is_not(monkeypatch, capsys, folder, table):
    with pytest.raises(InputError, match=r"'Astek'\. Did you mean 'Astec'"):
        run(monkeypatch, capsys, table, "--data", folder, "--variants", "Astek")


def test_settings_are_json_and_those_of_one_recipe_are_its_own(monkeypatch, capsys, folder):
    with pytest.raises(InputError, match="got 'dimension=big'"):
        run(monkeypatch, capsys, "table6", "--data", folder, "--set", "dimension=big")
    with pytest.raises(InputError, match=r"no setting 'dimensions'.* Did you mean 'dimension'"):
        run(monkeypatch, capsys, "table6", "--data", folder, "--set", "dimensions=16")
    with pytest.raises(InputError, match="no setting 'epoch'"):
        run(monkeypatch, capsys, "scale", "--set", "epoch=1")


def test_the_other_tables_need_data(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(monkeypatch, capsys, "table4")
    assert "needs --data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["table6", "--data", "D", "--out", "x.svg"], "takes no --out, which goes with figure2"),
        (["figure3", "--data", "D", "--variants", "x"], "takes no --variants"),
        (["starts", "--data", "D", "--variants", "x"], "takes no --variants"),
        (["table4", "--data", "D", "--share", ".1"], "no --share, which goes with scale"),
        (["scale", "--data", "D"], "scale takes no --data"),
        (["scale", "--shapes"], "expected at least one argument"),
        (["scale", "--share", "-3"], "must be a number over 0, got '-3'"),
    ],
)
def test_options_that_would_be_ignored_are_refused(monkeypatch, capsys, arguments, said):
    with pytest.raises(SystemExit):
        run(monkeypatch, capsys, *arguments)
    assert said in capsys.readouterr().err


def test_vectors_to_start_from_are_compared(monkeypatch, capsys, folder):
    out = run(monkeypatch, capsys, "starts", "--data", folder, "--set", "dimension=16")
    rows = [line.strip("| ").split(" | ") for line in out.splitlines()[2:]]
    assert [len(row) for row in rows[2:]] == [3] * 6
    assert rows[-2][:2] == ["the labels themselves", "100.00"]


def test_negatives_that_a_batch_brings_are_counted(monkeypatch, capsys, folder):
    out = run(monkeypatch, capsys, "pools", "--data", folder, "--set", "dimension=16")
    rows = [line.strip("| ").split(" | ") for line in out.splitlines()[4:]]
    assert rows == [[name, "100.0", "100.0"] for name in ("neighbourhoods", "random points")]
