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

__all__ = ["FEW_VOTERS", "MANY_VOTERS", "MOST_ASKED", "with_voters_for"]

FEW_VOTERS, MANY_VOTERS = 10, 100
N_BEST = 5  # labels of the most votes at most, by which votes are judged
MOST_ASKED = 1_000
CLEARLY = 2.0  # standard errors


def with_voters_for(
    search: CandidateSearch, points: Floats, truth: csr_array, seen: csr_array
) -> CandidateSearch:
    """Return a search in which ten or a hundred near points vote, if that is clearly better.

    Where the nearest points are nearly the point itself, few of them tell most: ten vote if clearly
    more of the labels with the most votes are true then, of as many as a point has. Where even the
    nearest have little in common with it, as with lists of items, what each says is mostly chance,
    and many say more: a hundred vote if clearly more of the five labels with the most votes are
    true then.

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
    usual, few, many = (
        _true_among_best(near[:, :n], similarities[:, :n], seen, truth)
        for n in (n_usual, min(FEW_VOTERS, n_usual), MANY_VOTERS)
    )
    is_first = np.arange(N_BEST) < np.diff(truth.indptr)[:, None]
    if _is_clear(few & is_first, usual & is_first):
        return replace(search, sizes=replace(search.sizes, n_near_points=FEW_VOTERS))
    if _is_clear(many, usual):
        return replace(search, sizes=replace(search.sizes, n_near_points=MANY_VOTERS))
    return search


def _true_among_best(
    near: NDArray[np.int32], similarities: Floats, seen: csr_array, truth: csr_array
) -> NDArray[np.bool_]:
    """Return which of the labels with the most votes are true, bool (n, N_BEST)."""
    rows, places = np.nonzero(near >= 0)
    weights = np.maximum(similarities[rows, places], 0) ** 2
    voters = csr_array((weights, (rows, near[rows, places])), (len(near), seen.shape[0]))
    best, _ = top_k(voters @ seen, N_BEST)
    return true_among(best, truth)


def _is_clear(found: NDArray[np.bool_], usual: NDArray[np.bool_]) -> bool:
    """Return whether points find clearly more than usual, on average."""
    gain = found.sum(axis=1) - usual.sum(axis=1)
    return bool(gain.mean() > CLEARLY * gain.std() / np.sqrt(len(gain)))
