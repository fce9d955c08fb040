"""Links between labels, made by training points that are labels themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.blend.matches import Matches
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import over_row_chunks
from longtail.kernels.own_labels import carried_back, keep_strongest
from longtail.kernels.sparse_lookup import SparseRows
from longtail.metrics.hits import row_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["MAY_BE_OWN", "Links", "kept_links", "own_labels", "sparse_rows_of"]

MAY_BE_OWN = 20  # labels whose texts are most like a point's
MOST_LINKS = 50  # of one label
ROUNDS = 3
LIKENESS, LIKENESS_ALONE = 5, 34  # powers: where the text is all that tells, the likest counts
OFTEN = 0.2  # of the points, from which they seem to carry their own label
SMALLEST = np.float32(1e-30)
TEXT_ALONE = 0.1  # of what counts a label that the point's own labels speak for


class Links(NamedTuple):
    """What points that carry a label are themselves.

    Where points and labels are things of one kind, such as pages that refer to pages or products
    bought with products, a training point has a label of its own. A label is linked to the own
    labels of the points that carry it.

    Attributes
    ----------
    weights : csr_array of float32 (n_labels, n_labels)
        From labels to the own labels of the points that carry them.
    taken : float32 (n_labels,)
        How surely a label is a training point's own, from 0 to 1: it is hardly a new point's, too.

    Examples
    --------
    Labels 1 and 2 have one text. Point 0 is label 0, and carries label 2; so it is label 2 that
    point 1 is, which carries label 0.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.links import Links
    >>> from longtail.blend.matches import Matches
    >>> likest = Matches(np.array([[0, -1], [1, 2]], np.int32), np.array([[1, 0], [1, 1.0]], "f"))
    >>> labels = csr_array(np.array([[0, 0, 1], [1, 0, 0]], np.float32))
    >>> links = Links.of_points(likest, labels, n_threads=1)
    >>> links.weights.toarray().tolist(), links.taken.tolist()
    ([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [1.0, 0.0, 1.0])
    """

    weights: csr_array
    taken: Floats

    @staticmethod
    def of_points(
        likest: Matches, labels: csr_array, *, n_threads: int, known: Links | None = None
    ) -> Links:
        """Return the links that training points make, on top of those that are known.

        The text of a point leaves open which label it is: it may name several, or word it
        otherwise. So links tell as well, between what the point carries and the labels that it may
        be; and they are made anew from what they tell, a few times.

        Parameters
        ----------
        likest : Matches
            Of each point, the labels with the likest texts; for strengths, inner products.
        labels : csr_array (n_points, n_labels)
            Those that points carry.
        n_threads : int
        known : Links or None
            Those of other points.
        """
        own, best = likest.labels, likest.strengths[:, :1]
        taken = before = np.zeros(labels.shape[1], np.float32) if known is None else known.taken
        by_label = labels.T.tocsr()
        labels = by_label.T.tocsr()  # each row sorted, since it is looked up in

        def linked(weights: NDArray[np.floating]) -> csr_array:
            found = _carriers(by_label, own, weights * best)
            return found if known is None else (known.weights + found).tocsr()

        may_carry = _carry_the_likest(own, labels)
        shares = np.divide(likest.strengths, np.maximum(best, SMALLEST), dtype=np.float32)
        links = linked(shares**LIKENESS_ALONE)
        for _ in range(ROUNDS):
            evidence = _evidence(own, labels, links, may_carry, n_threads)
            del links  # of many points, two of them would not fit into memory
            weights, taken = own_labels(own, shares, evidence, before)
            links = linked(weights)
        return Links(links, taken)


def own_labels(ids: Ids, shares: Floats, evidence: Floats, taken: Floats) -> tuple[Floats, Floats]:
    """Return how likely labels are the own ones of points, and how surely each is one's.

    Where relations run both ways, the labels that a point carries speak for its own one: they are
    the own labels of points that carry it. Then the point does not carry it itself. If nothing
    speaks for a label, the text alone tells, which counts less. And each label is the own one of
    one point, to which the others give way.

    Parameters
    ----------
    ids : int32 (n_points, k)
        The labels that a point may be, padded with -1.
    shares : float32 (n_points, k)
        How like the point their texts are, of 1 for the likest; 0 for padding.
    evidence : float32 (n_points, k)
        How much the labels of the point speak for each; below 0 for what it carries, and padding.
    taken : float32 (n_labels,)
        How surely labels are the own ones of other points.

    Examples
    --------
    Both points may be label 0 or 1. The first carries what speaks for label 1, which leaves label
    0 to the second.

    >>> import numpy as np
    >>> from longtail.blend.links import own_labels
    >>> ids, shares = np.array([[0, 1], [0, 1]], np.int32), np.ones((2, 2), np.float32)
    >>> evidence = np.array([[0, 2], [0, 0]], np.float32)
    >>> weights, _ = own_labels(ids, shares, evidence, taken=np.zeros(2, np.float32))
    >>> [[f"{weight:.2f}" for weight in row] for row in weights]
    [['0.00', '1.00'], ['0.10', '0.01']]
    """
    weights, surest = np.empty_like(shares), taken.copy()
    for some in row_chunks(len(ids)):  # beside whole tables of millions of points nothing would fit
        weights[some] = _unrivalled(shares[some], evidence[some])
        counts = weights[some] > 0
        np.maximum.at(surest, ids[some][counts], weights[some][counts])
    for some in row_chunks(len(ids)):
        counts = weights[some] > 0
        own = weights[some][counts]
        weights[some][counts] *= own / surest[ids[some][counts]]
    return weights, surest


def _unrivalled(shares: Floats, evidence: Floats) -> Floats:
    """Return how likely labels are the own ones of points, whatever other points say."""
    most = evidence.max(axis=1, keepdims=True, initial=0)
    by_both: Floats = shares**LIKENESS * np.maximum(evidence, 0)
    by_text: Floats = shares**LIKENESS_ALONE
    weights = np.where(most > 0, by_both, by_text)
    largest = weights.max(axis=1, keepdims=True, initial=0)
    weights /= np.maximum(largest, SMALLEST)
    weights *= np.where(most > 0, np.float32(1), np.float32(TEXT_ALONE))
    return weights


def _carriers(by_label: csr_array, own: Ids, weights: NDArray[np.floating]) -> csr_array:
    """Return how often each label is carried by points of each own label."""
    counted = Matches(own, weights.astype(np.float32, copy=False))
    return (by_label @ counted.by_point(by_label.shape[0])).tocsr()


def _carry_the_likest(own: Ids, labels: csr_array) -> bool:
    """Return whether points often carry the label whose text is most like theirs."""
    likest = Matches(own[:, :1], (own[:, :1] >= 0).astype(np.float32)).by_point(labels.shape[1])
    return bool(likest.multiply(labels).count_nonzero() > OFTEN * likest.nnz)


def _evidence(
    own: Ids, labels: csr_array, links: csr_array, may_carry: bool, n_threads: int
) -> Floats:
    """Return how strongly labels that may be own are linked to those that a point carries."""
    links.sort_indices()
    rows = sparse_rows_of(links.indptr, links.indices, links.data)
    carried = read_only(labels.indptr, np.int64), read_only(labels.indices, np.int32)
    ids, evidence = read_only(own, np.int32), np.empty(own.shape, np.float32)

    def work(start: int, stop: int) -> None:
        carried_back(ids, *carried, rows, may_carry, start, stop, evidence)

    over_row_chunks(work, len(own), n_threads=n_threads, chunk=256)
    return evidence


def sparse_rows_of(starts: NDArray[np.integer], labels: Ids, weights: Floats) -> SparseRows:
    """Return sparse rows as kernels take them: float32 needs no scales."""
    return SparseRows(
        read_only(starts, np.int64),
        read_only(labels, np.int32),
        read_only(weights, np.float32),
        read_only(np.zeros(0), np.float32),
    )


def kept_links(links: csr_array) -> tuple[NDArray[np.int64], Ids, Floats]:
    """Return starts, labels and weights of the strongest `MOST_LINKS` of each label's links.

    Parameters
    ----------
    links : csr_array (n_labels, n_linked_labels)
        How often points of a label, weighted, have matched another.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.links import kept_links
    >>> links = csr_array(np.array([[0, 2, 5], [0, 0, 0], [1, 0, 0]]))
    >>> [part.tolist() for part in kept_links(links)]
    [[0, 2, 2, 3], [2, 1, 0], [5.0, 2.0, 1.0]]
    """
    starts = np.zeros(links.shape[0] + 1, np.int64)
    np.cumsum(np.minimum(np.diff(links.indptr), MOST_LINKS), out=starts[1:])
    labels, weights = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
    keep_strongest(
        *sparse_rows_of(links.indptr, links.indices, links.data)[:3], starts, labels, weights
    )
    return starts, labels, weights
