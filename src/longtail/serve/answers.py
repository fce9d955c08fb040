"""From a request to its answer."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from longtail.errors import InputError
from longtail.serve.messages import Answer, Answers, ExplainedAnswer, Refusal, TextAnswer

if TYPE_CHECKING:
    from longtail.predictor import Predictor
    from longtail.serve.messages import PredictRequest

__all__ = ["Timed", "answer_batch", "answer_explained", "answer_text"]

N_DIGITS = 6  # of a probability


class Timed(NamedTuple):
    """An answer and what it took."""

    answer: Answer | Answers | ExplainedAnswer
    n_texts: int
    seconds: float


def answer_text(model: Predictor, request: PredictRequest) -> Timed:
    """Return the labels of one text."""
    started = perf_counter()
    found = _predicted(model, request.text, request)
    seconds = perf_counter() - started
    labels, scores = _columns(found)
    return Timed(Answer(labels, scores, _milliseconds(seconds)), 1, seconds)


def answer_batch(model: Predictor, request: PredictRequest) -> Timed:
    """Return the labels of several texts."""
    started = perf_counter()
    texts = request.texts or []
    rows = _predicted(model, texts, request) if texts else []
    seconds = perf_counter() - started
    answers = [TextAnswer(*_columns(row)) for row in rows]
    return Timed(Answers(answers, _milliseconds(seconds)), len(texts), seconds)


def answer_explained(model: Predictor, request: PredictRequest) -> Timed:
    """Return the labels of one text, and why."""
    started = perf_counter()
    try:
        explanation = model.explain(
            request.text or "", request.k, allowed=request.allowed, masked=request.masked
        )
    except InputError as error:
        raise Refusal(400, str(error)) from None
    seconds = perf_counter() - started
    kept = [part for part in explanation.labels if part.probability >= request.threshold]
    labels, scores = _columns([(part.label, part.probability) for part in kept])
    explained = type(explanation)(tuple(kept), explanation.near_points)
    return Timed(ExplainedAnswer(labels, scores, explained, _milliseconds(seconds)), 1, seconds)


def _predicted(model: Predictor, texts: Any, request: PredictRequest) -> Any:
    """Ask the model; what it does not take is the client's mistake."""
    try:
        if request.is_restricted:
            return model.predict(
                texts,
                request.k,
                threshold=request.threshold,
                allowed=request.allowed,
                masked=request.masked,
            )
        return model.predict(texts, request.k, threshold=request.threshold)
    except InputError as error:
        raise Refusal(400, str(error)) from None


def _columns(found: list[tuple[str, float]]) -> tuple[list[str], list[float]]:
    """Return names and rounded probabilities."""
    return [name for name, _ in found], [round(score, N_DIGITS) for _, score in found]


def _milliseconds(seconds: float) -> float:
    """Return milliseconds as they are shown."""
    return round(1e3 * seconds, 3)
