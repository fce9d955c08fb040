"""Transformers by their names on the Hugging Face hub; its cache is made here, nothing fetched."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from dataclasses import replace
from fnmatch import fnmatch

import numpy as np
import pytest

import longtail
from command_line import refused, run, write_lines
from longtail.costs.transformer import layers_and_width_of
from longtail.errors import InputError, MissingExtraError
from longtail.estimators.limits import check_settings
from longtail.features.hub import FILES, download_transformer, transformer_folder
from longtail.features.transformer import Transformer, check_folder, read_transformer
from longtail.recipes.ngame import NGAME
from longtail.recipes.xtransformer import XTransformer
from small_transformer import BERT, LABELS, TEXTS, saved

hub = pytest.importorskip("huggingface_hub", reason="needs the extra 'transformers'")
from huggingface_hub import constants, errors  # noqa: E402 - only where it is there

NAME, COMMIT, OTHER = "acme/tiny", "1" * 40, "2" * 40
SMALL = {"leaf_size": 1, "n_threads": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT with random weights, as a repository may have it: with more than is read."""
    transformers = pytest.importorskip("transformers", reason="needs 'transformers'")
    path = saved(tmp_path_factory.mktemp("repository"), transformers.BertConfig(**BERT))
    (path / "pytorch_model.bin").write_bytes(b"pickled")
    (path / "README.md").write_text("A model card.")
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of the hub."""
    path = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(path))
    return path


@pytest.fixture
def fetched(cache, monkeypatch):
    """What was asked of the hub, which has the repositories that are put into `of`."""
    return Hub(cache, monkeypatch)


class Hub:
    """Stands for the hub: puts what is asked for into the cache, or raises an error."""

    def __init__(self, cache, monkeypatch):
        self.asked, self.of, self.error = [], {}, None
        self._cache, self._cached = cache, hub.snapshot_download
        monkeypatch.setattr(hub, "snapshot_download", self.snapshot_download)
        monkeypatch.setattr(hub, "hf_hub_download", self.hf_hub_download)

    def snapshot_download(self, model, *, revision, allow_patterns, local_files_only):
        if local_files_only:
            return self._cached(
                model, revision=revision, allow_patterns=allow_patterns, local_files_only=True
            )
        self.asked.append((model, revision))
        if self.error is not None:
            raise self.error
        files = [path.name for path in self.of[model].iterdir()]
        wanted = [name for name in files if any(fnmatch(name, p) for p in allow_patterns)]
        return str(put(self._cache, self.of[model], model, revision or "main", files=wanted))

    def hf_hub_download(self, model, file, *, revision):
        assert not (self.of[model] / file).exists()
        raise error_of("RemoteEntryNotFoundError")


def put(cache, folder, model=NAME, revision="main", commit=COMMIT, files=FILES):
    """Put files into the cache in the layout of the hub's library, and return where they are."""
    place = cache / f"models--{model.replace('/', '--')}"
    snapshot = place / "snapshots" / commit
    snapshot.mkdir(parents=True, exist_ok=True)
    for name in files:
        shutil.copy(folder / name, snapshot)
    (place / "refs").mkdir(exist_ok=True)
    (place / "refs" / revision).write_text(commit)
    return snapshot


