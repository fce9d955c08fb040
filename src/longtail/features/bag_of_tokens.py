"""Astec's feature architecture: a weighted bag of learnt token vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from longtail.data.bags import Bags
from longtail.data.point_input import PointInput
from longtail.errors import InputError
from longtail.features.bag_encoder import BagEncoder
from longtail.features.sketches import sketched_vectors
from longtail.training.dropout import dropped
from longtail.training.optimisers import RowOptimiser, RowwiseAdagrad
from longtail.training.processes import processes
from longtail.training.state import state_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["BagOfTokens", "BagOfTokensNetwork"]


@dataclass(frozen=True, kw_only=True)
class BagOfTokens:
    """Features ``v = ReLU(sum_t x_t e_t)`` (DeepXML paper, section 4, Module I).

    Few parameters a token and no order of words: what short texts with rare tokens can teach.

    Parameters
    ----------
    dimension : int
        D, the length of a token vector.
    dropout : float
        Applied after the ReLU in training.
    token_vectors : float32 array (n_features, dimension) or None
        E to start from, such as fastText vectors of the vocabulary as in the paper. None starts
        from the training data: each token from the mean of random vectors of the targets that it
        occurs with, which is what a first pass would learn.
    make_optimiser : callable
        From the table E to its `RowOptimiser`.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.features.bag_of_tokens import BagOfTokens
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = DeepXML(features=BagOfTokens(dimension=32)).fit(texts, labels)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    dimension: int = 256
    dropout: float = 0.5
    token_vectors: NDArray[np.float32] | None = None
    make_optimiser: Callable[[Tensor], RowOptimiser] = RowwiseAdagrad

    @property
    def reads(self) -> PointInput:
        """Bags."""
        return PointInput()

    def network(
        self,
        data: TrainingData,
        targets: csr_array,
        run: TrainingRun,
        start: BagEncoder | None = None,
    ) -> BagOfTokensNetwork:
        """Return token vectors ready to be trained; see `FeatureArchitecture.network`.

        Raises
        ------
        InputError
            If `token_vectors`, or those of `start`, are not (n_features, dimension).
        """
        features = data.features
        vectors = self.token_vectors if start is None else start.token_vectors
        if vectors is None:
            seed = run.seed_for("token vectors")
            vectors = sketched_vectors(features, targets, self.dimension, seed)
        if vectors.shape != (features.shape[1], self.dimension):
            raise InputError(
                f"`token_vectors` has the shape {vectors.shape}, but there are "
                f"{features.shape[1]} features and the dimension is {self.dimension}."
            )
        return BagOfTokensNetwork(self, features, np.array(vectors, np.float32), run)

    def frozen(self, network: BagOfTokensNetwork) -> BagEncoder:
        """Return the encoder as a trained model keeps it."""
        return BagEncoder(network.table.cpu().numpy())


class BagOfTokensNetwork:
    """The table E while it is trained, on bags of the training points.

    Forward, a batch is a sparse matrix times E; backward, the transpose of that matrix times the
    gradient gives the gradient of just the rows of E that the batch touches. On a CPU both are one
    compiled loop; on a GPU, torch's embedding bag, there and back.

    Parameters
    ----------
    settings : BagOfTokens
    features : csr_array of float32 (n_points, n_features)
    vectors : float32 array (n_features, dimension)
    run : TrainingRun
    rectify : bool
        Apply the ReLU.

    Examples
    --------
    A step changes the vectors of the tokens that the batch has, and no others.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.bag_of_tokens import BagOfTokens, BagOfTokensNetwork
    >>> from longtail.training.run import TrainingRun
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> bags, vectors = csr_array(np.eye(3, dtype=np.float32)), np.ones((3, 2), np.float32)
    >>> network = BagOfTokensNetwork(BagOfTokens(dropout=0.0), bags, vectors, run)
    >>> network.forward(np.array([1])).sum().backward()
    >>> network.step(0.5)
    >>> network.table.numpy().round(3).tolist()
    [[1.0, 1.0], [0.5, 0.5], [1.0, 1.0]]
    """

    def __init__(
        self,
        settings: BagOfTokens,
        features: csr_array,
        vectors: NDArray[np.float32],
        run: TrainingRun,
        *,
        rectify: bool = True,
    ) -> None:
        self._rectify = rectify
        self.table = torch.from_numpy(vectors).to(run.torch_device)
        self.dimension = vectors.shape[1]
        self._features = features
        self._dropout = settings.dropout
        self._optimiser = settings.make_optimiser(self.table)
        self._n_threads = run.n_threads
        self._bags: csr_array = features[:0]
        self._sums = torch.zeros(0)

    def forward(self, points: NDArray[np.int64]) -> Tensor:
        """See `FeatureNetwork.forward`."""
        self._bags = self._features[points]
        self._sums = self._summed(self._bags, self.table).requires_grad_()
        return dropped(self._activated(self._sums), self._dropout)

    def served(self, points: NDArray[np.int64]) -> Tensor:
        """Return the features as a trained model gives them: without dropout, for no step."""
        return self._activated(self._summed(self._features[points], self.table))

    def step(self, learning_rate: float, share: float = 1.0) -> None:  # noqa: ARG002 - no Adam here
        """See `FeatureNetwork.step`."""
        slope = self._sums.grad
        if slope is None or not self._bags.nnz:
            if processes().count == 1:
                return
            slope = torch.zeros_like(self._sums)  # others may have some, to be added up
        by_token = self._bags.T.tocsr()
        touched = np.flatnonzero(np.diff(by_token.indptr))
        some = by_token[touched]
        rows = torch.from_numpy(touched).to(self.table.device)
        self._optimiser.step(self.table, rows, self._summed(some, slope), learning_rate)

    def state(self) -> dict[str, Tensor]:
        """See `FeatureNetwork.state`."""
        return {"table": self.table, **state_of(self._optimiser)}

    def _activated(self, sums: Tensor) -> Tensor:
        """Return the features before dropout."""
        return torch.relu(sums) if self._rectify else sums

    def _summed(self, bags: csr_array, rows: Tensor) -> Tensor:
        """Return the sums of rows that bags name, on the rows' device."""
        if rows.device.type == "cpu":
            return torch.from_numpy(Bags.of(bags).times(rows.numpy(), self._n_threads))
        return functional.embedding_bag(
            torch.from_numpy(bags.indices.astype(np.int64)).to(rows.device),
            rows,
            torch.from_numpy(bags.indptr.astype(np.int64)).to(rows.device),
            mode="sum",
            per_sample_weights=torch.from_numpy(bags.data).to(rows.device),
            include_last_offset=True,
        )
