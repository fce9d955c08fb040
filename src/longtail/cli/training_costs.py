"""What ``longtail train`` says of time and memory before it trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.amounts import bytes_text, time_text
from longtail.cli.notices import notice, warning
from longtail.costs.estimate import Machine, estimate_training, workload_of
from longtail.costs.memory_check import (
    Fit,
    advice,
    memory_need,
    said_of_shortage,
    savings,
)
from longtail.costs.of_recipe import costs_of
from longtail.data.csr import MAX_IDS
from longtail.errors import TooLargeError

if TYPE_CHECKING:
    from longtail.costs.estimate import Workload
    from longtail.costs.memory_check import MemoryNeed
    from longtail.data.dataset import Dataset
    from longtail.estimators.estimator import LabelEstimator

__all__ = ["announce"]


def announce(
    estimator: LabelEstimator, dataset: Dataset, *, ignore_memory: bool, what: str = "Training"
) -> None:
    """Say how long training will take and how much memory; refuse what cannot fit.

    Of a recipe whose costs nobody has measured, nothing is said. `what` is what it is called.

    Raises
    ------
    TooLargeError
        If it is sure not to fit in memory.
    """
    costs = costs_of(estimator)
    if costs is None:
        return
    workload = workload_of(dataset, estimator)
    estimate = estimate_training(workload, costs, Machine.measured(estimator))
    time_to_take = "" if estimate.seconds is None else f"{time_text(estimate.seconds)} and "
    notice(f"{what} will take about {time_to_take}{bytes_text(estimate.memory)} of memory.")
    if workload.n_nonzero > MAX_IDS:
        warning(_said_of_entries(workload, is_text=dataset.texts is not None))
    need = memory_need(dataset, estimator, workload)
    if need is not None:
        _warn_of_memory(need, estimator, dataset, workload, ignore_memory=ignore_memory)


def _said_of_entries(workload: Workload, *, is_text: bool) -> str:
    """Say that entries cannot be counted, which else comes to light once all texts are read.

    Trees of labels could learn from them, so that is no error yet.
    """
    ways = ["train on fewer points"]
    if is_text:
        ways.insert(0, "leave out pairs of words (--set word_ngrams=1)")
    if n_of_pieces := workload.n_nonzero - workload.n_word_entries:
        share = f"{n_of_pieces / workload.n_nonzero:.0%} of the entries"
        ways.insert(0, f"leave out pieces of words (--set char_ngrams=none, {share})")
    return (
        f"these points have about {workload.n_nonzero:,} entries of features, and most recipes, "
        f"the default one among them, learn from {MAX_IDS:,} at most. You can {', or '.join(ways)}."
    )


def _warn_of_memory(
    need: MemoryNeed,
    estimator: LabelEstimator,
    dataset: Dataset,
    workload: Workload,
    *,
    ignore_memory: bool,
) -> None:
    """Warn of what may not fit, and refuse what cannot, unless that is wanted all the same."""
    if need.fit is Fit.FITS:
        return
    if need.fit is Fit.CANNOT and not ignore_memory:
        shortage = said_of_shortage(need, dataset, estimator, workload)
        raise TooLargeError(
            f"{shortage} --set changes settings; --ignore-memory trains regardless."
        )
    certainty = "will" if need.fit is Fit.CANNOT else "may"
    warning(
        f"memory {certainty} not suffice: this process can have "
        f"{bytes_text(need.in_reach)}. {advice(savings(dataset, estimator, workload))}"
    )
