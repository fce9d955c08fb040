"""Metrics as `longtail evaluate` shows and writes them: tables, and JSON values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from longtail.amounts import counted
from longtail.cli.output import table
from longtail.evaluation import n_train_points_of
from longtail.metrics import by_frequency_quantile
from longtail.metrics.hits import USUAL_PLACES, USUAL_RECALL_PLACES
from longtail.report.rows import (
    COMPARED,
    CUT_AT,
    MAY_BE_CHANCE,
    rows_of_differences,
    rows_of_thresholds,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scipy.sparse import csr_array

    from longtail.metrics import AtThreshold, Difference, FrequencyBin
    from longtail.metrics.hits import Integers
    from longtail.predictor import Predictor

__all__ = [
    "FREQUENCY_K",
    "comparison_as_json",
    "comparison_table",
    "frequencies_as_json",
    "frequency_table",
    "labels_by_frequency",
    "metrics_table",
    "threshold_table",
    "thresholds_as_json",
]

N_BINS = 5
FREQUENCY_K = max(USUAL_PLACES)  # the k of what each part of the labels contributes


def metrics_table(metrics: dict[str, float], n_points: int, places: Sequence[int]) -> list[str]:
    """Return the lines that are shown of the metrics that `evaluate` has returned."""
    rows = [
        [name, *(f"{metrics[f'{name}@{k}']:.2f}" for k in places)]
        for name in ("P", "nDCG", "PSP", "PSnDCG")
    ]
    speed = f"{metrics['points_per_second']:,.0f} points a second"
    return [
        table(["%", *(f"@{k}" for k in places)], rows),
        "  ".join(f"R@{k} {metrics[f'R@{k}']:.2f}" for k in USUAL_RECALL_PLACES),
        f"{counted(n_points, 'point')}, {speed}",
    ]


def labels_by_frequency(
    model: Predictor,
    truth: csr_array,
    ids: Integers,
    propensity: tuple[float, float],
) -> list[FrequencyBin]:
    """Return what each fifth of the labels contributes to P@k and PSP@k, k being `FREQUENCY_K`.

    The most frequent labels come first.

    Parameters
    ----------
    model : Predictor
        Whose training points tell how frequent a label is.
    truth : csr_array (n_points, n_labels)
        In the model's label ids.
    ids : int array (n_points, k)
        Its answers, best first.
    propensity : (float, float)
        A and B.
    """
    return by_frequency_quantile(
        ids,
        truth,
        FREQUENCY_K,
        train_label_counts=model.train_label_counts,
        n_train_points=n_train_points_of(model),
        n_bins=min(N_BINS, truth.shape[1]),
        propensity=propensity,
    )


def frequency_table(bins: Sequence[FrequencyBin]) -> str:
    """Return what `labels_by_frequency` found, a line a fifth."""
    head = ["labels by frequency", "points a label", f"P@{FREQUENCY_K}", f"PSP@{FREQUENCY_K}"]
    rows = [
        [
            f"{i + 1} ({counted(part.n_labels, 'label')})",
            f"{part.mean_frequency:,.1f}",
            f"{100 * part.precision:.2f}",
            f"{100 * part.ps_precision:.2f}",
        ]
        for i, part in enumerate(bins)
    ]
    return table(head, rows)


def frequencies_as_json(bins: Sequence[FrequencyBin]) -> list[dict[str, float]]:
    """Return the same as JSON values, in percent."""
    return [
        {
            "n_labels": part.n_labels,
            "points_per_label": round(part.mean_frequency, 4),
            f"P@{FREQUENCY_K}": round(100 * part.precision, 4),
            f"PSP@{FREQUENCY_K}": round(100 * part.ps_precision, 4),
        }
        for part in bins
    ]


def thresholds_as_json(found: Sequence[AtThreshold]) -> list[dict[str, float]]:
    """Return what `threshold_table` shows as JSON values, in percent.

    Examples
    --------
    >>> from longtail.cli.metric_tables import thresholds_as_json
    >>> from longtail.metrics import AtThreshold
    >>> thresholds_as_json([AtThreshold(0.5, 1.25, precision=0.8, recall=0.5)])[0]["F1"]
    61.5385
    """
    return [
        {
            "at_least": part.threshold,
            "labels_per_point": round(part.labels_per_point, 4),
            "precision": round(100 * part.precision, 4),
            "recall": round(100 * part.recall, 4),
            "F1": round(100 * part.f1, 4),
        }
        for part in found
    ]


def threshold_table(found: list[AtThreshold], n_places: int) -> str:
    """Return how good the labels of at least some probabilities are, of so many first ones.

    Examples
    --------
    >>> from longtail.cli.metric_tables import threshold_table
    >>> from longtail.metrics import AtThreshold
    >>> half = AtThreshold(0.5, labels_per_point=1.25, precision=0.8, recall=0.5)
    >>> print(threshold_table([half], n_places=100))
    at least  labels a point  precision  recall     F1
    0.5                 1.25      80.00   50.00  61.54
    Of the first 100 labels of a point: pass --top-k 100 to `predict`, and as k to a server.
    """
    shown = table(CUT_AT, rows_of_thresholds(found))
    said = f"pass --top-k {n_places} to `predict`, and as k to a server."
    return f"{shown}\nOf the first {n_places} labels of a point: {said}"


def comparison_table(found: Mapping[str, Difference], places: Sequence[int]) -> str:
    """Return what is shown: metrics of both, their difference and its standard error.

    Examples
    --------
    >>> from longtail.cli.metric_tables import comparison_table
    >>> from longtail.metrics import Difference
    >>> same = Difference(ours=51.2, theirs=50.0, standard_error=0.4)
    >>> found = dict.fromkeys(["P@1", "PSP@1", "R@10", "R@100"], same)
    >>> for line in comparison_table(found, places=[1]).splitlines()[:2]:
    ...     print(line)
    %      this model  the other  difference  standard error
    P@1         51.20      50.00       +1.20            0.40
    """
    shown = [f"{name}@{k}" for name in ("P", "PSP") for k in places]
    shown += [f"R@{k}" for k in USUAL_RECALL_PLACES]
    rows = rows_of_differences({name: found[name] for name in shown})
    return f"{table(['%', *COMPARED], rows)}\n{MAY_BE_CHANCE}"


def comparison_as_json(found: Mapping[str, Difference]) -> dict[str, dict[str, float | None]]:
    """Return what is written, for each metric; null where a number is none.

    Examples
    --------
    >>> from longtail.cli.metric_tables import comparison_as_json
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
