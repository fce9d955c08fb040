"""The OpenAPI document, made from the messages themselves."""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING, Any

import msgspec

from longtail import __version__
from longtail.serve.messages import (
    Answer,
    Answers,
    ErrorMessage,
    ExplainedAnswer,
    Health,
    PredictRequest,
)

if TYPE_CHECKING:
    from longtail.serve.limits import Limits

__all__ = ["openapi_document"]

MESSAGES = (PredictRequest, Answer, Answers, ExplainedAnswer, Health, ErrorMessage)
REFUSALS = {
    "400": "The request is invalid; the message says why, and what to send.",
    "405": "The path does not take this method.",
    "408": "The body did not arrive in time.",
    "413": "The body, a text or a list is too long.",
    "415": "The body is compressed; send it as it is.",
    "500": "Something went wrong in the server, whose log says what.",
    "503": "There is no usable model, the server is busy, or the answer took too long.",
}


def openapi_document(limits: Limits) -> dict[str, Any]:
    """Return the document of a server with some limits, as JSON values.

    Examples
    --------
    >>> from longtail.serve.limits import Limits
    >>> from longtail.serve.openapi import openapi_document
    >>> document = openapi_document(Limits(k=20))
    >>> document["components"]["schemas"]["PredictRequest"]["properties"]["k"]["anyOf"][0]
    {'type': 'integer', 'minimum': 1, 'maximum': 20}
    """
    (*references,), components = msgspec.json.schema_components(
        MESSAGES, ref_template="#/components/schemas/{name}"
    )
    predict, answer, answers, explained, health, _ = references
    for schema in components.values():
        said, _, _ = cleandoc(schema["description"]).partition("\n\nExamples\n")
        schema["description"] = said  # examples in Python are for who reads the code
    _add_limits(components["PredictRequest"]["properties"], limits)
    components["ExplainRequest"] = _explain_request(components["PredictRequest"])
    _add_either(components["PredictRequest"])
    explain = {"$ref": "#/components/schemas/ExplainRequest"}
    # What is explained is an answer, too, so it comes first.
    any_answer = {"anyOf": [explained, answer, answers]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "longtail",
            "version": __version__,
            "description": "Short text in, the most relevant few of many label names out.",
        },
        "servers": [{"url": "/"}],  # or where it is mounted
        "paths": {
            "/predict": {
                "post": _question("Label one text or several", "predict", predict, any_answer)
            },
            "/explain": {
                "post": _question("Label one text and say why", "explain", explain, explained)
            },
            "/healthz": {"get": _health(health)},
            "/metrics": {
                "get": _plain("Counts and times, for Prometheus", "metrics", "text/plain")
            },
            "/": {"get": _plain("A page to try the model", "page", "text/html")},
            "/openapi.json": {"get": _plain("This document", "openapi", "application/json")},
        },
        "components": {"schemas": components},
    }


def _add_limits(properties: dict[str, Any], limits: Limits) -> None:
    """Write what a request is held to into the schema of its parts."""
    for choice in properties["text"]["anyOf"]:
        if choice["type"] == "string":
            choice["maxLength"] = limits.characters
    most_of = {"texts": limits.texts, "allowed": limits.names, "masked": limits.names}
    for name, most in most_of.items():
        for choice in properties[name]["anyOf"]:
            if choice["type"] == "array":
                choice["maxItems"] = most
                if name == "texts":
                    choice["items"]["maxLength"] = limits.characters
                elif name == "allowed":
                    choice["minItems"] = 1
    # JSON Schema counts 5.0 as an integer.
    number = {"type": "integer", "minimum": 1, "maximum": limits.k}
    properties["k"] = {"anyOf": [number, {"type": "null"}], "default": limits.default_k}
    for choice in properties["threshold"]["anyOf"]:
        if choice["type"] == "number":
            choice |= {"minimum": 0, "maximum": 1}


def _explain_request(predict: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a request that can only ask for one text to be explained."""
    properties = {**predict["properties"]}
    del properties["texts"], properties["explain"]
    (properties["text"],) = (
        choice for choice in properties["text"]["anyOf"] if choice["type"] == "string"
    )
    return {
        **predict,
        "title": "ExplainRequest",
        "description": "One text, and what the answer may hold.",
        "properties": properties,
        "required": ["text"],
    }


def _add_either(predict: dict[str, Any]) -> None:
    """Say in the schema that there must be a text or several, and not both."""
    predict["oneOf"] = [
        {"required": [name], "properties": {name: {"type": kind}}}
        for name, kind in (("text", "string"), ("texts", "array"))
    ]


def _question(
    summary: str, name: str, request: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    """Describe a path that takes a request."""
    return {
        "summary": summary,
        "operationId": name,
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": {"200": _content("The answer.", "application/json", answer)} | _refusals(),
    }


def _health(schema: dict[str, Any]) -> dict[str, Any]:
    """Describe the health check."""
    return {
        "summary": "Whether there is a model to answer",
        "operationId": "health",
        "responses": {
            "200": _content("A model answers.", "application/json", schema),
            "503": _content("None does.", "application/json", schema),
        },
    }


def _plain(summary: str, name: str, media_type: str) -> dict[str, Any]:
    """Describe a path that is only read."""
    schema = {} if "json" in media_type else {"type": "string"}
    ok = {"200": _content(f"{summary}.", media_type, schema)}
    return {"summary": summary, "operationId": name, "responses": ok}


def _content(description: str, media_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Describe one response."""
    return {"description": description, "content": {media_type: {"schema": schema}}}


def _refusals() -> dict[str, Any]:
    """Describe the refusals."""
    schema = {"$ref": "#/components/schemas/ErrorMessage"}
    return {
        status: _content(description, "application/json", schema)
        for status, description in REFUSALS.items()
    }
