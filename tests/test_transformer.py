"""Transformers as encoders: a small one is made here; nothing is downloaded."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import longtail
from longtail import distillation
from longtail.cli import main
from longtail.costs.transformer import layers_and_width_of
from longtail.data.bags import Bags
from longtail.distillation import distilled
from longtail.errors import InputError, MissingExtraError
from longtail.estimators.limits import check_settings
from longtail.features import onnx_export, transformer, transformer_encoder
from longtail.features.encoder import encoder_from
from longtail.features.onnx_encoder import OnnxEncoder
from longtail.features.text_pieces import PiecesOfTexts
from longtail.features.transformer import Transformer, TransformerNetwork, read_transformer
from longtail.features.transformer_encoder import TransformerEncoder
from longtail.features.tuned_transformer import TunedTransformer
from longtail.matching.cluster_scores import NeuralMatcher
from longtail.matching.transformer_training import TransformerTraining
from longtail.recipes.deepxml import DeepXML
from longtail.recipes.xtransformer import XTransformer
from longtail.scorers.ensemble import EnsembleScorer
from longtail.scorers.inner_transformers import with_transformers_as
from longtail.surrogates.label_indexing import LabelTexts, PointEmbeddings, PointFeatures
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.run import TrainingData
from longtail.training.schedule import Schedule
from small_transformer import BERT, LABELS, TEXTS, WORDS, as_bags, saved


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT of two layers with random weights."""
    reason = "needs the extra 'transformers'"
    transformers = pytest.importorskip("transformers", reason=reason)
    return saved(tmp_path_factory.mktemp("transformer"), transformers.BertConfig(**BERT))


OTHERS = {
    "distilbert": {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16},
    "roberta": {**BERT, "max_position_embeddings": 14},
    "mpnet": {**BERT, "max_position_embeddings": 14},
    "xlnet": {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16},
}


