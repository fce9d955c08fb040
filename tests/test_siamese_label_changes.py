"""Labels added to and removed from models of the recipes that read label texts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import longtail
from longtail.cli import main
from longtail.data.dataset import Dataset
from longtail.data.input_notes import InputWarning
from longtail.data.label_space import LabelSpace
from longtail.errors import InputError
from longtail.label_changes.changes import with_labels
from longtail.label_changes.new_labels import SiameseVectors
from longtail.recipes.dexa import DEXA
from longtail.recipes.ngame import NGAME
from longtail.recipes.siamesexml import SiameseXML
from small_labels import EXAMPLES, NAMES, NEW, TEXTS, WORDS, texts_and_labels
from small_transformer import BERT, saved

SMALL = {"dimension": 16, "encoder_epochs": 4, "classifier_epochs": 2, "n_threads": 1}
LEFT = [[name for name in names if name != NEW] for names in NAMES]


def fit(recipe, **settings):
    """Train without one of the labels."""
    return recipe(**{**SMALL, **settings}).fit(TEXTS, LEFT).predictor_


@pytest.fixture(scope="module")
def models():
    dexa = fit(DEXA, n_clusters=2, n_private=0, auxiliary_speed=30.0)
    return {DEXA: dexa, NGAME: fit(NGAME), SiameseXML: fit(SiameseXML)}


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


@pytest.mark.parametrize("examples", [{}, {NEW: EXAMPLES}], ids=["text", "text and examples"])
@pytest.mark.parametrize("recipe", [DEXA, NGAME, SiameseXML])
def test_a_new_label_has_the_vectors_of_the_formula(models, recipe, examples):
    model = models[recipe]
    larger = model.with_labels([NEW], examples)
    heads = [head.vectors_of_labels() for head in larger.scorer.heads]
    for own, before in zip(heads, model.scorer.heads, strict=True):
        np.testing.assert_array_equal(own[:-1], before.vectors_of_labels())
    encode = model.scorer.encoder.encode
    text = encode(model.bags([NEW]))
    points = unit(encode(model.bags(EXAMPLES)).mean(axis=0)[None]) if examples else 0
    np.testing.assert_allclose(heads[0][-1:], unit(text + points), atol=1e-5)
    for own in heads[1:]:
        np.testing.assert_allclose(own[-1:], text, atol=1e-6)


@pytest.mark.parametrize("dtype", [None, "int8"])
@pytest.mark.parametrize("recipe", [DEXA, NGAME, SiameseXML])
def test_a_new_label_is_found_and_the_others_stay(models, recipe, dtype, tmp_path):
    model = models[recipe] if dtype is None else models[recipe].compressed(dtype)
    larger = model.with_labels({NEW: "roses"})
    larger.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    assert [*loaded.label_space.names] == [*model.label_space.names, NEW]
    test_texts, test_names = texts_and_labels(100, 1)
    answers = loaded.predict(test_texts, 2)
    assert answers == larger.predict(test_texts, 2)
    found = np.array([NEW in {name for name, _ in answer} for answer in answers])
    has = np.array([NEW in names for names in test_names])
    assert found[has].mean() > 0.7
    assert found[~has].mean() < 0.3
    without = [text for text, names in zip(test_texts, test_names, strict=True) if NEW not in names]
    before, masked = model.predict(without, 1), loaded.predict(without, 1, masked=[NEW])
    same = [b[0][0] == m[0][0] for b, m in zip(before, masked, strict=True)]
    assert np.mean(same) > 0.9
    assert NEW in {one.label for one in loaded.explain("roses in a garden", k=3).labels}


@pytest.mark.parametrize("recipe", [DEXA, NGAME])
def test_a_label_can_be_removed_and_added_again(models, recipe):
    model = models[recipe]
    less = model.without_labels(["beer", "oaks"])
    assert {name for answer in less.predict(TEXTS[:50], 8) for name, _ in answer} <= {
        *model.label_space.names
    } - {"beer", "oaks"}
    again = less.with_labels(["beer"])
    assert again.predict("a beer", 1)[0][0] == "beer"


def test_without_near_points_and_linear_classifiers(models):
    model = fit(NGAME, n_near_points=0, linear=False, relations=False)
    larger = model.with_labels([NEW], {NEW: EXAMPLES})
    assert not larger.scorer.linear.bias.any()
    assert len(larger.scorer.search.label_starts) == 1
    assert larger.predict("roses", 1)[0][0] == NEW


def test_a_text_block_is_not_kept():
    model = fit(NGAME, text_block=True)
    with pytest.raises(InputError, match="text_block=True"):
        model.with_labels([NEW])
    assert model.without_labels(["beer"]).n_labels == model.n_labels - 1


@pytest.mark.parametrize("recipe", [DEXA, NGAME])
def test_points_stand_for_texts_where_features_are_ready_made(recipe):
    features = csr_array(np.eye(8, dtype=np.float32)[np.arange(80) % 8])
    labels = csr_array(np.eye(8, dtype=np.float32)[np.arange(80) % 8])
    data = Dataset(None, features, labels, LabelSpace.from_names(WORDS))
    model = recipe(**{**SMALL, "dimension": 8}).fit_dataset(data).predictor_
    larger = model.with_labels(["new"], {"new": features[[3]]})
    expected = model.scorer.encoder.encode(model.bags(features[[3]]))
    np.testing.assert_allclose(
        larger.scorer.heads[-1].vectors_of_labels()[-1:], expected, atol=1e-6
    )
    assert "new" in {name for name, _ in larger.predict(features[[3]], 2)[0]}
    with pytest.raises(InputError, match="does not read label texts"):
        model.with_labels(["new"])


def test_the_command(models, tmp_path, capsys):
    own, out = str(tmp_path / "model"), str(tmp_path / "out")
    models[DEXA].save(own)
    (tmp_path / "new.txt").write_text(f"{NEW}\troses and other flowers\n")
    assert main(["labels", "add", own, str(tmp_path / "new.txt"), out]) == 0
    assert "knows 8 labels" in capsys.readouterr().err
    assert longtail.load(out).predict("roses", 1)[0][0] == NEW
    assert main(["inspect", out, "--label", NEW]) == 0
    assert f"labels near '{NEW}'" in capsys.readouterr().out
    assert main(["labels", "remove", out, NEW, out]) == 0
    assert longtail.load(out).n_labels == 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small BERT with random weights."""
    transformers = pytest.importorskip("transformers", reason="needs the extra 'transformers'")
    return saved(tmp_path_factory.mktemp("transformer"), transformers.BertConfig(**BERT))


