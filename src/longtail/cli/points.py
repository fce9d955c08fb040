"""Points to be answered, in blocks, so that a file of any length fits in memory."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from longtail.blocks import POINTS_AT_ONCE, Points, blocks_of, points_of
from longtail.data.dataset import Dataset
from longtail.data.paths import BYTE_ORDER_MARK, decode_line, numbered_lines
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.errors import DataFormatError, InputError
from longtail.training.progress import bar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from longtail.predictor import Predictor

__all__ = [
    "PLAIN",
    "POINTS_AT_ONCE",
    "STDIN",
    "Answers",
    "answered",
    "blocks_of",
    "points_in",
    "points_of",
]

STDIN = "-"
PLAIN = "text"
_DATASET_SUFFIXES = {".tsv", ".csv", ".fasttext", ".ft", ".svm", ".svmlight", ".libsvm"}
_JSON_SUFFIXES = {".jsonl", ".ndjson", ".json"}
_JSON_SHAPE = 'Write one object a line: {"text": "some words"}.'


class Answers(NamedTuple):
    """What the model says of a block of points.

    Attributes
    ----------
    points : TextColumn or csr_array
    ids : int32 (n, k)
        Best first, padded with -1.
    scores : float32 (n, k)
        Padded with -inf.
    """

    points: Points
    ids: NDArray[np.int32]
    scores: NDArray[np.float32]


class _TextRow(msgspec.Struct, gc=False):
    """One JSON line; labels and further keys are ignored."""

    text: str


def answered(
    model: Predictor,
    blocks: Iterable[Points],
    k: int,
    *,
    n_points: int | None,
    title: str,
    n_done: int = 0,
) -> Iterator[Answers]:
    """Predict block after block and show progress on standard error.

    Parameters
    ----------
    model : Predictor
    blocks : iterable of TextColumn or csr_array
    k : int
    n_points : int or None
        All points, if that is known, for the time left.
    title : str
        What the bar is called.
    n_done : int
        Points that an earlier run has answered; `blocks` begins behind them.

    Yields
    ------
    Answers
    """
    with bar(title, n_points, unit=" points", initial=n_done) as shown:
        for points in blocks:
            ids, scores = model.predict_topk(points, k)
            yield Answers(points, ids, scores)
            shown.update(len(ids))


def points_in(
    model: Predictor, path: str, *, format_name: str | None
) -> tuple[Iterator[Points], int | None]:
    """Return the points of a file in blocks, and how many there are if that is cheap to know.

    Parameters
    ----------
    model : Predictor
        Says whether texts or features are wanted.
    path : str
        JSON lines, plain text with one text a line, any format that `Dataset.read` knows, or ``-``
        for standard input: JSON lines or plain text.
    format_name : str or None
        ``"text"``, or as in `Dataset.read`; guessed without it.

    Raises
    ------
    InputError
        If the file cannot be used with this model.
    """
    if _is_lines(model, path, format_name):
        is_file = Path(path).is_file()  # what a pipe holds can be read only once
        n_points = sum(1 for _ in numbered_lines(path)) if is_file else None
        return _text_blocks(path, format_name), n_points
    if path == STDIN:
        raise InputError(
            "Standard input is read as JSON lines or plain text, for a model of texts. Name a file."
        )
    # Labels in the file are not looked at, so they need not be the model's.
    dataset = Dataset.read(
        path,
        format=format_name,
        n_features=None if model.vectorizer is not None else model.n_features,
    )
    return blocks_of(points_of(dataset)), dataset.n_points


def _is_lines(model: Predictor, path: str, format_name: str | None) -> bool:
    """Tell whether each line is a point that can be read by itself."""
    if format_name is not None:
        return format_name in {PLAIN, "json-lines"}
    return model.vectorizer is not None and not _suffixes(path) & _DATASET_SUFFIXES


def _suffixes(path: str) -> set[str]:
    """Return what a file's name ends in, such as .jsonl and .gz."""
    return {suffix.lower() for suffix in Path(path).suffixes}


def _text_blocks(path: str, format_name: str | None) -> Iterator[TextColumn]:
    """Yield blocks of texts: JSON lines by name, or where the first text begins with a brace."""
    is_json = None if format_name is None else format_name == "json-lines"
    if format_name is None and _suffixes(path) & _JSON_SUFFIXES:
        is_json = True
    decoder = msgspec.json.Decoder(_TextRow)
    texts = TextColumnBuilder()
    lines = _stdin_lines() if path == STDIN else numbered_lines(path)
    if is_json is None:
        is_json, lines = _told_by_first(lines)
    for number, line in lines:
        if not is_json:
            decode_line(line, path=path, number=number)
            texts.append(line)
        elif line.strip():
            texts.append(_json_text(decoder, line, path, number))
        if len(texts) == POINTS_AT_ONCE:
            yield texts.finish()
    if len(texts):
        yield texts.finish()


def _told_by_first(
    lines: Iterator[tuple[int, bytes]],
) -> tuple[bool, Iterator[tuple[int, bytes]]]:
    """Tell JSON lines by the first line that is not blank, and return all lines again."""
    seen = []
    for number, line in lines:
        seen.append((number, line))
        if line.strip():
            break
    return bool(seen) and seen[-1][1].lstrip().startswith(b"{"), chain(seen, lines)


def _stdin_lines() -> Iterator[tuple[int, bytes]]:
    """Yield the lines of standard input with their numbers, less a byte order mark."""
    for number, line in enumerate(sys.stdin.buffer, start=1):
        whole = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        yield number, whole.rstrip(b"\r\n")


def _json_text(decoder: msgspec.json.Decoder[_TextRow], line: bytes, path: str, number: int) -> str:
    """Return the text of a JSON line, or say what the line should be."""
    decode_line(line, path=path, number=number)
    try:
        return decoder.decode(line).text
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataFormatError(f"{error}. {_JSON_SHAPE}", path=path, line=number) from error
