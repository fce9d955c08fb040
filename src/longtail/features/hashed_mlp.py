"""MACH's feature architecture: a perceptron over hashed tokens."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from longtail.data.csr import with_int32_indices
from longtail.data.point_input import PointInput
from longtail.errors import InputError
from longtail.features.bag_of_tokens import BagOfTokens, BagOfTokensNetwork
from longtail.features.dense_layer import DenseLayer
from longtail.features.hashed_mlp_encoder import HashedMLPEncoder
from longtail.named_parts import joined_parts
from longtail.training.dropout import dropped
from longtail.training.module_adam import ModuleAdam
from longtail.training.optimisers import RowwiseAdagrad

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.optimisers import RowOptimiser
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["HashedMLP", "HashedMLPNetwork"]


@dataclass(frozen=True, kw_only=True)
class HashedMLP:
    """Features ``ReLU(W_n ... ReLU(sum_t x_t e_h(t) + b_1) ... + b_n)`` over hashed tokens.

    Medini et al., "Extreme classification in log memory using count-min sketch" (MACH), NeurIPS
    2019, and the authors' code: tokens are hashed to buckets, which share a vector.

    Parameters
    ----------
    hidden_layers : tuple of int
        Widths of the hidden layers; the last is the dimension of the features.
    n_token_buckets : int
        Buckets that tokens are hashed to.
    dropout : float
        Applied after the last ReLU in training.
    learning_rate : float
        Of Adam, for all but the vectors of buckets; falls with the schedule of the stage.
    make_optimiser : callable
        From the table of bucket vectors to its `RowOptimiser`.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.features.hashed_mlp import HashedMLP
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = DeepXML(features=HashedMLP(hidden_layers=(64, 32))).fit(texts, labels)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    hidden_layers: tuple[int, ...] = (512,)
    n_token_buckets: int = 100_000
    dropout: float = 0.5
    learning_rate: float = 1e-3
    make_optimiser: Callable[[Tensor], RowOptimiser] = RowwiseAdagrad

    def __post_init__(self) -> None:
        if not self.hidden_layers or min(*self.hidden_layers, self.n_token_buckets) < 1:
            raise InputError(
                "HashedMLP needs at least one layer, each of at least one unit, and a bucket, got "
                f"hidden_layers={self.hidden_layers} and n_token_buckets={self.n_token_buckets}. "
                "Pass, for example, hidden_layers=(512,)."
            )

    @property
    def reads(self) -> PointInput:
        """Bags."""
        return PointInput()

    def network(
        self,
        data: TrainingData,
        targets: csr_array,  # noqa: ARG002 - it starts from random numbers
        run: TrainingRun,
        start: HashedMLPEncoder | None = None,
    ) -> HashedMLPNetwork:
        """Return a perceptron ready to be trained; see `FeatureArchitecture.network`."""
        if start is None:
            start = self._random(data.features.shape[1], run.seed_for("hashed tokens"))
        return HashedMLPNetwork(self, data, start, run)

    def frozen(self, network: HashedMLPNetwork) -> HashedMLPEncoder:
        """Return the encoder as a trained model keeps it."""
        return network.frozen()

    def _random(self, n_tokens: int, seed: int) -> HashedMLPEncoder:
        """Return buckets drawn at random, and layers of He's scale."""
        random = np.random.default_rng(seed)
        drawn = random.integers(0, self.n_token_buckets, n_tokens)
        used, buckets = np.unique(drawn, return_inverse=True)  # of few tokens, most are empty

        def normal(n_rows: int, n_columns: int, scale: float) -> NDArray[np.float32]:
            return random.standard_normal((n_rows, n_columns), np.float32) * np.float32(scale)

        # Bags have unit length, so a row's scale is that of the sum.
        table = normal(len(used), self.hidden_layers[0], self.hidden_layers[0] ** -0.5)
        layers = tuple(
            DenseLayer(normal(after, before, (2 / before) ** 0.5), np.zeros(after, np.float32))
            for before, after in pairwise(self.hidden_layers)
        )
        bias = np.zeros(self.hidden_layers[0], np.float32)
        return HashedMLPEncoder(buckets.astype(np.int32), table, bias, layers)


