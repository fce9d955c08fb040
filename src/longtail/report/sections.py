"""What there is to tell of a model: how accurate it is, how fast, how it was trained, its size."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.amounts import bytes_text
from longtail.kernels.jit import n_usable_cores
from longtail.report.charts import (
    frequency_chart,
    latency_chart,
    loss_chart,
    reliability_chart,
    threshold_chart,
)
from longtail.report.page import Bar, charts, escaped, figure, folded, paragraph, table
from longtail.report.rows import (
    COMPARED,
    CUT_AT,
    MAY_BE_CHANCE,
    rows_of_differences,
    rows_of_metrics,
    rows_of_thresholds,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from longtail.metrics import AtThreshold, Difference, FrequencyBin, ProbabilityBin

__all__ = [
    "accuracy",
    "comparison",
    "data",
    "files_and_settings",
    "latency",
    "origin",
    "probabilities",
    "training_stages",
]

_PACKAGES = ("longtail", "numpy", "scipy", "numba", "torch", "matplotlib")


def accuracy(metrics: Mapping[str, float], bins: Sequence[FrequencyBin], k: int) -> str:
    """Return the metric table and the charts by label frequency.

    Parameters
    ----------
    metrics : mapping of str to float
        In percent, as `longtail.evaluate` returns them.
    bins : sequence of FrequencyBin
        From `longtail.metrics.by_frequency_quantile`.
    k : int
        That of `bins`.
    """
    shares = [[100 * part.precision, 100 * part.ps_precision] for part in bins]
    names = (f"P@{k}", f"PSP@{k}")
    drawn = (
        figure(
            f"Where {name} comes from",
            frequency_chart(bins, name, [share[i] for share in shares]),
        )
        for i, name in enumerate(names)
    )
    rows = [
        (
            str(number),
            f"{part.n_labels:,}",
            f"{part.mean_frequency:.1f}",
            *(f"{value:.2f}" for value in share),
        )
        for number, (part, share) in enumerate(zip(bins, shares, strict=True), start=1)
    ]
    header = ("quantile", "labels", "points a label", *names)
    numbers = table("Contribution of each label-frequency quantile, in percent", header, rows)
    return (
        _metric_table(metrics)
        + paragraph(
            "P@k is the share of the first k answers that are right; PSP@k gives rare labels, "
            "which are harder and of more use, a larger weight; R@k is the share of a point's "
            "labels that are among its first k answers. Below, the labels are cut by their "
            "frequency in the training data into quantiles of equal numbers of labels; the bars "
            "add up to the metric."
        )
        + charts(drawn)
        + folded("The numbers of these charts", numbers)
    )


def _metric_table(metrics: Mapping[str, float]) -> str:
    """Return one row a metric, one column for each number of places."""
    header, rows = rows_of_metrics(metrics)
    return table("On the test points, in percent", header, rows)


def comparison(found: Mapping[str, Difference]) -> str:
    """Return what another model reaches on the same points, as `longtail.metrics.compare` says."""
    rows = rows_of_differences(found)
    return table("On the same points, in percent", ("metric", *COMPARED), rows) + paragraph(
        MAY_BE_CHANCE
    )


def probabilities(bins: Sequence[ProbabilityBin], thresholds: Sequence[AtThreshold]) -> str:
    """Return whether probabilities can be trusted, and what a least probability brings.

    Parameters
    ----------
    bins : sequence of ProbabilityBin
        From `longtail.metrics.by_probability`.
    thresholds : sequence of AtThreshold
        From `longtail.metrics.at_thresholds`.
    """
    drawn = [
        figure("Are answers right as often as they say?", reliability_chart(bins)),
        figure("What a least probability brings", threshold_chart(thresholds)),
    ]
    trusted = [
        (
            f"{100 * part.probability:.1f} %",
            f"{100 * part.share_right:.1f} %",
            f"{part.n_answers:,}",
        )
        for part in bins
    ]
    numbers = table("Answers by their probability", ("said", "right", "answers"), trusted) + table(
        "Answers of at least some probability, in percent",
        CUT_AT,
        rows_of_thresholds(thresholds),
    )
    return (
        charts(drawn)
        + paragraph(
            "On the dashed line of the first chart, answers are right exactly as often as they "
            "say; below it, they promise too much."
        )
        + folded("The numbers of these charts", numbers)
    )


def latency(milliseconds: NDArray[np.float64], points_per_second: float) -> str:
    """Return the histogram of what single texts took, and its quantiles.

    Parameters
    ----------
    milliseconds : float array (n_texts,)
    points_per_second : float
        In a batch, on all cores.
    """
    quantiles = {"median": 50, "95 % below": 95, "99 % below": 99}
    rows = [(name, f"{np.percentile(milliseconds, q):.2f} ms") for name, q in quantiles.items()]
    rows.append(("in a batch, on all cores", f"{points_per_second:,.0f} texts a second"))
    caption = f"From text to label names, {len(milliseconds):,} texts one by one, one thread"
    return table(caption, (), rows) + charts(
        [figure("Time that one text takes", latency_chart(milliseconds))]
    )


def training_stages(training: Mapping[str, Any]) -> str:
    """Return learning curves and the time of each stage.

    Parameters
    ----------
    training : mapping
        What ``training.json`` in a model folder holds.
    """
    drawn = []
    for stage, entries in groupby(training["history"], key=lambda entry: entry["stage"]):
        losses = [entry["loss"] for entry in entries]
        drawn.append(figure(f"{stage}: loss by epoch", loss_chart(stage, losses)))
    whole = max(training["wall_seconds"], 1e-9)
    rows = [
        (
            stage,
            f"{time['wall_seconds']:,.1f}",
            f"{time['cpu_seconds']:,.1f}",
            Bar(time["wall_seconds"] / whole),
        )
        for stage, time in training["stages"].items()
    ]
    total = (f"{training['wall_seconds']:,.1f}", f"{training['cpu_seconds']:,.1f}")
    rows.append(("together", *total, Bar(0)))
    header = ("stage", "seconds", "CPU seconds", "")
    peak = paragraph(f"Peak memory: {bytes_text(training['peak_memory_mb'] * 10**6)}.")
    return charts(drawn) + table("Time a stage", header, rows) + peak


def data(statistics: Mapping[str, Mapping[str, float]]) -> str:
    """Return the parts of the data side by side.

    Parameters
    ----------
    statistics : mapping of str to mapping
        What `Dataset.describe` returns, by the name of the part, such as ``"training"``.
    """
    names = dict.fromkeys(name for part in statistics.values() for name in part)
    rows = [
        (
            name.removeprefix("n_").replace("_", " "),
            *(_number(part.get(name)) for part in statistics.values()),
        )
        for name in names
    ]
    return table("Counts and averages", ("", *statistics), rows)


def files_and_settings(training: Mapping[str, Any], file_sizes: Mapping[str, int]) -> str:
    """Return the bytes of each file of a model, and the settings that it was trained with.

    Parameters
    ----------
    training : mapping
        What ``training.json`` in a model folder holds; empty of a model without it.
    file_sizes : mapping of str to int
    """
    rows = [(name, bytes_text(size)) for name, size in file_sizes.items()]
    rows.append(("together", bytes_text(sum(file_sizes.values()))))
    shown = table("Files", ("file", "size"), rows)
    if not training:
        return shown
    settings = [(name, str(value)) for name, value in training["settings"].items()]
    caption = f"Recipe {training['recipe']}, seed {training['seed']}"
    return shown + folded("All settings", table(caption, (), settings))


def origin(command: str) -> str:
    """Return what is needed to make the report again: the command, versions, the machine."""
    versions = {name: _version(name) for name in _PACKAGES} | {
        "Python": platform.python_version(),
        "system": platform.platform(terse=True),
        "machine": f"{platform.machine()}, {n_usable_cores()} of {os.cpu_count()} cores",
    }
    return f"<pre>{escaped(command)}</pre>" + table("Versions", (), list(versions.items()))


def _version(package: str) -> str:
    """Return the version of a package; a checkout on the path has none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _number(value: float | None) -> str:
    """Write a count with separators, an average with two decimals."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
