"""The model card: what a model is, in Markdown with the facts that model hubs read in front."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.amounts import bytes_text, counted, time_text
from longtail.cli.files import TRAINING, reading_training
from longtail.cli.markdown import code, escaped, front_matter, table
from longtail.cli.trained_settings import trained_settings
from longtail.compiled.scorer import CompiledScorer
from longtail.data.point_input import InputKind
from longtail.errors import ModelFolderError
from longtail.features.onnx_encoder import OnnxEncoder
from longtail.folder_exchange import resolved
from longtail.kernels.text import TokenKind
from longtail.report.rows import rows_of_metrics
from longtail.scorers.calibration import Calibration
from longtail.scorers.inner_transformers import transformers_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longtail.cli.metrics_file import MeasuredMetrics
    from longtail.model_folder import ModelFolder
    from longtail.predictor import Predictor

__all__ = ["ON_HUBS", "changes_text", "model_card"]

# The metrics that hubs are told, and by which names.
ON_HUBS = {
    "P@1": "precision@1",
    "P@5": "precision@5",
    "PSP@1": "psp@1",
    "PSP@5": "psp@5",
    "nDCG@5": "ndcg@5",
    "R@100": "recall@100",
}
N_FREQUENT = 10
_TEXT = "a text of yours"
_UNNAMED = "test points"
_UNFITTED = (Calibration(), Calibration(of_shares=True))


def model_card(
    model: Predictor,
    folder: ModelFolder,
    measured: MeasuredMetrics | None = None,
    test_name: str | None = None,
) -> str:
    """Return the card of a model: what its folder and measurements tell, and nothing else.

    Parameters
    ----------
    model : Predictor
    folder : ModelFolder
        That of the model.
    measured : MeasuredMetrics, optional
        With all of `ON_HUBS` among its metrics.
    test_name : str, optional
        What the points are called that these were measured on; the name of their file by default.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail import LongtailClassifier, load
    >>> from longtail.cli.model_card import model_card
    >>> from longtail.model_folder import ModelFolder
    >>> model = LongtailClassifier().fit(["red wine", "old car"] * 9, [["drink"], ["car"]] * 9)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     model.save(Path(place, "cars"))
    ...     folder = ModelFolder.open(Path(place, "cars"))
    ...     card = model_card(load(folder.path), folder)
    >>> [line for line in card.splitlines() if line.startswith("#")][:3]
    ['# cars', '## How to ask it', '## Probabilities']
    """
    name = resolved(folder.path).name or "model"
    if measured is not None and test_name is not None:
        measured = measured._replace(test_name=test_name)
    sections = {
        "How to ask it": _how_to_ask(model, name),
        "Probabilities": _probabilities(model),
        "Labels": _labels(model),
        "Evaluation": "" if measured is None else _evaluation(measured),
        "Training": _training(model, folder),
        "Files": _files(folder),
        "Limits": _limits(model),
    }
    return "\n\n".join(
        [
            front_matter(_facts_for_hubs(model, name, measured)),
            f"# {escaped(name)}",
            _summary(model),
            *(f"## {title}\n\n{body}" for title, body in sections.items() if body),
        ]
    )


def _facts_for_hubs(
    model: Predictor, name: str, measured: MeasuredMetrics | None
) -> dict[str, Any]:
    """Return the front matter, with metrics in the form that hubs call ``model-index``."""
    recipe = model.description.get("recipe")
    facts: dict[str, Any] = {
        "library_name": "longtail",
        "pipeline_tag": _task(model),
        "tags": ["extreme-multi-label-classification", *([recipe] if recipe else [])],
    }
    if measured is None:
        return facts
    test_name = measured.test_name
    told = {
        "task": {"type": _task(model)},
        "dataset": {"type": _identifier(test_name), "name": test_name or _UNNAMED},
        "metrics": [
            {"type": kind, "name": metric, "value": round(measured.metrics[metric], 4)}
            for metric, kind in ON_HUBS.items()
        ],
    }
    return facts | {"model-index": [{"name": name, "results": [told]}]}


def _task(model: Predictor) -> str:
    """Return what hubs call the task."""
    if _reads_images(model):
        return "image-classification"
    return "tabular-classification" if model.vectorizer is None else "text-classification"


def _reads_images(model: Predictor) -> bool:
    return model.reads.kind is InputKind.IMAGES


def _identifier(name: str | None) -> str:
    """Return a name in the letters that hubs have for those of data sets."""
    return re.sub(r"[^A-Za-z0-9._/-]+", "-", name or "").strip("-") or "unknown"


def _summary(model: Predictor) -> str:
    """Say in two sentences what the model does."""
    facts = model.description
    what = "a row of features" if model.vectorizer is None else "a text"
    what = "an image" if _reads_images(model) else what
    said = (
        f"A model of longtail, a Python library for extreme multi-label classification: it answers "
        f"{what} with the most relevant of {counted(model.n_labels, 'label')}."
    )
    if facts.get("recipe"):
        on = f" on {counted(facts['n_points'], 'point')}" if facts.get("n_points") else ""
        said += f" The recipe {escaped(facts['recipe'])} trained it{on}."
    return said


def _how_to_ask(model: Predictor, name: str) -> str:
    """Return a command and Python, both of which run beside the folder."""
    place = name if name.isprintable() else "model"
    place = f"./{place}" if place.startswith(("-", "~")) else place
    installed = f"With longtail installed{_extras(model)}"
    parts = [f"{installed}, beside this folder, which is called {escaped(place)}:"]
    if not _reads_images(model):
        is_text = model.vectorizer is not None
        asked = f"--text {shlex.quote(_TEXT)}" if is_text else "FILE"
        parts.append(code("sh", f"longtail predict {shlex.quote(place)} {asked} --top-k 5"))
        parts += [] if is_text else ["FILE holds points as they were in training. In Python:"]
    return "\n\n".join([*parts, code("python", _python(model, place))])


def _extras(model: Predictor) -> str:
    """Say what else a model with a transformer needs."""
    are_onnx = {isinstance(one, OnnxEncoder) for one in transformers_of(model.scorer)}
    extras = ["onnx"] * (True in are_onnx) + ["train", "transformers"] * (False in are_onnx)
    return f" as `longtail[{','.join(extras)}]`, for its transformer" if extras else ""


def _python(model: Predictor, place: str) -> str:
    """Return lines of Python that ask the model."""
    lines = ["from longtail import load", "", f"model = load({place!r})"]
    if model.vectorizer is None:
        shape = (1, *(model.reads.image_shape or (model.n_features,)))
        lines = ["import numpy as np", *lines, f"points = np.ones({shape})  # put yours here"]
        answers = "model.predict(points, k=5)[0]"
    else:
        answers = f"model.predict({_TEXT!r}, k=5)"
    lines += [f"for label, probability in {answers}:", '    print(f"{probability:.3f}", label)']
    return "\n".join(lines)


def _probabilities(model: Predictor) -> str:
    """Say what the number of a label means, and whether it was fitted to answers."""
    if model.calibration in _UNFITTED:
        return (
            "The number of a label is between 0 and 1, and was fitted to no answers. So it is no "
            "probability: only the order of a point's labels means something."
        )
    said = (
        "The number of a label is the probability that this label is right: at the end of the "
        "training it was fitted to answers of which it was known whether they are right. Each "
        "label of a point is judged by itself, so probabilities need not add up to 1. How often "
        "labels of some probability are right on other points is told by `longtail evaluate MODEL "
        "TEST --thresholds`."
    )
    n_removed = model.description.get("label_changes", {}).get("removed", 0)
    if n_removed:
        said += (
            f" Since then, {counted(n_removed, 'label')} were removed: the others are called too "
            "probable, the more so the more points were about what is gone."
        )
    return said


def _labels(model: Predictor) -> str:
    """Return how many there are, how frequent, and the most frequent ones."""
    counts, space = model.train_label_counts, model.label_space
    called = "which have numbers in place of names" if space.names is None else "with names"
    if space.texts is not None and not space.texts_are_names:
        called += " and texts"
    order = np.argsort(-counts, kind="stable")
    said = (
        f"{counted(model.n_labels, 'label')}, {called}. Half of them have "
        f"{counted(int(counts[order[model.n_labels // 2]]), 'training point')} or fewer"
    )
    n_without = int(np.count_nonzero(counts == 0))
    said += f"; {n_without:,} have none." if n_without else "."
    if model.description.get("label_changes", {}).get("added"):
        said += " Of labels that were added without training, their examples are counted."
    rows = [[space.name(i), f"{counts[i]:,}"] for i in order[:N_FREQUENT].tolist()]
    return f"{said} The most frequent:\n\n{table(['label', 'training points'], rows)}"


def _evaluation(measured: MeasuredMetrics) -> str:
    """Return what was measured, and what it means."""
    found = table(*rows_of_metrics(measured.metrics))
    return (
        f"In percent, on {_points(measured)}:\n\n{found}\n\n"
        "P@k is the share of the first k labels that are right, and nDCG@k the same with more "
        "weight on the first of them; PSP@k and PSnDCG@k give more to rare labels. R@k is the "
        "share of a point's labels that are among the first k, and coverage@k that of all labels "
        "which are among the first k of any point that has them."
    )


def _points(measured: MeasuredMetrics) -> str:
    """Return what the points are called, and how many they were, as far as either is known."""
    name, n_points = measured.test_name, measured.n_points
    if n_points is None:
        return escaped(name or _UNNAMED)
    return f"{escaped(name)}, {counted(n_points, 'point')}" if name else counted(n_points, "point")


def _training(model: Predictor, folder: ModelFolder) -> str:
    """Return what the training took, and the settings that somebody chose."""
    facts = model.description
    said = f"Saved by longtail {escaped(folder.version)}."
    if facts.get("recipe"):
        said += f" Recipe {escaped(facts['recipe'])}, seed {facts.get('seed', 'unknown')}"
        said += f"{changes_text(facts.get('label_changes', {}))}.{_costs(model, folder)}"
        said += _storage(model)
    settings, are_changed = trained_settings(facts)
    if not settings:
        return said + (" All settings are the recipe's defaults." if are_changed else "")
    which = "Settings that are not the recipe's defaults" if are_changed else "Settings"
    return f"{said} {which}:\n\n{table(['setting', 'value'], [*map(list, settings.items())])}"


def _costs(model: Predictor, folder: ModelFolder) -> str:
    """Say what training took, if ``training.json`` is there."""
    training = model.documents.get(TRAINING)
    if training is None:
        return ""
    # A folder of an earlier version may say less: of that the card is silent.
    with suppress(ModelFolderError), reading_training(folder.path):
        return (
            f" It took {time_text(training['wall_seconds'])}, {time_text(training['cpu_seconds'])} "
            f"of CPU time, and at most {bytes_text(training['peak_memory_mb'] * 10**6)} of memory."
        )
    return ""


def _storage(model: Predictor) -> str:
    """Say what numbers were put into after training, if they were: the settings do not."""
    scorer, settings = model.scorer, model.description.get("settings", {})
    if not isinstance(scorer, CompiledScorer) or scorer.storage == settings.get("storage"):
        return ""
    return f" Since then its numbers were put into {scorer.storage}."


def changes_text(changes: Mapping[str, int]) -> str:
    """Say how the labels were changed after training, if they were.

    Examples
    --------
    >>> from longtail.cli.model_card import changes_text
    >>> changes_text({"added": 2, "removed": 0, "renamed": 1})
    '; since then, 2 labels added and 1 label renamed'
    """
    parts = [f"{counted(n, 'label')} {kind}" for kind, n in changes.items() if n]
    if not parts:
        return ""
    *others, last = parts
    return f"; since then, {', '.join(others)}{' and ' if others else ''}{last}"


def _files(folder: ModelFolder) -> str:
    """Return the size of each file."""
    sizes = folder.sizes
    rows = [[name, bytes_text(size)] for name, size in sorted(sizes.items())]
    return table(["file", "size"], [*rows, ["in all", bytes_text(sum(sizes.values()))]])


def _limits(model: Predictor) -> str:
    """Return what is known of the model that one should not expect."""
    known = counted(model.n_labels, "label")
    points = [f"It knows {known}, and never answers with anything else."]
    if model.vectorizer is not None:
        n_words = int(np.count_nonzero(model.vectorizer.kinds_ == TokenKind.WORD))
        points.append(
            f"It knows {counted(n_words, 'word')}, those of its training texts. Of which language "
            "and about what these were, the folder does not say."
        )
        points.append(
            "Whoever has the folder can read these words, and the names and texts of all labels."
        )
    n_pairs = model.description.get("n_set_aside")
    if n_pairs:
        points.append(
            f"It was trained not to be judged by {counted(n_pairs, 'pair')} of a point and a label."
        )
    return "\n".join(f"- {point}" for point in points)