class TestEncoder:
    def test_is_the_unit_mean_over_pieces(self, folder):
        from transformers import BertModel

        ids = torch.tensor([[2, 4, 6, 3]])  # red wine, between the marks of the ends
        with torch.no_grad():
            hidden = BertModel.from_pretrained(folder).eval()(ids).last_hidden_state[0].numpy()
        expected = hidden.mean(axis=0) / np.linalg.norm(hidden.mean(axis=0))
        encoder = read_transformer(folder, 64)
        vectors = encoder.encode(as_bags(["red wine", "", "a bottle of old red wine"]))
        np.testing.assert_allclose(vectors[0], expected, atol=1e-6)
        assert not vectors[1].any()
        np.testing.assert_allclose(np.linalg.norm(vectors[2]), 1, rtol=1e-6)

    def test_reads_texts_whose_bags_are_empty(self, folder):
        encoder, full = read_transformer(folder, 64), as_bags(["red wine", "  ", "fast"])
        empty = Bags.of(csr_array((3, 1), dtype=np.float32))._replace(texts=full.texts)
        np.testing.assert_array_equal(encoder.encode(empty), encoder.encode(full))
        assert encoder.encode(empty).any(axis=1).tolist() == [True, False, True]

    def test_reads_as_many_pieces_as_it_may(self, folder):
        encoder = read_transformer(folder, 4)
        short, long = encoder.encode(as_bags(["red wine", "red wine fast old car"]))
        np.testing.assert_allclose(short, long, atol=1e-6)
        assert read_transformer(folder, 99).pieces.n_pieces == 12  # it has no more places

    def test_comes_back_from_its_parts(self, folder):
        encoder, bags = read_transformer(folder, 8), as_bags(TEXTS)
        again = encoder_from(encoder.config(), encoder.to_arrays())
        np.testing.assert_array_equal(encoder.encode(bags), again.encode(bags))

    def test_needs_texts(self, folder):
        with pytest.raises(InputError, match="reads texts"):
            read_transformer(folder, 8).encode(as_bags(TEXTS)._replace(texts=None))

    def test_needs_a_folder(self, tmp_path):
        with pytest.raises(InputError, match=r"config\.json, .* not found"):
            read_transformer(tmp_path, 8)
        # Before any data is read, too.
        with pytest.raises(InputError, match=r"config\.json, .* not found"):
            check_settings(XTransformer(encoder=str(tmp_path)))

    @pytest.mark.parametrize("kind", OTHERS)
    def test_may_be_of_another_kind(self, kind, tmp_path):
        transformers = pytest.importorskip("transformers", reason="needs 'transformers'")
        settings = {"vocab_size": 4 + len(WORDS), **OTHERS[kind]}
        folder = saved(tmp_path, transformers.AutoConfig.for_model(kind, **settings))
        encoder = read_transformer(folder, 13)
        bags = as_bags([*TEXTS[:4], "wine " * 40])  # longer than it has places
        vectors = encoder.encode(bags)
        assert vectors.shape == (5, 16)
        again = encoder_from(encoder.config(), encoder.to_arrays())
        np.testing.assert_array_equal(again.encode(bags), vectors)

    def test_must_be_an_encoder(self, tmp_path):
        transformers = pytest.importorskip("transformers", reason="needs 'transformers'")
        config = {"d_model": 16, "num_layers": 1, "num_heads": 2, "d_ff": 16, "d_kv": 8}
        saved(tmp_path, transformers.T5Config(vocab_size=4 + len(WORDS), **config))
        with pytest.raises(InputError, match="of type 't5', is not a text encoder"):
            read_transformer(tmp_path, 8)

    def test_must_be_whole(self, folder, tmp_path):
        shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
        (tmp_path / "model.safetensors").write_bytes(b"cut short")
        with pytest.raises(InputError, match="cannot be read"):
            read_transformer(tmp_path, 8)

    @pytest.mark.parametrize("content", [b"\xff\xfe", b"hello", b"[]", b""])
    def test_must_have_a_tokenizer(self, folder, tmp_path, content):
        shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
        (tmp_path / "tokenizer.json").write_bytes(content)
        with pytest.raises(InputError, match=r"tokenizer\.json is not the JSON of a tokenizer: "):
            read_transformer(tmp_path, 8)

    @pytest.mark.parametrize("content", [b"\xff\xfe", b"hello", b"[]", b"3", b"[" * 100_000])
    def test_must_have_a_configuration(self, folder, tmp_path, content):
        shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
        (tmp_path / "config.json").write_bytes(content)
        message = r"its config\.json (is not JSON in UTF-8|does not say how many layers)"
        with pytest.raises(InputError, match=message):
            layers_and_width_of(str(tmp_path))
        with pytest.raises(InputError, match="cannot be read: "):
            read_transformer(tmp_path, 8)


def test_says_which_library_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match="transformers"):
        PiecesOfTexts("{}", 8, 0).of(["red wine"])
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match="transformers"):
        _ = TransformerEncoder(PiecesOfTexts("{}", 8, 0), {"hidden_size": 2}, {}).network


def test_is_imported_by_no_other_model():
    code = f"import sys, {transformer_encoder.__name__}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("fine_tune", [False, True], ids=["frozen", "fine-tuned"])
class TestRecipes:
    def test_xtransformer(self, folder, tmp_path, fine_tune):
        model = XTransformer(
            encoder=str(folder), fine_tune=fine_tune, epochs=2, leaf_size=1, n_threads=1
        ).fit(TEXTS, LABELS)
        assert model.score(TEXTS, LABELS) == 1.0
        model.save(tmp_path / "model")
        loaded = longtail.load(tmp_path / "model")
        np.testing.assert_array_equal(model.predict_topk(TEXTS), loaded.predict_topk(TEXTS))
        same = np.array_equal(
            read_transformer(folder, 8).weights["embeddings.word_embeddings.weight"],
            model.predictor_.scorer.join.encoder.weights["embeddings.word_embeddings.weight"],
        )
        assert same is not fine_tune

    def test_deepxml(self, folder, tmp_path, fine_tune):
        epochs = 20 if fine_tune else 0
        model = DeepXML(
            features=Transformer(folder=str(folder), fine_tune=fine_tune, learning_rate=0.003),
            surrogate=MetaLabelTask(schedule=Schedule(epochs=epochs, learning_rate=0.05)),
        ).fit(TEXTS, LABELS)
        assert model.score(TEXTS, LABELS) == 1.0
        model.save(tmp_path / "model")
        loaded = longtail.load(tmp_path / "model")
        np.testing.assert_array_equal(model.predict_topk(TEXTS)[0], loaded.predict_topk(TEXTS)[0])


