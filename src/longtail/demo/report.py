"""What became of a training run, as one HTML file that needs nothing else.

The page follows the reader's choice of light or dark, fits a narrow screen, and can be read out.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.cli.output import bytes_text, time_text
from longtail.data.paths import replacing
from longtail.demo.charts import frequency_chart, latency_chart, loss_chart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from longtail.metrics import FrequencyBin

__all__ = ["Evaluation", "write_report"]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What was measured on test points.

    Parameters
    ----------
    metrics : mapping of str to float
        In percent, as `longtail.evaluate` returns them.
    frequency_k : int
        The k of `by_frequency`.
    by_frequency : sequence of FrequencyBin
        From `longtail.metrics.by_frequency_quantile`.
    milliseconds : float array (n_texts,)
        What single texts took.
    points_per_second : float
        In a batch, on all cores.
    """

    metrics: Mapping[str, float]
    frequency_k: int
    by_frequency: Sequence[FrequencyBin]
    milliseconds: NDArray[np.float64]
    points_per_second: float


def write_report(
    path: str | Path,
    *,
    title: str,
    introduction: str,
    training: Mapping[str, Any],
    statistics: Mapping[str, Mapping[str, float]],
    evaluation: Evaluation,
    examples: Sequence[tuple[str, Sequence[tuple[str, float]]]],
    file_sizes: Mapping[str, int],
    command: str,
    versions: Mapping[str, str],
) -> None:
    """Write the report.

    Parameters
    ----------
    path : str or Path
        The HTML file; it appears once it is complete.
    title, introduction : str
        Plain text.
    training : mapping
        What ``training.json`` in a model folder holds.
    statistics : mapping of str to mapping
        What `Dataset.describe` returns, by the name of the part, such as ``"training"``.
    evaluation : Evaluation
    examples : sequence of (text, answers)
        Answers as `Predictor.predict` returns them.
    file_sizes : mapping of str to int
        Bytes of each file of the model.
    command : str
        What makes this report again.
    versions : mapping of str to str
        Of the software and the machine.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError
        If the folder that `path` is to be in does not exist.
    """
    sections = [
        _headline(training, evaluation, file_sizes),
        _section("Example predictions", _examples(examples)),
        _section("Accuracy", _accuracy(evaluation)),
        _section("Speed", _speed(evaluation)),
        _section("Training", _training(training)),
        _section("Data", _statistics(statistics)),
        _section("Model", _model(training, file_sizes)),
        _section("How this was made", _origin(command, versions)),
    ]
    page = _page(title, introduction, sections)
    with replacing(path) as stream:
        stream.write(page.encode())


