"""From a request that was checked to its answer."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from longtail.errors import InputError
from longtail.serve.messages import Answer, Answers, ExplainedAnswer, Refusal, TextAnswer

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence

    from longtail.explain import Explanation, LabelExplanation
    from longtail.predictor import Predictor
    from longtail.serve.messages import PredictRequest

    Row = list[tuple[str, float]]  # names and probabilities of a text's labels, best first

__all__ = ["Timed", "answer_batch", "answer_explained", "answer_text"]

N_DIGITS = 6  # of a probability
# Between blocks of a batch it is seen whether anybody still waits for the answer. On one core, one
# takes a default model of 38,000 labels .06 s, or .2 s where 1,000 labels are allowed.
TEXTS_AT_ONCE = 128
CHARACTERS_AT_ONCE = 65_536


class _Held(NamedTuple):
    """To which labels an answer is held: as `Predictor.predict` takes it, and what that leaves out.

    A client's lists may be older than the model, which is replaced while it is asked. So names that
    no label has any more are left out; there is nothing of theirs to answer or to mask.
    """

    allowed: list[str] | None
    masked: tuple[str, ...]
    unknown: list[str]

    @classmethod
    def of(cls, model: Predictor, request: PredictRequest) -> _Held:
        """Return what a request says; if none of its allowed names is known, all of these."""
        if not request.is_restricted:
            return cls(None, (), [])
        knows = model.label_space.knows
        names = dict.fromkeys([*(request.allowed or ()), *(request.masked or ())])
        unknown = [name for name in names if not knows(name)]
        known = [name for name in request.allowed or () if knows(name)]
        masked = tuple(name for name in request.masked or () if knows(name))
        return cls(known or request.allowed, masked, unknown)


class Timed(NamedTuple):
    """An answer and what it took.

    Attributes
    ----------
    answer : Answer, Answers or ExplainedAnswer
    n_texts : int
        Texts of the request.
    seconds : float
        That the model took for them.
    """

    answer: Answer | Answers | ExplainedAnswer
    n_texts: int
    seconds: float


def answer_text(model: Predictor, request: PredictRequest) -> Timed:
    """Return the labels of one text.

    Raises
    ------
    Refusal
        If the model has no label of the names that are allowed.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.serve.answers import answer_text
    >>> from longtail.serve.messages import PredictRequest
    >>> model = DeepXML().fit(["red wine", "fast car"] * 5, [["drink"], ["vehicle"]] * 5).predictor_
    >>> answer_text(model, PredictRequest(text="white wine", k=1)).answer.labels
    ['drink']
    """
    started = perf_counter()
    held = _Held.of(model, request)
    (found,) = _predicted(model, [request.text or ""], request, held)
    seconds = perf_counter() - started
    labels, scores = _columns(found)
    return Timed(Answer(labels, scores, _milliseconds(seconds), held.unknown), 1, seconds)


def answer_batch(model: Predictor, request: PredictRequest, given_up: threading.Event) -> Timed:
    """Return the labels of several texts: fewer of them once the answer is given up.

    Raises
    ------
    Refusal
        See `answer_text`.

    Examples
    --------
    >>> import threading
    >>> from longtail import DeepXML
    >>> from longtail.serve.answers import answer_batch
    >>> from longtail.serve.messages import PredictRequest
    >>> model = DeepXML().fit(["red wine", "fast car"] * 5, [["drink"], ["vehicle"]] * 5).predictor_
    >>> request, given_up = PredictRequest(texts=["white wine", "old car"], k=1), threading.Event()
    >>> [answer.labels for answer in answer_batch(model, request, given_up).answer.answers]
    [['drink'], ['vehicle']]
    >>> given_up.set()
    >>> answer_batch(model, request, given_up).answer.answers
    []
    """
    started = perf_counter()
    texts = request.texts or []
    held = _Held.of(model, request)
    rows: list[Row] = []
    for block in _blocks(texts):
        if given_up.is_set():
            break
        rows += _predicted(model, block, request, held)
    seconds = perf_counter() - started
    answers = [TextAnswer(*_columns(row)) for row in rows]
    return Timed(Answers(answers, _milliseconds(seconds), held.unknown), len(texts), seconds)


def answer_explained(model: Predictor, request: PredictRequest) -> Timed:
    """Return the labels of one text, and why.

    Raises
    ------
    Refusal
        See `answer_text`.
    """
    started = perf_counter()
    held = _Held.of(model, request)
    try:
        explanation = model.explain(
            request.text or "",
            request.most_labels,
            allowed=held.allowed,
            masked=held.masked,
        )
    except InputError as error:
        raise Refusal(400, str(error)) from None
    seconds = perf_counter() - started
    kept = [part for part in explanation.labels if part.probability >= request.least_probability]
    labels, scores = _columns([(part.label, part.probability) for part in kept])
    answer = ExplainedAnswer(
        labels, scores, _rounded(explanation, kept), _milliseconds(seconds), held.unknown
    )
    return Timed(answer, 1, seconds)


def _blocks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield texts, so many at a time as take a moment."""
    start = n_characters = 0
    for place, text in enumerate(texts):
        n_characters += len(text)
        if place - start == TEXTS_AT_ONCE or (place > start and n_characters > CHARACTERS_AT_ONCE):
            yield texts[start:place]
            start, n_characters = place, len(text)
    if start < len(texts):
        yield texts[start:]


def _predicted(
    model: Predictor, texts: Sequence[str], request: PredictRequest, held: _Held
) -> list[Row]:
    """Ask the model; what it does not take is the client's mistake."""
    try:
        return model.predict(
            texts,
            request.most_labels,
            threshold=request.least_probability,
            allowed=held.allowed,
            masked=held.masked,
        )
    except InputError as error:
        raise Refusal(400, str(error)) from None


def _columns(found: Row) -> tuple[list[str], list[float]]:
    """Return names and rounded probabilities."""
    return [name for name, _ in found], [round(score, N_DIGITS) for _, score in found]


def _rounded(explanation: Explanation, kept: Sequence[LabelExplanation]) -> Explanation:
    """Return an explanation of some of its labels with rounded numbers."""
    labels = (
        replace(
            part,
            probability=round(part.probability, N_DIGITS),
            words=tuple(replace(word, effect=round(word.effect, N_DIGITS)) for word in part.words),
        )
        for part in kept
    )
    near = (
        replace(point, similarity=round(point.similarity, N_DIGITS))
        for point in explanation.near_points
    )
    return type(explanation)(tuple(labels), tuple(near))


def _milliseconds(seconds: float) -> float:
    """Return milliseconds as they are shown."""
    return round(1e3 * seconds, 3)