PAIRS = [f"{a} {b}" for a in WORDS for b in WORDS if a != b]
TUNED = {
    "fine_tune": True,
    "fine_tune_learning_rate": 0.002,
    "learning_rate": 0.1,
    "batch_size": 32,
    "leaf_size": 1,
    "beam_size": 2,
    "n_threads": 1,
    "held_out": 0.25,
}


class TestFineTuning:
    def weights(self, folder, **settings):
        model = XTransformer(encoder=str(folder), **TUNED | settings)
        encoder = model.fit(PAIRS, [pair.split() for pair in PAIRS]).predictor_.scorer.join.encoder
        return model, encoder.weights["embeddings.word_embeddings.weight"]

    def test_stops_by_held_out_points(self, folder):
        model, _ = self.weights(folder, epochs=60, patience=2)
        qualities = [entry["quality"] for entry in model.run_.history]
        assert len(qualities) == int(np.argmax(qualities)) + 1 + 2 < 60
        assert max(qualities) > min(qualities)

    def test_goes_back_to_the_best_epoch(self, folder):
        """A training that ends with its best epoch has the same weights."""
        model, stopped = self.weights(folder, epochs=20, patience=19, warm_up=0.0)
        best = int(np.argmax([entry["quality"] for entry in model.run_.history])) + 1
        assert best < len(model.run_.history)
        kept, original = [], TransformerNetwork.read

        def read(network, bags):
            weights = network.encoder().weights
            kept.append(weights["embeddings.word_embeddings.weight"])
            return original(network, bags)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TransformerNetwork, "read", read)
            self.weights(folder, epochs=20, patience=19, warm_up=0.0)
        np.testing.assert_array_equal(stopped, kept[best - 1])

    def test_reads_held_out_points_as_the_model_will(self, folder):
        encoder, features = read_transformer(folder, 8), as_bags(TEXTS)
        data = TrainingData(csr_array((20, 1)), csr_array((20, 1)), texts=features.texts)
        tuned = TunedTransformer(encoder, texts_at_once=4, device=torch.device("cpu"))
        network = TransformerNetwork(tuned, data, 0.5, learning_rate=0.1)
        # Products of training may be of bfloat16.
        np.testing.assert_allclose(network.read(features), encoder.encode(features), atol=0.02)
        assert tuned._module.training

    @pytest.mark.parametrize("settings", [{"clip": None}, {"clip": 0.001}, {"warm_up": 0.0}])
    def test_is_clipped_and_warms_up(self, folder, settings):
        _, usual = self.weights(folder, epochs=3)
        _, other = self.weights(folder, epochs=3, **settings)
        assert not np.array_equal(usual, other)