class HashedMLPNetwork:
    """The perceptron while it is trained: its first layer is a table, of which batches use rows.

    Examples
    --------
    In a single bucket, all tokens are alike; the last point has none.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.hashed_mlp import HashedMLP
    >>> from longtail.training.run import TrainingData, TrainingRun
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> rows = csr_array(np.array([[1, 0], [0, 1], [0, 0]], np.float32))
    >>> settings = HashedMLP(hidden_layers=(8,), n_token_buckets=1, dropout=0.0)
    >>> network = settings.network(TrainingData(rows, rows), rows, run)
    >>> one, other, empty = network.forward(np.arange(3))
    >>> bool((one == other).all()), bool(empty.any())
    (True, False)
    """

    def __init__(
        self, settings: HashedMLP, data: TrainingData, start: HashedMLPEncoder, run: TrainingRun
    ) -> None:
        self.dimension = settings.hidden_layers[-1]
        self._settings = settings
        self._bucket_of_token = start.bucket_of_token
        table = BagOfTokens(
            dimension=settings.hidden_layers[0], dropout=0.0, make_optimiser=settings.make_optimiser
        )
        hashed = _hashed(data.features, start)
        # The table of buckets is a bag of tokens without its ReLU.
        vectors = np.array(start.bucket_vectors, np.float32)
        self._table = BagOfTokensNetwork(table, hashed, vectors, run, rectify=False)
        self._is_empty = torch.from_numpy(np.diff(data.features.indptr) == 0)
        self._module = _layers(start).to(run.torch_device)
        self._adam = ModuleAdam(self._module)

    def forward(self, points: NDArray[np.int64]) -> Tensor:
        """See `FeatureNetwork.forward`."""
        features: Tensor = self._module(self._table.forward(points))
        features = features.masked_fill(
            self._is_empty[torch.from_numpy(points)].to(features.device)[:, None], 0.0
        )
        return dropped(features, self._settings.dropout)

    def step(self, learning_rate: float, share: float = 1.0) -> None:
        """See `FeatureNetwork.step`."""
        self._table.step(learning_rate, share)
        self._adam.step(self._settings.learning_rate * share)

    def state(self) -> dict[str, Tensor]:
        """See `FeatureNetwork.state`."""
        parts = {
            "table": self._table.state(),
            "layers": dict(self._module.state_dict()),
            "adam": self._adam.state(),
        }
        return joined_parts(parts, ".")

    def frozen(self) -> HashedMLPEncoder:
        """Return the perceptron as a trained model keeps it."""
        bias, *weights = (p.detach().cpu().numpy().copy() for p in self._module.parameters())
        layers = tuple(
            DenseLayer(matrix, bias)
            for matrix, bias in zip(weights[::2], weights[1::2], strict=True)
        )
        table = self._table.table.cpu().numpy()
        return HashedMLPEncoder(self._bucket_of_token, table, bias, layers)


class _Bias(nn.Module):
    """Adds a vector."""

    def __init__(self, bias: NDArray[np.float32]) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.tensor(bias))

    def forward(self, rows: Tensor) -> Tensor:
        """Return rows + b."""
        return rows + self.bias


def _layers(start: HashedMLPEncoder) -> nn.Sequential:
    """Return all that follows the table."""
    modules: list[nn.Module] = [_Bias(start.bias), nn.ReLU()]
    for layer in start.layers:
        linear = nn.Linear(layer.matrix.shape[1], layer.matrix.shape[0])
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(layer.matrix))
            linear.bias.copy_(torch.tensor(layer.bias))
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules)


def _hashed(features: csr_array, start: HashedMLPEncoder) -> csr_array:
    """Return the bags with buckets in the place of tokens."""
    arrays = (features.data, start.bucket_of_token[features.indices], features.indptr)
    shape = (features.shape[0], len(start.bucket_vectors))
    hashed = with_int32_indices(type(features)(arrays, shape=shape, copy=True))
    hashed.sum_duplicates()
    return hashed