def _page(title: str, introduction: str, sections: Iterable[str]) -> str:
    """Put the whole page together."""
    style = files("longtail.demo").joinpath("report.css").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_text(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{_text(title)}</h1>
<p>{_text(introduction)}</p>
</header>
<main>
{"".join(sections)}</main>
</body>
</html>
"""


def _headline(
    training: Mapping[str, Any], evaluation: Evaluation, file_sizes: Mapping[str, int]
) -> str:
    """Return the six figures that most look for."""
    metrics = evaluation.metrics
    figures = {
        "labels": f"{training['n_labels']:,}",
        "P@1": f"{metrics['P@1']:.1f} %",
        "PSP@1": f"{metrics['PSP@1']:.1f} %",
        "training": time_text(training["wall_seconds"]),
        "one text, median": f"{np.median(evaluation.milliseconds):.2f} ms",
        "model": bytes_text(sum(file_sizes.values())),
    }
    items = (f"<div><dt>{_text(k)}</dt><dd>{_text(v)}</dd></div>" for k, v in figures.items())
    return f'<dl class="figures">{"".join(items)}</dl>\n'


def _examples(examples: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> str:
    """Return one small table a text: label, probability, bar."""
    tables = []
    for text, answers in examples:
        rows = [(name, f"{100 * p:.0f} %", _Bar(p)) for name, p in answers]
        tables.append(_table(text, (), rows))
    return (
        "<p>Texts that are not in the data, chosen by hand, and the labels that the model finds "
        "most probable.</p>"
        f'<div class="examples">{"".join(tables)}</div>'
    )


def _accuracy(evaluation: Evaluation) -> str:
    """Return the metric table and the charts by label frequency."""
    k, bins = evaluation.frequency_k, evaluation.by_frequency
    shares = [[100 * part.precision, 100 * part.ps_precision] for part in bins]
    metrics = (f"P@{k}", f"PSP@{k}")
    charts = (
        _figure(
            f"Where {metric} comes from",
            frequency_chart(bins, metric, [share[i] for share in shares]),
        )
        for i, metric in enumerate(metrics)
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
    header = ("quantile", "labels", "points a label", *metrics)
    numbers = _table("Contribution of each label-frequency quantile, in percent", header, rows)
    return (
        _metric_table(evaluation.metrics)
        + "<p>P@k is the share of the first k answers that are right; PSP@k gives rare labels, "
        "which are harder and of more use, a larger weight. Below, the labels are cut by their "
        "frequency in the training data into quantiles of equal numbers of labels; the bars add up "
        "to the metric.</p>"
        f"{_charts(charts)}"
        f"<details><summary>The numbers of these charts</summary>{numbers}</details>"
    )


def _metric_table(metrics: Mapping[str, float]) -> str:
    """Return one row a metric, one column for each number of places."""
    by_family: dict[str, dict[int, float]] = {}
    for name, value in metrics.items():
        family, _, k = name.partition("@")
        by_family.setdefault(family, {})[int(k)] = value
    places = sorted({k for values in by_family.values() for k in values})
    rows = [
        (family, *(f"{values[k]:.2f}" if k in values else "" for k in places))
        for family, values in by_family.items()
    ]
    header = ("metric", *(f"@{k}" for k in places))
    return _table("On the test points, in percent", header, rows)


def _speed(evaluation: Evaluation) -> str:
    """Return the latency histogram and its quantiles."""
    times = evaluation.milliseconds
    quantiles = {"median": 50, "95 % below": 95, "99 % below": 99}
    rows = [(name, f"{np.percentile(times, q):.2f} ms") for name, q in quantiles.items()]
    rows.append(("in a batch, on all cores", f"{evaluation.points_per_second:,.0f} texts a second"))
    caption = f"From text to label names, {len(times):,} texts one by one, one thread"
    return _table(caption, (), rows) + _charts(
        [_figure("Time that one text takes", latency_chart(times))]
    )


def _training(training: Mapping[str, Any]) -> str:
    """Return learning curves and the time of each stage."""
    charts = []
    for stage, entries in groupby(training["history"], key=lambda entry: entry["stage"]):
        losses = [entry["loss"] for entry in entries]
        charts.append(_figure(f"{stage}: loss by epoch", loss_chart(stage, losses)))
    whole = max(training["wall_seconds"], 1e-9)
    rows = [
        (
            stage,
            f"{time['wall_seconds']:,.1f}",
            f"{time['cpu_seconds']:,.1f}",
            _Bar(time["wall_seconds"] / whole),
        )
        for stage, time in training["stages"].items()
    ]
    total = (f"{training['wall_seconds']:,.1f}", f"{training['cpu_seconds']:,.1f}")
    rows.append(("together", *total, _Bar(0)))
    header = ("stage", "seconds", "CPU seconds", "")
    peak = f"<p>Peak memory: {bytes_text(training['peak_memory_mb'] * 2**20)}.</p>"
    return _charts(charts) + _table("Time a stage", header, rows) + peak


def _statistics(statistics: Mapping[str, Mapping[str, float]]) -> str:
    """Return the parts of the data side by side."""
    names = dict.fromkeys(name for part in statistics.values() for name in part)
    rows = [
        (
            name.removeprefix("n_").replace("_", " "),
            *(_number(part.get(name)) for part in statistics.values()),
        )
        for name in names
    ]
    return _table("Counts and averages", ("", *statistics), rows)


def _model(training: Mapping[str, Any], file_sizes: Mapping[str, int]) -> str:
    """Return sizes and settings."""
    rows = [(name, bytes_text(size)) for name, size in file_sizes.items()]
    rows.append(("together", bytes_text(sum(file_sizes.values()))))
    settings = [(name, str(value)) for name, value in training["settings"].items()]
    caption = f"Recipe {training['recipe']}, seed {training['seed']}"
    return (
        _table("Files", ("file", "size"), rows)
        + f"<details><summary>All settings</summary>{_table(caption, (), settings)}</details>"
    )


def _origin(command: str, versions: Mapping[str, str]) -> str:
    """Return what is needed to make the report again."""
    return f"<pre>{_text(command)}</pre>" + _table("Versions", (), list(versions.items()))


class _Bar(float):
    """A share in [0, 1] that a table draws as a bar; its cell is not read out."""


def _table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str | _Bar]]) -> str:
    """Return a table whose first column names the rows."""
    head = "".join(
        f'<th scope="col">{_text(name)}</th>' if name else "<td></td>" for name in header
    )
    head = f"<thead><tr>{head}</tr></thead>" if header else ""
    body = "".join(
        f'<tr><th scope="row">{_text(str(first))}</th>{"".join(map(_cell, rest))}</tr>'
        for first, *rest in rows
    )
    return (
        f'<div class="scroll"><table><caption>{_text(caption)}</caption>{head}'
        f"<tbody>{body}</tbody></table></div>\n"
    )


def _cell(value: str | _Bar) -> str:
    """Return one cell: a bar or text."""
    if isinstance(value, _Bar):
        width = f"{100 * min(max(value, 0.0), 1.0):.1f}"
        return f'<td class="bar" aria-hidden="true"><span style="width: {width}%"></span></td>'
    return f"<td>{_text(value)}</td>"


def _section(heading: str, content: str) -> str:
    """Return a section under its heading."""
    return f"<section>\n<h2>{_text(heading)}</h2>\n{content}</section>\n"


def _charts(figures: Iterable[str]) -> str:
    """Put figures side by side where there is room."""
    return f'<div class="charts">{"".join(figures)}</div>\n'


def _figure(caption: str, svg: str) -> str:
    """Return a chart, which is markup, under its caption, which is text."""
    return f"<figure><figcaption>{_text(caption)}</figcaption>{svg}</figure>"


def _text(text: str) -> str:
    """Make any text safe inside the page."""
    return html.escape(text)


def _number(value: float | None) -> str:
    """Write a count with separators, an average with two decimals."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
