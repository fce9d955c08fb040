"""``longtail review``: labels of a training set that may be missing or wrong."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.amounts import counted
from longtail.cli.files import check_inputs, check_output, is_stdout
from longtail.cli.notices import notice, warning
from longtail.cli.one_at_a_time import alone_in
from longtail.cli.output import result, short, table
from longtail.cli.review_file import as_rows, check_suffix, read_review, write_review
from longtail.cli.review_page import is_page, saved_as, write_review_page
from longtail.cli.training_options import (
    add_data_arguments,
    add_points_argument,
    add_recipe_arguments,
    add_recipe_help,
    configured,
    option_hint,
    said_of_points,
    training_points,
)
from longtail.data.files import is_device
from longtail.data.formats import FORMATS, suffix_of
from longtail.errors import InputError, source_name
from longtail.progress import ProgressBar
from longtail.review import corrected, review_labels
from longtail.review.findings import MOST_FOUND, N_PARTS
from longtail.training.checkpoints import CheckpointFolder

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from longtail.data.dataset import Dataset
    from longtail.estimators.estimator import LabelEstimator
    from longtail.review import LabelReview

__all__ = ["add_arguments", "option_hint", "run_command"]

EXAMPLE = "longtail review train.jsonl --output review.csv"
N_SHOWN = 5  # of each kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_points_argument(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="write all that was found: .html for a page to decide on in a browser, .csv or .tsv "
        "for a spreadsheet, else JSON lines; - is standard output",
    )
    parser.add_argument(
        "--apply",
        metavar="FILE",
        type=Path,
        help="read what you have left of such a file, or saved from the page, and write to "
        "--output the points with the missing labels of its rows put in, and the doubtful ones "
        "taken out",
    )
    parser.add_argument(
        "--parts",
        metavar="N",
        type=int,
        default=N_PARTS,
        help="each part of the points is asked of a model trained on the others (%(default)s)",
    )
    parser.add_argument(
        "--most",
        metavar="N",
        type=int,
        default=MOST_FOUND,
        help="at most so many missing labels, and as many doubtful ones (%(default)s)",
    )
    add_data_arguments(parser)
    add_recipe_arguments(parser)
    add_recipe_help(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Review, or put right what a review has found, and return the exit code."""
    names = (arguments.train, arguments.labels, arguments.label_pairs)
    check_inputs(*names, None if arguments.apply is None else str(arguments.apply))
    _check_output(arguments, names)
    _check_numbers(arguments)
    if arguments.apply is not None:
        _put_right(arguments)
        return 0
    estimator = configured(arguments)
    dataset = training_points(arguments)
    review = _reviewed(estimator, dataset, arguments)
    _tell(review, dataset, arguments)
    return 0


def _check_numbers(arguments: argparse.Namespace) -> None:
    """Refuse numbers that nothing can be done with."""
    for option, least in (("parts", 2), ("most", 1)):
        if (number := getattr(arguments, option)) < least:
            raise InputError(f"--{option} {number} is too few. Take {least} or more.")


def _check_output(arguments: argparse.Namespace, names: tuple[str | None, ...]) -> None:
    """Refuse an output that cannot be written, before the work."""
    if arguments.apply is not None and is_stdout(arguments.output):
        raise InputError(
            "--apply writes the points with their labels put right. Name a file for them, by "
            "--output corrected.jsonl."
        )
    if arguments.output is None:
        return
    check_output(arguments.output, read=(*names, arguments.apply))
    if arguments.apply is None:
        check_suffix(arguments.output)


def _reviewed(
    estimator: LabelEstimator, dataset: Dataset, arguments: argparse.Namespace
) -> LabelReview:
    """Say what it will take, and find what should be looked at."""
    from longtail.cli.training_costs import announce  # noqa: PLC0415 - loads much

    n_parts = arguments.parts
    notice(f"{n_parts} models are trained, each on {n_parts - 1} of {n_parts} parts of the points.")
    others = np.arange(dataset.n_points) % n_parts != 0
    announce(
        estimator,
        dataset.take(others),
        ignore_memory=arguments.ignore_memory,
        what="Each training",
    )
    with _kept_beside(arguments.output) as checkpoints, ProgressBar() as progress:
        return review_labels(
            estimator,
            dataset,
            n_parts=n_parts,
            most=arguments.most,
            callbacks=[progress],
            checkpoint_folder=checkpoints,
        )


