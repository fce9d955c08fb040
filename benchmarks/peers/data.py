"""The data in the forms that the workers take: the same split, the same features for all."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, save_npz

from benchmarks.data_folder import file_in, labels_in, read_test
from longtail.data import Dataset, read_filter
from longtail.data.damping import chosen_power, unit_rows_of_power
from longtail.data.vectorizer import TextVectorizer
from longtail.estimators.estimator import VERY_FEW_POINTS
from longtail.estimators.vocabulary import vectorizer_for
from longtail.recipes.names import DEFAULT_RECIPE, recipe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


__all__ = ["FEATURES", "Files", "Task", "Variant", "files_in", "prepare"]

FEATURES = "features"  # the variant of a data set that comes with its features
ROOTS = "square roots of features"  # another, where longtail would take these
N_TIMED_TEXTS = 1000


@dataclass(frozen=True)
class Files:
    """What the user named."""

    train: Path
    test: Path
    labels: Path | None = None
    train_filter: Path | None = None  # which longtail alone can make use of
    test_filter: Path | None = None


@dataclass(frozen=True)
class Variant:
    """One kind of features, or the texts, on disk."""

    train_points: Path
    test_points: Path
    facts: dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A data set, ready for all workers."""

    files: Files
    truth: csr_array  # (n_test_points, n_labels), perhaps with labels that training has not
    train_label_counts: np.ndarray[Any, np.dtype[np.int64]]
    n_train_points: int
    train_labels: Path  # of the training points that have labels: nobody learns from the others
    variants: dict[str, Variant]
    texts: Variant | None
    set_aside: csr_array | None  # pairs that are left out of all predictions

    @property
    def n_labels(self) -> int:
        """Number of labels in training."""
        return self.train_label_counts.size

    @property
    def has_texts(self) -> bool:
        """Whether the points are texts."""
        return self.texts is not None

    def points_for(self, variant: str | None) -> Variant:
        """Return the points that a candidate is given."""
        if variant is not None:
            return self.variants[variant]
        return self.texts or self.variants[FEATURES]

    def facts(self) -> dict[str, Any]:
        """Return sizes, for the report."""
        return {
            "train": str(self.files.train),
            "test": str(self.files.test),
            "n_train_points": self.n_train_points,
            "n_test_points": self.truth.shape[0],
            "n_labels": self.n_labels,
            "variants": {name: variant.facts for name, variant in self.variants.items()},
        }


def files_in(folder: Path) -> Files:
    """Return the one file each that is called train, test and, if there is one, labels."""
    return Files(file_in(folder, "train"), file_in(folder, "test"), labels_in(folder))


def prepare(files: Files, folder: Path) -> Task:
    """Read the data and write what the workers read."""
    train = Dataset.read(files.train, labels_file=files.labels)
    test = read_test(files.test, files.labels, train)
    labelled = np.flatnonzero(np.diff(train.labels.indptr))
    save_npz(folder / "train_labels.npz", train.labels[labelled], compressed=False)
    variants, texts = {}, None
    if train.texts is not None and test.texts is not None:
        texts = Variant(folder / "train_texts.json", folder / "test_texts.json", {})
        _write_texts(texts.train_points, train.texts.take(labelled))
        _write_texts(texts.test_points, test.texts)
        for name, vectorizer in _vectorizers(train).items():
            variants[name] = _vectorised(name, vectorizer, train, test, labelled, folder)
    else:
        power = chosen_power(train.features, train.labels, seed=0)
        for name, own in ((FEATURES, 1.0), (ROOTS, power))[: 1 if power == 1 else 2]:
            X, Z = (unit_rows_of_power(part.features, own) for part in (train, test))
            variants[name] = _saved(name, X[labelled], Z, folder, {})
    return Task(
        files=files,
        truth=test.labels,
        train_label_counts=np.bincount(train.labels.indices, minlength=train.n_labels),
        n_train_points=train.n_points,
        train_labels=folder / "train_labels.npz",
        variants=variants,
        texts=texts,
        set_aside=None
        if files.test_filter is None
        else read_filter(files.test_filter, *test.labels.shape),
    )


def _vectorizers(train: Dataset) -> dict[str, TextVectorizer]:
    """Return the kinds of TF-IDF; "words + chars" is the very bag of longtail's default recipe.

    Of more than 20,000 texts, words and pairs must be in two: omikuji is the better for it.
    """
    settings = recipe(DEFAULT_RECIPE)()
    own = vectorizer_for(settings, train, symbols=settings.reads_symbols(train))
    least = 1 if train.n_points <= VERY_FEW_POINTS else 2
    words = replace(own, word_ngrams=1, char_ngrams=None, min_df=least)
    return {"words": words, "words + pairs": replace(words, word_ngrams=2), "words + chars": own}


def _vectorised(
    name: str,
    vectorizer: TextVectorizer,
    train: Dataset,
    test: Dataset,
    labelled: Any,
    folder: Path,
) -> Variant:
    """Write one kind of features; the facts say what making them cost."""
    texts: Sequence[str] = train.texts or ()
    queries: Sequence[str] = test.texts or ()
    TextVectorizer(min_df=1).fit(texts[:10]).transform(texts[:10])  # loads the compiled code
    wall, cpu = time.perf_counter(), time.process_time()
    X = vectorizer.fit(texts).transform(texts)
    facts: dict[str, Any] = vectorizer.config() | {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "ms_one_text": _median_milliseconds(vectorizer, list(queries[:N_TIMED_TEXTS])),
        "n_features": vectorizer.n_features_,
        "features_per_point": X.nnz / X.shape[0],
    }
    return _saved(name, X[labelled], vectorizer.transform(queries), folder, facts)


def _median_milliseconds(vectorizer: TextVectorizer, texts: list[str]) -> float:
    """Time one text after the other."""
    times = []
    for text in texts:
        before = time.perf_counter()
        vectorizer.encode_one(text)
        times.append(time.perf_counter() - before)
    return 1e3 * float(np.median(times))


def _saved(name: str, X: csr_array, Z: csr_array, folder: Path, facts: dict[str, Any]) -> Variant:
    """Write features of training and test points."""
    stem = name.replace(" + ", "-").replace(" ", "-")
    variant = Variant(folder / f"train_{stem}.npz", folder / f"test_{stem}.npz", facts)
    save_npz(variant.train_points, X, compressed=False)
    save_npz(variant.test_points, Z, compressed=False)
    return variant


def _write_texts(path: Path, texts: Sequence[str]) -> None:
    """Write a JSON list."""
    path.write_text(json.dumps(list(texts)), encoding="utf-8")
