"""The heads and rows of tables of metrics, which a page and a terminal show alike."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from longtail.metrics import AtThreshold, Difference

__all__ = [
    "COMPARED",
    "CUT_AT",
    "MAY_BE_CHANCE",
    "rows_of_differences",
    "rows_of_metrics",
    "rows_of_thresholds",
]

CUT_AT = ("at least", "labels a point", "precision", "recall", "F1")
COMPARED = ("this model", "the other", "difference", "standard error")  # behind the metric
MAY_BE_CHANCE = "A difference of less than two standard errors may be chance."
_UNKNOWN = "\N{EN DASH}"  # of a single point


def rows_of_metrics(metrics: Mapping[str, float]) -> tuple[list[str], list[list[str]]]:
    """Return a head, and a row for each kind of metric with its values at so many places.

    Examples
    --------
    >>> from longtail.report.rows import rows_of_metrics
    >>> rows_of_metrics({"P@1": 51.25, "P@5": 20.0, "R@100": 90.0})
    (['metric', '@1', '@5', '@100'], [['P', '51.25', '20.00', ''], ['R', '', '', '90.00']])
    """
    by_kind: dict[str, dict[int, float]] = {}
    for name, value in metrics.items():
        kind, _, k = name.partition("@")
        by_kind.setdefault(kind, {})[int(k)] = value
    places = sorted({k for values in by_kind.values() for k in values})
    rows = [
        [kind, *(f"{values[k]:.2f}" if k in values else "" for k in places)]
        for kind, values in by_kind.items()
    ]
    return ["metric", *(f"@{k}" for k in places)], rows


def rows_of_thresholds(found: Iterable[AtThreshold]) -> list[list[str]]:
    """Return the cells below `CUT_AT`, shares in percent.

    Examples
    --------
    >>> from longtail.metrics import AtThreshold
    >>> from longtail.report.rows import rows_of_thresholds
    >>> rows_of_thresholds([AtThreshold(0.5, labels_per_point=1.25, precision=0.8, recall=0.5)])
    [['0.5', '1.25', '80.00', '50.00', '61.54']]
    """
    return [
        [
            f"{part.threshold:g}",
            f"{part.labels_per_point:.2f}",
            *(f"{100 * share:.2f}" for share in (part.precision, part.recall, part.f1)),
        ]
        for part in found
    ]


def rows_of_differences(found: Mapping[str, Difference]) -> list[list[str]]:
    """Return each metric and the cells below `COMPARED`.

    Examples
    --------
    >>> from longtail.metrics import Difference
    >>> from longtail.report.rows import rows_of_differences
    >>> rows_of_differences({"P@1": Difference(ours=51.2, theirs=50.0, standard_error=0.4)})
    [['P@1', '51.20', '50.00', '+1.20', '0.40']]
    """
    return [
        [
            name,
            f"{of.ours:.2f}",
            f"{of.theirs:.2f}",
            f"{of.value:+.2f}",
            _UNKNOWN if math.isnan(of.standard_error) else f"{of.standard_error:.2f}",
        ]
        for name, of in found.items()
    ]
