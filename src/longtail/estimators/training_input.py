"""What a training is given, checked before anything is learnt from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.data.dataset import Dataset
from longtail.errors import InputError, named
from longtail.metrics.hits import as_binary_csr
from longtail.metrics.predictions import truth_without
from longtail.own_classes import require_arguments
from longtail.training.run import Callback

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_array

__all__ = ["check_callbacks", "check_dataset", "checked_pairs"]


def check_dataset(dataset: Dataset) -> None:
    """Raise InputError for data from which nothing can be learnt."""
    if not isinstance(dataset, Dataset):
        raise InputError(f"fit_dataset takes a Dataset, got {named(dataset)}. Pass lists to fit.")
    if dataset.n_points == 0:
        raise InputError("The training data has no points. Pass at least one.")
    if dataset.features is not None and not dataset.features.shape[1]:
        raise InputError(
            f"Found array with 0 feature(s) (shape={dataset.features.shape}) while a minimum of 1 "
            "is required."
        )
    if dataset.labels.nnz == 0:
        raise InputError(
            f"None of the {dataset.n_points} training points has a label. Pass at least one label."
        )


def checked_pairs(pairs: csr_array, dataset: Dataset) -> csr_array:
    """Return pairs to set aside as a matrix of ones, or raise InputError."""
    pairs = as_binary_csr(pairs, "set_aside")
    if pairs.shape != dataset.labels.shape:
        raise InputError(
            f"`set_aside` has the shape {pairs.shape}, but the labels of the training data have "
            f"{dataset.labels.shape}. Pass the pairs of these points and labels."
        )
    if not truth_without(dataset.labels, pairs).nnz:
        raise InputError(
            "`set_aside` has all labels of all training points, so there is nothing to judge "
            "answers by. Pass the pairs that are not to be answered, not those that are."
        )
    return pairs


def check_callbacks(callbacks: Sequence[Callback]) -> None:
    """Raise InputError for what would be found out after hours."""
    if not isinstance(callbacks, list | tuple):
        raise InputError(f"callbacks must be a list, got {named(callbacks)}. Pass [callback].")
    for callback in callbacks:
        if isinstance(callback, type) or not isinstance(callback, Callback):
            raise InputError(
                "A callback is an object with the methods on_stage, on_batch and on_epoch, such as "
                f"longtail.progress.ProgressBar(), got {callback!r}."
            )
        for method in ("on_stage", "on_batch", "on_epoch"):
            require_arguments(callback, method, Callback)
