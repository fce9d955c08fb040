"""What settings have reached, for people and for programs, and which to take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longtail.amounts import time_text
from longtail.cli.output import one_line, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longtail.estimators.estimator import LabelEstimator
    from longtail.trials import Gain, Trial

__all__ = ["SHOWN", "Choice", "Tried", "as_json", "best_of", "results_table", "verdict"]

SHOWN = ("P@1", "P@5", "PSP@1", "PSP@5", "R@100")
CHANCE = 1 / 40  # what comes more often where nothing is better is not believed
MOST_TIMES = 1_000  # chance that is rarer is not told more exactly


class Choice(NamedTuple):
    """Settings that are tried, and what they are called.

    Attributes
    ----------
    name : str
    recipe : str
    settings : list of str
        Such as ``"dimension=300"``.
    estimator : LabelEstimator
    """

    name: str
    recipe: str
    settings: list[str]
    estimator: LabelEstimator


@dataclass
class Tried:
    """What has become of a choice.

    Parameters
    ----------
    choice : Choice
    trials : list of Trial
        One for each seed that is through.
    failure : str
        Why it could not be trained, if it could not.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.cli.tune_results import Choice, Tried
    >>> Tried(Choice("tail=0", "longtail", ["tail=0"], LongtailClassifier(tail=0))).is_measured
    False
    """

    choice: Choice
    trials: list[Trial] = field(default_factory=list)
    failure: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether something can be told of it."""
        return bool(self.trials) and not self.failure


def results_table(tried: Sequence[Tried], by: str) -> str:
    """Return a line for each choice that was trained, or could not be.

    Parameters
    ----------
    tried : sequence of Tried
    by : str
        The metric that decides.
    """
    found = _gains(tried, by)
    rows = [_row(one, found.get(number)) for number, one in enumerate(tried)]
    head = ["%", *SHOWN, f"{by} gains", "standard error", "by chance", "training"]
    return table(head, [row for row in rows if row])


def best_of(tried: Sequence[Tried], by: str) -> int | None:
    """Return the number of the try that gains most of those that gain more than chance may.

    None if none does.
    """
    sure = {i: of.value for i, of in _gains(tried, by).items() if of.chance < CHANCE}
    return max(sure, key=sure.__getitem__, default=None)


def verdict(tried: Sequence[Tried], by: str) -> str:
    """Return in a line which is best, or that none is; nothing if there is nothing to compare.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import LongtailClassifier
    >>> from longtail.cli.tune_results import Choice, Tried, best_of, verdict
    >>> from longtail.trials import Trial
    >>> tried = [
    ...     Tried(
    ...         Choice(f"tail={tail}", "longtail", [f"tail={tail}"], LongtailClassifier(tail=tail)),
    ...         [Trial({"P@1": np.tile([100.0, p], 20)}, seconds=1.0)] * 2,
    ...     )
    ...     for tail, p in [(0.5, 0.0), (0.4, 100.0)]
    ... ]
    >>> verdict(tried, "P@1"), best_of(tried, "P@1")
    ('tail=0.4 gains 50.00 P@1, as chance does less than once in 1,000 times.', 1)
    """
    found = _gains(tried, by)
    if not found:
        return ""
    best = best_of(tried, by)
    if best is None:
        return f"None gains more {by} than chance may. Keep what there is."
    gained = found[best]
    rare = gained.chance * MOST_TIMES < 1
    often = f"less than once in {MOST_TIMES:,}" if rare else f"once in {1 / gained.chance:,.0f}"
    name = one_line(tried[best].choice.name)
    return f"{name} gains {gained.value:.2f} {by}, as chance does {often} times."


def as_json(tried: Sequence[Tried], by: str) -> dict[str, Any]:
    """Return what was measured of each choice, and which is best, as JSON values."""
    best = best_of(tried, by)
    measured = next((one for one in tried if one.is_measured), None)
    metrics = list(measured.trials[0].metrics) if measured else []
    by_metric = {metric: _gains(tried, metric) for metric in metrics}
    return {
        "by": by,
        "best": None if best is None else tried[best].choice.name,
        "choices": [
            _choice_as_json(one, {metric: of.get(number) for metric, of in by_metric.items()})
            for number, one in enumerate(tried)
            if one.trials or one.failure
        ],
    }


def _choice_as_json(one: Tried, found: dict[str, Gain | None]) -> dict[str, Any]:
    """Return what a choice is and has reached."""
    keys = [pair.partition("=")[0] for pair in one.choice.settings]
    written: dict[str, Any] = {
        "name": one.choice.name,
        "recipe": one.choice.recipe,
        "settings": {key: getattr(one.choice.estimator, key) for key in keys},
    }
    if one.failure:
        return written | {"failure": one.failure}
    gained = {metric: of for metric, of in found.items() if of is not None}
    written["n_seeds"] = len(one.trials)
    written["seconds"] = round(_seconds(one), 2)
    written["metrics"] = {metric: round(_reached(one, metric), 4) for metric in found}
    if gained:
        written["gains"] = {metric: round(of.value, 4) for metric, of in gained.items()}
        errors = {metric: round(of.standard_error, 4) for metric, of in gained.items()}
        written["standard_errors"] = errors
        written["chance"] = {metric: round(of.chance, 4) for metric, of in gained.items()}
    return written


def _row(one: Tried, gained: Gain | None) -> tuple[str, ...]:
    """Return the cells of a choice; none of one that is still to be trained."""
    name = one_line(one.choice.name)
    if one.failure:
        return (name, "failed", *[""] * (len(SHOWN) + 3))
    if not one.trials:
        return ()
    reached = [f"{_reached(one, metric):.2f}" for metric in SHOWN]
    gain = ["", "", ""]
    if gained is not None:
        gain = [
            f"{gained.value:+.2f}",
            f"{gained.standard_error:.2f}",
            f"{100 * gained.chance:.1f}",
        ]
    return (name, *reached, *gain, time_text(_seconds(one)))


def _gains(tried: Sequence[Tried], metric: str) -> dict[int, Gain]:
    """Return the gains of the tries that are measured, by number."""
    from longtail.trials import gains  # noqa: PLC0415 - loads much

    measured = [number for number, one in enumerate(tried) if one.is_measured]
    if not measured or measured[0] != 0:
        return {}
    found = gains([tried[number].trials for number in measured], metric)
    return dict(zip(measured[1:], found, strict=True))


def _reached(one: Tried, metric: str) -> float:
    """Return a metric, on average over seeds."""
    return float(np.mean([trial.metrics[metric].mean() for trial in one.trials]))


def _seconds(one: Tried) -> float:
    """Return how long a training took, on average."""
    return float(np.mean([trial.seconds for trial in one.trials]))