@contextmanager
def _kept_beside(output: Path | None) -> Iterator[Path | None]:
    """Say where is kept what a stopped review goes on from; nowhere, if nothing is written."""
    if output is None or is_stdout(output) or is_device(output):
        yield None
        return
    folder = output.resolve().with_name(f"{output.name}.checkpoint")
    with alone_in(folder, str(output)):
        try:
            yield folder
        except KeyboardInterrupt:
            if CheckpointFolder.has_any(folder):
                notice("The same command resumes with the part that it was at.")
            raise


def _tell(review: LabelReview, dataset: Dataset, arguments: argparse.Namespace) -> None:
    """Show the surest findings, and write all of them."""
    rows, n_missing = as_rows(review, dataset), len(review.missing.points)
    found = {"missing": rows[:n_missing], "wrong": rows[n_missing:]}
    if arguments.output is not None:
        _write(arguments, rows, ", ".join(map(_said, found, found.values())), _new_name(dataset))
        if is_stdout(arguments.output):
            return
    for what, some in found.items():
        result(_said(what, some) + (":" if some else "."))
        if some:
            result(table(["point", "label", "of the text"], map(_shown, some[:N_SHOWN])))
    if arguments.output is not None and rows:
        _tell_what_is_next(arguments, _new_name(dataset))


def _said(what: str, found: Sequence[object]) -> str:
    """Return how many labels may be what."""
    return f"{counted(len(found), 'label')} may be {what}"


def _write(
    arguments: argparse.Namespace, rows: Sequence[Mapping[str, Any]], title: str, target: str
) -> None:
    """Write all findings, as the name of the output tells."""
    if is_page(arguments.output):
        title = f"{source_name(arguments.train)}: {title}"
        points = said_of_points(arguments)
        write_review_page(arguments.output, rows, title=title, points=points, target=target)
    else:
        write_review(arguments.output, rows)


def _tell_what_is_next(arguments: argparse.Namespace, target: str) -> None:
    """Say how the labels are put right."""
    output = arguments.output
    if is_page(output):
        result(f"All are in {output}. Open it in a browser, decide, save there, and then:")
        output = saved_as(output)
    else:
        result(f"All are in {output}. Delete the rows that you do not agree with, then:")
    words = [*said_of_points(arguments), "--apply", str(output), "--output", target]
    result(f"  longtail review {shlex.join(words)}")


def _new_name(dataset: Dataset) -> str:
    """Return a name for points with their labels put right that no file has yet."""
    suffix = ".txt" if dataset.texts is None else ".jsonl"
    names = (f"corrected{number}{suffix}" for number in chain([""], count(2)))
    return next(name for name in names if not Path(name).exists())


def _shown(row: dict[str, object]) -> tuple[str, str, str]:
    """Return a finding as a line of a table."""
    return str(row["point"]), short(str(row["label"])), short(str(row.get("text", "")))


def _put_right(arguments: argparse.Namespace) -> None:
    """Write the points with the labels that a person has accepted."""
    before = training_points(arguments)
    format_name = _format_of(arguments.output, before)
    accepted = read_review(arguments.apply, before)
    after = corrected(before, *accepted)
    after.write(arguments.output, format=format_name)
    n_in, n_out = (after.labels > before.labels).nnz, (before.labels > after.labels).nnz
    result(
        f"{counted(n_in, 'label')} put in, {n_out:,} taken out: "
        f"{counted(after.n_points, 'point')} in {arguments.output}"
    )
    if n_idle := sum(len(findings.points) for findings in accepted) - n_in - n_out:
        warning(
            f"{counted(n_idle, 'row')} changed nothing: what is missing was there, or what is "
            f"doubtful was not. Is {source_name(arguments.train)} the file that was reviewed?"
        )
    labels = [] if arguments.labels is None else ["--labels", arguments.labels]
    words = [str(arguments.output), *labels]
    result(f"  longtail train {shlex.join(words)} --model model")


def _format_of(path: Path, points: Dataset) -> str:
    """Return the format that a name tells; files of the Repository have none of their own."""
    suffix, has_texts = suffix_of(path), points.texts is not None
    names = [
        name
        for name, known in FORMATS.items()
        if suffix in known.suffixes and known.holds_texts == has_texts
    ]
    if not has_texts and suffix in {"", ".txt"}:
        names = ["repository"]
    if not names:
        are_written = (
            "texts are written as JSON lines, CSV, TSV or Parquet. Name it .jsonl, .csv, .tsv or "
            ".parquet."
            if has_texts
            else "features are written as in the Extreme Classification Repository, or as "
            "svmlight. Name it .txt or .svm."
        )
        raise InputError(f"{path}: {are_written}")
    return names[0]
