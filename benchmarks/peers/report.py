"""From runs to one table, as Markdown and CSV, and one file with everything."""

from __future__ import annotations

import csv
import io
import json
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longtail.data.files import replacing

from .picture import OUR_NAME, Dot, draw

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from .running import Run

__all__ = ["Row", "as_csv", "as_markdown", "rows_of", "time_to_best_peer", "write_report"]

BEST_BY = "P@1"
METRICS = ("P", "nDCG", "PSP", "PSnDCG")
PLACES = (1, 3, 5)
# Name in the files, head of the column, factor, format.
SHOWN = (
    ("P@1", "P@1", 1, ".2f"),
    ("P@3", "P@3", 1, ".2f"),
    ("P@5", "P@5", 1, ".2f"),
    ("nDCG@5", "nDCG@5", 1, ".2f"),
    ("PSP@1", "PSP@1", 1, ".2f"),
    ("PSP@3", "PSP@3", 1, ".2f"),
    ("PSP@5", "PSP@5", 1, ".2f"),
    ("PSnDCG@5", "PSnDCG@5", 1, ".2f"),
    ("R@10", "R@10", 1, ".2f"),
    ("R@100", "R@100", 1, ".2f"),
    ("training_seconds", "training, s", 1, ",.1f"),
    ("training_cpu_seconds", "CPU s", 1, ",.1f"),
    ("training_memory", "memory, MB", 1e-6, ",.0f"),
    ("model_size", "model, MB", 1e-6, ",.1f"),
    ("points_per_second", "points/s", 1, ",.0f"),
    ("latency_p50_ms", "one point p50, ms", 1, ",.3f"),
    ("latency_p99_ms", "p99, ms", 1, ",.3f"),
)
IN_CSV = (
    *(f"{metric}@{k}" for metric in METRICS for k in PLACES),
    *("R@10", "R@100", "training_seconds", "training_cpu_seconds", "training_memory"),
    *("model_size", "load_seconds", "points_per_second", "prediction_cpu_seconds"),
    *("latency_p50_ms", "latency_p99_ms", "prediction_memory"),
)


@dataclass(frozen=True)
class Row:
    """One candidate: the medians of its runs, or what the first has and why it lacks the rest."""

    name: str
    system: str
    variant: str | None
    n_runs: int
    values: dict[str, float]
    failure: str | None
    is_best: bool = False  # among the variants of its system, by P@1


def rows_of(runs: Iterable[Run]) -> list[Row]:
    """Return a row a candidate, the best P@1 first, those without a result last."""
    by_name: dict[str, list[Run]] = {}
    for run in runs:
        by_name.setdefault(run.name, []).append(run)
    rows = [_row(group) for group in by_name.values()]
    best: dict[str, float] = {}
    for row in rows:
        best[row.system] = max(best.get(row.system, -1.0), row.values.get(BEST_BY, -1.0))
    marked = [
        Row(**(vars(row) | {"is_best": row.values.get(BEST_BY) == best[row.system]}))
        for row in rows
    ]
    return sorted(marked, key=lambda row: -row.values.get(BEST_BY, -1.0))


def _row(runs: Sequence[Run]) -> Row:
    """Return the medians of the runs of one candidate."""
    done = [run.values for run in runs if run.failure is None]
    kept = done or [runs[0].values]
    failures = [run.failure for run in runs if run.failure is not None]
    values = {key: statistics.median(v[key] for v in kept) for key in kept[0]}
    first = runs[0]
    failure = failures[0] if failures else None
    return Row(first.name, first.system, first.variant, len(done), values, failure)


def as_markdown(rows: Sequence[Row]) -> str:
    """Return the table; where a system has several kinds of features, the best is in bold."""
    head = ["system", *(title for _, title, _, _ in SHOWN), "runs", "remark"]
    lines = [head, ["---"] + ["---:"] * (len(head) - 2) + ["---"]]
    systems = [row.system for row in rows]
    for row in rows:
        name = f"**{row.name}**" if row.is_best and systems.count(row.system) > 1 else row.name
        cells = [
            format(row.values[key] * factor, form) if key in row.values else ""
            for key, _, factor, form in SHOWN
        ]
        remark = (row.failure or "").replace("|", "\\|")
        lines.append([name, *cells, str(row.n_runs), remark])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def time_to_best_peer(rows: Sequence[Row]) -> str:
    """Return in a sentence how soon longtail is as accurate as the best other system, if it is."""
    done = [row for row in rows if BEST_BY in row.values]
    peers = [row for row in done if not row.system.startswith(OUR_NAME)]
    best = max(peers, key=lambda row: row.values[BEST_BY], default=None)
    if best is None:
        return ""
    ours = [row for row in done if row.system.startswith(OUR_NAME)]
    enough = [row for row in ours if row.values[BEST_BY] >= best.values[BEST_BY]]
    soonest = min(enough, key=lambda row: row.values["training_seconds"], default=None)
    if soonest is None:
        return ""
    share = soonest.values["training_seconds"] / best.values["training_seconds"]
    return (
        f"\nThe best peer by {BEST_BY}, {best.name}, has {best.values[BEST_BY]:.2f}: "
        f"{soonest.name} is as accurate in {share:.2f} times its training time.\n"
    )


def as_csv(rows: Sequence[Row]) -> str:
    """Return all medians in their plain units: percent, seconds, bytes, milliseconds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "system", "variant", "best", "runs", *IN_CSV, "failure"])
    for row in rows:
        cells = [f"{row.values[key]:.6g}" if key in row.values else "" for key in IN_CSV]
        about = [row.name, row.system, row.variant or "", int(row.is_best), row.n_runs]
        writer.writerow([*about, *cells, row.failure or ""])
    return text.getvalue()


def write_report(folder: Path, runs: Sequence[Run], about: dict[str, Any]) -> None:
    """Write table.md, table.csv, runs.json and picture.svg, each as a whole or not at all."""
    rows = rows_of(runs)
    content = about | {"runs": [run.as_json() for run in runs]}
    dots = [
        Dot(row.system, row.values["training_seconds"], row.values[BEST_BY], row.is_best)
        for row in rows
        if BEST_BY in row.values
    ]
    for name, text in (
        ("table.md", f"{_heading(about)}\n\n{as_markdown(rows)}{time_to_best_peer(rows)}"),
        ("table.csv", as_csv(rows)),
        ("runs.json", json.dumps(content, indent=1)),
        ("picture.svg", draw(dots, BEST_BY)),
    ):
        with replacing(folder / name) as stream:
            stream.write(text.encode())


def _heading(about: dict[str, Any]) -> str:
    """Return what the table is about, and what its times leave out."""
    data, machine = about["data"], about["machine"]
    made = [
        f"{name} {facts['seconds']:.1f} s, one text {facts['ms_one_text']:.3f} ms"
        for name, facts in data["variants"].items()
        if facts
    ]
    sizes = (
        f"{data['train']}: {data['n_train_points']:,} training points, "
        f"{data['n_test_points']:,} test points, {data['n_labels']:,} labels. "
        f"{machine['processor']}, {machine['n_threads']} threads, {about['started'][:10]}. "
        f"`{about['command']}`"
    )
    times = (
        "Medians of the runs. longtail's training time is the whole command, from the file to the "
        "model folder; that of the others starts from data in memory or in the file they want."
    )
    if made:
        times += (
            " longtail and fastText answer from the text, the others from features in brackets: "
            f"making these comes on top ({'; '.join(made)}). Bold: the best features for a system, "
            f"by {BEST_BY} on the test set."
        )
    return f"{sizes}\n\n{times}"
