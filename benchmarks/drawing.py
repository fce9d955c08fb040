"""What the pictures of the benchmarks share: colours, style, and SVG that is the same each time."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["INK", "LEADER", "OTHERS", "OURS", "svg_of", "svg_of_panels"]

OURS, OTHERS = "#c8501e", ("#3a6ea5", "#5f9e6e", "#8c7aa9")
INK, RULE, LEADER = "#222222", "#d8d8d8", "#a8a8a8"
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "longtail",
    "font.size": 9,
    "axes.edgecolor": RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}


def svg_of(draw: Callable[[Any], None], inches: tuple[float, float]) -> str:
    """Return a picture as SVG; `draw` is given its axes."""
    return svg_of_panels(lambda panels: draw(panels[0]), 1, 1, inches)


def svg_of_panels(
    draw: Callable[[list[Any]], None], n_rows: int, n_columns: int, inches: tuple[float, float]
) -> str:
    """Return a picture as SVG; `draw` is given the axes of its panels, row by row."""
    with rc_context(STYLE):
        figure = Figure(figsize=inches, layout="constrained")
        draw(list(figure.subplots(n_rows, n_columns, squeeze=False).flat))
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", facecolor="white", metadata=nothing)
    return buffer.getvalue()
