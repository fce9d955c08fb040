"""The folder of a data set: one file train.*, one test.* and, if there is one, labels.*."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail import Dataset
from longtail.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scipy.sparse import csr_array

__all__ = [
    "drawn_points",
    "features_of",
    "file_in",
    "labels_in",
    "read_both",
    "read_test",
    "read_train",
    "texts_of",
]


def file_in(folder: Path, part: str) -> Path:
    """Return the one file of a part, train or test."""
    found = _files(folder, part)
    if found is None:
        raise InputError(f"{folder} has no file {part}.*. Name a folder that holds one.")
    return found


def labels_in(folder: Path) -> Path | None:
    """Return the one file of labels, if there is one."""
    return _files(folder, "labels")


def read_train(folder: Path) -> Dataset:
    """Read the training points."""
    return Dataset.read(file_in(folder, "train"), labels_file=labels_in(folder))


def read_both(folder: Path) -> tuple[Dataset, Dataset]:
    """Read the training and the test points."""
    train = read_train(folder)
    return train, read_test(file_in(folder, "test"), labels_in(folder), train)


def read_test(file: Path, labels: Path | None, train: Dataset) -> Dataset:
    """Read test points beside training points: with their columns, and perhaps further labels."""
    return Dataset.read(
        file,
        labels_file=labels,
        label_space=None if labels else train.label_space,
        unknown_labels="extend",
        n_features=None if train.features is None else train.features.shape[1],
    )


def drawn_points(
    folder: Path, n_train: int, n_test: int, *, dev: bool = False
) -> tuple[Dataset, Dataset]:
    """Return random training and test points with texts, always the same.

    With `dev` the points to ask are other training points.
    """
    train = read_train(folder)
    rows = np.random.default_rng(0).permutation(train.n_points)
    if dev:
        test, others = train, rows[n_train:]
    else:
        test = read_test(file_in(folder, "test"), labels_in(folder), train)
        others = np.random.default_rng(0).permutation(test.n_points)
    if not len(others):
        raise InputError(f"No training points are left for --dev. Use fewer than {len(rows):,}.")
    texts_of(train)
    return train.take(rows[:n_train]), test.take(others[:n_test])


def texts_of(dataset: Dataset) -> Sequence[str]:
    """Return the texts of a data set, which must have such."""
    if dataset.texts is None:
        raise InputError("This benchmark needs points with texts. Name data that have them.")
    return dataset.texts


def features_of(dataset: Dataset) -> csr_array:
    """Return the ready-made features of a data set, which must have such."""
    if dataset.features is None:
        raise InputError("This benchmark needs ready-made features. Name data that have them.")
    return dataset.features


def _files(folder: Path, part: str) -> Path | None:
    """Return the one file that is called so; None if there is none."""
    paths = sorted(path for path in folder.glob(f"{part}.*") if path.is_file())
    if len(paths) > 1:
        raise InputError(
            f"{folder} should hold one file {part}.*, but holds "
            f"{', '.join(path.name for path in paths)}. Move the others elsewhere."
        )
    return paths[0] if paths else None