class TestInTheCache:
    def test_trains_the_model_that_the_folder_trains(self, folder, cache, tmp_path):
        put(cache, folder)
        named = XTransformer(encoder=NAME, **SMALL).fit(TEXTS, LABELS)
        named.save(tmp_path / "model")
        shutil.rmtree(cache)  # the model needs it no more
        loaded = longtail.load(tmp_path / "model")
        of_folder = XTransformer(encoder=str(folder), **SMALL).fit(TEXTS, LABELS)
        for given, expected in zip(
            loaded.predict_topk(TEXTS), of_folder.predict_topk(TEXTS), strict=True
        ):
            np.testing.assert_array_equal(given, expected)

    def test_is_read_wherever_a_folder_is(self, folder, cache):
        files = [put(cache, folder) / name for name in FILES]
        assert Transformer(folder=NAME).files_read() == files
        assert layers_and_width_of(NAME) == (2, 16)
        weights, expected = (read_transformer(name, 8).weights for name in (NAME, folder))
        assert weights.keys() == expected.keys()
        assert all(np.array_equal(weights[key], expected[key]) for key in weights)
        check_settings(NGAME(encoder=NAME))
        assert download_transformer(NAME) == files[0].parent

    def test_may_be_of_a_revision(self, folder, cache):
        main, older = put(cache, folder), put(cache, folder, revision="v1", commit=OTHER)
        assert main != older
        assert transformer_folder(NAME) == main
        assert transformer_folder(f"{NAME}@v1") == older
        assert transformer_folder(f"{NAME}@{COMMIT}") == main
        with pytest.raises(InputError, match=r"`hf download acme/tiny .* --revision v2`"):
            transformer_folder(f"{NAME}@v2")

    def test_a_folder_of_that_name_comes_first(self, folder, cache, tmp_path, monkeypatch):
        put(cache, folder)
        monkeypatch.chdir(tmp_path)
        shutil.copytree(folder, NAME)
        assert transformer_folder(NAME).resolve() == tmp_path / NAME

    def test_checkpoints_are_known_by_the_files(self, folder, cache, tmp_path):
        put(cache, folder)
        named = XTransformer(encoder=NAME, further_encoders=("bag", NAME))
        further = ("bag", str(folder))
        of_folder = replace(named, encoder=str(folder), further_encoders=further)
        assert named.identity() == of_folder.identity()
        other = shutil.copytree(folder, tmp_path / "other")
        config = json.loads((other / "config.json").read_text())
        (other / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 1e-3}))
        assert named.identity() != replace(named, encoder=str(other)).identity()
        bags = replace(named, further_encoders=(NAME, "bag"))
        assert named.identity() != bags.identity()


class TestNotInTheCache:
    def test_says_how_to_fetch_it(self, fetched, cache, tmp_path, capsys):
        train = write_lines(tmp_path / "train.jsonl", ["no JSON, but that is not read yet"])
        command = ["train", train, "--model", tmp_path / "model", "--recipe", "xtransformer"]
        message = refused(capsys, *command, "--set", f"encoder={NAME}")
        assert f"acme/tiny is no folder here, and the Hugging Face cache, {cache}," in message
        assert "config.json, tokenizer.json, model.safetensors not found. Nothing is" in message
        assert "add --download to the command" in message
        assert "`hf download acme/tiny config.json tokenizer.json model.safetensors`" in message
        assert "longtail.features.hub.download_transformer('acme/tiny')" in message
        assert not fetched.asked

    def test_a_part_of_it_is_not_enough(self, folder, fetched, cache):
        put(cache, folder, files=["config.json"])
        with pytest.raises(InputError, match=r": tokenizer\.json, model\.safetensors not found"):
            check_folder(NAME)
        fetched.of[NAME] = folder
        assert sorted(path.name for path in download_transformer(NAME).iterdir()) == sorted(FILES)
        check_folder(NAME)

    @pytest.mark.parametrize(
        "name", ["minilm", "./acme/tiny", "acme/tiny/x", "~/acme", "ac--me/x", "acme/tiny@", "a/.b"]
    )
    def test_other_names_are_folders(self, name, monkeypatch):
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # nor is it looked for
        assert str(download_transformer(name)) == name.removeprefix("./")
        with pytest.raises(InputError, match=r"is not a transformer folder: config\.json, .* as o"):
            check_folder(name)

    def test_a_name_that_the_library_refuses_is_not_there(self, cache):
        with pytest.raises(InputError, match="is no folder here"):
            check_folder("acme/tiny.git")

    def test_says_which_library_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        with pytest.raises(MissingExtraError, match=r"huggingface_hub.*train,transformers"):
            check_folder(NAME)


