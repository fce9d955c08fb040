"""Meta-labels that are not clusters: labels hashed at random, or a selection of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.errors import InputError, require_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = ["LabelSelection", "RandomHashing"]


@dataclass(frozen=True, kw_only=True)
class RandomHashing:
    """Throw the labels into buckets at random, as MACH does.

    Table 6(b) of the DeepXML paper, "Random".

    Parameters
    ----------
    n_meta_labels : int
        L^, the buckets; fewer where there are fewer labels. Those that stay empty are left out.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from longtail.surrogates.assignments import RandomHashing
    >>> labels = sp.csr_array((4, 100))
    >>> buckets = RandomHashing(n_meta_labels=8).assign(labels, labels, seed=0, n_threads=1)
    >>> buckets.shape, int(buckets.max())
    ((100,), 7)
    """

    n_meta_labels: int = 2**16

    def assign(
        self,
        features: csr_array,  # noqa: ARG002 - looks at nothing
        labels: csr_array,
        *,
        seed: int,
        n_threads: int,  # noqa: ARG002 - takes no time
    ) -> NDArray[np.int32]:
        """Return the bucket of each label, int32 (n_labels,)."""
        require_positive("n_meta_labels", self.n_meta_labels)
        n_labels = labels.shape[1]
        drawn = np.random.default_rng(seed).integers(0, min(self.n_meta_labels, n_labels), n_labels)
        return np.unique(drawn, return_inverse=True)[1].astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class LabelSelection:
    """Let the most frequent labels stand for all (DeepXML paper, appendix A.3).

    Parameters
    ----------
    share : float
        Of the labels that have points, what share is selected; the paper has .05 to .2, the less
        the more labels there are.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from longtail.surrogates.assignments import LabelSelection
    >>> labels = sp.csr_array(np.array([[1, 1, 0, 0], [0, 1, 0, 1], [0, 1, 0, 1]]))
    >>> LabelSelection(share=0.5).assign(labels, labels, seed=0, n_threads=1).tolist()
    [-1, 0, -1, 1]
    """

    share: float = 0.2

    def assign(
        self,
        features: csr_array,  # noqa: ARG002 - frequency is all that counts
        labels: csr_array,
        *,
        seed: int,  # noqa: ARG002 - nothing is drawn
        n_threads: int,  # noqa: ARG002 - takes no time
    ) -> NDArray[np.int32]:
        """Return the place of each label in the selection, int32 (n_labels,), -1 if it is not."""
        if not 0 < self.share <= 1:
            raise InputError(f"share must be above 0 and at most 1, got {self.share}.")
        counts = np.bincount(labels.indices, minlength=labels.shape[1])
        n_selected = max(1, round(self.share * np.count_nonzero(counts)))
        selected = np.argsort(-counts, kind="stable")[:n_selected]
        places = np.full(labels.shape[1], -1, np.int32)
        places[np.sort(selected)] = np.arange(n_selected, dtype=np.int32)
        return places
