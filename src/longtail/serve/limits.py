"""How much one client may ask for."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields

from longtail.errors import InputError
from longtail.predictor import LARGEST_K

__all__ = ["Limits", "fault_of"]

USUAL_K = 5


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that a request may be; what is more is refused with a sentence that says so.

    Parameters
    ----------
    body_bytes : int
        Length of a request's body, in bytes.
    texts : int
        Texts in one request.
    characters : int
        Length of a text.
    k : int
        Labels of a text. A request that does not say how many gets 5, or `k` if that is fewer.
    names : int
        Names of labels that are allowed, and of those that are masked.
    seconds : float
        For a request's head to arrive, for its body, for its answer to be found, and for some of it
        to be taken.
    waiting : int
        Batches, explanations and long texts that are worked on or wait, in each worker.

    Raises
    ------
    InputError
        If a limit is not a number above 0, or `k` is above 10,000, more than a model answers.

    Examples
    --------
    >>> from longtail.serve.limits import Limits
    >>> Limits().default_k, Limits(k=3).default_k
    (5, 3)
    """

    body_bytes: int = 4_194_304
    texts: int = 1_000
    characters: int = 20_000
    k: int = 100
    names: int = 1_000
    seconds: float = 10.0
    waiting: int = 32

    def __post_init__(self) -> None:
        for limit in fields(self):
            fault = fault_of(limit.name, getattr(self, limit.name))
            if fault is not None:
                raise InputError(f"The limit `{limit.name}` {fault}.")

    @property
    def default_k(self) -> int:
        """How many labels a text gets where a request does not say."""
        return min(USUAL_K, self.k)


def fault_of(name: str, value: float) -> str | None:
    """Return what is wrong with a limit, as the end of a sentence; None if nothing is.

    Examples
    --------
    >>> from longtail.serve.limits import fault_of
    >>> fault_of("seconds", float("nan"))
    'must be above 0, got nan'
    >>> fault_of("k", 20_000)
    'must be at most 10,000, got 20,000'
    """
    if not value > 0:  # nan is not either
        return f"must be above 0, got {value}"
    if math.isinf(value):
        return f"must be finite, got {value}"
    most_workers = max(64, 4 * (os.cpu_count() or 1))  # far more than have anything to do
    most = {"k": LARGEST_K, "workers": most_workers}.get(name, math.inf)
    return f"must be at most {most:,}, got {value:,}" if value > most else None
