"""Many requests at once, asked in-process."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing, contextmanager

import pytest

from asking import Asked
from longtail.recipes.parabel import Parabel
from longtail.serve import Limits, app
from longtail.serve.runner import _ServedApplication


@contextmanager
def asked_at(path, **limits):
    """Yield an application that has loaded its model."""
    with closing(Asked(app(path, limits=Limits(**limits)))) as asked:
        assert asked("GET", "/healthz")[0] == 200
        yield asked


@pytest.fixture(params=["default", "other recipe"])
def short(request, text_model_path, tmp_path):
    """A model's folder, and a request with a short text that is not answered in the loop."""
    if request.param == "default":
        return text_model_path, {"text": "red wine", "allowed": ["drink"]}
    texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    Parabel(n_learners=1, n_threads=1).fit(texts, labels).save(tmp_path / "model")
    return tmp_path / "model", {"text": "red wine"}


def test_short_texts_need_no_place(short):
    path, request = short
    with asked_at(path, waiting=1) as asked:
        assert [status for status, *_ in asked.together([request] * 40)] == [200] * 40


def test_short_texts_do_not_wait_for_long_ones(short, monkeypatch):
    path, request = short
    with asked_at(path) as asked:
        model, ended = asked.application.model.current.predictor, []
        predict = model.predict

        def slow(texts, *rest, **restriction):
            is_short = list(texts) != ["wine"]
            time.sleep(0 if is_short else 0.3)
            ended.append(is_short)
            return predict(texts, *rest, **restriction)

        monkeypatch.setattr(model, "predict", slow)
        answers = asked.together([{"texts": ["wine"]}] * 4 + [request])
    assert [status for status, *_ in answers] == [200] * 5
    assert ended == [True, False, False, False, False]


def test_short_texts_are_not_waited_for_without_end(short, monkeypatch):
    path, request = short
    with asked_at(path, seconds=0.2) as asked:
        model = asked.application.model.current.predictor
        monkeypatch.setattr(model, "predict", lambda *_, **__: time.sleep(0.15) or [[]])
        status, _, said = asked.together([request] * 6)[-1]
        assert (status, b"or try again later" in said) == (503, True)


def test_what_a_stopping_server_has_no_time_for_is_a_sentence(text_model_path, monkeypatch):
    async def stopped():
        live = asyncio.create_task(
            asked.application({"type": "lifespan"}, asyncio.Event().wait, None)
        )
        asking = asyncio.create_task(asked.posted({"texts": ["wine"]}))
        await asyncio.sleep(0.1)
        for task in (live, asking):  # as uvicorn does
            task.cancel()
        await live
        return await asking

    with closing(Asked(_ServedApplication(text_model_path, limits=Limits()))) as asked:
        assert asked("GET", "/healthz")[0] == 200
        model = asked.application.model.current.predictor
        monkeypatch.setattr(model, "predict", lambda *_, **__: time.sleep(0.5))
        status, _, said = asked.runner.run(stopped())
        assert (status, b"The server is stopping." in said) == (503, True)
