"""Models that come, go and change while they are served."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import shutil
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asking import Asked, refusal, until
from longtail import load
from longtail.model_folder import ModelFolder
from longtail.recipes.parabel import Parabel
from longtail.serve import Limits, app, live_model
from longtail.serve.application import Application
from longtail.serve.live_model import LiveModel


@pytest.fixture
def quick_looks(monkeypatch):
    monkeypatch.setattr("longtail.serve.application.SECONDS_BETWEEN_LOOKS", 0.02)


@pytest.mark.usefixtures("quick_looks")
def test_a_replaced_folder_is_loaded_and_a_broken_one_is_not(text_model_path, tmp_path, caplog):
    folder = tmp_path / "model"
    shutil.copytree(text_model_path, folder)
    asked = Asked(app(folder))
    first = asked("GET", "/healthz")[2]["model"]
    texts, names = ["red wine", "old car"] * 10, [["beverage"], ["machine"]] * 10
    Parabel(n_learners=1, n_threads=1).fit(texts, names).save(folder)
    until(asked, lambda: asked("GET", "/healthz")[2]["model"] != first)
    assert asked("POST", "/predict", {"text": "red wine", "k": 1})[2]["labels"] == ["beverage"]
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    until(asked, lambda: asked("GET", "/healthz")[2]["status"] == "outdated")
    assert "not a longtail model folder" in asked("GET", "/healthz")[2]["problem"]
    assert asked("POST", "/predict", {"text": "red wine", "k": 1})[2]["labels"] == ["beverage"]
    assert "longtail_model_ready 0.0" in asked("GET", "/metrics")[2].decode()
    shutil.rmtree(folder)
    shutil.copytree(text_model_path, folder)
    until(asked, lambda: asked("GET", "/healthz")[2]["status"] == "ok")
    assert "drink" in asked("POST", "/predict", {"text": "red wine"})[2]["labels"]
    asked.close()
    assert len([r for r in caplog.records if "Could not load" in r.message]) <= 3  # once each


def test_what_is_replaced_while_it_is_loaded_keeps_its_own_name(
    text_model_path, tmp_path, monkeypatch
):
    folder = tmp_path / "model"
    shutil.copytree(text_model_path, folder)
    own = ModelFolder.open(folder).checksum
    live = LiveModel(folder)
    newer = load(folder).without_labels(["drink"])
    monkeypatch.setattr(live_model, "warm_up", lambda _: newer.save(folder))
    live.load()
    assert live.current.predictor.n_labels == newer.n_labels + 1
    assert own.startswith(live.current.identity)
    assert live.has_changed
    monkeypatch.undo()
    live.load()
    assert ModelFolder.open(folder).checksum.startswith(live.current.identity)
    assert live.current.predictor.n_labels == newer.n_labels


def test_a_manifest_as_long_and_as_old_is_another_one(text_model_path, tmp_path, caplog):
    folder = tmp_path / "model"
    shutil.copytree(text_model_path, folder)
    live = LiveModel(folder)
    with caplog.at_level(logging.INFO, "longtail.serve"):
        live.load()
    assert caplog.messages == [f"Loaded {folder}: 11 labels, model {live.current.identity}."]
    assert not live.has_changed
    shutil.copy2(folder / "manifest.json", folder / "another.json")
    (folder / "another.json").replace(folder / "manifest.json")
    assert live.has_changed


def test_a_link_that_is_pointed_at_another_model_is_followed(text_model_path, tmp_path):
    for name, mark in (("1", "one"), ("2", "two")):
        load(text_model_path).with_names({"drink": mark}).save(tmp_path / name)
    live = LiveModel(tmp_path / "model")
    for name, mark in (("1", "one"), ("2", "two"), ("1", "one")):
        (tmp_path / "next").symlink_to(name)
        (tmp_path / "next").replace(tmp_path / "model")
        assert live.has_changed
        live.load()
        assert mark in list(live.current.predictor.label_space.names)
        assert not live.has_changed


def test_a_model_with_a_damaged_file_does_not_replace_the_one_that_answers(tmp_path):
    texts, names = ["red wine", "old car"] * 10, [["beverage"], ["machine"]] * 10
    Parabel(n_learners=1, n_threads=1).fit(texts, names).save(tmp_path)
    served = LiveModel(tmp_path)
    served.load()
    path = tmp_path / "tree.safetensors"
    whole = path.read_bytes()
    path.unlink()  # never write into a served file
    path.write_bytes(whole[:-8] + b"\xff" * 8)
    served.load()
    assert "tree.safetensors is damaged" in served.problem
    assert served.current.predictor.predict("red wine", 1)[0][0] == "beverage"


@pytest.mark.usefixtures("quick_looks")
def test_without_a_model_a_sentence_is_served_until_there_is_one(text_model_path, tmp_path):
    asked = Asked(app(tmp_path / "model"))
    status, sentence = refusal(asked("POST", "/predict", {"text": "wine"}))
    assert (status, "There is no model folder at" in sentence) == (503, True)
    status, _, health = asked("GET", "/healthz")
    assert (status, health["status"]) == (503, "unavailable")
    assert asked("GET", "/")[0] == 200
    shutil.copytree(text_model_path, tmp_path / "model")
    until(asked, lambda: asked("GET", "/healthz")[0] == 200)
    asked.close()


def hung_up(path, monkeypatch, before_load, until_stopped):
    """Return an application that lived: was started, did so before each load, and was stopped."""
    application = Application(path, limits=Limits(), reload_on_hangup=True)
    load_model, ending, said = LiveModel.load, [], []

    def load(self):
        before_load(self.n_loads)
        load_model(self)

    async def receive():
        if not said:
            return {"type": "lifespan.startup"}
        await until_stopped(application.model)
        return {"type": "lifespan.shutdown"}

    async def send(message):
        said.append(message["type"])

    monkeypatch.setattr(LiveModel, "load", load)
    before = signal.signal(signal.SIGHUP, lambda *_: ending.append(True))
    try:
        asyncio.run(asyncio.wait_for(application({"type": "lifespan"}, receive, send), 30))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert not ending
    return application


def test_hang_ups_while_the_model_is_loaded_load_it_once_more(text_model_path, monkeypatch):
    def hang_up_often(n_loads):
        for _ in range(20 if n_loads == 0 else 0):
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.005)  # so that the loop sees each

    async def loaded_again(model):
        while model.n_loads < 2:
            await asyncio.sleep(0.01)

    application = hung_up(text_model_path, monkeypatch, hang_up_often, loaded_again)
    assert application.model.n_loads == 2


def test_a_server_that_stops_begins_no_load_for_a_hang_up(text_model_path, monkeypatch):
    loading, stopped = threading.Event(), threading.Event()

    def wait_for_the_end(n_loads):
        if n_loads == 1:
            loading.set()
            stopped.wait(10)

    async def hang_up_twice(_):
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.to_thread(loading.wait, 10)
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.05)
        asyncio.get_running_loop().call_later(0.1, stopped.set)

    application = hung_up(text_model_path, monkeypatch, wait_for_the_end, hang_up_twice)
    assert application.model.n_loads == 2  # that at the start, and that under way


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_damaged_folder_answers_or_says_what_is_wrong(text_model_path, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged") / "model"
    shutil.copytree(text_model_path, folder)
    file = data.draw(st.sampled_from(sorted(folder.iterdir())))
    content = bytearray(file.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=20)):
        content[place] = data.draw(st.integers(0, 255))
    file.write_bytes(content[: data.draw(st.integers(0, 2 * len(content)))])
    asked = Asked(app(folder))
    status = asked("GET", "/healthz")[0]
    assert status in {200, 503}
    for path in ("/predict", "/explain"):
        assert asked("POST", path, {"text": "red wine, old car"})[0] == status
    asked.close()


def test_a_model_of_features_is_not_served(tmp_path):
    rows = np.eye(40, dtype=np.float32)
    Parabel(n_learners=1, n_threads=1).fit(rows, [["a"], ["b"]] * 20).save(tmp_path / "model")
    asked = Asked(app(tmp_path / "model"))
    status, message = refusal(asked("POST", "/predict", {"text": "wine"}))
    assert (status, "ready-made features" in message) == (503, True)
    assert asked("GET", "/healthz")[0] == 503
    asked.close()


def test_a_folder_that_cannot_be_used_is_not_loaded_every_second(tmp_path, monkeypatch):
    model = LiveModel(tmp_path)
    model.load()
    assert model.problem is not None
    assert not model.has_changed
    (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")
    assert model.has_changed
    model.load()
    assert not model.has_changed
    monkeypatch.setattr(live_model, "time", SimpleNamespace(monotonic=lambda: math.inf))
    assert model.has_changed  # once in a while, in case it has become usable unseen