@pytest.mark.parametrize("fine_tune", [False, True], ids=["frozen", "fine-tuned"])
def test_the_neural_matcher_reads_no_words(folder, tmp_path, fine_tune, monkeypatch):
    """One label is in each cluster, and one cluster is looked at: half are right by chance."""
    encoded, original = [], NeuralMatcher.match

    def match(matcher, *given):
        encoded.append(given[0])
        return original(matcher, *given)

    monkeypatch.setattr(NeuralMatcher, "match", match)
    settings = TUNED | {"fine_tune": fine_tune, "epochs": 30, "beam_size": 1, "held_out": 0.0}
    if not fine_tune:
        del settings["fine_tune_learning_rate"]
    model = XTransformer(encoder=str(folder), matcher="neural", **settings).fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) == 1.0
    tree = model.predictor_.scorer.tree.tree
    at_root = tree.features[: tree.feature_starts[1]]
    n_tokens = model.predictor_.scorer.join.n_tokens
    assert at_root.min() >= n_tokens
    (given,) = encoded
    assert (given.vectors is not None) is fine_tune
    if fine_tune:
        weights = np.zeros((len(given.bias), given.encoder.dimension), np.float32)
        for place, feature in enumerate(at_root):
            own = slice(tree.weight_starts[place], tree.weight_starts[place + 1])
            weights[tree.children[own], feature - n_tokens] = tree.weights[own]
        np.testing.assert_allclose(weights, given.vectors * 2**0.5, rtol=1e-2, atol=1e-3)
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(model.predict_topk(TEXTS), loaded.predict_topk(TEXTS))


def test_indexers_read_points_and_label_texts(folder):
    indexers = (PointFeatures(), PointEmbeddings(), LabelTexts())
    model = XTransformer(encoder=str(folder), indexers=indexers, leaf_size=1, n_threads=1)
    assert model.fit(TEXTS, LABELS).score(TEXTS, LABELS) == 1.0


def test_each_member_of_an_ensemble_fine_tunes_the_transformer_from_its_start(folder, monkeypatch):
    started, original = [], TransformerTraining._fine_tune

    def noted(matching, network, *rest):
        started.append(network.encoder().weights["embeddings.word_embeddings.weight"].copy())
        return original(matching, network, *rest)

    monkeypatch.setattr(TransformerTraining, "_fine_tune", noted)
    settings = TUNED | {"epochs": 2, "held_out": 0.0, "indexers": ("features", "texts")}
    XTransformer(encoder=str(folder), **settings).fit(PAIRS, [pair.split() for pair in PAIRS])
    np.testing.assert_array_equal(*started)


def test_an_ensemble_reads_and_keeps_a_frozen_transformer_once(folder, tmp_path, monkeypatch):
    read, original = [], transformer.encoded_texts

    def count(encoder, bags, run, what):
        read.append(what)
        return original(encoder, bags, run, what)

    monkeypatch.setattr(transformer, "encoded_texts", count)
    words = {"indexers": ("features", "texts"), "leaf_size": 1, "n_threads": 1}
    model = XTransformer(encoder=str(folder), **words).fit(TEXTS, LABELS)
    assert read == ["points"]
    first, second = model.predictor_.scorer.members
    assert first.join.encoder is second.join.encoder
    model.save(tmp_path / "model")
    arrays = model.predictor_.scorer.to_arrays()
    assert len([name for name in arrays if "word_embeddings" in name]) == 1
    loaded = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(model.predict_topk(TEXTS)[1], loaded.predict_topk(TEXTS)[1])
    loaded.save(tmp_path / "again")
    again = longtail.load(tmp_path / "again")
    np.testing.assert_array_equal(model.predict_topk(TEXTS)[1], again.predict_topk(TEXTS)[1])


def test_encoders_make_an_ensemble(folder):
    several = {"encoder": "bag", "further_encoders": (str(folder),), "leaf_size": 1, "n_threads": 1}
    indexers = (PointFeatures(), LabelTexts())
    model = XTransformer(indexers=indexers, **several).fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) == 1.0
    members = model.predictor_.scorer.members
    kinds = [member.join.encoder.config()["kind"] for member in members]
    assert kinds == ["unit-bag-of-tokens"] * 2 + ["transformer"] * 2
    alone = XTransformer(indexers=indexers, **several | {"further_encoders": ()}).fit(TEXTS, LABELS)
    own, same = (
        one.predictor_.scorer.members[1].top_k(as_bags(TEXTS), 2) for one in (model, alone)
    )
    np.testing.assert_array_equal(own[1], same[1])  # a member does not depend on further ones
    with pytest.raises(InputError, match="nowhere"):
        XTransformer(further_encoders=("nowhere",)).fit(TEXTS, LABELS)


