"""A data set with labels put in and taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from longtail.data.dataset import Dataset
from longtail.data.rows import binary

if TYPE_CHECKING:
    from longtail.review.findings import Findings

__all__ = ["corrected"]


def corrected(dataset: Dataset, missing: Findings, doubtful: Findings) -> Dataset:
    """Return the data set with the missing labels put in, and the doubtful ones taken out.

    Parameters
    ----------
    dataset : Dataset
    missing, doubtful : Findings
        Those of a review, or some of these. What is there, or is not there, already, stays so; a
        pair that is in both is taken out.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import Dataset
    >>> from longtail.review import Findings, corrected
    >>> dataset = Dataset.of(["red wine", "old car"], [["drink"], ["drink", "vehicle"]])
    >>> doubtful = Findings(np.array([1]), np.array([0]), np.array([0.0]))
    >>> none = Findings(*(column[:0] for column in doubtful))
    >>> list(corrected(dataset, missing=none, doubtful=doubtful).label_lists())
    [[0], [1]]
    """
    shape = dataset.labels.shape
    labels = binary(dataset.labels + _pairs(missing, shape))
    labels = binary(labels - labels.multiply(_pairs(doubtful, shape)))
    return Dataset(dataset.texts, dataset.features, labels, dataset.label_space, dataset.rows)


def _pairs(findings: Findings, shape: tuple[int, int]) -> csr_array:
    """Return the pairs as a matrix of ones."""
    ones = np.ones(len(findings.points), np.float32)
    return binary(csr_array((ones, (findings.points, findings.labels)), shape=shape))
