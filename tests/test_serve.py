"""The ASGI application, asked in-process."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import math
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asking import Asked, refusal, until
from longtail import load
from longtail.errors import InputError
from longtail.serve import Limits, answers, app
from longtail.serve.body import read_body
from longtail.serve.live_model import LiveModel
from longtail.serve.messages import Refusal
from longtail.serve.metrics import Metrics
from longtail.serve.openapi import openapi_document

SMALL = Limits(body_bytes=2_000, texts=3, characters=40, k=7, names=2, seconds=2)


@pytest.fixture(scope="module")
def model(text_model_path):
    return load(text_model_path)


@pytest.fixture(scope="module")
def ask(text_model_path):
    asked = Asked(app(text_model_path, limits=SMALL))
    yield asked
    asked.close()


def test_one_text_is_answered_as_the_model_does(ask, model):
    status, headers, answer = ask("POST", "/predict", {"text": "red wine", "k": 3})
    assert status == 200
    assert int(headers["content-length"]) > 0
    expected = model.predict("red wine", k=3)
    assert answer["labels"] == [name for name, _ in expected]
    assert answer["scores"] == pytest.approx([score for _, score in expected], abs=1e-6)
    assert answer["milliseconds"] > 0


def test_several_texts_are_answered_in_order(ask, model):
    texts = ["red wine", "", "an old car"]
    status, _, answer = ask("POST", "/predict", {"texts": texts, "k": 2, "threshold": 0.1})
    assert status == 200
    expected = model.predict(texts, k=2, threshold=0.1)
    assert [a["labels"] for a in answer["answers"]] == [[n for n, _ in row] for row in expected]
    assert answer["answers"][1] == {"labels": [], "scores": []}
    assert ask("POST", "/predict", {"texts": []})[2]["answers"] == []


def test_answers_can_be_held_to_labels(ask):
    held = ask("POST", "/predict", {"text": "red wine", "allowed": ["vehicle", "white"]})[2]
    assert set(held["labels"]) == {"vehicle", "white"}
    masked = ask("POST", "/predict", {"text": "red wine", "masked": ["drink"]})[2]
    assert "drink" not in masked["labels"]
    several = ask("POST", "/predict", {"texts": ["red wine"], "allowed": ["vehicle"]})[2]
    assert several["answers"][0]["labels"] == ["vehicle"]


def test_names_that_the_model_lacks_are_left_out_and_told(ask, model):
    asked = {"text": "red wine", "k": 3}
    plain = ask("POST", "/predict", asked)[2]
    assert "unknown" not in plain
    status, _, masked = ask("POST", "/predict", asked | {"masked": ["gone", "drink"]})
    assert (status, masked["unknown"]) == (200, ["gone"])
    known = model.predict("red wine", k=3, masked=["drink"])
    assert masked["labels"] == [name for name, _ in known]
    for path, more in (("/predict", {}), ("/explain", {}), ("/predict", {"texts": ["red wine"]})):
        request = {"k": 3} | (more or {"text": "red wine"})
        status, _, held = ask("POST", path, request | {"allowed": ["gone", "vehicle"]})
        assert (status, held["unknown"]) == (200, ["gone"])
        assert held.get("answers", [held])[0]["labels"] == ["vehicle"]
    both = ask("POST", "/predict", asked | {"allowed": ["drink", "gone"], "masked": ["gone", "x"]})
    assert (both[2]["labels"], both[2]["unknown"]) == (["drink"], ["gone", "x"])
    only = ask("POST", "/predict", asked | {"masked": ["gone"]})[2]
    assert (only["labels"], only["unknown"]) == (plain["labels"], ["gone"])


def test_answers_can_be_explained(ask):
    status, _, answer = ask("POST", "/explain", {"text": "old wine", "k": 2, "threshold": 0.01})
    assert status == 200
    explained = answer["explanation"]["labels"]
    assert [one["label"] for one in explained] == answer["labels"]
    assert {word["word"] for word in explained[0]["words"]} <= {"old", "wine"}
    near = answer["explanation"]["near_points"][0]
    assert near["labels"]
    assert near["row"] % 8 == 5  # "old car on a road" is the sixth of eight texts, five times over
    same = ask("POST", "/predict", {"text": "old wine", "k": 2, "threshold": 0.01, "explain": True})
    assert same[2]["explanation"] == answer["explanation"]


def test_numbers_of_an_explanation_are_rounded_as_the_scores_are(ask):
    none = ask("POST", "/explain", {"text": "old wine", "k": 2, "threshold": 1})[2]
    assert none["labels"] == none["explanation"]["labels"] == []
    answer = ask("POST", "/explain", {"text": "old wine", "k": 2})[2]
    labels, near = answer["explanation"]["labels"], answer["explanation"]["near_points"]
    assert [one["probability"] for one in labels] == answer["scores"]
    effects = [word["effect"] for one in labels for word in one["words"]]
    similarities = [point["similarity"] for point in near]
    assert [round(number, 6) for number in effects + similarities] == effects + similarities
    assert max(similarities) <= 1


def test_who_sends_no_k_gets_five_labels_or_as_many_as_are_allowed(ask, text_model_path):
    assert len(ask("POST", "/predict", {"text": "old wine"})[2]["labels"]) == 5
    assert len(ask("POST", "/predict", {"text": "old wine", "k": 6.0})[2]["labels"]) == 6
    asked = Asked(app(text_model_path, limits=Limits(k=3)))
    assert len(asked("POST", "/predict", {"text": "old wine"})[2]["labels"]) == 3
    assert len(asked("POST", "/predict", {"texts": ["old wine"]})[2]["answers"][0]["labels"]) == 3
    assert len(asked("POST", "/explain", {"text": "old wine"})[2]["labels"]) == 3
    schemas = asked("GET", "/openapi.json")[2]["components"]["schemas"]
    said = schemas["PredictRequest"]["properties"]["k"]
    assert said["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 3}
    assert said["default"] == 3
    assert b'data-most="3"' in asked("GET", "/")[2]
    asked.close()


@pytest.mark.parametrize(
    "limit", [{"k": 0}, {"k": 10_001}, {"seconds": math.nan}, {"seconds": math.inf}, {"texts": -1}]
)
def test_limits_that_cannot_be_are_refused(limit):
    with pytest.raises(InputError, match=f"The limit `{next(iter(limit))}` must be"):
        Limits(**limit)


def test_a_packed_body_is_told_from_a_plain_one(ask):
    packed, plain = [(b"content-encoding", b"br")], [(b"content-encoding", b"identity")]
    status, sentence = refusal(ask("POST", "/predict", b"\x0b", headers=packed))
    assert (status, "'br'" in sentence) == (415, True)
    assert ask("POST", "/predict", {"text": "wine"}, headers=plain)[0] == 200


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"", 400, "The body is empty. Send JSON such as"),
        (b" \n", 400, "The body is empty"),
        (b"\xff\xfe", 400, "begins with a byte order mark"),
        (b'\xef\xbb\xbf{"text": "a"}', 400, "begins with a byte order mark"),
        (b'{"text": "\xff"}', 400, "not JSON in UTF-8"),
        (b'{"text": "\\ud800"}', 400, r"holds \ud800, half of a pair"),
        (b'{"text": "wine\\udc00 wine"}', 400, r"holds \udc00, half of a pair"),
        (b'{"text": "\\ud83d\\ude00", "k": 0}', 400, "`k` must be"),
        (gzip.compress(b'{"text": "wine"}', mtime=0), 415, "Content-Encoding is 'gzip'"),
        (b"[1]", 400, "Expected `object`, got `array`"),
        ({}, 400, "Send either `text` or `texts`"),
        ({"text": "a", "texts": ["b"]}, 400, "Send either `text` or `texts`"),
        ({"text": 3}, 400, "Expected `str | null`, got `int` - at `$.text`"),
        ({"texts": ["a", None]}, 400, "at `$.texts[1]`"),
        ({"text": "a", "top_k": 3}, 400, "unknown field `top_k`. There are: `text`, `texts`, `k`"),
        ({"text": "a", "top" * 500: 3}, 400, "...`. There are: `text`, `texts`, `k`"),
        ({"text": "a", "k": 0}, 400, "`k` must be between 1 and 7, got 0"),
        ({"text": "a", "k": 8}, 400, "`k` must be between 1 and 7, got 8"),
        ({"text": "a", "k": 10**30}, 400, "got a very large number"),
        (b'{"text": "a", "k": 1' + b"0" * 1900 + b"}", 400, "k"),
        ({"text": "a", "k": 1e30}, 400, "got a very large number"),
        ({"text": "a", "k": 2.5}, 400, "`k` must be a whole number, got 2.5"),
        ({"text": "a", "k": True}, 400, "Expected `int | float | null`, got `bool`"),
        ({"text": "a", "threshold": 1.5}, 400, "`threshold` must be between 0 and 1"),
        (b'{"text": "a", "threshold": NaN}', 400, "not JSON"),
        ({"text": "a", "allowed": []}, 400, "No label is allowed"),
        ({"text": "a", "allowed": ["x"]}, 400, "None of the 11 labels is named 'x'"),
        ({"text": "a", "allowed": ["x", "y"]}, 400, "None of the 11 labels is named 'x'"),
        ({"text": "a", "allowed": ["x" * 1500]}, 400, "xx'. Names must match exactly"),
        ({"text": "a", "masked": ["x"] * 3}, 413, "3 names in `masked`; at most 2"),
        ({"texts": ["a"], "explain": True}, 400, "Only one text"),
        ({"text": "a" * 41}, 413, "41 characters in `text`; at most 40"),
        ({"texts": ["a" * 41]}, 413, "41 characters in one of `texts`; at most 40"),
        ({"texts": ["a"] * 4}, 413, "4 texts; at most 3"),
        (b" " * 2001, 413, "longer than 2,000 bytes"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(ask, body, status, sentence):
    found, said = refusal(ask("POST", "/predict", body))
    assert (found, sentence in said) == (status, True), said
    assert len(said) < 320  # whatever came


def test_explaining_has_the_same_limits(ask):
    assert refusal(ask("POST", "/explain", {"texts": ["a"]}))[0] == 400
    assert refusal(ask("POST", "/explain", {"text": "a", "allowed": ["x"]}))[0] == 400


def test_a_body_may_come_in_parts_and_end_early(ask):
    status, _, answer = ask("POST", "/predict", parts=[b'{"te', b'xt": "wine"}', b""])
    assert (status, bool(answer["labels"])) == (200, True)
    too_long = [b'{"text": "' + b"a" * 1500] * 3
    assert refusal(ask("POST", "/predict", parts=too_long))[0] == 413
    assert refusal(ask("POST", "/predict", parts=[b"x" * 1500] * 100))[0] == 413
    assert ask("POST", "/predict", parts=[None])[0] is None
    assert ask("POST", "/predict", parts=[b"{", None])[0] is None


def test_a_body_that_does_not_come_is_not_waited_for(text_model_path):
    asked = Asked(app(text_model_path, limits=Limits(seconds=0.05)))
    status, sentence = refusal(asked("POST", "/predict", parts=[]))
    assert (status, "within 0.05 seconds" in sentence) == (408, True)
    asked.close()


def test_other_paths_and_methods_are_refused(ask):
    status, sentence = refusal(ask("GET", "/../etc/passwd"))
    assert (status, "passwd" in sentence) == (404, False)
    assert refusal(ask("GET", "/predict"))[0] == 405
    status, headers, _ = ask("DELETE", "/healthz")
    assert (status, headers["allow"]) == (405, "GET, HEAD")


def test_heads_have_no_body(ask):
    status, headers, body = ask("HEAD", "/healthz", raw=True)
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 0


def test_health_and_metrics(ask):
    status, _, health = ask("GET", "/healthz")
    assert status == 200
    facts = {"status": "ok", "problem": None, "recipe": "longtail", "n_labels": 11}
    assert facts.items() <= health.items()
    assert len(health["model"]) == 16
    ask("GET", "/<script>")
    status, headers, text = ask("GET", "/metrics")
    assert headers["content-type"].startswith("text/plain")
    lines = text.decode().splitlines()
    assert "longtail_model_ready 1.0" in lines
    assert "longtail_model_loads_total 1.0" in lines
    names = [line.rpartition(" ")[0] for line in lines]
    assert 'longtail_requests_total{path="other",status="404"}' in names
    assert 'longtail_request_seconds_bucket{le="0.001",path="/predict"}' in names
    assert b"script" not in text


def test_the_page_may_load_nothing_from_elsewhere(ask):
    status, headers, html = ask("GET", "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    text = html.decode()
    assert "http://" not in text
    assert "https://" not in text
    assert "innerHTML" not in text


def test_it_can_be_mounted(ask):
    assert ask("GET", "/labels/healthz", root_path="/labels")[0] == 200
    status, headers, _ = ask("GET", "/labels", root_path="/labels", raw=True)
    assert (status, headers["location"]) == (307, "/labels/")
    _, headers, _ = ask(
        "GET",
        "/\N{LATIN SMALL LETTER E WITH ACUTE}",
        root_path="/\N{LATIN SMALL LETTER E WITH ACUTE}",
    )
    assert headers["location"] == "/%C3%A9/"
    assert ask("POST", "/labels/predict", {"text": "wine"}, root_path="/labels")[0] == 200
    assert ask("GET", "/openapi.json", root_path="/labels")[2]["servers"] == [{"url": "/labels"}]
    assert ask("GET", "/labelshealthz", root_path="/labels")[0] == 404


def test_a_path_that_a_proxy_leaves_there_is_taken_away(ask):
    # As uvicorn has it: its own root path before what it was asked for.
    assert ask("GET", "/labels/labels/healthz", root_path="/labels")[0] == 200
    status, headers, _ = ask("GET", "/labels/labels", root_path="/labels", raw=True)
    assert (status, headers["location"]) == (307, "/labels/")
    assert ask("GET", "/labels/labels/labels/healthz", root_path="/labels")[0] == 404


@pytest.mark.parametrize("leaves", [False, True], ids=["taken away", "left"])
def test_a_root_path_may_be_called_as_one_of_ours(ask, leaves):
    before = "/predict" * (1 + leaves)
    wine = {"text": "wine"}
    assert ask("POST", f"{before}/predict", wine, root_path="/predict")[0] == 200
    assert ask("POST", f"{before}/explain", wine, root_path="/predict")[0] == 200
    assert ask("GET", f"{before}/", root_path="/predict")[0] == 200


def test_it_starts_and_stops_with_its_server(text_model_path):
    application = pickle.loads(pickle.dumps(app(text_model_path)))  # noqa: S301  # as to a worker
    said = []

    async def live():
        messages = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive():
            return {"type": next(messages)}

        async def send(message):
            said.append(message["type"])

        await application({"type": "lifespan"}, receive, send)

    asyncio.run(live())
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert application.model.current is not None


def test_several_loops_may_ask_first(text_model_path, monkeypatch):
    application, load_model = app(text_model_path), LiveModel.load

    def slow(*args, **kwargs):
        time.sleep(0.2)  # so that all of them ask before there is a model
        return load_model(*args, **kwargs)

    monkeypatch.setattr(LiveModel, "load", slow)

    def ask_in_a_loop(_):
        asked = Asked(application)
        try:
            return asked("GET", "/healthz")[0]
        finally:
            asked.runner.close()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask_in_a_loop, range(4))) == [200] * 4
    assert application.model.n_loads == 1


def test_other_connections_than_http_are_closed(ask):
    said = []

    async def send(message):
        said.append(message["type"])

    ask.runner.run(ask.application({"type": "websocket"}, None, send))
    assert said == ["websocket.close"]


# --------------------------------------------------------------------------------- load and harm


def test_work_that_takes_too_long_is_given_up_and_places_are_counted(text_model_path, monkeypatch):
    asked = Asked(app(text_model_path, limits=Limits(seconds=0.05, waiting=2)))
    asked("GET", "/healthz")
    model = asked.application.model.current.predictor
    monkeypatch.setattr(model, "predict", lambda *_, **__: time.sleep(0.5))
    for _ in range(2):
        status, sentence = refusal(asked("POST", "/predict", {"texts": ["wine"]}))
        assert (status, "longer than 0.05 seconds" in sentence) == (503, True)
    status, sentence = refusal(asked("POST", "/predict", {"texts": ["wine"]}))
    assert (status, "busy" in sentence) == (503, True)
    monkeypatch.undo()
    until(asked, lambda: asked("POST", "/predict", {"texts": ["wine"]})[0] == 200)
    asked.close()


def test_a_batch_is_given_up_once_nobody_waits_for_it(text_model_path, monkeypatch):
    limits = Limits(seconds=0.05, waiting=1)
    asked = Asked(app(text_model_path, limits=limits))
    asked("GET", "/healthz")
    seen = []

    def slow(texts, *_, **__):
        seen.append(len(texts))
        time.sleep(0.2)
        return [[]] * len(texts)

    monkeypatch.setattr(asked.application.model.current.predictor, "predict", slow)
    monkeypatch.setattr(answers, "TEXTS_AT_ONCE", 2)
    assert refusal(asked("POST", "/predict", {"texts": ["wine"] * 100}))[0] == 503
    until(asked, lambda: asked.application._threads._places.acquire(blocking=False))
    assert sum(seen) < 10
    asked.close()


@pytest.mark.parametrize(
    "what",
    [{"texts": ["wine"] * 100}, {"text": "wine " * 300}, {"text": "wine", "masked": ["fast"]}],
    ids=["batch", "long", "short"],
)
def test_what_is_asked_by_a_client_that_has_left_is_given_up(text_model_path, monkeypatch, what):
    asked = Asked(app(text_model_path, limits=Limits(seconds=30, waiting=3)))
    asked("GET", "/healthz")
    seen = []

    def slow(texts, *_, **__):
        seen.append(texts)
        time.sleep(0.2)
        return [[]] * len(texts)

    monkeypatch.setattr(asked.application.model.current.predictor, "predict", slow)
    monkeypatch.setattr(answers, "TEXTS_AT_ONCE", 2)
    started = time.monotonic()
    for _ in range(3):  # two are begun, the third waits for a thread
        assert asked("POST", "/predict", what, then=[{"type": "http.disconnect"}])[0] is None
    until(asked, lambda: asked.application._threads._places._value == 3)
    assert time.monotonic() - started < 5
    assert len(seen) < 10
    counted = asked("GET", "/metrics")[2].decode()
    assert 'longtail_requests_total{path="/predict",status="499"} 3.0' in counted
    asked.close()


def test_a_server_that_says_more_than_a_body_is_borne_with(ask):
    more = {"type": "http.request", "body": b"more", "more_body": True}
    status, _, answer = ask("POST", "/predict", {"texts": ["wine"]}, then=[more] * 3)
    assert (status, len(answer["answers"])) == (200, 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=9), max_size=30), st.integers(1, 9), st.integers(1, 30))
def test_blocks_of_a_batch_are_the_batch(texts, n_texts, n_characters):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "TEXTS_AT_ONCE", n_texts)
        patch.setattr(answers, "CHARACTERS_AT_ONCE", n_characters)
        blocks = list(answers._blocks(texts))
    assert [text for block in blocks for text in block] == texts
    for block in blocks:
        assert 1 <= len(block) <= n_texts
        assert len(block) == 1 or sum(map(len, block)) <= n_characters


def test_a_fault_of_ours_is_a_sentence_and_what_was_sent_is_not_logged(
    text_model_path, monkeypatch, caplog
):
    asked = Asked(app(text_model_path))
    asked("GET", "/healthz")

    def fail(text, *_, **__):
        raise RuntimeError(text)

    monkeypatch.setattr(asked.application.model.current.predictor, "predict", fail)
    with caplog.at_level(logging.INFO, "longtail.serve"):
        status, sentence = refusal(asked("POST", "/predict", {"text": "secret\nline"}))
    assert (status, "secret" in sentence) == (500, False)
    assert "500" in DOCUMENT["paths"]["/predict"]["post"]["responses"]
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text
    asked.close()


# ------------------------------------------------------------------------------------------ fuzz


def values_of(schema, components):
    """Return a strategy of values that a schema allows, and now and then of any others."""
    words = st.text(max_size=9)
    single = st.none() | st.booleans() | st.integers() | st.floats() | words
    anything = single | st.lists(single, max_size=3) | st.dictionaries(words, single, max_size=3)
    if "$ref" in schema:
        return values_of(components[schema["$ref"].rpartition("/")[2]], components)
    if "anyOf" in schema:
        fitting = st.one_of([values_of(one, components) for one in schema["anyOf"]])
    elif schema["type"] == "object":
        parts = {name: values_of(one, components) for name, one in schema["properties"].items()}
        fitting = st.fixed_dictionaries({}, optional={**parts, "else": anything})
    elif schema["type"] == "array":
        items = values_of(schema["items"], components)
        fitting = st.lists(items, max_size=schema.get("maxItems", 4) + 1)
    else:
        fitting = {
            "string": words | st.sampled_from(["drink", "red wine", "old car", "x" * 50]),
            "integer": st.integers(-1, 9) | st.integers(),
            "number": st.floats(0, 1) | st.floats(),
            "boolean": st.booleans(),
            "null": st.none(),
        }[schema["type"]]
    return st.one_of(*[fitting] * 9, anything)


DOCUMENT = openapi_document(SMALL)
SCHEMAS = DOCUMENT["components"]["schemas"]
REQUESTS = values_of({"$ref": "#/components/schemas/PredictRequest"}, SCHEMAS)


def test_the_document_describes_what_is_there(ask):
    assert ask("GET", "/openapi.json")[2] == json.loads(json.dumps(DOCUMENT))
    for path, methods in DOCUMENT["paths"].items():
        for method in methods:
            assert ask(method.upper(), path, {"text": "wine"})[0] == 200, path
    properties = DOCUMENT["components"]["schemas"]["PredictRequest"]["properties"]
    assert properties["k"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 7}
    assert properties["k"]["default"] == 5


@settings(max_examples=200, deadline=None)
@given(path=st.sampled_from(["/predict", "/explain"]), body=REQUESTS)
def test_no_request_makes_the_server_fail(ask, path, body):
    try:
        encoded = json.dumps(body).encode()
    except (UnicodeEncodeError, ValueError):
        return
    answer = ask("POST", path, encoded)
    described = DOCUMENT["paths"][path]["post"]["responses"]
    assert str(answer[0]) in described
    if answer[0] != 200:
        assert refusal(answer)[0] in {400, 413}


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=60))
def test_no_bytes_make_the_server_fail(ask, body):
    assert ask("POST", "/predict", body)[0] in {400, 415}


@settings(max_examples=50, deadline=None)
@given(path=st.text(max_size=20), method=st.sampled_from(["GET", "POST", "PUT", "OPTIONS", "X"]))
def test_no_path_makes_the_server_fail(ask, path, method):
    assert ask(method, "/" + path, b"{}")[0] in {200, 400, 404, 405}


@pytest.mark.parametrize(("n_sent", "n_taken"), [(8, 8), (50, 9)])
def test_of_a_body_that_is_too_long_the_rest_is_read_unless_it_never_ends(n_sent, n_taken):
    n_read = []

    async def receive():
        n_read.append(1)
        return {"type": "http.request", "body": b"0123456789", "more_body": len(n_read) < n_sent}

    with pytest.raises(Refusal, match="longer than 10 bytes"):
        asyncio.run(read_body(receive, Limits(body_bytes=10)))
    assert len(n_read) == n_taken


@pytest.mark.parametrize("length", [b"11", b"99999999", b"9" * 5000])
def test_of_a_body_that_is_announced_as_too_long_nothing_is_read(length):
    async def receive():
        pytest.fail("it was asked for")

    with pytest.raises(Refusal, match="longer than 10 bytes") as refused:
        asyncio.run(read_body(receive, Limits(body_bytes=10), [(b"content-length", length)]))
    assert (refused.value.status, refused.value.headers) == (413, ())


@pytest.mark.parametrize("length", [b"10", b"-11", b"1e9", b"", b"\xb2" * 9])
def test_what_announces_no_such_length_is_read(length):
    async def receive():
        return {"type": "http.request", "body": b"0123456789"}

    headers = [(b"content-length", length)]
    body = asyncio.run(read_body(receive, Limits(body_bytes=10), headers))
    assert body == b"0123456789"


def test_a_text_that_is_explained_is_one(text_model_path):
    asked = Asked(app(text_model_path, limits=SMALL))
    try:
        assert asked("POST", "/explain", {"text": "old wine"})[0] == 200
        assert b"\nlongtail_texts_total 1.0\n" in asked("GET", "/metrics")[2]
    finally:
        asked.close()


def test_texts_are_counted_and_models_that_were_loaded():
    metrics = Metrics()
    metrics.count_texts(3, 0.1)
    metrics.note_model(is_ready=True, n_new_loads=1)
    metrics.note_model(is_ready=False, n_new_loads=0)  # one that could not be
    lines = metrics.text().decode().splitlines()
    assert {"longtail_texts_total 3.0", "longtail_model_loads_total 1.0"} <= {*lines}
