"""``longtail predict``: one text, or a file of points, answered with labels."""

from __future__ import annotations

import shlex
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.amounts import counted
from longtail.cli.answer_formats import (
    check_kind_of,
    check_names,
    delimiter_of,
    is_matrix,
    lines_of,
    write_scores,
)
from longtail.cli.answer_output import digest_of, opened
from longtail.cli.exact_search import add_exact_search, asked_model
from longtail.cli.files import check_inputs, check_output, is_stdout
from longtail.cli.near_names import names_in_file
from longtail.cli.notices import notice
from longtail.cli.output import one_line, result
from longtail.cli.own_columns import add_column_arguments, columns_of_points
from longtail.cli.parser import OnlyOnce, is_utf8, word
from longtail.cli.points import AnsweredBlock, points_in
from longtail.data.formats import FORMATS
from longtail.data.kept_columns import Kept
from longtail.data.line_kinds import PLAIN
from longtail.data.text_column import TextColumn
from longtail.errors import InputError, source_name
from longtail.model_folder import ModelFolder
from longtail.predictor import LARGEST_K
from longtail.progress import bar
from longtail.restriction import Restriction, check_threshold

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from longtail.data.blocks import Points
    from longtail.data.columns import Columns
    from longtail.data.kept_columns import Value
    from longtail.explain import NearPoint
    from longtail.predictor import Predictor

__all__ = ["add_arguments", "run_command"]

EXAMPLE = 'longtail predict model --text "red wine"'

N_WORDS = 8  # shown of each label
NO_LABEL = "No label: none is probable enough, or the model knows no word of this text."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="DIR", help="a model folder")
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="points to answer: JSON lines, plain text (one a line), or a file as for training, "
        "with or without labels; - reads standard input",
    )
    parser.add_argument(
        "--text", type=word, action=OnlyOnce, help="one text to answer, instead of FILE"
    )
    parser.add_argument(
        "--output",
        metavar="OUT",
        type=Path,
        help="where the answers go, as JSON lines, or as a table if it ends in .tsv, .csv or "
        ".parquet: standard output by default, as with -; .gz is compressed. A run that was "
        "stopped goes on when it is started again. If it ends in .npz, a sparse matrix of scipy, "
        "points by labels",
    )
    parser.add_argument(
        "--top-k", metavar="K", type=int, default=5, help="most labels to return (5), up to 10,000"
    )
    parser.add_argument(
        "--threshold", metavar="T", type=float, default=0.0, help="least probability of a label (0)"
    )
    parser.add_argument(
        "--allowed",
        metavar="NAMES",
        action=OnlyOnce,
        help="a file of the only labels that may be answered, one name a line",
    )
    parser.add_argument(
        "--masked",
        metavar="NAMES",
        action=OnlyOnce,
        help="a file of labels that may not be answered",
    )
    parser.add_argument(
        "--explain", action="store_true", help="of --text: show the words that moved each label"
    )
    add_exact_search(parser)
    parser.add_argument(
        "--format", choices=[PLAIN, *FORMATS], help="of FILE; guessed from its name and first lines"
    )
    add_column_arguments(parser, "FILE", with_labels=False)
    parser.add_argument(
        "--keep",
        metavar="NAME",
        type=word,
        action="extend",
        nargs="+",
        default=[],
        help="columns or keys of FILE to write beside the answers; by default id, uid or key",
    )