class TestAskedFor:
    def train(self, tmp_path, *settings):
        lines = ({"text": t, "labels": ls} for t, ls in zip(TEXTS, LABELS, strict=True))
        train = write_lines(tmp_path / "train.jsonl", map(json.dumps, lines))
        command = f"train {shlex.quote(train)} --model {shlex.quote(str(tmp_path / 'model'))} "
        command += "--recipe xtransformer --set leaf_size=1 n_threads=1"
        return [*shlex.split(command), *settings]

    def test_is_fetched_once(self, folder, fetched, tmp_path, capsys):
        fetched.of = {NAME: folder, "acme/other": folder}
        encoders = [f"encoder={NAME}@v1", "further_encoders=bag,acme/other"]
        command = self.train(tmp_path, *encoders)
        assert run(capsys, *command, "--download")[0] == 0
        assert fetched.asked == [(NAME, "v1"), ("acme/other", None)]
        names = {path.name for path in transformer_folder("acme/other").iterdir()}
        assert names == set(FILES)  # nothing pickled, and nothing that is not read
        assert run(capsys, *command)[0] == 0
        assert run(capsys, *command, "--download")[0] == 0
        assert len(fetched.asked) == 2

    def test_folders_and_bags_need_no_hub(self, folder, fetched, tmp_path, capsys):
        check_settings(XTransformer(encoder=str(folder)))
        code, _, said = run(capsys, *self.train(tmp_path, "epochs=1", "--download"))
        assert code == 0
        assert "--download fetches transformers, and this recipe reads none" in said
        assert not fetched.asked
        assert download_transformer(folder) == folder

    def test_pickled_weights_are_refused(self, folder, fetched, tmp_path, capsys):
        pickled = shutil.copytree(folder, tmp_path / "pickled")
        (pickled / "model.safetensors").unlink()
        fetched.of[NAME] = pickled
        message = refused(capsys, *self.train(tmp_path, f"encoder={NAME}", "--download"))
        assert f"{NAME} of the Hugging Face hub has no model.safetensors" in message
        assert "never from pickled files (*.bin)" in message

    @pytest.mark.parametrize(
        ("kind", "message"),
        [
            ("RepositoryNotFoundError", "there is no such model, or it is private. Check the name"),
            ("GatedRepoError", "its owner wants to be asked first. Do so at https://huggingface"),
            ("RevisionNotFoundError", "it has no revision 'v1'. Look at https://huggingface.co/a"),
            ("LocalEntryNotFoundError", "Name or service not known. Mend that and run it again, w"),
            ("OSError", "No space left on device. Mend that and run it again, which fe"),
        ],
    )
    def test_says_why_it_cannot_be_fetched(self, fetched, tmp_path, capsys, kind, message):
        fetched.error = error_of(kind)
        said = refused(capsys, *self.train(tmp_path, f"encoder={NAME}@v1", "--download"))
        assert f"{NAME} cannot be fetched from the Hugging Face hub: {message}" in said

    @pytest.mark.parametrize("is_there_in_part", [False, True])
    def test_offline_mode_is_told(self, folder, cache, monkeypatch, is_there_in_part):
        if is_there_in_part:
            put(cache, folder, files=["config.json"])
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # the real library, which must not
        with pytest.raises(InputError, match=r"cannot be fetched .*HF_HUB_OFFLINE"):
            download_transformer(NAME)


def error_of(kind):
    """Return an error as the hub's library raises it."""
    if kind == "OSError":
        return OSError("No space left on device")
    error = getattr(errors, kind)
    found = error.__new__(error, "404 Client Error. (Request ID: Root=1)")
    if kind == "LocalEntryNotFoundError":
        found.__cause__ = ConnectionError("Name or service not known")
    return found
