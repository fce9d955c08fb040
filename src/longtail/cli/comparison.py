"""Two models beside each other, as `longtail evaluate --against` shows and writes them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from longtail.cli.output import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longtail.metrics import Difference

__all__ = ["comparison_as_json", "comparison_table"]

SHOWN = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "R@10", "R@100")


def comparison_table(found: Mapping[str, Difference]) -> str:
    """Return what is shown: metrics of both, their difference and its standard error.

    Examples
    --------
    >>> from longtail.cli.comparison import SHOWN, comparison_table
    >>> from longtail.metrics import Difference
    >>> same = dict.fromkeys(SHOWN, Difference(ours=51.2, theirs=50.0, standard_error=0.4))
    >>> for line in comparison_table(same).splitlines()[:2]:
    ...     print(line)
    %      this model  the other  difference  standard error
    P@1         51.20      50.00       +1.20            0.40
    """
    rows = [
        [
            name,
            f"{found[name].ours:.2f}",
            f"{found[name].theirs:.2f}",
            f"{found[name].value:+.2f}",
            f"{found[name].standard_error:.2f}",
        ]
        for name in SHOWN
    ]
    heads = ["%", "this model", "the other", "difference", "standard error"]
    return f"{table(heads, rows)}\nA difference of less than two standard errors may be chance."


def comparison_as_json(found: Mapping[str, Difference]) -> dict[str, dict[str, float | None]]:
    """Return what is written, for each metric; null where a number is none.

    Examples
    --------
    >>> from longtail.cli.comparison import comparison_as_json
    >>> from longtail.metrics import Difference
    >>> of_one_point = Difference(ours=100.0, theirs=0.0, standard_error=float("nan"))
    >>> comparison_as_json({"P@1": of_one_point})
    {'P@1': {'theirs': 0.0, 'difference': 100.0, 'standard_error': None}}
    """
    return {
        name: {
            "theirs": round(of.theirs, 4),
            "difference": round(of.value, 4),
            "standard_error": _number(of.standard_error),
        }
        for name, of in found.items()
    }


def _number(value: float) -> float | None:
    """Return it rounded; JSON has no NaN."""
    return None if math.isnan(value) else round(value, 4)
