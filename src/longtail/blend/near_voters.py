"""How many near training points vote for their labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.metrics.hits import true_among
from longtail.metrics.predictions import top_k

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.candidates import CandidateSearch

    Floats = NDArray[np.float32]

__all__ = ["MANY_VOTERS", "MOST_ASKED", "with_voters_for"]

MANY_VOTERS = 100
N_BEST = 5  # labels of the most votes, by which votes are judged
MOST_ASKED = 1_000
CLEARLY = 2.0  # standard errors


def with_voters_for(
    search: CandidateSearch, points: Floats, truth: csr_array, seen: csr_array
) -> CandidateSearch:
    """Return a search in which a hundred near points vote, if that is clearly better.

    That is, if of the labels with the most votes clearly more are true. Few points tell most where
    the nearest are nearly alike. Where these have little in common with a point, as of a list of
    items, what each says is mostly chance, and many say more.

    Parameters
    ----------
    search : CandidateSearch
    points : float32 (n, dimension)
        Unit vectors of points that the sources have not seen; `MOST_ASKED` are enough.
    truth : csr_array (n, n_labels)
    seen : csr_array (n_seen, n_labels)
        Labels of the points that vote.

    Examples
    --------
    Whichever points are near, every fourth has the label that is asked for, and each another one.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.candidates import CandidateSearch, SearchSizes
    >>> from longtail.blend.near_voters import with_voters_for
    >>> random = np.random.default_rng(0)
    >>> vectors = random.standard_normal((400, 4)).astype(np.float32)
    >>> vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    >>> labels = np.hstack([random.random((400, 1)) < 0.25, np.eye(400)]).astype(np.float32)
    >>> seen = csr_array(labels)
    >>> sizes = SearchSizes(n_near_points=1)
    >>> search = CandidateSearch.build(
    ...     vectors[:0], vectors, seen, sizes=sizes, seed=0, n_threads=1
    ... )
    >>> truth = csr_array((400, 401))
    >>> with_voters_for(search, vectors, truth, seen).sizes.n_near_points
    1
    >>> truth = csr_array(np.repeat(np.eye(401)[:1], 400, axis=0))
    >>> with_voters_for(search, -vectors, truth, seen).sizes.n_near_points
    100
    """
    n_usual = search.sizes.n_near_points
    if not len(points) or not 0 < n_usual < MANY_VOTERS:
        return search
    near, similarities = search.near_points(points, MANY_VOTERS)
    few, many = (
        _n_true(near[:, :n], similarities[:, :n], seen, truth) for n in (n_usual, MANY_VOTERS)
    )
    gain = many - few
    if gain.mean() <= CLEARLY * gain.std() / np.sqrt(len(gain)):
        return search
    return replace(search, sizes=replace(search.sizes, n_near_points=MANY_VOTERS))


def _n_true(
    near: NDArray[np.int32], similarities: Floats, seen: csr_array, truth: csr_array
) -> NDArray[np.int64]:
    """Return how many of the labels with the most votes are true, for each point."""
    rows, places = np.nonzero(near >= 0)
    weights = np.maximum(similarities[rows, places], 0) ** 2
    voters = csr_array((weights, (rows, near[rows, places])), (len(near), seen.shape[0]))
    best, _ = top_k(voters @ seen, N_BEST)
    n_true: NDArray[np.int64] = true_among(best, truth).sum(axis=1)
    return n_true
