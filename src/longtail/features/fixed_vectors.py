"""Fixed dense vectors of points: as given, or from sparse features without looking at labels.

What Slice (Jain et al., WSDM 2019) trains its classifiers on. All are a table of token vectors, so
a point's vector is the weighted sum over its bag, scaled to unit length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from longtail.data.bags import Bags
from longtail.errors import require_positive
from longtail.features.bag_encoder import UnitBagEncoder

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.run import TrainingRun

__all__ = ["AsGiven", "FixedVectors", "RandomProjection", "TruncatedSVD", "is_dense"]

# Of the largest squared singular value: what is below is rounding, where points repeat each other.
LEAST_SHARE = 1e-8


class FixedVectors(Protocol):
    """How points become dense vectors before any label is looked at."""

    def learn(self, features: csr_array, run: TrainingRun) -> UnitBagEncoder:
        """Return the encoder."""
        ...


def is_dense(features: csr_array) -> bool:
    """Return whether more than half of all entries are there.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.fixed_vectors import is_dense
    >>> is_dense(csr_array(np.ones((2, 3)))), is_dense(csr_array(np.eye(3)))
    (True, False)
    """
    n_points, n_features = features.shape
    return bool(2 * features.nnz > n_points * n_features)


@dataclass(frozen=True, kw_only=True)
class AsGiven:
    """The features themselves: sentence vectors, image features, or few sparse ones.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.fixed_vectors import AsGiven
    >>> from longtail.training.run import TrainingRun
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> rows = csr_array(np.array([[3, 4]], np.float32))
    >>> (10 * AsGiven().learn(rows, run).encode(Bags.of(rows))).round().tolist()
    [[6.0, 8.0]]
    """

    def learn(
        self,
        features: csr_array,
        run: TrainingRun,  # noqa: ARG002 - nothing is learnt
    ) -> UnitBagEncoder:
        """See `FixedVectors`."""
        return UnitBagEncoder(np.eye(features.shape[1], dtype=np.float32))


@dataclass(frozen=True, kw_only=True)
class RandomProjection:
    """Random signs: products of points are kept on average (Achlioptas, JCSS 2003).

    Examples
    --------
    >>> import numpy as np, torch
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.fixed_vectors import RandomProjection
    >>> from longtail.training.run import TrainingRun
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> RandomProjection(dimension=8).learn(csr_array(np.eye(3)), run).token_vectors.shape
    (3, 8)
    """

    dimension: int = 512

    def learn(self, features: csr_array, run: TrainingRun) -> UnitBagEncoder:
        """See `FixedVectors`."""
        require_positive("dimension", self.dimension)
        random = np.random.default_rng(run.seed_for("random projection"))
        signs = random.integers(0, 2, (features.shape[1], self.dimension), np.int8)
        return UnitBagEncoder((2 * signs - 1).astype(np.float32) / np.sqrt(self.dimension))


@dataclass(frozen=True, kw_only=True)
class TruncatedSVD:
    """The directions in which the points differ most: latent semantic analysis.

    Deerwester et al., "Indexing by latent semantic analysis", JASIS 1990. Tokens that occur
    together get similar vectors, which is what self-supervision learns from so few words, too.

    Parameters
    ----------
    dimension : int
        Fewer where there are fewer points or features. Numbers for which the points have no
        directions, since some repeat others, are 0.
    power : float
        Directions are scaled by their singular values to that power: 0 counts all alike, which is
        what linear classifiers on top like best; 1 keeps the products of the points.
    n_iterations : int
        Of the block power method; more bring the last directions nearer to the true ones.

    Examples
    --------
    Tokens 0 and 1 occur together, token 2 alone. These are the cosines of their vectors.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.bags import Bags
    >>> from longtail.features.fixed_vectors import TruncatedSVD
    >>> from longtail.training.run import TrainingRun
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> rows = csr_array(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], np.float32))
    >>> vectors = TruncatedSVD(dimension=2).learn(rows, run).encode(Bags.of(csr_array(np.eye(3))))
    >>> np.abs(vectors @ vectors.T).round().tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    dimension: int = 512
    power: float = 0.0
    n_iterations: int = 2

    def learn(self, features: csr_array, run: TrainingRun) -> UnitBagEncoder:
        """See `FixedVectors`.

        Halko, Martinsson and Tropp, "Finding structure with randomness", SIAM Review 2011,
        algorithm 4.4.
        """
        require_positive("dimension", self.dimension)
        rank = min(self.dimension, *features.shape)
        random = np.random.default_rng(run.seed_for("truncated SVD"))
        basis = random.standard_normal((features.shape[1], rank + 10)).astype(np.float32)
        bags, transposed = Bags.of(features), Bags.of(features.T.tocsr())
        for _ in range(self.n_iterations):
            basis = _orthonormal(bags.times(basis, run.n_threads))
            basis = _orthonormal(transposed.times(basis, run.n_threads))
        small = bags.times(basis, run.n_threads)
        values, turn = np.linalg.eigh(small.T.astype(np.float64) @ small)
        best = np.argsort(-values, kind="stable")[:rank]
        is_real = values[best] > LEAST_SHARE * values[best[0]]
        scale = np.zeros(rank)
        scale[is_real] = values[best[is_real]] ** ((self.power - 1) / 2)
        return UnitBagEncoder((basis @ (turn[:, best] * scale)).astype(np.float32))


def _orthonormal(columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return orthonormal columns that span the same."""
    span: NDArray[np.float32] = np.linalg.qr(columns)[0]
    return span
