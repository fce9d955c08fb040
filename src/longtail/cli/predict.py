"""``longtail predict``: one text, or a file of points, answered with labels."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from longtail.cli.output import check_output, notice, result
from longtail.cli.points import PLAIN, answered, points_in
from longtail.data.formats import FORMATS
from longtail.data.paths import replacing
from longtail.data.text_column import TextColumn
from longtail.errors import InputError
from longtail.predictor import Predictor, load

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from longtail.cli.points import Answers

__all__ = ["add_arguments", "run_command"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="DIR", help="a model folder")
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="points to answer: JSON lines, plain text (one a line), or a file as for training; "
        "- reads standard input",
    )
    parser.add_argument("--text", help="one text to answer, instead of FILE")
    parser.add_argument(
        "--output",
        metavar="OUT",
        type=Path,
        help="where the JSON lines go: standard output by default; .gz is compressed",
    )
    parser.add_argument("--top-k", metavar="K", type=int, default=5, help="most labels (5)")
    parser.add_argument(
        "--threshold", metavar="T", type=float, default=0.0, help="least probability (0)"
    )
    parser.add_argument(
        "--format", choices=[PLAIN, *FORMATS], help="of FILE; guessed from name and first line"
    )


def run_command(arguments: argparse.Namespace) -> int:
    """Answer, and return the exit code."""
    if (arguments.text is None) == (arguments.file is None):
        raise InputError('Pass either --text "some text" or a FILE to answer.')
    if arguments.output is not None:
        check_output(arguments.output)
    model = load(arguments.model)
    if arguments.text is not None:
        _answer_text(model, arguments)
    else:
        _answer_file(model, arguments)
    return 0


def _answer_text(model: Predictor, arguments: argparse.Namespace) -> None:
    """Write ``probability<TAB>name`` lines, best first."""
    if arguments.output is not None:
        raise InputError("--output belongs to a FILE; the answer to --text is printed.")
    if model.vectorizer is None:
        raise InputError("This model was trained on ready-made features. Pass a FILE of features.")
    answer = model.predict(arguments.text, arguments.top_k, threshold=arguments.threshold)
    for name, probability in answer:
        result(f"{probability:.4f}\t{name}")
    if not answer:
        notice("No label: none is probable enough, or the model knows no word of this text.")


def _answer_file(model: Predictor, arguments: argparse.Namespace) -> None:
    """Write one JSON line a point, in the order of the file."""
    blocks, n_points = points_in(model, arguments.file, format_name=arguments.format)
    n_answered = 0
    with _opened(arguments.output) as stream:
        for answers in answered(model, blocks, arguments.top_k, n_points=n_points, title="predict"):
            for row in _rows(model, answers, arguments.threshold):
                stream.write(msgspec.json.encode(row) + b"\n")
            n_answered += len(answers.ids)
        if not n_answered:
            raise InputError(f"{arguments.file} is empty. Pass a file with points in it.")
    if arguments.output is not None:
        notice(f"Wrote the labels of {n_answered:,} points to {arguments.output}.")


def _rows(model: Predictor, answers: Answers, threshold: float) -> Iterator[dict[str, Any]]:
    """Yield what is written of each point."""
    name = model.label_space.name
    texts = answers.points if isinstance(answers.points, TextColumn) else None
    for i, (ids, scores) in enumerate(
        zip(answers.ids.tolist(), answers.scores.tolist(), strict=True)
    ):
        kept = [(j, s) for j, s in zip(ids, scores, strict=True) if j >= 0 and s >= threshold]
        row: dict[str, Any] = {} if texts is None else {"text": texts[i]}
        yield row | {
            "labels": [name(label) for label, _ in kept],
            "scores": [round(score, 6) for _, score in kept],
        }


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[bytes]]:
    """Open the output; a file takes its name once it is complete."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacing(path) as stream:
        yield stream
