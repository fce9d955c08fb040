"""``longtail evaluate``: every metric of a model on a test set."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.amounts import counted
from longtail.cli.evaluation_report import write_evaluation_report
from longtail.cli.exact_search import add_exact_search, asked_model
from longtail.cli.files import check_inputs, check_output, is_stdout, write_json
from longtail.cli.labelled_points import (
    add_test_arguments,
    in_model_ids,
    points_as_given,
    say_whose_ids,
)
from longtail.cli.metric_tables import (
    comparison_as_json,
    comparison_table,
    frequencies_as_json,
    frequency_table,
    labels_by_frequency,
    metrics_table,
    threshold_table,
    thresholds_as_json,
)
from longtail.cli.metrics_file import what_was_measured
from longtail.cli.notices import notice
from longtail.cli.output import result
from longtail.cli.points import n_features_of
from longtail.data.blocks import points_of
from longtail.data.input_notes import InputWarning
from longtail.data.label_matching import matched_labels
from longtail.data.label_space import in_ids_of
from longtail.data.repository import read_filter
from longtail.data.unlabelled import check_kind
from longtail.errors import InputError, source_name
from longtail.evaluation import answers_to, n_train_points_of
from longtail.folder_exchange import resolved
from longtail.metrics import (
    at_thresholds,
    by_point,
    compare,
    evaluate,
)
from longtail.metrics.hits import USUAL_PLACES, USUAL_RECALL_PLACES, deepest_place
from longtail.metrics.propensity import USUAL_PROPENSITY, inverse_propensities
from longtail.model_folder import ModelFolder
from longtail.predictor import LARGEST_K, load
from longtail.progress import bar
from longtail.report.charts import check_matplotlib

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.dataset import Dataset
    from longtail.metrics import Difference
    from longtail.metrics.hits import Floats, Integers
    from longtail.predictor import Predictor

__all__ = ["add_arguments", "run_command"]

EXAMPLE = "longtail evaluate model test.jsonl"

USUAL = ",".join(map(str, USUAL_PROPENSITY))  # as it is written on the command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="DIR", help="a model folder")
    parser.add_argument(
        "test",
        metavar="TEST",
        help="the test set, in any format of `train`; - reads standard input",
    )
    add_test_arguments(parser)
    parser.add_argument(
        "--json",
        metavar="FILE",
        type=Path,
        help="write the metrics there too, and what was measured; - is standard output",
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        type=Path,
        help="draw all of it: an HTML page with charts, answers, sure mistakes and the labels that "
        "are missed most often; needs matplotlib",
    )
    parser.add_argument(
        "--ks",
        metavar="K,K",
        type=_places,
        default=USUAL_PLACES,
        help=f"how many of the best labels are judged ({','.join(map(str, USUAL_PLACES))})",
    )
    parser.add_argument(
        "--filter",
        metavar="FILE",
        help="pairs `point label` to leave out of the predictions; ids of labels are lines of "
        "--labels, or else the model's own",
    )
    parser.add_argument(
        "--propensity",
        metavar="A,B",
        type=_propensity,
        default=USUAL_PROPENSITY,
        help=f"of propensity-scored metrics ({USUAL}; WikiTitles-500K 0.5,0.4; Amazon's 0.6,2.6)",
    )
    parser.add_argument(
        "--against",
        metavar="DIR",
        help="another model folder: show what it reaches on the same points, measured alike, and "
        "how sure the differences are",
    )
    parser.add_argument(
        "--by-frequency",
        action="store_true",
        help="show what frequent and rare labels contribute to P@5 and PSP@5",
    )
    parser.add_argument(
        "--thresholds",
        action="store_true",
        help="show precision, recall and F1 of the labels of at least some probabilities, to "
        "choose the --threshold of `predict` by; its --top-k is 5 if nothing is said",
    )
    add_exact_search(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Measure, and return the exit code."""
    names = (arguments.test, arguments.labels, arguments.label_pairs, arguments.filter)
    check_inputs(*names)
    for target in filter(None, (arguments.json, arguments.report)):
        check_output(target, read=names)
    if arguments.report is not None:
        _check_report(arguments)
    folder = ModelFolder.open(arguments.model)
    model = asked_model(folder, arguments)
    other = None if arguments.against is None else load(arguments.against)
    given = points_as_given(model, arguments)
    if other is not None:
        is_text = given.texts is not None
        check_kind(arguments.test, is_text=is_text, n_features=n_features_of(other))
    asked = _asked(model, given, arguments)
    answers = _answers(model, asked, arguments.ks)
    metrics = evaluate(*answers.judged, **_measured_by(asked, arguments))
    metrics["points_per_second"] = given.n_points / answers.seconds
    written: dict[str, object] = {key: round(value, 4) for key, value in metrics.items()}
    written |= what_was_measured(folder, arguments, given.n_points, answers.n_without)
    shown = metrics_table(metrics, given.n_points, arguments.ks)
    found = None
    if other is not None:
        notice(f"The same points for {arguments.against}:")
        same = _asked_of_other(other, asked, given, arguments)
        theirs = _answers(other, same, arguments.ks)
        found = compare(
            by_point(*answers.judged, **_measured_by(asked, arguments)),
            by_point(*theirs.judged, **_measured_by(same, arguments)),
        )
        written["against"] = comparison_as_json(found)
        shown += ["", comparison_table(found, arguments.ks)]
    _say_how_many_without(answers, is_filtered=asked.aside is not None)
    tables, further = _further_tables(model, answers, arguments)
    shown += tables
    written |= further
    _tell(shown, written, arguments.json)
    if arguments.report is not None:
        _report(model, asked, answers, metrics, found, arguments)
    return 0


