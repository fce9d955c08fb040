"""``longtail evaluate``: every metric of a model on a test set."""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longtail.cli.output import check_output, counted, notice, result, table, write_json
from longtail.cli.points import answered, blocks_of, points_of
from longtail.data.dataset import Dataset
from longtail.data.formats import FORMATS
from longtail.data.repository import read_filter
from longtail.errors import InputError
from longtail.metrics import by_frequency_quantile, evaluate, set_aside
from longtail.metrics.hits import deepest_place
from longtail.metrics.predictions import places_to_predict
from longtail.predictor import LARGEST_K, Predictor, load

if TYPE_CHECKING:
    from longtail.metrics.hits import Floats, Integers


__all__ = ["add_arguments", "add_test_arguments", "run_command", "test_set"]

PLACES = (1, 3, 5)
RECALL_PLACES = (10, 100)
N_BINS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="DIR", help="a model folder")
    parser.add_argument("test", metavar="TEST", help="the test set, in any format of `train`")
    add_test_arguments(parser)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the metrics there too")
    parser.add_argument(
        "--filter", metavar="FILE", help="pairs `point label` to leave out of the predictions"
    )
    parser.add_argument(
        "--propensity",
        metavar="A,B",
        type=_propensity,
        default=(0.55, 1.5),
        help="of propensity-scored metrics (0.55,1.5; WikiTitles-500K 0.5,0.4; Amazon's 0.6,2.6)",
    )
    parser.add_argument(
        "--by-frequency",
        action="store_true",
        help="show what frequent and rare labels contribute to P@5 and PSP@5",
    )


def add_test_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `test_set` reads beside the file itself, ``test``."""
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="names that the ids in TEST stand for; without it they are the model's own ids",
    )
    parser.add_argument(
        "--label-pairs", metavar="FILE", help="the tst_X_Y half of a pair of sparse files"
    )
    parser.add_argument("--format", choices=FORMATS, help="of TEST; guessed without it")


def run_command(arguments: argparse.Namespace) -> int:
    """Measure, and return the exit code."""
    if arguments.json is not None:
        names = (arguments.test, arguments.labels, arguments.label_pairs, arguments.filter)
        check_output(arguments.json, read=names)
    model = load(arguments.model)
    dataset = test_set(model, arguments)
    if not dataset.labels.nnz:
        raise InputError(f"No point of {arguments.test} has a label, so nothing can be measured.")
    barred = None
    if arguments.filter is not None:
        barred = read_filter(arguments.filter, dataset.n_points, dataset.n_labels)
    most = min(model.n_labels, LARGEST_K)
    n_places = places_to_predict(deepest_place(PLACES, RECALL_PLACES), barred, most)
    ids, scores, seconds = _predictions(model, dataset, n_places)
    if barred is not None:
        ids, scores = set_aside(ids, scores, barred)
    metrics = evaluate(
        ids,
        scores,
        dataset.labels,
        train_label_counts=model.train_label_counts,
        n_train_points=model.description["n_points"],
        ks=PLACES,
        recall_ks=RECALL_PLACES,
        propensity=arguments.propensity,
    )
    metrics["points_per_second"] = dataset.n_points / seconds
    _show(metrics, dataset.n_points)
    if arguments.by_frequency:
        _show_by_frequency(model, dataset, ids, arguments.propensity)
    if arguments.json is not None:
        write_json(arguments.json, {key: round(value, 4) for key, value in metrics.items()})
    return 0


def test_set(model: Predictor, arguments: argparse.Namespace) -> Dataset:
    """Read the test set in the model's label ids."""
    own = arguments.labels is None
    dataset = Dataset.read(
        arguments.test,
        labels_file=arguments.labels,
        labels_path=arguments.label_pairs,
        format=arguments.format,
        label_space=model.label_space if own else None,
        unknown_labels="extend",
        n_features=None if model.vectorizer is not None else model.n_features,
    )
    if not own:
        dataset = dataset.relabelled(model.label_space)
    if dataset.labels.nnz and dataset.labels.indices.min() >= model.n_labels:
        notice(
            f"longtail: warning: {arguments.test}: none of its labels is one of the model's "
            f"{model.n_labels:,}, so all count as missed. Names must match exactly, capital "
            f"letters and spaces included: it has {dataset.label_space.name(model.n_labels)!r}, "
            f"the model has {model.label_space.name(0)!r}."
        )
    return dataset


def _predictions(model: Predictor, dataset: Dataset, k: int) -> tuple[Integers, Floats, float]:
    """Return ids and scores of the k best labels, and the seconds that it took."""
    points = points_of(dataset)
    model.predict_topk(points[:2], k)  # loads the compiled code, which is not to be timed
    started = time.perf_counter()
    blocks = list(
        answered(model, blocks_of(points), k, n_points=dataset.n_points, title="evaluate")
    )
    seconds = time.perf_counter() - started
    ids = np.concatenate([answers.ids for answers in blocks])
    return ids, np.concatenate([answers.scores for answers in blocks]), seconds


def _show(metrics: dict[str, float], n_points: int) -> None:
    """Write the table."""
    rows = [
        [name, *(f"{metrics[f'{name}@{k}']:.2f}" for k in PLACES)]
        for name in ("P", "nDCG", "PSP", "PSnDCG")
    ]
    result(table(["%", *(f"@{k}" for k in PLACES)], rows))
    result("  ".join(f"R@{k} {metrics[f'R@{k}']:.2f}" for k in RECALL_PLACES))
    speed = f"{metrics['points_per_second']:,.0f} points a second"
    result(f"{counted(n_points, 'point')}, {speed}")


def _show_by_frequency(
    model: Predictor,
    dataset: Dataset,
    ids: Integers,
    propensity: tuple[float, float],
) -> None:
    """Write what each fifth of the labels contributes, the most frequent first."""
    n_bins = min(N_BINS, dataset.n_labels)
    bins = by_frequency_quantile(
        ids,
        dataset.labels,
        max(PLACES),
        train_label_counts=model.train_label_counts,
        n_train_points=model.description["n_points"],
        n_bins=n_bins,
        propensity=propensity,
    )
    head = ["labels by frequency", "points a label", "P@5", "PSP@5"]
    rows = [
        [
            f"{i + 1} ({counted(part.n_labels, 'label')})",
            f"{part.mean_frequency:,.1f}",
            f"{100 * part.precision:.2f}",
            f"{100 * part.ps_precision:.2f}",
        ]
        for i, part in enumerate(bins)
    ]
    result("")
    result(table(head, rows))
    if dataset.n_labels > model.n_labels:
        n_new = dataset.n_labels - model.n_labels
        notice(
            f"Not in the model, and counted as missed: {counted(n_new, 'label')} of the test set."
        )


def _propensity(text: str) -> tuple[float, float]:
    """Parse ``A,B``."""
    try:
        a, b = (float(part) for part in text.split(","))
    except ValueError:
        a = b = math.nan
    if not math.isfinite(a + b):
        raise argparse.ArgumentTypeError(f"expected A,B such as 0.55,1.5, got {text!r}")
    return a, b
