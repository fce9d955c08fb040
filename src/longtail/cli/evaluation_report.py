"""What ``longtail evaluate --report`` writes: one HTML page about a model and its mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longtail.amounts import bytes_text, counted, time_text
from longtail.cli.files import TRAINING, reading_training
from longtail.cli.metric_tables import FREQUENCY_K, labels_by_frequency
from longtail.evaluation import n_train_points_of
from longtail.metrics import at_thresholds, by_probability
from longtail.model_folder import ModelFolder
from longtail.report import sections
from longtail.report.answers import Answered
from longtail.report.page import key_figures, write_page

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from longtail.data.dataset import Dataset
    from longtail.metrics import Difference
    from longtail.metrics.hits import Floats, Integers
    from longtail.predictor import Predictor

__all__ = ["SPEED", "measured_sections", "shown_figures", "write_evaluation_report"]

SPEED = "points_per_second"  # beside metrics in percent


def write_evaluation_report(
    path: Path,
    *,
    model: Predictor,
    folder: str,
    points: Dataset,
    ids: Integers,
    probabilities: Floats,
    metrics: Mapping[str, float],
    propensity: tuple[float, float],
    against: tuple[str, Mapping[str, Difference]] | None,
    command: str,
) -> None:
    """Write the page.

    Parameters
    ----------
    path : Path
    model : Predictor
    folder : str
        That of the model.
    points : Dataset
        In the model's label ids.
    ids, probabilities : arrays (n_points, k)
        Its answers.
    metrics : mapping of str to float
        In percent, with ``points_per_second`` beside them.
    propensity : (float, float)
        A and B.
    against : (str, mapping) or None
        Another model's folder, and how the two differ.
    command : str
        What makes the page again.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    training, kept = model.documents.get(TRAINING, {}), ModelFolder.open(folder)
    file_sizes = dict(sorted(kept.sizes.items()))
    parts = measured_sections(model, points, ids, probabilities, metrics, propensity)
    if against is not None:
        other, found = against
        parts[f"Beside {other}"] = sections.comparison(found)
    with reading_training(kept.path):
        headline = key_figures(shown_figures(model, metrics, training, file_sizes))
        parts["Training"] = sections.training_stages(training) if training else ""
        parts["Test points"] = sections.data({"test": points.describe()})
        parts["Model"] = sections.files_and_settings(training, file_sizes)
    write_page(
        path,
        title=f"longtail: {folder} on {counted(points.n_points, 'test point')}",
        introduction=f"{model.description.get('recipe', 'A model')} of "
        f"{counted(model.n_labels, 'label')}, trained on "
        f"{counted(n_train_points_of(model), 'point')}.",
        headline=headline,
        sections=parts | {"How this was made": sections.origin(command)},
    )


def shown_figures(
    model: Predictor,
    metrics: Mapping[str, float],
    training: Mapping[str, Any],
    file_sizes: Mapping[str, int],
) -> dict[str, str]:
    """Return the figures that most look for, by their names."""
    first = [next(name for name in metrics if name.startswith(of)) for of in ("P@", "PSP@")]
    figures = {"labels": f"{model.n_labels:,}"}
    figures |= {name: f"{metrics[name]:.1f} %" for name in first}
    if training:
        figures["training"] = time_text(training["wall_seconds"])
    figures["answers"] = f"{metrics[SPEED]:,.0f} / s"
    return figures | {"model": bytes_text(sum(file_sizes.values()))}


def measured_sections(
    model: Predictor,
    points: Dataset,
    ids: Integers,
    probabilities: Floats,
    metrics: Mapping[str, float],
    propensity: tuple[float, float],
) -> dict[str, str]:
    """Return what test points tell, each section by its heading; see `write_evaluation_report`."""
    answered = Answered(
        points=points,
        ids=ids[:, :FREQUENCY_K],
        probabilities=probabilities[:, :FREQUENCY_K],
        train_label_counts=model.train_label_counts,
    )
    bins = labels_by_frequency(model, points.labels, ids, propensity)
    of_answers = {name: value for name, value in metrics.items() if name != SPEED}
    judged = (ids, probabilities, points.labels)
    return {
        "Accuracy": sections.accuracy(of_answers, bins, FREQUENCY_K),
        "Probabilities": sections.probabilities(by_probability(*judged), at_thresholds(*judged)),
        "Missed labels": answered.missed_labels(),
        "Answers": answered.drawn_points(),
        "Mistakes": answered.mistakes(),
    }
