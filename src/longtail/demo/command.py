"""``longtail demo``."""

from __future__ import annotations

import shlex
import sys
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longtail.cli.evaluation_report import SPEED, measured_sections, shown_figures
from longtail.cli.files import check_output, say_what_stayed
from longtail.demo.data import wordnet
from longtail.errors import InputError
from longtail.metrics import evaluate
from longtail.metrics.propensity import USUAL_PROPENSITY
from longtail.model_folder import ModelFolder, check_target
from longtail.progress import ProgressBar
from longtail.report import sections
from longtail.report.answers import examples
from longtail.report.charts import check_matplotlib
from longtail.report.page import key_figures, write_page

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from longtail.data.dataset import Dataset
    from longtail.predictor import Predictor

__all__ = ["EXAMPLES", "add_arguments", "measure_latency", "run_command"]

EXAMPLE = "longtail demo"

# Our own words: none of these definitions is in WordNet.
EXAMPLES = (
    "a port in the south of Spain, on the coast of the Mediterranean Sea",
    "a dry red wine made from grapes that grow in the hills of Italy",
    "a person who repairs shoes",
    "a disease of the lungs caused by breathing dust",
    "feeling very happy after good news",
    "someone who writes computer programs for a living",
)
_N_LATENCY_TEXTS = 2_000
_SHOWN_METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "nDCG@5", "R@10", "R@100")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's options.

    Examples
    --------
    >>> from argparse import ArgumentParser
    >>> from longtail.demo.command import add_arguments
    >>> parser = ArgumentParser()
    >>> add_arguments(parser)
    >>> parser.parse_args([]).model
    PosixPath('demo-model')
    """
    parser.add_argument(
        "--report",
        type=Path,
        default=Path("demo-report.html"),
        metavar="FILE",
        help="the report (default: %(default)s)",
    )
    parser.add_argument(
        "--model",
        type=Path,
        default=Path("demo-model"),
        metavar="DIR",
        help="the model folder (default: %(default)s)",
    )


def run_command(arguments: Namespace) -> int:
    """Train on WordNet, evaluate, answer examples and write the report.

    Parameters
    ----------
    arguments : Namespace
        With the options of `add_arguments`.

    Returns
    -------
    int
        Exit code.

    Raises
    ------
    LongtailError
        If something that training or the report needs is missing, or a path cannot be written.
    """
    from longtail import LongtailClassifier  # noqa: PLC0415 - slow, `--help` must not be

    started = time.perf_counter()
    _check(arguments)
    train, test = wordnet()
    model = LongtailClassifier()
    introduction = _introduction(train, test)
    _say(introduction)
    with ProgressBar() as progress:
        model.fit_dataset(train, callbacks=(progress,))
    training = model.training_report()
    model.save(arguments.model)
    say_what_stayed(arguments.model)
    predictor = model.predictor_
    ids, probabilities, metrics = _evaluated(predictor, test)
    milliseconds = measure_latency(predictor, list(islice(test.texts or (), _N_LATENCY_TEXTS)))
    _say_metrics(metrics, milliseconds, test.n_points)
    answers = [(text, predictor.predict(text, 5)) for text in EXAMPLES]
    _say_examples(answers)
    file_sizes = dict(sorted(ModelFolder.open(arguments.model).sizes.items()))
    measured = measured_sections(predictor, test, ids, probabilities, metrics, USUAL_PROPENSITY)
    write_page(
        arguments.report,
        title="longtail demo: from a definition to related dictionary entries",
        introduction=introduction,
        headline=key_figures(shown_figures(predictor, metrics, training, file_sizes)),
        sections={
            "Example predictions": examples(answers),
            **measured,
            "Speed": sections.latency(milliseconds, metrics[SPEED]),
            "Training": sections.training_stages(training),
            "Data": sections.data({"training": train.describe(), "test": test.describe()}),
            "Model": sections.files_and_settings(training, file_sizes),
            "How this was made": sections.origin(_command(arguments)),
        },
    )
    _say_next(arguments, time.perf_counter() - started)
    return 0


def measure_latency(predictor: Predictor, texts: Sequence[str]) -> NDArray[np.float64]:
    """Return how many milliseconds each text takes, one by one, to its five best label names.

    Parameters
    ----------
    predictor : Predictor
    texts : sequence of str

    Returns
    -------
    float64 array (n_texts,)
    """
    for text in texts[:20]:  # compiled functions are loaded when they are first called
        predictor.predict(text)
    seconds = np.empty(len(texts))
    for i, text in enumerate(texts):
        start = time.perf_counter()
        predictor.predict(text)
        seconds[i] = time.perf_counter() - start
    return 1000 * seconds


def _check(arguments: Namespace) -> None:
    """Say what would stop the command at its end before it has spent minutes."""
    check_matplotlib()
    check_target(arguments.model)
    model, report = Path(arguments.model).resolve(), Path(arguments.report).resolve()
    if report.is_relative_to(model):
        raise InputError(
            f"The report {arguments.report} would be in the model folder {arguments.model}, which "
            "holds files of its own alone. Name another file as --report."
        )
    check_output(arguments.report)


def _introduction(train: Dataset, test: Dataset) -> str:
    """Return what is about to be trained."""
    return (
        f"The default recipe, LongtailClassifier, learns from {train.n_points:,} WordNet "
        f"definitions which of {train.n_labels:,} dictionary entries are related to a text, and is "
        f"tested on {test.n_points:,} others."
    )


def _evaluated(
    predictor: Predictor, test: Dataset
) -> tuple[NDArray[np.int32], NDArray[np.float32], dict[str, float]]:
    """Return the answers to the test set, which is asked in a batch, and what they are worth."""
    start = time.perf_counter()
    ids, probabilities = predictor.predict_topk(test.texts or (), 100)
    seconds = time.perf_counter() - start
    metrics = evaluate(
        ids,
        probabilities,
        test.labels,
        train_label_counts=predictor.train_label_counts,
        n_train_points=predictor.description["n_points"],
    )
    return ids, probabilities, metrics | {SPEED: test.n_points / seconds}


def _say(line: str = "") -> None:
    """Write a line of the results."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _say_metrics(
    metrics: Mapping[str, float], milliseconds: NDArray[np.float64], n_points: int
) -> None:
    """Show the most important metrics and the speed."""
    _say(f"\nOn all {n_points:,} test points, in percent:")
    _say("  ".join(f"{name:>6}" for name in _SHOWN_METRICS))
    _say("  ".join(f"{metrics[name]:6.2f}" for name in _SHOWN_METRICS))
    median, p95, p99 = np.percentile(milliseconds, [50, 95, 99])
    _say(
        f"\nOne text to label names, one thread: median {median:.2f} ms, "
        f"95 % below {p95:.2f} ms, 99 % below {p99:.2f} ms. "
        f"In a batch: {metrics[SPEED]:,.0f} texts a second."
    )


def _say_examples(examples: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> None:
    """Show what the model answers."""
    for text, answers in examples:
        _say(f"\n{text}")
        for name, probability in answers:
            _say(f"  {probability:6.1%}  {name}")


def _say_next(arguments: Namespace, seconds: float) -> None:
    """Show where things are and what to try."""
    model = shlex.quote(str(arguments.model))
    _say(f"\nAll of this took {seconds:.0f} s. The report is {arguments.report}. Try next:")
    _say(f'  longtail predict {model} --text "a small boat with two sails"')
    _say(f"  longtail inspect {model}")


def _command(arguments: Namespace) -> str:
    """Return the command line that does this again."""
    words = ["longtail", "demo", "--report", str(arguments.report), "--model", str(arguments.model)]
    return shlex.join(words)
