"""Training and asking made-up models once, so that nobody waits for the compiler later."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, cast

from longtail import load
from longtail.compiled.search_recall import label_recall
from longtail.data import Dataset, InputWarning
from longtail.recipes.longtail import LongtailClassifier
from longtail.warm_up import warm_up

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longtail.compiled.scorer import CompiledScorer

__all__ = ["rehearse"]

# More labels and points than are scanned, so that both are searched by graphs.
N_POINTS, N_LABELS = 6_000, 2_500
N_FEW_POINTS, N_FEW_LABELS = 400, 50  # which are scanned
N_KINDS, N_OTHERS = 50, 997  # what the words of texts are drawn from
N_MEASURED = 300


def rehearse(folder: Path) -> None:
    """Train, save, load, ask and measure the default recipe, on texts, few texts and features.

    Code is compiled for types of arguments, not for their size: so all that other training sets
    need afterwards is there.

    Parameters
    ----------
    folder : Path
        An empty one, for data and models.
    """
    texts, few, names, features = (
        folder / name for name in ("texts.jsonl", "few.jsonl", "names.txt", "rows.txt")
    )
    texts.write_text("".join(_lines_of_texts(N_POINTS, N_LABELS)))
    few.write_text("".join(_lines_of_texts(N_FEW_POINTS, N_FEW_LABELS)))
    names.write_text("".join(f"{_name(label)}\n" for label in range(N_LABELS)))
    features.write_text("".join(_lines_of_features()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # nobody minds what is odd about these
        _train_and_ask(Dataset.read(texts, labels_file=names), folder / "of-texts")
        _train_and_ask(Dataset.read(features), folder / "of-features")
        _train_and_ask(Dataset.read(few), folder / "of-few")


def _train_and_ask(data: Dataset, folder: Path) -> None:
    """Do once what is done with a training set."""
    LongtailClassifier(epochs=1, dimension=64).fit_dataset(data).save(folder)
    predictor = load(folder)
    warm_up(predictor)
    predictor.evaluate(data.take(range(N_MEASURED)))
    label_recall(cast("CompiledScorer", predictor.scorer))


def _name(label: int) -> str:
    """Return the name of a label: a word of its own, and one that it shares."""
    return f"name{label} kind{label % N_KINDS}"


def _labels_of(point: int, n_labels: int) -> tuple[int, int]:
    """Return the labels of a point, the smaller first."""
    first = point % n_labels
    return (first, first + 1) if first + 1 < n_labels else (0, first)


def _lines_of_texts(n_points: int, n_labels: int) -> Iterator[str]:
    """Yield points whose texts name their labels."""
    for point in range(n_points):
        first, second = _labels_of(point, n_labels)
        words = f"{_name(first)} name{second} word{point % N_OTHERS} word{point // 7}"
        yield f'{{"text": "{words}", "labels": [{first}, {second}]}}\n'


def _lines_of_features() -> Iterator[str]:
    """Yield points with three features, of which two tell their labels."""
    n_features = N_LABELS + N_OTHERS
    yield f"{N_POINTS} {n_features} {N_LABELS}\n"
    for point in range(N_POINTS):
        first, second = _labels_of(point, N_LABELS)
        other = N_LABELS + point % N_OTHERS
        yield f"{first},{second} {first}:1.0 {second}:0.5 {other}:0.{1 + point % 9}\n"
