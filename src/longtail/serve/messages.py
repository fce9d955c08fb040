"""What clients send and get, and the sentences that refuse what they should not have sent."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

import msgspec

from longtail.explain import Explanation  # noqa: TC001  # msgspec reads it

if TYPE_CHECKING:
    from longtail.serve.limits import Limits

__all__ = [
    "ONE_EXPLAINED",
    "Answer",
    "Answers",
    "ErrorMessage",
    "ExplainedAnswer",
    "Health",
    "PredictRequest",
    "Refusal",
    "TextAnswer",
    "decoded",
    "encoded_refusal",
]

EXAMPLE = '{"text": "some words", "k": 5}'
ONE_EXPLAINED = "Only one text can be explained at a time. Send it as `text`."
VERY_MANY = 10**12
MOST_SHOWN = 150  # characters of what a client sent, and the words before it

_HALF_A_PAIR = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_GZIP = b"\x1f\x8b"
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class PredictRequest(msgspec.Struct, forbid_unknown_fields=True):
    """One text or several, and what the answer may hold; what is null is as if it were not there.

    Many clients write null for what they leave out.
    """

    text: str | None = None
    texts: list[str] | None = None
    k: int | float | None = None  # JSON knows no whole numbers: 5.0 is one, too
    threshold: float | None = None
    allowed: list[str] | None = None
    masked: list[str] | None = None
    explain: bool | None = None

    @property
    def most_labels(self) -> int:
        """`k` of a request that was checked, which has one."""
        return int(self.k or 0)

    @property
    def least_probability(self) -> float:
        """`threshold`, or that of a request without one."""
        return self.threshold or 0.0

    @property
    def is_restricted(self) -> bool:
        """Whether some labels may not be in the answer."""
        return self.allowed is not None or bool(self.masked)


class Answer(msgspec.Struct, omit_defaults=True):
    """Label names of one text and their probabilities, best first, and how long the model took.

    Where some names that are allowed or masked are no label's, these are `unknown`.
    """

    labels: list[str]
    scores: list[float]
    milliseconds: float
    unknown: list[str] = []


class TextAnswer(msgspec.Struct):
    """Label names of one text of several and their probabilities, best first."""

    labels: list[str]
    scores: list[float]


class Answers(msgspec.Struct, omit_defaults=True):
    """The answers to several texts, in their order, and how long the model took for all.

    Names that are allowed or masked and no label's are `unknown`, if there are any.
    """

    answers: list[TextAnswer]
    milliseconds: float
    unknown: list[str] = []


class ExplainedAnswer(msgspec.Struct, omit_defaults=True):
    """An answer, and why: words that moved each label, and the nearest training points.

    Names that are allowed or masked and no label's are `unknown`, if there are any.
    """

    labels: list[str]
    scores: list[float]
    explanation: Explanation
    milliseconds: float
    unknown: list[str] = []


class Health(msgspec.Struct):
    """Whether there is a model to answer, which, and what is wrong if anything is."""

    status: str
    problem: str | None
    recipe: str | None = None
    n_labels: int | None = None
    n_training_points: int | None = None
    model: str | None = None


class ErrorMessage(msgspec.Struct):
    """One sentence that says what is wrong and what to do."""

    error: str


class Refusal(Exception):  # noqa: N818  # not an error of ours
    """A request that is not answered: an HTTP status and a sentence for the client."""

    def __init__(
        self, status: int, sentence: str, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers


_KEYS = ", ".join(f"`{key}`" for key in PredictRequest.__struct_fields__)
_decoder = msgspec.json.Decoder(PredictRequest)


def decoded(body: bytes | bytearray, limits: Limits) -> PredictRequest:
    """Return the request in a body.

    Raises
    ------
    Refusal
        If it is not one, or asks for too much.

    Examples
    --------
    >>> from longtail.serve.limits import Limits
    >>> from longtail.serve.messages import Refusal, decoded
    >>> decoded(b'{"text": "red wine"}', Limits()).most_labels
    5
    >>> try:
    ...     decoded(b'{"texts": ["red wine", "fast car"]}', Limits(texts=1))
    ... except Refusal as refusal:
    ...     refusal.status, str(refusal)
    (413, 'There are 2 texts; at most 1 are allowed. Send fewer.')
    """
    try:
        request = _decoder.decode(body)
    except msgspec.ValidationError as error:
        what = str(error)
        known = f" There are: {_KEYS}." if "unknown field" in what else ""
        if len(what) > MOST_SHOWN:  # a key may be as long as a request
            what = f"{what[:MOST_SHOWN]}...`"
        sentence = f"The request is invalid: {what}.{known} Send JSON such as {EXAMPLE}."
        raise Refusal(400, sentence) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _not_json(body, error) from None
    if request.k is None:
        request.k = limits.default_k
    _check(request, limits)
    return request


def _not_json(body: bytes | bytearray, error: Exception) -> Refusal:
    """Return the refusal of a body that cannot be read, and what it seems to be."""
    if body.startswith(_GZIP):
        return encoded_refusal("gzip")
    if not body.strip():
        return Refusal(400, f"The body is empty. Send JSON such as {EXAMPLE}.")
    if body.startswith(_MARKS):
        return Refusal(
            400,
            "The body begins with a byte order mark, as UTF-16 and some editors' files do. Send "
            "JSON in UTF-8, without one.",
        )
    half = _HALF_A_PAIR.search(body)
    if half is not None:
        return Refusal(
            400,
            f"The body holds {half[0].decode()}, half of a pair that makes one character, without "
            "the other half. Send characters as UTF-8, or both halves.",
        )
    return Refusal(400, f"The body is not JSON in UTF-8 ({error}). Send JSON such as {EXAMPLE}.")


def encoded_refusal(encoding: str) -> Refusal:
    """Return the refusal of a body that is packed.

    Examples
    --------
    >>> from longtail.serve.messages import encoded_refusal
    >>> refusal = encoded_refusal("gzip")
    >>> refusal.status, refusal.headers  # what would be read
    (415, ((b'accept-encoding', b'identity'),))
    """
    return Refusal(
        415,
        f"The body's Content-Encoding is {encoding[:100]!r}, and only plain bodies are read. Send "
        "the JSON as it is.",
        ((b"accept-encoding", b"identity"),),
    )


def _check(request: PredictRequest, limits: Limits) -> None:
    """Refuse what is contradictory or too much."""
    if (request.text is None) == (request.texts is None):
        raise Refusal(400, f"Send either `text` or `texts`, such as {EXAMPLE}.")
    if request.k is not None:
        _check_k(request.k, limits)
    if not 0 <= request.least_probability <= 1:
        raise Refusal(400, f"`threshold` must be between 0 and 1, got {request.threshold}.")
    if request.text is not None:
        if len(request.text) > limits.characters:
            raise _too_much("characters in `text`", len(request.text), limits.characters)
        if not request.is_restricted:
            return
    elif request.texts is not None:
        _check_texts(request.texts, request, limits)
    for what, names in (("allowed", request.allowed), ("masked", request.masked)):
        if names is not None and len(names) > limits.names:
            raise _too_much(f"names in `{what}`", len(names), limits.names)


def _check_k(k: float, limits: Limits) -> None:
    """Refuse what is no number of labels, or too many."""
    # A number of thousands of digits cannot be written.
    came = f"{k:,}" if abs(k) < VERY_MANY else "a very large number"
    if not 1 <= k <= limits.k:
        raise Refusal(400, f"`k` must be between 1 and {limits.k:,}, got {came}.")
    if k != int(k):
        raise Refusal(400, f"`k` must be a whole number, got {came}.")


def _check_texts(texts: list[str], request: PredictRequest, limits: Limits) -> None:
    """Refuse batches that are too large or cannot be explained."""
    if request.explain:
        raise Refusal(400, ONE_EXPLAINED)
    if len(texts) > limits.texts:
        raise _too_much("texts", len(texts), limits.texts)
    longest = max(map(len, texts), default=0)
    if longest > limits.characters:
        raise _too_much("characters in one of `texts`", longest, limits.characters)


def _too_much(what: str, count: int, most: int) -> Refusal:
    """Return the refusal of a count that is over its limit."""
    return Refusal(413, f"There are {count:,} {what}; at most {most:,} are allowed. Send fewer.")
