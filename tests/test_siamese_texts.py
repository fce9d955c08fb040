"""DEXA's family around a transformer: a small one is made here; nothing is downloaded."""

from __future__ import annotations

import io
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array

import longtail
from killing import Batches, Killer
from longtail.blend.encoded import EncodedScorer
from longtail.cli import main
from longtail.compiled.blended import BlendedScorer, scorer_around
from longtail.costs.estimate import Machine, Workload
from longtail.costs.of_recipe import costs_of
from longtail.data.dataset import Dataset
from longtail.data.label_space import LabelSpace
from longtail.data.text_column import TextColumn
from longtail.distillation import distilled
from longtail.errors import InputError
from longtail.features.encoder import encoder_from
from longtail.features.transformer import read_transformer
from longtail.features.tuned_transformer import TunedTransformer, encoded_texts
from longtail.progress import ProgressBar
from longtail.recipes.dexa import DEXA
from longtail.recipes.ngame import MAP_RATE, NGAME
from longtail.recipes.siamesexml import SiameseXML
from longtail.recipes.xtransformer import XTransformer
from longtail.training.run import TrainingRun
from small_transformer import BERT, LABELS, TEXTS, as_bags, saved

CPU = torch.device("cpu")
SMALL = {"encoder_epochs": 2, "classifier_epochs": 2, "n_threads": 1}
MODES = [{}, {"fine_tune": True, "texts_at_once": 3}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT of two layers with random weights and no dropout."""
    transformers = pytest.importorskip("transformers", reason="needs the extra 'transformers'")
    without = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = transformers.BertConfig(**BERT, **without)
    return saved(tmp_path_factory.mktemp("transformer"), config)


@pytest.mark.parametrize("mode", MODES, ids=["as it is", "fine-tuned"])
@pytest.mark.parametrize("recipe", [NGAME, DEXA, SiameseXML])
def test_recipes_learn_and_come_back(folder, tmp_path, recipe, mode):
    longer = {"encoder_epochs": 10, "fine_tune_learning_rate": 0.005} if mode else {}
    settings = {**SMALL, **mode, **longer}
    model = recipe(encoder=str(folder), **settings).fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) == 1.0
    assert isinstance(model.predictor_.scorer, EncodedScorer)
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    for own, again in zip(model.predict_topk(TEXTS), loaded.predict_topk(TEXTS), strict=True):
        np.testing.assert_array_equal(own, again)
    one = loaded.predict("red wine", k=1)[0]
    assert one == loaded.predict(["red wine"], k=1)[0][0]
    assert loaded.predict("red wine", k=1, allowed=["vehicle"])[0][0] == "vehicle"


@pytest.mark.parametrize("mode", MODES, ids=["as it is", "fine-tuned"])
def test_an_interrupted_training_goes_on_to_the_same_model(folder, tmp_path, mode):
    settings = {"encoder": str(folder), **SMALL, "patience": 5, "held_out": 0.5, **mode}
    labels = csr_array(np.repeat(np.array([[1, 0], [0, 1]] * 20, np.float32), 2, axis=0))
    space = LabelSpace.from_names(["drink", "vehicle"])
    texts = [f"{text} {i}" for i, text in enumerate(TEXTS * 4)]
    data = Dataset(TextColumn.from_strings(texts), None, labels, space)
    all_batches, left = Batches(), Batches()
    whole = DEXA(**settings).fit_dataset(data, callbacks=[all_batches])

    place = {"checkpoint_folder": tmp_path / "kept", "checkpoint_seconds": 0.0}
    with pytest.raises(KeyboardInterrupt):
        DEXA(**settings).fit_dataset(data, callbacks=[Killer(1)], **place)
    resumed = DEXA(**settings).fit_dataset(data, callbacks=[left], **place)
    assert left.n < all_batches.n
    # Of torch's products the last bit depends on where in memory their arrays came to lie.
    found = [model.predict_topk(TEXTS)[1] for model in (whole, resumed)]
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_the_scorer_is_the_compiled_one_around_a_bag():
    random = np.random.default_rng(0)
    words = [f"w{i}" for i in range(30)]
    texts = [" ".join(random.choice(words, 4)) for _ in range(200)]
    labels = [sorted({*text.split()[:2]}) for text in texts]
    model = DEXA(dimension=16, tail=0.5, relations=True, **SMALL).fit(texts, labels).predictor_
    compiled = model.scorer
    assert isinstance(compiled, BlendedScorer)
    scorer = EncodedScorer(encoder=compiled.encoder, **compiled.parts())
    bags = model.bags([*texts[:50], "unknown"])
    ids, scores = scorer.top_k(bags, 5)
    expected_ids, expected = compiled.top_k(bags, 5)
    agrees = np.isclose(scores[:-1], expected[:-1], atol=1e-3).all(axis=1)
    assert agrees.mean() > 0.95  # the compiled walk may miss one of the near points that vote
    assert (ids[:-1] == expected_ids[:-1]).mean() > 0.98  # but for ties
    assert (scorer_around(compiled.encoder, scorer).top_k(bags, 5)[0] == expected_ids).all()


@pytest.mark.parametrize("mode", MODES, ids=["as it is", "fine-tuned"])
def test_texts_without_a_known_word_are_answered(folder, mode):
    """Labels whose names no bag knows are found, too: only an empty text has no answer."""
    settings = {"char_ngrams": None, **SMALL, **mode}
    found = DEXA(encoder=str(folder), **settings).fit(TEXTS, LABELS).predictor_
    texts = ["bottle of drink", " ", "", "vehicle"]
    batch = found.predict(texts, k=2)
    assert [len(answer) for answer in batch] == [2, 0, 0, 2]
    for text, answer in zip(texts, batch, strict=True):
        one = found.predict(text, k=2)
        assert [name for name, _ in one] == [name for name, _ in answer]
        np.testing.assert_allclose([p for _, p in one], [p for _, p in answer], atol=1e-4)
    explanation = found.explain("bottle", k=1)
    assert [word.word for word in explanation.labels[0].words] == ["bottle"]
    assert explanation.near_points


def test_label_clusters_are_those_of_the_pretrained_vectors(folder, monkeypatch):
    given = []

    def remember(model, labels, texts, run):
        given.append(texts())
        return NGAME.auxiliary_clusters(model, labels, texts, run)

    monkeypatch.setattr(DEXA, "auxiliary_clusters", remember)
    for mode in MODES:
        DEXA(encoder=str(folder), **SMALL, **mode).fit(TEXTS, LABELS)
    expected = read_transformer(folder, 128).encode(as_bags(["drink", "vehicle"]))
    for texts in given:
        np.testing.assert_allclose(texts, expected, atol=0.02)  # products may be of bfloat16


def test_labels_are_inspected_and_tokens_have_no_vectors(folder, tmp_path, capsys):
    NGAME(encoder=str(folder), **SMALL).fit(TEXTS, LABELS).save(tmp_path)
    assert main(["inspect", str(tmp_path), "--label", "drink"]) == 0
    assert "labels near 'drink'" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path), "--token", "wine"]) == 2
    assert "EncodedScorer has no vectors of tokens" in capsys.readouterr().err


def test_near_points_explain_an_answer(folder):
    model = NGAME(encoder=str(folder), **SMALL).fit(TEXTS, LABELS).predictor_
    near = model.explain(TEXTS[0], k=1).near_points
    assert [point.similarity for point in near] == sorted(
        (p.similarity for p in near), reverse=True
    )
    assert near[0].similarity == pytest.approx(1, abs=1e-5)
    assert near[0].labels == tuple(LABELS[0])
    assert TEXTS[near[0].row] == TEXTS[0]
    assert model.explain("", k=1).near_points == ()
    none = {"n_near_points": 0, "linear": False}
    without = NGAME(encoder=str(folder), **none, **SMALL).fit(TEXTS, LABELS).predictor_
    assert without.explain(TEXTS[0], k=1).near_points == ()


def test_the_map_of_a_transformer_that_is_not_trained_has_a_rate_of_its_own(folder):
    settings = {"encoder": str(folder), "encoder_learning_rate": 0.02}
    frozen = NGAME(**settings).architecture(100)
    trained = NGAME(**settings, fine_tune=True, fine_tune_learning_rate=1e-5).architecture(100)
    assert frozen.speed * 0.02 == pytest.approx(MAP_RATE)
    assert trained.speed * 0.02 == pytest.approx(1e-5)


def test_gradients_are_clipped_by_their_length_for_a_text(folder):
    """The loss is a sum over the texts of a batch, and so is its gradient."""
    recipe = NGAME(encoder=str(folder), fine_tune=True, clip=0.5)
    assert [recipe.transformer(n).clip for n in (1, 32)] == [0.5, 16]
    assert NGAME(encoder=str(folder), fine_tune=True, clip=None).transformer(32).clip is None


def test_labels_without_texts_are_refused(folder):
    with pytest.raises(InputError, match="labels have ids alone"):
        NGAME(encoder=str(folder), **SMALL).fit(TEXTS, [[0], [0], [1], [1]] * 5)
    with pytest.raises(InputError, match="Pass texts"):
        NGAME(encoder=str(folder), **SMALL).fit(np.eye(4), [["a"], ["b"], ["a"], ["b"]])
    with pytest.raises(InputError, match="not found"):
        NGAME(encoder="nowhere").fit(TEXTS, LABELS)


def test_parts_of_a_batch_add_up_to_the_whole(folder):
    start = read_transformer(folder, 8)
    texts = np.array(["red wine", "car", "a bottle of old red wine", "fast car", "wine"], object)
    slopes = torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
    gradients = []
    for texts_at_once, texts_a_call in ((64, 64), (2, 64), (64, 2)):
        tuned = TunedTransformer(start, texts_at_once=texts_at_once, device=CPU)
        tuned._texts_a_call = texts_a_call
        vectors = tuned.forward(tuned.cut(texts), np.arange(5))
        torch.autograd.backward(vectors, slopes)
        named = tuned._module.named_parameters()
        gradients.append((vectors.detach(), {k: p.grad for k, p in named if p.grad is not None}))
    (whole, by_whole), *others = gradients
    scale = max(float(gradient.abs().max()) for gradient in by_whole.values())
    for parts, by_parts in others:  # products may be of bfloat16
        torch.testing.assert_close(whole, parts, atol=0.02, rtol=0)
        assert by_whole.keys() == by_parts.keys()
        for name, gradient in by_whole.items():
            torch.testing.assert_close(gradient, by_parts[name], atol=0.03 * scale, rtol=0)


def test_reading_says_how_far_it_is(folder):
    encoder, heard = read_transformer(folder, 8), io.StringIO()
    bags = as_bags([*TEXTS * 4, ""])
    run = TrainingRun(seed=0, n_threads=1, callbacks=[ProgressBar(heard)])
    vectors = encoded_texts(encoder, bags, run, "labels")
    assert heard.getvalue() == "reading labels ... 0 s\n"
    np.testing.assert_allclose(vectors, encoder.encode(bags), atol=0.02)
    assert not vectors[-1].any()
    tuned = TunedTransformer(encoder, texts_at_once=8, device=CPU)
    np.testing.assert_array_equal(tuned.read(bags), vectors)


def test_serves_without_the_transformer(folder, tmp_path):
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    model = DEXA(encoder=str(folder), **SMALL).fit(TEXTS, LABELS).predictor_
    encoder = model.scorer.encoder
    again = encoder_from(encoder.config(), encoder.to_arrays())
    bags = model.bags(TEXTS)
    np.testing.assert_array_equal(encoder.encode(bags), again.encode(bags))
    exported = model.compressed("float32")
    np.testing.assert_allclose(
        exported.predict_topk(TEXTS)[1], model.predict_topk(TEXTS)[1], atol=1e-3
    )
    student = distilled(model, [*TEXTS, *TEXTS], n_threads=1).model
    student.save(tmp_path / "model")
    found = longtail.load(tmp_path / "model").predict(TEXTS, k=1)
    assert [best[0][0] for best in found] == [label for (label,) in LABELS]
    together = student.predict_topk(TEXTS, 2)[1]  # to the bit, whatever else is in the batch
    alone = [student.predict_topk([text], 2)[1][0] for text in TEXTS]
    np.testing.assert_array_equal(together, alone)


def test_a_distilled_fine_tuned_model_is_one_compiled_call(folder):
    model = DEXA(encoder=str(folder), fine_tune=True, **SMALL).fit(TEXTS, LABELS).predictor_
    student = distilled(model, [*TEXTS, *TEXTS], n_threads=1).model
    assert isinstance(student.scorer, BlendedScorer)
    assert student.predict("red wine", k=1)[0][0] == "drink"


def test_what_it_takes_is_estimated(folder):
    some = Workload(
        n_points=1000,
        n_features=1000,
        n_labels=100,
        n_nonzero=10**5,
        n_label_pairs=2000,
        n_word_entries=10**4,
        n_label_entries=3000,
    )
    machine = Machine(rate=1e11, n_threads=1)
    read, tuned = (costs_of(DEXA(encoder=str(folder), fine_tune=on)) for on in (False, True))
    assert 0 < read.stages(some, machine)["encoder"] < tuned.stages(some, machine)["encoder"]
    patient = costs_of(DEXA(encoder=str(folder), fine_tune=True, patience=3))
    assert 0 < read.memory(some) < tuned.memory(some) < patient.memory(some)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("mode", MODES, ids=["as it is", "fine-tuned"])
def test_cuda_learns_as_the_cpu(folder, mode):
    model = DEXA(encoder=str(folder), device="cuda", **SMALL, **mode).fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) == 1.0


@pytest.mark.parametrize("recipe", [DEXA, XTransformer])
@pytest.mark.parametrize(
    "settings", [{"fine_tune_learning_rate": 0.1}, {"texts_at_once": 3}, {"clip": 0.5}]
)
def test_settings_of_fine_tuning_are_refused_without_it(folder, recipe, settings):
    message = f"{next(iter(settings))} would change nothing: the transformer is not trained"
    with pytest.raises(InputError, match=message):
        recipe(encoder=str(folder), n_threads=1, **settings).fit(TEXTS, LABELS)
    recipe(encoder=str(folder), fine_tune=True, **settings).check()


def test_a_transformer_starts_from_no_word_vectors(folder, tmp_path):
    path = tmp_path / "words.vec"
    path.write_text("red 1 2\nold 2 1\n")
    with pytest.raises(InputError, match="word_vectors would change nothing: a transformer has"):
        NGAME(encoder=str(folder), word_vectors=str(path)).check()
    NGAME(word_vectors=str(path)).check()


def test_checkpoints_of_another_transformer_are_not_gone_on_with(folder, tmp_path, caplog):
    own = tmp_path / "encoder"
    shutil.copytree(folder, own)
    settings = {"encoder": str(own), **SMALL}
    data = Dataset.of(TEXTS, LABELS)
    place = {"checkpoint_folder": tmp_path / "kept", "checkpoint_seconds": 0.0}
    with pytest.raises(KeyboardInterrupt):
        DEXA(**settings).fit_dataset(data, callbacks=[Killer(1)], **place)
    weights = load_file(own / "model.safetensors")
    save_file({name: 1.5 * array for name, array in weights.items()}, own / "model.safetensors")
    caplog.clear()
    changed = DEXA(**settings).fit_dataset(data, **place)
    assert "Resuming" not in caplog.text
    fresh = DEXA(**settings).fit_dataset(data)
    found = [model.predict_topk(TEXTS)[1] for model in (changed, fresh)]
    np.testing.assert_allclose(*found, rtol=1e-5)