def test_answers_are_explained_word_by_word(folder):
    model = XTransformer(encoder=str(folder), leaf_size=1, n_threads=1).fit(TEXTS, LABELS)
    label = model.predictor_.explain("A bottle of RED wine", k=1).labels[0]
    assert label.label == "drink"
    assert {word.word for word in label.words} == {"a", "bottle", "of", "red", "wine"}
    unknown = model.predictor_.explain("bottle", k=1).labels[0]  # to the bag, not to the encoder
    assert [word.word for word in unknown.words] == ["bottle"]


def test_texts_without_a_known_word_are_answered(folder):
    model = XTransformer(encoder=str(folder), leaf_size=1, n_threads=1, char_ngrams=None)
    found = model.fit(TEXTS, LABELS).predictor_
    texts = ["red wine", "bottle of drink", " ", "", "vehicle"]
    batch = found.predict(texts, k=2)
    assert [len(answer) for answer in batch] == [2, 2, 0, 0, 2]
    for text, answer in zip(texts, batch, strict=True):
        one = found.predict(text, k=2)
        assert [name for name, _ in one] == [name for name, _ in answer]
        np.testing.assert_allclose([p for _, p in one], [p for _, p in answer], atol=1e-5)
    assert found.predict("bottle", k=1, allowed=["vehicle"])[0][0] == "vehicle"


def test_one_text_with_lone_surrogates_is_read_as_in_a_batch(folder):
    """No tokeniser takes such, and a column of texts has replaced them."""
    model = XTransformer(encoder=str(folder), n_threads=1).fit(TEXTS, LABELS).predictor_
    text = "red wine \ud83d"
    ids, probabilities = model.predict_topk([text, "old car"], 2)
    alone = model.predict_topk([text], 2)
    np.testing.assert_array_equal(alone[0][0], ids[0])
    np.testing.assert_allclose(alone[1][0], probabilities[0], atol=1e-5)
    assert {word.word for word in model.explain(text, 1).labels[0].words} == {"red", "wine"}


def test_features_are_refused(folder):
    with pytest.raises(InputError, match="Pass texts"):
        XTransformer(encoder=str(folder)).fit(np.eye(4), [[0], [1], [0], [1]])


@pytest.fixture(scope="module")
def model(folder):
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    recipe = XTransformer(encoder=str(folder), leaf_size=1, held_out=0.0, n_threads=1)
    return recipe.fit(TEXTS, LABELS).predictor_