def _check_report(arguments: argparse.Namespace) -> None:
    """Refuse what no page can be written to, before the work."""
    if is_stdout(arguments.report) or arguments.report.suffix.lower() not in {".html", ".htm"}:
        # A name such as train.jsonl would be replaced by the page.
        raise InputError(
            "A report is a page to look at: name a file that ends in .html, such as report.html, "
            f"got {arguments.report}."
        )
    if arguments.json is not None and resolved(arguments.json) == resolved(arguments.report):
        raise InputError(f"--json and --report both name {arguments.report}. Name two files.")
    check_matplotlib()


def _report(
    model: Predictor,
    asked: _Asked,
    answers: _Answers,
    metrics: Mapping[str, float],
    found: Mapping[str, Difference] | None,
    arguments: argparse.Namespace,
) -> None:
    """Draw what was measured."""
    write_evaluation_report(
        arguments.report,
        model=model,
        folder=arguments.model,
        points=asked.points,
        ids=answers.ids,
        probabilities=answers.scores,
        metrics=metrics,
        propensity=arguments.propensity,
        against=None if found is None else (arguments.against, found),
        command=shlex.join(["longtail", *sys.argv[1:]]),
    )
    notice(f"The report is {arguments.report}.")


def _further_tables(
    model: Predictor, answers: _Answers, arguments: argparse.Namespace
) -> tuple[list[str], dict[str, object]]:
    """Return what else was asked for, each table behind an empty line, and as JSON values."""
    ids, scores, truth = answers.judged
    tables: list[str] = []
    written: dict[str, object] = {}
    if arguments.by_frequency:
        bins = labels_by_frequency(model, truth, ids, arguments.propensity)
        tables += ["", frequency_table(bins)]
        written["by_frequency"] = frequencies_as_json(bins)
    if arguments.thresholds:
        found = at_thresholds(ids, scores, truth)
        tables += ["", threshold_table(found, min(ids.shape[1], model.n_labels))]
        written["thresholds"] = thresholds_as_json(found)
    return tables, written


def _tell(shown: list[str], written: dict[str, object], target: Path | None) -> None:
    """Show the lines, and write the numbers if there is where to."""
    # What is read by a program is not to be mixed with what is read by people.
    is_for_program = target is not None and is_stdout(target)
    (notice if is_for_program else result)("\n".join(shown))
    if target is not None:
        write_json(target, written)


class _Asked(NamedTuple):
    """What a model is asked, in its label ids, and by what its answers are measured.

    Attributes
    ----------
    points : Dataset
    aside : csr_array (n_points, n_labels) or None
        Pairs that are set aside: left out of the answers.
    counts : int64 (at most n_labels,)
        How many training points have each label: what a label is worth to PSP.
    n_train_points : int
    """

    points: Dataset
    aside: csr_array | None
    counts: NDArray[np.int64]
    n_train_points: int


class _Answers(NamedTuple):
    """What a model answers, without what is left out.

    Attributes
    ----------
    ids, scores : (n_points, k)
    truth : csr_array (n_points, n_labels)
        In the model's label ids.
    seconds : float
        How long it took.
    """

    ids: Integers
    scores: Floats
    truth: csr_array
    seconds: float

    @property
    def judged(self) -> tuple[Integers, Floats, csr_array]:
        """What metrics take."""
        return self.ids, self.scores, self.truth

    @property
    def n_without(self) -> int:
        """How many points have no answer."""
        return int(np.count_nonzero((self.ids < 0).all(axis=1)))


def _asked(model: Predictor, given: Dataset, arguments: argparse.Namespace) -> _Asked:
    """Return a test set, which has label ids of its own, as a model is asked."""
    dataset = in_model_ids(model, given, arguments)
    aside = None if arguments.filter is None else _pairs_set_aside(arguments, given, dataset)
    return _Asked(dataset, aside, model.train_label_counts, n_train_points_of(model))


