"""Figures 2 and 3 of the DeepXML paper's supplement: numbers as a table, and a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.drawing import INK, OTHERS, OURS, svg_of
from longtail.classifiers.shortlisted import FullOneVsAll, ShortlistedOneVsAll
from longtail.data.blocks import points_of
from longtail.metrics import by_frequency_quantile
from longtail.negatives.samplers import FrequentLabels, UniformLabels
from longtail.recipes.mach import MACH
from longtail.recipes.parabel import Parabel
from longtail.recipes.slice import Slice

from .variants import Variant, astec, named, on_shortlists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longtail import Dataset
    from longtail.estimators.estimator import LabelEstimator
    from longtail.recipes.deepxml import DeepXML

    from .on_features import OnFeatures

__all__ = ["FIGURES", "Figure"]

Fitted = Callable[[Variant], "LabelEstimator | OnFeatures"]

NEGATIVES = (25, 100, 400, 1600)
MOST_HARD = 500  # of a shortlist: all
INCHES = (6.4, 3.6)


class Figure(NamedTuple):
    """A figure: its numbers as Markdown, and the picture as SVG."""

    table: str
    svg: str


def one_vs_all(base: DeepXML) -> dict[str, Any]:
    """Exchange the shortlists of Module IV for all labels."""
    if not isinstance(base.classifier, ShortlistedOneVsAll):
        return {}
    training = base.classifier.training
    return {"classifier": FullOneVsAll(training=training, batch_size=training.batch_size)}


def on_own_sample(n_hard: int, **parts: Any) -> Callable[[DeepXML], dict[str, Any]]:
    """Tell a point apart from its own sample alone, as in the paper, with further parts exchanged.

    By default a batch shares a pool, in which the true labels of like points are negatives.
    """
    own = {"own_only": True, "neighbourhood_size": 0, "n_random": 0, "n_hard": n_hard}
    return lambda base: parts | on_shortlists(base, **own)


def random_negatives(fitted: Fitted, train: Dataset, test: Dataset) -> Figure:  # noqa: ARG001 - as the other
    """Figure 2: P@1 of Astec with more and more random negatives, beside all and hard ones."""

    def precision(name: str, change: Callable[[DeepXML], dict[str, Any]]) -> float:
        return fitted(Variant("negatives", name, astec(change))).evaluate(test)["P@1"]

    lines = {
        name: [
            precision(name, on_own_sample(size, negatives=kind(size=size))) for size in NEGATIVES
        ]
        for name, kind in (("uniform", UniformLabels), ("by frequency^.75", FrequentLabels))
    }
    levels = {
        "all labels": precision("all labels", one_vs_all),
        "Astec's shortlists": precision("Astec", on_own_sample(MOST_HARD)),
    }
    rows = [[name, *map(_number, values)] for name, values in lines.items()]
    rows += [[name, *[_number(value)] * len(NEGATIVES)] for name, value in levels.items()]

    def draw(axes: Any) -> None:
        for (name, values), colour in zip(lines.items(), OTHERS, strict=False):
            axes.plot(NEGATIVES, values, marker="o", color=colour, label=name)
        for (name, value), colour in zip(levels.items(), (INK, OURS), strict=True):
            axes.axhline(value, color=colour, linestyle="--", label=name)
        axes.set_xscale("log")
        axes.set_xticks(NEGATIVES, [str(size) for size in NEGATIVES])
        axes.minorticks_off()
        axes.set_xlabel("random negatives a point")
        axes.set_ylabel("P@1, %")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))

    return Figure(_table(["negatives", *map(str, NEGATIVES)], rows), svg_of(draw, INCHES))


def quantiles(fitted: Fitted, train: Dataset, test: Dataset) -> Figure:
    """Figure 3: what five bins of labels, the most frequent first, add to P@5 of each method.

    Labels without a training point are in no bin.
    """
    counts = np.asarray(train.labels.sum(axis=0)).ravel()
    place = np.where(counts > 0, np.cumsum(counts > 0) - 1, -1)
    points = points_of(test)
    methods = (
        Variant("methods", "Astec", astec(lambda _: {})),
        Variant("methods", "Parabel", named(Parabel)),
        Variant("methods", "Slice", named(Slice, char_ngrams=None)),
        Variant("methods", "MACH", named(MACH, char_ngrams=None)),
    )
    found = {
        method.name: by_frequency_quantile(
            np.append(place, -1)[fitted(method).predict_topk(points)[0]],  # -1 stays -1
            test.labels[:, counts > 0],
            5,
            train_label_counts=counts[counts > 0],
            n_train_points=train.n_points,
        )
        for method in methods
    }
    bins = [f"{i + 1} ({part.mean_frequency:.1f})" for i, part in enumerate(found["Astec"])]
    shares = {name: [100 * part.precision for part in parts] for name, parts in found.items()}

    def draw(axes: Any) -> None:
        places, width = np.arange(len(bins)), 0.8 / len(shares)
        for i, (name, values) in enumerate(shares.items()):
            colour = OURS if i == 0 else OTHERS[i - 1]
            axes.bar(places + (i - 1.5) * width, values, 0.9 * width, color=colour, label=name)
        axes.set_xticks(places, bins)
        axes.set_xlabel("a fifth of the labels each (mean training points a label)")
        axes.set_ylabel("contribution to P@5, %")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))

    rows = [[name, *map(_number, [*v, sum(v)])] for name, v in shares.items()]
    return Figure(_table(["method", *bins, "P@5"], rows), svg_of(draw, INCHES))


def _number(value: float) -> str:
    """Write a percentage."""
    return f"{value:.2f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


FIGURES = {"figure2": random_negatives, "figure3": quantiles}