class TestOnnx:
    """The graph that stands for a transformer in serving."""

    @pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("int8", 0.05)])
    def test_is_the_same_model_without_torch(self, model, tmp_path, dtype, tolerance):
        texts = [*TEXTS[:4], "a bottle of old red wine", "", "fast", "bottle"]
        exported = model.compressed(dtype)
        exported.save(tmp_path / "model")
        np.save(tmp_path / "expected.npy", exported.predict_topk(texts)[1])
        encoders = (one.scorer.join.encoder for one in (model, exported))
        own, other = (encoder.encode(as_bags(texts), 2) for encoder in encoders)
        np.testing.assert_allclose(own, other, atol=tolerance)
        code = f"""
import sys, numpy as np, longtail
model = longtail.load({str(tmp_path / "model")!r})
found = model.predict_topk({texts!r})[1]
np.testing.assert_array_equal(found, np.load({str(tmp_path / "expected.npy")!r}))
print(model.predict("red wine", k=1)[0][0], {{"torch", "transformers"}} & {{*sys.modules}})
"""
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["drink", "set()"]
        assert not done.stderr

    def test_batches_share_the_threads(self, model):
        encoder, bags = model.compressed("float32").scorer.join.encoder, as_bags(TEXTS * 20)
        np.testing.assert_array_equal(encoder.encode(bags, 1), encoder.encode(bags, 4))

    def test_is_refused_where_it_cannot_be(self, model):
        with pytest.raises(InputError, match="'float32' or 'int8', got 'float16'"):
            model.compressed("float16")
        with pytest.raises(InputError, match="compressed already"):
            model.compressed("float32").compressed("int8")

    def test_of_an_ensemble_is_made_once(self, model):
        member = model.scorer
        ensemble = with_transformers_as(EnsembleScorer((member, member)), onnx_export.to_onnx)
        first, second = ensemble.members
        assert isinstance(first.join.encoder, OnnxEncoder)
        assert first.join.encoder is second.join.encoder
        assert first.tree is member.tree

    def test_of_an_ensemble_is_one_after_loading_too(self, model, tmp_path):
        ensemble = model.with_scorer(EnsembleScorer((model.scorer, model.scorer)))
        ensemble.save(tmp_path / "model")
        first, second = longtail.load(tmp_path / "model").scorer.members
        assert first.join.encoder is second.join.encoder
        longtail.load(tmp_path / "model").save(tmp_path / "again")
        sizes = [
            sum(file.stat().st_size for file in (tmp_path / name).glob("*-encoder.*"))
            for name in ("model", "again")
        ]
        assert sizes[0] == sizes[1]

    def test_is_held_against_what_it_stands_for(self, model, monkeypatch):
        monkeypatch.setattr(onnx_export, "TOLERANCE", -1.0)
        with pytest.raises(InputError, match="cannot be exported"):
            model.compressed("float32")


class TestDistillation:
    """Token vectors in place of a transformer."""

    def test_answers_alike_without_it(self, model, tmp_path):
        student, cosine = distilled(model, [*TEXTS, *TEXTS], n_threads=1)
        bags = model.bags(TEXTS)
        own, other = (one.scorer.join.encoder.encode(bags) for one in (model, student))
        assert cosine == pytest.approx((own * other).sum(axis=1).mean(), abs=0.05)
        assert cosine > 0.98
        student.save(tmp_path / "model")
        found = longtail.load(tmp_path / "model").predict(TEXTS, k=1)
        assert [best[0][0] for best in found] == [label for (label,) in LABELS]
        assert found == student.predict(TEXTS, k=1)

    def test_fits_by_ridge_regression(self):
        random = np.random.default_rng(0)
        bags, start = random.random((30, 6)).astype(np.float32), random.standard_normal((6, 4))
        targets = random.standard_normal((30, 4)).astype(np.float32)
        scale = ((bags @ start) * targets).sum() / ((bags @ start) ** 2).sum()
        normal = bags.T @ bags + distillation.RIDGE * np.eye(6)
        expected = np.linalg.solve(normal, bags.T @ targets + distillation.RIDGE * scale * start)
        found = distillation._fitted(start.astype(np.float32), csr_array(bags), targets, 1)
        np.testing.assert_allclose(found, expected, atol=1e-3)

    def test_of_an_exported_one(self, model):
        assert distilled(model.compressed("float32"), [*TEXTS, *TEXTS]).cosine > 0.98

    def test_needs_a_transformer_and_texts(self, model):
        with pytest.raises(InputError, match="at least 20 texts, got 3"):
            distilled(model, TEXTS[:3])
        with pytest.raises(InputError, match="has none: dexa"):
            distilled(distilled(model, TEXTS).model, TEXTS)

    def test_the_command_says_what_it_costs(self, model, tmp_path, capsys):
        own, out, test = (str(tmp_path / name) for name in ("own", "out", "test.jsonl"))
        model.save(own)
        rows = [{"text": x, "labels": y} for x, y in zip(TEXTS, LABELS, strict=True)]
        (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
        assert main(["distill", own, out, "--texts", test, "--test", test]) == 0
        shown = capsys.readouterr().out
        assert "cosine to the transformer" in shown
        assert "P@1" in shown
        assert longtail.load(out).predict("red wine", k=1)[0][0] == "drink"