def run_command(arguments: argparse.Namespace) -> int:
    """Answer, and return the exit code."""
    _check_options(arguments)
    check_inputs(arguments.file, arguments.allowed, arguments.masked)
    folder = ModelFolder.open(arguments.model)
    model = asked_model(folder, arguments)
    if arguments.text is not None:
        _answer_text(model, arguments)
    else:
        _answer_file(model, arguments, folder.checksum)
    return 0


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise InputError for options that do not go together, or an output that cannot be."""
    if (arguments.text is None) == (arguments.file is None):
        greedy = {"--text-column": arguments.text_column, "--keep": arguments.keep}
        hints = [
            f" {option} takes all words after it: put it last."
            for option, names in greedy.items()
            if names and len(names) > 1
        ]
        both = "" if arguments.text is None else ", and not both"
        raise InputError(
            f'Pass either --text "some text" or a FILE to answer{both}.{"".join(hints)}'
        )
    if arguments.text is not None and (arguments.text_column or arguments.keep):
        raise InputError("--text-column and --keep belong to a FILE. Omit them with --text.")
    if arguments.text is not None and arguments.output is not None:
        raise InputError("--output belongs to a FILE; the answer to --text is printed.")
    if arguments.text is not None and not is_utf8(arguments.text):
        raise InputError(
            f"--text is not UTF-8: {arguments.text!r}. Convert it, as `iconv` does, or name a FILE."
        )
    check_threshold(arguments.threshold)
    if not 1 <= arguments.top_k <= LARGEST_K:
        raise InputError(
            f"--top-k must be between 1 and {LARGEST_K:,}, got {arguments.top_k:,}. Pass how many "
            "labels a text may have at most."
        )
    if arguments.explain and arguments.text is None:
        raise InputError("--explain belongs to --text. Pass one text to explain.")
    if arguments.keep and is_matrix(arguments.output):
        raise InputError("A matrix keeps no columns of FILE. Omit --keep, or name a .jsonl file.")
    if arguments.output is not None:
        check_kind_of(arguments.output)
        names = [arguments.file, arguments.allowed, arguments.masked]
        check_output(arguments.output, read=names)


def _names_in(model: Predictor, path: str | None, option: str) -> Sequence[str] | None:
    """Return the labels named in a file, of which each line is one, or one and a TAB and a text."""
    if path is None:
        return None
    if Path(path).is_file() and not Path(path).stat().st_size:
        raise InputError(
            f"{path} is empty, so no label is {option}. Name labels in it, one a line, or omit "
            f"--{option}."
        )
    return names_in_file(model.label_space, path)


def _answer_text(model: Predictor, arguments: argparse.Namespace) -> None:
    """Write ``probability<TAB>name`` lines, best first."""
    if model.vectorizer is None:
        raise InputError("This model was trained on ready-made features. Pass a FILE of features.")
    if arguments.explain:
        _explain_text(model, arguments)
        return
    answer = model.predict(
        arguments.text,
        arguments.top_k,
        threshold=arguments.threshold,
        allowed=_names_in(model, arguments.allowed, "allowed"),
        masked=_names_in(model, arguments.masked, "masked") or (),
    )
    for name, probability in answer:
        result(f"{probability:.4f}\t{one_line(name)}")
    if not answer:
        notice(NO_LABEL)


def _explain_text(model: Predictor, arguments: argparse.Namespace) -> None:
    """Write under each label the words that moved it, then the nearest training points."""
    explanation = model.explain(
        arguments.text,
        arguments.top_k,
        allowed=_names_in(model, arguments.allowed, "allowed"),
        masked=_names_in(model, arguments.masked, "masked") or (),
    )
    kept = [part for part in explanation.labels if part.probability >= arguments.threshold]
    for part in kept:
        result(f"{part.probability:.4f}\t{one_line(part.label)}")
        words = [f"{word.word} {word.effect:+.2f}" for word in part.words[:N_WORDS]]
        result(f"\t{', '.join(words)}")
    _tell_near_points(explanation.near_points)
    if not kept:
        notice(NO_LABEL)


def _tell_near_points(points: Sequence[NearPoint]) -> None:
    """Write similarity, labels and row of each training point, where the model knows any."""
    if points:
        has_rows = any(point.row is not None for point in points)
        rows = ", and their rows of the training data from 0" if has_rows else ""
        result(f"\nlabels of the nearest training points{rows}")
    for point in points:
        row = "" if point.row is None else f"\trow {point.row:,}"
        result(f"{point.similarity:.4f}\t{' | '.join(map(one_line, point.labels))}{row}")


def _answer_file(model: Predictor, arguments: argparse.Namespace, checksum: str) -> None:
    """Write one line, or one row of a matrix, a point, in the order of the file.

    The checksum is that of the model's manifest, which may be another model's by now.
    """
    if delimiter_of(arguments.output):
        check_names(model.label_space, arguments.output)
    allowed = _names_in(model, arguments.allowed, "allowed")
    masked = _names_in(model, arguments.masked, "masked")
    restriction = Restriction.of(model.label_space, allowed, masked or ())
    kept = Kept(arguments.keep)
    columns = columns_of_points(model, arguments, kept)
    blocks, n_points = points_in(
        model, arguments.file, format_name=arguments.format, columns=columns, kept=kept
    )

    def answered(some: Iterator[Points], n_done: int = 0) -> Iterator[AnsweredBlock]:
        with bar("predict", n_points, unit=" points", initial=n_done) as shown:
            for points in some:
                ids, scores = model.predict_topk(points, arguments.top_k, restriction=restriction)
                yield AnsweredBlock(points, ids, scores)
                shown.update(len(ids))

    if is_matrix(arguments.output):
        counts = _write_scores(answered(blocks), model, arguments)
    else:
        settings = _identifying(allowed, masked, columns, kept) | {"model": checksum}
        if arguments.exact_search:
            settings["exact_search"] = "yes"
        counts = _write_lines(answered, blocks, model, arguments, settings, kept)
    _say_how_many(arguments, *counts)


def _write_scores(
    answers: Iterable[AnsweredBlock], model: Predictor, arguments: argparse.Namespace
) -> tuple[int, int]:
    """Write a matrix; return how many points there are, and how many of them have no answer."""
    n_answered, n_without = write_scores(
        answers, arguments.output, n_labels=model.n_labels, threshold=arguments.threshold
    )
    _check_answered(arguments.file, n_answered)
    return n_answered, n_without


def _write_lines(
    answered: Callable[[Iterator[Points], int], Iterator[AnsweredBlock]],
    blocks: Iterator[Points],
    model: Predictor,
    arguments: argparse.Namespace,
    settings: Mapping[str, str],
    kept: Kept,
) -> tuple[int, int]:
    """Write a line a point, but for what an earlier run has written; return the same counts."""
    options = {name: getattr(arguments, name) for name in ("top_k", "threshold", "format")}
    delimiter = delimiter_of(arguments.output)
    with opened(arguments.output, arguments.file, {**options, **settings}) as output:
        n_before = output.n_points_before
        if n_before:
            before = counted(n_before, "point")
            notice(f"Resuming after what an earlier run has answered: {before}.")
        rest = islice(blocks, output.n_blocks_before, None)
        for block in answered(rest, n_before):
            if output.n_points == n_before:  # the first block: before it, points were skipped
                kept.take(n_before)
            rows = list(_rows(model, block, arguments.threshold, kept.take(len(block.ids))))
            n_without = sum(not row["labels"] for row in rows)
            lines = lines_of(rows, delimiter, with_header=not output.n_points)
            output.write(lines, len(rows), n_without)
        _check_answered(arguments.file, output.n_points)  # before the output takes its name
        return output.n_points, output.n_without


def _say_how_many(arguments: argparse.Namespace, n_answered: int, n_without: int) -> None:
    """Say how many points were answered, and how many of them with no label."""
    if not is_stdout(arguments.output):
        notice(f"Wrote the labels of {counted(n_answered, 'point')} to {arguments.output}.")
    if n_without:
        notice(
            f"No label for {counted(n_without, 'point')}: none is probable enough, or the model "
            "knows nothing of what is said there."
        )


def _check_answered(source: str, n_answered: int) -> None:
    """Raise InputError if there was nothing to answer."""
    if not n_answered:
        raise InputError(f"{source_name(source)} is empty. Pass a file with points in it.")


def _identifying(
    allowed: Sequence[str] | None, masked: Sequence[str] | None, columns: Columns, kept: Kept
) -> dict[str, str]:
    """Return what else answers depend on, each only where it is not as usual."""
    named = {"allowed": allowed, "masked": masked}
    digests = {option: digest_of(names) for option, names in named.items() if names is not None}
    told = {"text_column": columns.text, "keep": kept.asked}
    return digests | {option: shlex.join(names) for option, names in told.items() if names}


def _rows(
    model: Predictor,
    answers: AnsweredBlock,
    threshold: float,
    carried: Sequence[Mapping[str, Value]],
) -> Iterator[dict[str, Any]]:
    """Yield what is written of each point."""
    name = model.label_space.name
    texts = answers.points if isinstance(answers.points, TextColumn) else None
    for i, (ids, scores) in enumerate(
        zip(answers.ids.tolist(), answers.scores.tolist(), strict=True)
    ):
        kept = [(j, s) for j, s in zip(ids, scores, strict=True) if j >= 0 and s >= threshold]
        text = {} if texts is None else {"text": texts[i]}
        yield {
            **carried[i],
            **text,
            "labels": [name(label) for label, _ in kept],
            "scores": [round(score, 6) for _, score in kept],
        }
