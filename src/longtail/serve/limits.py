"""How much one client may ask for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that a request may be; what is more is refused with a sentence that says so.

    Parameters
    ----------
    body_bytes : int
        Length of a request's body.
    texts : int
        Texts in one request.
    characters : int
        Length of a text.
    k : int
        Labels of a text.
    names : int
        Allowed labels, and masked ones.
    seconds : float
        For a body to arrive, and for its answer to be found.
    waiting : int
        Batches, explanations and long texts that are worked on or wait at the same time.
    """

    body_bytes: int = 4_194_304
    texts: int = 1_000
    characters: int = 20_000
    k: int = 100
    names: int = 1_000
    seconds: float = 10.0
    waiting: int = 32