WINES_AND_CARS = ["red wine", "white wine", "fast car", "old car"] * 5
KINDS = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5


class TestAroundATransformer:
    @pytest.mark.parametrize("mode", [{}, {"fine_tune": True}], ids=["as it is", "fine-tuned"])
    @pytest.mark.parametrize("recipe", [DEXA, NGAME])
    def test_it_reads_the_new_text(self, folder, tmp_path, recipe, mode):
        settings = {**SMALL, "encoder": str(folder), **mode}
        settings.pop("dimension")
        model = recipe(**settings).fit(WINES_AND_CARS, KINDS).predictor_
        with pytest.warns(InputWarning, match="1 of 2 hold nothing that the model knows"):
            larger = model.with_labels({"new": "bottle of wine"}, {"new": ["a bottle", " "]})
        larger.save(tmp_path / "model")
        loaded = longtail.load(tmp_path / "model")
        expected = model.scorer.encoder.encode(model.bags(["bottle of wine"]))
        read = loaded.scorer.heads[-1].vectors_of_labels()[-1:]
        np.testing.assert_allclose(read, expected, atol=1e-5)
        assert "new" in {name for name, _ in loaded.predict("a bottle of wine", 3)}
        assert loaded.train_label_counts.tolist()[-1] == 1
        assert loaded.without_labels(["new"]).n_labels == 2
        with pytest.raises(InputError, match="knows no word of its text"):
            model.with_labels({"new": " "})

    def test_in_onnx_too(self, folder):
        pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
        pytest.importorskip("onnx", reason="needs the extra 'onnx'")
        settings = {**SMALL, "encoder": str(folder)}
        settings.pop("dimension")
        model = DEXA(**settings).fit(WINES_AND_CARS, KINDS).predictor_.compressed("float32")
        larger = model.with_labels({"new": "bottle of wine"})
        assert "new" in {name for name, _ in larger.predict("a bottle of wine", 3)}


class MyRecipe(NGAME):
    """A recipe of one's own."""


def test_a_recipe_of_ones_own_says_how_its_vectors_are_made(models):
    model = fit(MyRecipe)
    with pytest.raises(InputError, match=r"How MyRecipe makes vectors .* Pass `vectors`"):
        model.with_labels([NEW])
    larger = with_labels(model, [NEW], vectors=SiameseVectors())
    expected = models[NGAME].with_labels([NEW])
    for own, other in zip(larger.scorer.heads, expected.scorer.heads, strict=True):
        np.testing.assert_array_equal(own.vectors_of_labels(), other.vectors_of_labels())
    assert larger.without_labels([NEW]).n_labels == model.n_labels
