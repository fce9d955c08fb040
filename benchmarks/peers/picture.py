"""One picture: accuracy against training time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.drawing import INK, LEADER, OTHERS, OURS, svg_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["OUR_NAME", "Dot", "draw", "show_seconds", "spread"]

OUR_NAME = "longtail"
MANY_TIMES = 200  # an axis that long has room for powers of ten only
LINE = 0.05  # height of a line of text, as a share of the picture


@dataclass(frozen=True)
class Dot:
    """One row of the table."""

    system: str
    seconds: float
    accuracy: float  # percent
    is_best: bool


def draw(dots: Sequence[Dot], metric: str) -> str:
    """Return the picture as SVG: a system's best features are named, its others are pale."""

    def place(axes: Any) -> None:
        for dot in dots:
            colour = OURS if dot.system.startswith(OUR_NAME) else OTHERS[0]
            alpha = 1.0 if dot.is_best else 0.3
            axes.scatter(dot.seconds, dot.accuracy, s=36, color=colour, alpha=alpha, linewidths=0)
        axes.set_ylabel(f"{metric}, %")
        axes.margins(x=0.08, y=0.08)
        show_seconds(axes)
        _write_names(axes, [dot for dot in dots if dot.is_best])

    return svg_of(place, (7.2, 4.4))


def show_seconds(axes: Any) -> None:
    """Make the axis along the bottom one of seconds, by their logarithm, in plain numbers.

    To be called last, as it depends on what is drawn how many numbers there is room for.
    """
    axes.set_xscale("log")
    axes.set_xlabel("training, seconds")
    least, most = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if most < MANY_TIMES * least else (1,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _write_names(axes: Any, dots: Sequence[Dot]) -> None:
    """Write the systems' names in a column on the right, each with a line to its dot."""
    dots = sorted(dots, key=lambda dot: -dot.accuracy)
    bottom, top = axes.get_ylim()
    gap = LINE * (top - bottom)
    for dot, height in zip(dots, spread([d.accuracy for d in dots], gap, bottom), strict=True):
        axes.annotate(
            dot.system,
            (dot.seconds, dot.accuracy),
            xytext=(1.03, height),
            textcoords=axes.get_yaxis_transform(),
            va="center",
            color=OURS if dot.system.startswith(OUR_NAME) else INK,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": LEADER,
                "linewidth": 0.7,
                "relpos": (0, 0.5),
                "shrinkB": 3,
            },
        )


def spread(heights: Sequence[float], gap: float, bottom: float) -> list[float]:
    """Return descending heights moved apart to `gap` at least, and not below `bottom`."""
    moved: list[float] = []
    for height in heights:
        moved.append(min(height, moved[-1] - gap) if moved else height)
    lowest = bottom
    for i in reversed(range(len(moved))):
        moved[i] = max(moved[i], lowest)
        lowest = moved[i] + gap
    return moved
