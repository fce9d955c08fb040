"""Refuse, before it starts, a training that cannot fit into memory, and say what would."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from longtail.costs.available_memory import available_memory, resident_memory
from longtail.costs.estimate import workload_of
from longtail.costs.of_recipe import costs_of
from longtail.errors import TooLargeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longtail.costs.estimate import Workload
    from longtail.data.dataset import Dataset
    from longtail.estimators.estimator import LabelEstimator

__all__ = [
    "Fit",
    "MemoryNeed",
    "Saving",
    "advice",
    "check_memory",
    "memory_need",
    "said_of_shortage",
    "savings",
]

# The estimate over what training is sure to take. Estimates were at most 1.4 times the measured
# peak (docs/memory.md), not all recipes were measured, and a refusal must not be wrong.
SURE = 2.0
# What memory may grow with, and what to try where the value is None, the recipe's own choice, or
# where half of it saves nothing.
TRIED: Mapping[str, int] = MappingProxyType(
    {
        "max_features": 100_000,
        "dimension": 128,
        "batch_size": 128,
        "texts_at_once": 32,
        "n_pieces": 64,
        "n_learners": 10,
        "n_hashes": 2,
        "n_buckets": 500,
        "n_filters": 32,
        "n_words": 64,
        "bottleneck": 128,
        "n_hidden": 32,
        "n_steps": 5,
        "shortlist_size": 100,
        "n_near_labels": 20,
        "n_voted": 20,
        "beam_size": 8,
        "leaf_size": 50,
        "n_hard": 10,
        "n_candidates": 100,
        "max_mean_entries": 256,
    }
)
OF_TEXTS = ("max_features", "word_ngrams")
LEAST_SAVING = 0.03  # of the estimate: less is not worth a sentence
MOST_SAVINGS = 3


class Fit(Enum):
    """Whether a training fits into memory."""

    FITS = "fits"
    MAY_NOT = "may not fit"
    CANNOT = "cannot fit"


@dataclass(frozen=True)
class MemoryNeed:
    """What training needs, and what there is.

    Parameters
    ----------
    estimate : int
        Bytes that the process will have at the peak, about.
    resident : int
        Bytes that it has already, the data set among them.
    available : int
        Bytes that it can still take.

    Examples
    --------
    >>> from longtail.costs.memory_check import MemoryNeed
    >>> MemoryNeed(estimate=3 * 10**9, resident=10**9, available=4 * 10**9).fit.value
    'fits'
    >>> MemoryNeed(estimate=30 * 10**9, resident=10**9, available=4 * 10**9).fit.value
    'cannot fit'
    """

    estimate: int
    resident: int
    available: int

    @property
    def least(self) -> int:
        """Bytes that training needs at the peak with near certainty."""
        return int(self.estimate / SURE)

    @property
    def in_reach(self) -> int:
        """Bytes that the process can have in all."""
        return self.resident + self.available

    @property
    def fit(self) -> Fit:
        """Whether there is enough."""
        if self.least > self.in_reach:
            return Fit.CANNOT
        return Fit.FITS if self.estimate <= self.in_reach else Fit.MAY_NOT


class Saving(NamedTuple):
    """What a smaller value of a setting saves.

    Attributes
    ----------
    setting : str
    value : int
        The smaller one.
    n_bytes : int
        At the peak.
    """

    setting: str
    value: int
    n_bytes: int


def memory_need(
    dataset: Dataset, estimator: LabelEstimator, workload: Workload | None = None
) -> MemoryNeed | None:
    """Return what training an estimator on a data set needs, and what there is.

    Parameters
    ----------
    dataset : Dataset
    estimator : LabelEstimator
        With its settings.
    workload : Workload or None
        The size of the data set, if it is known already.

    Returns
    -------
    MemoryNeed or None
        None where nothing is known: of a `DeepXML` of one's own parts, and on a GPU, which takes
        a part of it.

    Examples
    --------
    >>> from longtail import Dataset, DeepXML
    >>> from longtail.costs.memory_check import memory_need
    >>> from longtail.recipes.parabel import Parabel
    >>> dataset = Dataset.of(["red wine", "fast car"], [["drink"], ["vehicle"]])
    >>> memory_need(dataset, Parabel()).estimate > 10**8, memory_need(dataset, DeepXML())
    (True, None)
    """
    if estimator.device != "cpu":
        return None
    estimate = _estimate(dataset, estimator, workload)
    if estimate is None:
        return None
    return MemoryNeed(estimate, resident_memory(), available_memory())


def check_memory(dataset: Dataset, estimator: LabelEstimator) -> MemoryNeed | None:
    """Raise an error if training is sure to need more memory than there is.

    ``longtail train`` does so by itself, `fit_dataset` does not: it would have to look at a sample
    of the texts first, which takes up to a second, as long as it takes to train a small model.

    Returns
    -------
    MemoryNeed or None
        See `memory_need`; its `fit` tells what may not fit, too.

    Raises
    ------
    TooLargeError
        Saying how much is needed, how much there is, and which settings to lower.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.costs.memory_check import check_memory
    >>> from longtail.recipes.parabel import Parabel
    >>> dataset = Dataset.of(["red wine", "fast car"], [["drink"], ["vehicle"]])
    >>> check_memory(dataset, Parabel()).fit.value
    'fits'
    """
    need = memory_need(dataset, estimator)
    if need is not None and need.fit is Fit.CANNOT:
        raise TooLargeError(said_of_shortage(need, dataset, estimator))
    return need


def said_of_shortage(
    need: MemoryNeed,
    dataset: Dataset,
    estimator: LabelEstimator,
    workload: Workload | None = None,
) -> str:
    """Return what is said of a training that cannot fit: its need, what there is, what to do.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.costs.memory_check import MemoryNeed, said_of_shortage
    >>> from longtail.recipes.parabel import Parabel
    >>> dataset = Dataset.of(["red wine", "fast car"], [["drink"], ["vehicle"]])
    >>> need = MemoryNeed(estimate=11 * 10**9, resident=10**9, available=4 * 10**9)
    >>> said_of_shortage(need, dataset, Parabel()).partition(", and")[0]
    'Training needs about 11.0 GB of memory, at least 5.5 GB'
    """
    return (
        f"Training needs about {_gigabytes(need.estimate)} of memory, at least "
        f"{_gigabytes(need.least)}, and this process can have {_gigabytes(need.in_reach)}. "
        f"{advice(savings(dataset, estimator, workload))}"
    )


def savings(
    dataset: Dataset, estimator: LabelEstimator, workload: Workload | None = None
) -> list[Saving]:
    """Return which settings of an estimator to lower, and what each would save alone.

    Returns
    -------
    list of Saving
        What saves most first; at most three, and none that saves next to nothing.

    Examples
    --------
    A table of a million tokens is what takes the memory.

    >>> from scipy.sparse import csr_array
    >>> from longtail import Dataset
    >>> from longtail.costs.memory_check import savings
    >>> from longtail.recipes.one_vs_all import OneVsAll
    >>> dataset = Dataset.of(csr_array((2, 10**6)), [["drink"], ["vehicle"]])
    >>> [(saving.setting, saving.value) for saving in savings(dataset, OneVsAll(dimension=256))]
    [('dimension', 128)]
    """
    workload = workload or workload_of(dataset, estimator)
    now = _estimate(dataset, estimator, workload) or 0
    found = []
    for setting, values in _smaller(estimator, workload, is_text=dataset.texts is not None).items():
        for value in values:
            changed = type(estimator)(**(estimator.get_params() | {setting: value}))
            known = None if setting in OF_TEXTS else workload
            saved = now - (_estimate(dataset, changed, known) or now)
            if saved > LEAST_SAVING * now:
                found.append(Saving(setting, value, saved))
                break
    return sorted(found, key=lambda saving: -saving.n_bytes)[:MOST_SAVINGS]


def advice(found: Sequence[Saving]) -> str:
    """Return what to do about too little memory.

    Examples
    --------
    >>> from longtail.costs.memory_check import Saving, advice
    >>> advice([Saving("dimension", 128, 2 * 10**9), Saving("batch_size", 64, 10**9)])
    'Lower dimension to 128 (saves about 2.0 GB) or batch_size to 64 (saves about 1.0 GB), train ...
    """
    larger = "train on fewer points, or use a larger machine."
    if not found:
        return f"No setting of this recipe saves much: {larger}"
    *others, last = (
        f"{setting} to {value} (saves about {_gigabytes(n_bytes)})"
        for setting, value, n_bytes in found
    )
    changes = f"{', '.join(others)} or {last}" if others else last
    return f"Lower {changes}, {larger}"


def _estimate(dataset: Dataset, estimator: LabelEstimator, workload: Workload | None) -> int | None:
    """Return the bytes at the peak; None without a cost model."""
    costs = costs_of(estimator)
    if costs is None:
        return None
    return int(costs.memory(workload or workload_of(dataset, estimator)))


def _smaller(
    estimator: LabelEstimator, workload: Workload, *, is_text: bool
) -> dict[str, tuple[int, ...]]:
    """Return what to try, in order, of each setting that memory may grow with.

    That is about half of its value and, where it is far more than there is use for, so that half
    saves nothing, a usual one.
    """
    values = {name: getattr(estimator, name) for name in TRIED if hasattr(estimator, name)}
    tried: dict[str, tuple[int, ...]] = {
        name: (TRIED[name],) if value is None else (max(value // 2, 1), min(value, TRIED[name]))
        for name, value in values.items()
    }
    del tried["max_features"]  # ready-made ones are all taken
    if is_text:
        tried["max_features"] = (max(workload.n_features // 2, 1),)
    if is_text and estimator.word_ngrams > 1:
        tried["word_ngrams"] = (1,)
    return tried


def _gigabytes(n_bytes: float) -> str:
    """Return a size as people read it."""
    return f"{n_bytes / 1e9:.1f} GB"
