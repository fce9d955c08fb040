"""A model before and after it was made smaller or faster: its size, its time and its accuracy."""

from __future__ import annotations

import time
import warnings
from statistics import median
from typing import TYPE_CHECKING

from longtail.amounts import bytes_text
from longtail.cli.files import check_inputs
from longtail.cli.labelled_points import add_test_arguments, labelled_points
from longtail.cli.notices import notice
from longtail.cli.own_columns import check_file_of
from longtail.data.input_notes import InputWarning
from longtail.metrics.hits import USUAL_PLACES
from longtail.model_folder import ModelFolder

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from longtail.data.dataset import Dataset
    from longtail.predictor import Predictor

__all__ = ["add_comparison_arguments", "comparison", "comparison_set"]

N_TIMED = 100


def add_comparison_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `comparison_set` reads."""
    parser.add_argument("--test", metavar="TEST", help="labelled points, to measure what is lost")
    add_test_arguments(parser)


def comparison_set(model: Predictor, arguments: argparse.Namespace) -> Dataset | None:
    """Return the labelled points that ``--test`` names, if it does, before any work is done."""
    options = ["labels", "label_pairs", "format", "labels_column", "label_separator"]
    if "texts" not in arguments:  # else the column is that of --texts, too
        options.append("text_column")
    check_file_of(arguments, "test", options)
    check_inputs(arguments.test, arguments.labels, arguments.label_pairs)
    return None if arguments.test is None else labelled_points(model, arguments)


def comparison(
    model: Predictor,
    other: Predictor,
    size: int,
    target: str,
    dataset: Dataset | None,
    texts: Sequence[str] = (),
) -> list[list[str]]:
    """Return the rows of a table: sizes, times and accuracies of two models.

    Parameters
    ----------
    model, other : Predictor
        The latter is in the folder `target`.
    size : int
        Of the former's folder, in bytes.
    target : str
    dataset : Dataset or None
        Labelled points.
    texts : sequence of str
        Of which some are answered one by one, to see how long that takes.
    """
    after = sum(ModelFolder.open(target).sizes.values())
    rows = [["size", bytes_text(size), bytes_text(after), f"{100 * after / size:.0f} %"]]
    if texts:
        own, others = (_milliseconds(one, texts[:N_TIMED]) for one in (model, other))
        rows.append(["a text", f"{own:.2f} ms", f"{others:.2f} ms", f"{own / others:.0f} x"])
    if dataset is None:
        if other.scorer is not model.scorer:  # a copy loses nothing
            notice("Pass --test FILE to see what is lost in accuracy.")
        return rows
    precisions = [_precisions(one, dataset) for one in (model, other)]
    return rows + [
        [name, f"{own:.2f}", f"{others:.2f}", f"{others - own:+.2f}"]
        for (name, own), others in zip(precisions[0].items(), precisions[1].values(), strict=True)
    ]


def _milliseconds(model: Predictor, texts: Sequence[str]) -> float:
    """Return the median time of an answer to one text."""
    model.predict_topk([texts[0]], 5)  # loads compiled code and sessions
    times = []
    for text in texts:
        started = time.perf_counter()
        model.predict_topk([text], 5)
        times.append(time.perf_counter() - started)
    return 1000 * median(times)


def _precisions(model: Predictor, dataset: Dataset) -> dict[str, float]:
    """Return P@1, P@3 and P@5, in percent."""
    with warnings.catch_warnings():  # of labels that the model does not know: told when it was read
        warnings.simplefilter("ignore", InputWarning)
        metrics = model.evaluate(dataset, USUAL_PLACES, recall_ks=USUAL_PLACES)
    return {f"P@{k}": metrics[f"P@{k}"] for k in USUAL_PLACES}
