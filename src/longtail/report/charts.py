"""The charts of a report: each is an ``<svg>`` element to be put into an HTML page.

Text takes the page's font, ink is ``currentColor``, and every other colour is one of the page's CSS
variables (``--bar``, ``--rule``), so that one drawing is readable on light and on dark paper.
"""

from __future__ import annotations

import html
import io
import re
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from longtail.metrics import AtThreshold, FrequencyBin, ProbabilityBin

__all__ = [
    "check_matplotlib",
    "frequency_chart",
    "latency_chart",
    "loss_chart",
    "reliability_chart",
    "threshold_chart",
]

# matplotlib wants numbers for colours; these stand for what they are replaced by.
_INK, _BAR, _RULE = "#010101", "#010102", "#010103"
_IN_PAGE = {_INK: "currentColor", _BAR: "var(--bar)", _RULE: "var(--rule)"}
_INCHES = (4.8, 2.7)
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "longtail",
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _RULE,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": _RULE,
    "grid.linewidth": 0.6,
    "xtick.color": _RULE,
    "xtick.labelcolor": _INK,
    "ytick.color": _RULE,
    "ytick.labelcolor": _INK,
    "ytick.major.size": 0,
}


def check_matplotlib() -> None:
    """Raise `MissingExtraError` if matplotlib is not installed, `InputError` if it won't start."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError(
            "The report's charts need matplotlib, which is not installed. Install it with "
            "`pip install 'longtail[report]'`."
        )
    try:
        import_module("matplotlib")
    except ValueError as error:  # of MPLBACKEND, which it looks at whatever is drawn
        raise InputError(
            f"matplotlib cannot be used: {error}. Correct or unset the environment variable "
            "MPLBACKEND; the report's charts need none."
        ) from error


def loss_chart(stage: str, losses: Sequence[float]) -> str:
    """Return the learning curve of one training stage.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed, as for every chart here.
    """
    epochs = np.arange(1, len(losses) + 1)

    def draw(axes: Any) -> None:
        axes.plot(epochs, losses, color=_BAR, linewidth=2, marker="o", markersize=4)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss")
        axes.xaxis.get_major_locator().set_params(integer=True)

    words = ", ".join(f"{loss:.3g}" for loss in losses)
    return _svg(draw, f"{stage}: training loss by epoch: {words}", f"loss-{stage}")


def frequency_chart(bins: Sequence[FrequencyBin], metric: str, values: Sequence[float]) -> str:
    """Return what each label-frequency quantile adds to a metric (DeepXML, figure 3).

    Parameters
    ----------
    bins : sequence of FrequencyBin
        The most frequent labels first; drawn in this order, mean frequency in parentheses.
    metric : str
        Such as ``"PSP@5"``.
    values : sequence of float
        Contribution of each bin, in percent.
    """
    names = [f"{i}\n({part.mean_frequency:.1f})" for i, part in enumerate(bins, start=1)]

    def draw(axes: Any) -> None:
        drawn = axes.bar(names, values, color=_BAR, width=0.6)
        axes.bar_label(drawn, fmt="%.1f", padding=2)
        axes.set_xlabel("label quantile, the most frequent first (mean frequency)")
        axes.set_ylabel(f"contribution to {metric}, %")
        axes.margins(y=0.15)
        if not any(values):  # or the axis would begin below zero
            axes.set_ylim(0, 1)

    words = ", ".join(f"quantile {i}: {value:.2f}" for i, value in enumerate(values, start=1))
    return _svg(draw, f"Contribution to {metric}, in percent, {words}", f"frequency-{metric}")


def reliability_chart(bins: Sequence[ProbabilityBin]) -> str:
    """Return how often answers are right by how probable they were said to be."""
    said = [100 * part.probability for part in bins]
    right = [100 * part.share_right for part in bins]

    def draw(axes: Any) -> None:
        axes.plot((0, 100), (0, 100), color=_INK, linewidth=1, linestyle=(0, (3, 3)))
        axes.plot(said, right, color=_BAR, linewidth=2, marker="o", markersize=4)
        axes.set_xlabel("said to be probable, %")
        axes.set_ylabel("right, %")
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)

    words = ", ".join(f"{x:.0f}: {y:.0f}" for x, y in zip(said, right, strict=True))
    return _svg(draw, f"Percent right by percent said, {words}", "reliability")


def threshold_chart(found: Sequence[AtThreshold]) -> str:
    """Return precision and recall of the answers of at least some probability."""
    thresholds = [part.threshold for part in found]
    curves = {
        "precision": [100 * part.precision for part in found],
        "recall": [100 * part.recall for part in found],
    }

    def draw(axes: Any) -> None:
        for (name, shares), style in zip(curves.items(), ("solid", (0, (4, 2))), strict=True):
            axes.plot(thresholds, shares, color=_BAR, linewidth=2, linestyle=style, label=name)
        axes.set_xlabel("least probability")
        axes.set_ylabel("%")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 100)
        axes.legend(frameon=False)

    words = "; ".join(
        f"{part.threshold:g}: {100 * part.precision:.0f} and {100 * part.recall:.0f}"
        for part in found
    )
    return _svg(draw, f"Precision and recall by least probability, {words}", "thresholds")


def latency_chart(milliseconds: NDArray[np.float64]) -> str:
    """Return the histogram of the times that single texts took."""
    median, p95, p99 = np.percentile(milliseconds, [50, 95, 99])
    # The slowest few, which something else on the machine held up, would flatten all the others.
    shown = milliseconds[milliseconds <= p99]

    def draw(axes: Any) -> None:
        axes.hist(shown, bins=40, color=_BAR)
        for value, name in ((median, "median"), (p95, "p95")):
            axes.axvline(value, color=_INK, linewidth=1, linestyle=(0, (3, 3)))
            axes.annotate(
                name,
                (value, 1),
                xytext=(3, 0),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                va="top",
            )
        axes.set_xlabel("milliseconds a text, the slowest 1 % left out")
        axes.set_ylabel("texts")

    words = f"median {median:.2f}, 95 % below {p95:.2f}, 99 % below {p99:.2f} milliseconds"
    return _svg(draw, f"Histogram of the time that one text takes: {words}", "latency")


def _svg(draw: Callable[[Any], None], description: str, name: str) -> str:
    """Draw on one pair of axes and return the drawing for the page."""
    check_matplotlib()
    from matplotlib import style  # noqa: PLC0415 - an extra, which may not be installed
    from matplotlib.figure import Figure  # noqa: PLC0415

    buffer = io.StringIO()
    # A reader's own style, as of a matplotlibrc, may be for black paper, or need a LaTeX.
    with style.context(["default", _STYLE]):
        figure = Figure(figsize=_INCHES, layout="constrained")
        draw(figure.add_subplot())
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    return _for_page(buffer.getvalue(), description, name)


def _for_page(svg: str, description: str, name: str) -> str:
    """Make a stand-alone SVG file an element of a page with other drawings in it."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # would hold for the whole page
    # Ids, which matplotlib counts up anew in each drawing, must differ between drawings.
    prefix = re.sub(r"[^a-z0-9]+", "-", name.lower())
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)
    svg = re.sub(r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>", _opening(description), svg, count=1)
    for stand_in, colour in _IN_PAGE.items():
        svg = svg.replace(stand_in, colour)
    return svg


def _opening(description: str) -> Callable[[re.Match[str]], str]:
    """Return what makes the opening tag: as wide as the page allows, and read out as one image."""
    label = html.escape(description)
    return lambda tag: f'<svg {tag[1]} role="img" aria-label="{label}">'
