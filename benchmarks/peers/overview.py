"""Draw several data sets side by side, and write their figures as one table.

Of a system with several kinds of features, the best by P@1 on the test set are shown. What has no
result stands below the table, with the reason.

python -m benchmarks.peers --data one --out outs/one     # for each data set
python -m benchmarks.peers.overview outs/* --picture results.svg
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.command import parser_of, run
from benchmarks.drawing import INK, svg_of_panels
from longtail.data.files import replacing
from longtail.errors import InputError

from .data import FEATURES
from .picture import OUR_NAME, show_seconds
from .report import BEST_BY, Row, rows_of
from .running import Run
from .systems import DEFAULT_NAME, SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Comparison", "as_remarks", "as_table", "draw", "read", "shown_name"]

N_COLUMNS = 4
LOOKS = {system.name: system for system in SYSTEMS}  # in the order of the legend
COLUMNS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@5", "R@100")


@dataclass(frozen=True)
class Comparison:
    """What `python -m benchmarks.peers` found out on one data set."""

    name: str
    n_labels: int
    has_texts: bool
    rows: list[Row]  # the best P@1 first
    failures: list[Row]  # those without a P@1


def main(arguments: list[str] | None = None) -> None:
    """Print the table, and write the picture if there is to be one."""
    parser = parser_of(__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="OUT", help="of benchmarks.peers")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="the SVG to write")
    given = parser.parse_args(arguments)
    sets = [read(folder) for folder in given.folders]
    sys.stdout.write(as_table(sets) + as_remarks(sets))
    if given.picture is not None:
        with replacing(given.picture) as stream:
            stream.write(draw(sets).encode())


def read(folder: Path) -> Comparison:
    """Read what a comparison has left in its folder; the name is the folder's."""
    path = folder / "runs.json"
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        runs = [Run.of_json(parts) for parts in content["runs"]]
        n_labels, variants = content["data"]["n_labels"], content["data"]["variants"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not what python -m benchmarks.peers writes ({error!r}). Make it again."
        ) from None
    rows = rows_of(runs)
    shown = [row for row in rows if row.is_best and BEST_BY in row.values]
    if not shown:
        raise InputError(
            f"{path} has no system with a result; {folder / 'table.md'} says why. Leave it out, or "
            "compare other systems on these data."
        )
    failures = [row for row in rows if BEST_BY not in row.values]
    return Comparison(folder.name, n_labels, FEATURES not in variants, shown, failures)


def shown_name(row: Row) -> str:
    """Return what the documents call a system, and which features it was given, if not plain ones.

    longtail as it comes is in bold.

    Examples
    --------
    >>> from benchmarks.peers.overview import shown_name
    >>> from benchmarks.peers.report import Row
    >>> shown_name(Row("", "omikuji-bonsai", "square roots of features", 1, {}, None))
    'omikuji Bonsai, square roots'
    """
    name = LOOKS[row.system].shown if row.system in LOOKS else row.system
    name = f"**{name}**" if row.system == DEFAULT_NAME else name
    plain = row.variant in (None, "features")
    return name if plain else f"{name}, {str(row.variant).removesuffix(' of features')}"


def as_table(sets: Sequence[Comparison]) -> str:
    """Return Markdown: a block a data set, longtail first and then the best; the best are bold.

    Of longtail the default recipe comes first, and its name is bold.
    """
    head = ["data", "system", *COLUMNS, "training, s (CPU s)", "memory", "model", "one text, ms"]
    lines = [head, ["---"] * len(head), *(line for one in sets for line in _block(one))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("|  |", "| |") + "\n"


def as_remarks(sets: Sequence[Comparison]) -> str:
    """Return as a Markdown list what has no result, on which data sets, and why; or nothing."""
    where: dict[tuple[str, str], list[str]] = {}
    for one in sets:
        for row in one.failures:
            where.setdefault((shown_name(row), row.failure or "unknown"), []).append(one.name)
    lines = [f"- {name} ({', '.join(names)}): {why}\n" for (name, why), names in where.items()]
    return "".join(["\nWithout a result:\n\n", *lines]) if lines else ""


def _block(one: Comparison) -> Iterator[list[str]]:
    """Yield the rows of a data set."""
    best = {name: max(row.values[name] for row in one.rows) for name in COLUMNS}
    ours_first = sorted(
        one.rows,
        key=lambda row: (row.system != DEFAULT_NAME, not row.system.startswith(OUR_NAME)),
    )
    of_labels = f"{one.n_labels:,} labels{'' if one.has_texts else ', features'}"
    about = chain((one.name, of_labels), repeat(""))
    for row, first in zip(ours_first, about, strict=False):
        yield [first, shown_name(row), *_figures(row, best)]


def _figures(row: Row, best: dict[str, float]) -> list[str]:
    """Return the cells of a row, from P@1 on."""
    values = row.values
    shown = [f"{values[name]:.1f}" for name in COLUMNS]
    found = [
        f"**{text}**" if text == f"{best[name]:.1f}" else text
        for text, name in zip(shown, COLUMNS, strict=True)
    ]
    seconds = f"{values['training_seconds']:.0f} ({values['training_cpu_seconds']:.0f})"
    memory = f"{_short(values['training_memory'] / 1e9, 1)} GB"
    model = f"{values['model_size'] / 1e6:.0f} MB"
    latency = _short(values["latency_p50_ms"], 2) if "latency_p50_ms" in values else ""
    return [*found, seconds, memory, model, latency]


def _short(number: float, places: int) -> str:
    """Return a number as the documents write it, without a zero before the point."""
    return f"{number:.{places}f}".removeprefix("0")


def draw(sets: Sequence[Comparison]) -> str:
    """Return a picture as SVG: a panel a data set, accuracy against training time."""
    n_rows = len(sets) // N_COLUMNS + 1  # with one place at least for the legend

    def place(panels: list[Any]) -> None:
        for one, axes in zip(sets, panels, strict=False):
            _draw_one(axes, one)
        for axes in panels[len(sets) :]:
            axes.axis("off")
        handles: dict[str, Any] = {}
        for axes in panels:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        order = [system.shown for system in SYSTEMS if system.shown in handles]
        others = [name for name in handles if name not in order]
        names = [*order, *others]
        panels[-1].legend([handles[name] for name in names], names, loc="center", fontsize=8)

    return svg_of_panels(place, n_rows, N_COLUMNS, (11.0, 2.6 * n_rows))


def _draw_one(axes: Any, one: Comparison) -> None:
    """Draw a mark for each system."""
    for row in one.rows:
        own = LOOKS.get(row.system)
        name, marker, colour = (
            (own.shown, own.marker, own.colour) if own else (row.system, ".", INK)
        )
        axes.scatter(
            row.values["training_seconds"],
            row.values[BEST_BY],
            s=46,
            marker=marker,
            color=colour,
            label=name,
            linewidths=0,
        )
    axes.set_title(f"{one.name}, {one.n_labels:,} labels", fontsize=9, color=INK)
    axes.set_ylabel(f"{BEST_BY}, %")
    axes.margins(x=0.15, y=0.15)
    show_seconds(axes)


if __name__ == "__main__":
    run(main)
