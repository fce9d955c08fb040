"""The OpenAPI document, held against what the server takes and answers."""

from __future__ import annotations

import math

import pytest

from asking import Asked
from longtail.serve import Limits, app
from longtail.serve.openapi import openapi_document

LIMITS = Limits(texts=3, characters=40, k=7, names=2)
DOCUMENT = openapi_document(LIMITS)
SCHEMAS = DOCUMENT["components"]["schemas"]
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": int,
}


def fits(value, schema):
    """Tell whether a value is as a schema says, of which the document uses few words."""
    if "$ref" in schema:
        return fits(value, SCHEMAS[schema["$ref"].rpartition("/")[2]])
    return (
        ("type" not in schema or isinstance(value, TYPES[schema["type"]]))
        and ("anyOf" not in schema or any(fits(value, one) for one in schema["anyOf"]))
        and ("oneOf" not in schema or sum(fits(value, one) for one in schema["oneOf"]) == 1)
        and has_fitting_parts(value, schema)
    )


def has_fitting_parts(value, schema):
    """Tell whether a value's size and parts are as a schema says."""
    if isinstance(value, str):
        return len(value) <= schema.get("maxLength", math.inf)
    if isinstance(value, list):
        is_sized = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf)
        return is_sized and all(fits(part, schema.get("items", {})) for part in value)
    if isinstance(value, dict):
        parts = schema.get("properties", {})
        is_known = schema.get("additionalProperties", True) or set(value) <= set(parts)
        is_whole = set(schema.get("required", ())) <= set(value)
        return is_known and is_whole and all(fits(v, parts.get(n, {})) for n, v in value.items())
    return value is None or (
        schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)
    )


@pytest.fixture(scope="module")
def ask(text_model_path):
    asked = Asked(app(text_model_path, limits=LIMITS))
    yield asked
    asked.close()


def schemas_of(path):
    """Return the schemas of a path's request and of its answer."""
    question = DOCUMENT["paths"][path]["post"]
    contents = question["requestBody"], question["responses"]["200"]
    return [content["content"]["application/json"]["schema"] for content in contents]


@pytest.mark.parametrize(
    "body",
    [
        {"text": "wine"},
        {"texts": ["wine", "car"]},
        {"text": "wine", "explain": True, "k": 2, "threshold": 0.5},
        {"text": "wine", "texts": None, "allowed": ["drink"], "masked": ["red"]},
        {"text": "wine", "allowed": ["drink", "gone"]},
        {"text": None, "texts": []},
        dict.fromkeys(("texts", "k", "threshold", "allowed", "masked")) | {"text": "wine"},
        {"text": "wine", "explain": None},
        {"text": "wine", "threshold": 1.5},
        {},
        {"text": None},
        {"text": "wine", "texts": ["wine"]},
        {"text": "wine", "k": 8},
        {"text": "wine", "other": 1},
        {"texts": ["wine"] * 4},
        {"text": "a" * 41},
        {"text": "wine", "allowed": []},
        {"text": "wine", "masked": ["red"] * 3},
    ],
)
def test_what_is_described_is_what_is_taken_and_answered(ask, body):
    for path in ("/predict", "/explain"):
        if path == "/explain" and body.keys() & {"texts", "explain"}:
            continue
        request, answer = schemas_of(path)
        status, _, said = ask("POST", path, body)
        assert (status == 200) == fits(body, request), (path, said)
        assert fits(said, answer if status == 200 else SCHEMAS["ErrorMessage"])


def test_an_explained_answer_is_described_as_one(ask):
    explained = schemas_of("/predict")[1]["anyOf"][0]
    assert explained == schemas_of("/explain")[1]
    assert fits(ask("POST", "/predict", {"text": "wine", "explain": True})[2], explained)
    assert not fits(ask("POST", "/predict", {"text": "wine"})[2], explained)


def test_explaining_asks_for_one_text():
    assert fits({"text": "wine", "k": 3}, schemas_of("/explain")[0])
    for body in ({}, {"texts": ["wine"]}, {"text": "wine", "texts": ["wine"]}, {"text": None}):
        assert not fits(body, schemas_of("/explain")[0])


def test_descriptions_are_not_indented():
    for schema in SCHEMAS.values():
        assert "\n " not in schema["description"]


def test_responses_say_what_they_are():
    described = DOCUMENT["paths"]["/metrics"]["get"]["responses"]["200"]["description"]
    assert described == "Counts and times, for Prometheus."


def test_examples_in_python_are_left_out():
    assert not any(">>>" in schema["description"] for schema in SCHEMAS.values())
    said = SCHEMAS["Explanation"]["description"]
    assert said.startswith("What `explain` returns")
    assert said.endswith("to search in.")


def test_the_address_is_quoted(ask):
    servers = ask("GET", "/openapi.json", root_path="/my étiquettes")[2]["servers"]
    assert servers == [{"url": "/my%20%C3%A9tiquettes"}]
