"""A model laid out for serving: its storage types, its folder, and damage to it."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
import weakref
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import longtail
from longtail import LongtailClassifier
from longtail.blend.relations import RelationSizes
from longtail.blend.score_network import ScoreNetwork
from longtail.cli import main
from longtail.compiled.blended import compiled_of
from longtail.compiled.expanded import expanded
from longtail.compiled.parts import answerer_from, dimension_of
from longtail.compiled.scorer import CompiledScorer
from longtail.data.bags import Bags
from longtail.errors import InputError, ModelFolderError
from longtail.kernels.answer import answer_bags
from longtail.kernels.answer_text import MOST_CODES, answer_text
from longtail.kernels.arrays import read_only
from longtail.model_folder import ModelFolder, write_model_folder
from longtail.recipes.parabel import Parabel
from longtail.row_store import (
    token_vectors_of,
)
from longtail.scorers.protocols import HasVectors

# Answers of half numbers are other compiled code, which takes as long as all the rest here.
KINDS = ["float32", pytest.param("float16", marks=pytest.mark.thorough), "int8"]
WORDS = ["wine", "beer", "cars", "buses", "roses", "oaks", "trains", "ferns"]


def texts_and_labels():
    random = np.random.default_rng(0)
    pairs = [random.choice(len(WORDS), 2) for _ in range(240)]
    texts = [f"{WORDS[a]} {WORDS[b]} noise{random.integers(30)}" for a, b in pairs]
    return texts, [sorted({WORDS[a], WORDS[b]}) for a, b in pairs]


TEXTS, NAMES = texts_and_labels()


@pytest.fixture(scope="module")
def model():
    settings = {"dimension": 16, "n_threads": 1, "storage": "float32"}
    return LongtailClassifier(**settings).fit(TEXTS, NAMES).predictor_


@pytest.fixture(scope="module", params=KINDS)
def folder(model, request, tmp_path_factory):
    path = tmp_path_factory.mktemp("compiled") / request.param
    model.compressed(request.param).save(path)
    return path


def test_every_storage_type_is_loaded_and_answers_alike(model, folder):
    loaded = longtail.load(folder)
    assert isinstance(loaded.scorer, CompiledScorer)
    assert loaded.scorer.storage == folder.name
    ids, probabilities = loaded.predict_topk(TEXTS, 3)
    expected, own = model.predict_topk(TEXTS, 3)
    assert (ids[:, 0] == expected[:, 0]).mean() > 0.9
    np.testing.assert_allclose(probabilities[:, 0], own[:, 0], atol=0.1)
    if folder.name == "float32":
        np.testing.assert_array_equal(ids, expected)
        np.testing.assert_array_equal(probabilities, own)


def test_one_text_is_its_row_of_a_batch_to_the_bit(folder):
    loaded = longtail.load(folder)
    edges = ["wine" + "-" * (n - 8) + "cars" for n in (MOST_CODES - 1, MOST_CODES, MOST_CODES + 1)]
    texts = [*TEXTS[:40], "", "???", "wine " * 400, "naïve Straße wine", *edges]
    ids, probabilities = loaded.predict_topk(texts, 4, n_threads=2)
    for i, text in enumerate(texts):
        one, its = loaded.predict_topk([text], 4)
        np.testing.assert_array_equal(one[0], ids[i])
        np.testing.assert_array_equal(its[0], probabilities[i])
        names = [
            (loaded.label_space.name(j), p)
            for j, p in zip(ids[i], probabilities[i], strict=True)
            if j >= 0
        ]
        assert loaded.predict(text, 4) == names


def test_a_text_is_answered_in_one_call_as_long_as_there_is_room_for_it(model, monkeypatch):
    lengths, answer = [], CompiledScorer.answer_text

    def noted(scorer, vocabulary, room, codes, *rest):
        lengths.append(len(codes))
        return answer(scorer, vocabulary, room, codes, *rest)

    monkeypatch.setattr(CompiledScorer, "answer_text", noted)
    for length in (MOST_CODES, MOST_CODES + 1):
        model.predict("wine".ljust(length, "-"))
    assert lengths == [MOST_CODES]


def test_more_labels_than_there_are(folder):
    ids, probabilities = longtail.load(folder).predict_topk(["wine"], 20)
    assert (ids[0, len(WORDS) :] == -1).all()
    assert np.isneginf(probabilities[0, len(WORDS) :]).all()


def test_its_vectors_are_those_that_were_stored(model, folder):
    own, scorer = expanded(model.scorer), longtail.load(folder).scorer
    assert isinstance(own, HasVectors)
    assert isinstance(scorer, HasVectors)
    assert scorer.dimension == own.dimension == 16
    tolerance = {"float32": 0, "float16": 1e-3, "int8": 0.2}[folder.name]
    np.testing.assert_allclose(
        scorer.vectors_of_labels(), own.vectors_of_labels(), atol=tolerance / 4
    )
    np.testing.assert_allclose(
        scorer.vectors_of_tokens(), own.vectors_of_tokens(), atol=tolerance * 2
    )


def test_a_label_without_a_vector_has_zeros(model):
    scorer = model.compressed("float32").scorer
    first, *others = scorer.parts.heads
    rows = read_only(np.where(np.arange(len(WORDS)) == 3, -1, first.row_of_label), np.int32)
    heads = (first._replace(row_of_label=rows), *others)
    changed = CompiledScorer(scorer.parts._replace(heads=heads), scorer.sizes, scorer.related)
    assert np.flatnonzero(~changed.vectors_of_labels().any(axis=1)).tolist() == [3]


def test_a_network_of_other_sources_is_refused(model):
    with pytest.raises(InputError, match=r"not what \d sources have"):
        model.compressed("float32").scorer.with_network(ScoreNetwork.of_source(0, 2))


def test_saved_again_it_is_the_same(folder, tmp_path):
    longtail.load(folder).save(tmp_path / "again")
    first, second = ModelFolder.open(folder), ModelFolder.open(tmp_path / "again")
    assert first.manifest == second.manifest
    for name in first.arrays:
        np.testing.assert_array_equal(first.arrays[name], second.arrays[name])


def test_taken_apart_and_laid_out_again_it_is_the_same(model):
    network = replace(expanded(model.scorer).network, level=np.ones(1, np.float32))
    scorer = model.scorer.with_network(network).with_further_scales(4.0, 20.0)
    scorer = CompiledScorer(scorer.parts, scorer.sizes, RelationSizes(n_matches=3))
    again = CompiledScorer.of(expanded(scorer))
    assert again.config() == scorer.config()
    arrays = again.to_arrays()
    for name, array in scorer.to_arrays().items():
        np.testing.assert_array_equal(arrays[name], array, err_msg=name)
    assert scorer.parts.is_read.any()
    assert scorer.parts.tail_weights.any()


def test_what_nobody_else_needs_is_freed_while_it_is_laid_out(model):
    scorer = expanded(model.scorer)
    arrays = CompiledScorer.of(scorer, "int8").to_arrays()
    large = [weakref.ref(part) for part in (scorer.relations, scorer.linear)]
    assert None not in [part() for part in large]
    last = CompiledScorer.of(scorer, "int8", is_last=True)
    assert [part() for part in large] == [None, None]
    for name, array in last.to_arrays().items():
        np.testing.assert_array_equal(arrays[name], array, err_msg=name)


def test_arrays_of_other_dimensions_are_refused(model):
    scorer = model.scorer
    for name, array in scorer.to_arrays().items():
        with pytest.raises(InputError, match=f"'{name}' is .* of {array.ndim + 1} dimensions"):
            CompiledScorer.from_parts(scorer.config(), scorer.to_arrays() | {name: array[None]})


def test_more_than_two_thousand_million_weights_begin_beyond_int32(model):
    arrays = model.scorer.to_arrays()
    long = arrays["linear/rare.starts"].astype(np.int64)
    arrays |= {"linear/rare.starts": long}
    parts = answerer_from(arrays, [1.0] * 3, (1.0, 0.0), has_relations=True)
    assert parts.linear.rare.starts.dtype == np.int64


def test_a_pickle_answers_alike(folder):
    loaded = longtail.load(folder)
    again = pickle.loads(pickle.dumps(loaded))  # noqa: S301  # our own bytes
    assert again.predict(TEXTS[0]) == loaded.predict(TEXTS[0])


def test_features_instead_of_texts():
    features = np.eye(8, dtype=np.float32)[np.arange(80) % 8] + 0.1
    ids = [[i % 8] for i in range(80)]
    own = LongtailClassifier(dimension=8, n_threads=1).fit(features, ids).predictor_
    smaller = own.compressed("int8")
    assert (smaller.predict_topk(features, 1)[0] == own.predict_topk(features, 1)[0]).mean() > 0.9


def test_code_compiled_for_labels_with_names_answers_for_those_without(model):
    ids = np.unique([name for names in NAMES for name in names], return_inverse=True)[1]
    settings = {"dimension": 16, "n_threads": 1, "storage": "float32"}
    lengths = np.cumsum([len(names) for names in NAMES])[:-1]
    unnamed = LongtailClassifier(**settings).fit(TEXTS, np.split(ids, lengths)).predictor_
    assert len(unnamed.scorer.parts.heads) < len(model.scorer.parts.heads)
    model.predict(TEXTS[0])
    compiled = set(answer_text.signatures)
    assert unnamed.predict(TEXTS[0], k=1)
    assert set(answer_text.signatures) == compiled


def test_what_cannot_be_compressed_says_so(model):
    with pytest.raises(InputError, match="storage must be one of"):
        model.compressed("int4")
    own = Parabel(n_threads=1).fit(TEXTS, NAMES).predictor_
    with pytest.raises(InputError, match="Only a model of the default recipe"):
        own.compressed()
    with pytest.raises(InputError, match="storage must be one of"):
        LongtailClassifier(storage="int4").fit(TEXTS, NAMES)


def test_code_is_compiled_once_for_a_model_wherever_it_comes_from(model, tmp_path):
    assert model.predict(TEXTS[0]) == model.predict(TEXTS)[0]
    model.save(tmp_path / "model")
    kernels = answer_bags, answer_text
    n_compiled = [len(kernel.signatures) for kernel in kernels]
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    for other in (longtail.load(tmp_path / "model"), copied, copy.deepcopy(model)):
        assert other.predict(TEXTS[:3]) == model.predict(TEXTS[:3])
        assert other.predict(TEXTS[0]) == model.predict(TEXTS[0])
        assert [len(kernel.signatures) for kernel in kernels] == n_compiled


@pytest.mark.parametrize("dtype", KINDS)
def test_what_is_kept_so_already_stays_as_it_is(model, dtype, tmp_path, capsys):
    own = model.compressed(dtype)
    again = own.compressed(dtype)
    assert again.predict(TEXTS) == own.predict(TEXTS)
    own.save(tmp_path / "own")
    assert main(["compress", f"{tmp_path}/own", f"{tmp_path}/again", "--storage", dtype]) == 0
    err = capsys.readouterr().err
    assert f"already keeps its numbers as {dtype}" in err
    assert "--test" not in err  # a copy loses nothing
    for path in (tmp_path / "own").glob("*.safetensors"):
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_a_model_that_would_only_grow_is_warned_of(model, tmp_path, capsys):
    model.compressed("float16").save(tmp_path / "own")
    for dtype in ("float32", "int8"):
        assert main(["compress", f"{tmp_path}/own", f"{tmp_path}/{dtype}", "--storage", dtype]) == 0
        error = capsys.readouterr().err
        expected = (
            "own keeps its numbers as float16. As float32 they take more room and stay rounded"
        )
        assert (expected in error) == (dtype == "float32")


def test_half_numbers_come_back_as_they_were_saved(model, tmp_path):
    own = model.compressed("float16")
    own.save(tmp_path / "own")
    loaded = longtail.load(tmp_path / "own").scorer.to_arrays()
    assert "uint16" in {array.dtype.name for array in loaded.values()}
    for name, array in own.scorer.to_arrays().items():
        np.testing.assert_array_equal(loaded[name], array)


def test_only_a_transformer_is_distilled(model, tmp_path, capsys):
    model.save(tmp_path / "own")
    (tmp_path / "t.txt").write_text("red wine\n" * 30)
    words = ["distill", f"{tmp_path}/own", f"{tmp_path}/out", "--texts", f"{tmp_path}/t.txt"]
    assert main(words) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("longtail: error: Only a model with a transformer can be distilled")
    assert "this one, of longtail, has none: dexa, ngame" in error


def test_a_compressed_model_can_be_compressed_further(model):
    twice = model.compressed("float16").compressed("int8").scorer.parts
    once = model.compressed("int8").scorer.parts
    step = float(once.tokens.scales.max())  # rounded twice, a number may be one code away
    np.testing.assert_allclose(
        token_vectors_of(twice.tokens, dimension_of(twice)),
        token_vectors_of(once.tokens, dimension_of(once)),
        atol=1.01 * step,
        rtol=0,
    )


def test_where_walks_start_must_fit(model):
    scorer = model.compressed("float32").scorer
    for name, wrong in {"homes": np.zeros(1, np.int32), "bias": np.zeros(1, np.float32)}.items():
        arrays = scorer.to_arrays() | {f"labels_index/{name}": wrong}
        with pytest.raises(InputError, match="belong together"):
            CompiledScorer.from_parts(scorer.config(), arrays)


def without_some_arrays(manifest, arrays):
    return manifest, {name: array for name, array in arrays.items() if "/rare." not in name}


def without_biases_to_search_by(manifest, arrays):
    return manifest, {name: array for name, array in arrays.items() if "_index/bias" not in name}


def with_plain_neighbours(manifest, arrays):
    name = "labels_index/neighbours"
    return manifest, arrays | {name: arrays[name].astype(np.int32)}


def without_a_setting(manifest, arrays):
    return {name: value for name, value in manifest.items() if name != "reads"}, arrays


def without_a_scale(manifest, arrays):
    scorer = {name: value for name, value in manifest["scorer"].items() if name != "further_scale"}
    return manifest | {"scorer": scorer}, arrays


@pytest.mark.parametrize(
    "older",
    [
        without_some_arrays,
        without_biases_to_search_by,
        with_plain_neighbours,
        without_a_setting,
        without_a_scale,
    ],
)
def test_a_folder_of_a_layout_before_the_release_says_what_to_do(model, tmp_path, older):
    model.save(tmp_path / "model")
    folder = ModelFolder.open(tmp_path / "model")
    manifest, arrays = older(folder.manifest, dict(folder.arrays))
    write_model_folder(tmp_path / "older", manifest=manifest, arrays=arrays)
    with pytest.raises(ModelFolderError, match="train it again"):
        longtail.load(tmp_path / "older")


def test_a_folder_that_lacks_an_array_may_be_of_an_earlier_version(model, tmp_path):
    model.save(tmp_path / "model")
    folder = ModelFolder.open(tmp_path / "model")
    arrays = {name: folder.arrays[name] for name in folder.arrays if "entry_codes" not in name}
    write_model_folder(tmp_path / "older", manifest=folder.manifest, arrays=arrays)
    with pytest.raises(ModelFolderError, match=r"index/entry_codes'\. It may be of an earlier"):
        longtail.load(tmp_path / "older")


def test_the_command_compresses_and_says_what_is_lost(model, tmp_path, capsys):
    model.save(tmp_path / "model")
    rows = [{"text": x, "labels": y} for x, y in zip(TEXTS, NAMES, strict=True)]
    test = tmp_path / "test.jsonl"
    test.write_text("\n".join(map(json.dumps, rows)))
    own, out = str(tmp_path / "model"), str(tmp_path / "small")
    assert main(["compress", own, out, "--storage", "int8", "--test", str(test)]) == 0
    shown = capsys.readouterr().out
    assert "P@1" in shown
    assert "int8" in shown
    assert main(["compress", own, f"{out}-too", "--test", "missing.jsonl"]) == 2
    assert not (tmp_path / "small-too").exists()  # the test set is read before anything is done
    assert main(["inspect", out]) == 0
    assert "in int8" in capsys.readouterr().out
    assert main(["inspect", out, "--label", "wine"]) == 0
    assert longtail.load(out).predict("wine beer", 1)


# ------------------------------------------------------------------------------------- damage


def answers_or_refuses(arrays, config, bags):
    """Make a scorer of damaged arrays and ask it; wrong answers are right, crashes are not."""
    try:
        scorer = CompiledScorer.from_parts(config, arrays)
    except (InputError, KeyError):
        return
    ids, _ = scorer.top_k(bags, 5)
    assert ids.max() < len(scorer.parts.commonness)


def test_ids_out_of_bounds_are_passed_over(model):
    scorer = model.compressed("int8").scorer
    bags, config = model.bags(TEXTS[:20]), scorer.config()
    for name, array in scorer.to_arrays().items():
        for wrong in (-1, -(2**31), 2**31 - 1, 7, 100):
            if array.dtype not in (np.int32, np.int64) or not array.size:
                continue
            damaged = array.copy()
            damaged.flat[:: max(1, array.size // 50)] = wrong
            answers_or_refuses(scorer.to_arrays() | {name: damaged}, config, bags)


def test_a_score_that_is_no_number_is_0(model):
    scorer, bags = model.scorer, model.bags(TEXTS[:5])
    arrays, config = scorer.to_arrays(), scorer.config()
    names = [name for name in arrays if name.endswith("tail_weights") or "network/" in name]
    assert len(names) > 1
    for name in names:
        damaged = np.full_like(arrays[name], np.nan)
        ids, scores = CompiledScorer.from_parts(config, arrays | {name: damaged}).top_k(bags, 3)
        np.testing.assert_array_equal(ids >= 0, scorer.top_k(bags, 3)[0] >= 0)
        assert np.isfinite(scores[ids >= 0]).all()


@pytest.mark.parametrize("wrong", [-1, 2**31 - 1, 100])
def test_no_damaged_model_is_taken_apart(model, wrong):
    """To change labels or to compress takes all out, where an answer passes over what is wrong."""
    scorer = model.compressed("int8").scorer
    arrays, config = scorer.to_arrays(), scorer.config()
    names = [name for name in arrays if name.startswith(("linear/", "relations/"))]
    for name in names:
        if name.endswith((".starts", ".columns")) and arrays[name].size > 16:
            damaged = arrays[name].copy()
            damaged.flat[damaged.size // 2] = np.array(wrong).astype(damaged.dtype)
            damaged = CompiledScorer.from_parts(config, arrays | {name: damaged})
            with suppress(InputError):
                assert expanded(damaged).top_k(model.bags(TEXTS[:5]), 3)[0].shape == (5, 3)


@pytest.mark.parametrize(
    "command", [["compress"], ["labels", "remove"]], ids=["compress", "labels"]
)
def test_damage_gets_no_new_checksum(folder, tmp_path, capsys, command):
    place, out = tmp_path / "damaged", tmp_path / "out"
    shutil.copytree(folder, place)
    data = bytearray((place / "linear.safetensors").read_bytes())
    data[-1] ^= 1
    (place / "linear.safetensors").write_bytes(data)
    name = [] if command == ["compress"] else ["wine"]
    assert main([*command, str(place), *name, str(out)]) == 2
    assert "linear.safetensors is damaged: its checksum differs" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("dtype", KINDS)
def test_random_bytes_in_any_array(model, dtype):
    random = np.random.default_rng(0)
    scorer = model.compressed(dtype).scorer
    bags, config = model.bags(TEXTS[:20]), scorer.config()
    for name, array in scorer.to_arrays().items():
        noise = np.frombuffer(random.bytes(array.nbytes), array.dtype).reshape(array.shape)
        if array.dtype != bool:
            answers_or_refuses(scorer.to_arrays() | {name: noise}, config, bags)


def test_arrays_of_other_lengths_are_refused(model):
    scorer = model.compressed("int8").scorer
    arrays = scorer.to_arrays()
    for name, array in arrays.items():
        if name == "labels/popular" or name.startswith("labels_index/entries"):
            continue  # any number of them will do
        if name in ("points_index/entries", "points_index/label_ids") or not len(array):
            continue
        with pytest.raises((InputError, KeyError)):
            CompiledScorer.from_parts(scorer.config(), arrays | {name: array[:-1]})


@pytest.mark.parametrize("size", [10**9, -1])
def test_sizes_that_no_memory_has_room_for_are_refused(model, size):
    scorer = model.compressed("int8").scorer
    for group in ("sizes", "related"):
        for name in scorer.config()[group]:
            config = scorer.config()
            config[group][name] = size
            with pytest.raises(InputError, match=f"{name} must be between 0 and 1,000,000, got"):
                CompiledScorer.from_parts(config, scorer.to_arrays())


@pytest.mark.parametrize("part", ["vectorizer", "label_space", "scorer", "train_label_counts"])
def test_a_folder_of_parts_of_two_models_is_refused(model, part, tmp_path):
    wordy = [f"{text} of {number}" for number, text in enumerate(TEXTS)]
    other = LongtailClassifier(dimension=16, n_threads=1).fit(wordy, [[w] for w in wordy])
    model.replaced(**{part: getattr(other.predictor_, part)}).save(tmp_path / "model")
    with pytest.raises(ModelFolderError, match="do not fit each other: they are for"):
        longtail.load(tmp_path / "model")


def test_no_damaged_folder_crashes(folder, tmp_path):
    """Flip bytes and cut files: an answer or a sentence, whatever is hit."""
    random = np.random.default_rng(1)
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    place = tmp_path / "damaged"
    place.mkdir()
    n_refused = 0
    for attempt in range(60):
        name = sorted(contents)[attempt % len(contents)]
        data = bytearray(contents[name])
        if attempt % 3 == 0:
            del data[random.integers(len(data)) :]
        else:
            for position in random.integers(0, len(data), 20):
                data[position] = random.integers(256)
        for other, content in contents.items():
            (place / other).write_bytes(bytes(data) if other == name else content)
        try:
            longtail.load(place).predict("wine and roses")
        except ModelFolderError:
            n_refused += 1
    assert n_refused > 20  # of the files that are cut, if of no others


def test_names_that_are_no_text_are_told_as_far_as_they_are(folder, tmp_path):
    place = tmp_path / "damaged"
    shutil.copytree(folder, place)
    opened = ModelFolder.open(folder)
    for file, array in (("labels", "names.buffer"), ("vectorizer", "token_buffer")):
        names = opened.arrays[f"{file}/{array}"].tobytes()
        path = place / f"{file}.safetensors"
        path.write_bytes(path.read_bytes().replace(names, b"\xff" * len(names)))
    damaged = longtail.load(place)
    assert {*"".join(name for name, _ in damaged.predict("wine and roses"))} == {"\ufffd"}
    assert {*damaged.explain("wine and roses", 1).labels[0].label} == {"\ufffd"}
    assert {*damaged.vectorizer.token(0)} == {"\ufffd"}


def test_bags_are_read_as_they_are(model):
    bags = Bags.one(np.zeros(0, np.int32), np.zeros(0, np.float32))
    ids, scores = model.compressed("int8").scorer.top_k(bags, 3)
    assert ids.tolist() == [[-1, -1, -1]]
    assert np.isneginf(scores).all()


@pytest.mark.parametrize("row", [-1, 10**9, 2**31 - 2])
def test_near_points_of_a_damaged_file_have_no_labels(model, row):
    scorer = compiled_of(model.scorer)
    assert len(scorer.labels_of_point(0))
    assert not len(scorer.labels_of_point(row))
    labels = scorer.parts.point_labels.copy()
    labels[:] = 10**9
    damaged = CompiledScorer(
        scorer.parts._replace(point_labels=read_only(labels, np.int32)),
        scorer.sizes,
        scorer.related,
    )
    assert not len(damaged.labels_of_point(0))