def _asked_of_other(
    other: Predictor, own: _Asked, given: Dataset, arguments: argparse.Namespace
) -> _Asked:
    """Return the same for a model to compare with: the same labels, whatever ids it has for them.

    Where both know labels by name, ids of the test set and of pairs are those of the first model.
    What a label is worth is told by the first one's training points, as long as the labels match:
    by two measures the very same answers would differ.
    """
    names, known = own.points.label_space.names, other.label_space
    if names is None or known.names is None:
        theirs = _asked(other, given, arguments)
        is_same = names is None and known.names is None
        if not is_same:
            return theirs
        return theirs._replace(counts=own.counts, n_train_points=own.n_train_points)
    points = in_model_ids(other, own.points, arguments)
    with warnings.catch_warnings():  # of names that several labels share: it was said just now
        warnings.simplefilter("ignore", InputWarning)
        ids, _ = matched_labels(own.points.label_space, known)
        aside = own.aside
        if aside is not None:
            aside = in_ids_of(points.label_space, replace(own.points, labels=aside)).labels
    counts = np.zeros(points.n_labels, np.int64)
    np.add.at(counts, ids[: len(own.counts)], own.counts)
    return _Asked(points, aside, counts, own.n_train_points)


def _answers(model: Predictor, asked: _Asked, places: tuple[int, ...]) -> _Answers:
    """Ask a model for the labels of a test set."""
    _say_if_trained_otherwise(model, is_filtered=asked.aside is not None)
    points, n_places = points_of(asked.points), deepest_place(places, USUAL_RECALL_PLACES)
    model.predict_topk(points[:2], n_places)  # loads the compiled code, which is not to be timed
    started = time.perf_counter()
    blocks = []
    with bar("evaluate", asked.points.n_points, unit=" points") as shown:
        for answers in answers_to(model, points, n_places, asked.aside):
            blocks.append(answers)
            shown.update(len(answers[0]))
    seconds = time.perf_counter() - started
    ids, scores = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return _Answers(ids, scores, asked.points.labels, seconds)


def _say_how_many_without(answers: _Answers, *, is_filtered: bool) -> None:
    """Say how many points have no answer, if any have none."""
    if answers.n_without:
        or_left_out = ", or all its answers are left out" if is_filtered else ""
        notice(
            f"No answer for {counted(answers.n_without, 'point')}: the model knows nothing of what "
            f"is said there{or_left_out}. What is right there counts as missed."
        )


def _measured_by(asked: _Asked, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return by what a model's answers are measured, as `evaluate` and `by_point` take it."""
    return {
        "train_label_counts": asked.counts,
        "n_train_points": asked.n_train_points,
        "ks": arguments.ks,
        "recall_ks": USUAL_RECALL_PLACES,
        "propensity": arguments.propensity,
    }


def _pairs_set_aside(arguments: argparse.Namespace, given: Dataset, dataset: Dataset) -> csr_array:
    """Return the pairs of a filter file in the model's label ids.

    Parameters
    ----------
    arguments : argparse.Namespace
    given, dataset : Dataset
        The test set in its own label ids, which are lines of the file ``--labels`` if there is one,
        and in the model's.
    """
    if arguments.labels is not None:
        pairs = read_filter(arguments.filter, given.n_points, given.n_labels)
        return in_ids_of(dataset.label_space, replace(given, labels=pairs)).labels
    pairs = read_filter(arguments.filter, dataset.n_points, dataset.n_labels)
    if given.label_space.names is not None and pairs.nnz:
        label = int(pairs.indices.min())
        say_whose_ids(source_name(arguments.filter), label, dataset.label_space)
    return pairs


def _say_if_trained_otherwise(model: Predictor, *, is_filtered: bool) -> None:
    """Say so if the training was told of pairs to leave out and this is not, or the reverse."""
    if is_filtered and not model.description.get("n_set_aside"):
        notice(
            "The model was not told in training that pairs are left out: answers may be better by "
            "one that is, see `longtail train --filter`."
        )
    elif not is_filtered and model.description.get("n_set_aside"):
        notice(
            "The model was told in training that some pairs do not count, and nothing is left out "
            "here: pass those of the test points as --filter."
        )


def _propensity(text: str) -> tuple[float, float]:
    """Parse ``A,B``."""
    try:
        a, b = (float(part) for part in text.split(","))
    except ValueError:
        a = b = math.nan
    if not math.isfinite(a + b):
        raise argparse.ArgumentTypeError(f"expected A,B such as {USUAL}, got {text!r}")
    try:
        inverse_propensities(np.zeros(1, np.int64), 1, a, b)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return a, b


def _places(text: str) -> tuple[int, ...]:
    """Parse ``K,K``: places in a ranking, which are taken in ascending order."""
    try:
        places = {int(part) for part in text.split(",")}
    except ValueError:
        places = {0}
    if min(places) < 1 or max(places) > LARGEST_K:
        raise argparse.ArgumentTypeError(
            f"expected numbers from 1 to {LARGEST_K:,} such as 1,3,5, got {text!r}"
        )
    return tuple(sorted(places))
