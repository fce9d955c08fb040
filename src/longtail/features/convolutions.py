"""Convolutions over the words of a text: Kim's network, and XML-CNN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.data.point_input import InputKind, PointInput
from longtail.errors import InputError
from longtail.features.convolution_encoder import ConvolutionEncoder
from longtail.features.dense_layer import DenseLayer
from longtail.features.sketches import sketched_vectors
from longtail.features.word_table import WordTable
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

__all__ = ["XMLCNN", "ConvolutionNetwork", "KimCNN"]


@dataclass(frozen=True, kw_only=True)
class KimCNN:
    """Filters along the words of a text, and the largest value of each.

    Kim, "Convolutional neural networks for sentence classification", EMNLP 2014:
    ``v_f = max_i ReLU(w_f . [e_i; ...; e_{i+h-1}] + b_f)`` for each filter f, of width h.

    Parameters
    ----------
    dimension : int
        Length of a word's vector; 300 in the paper, pre-trained.
    widths : tuple of int
        Words that a filter sees.
    n_filters : int
        Of each width.
    n_words : int
        Words that are read of a text; the rest is cut off.
    dropout : float
        Of the features, in training.
    word_vectors : float32 array (n_features, dimension) or None
        To start from. None starts each word from the mean of random vectors of the targets that
        it occurs with, as `BagOfTokens` does.
    learning_rate : float
        Of Adam, for the filters; falls with the schedule of the stage.
    make_optimiser : callable
        From the table of word vectors to its `RowOptimiser`.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.features.convolutions import KimCNN
    >>> DeepXML(features=KimCNN(n_words=32)).reads().kind.value
    'words'
    """

    dimension: int = 128
    widths: tuple[int, ...] = (3, 4, 5)
    n_filters: int = 100
    n_words: int = 256
    dropout: float = 0.5
    word_vectors: NDArray[np.float32] | None = None
    learning_rate: float = 1e-3
    make_optimiser: Callable[[Tensor], RowOptimiser] = RowwiseAdagrad

    @property
    def reads(self) -> PointInput:
        """Words in order."""
        return PointInput(InputKind.WORDS, n_words=self.n_words)

    def network(
        self,
        data: TrainingData,
        targets: csr_array,
        run: TrainingRun,
        start: ConvolutionEncoder | None = None,
    ) -> ConvolutionNetwork:
        """Return filters ready to be trained; see `FeatureArchitecture.network`."""
        vectors = self._own_vectors(data.features.shape[1]) if start is None else start.word_vectors
        if vectors is None:
            seed = run.seed_for("word vectors")
            vectors = sketched_vectors(data.features, targets, self.dimension, seed)
        torch.manual_seed(run.seed_for("filters"))
        module = self._module()
        if start is not None:
            module.start_from(start)
        return ConvolutionNetwork(
            module,
            WordTable(vectors, self.make_optimiser, run.torch_device),
            data,
            dropout=self.dropout,
            learning_rate=self.learning_rate,
        )

    def frozen(self, network: ConvolutionNetwork) -> ConvolutionEncoder:
        """Return the encoder as a trained model keeps it."""
        return network.frozen()

    def _own_vectors(self, n_features: int) -> NDArray[np.float32] | None:
        """Return `word_vectors`, if there are any, or raise InputError."""
        if self.word_vectors is None:
            return None
        vectors, expected = np.asarray(self.word_vectors), (n_features, self.dimension)
        if vectors.shape != expected:
            raise InputError(
                f"`word_vectors` has the shape {vectors.shape}, but must have {expected}: a row of "
                f"`dimension` numbers for each of the {n_features:,} tokens, in the order of "
                "the vectoriser."
            )
        if vectors.dtype.kind not in "biuf" or not np.isfinite(vectors).all():
            raise InputError("`word_vectors` must hold finite numbers. Replace the others.")
        return np.ascontiguousarray(vectors, np.float32)

    def _module(self) -> _Convolutions:
        """Return fresh filters."""
        return _Convolutions(
            self.dimension, self.widths, self.n_filters, n_chunks=1, n_words=0, n_outputs=0
        )


@dataclass(frozen=True, kw_only=True)
class XMLCNN(KimCNN):
    """XML-CNN's features: finer maxima, and a bottleneck on top.

    Liu et al., "Deep learning for extreme multi-label text classification", SIGIR 2017.

    Each map is cut into chunks, and the largest value of each is kept ("dynamic max pooling"); all
    maxima are brought down by ``v = ReLU(W h + b)``.

    Parameters
    ----------
    n_chunks : int
        p, the maxima that are kept of each map.
    bottleneck : int
        Width of the bottleneck, that is, of the features.
    along_embedding : bool
        Slide filters along the embedding, where each sees some neighbouring numbers of the vectors
        of all words, as in the authors' talk and code; `n_words` then sets the size of a filter, 32
        for titles. Otherwise along the words, as the formula of their paper has it, which took a
        quarter of the time on titles.
    **kwargs
        Those of `KimCNN`. Adam's rate is lower: a layer on so many maxima takes large steps.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.features.convolutions import XMLCNN
    >>> DeepXML(features=XMLCNN(n_words=32)).reads().n_words
    32
    """

    widths: tuple[int, ...] = (2, 4, 8)
    n_filters: int = 128
    n_chunks: int = 2
    bottleneck: int = 512
    learning_rate: float = 3e-4
    along_embedding: bool = False

    def _module(self) -> _Convolutions:
        """Return fresh filters."""
        return _Convolutions(
            self.dimension,
            self.widths,
            self.n_filters,
            n_chunks=self.n_chunks,
            n_words=self.n_words if self.along_embedding else 0,
            n_outputs=self.bottleneck,
        )


class _Convolutions(nn.Module):
    """Filters of several widths, chunks of maxima, and perhaps a bottleneck.

    `n_words` is 0 for filters along the words, `n_outputs` is 0 for no bottleneck.
    """

    def __init__(
        self,
        word_dimension: int,
        widths: tuple[int, ...],
        n_filters: int,
        *,
        n_chunks: int,
        n_words: int,
        n_outputs: int,
    ) -> None:
        super().__init__()
        if n_words and max(widths) > word_dimension:
            raise InputError(
                f"A filter of width {max(widths)} does not fit along word vectors of "
                f"{word_dimension} numbers. Lower `widths`, or raise `dimension`."
            )
        self.n_words, self.n_chunks = n_words, n_chunks
        n_channels = n_words or word_dimension
        self.maps = nn.ModuleList(nn.Conv1d(n_channels, n_filters, width) for width in widths)
        n_maxima = len(widths) * n_filters * n_chunks
        self.bottleneck = nn.Linear(n_maxima, n_outputs) if n_outputs else None
        self.dimension = n_outputs or n_maxima

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Return (n, dimension) for word vectors (n, length, word_dimension)."""
        pooled = torch.cat([self._pooled(layer, vectors, lengths) for layer in self.maps], dim=1)
        return pooled if self.bottleneck is None else torch.relu(self.bottleneck(pooled))

    def _pooled(self, layer: nn.Module, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Return the maxima of the maps of one width."""
        width: int = layer.kernel_size[0]  # type: ignore[index, assignment]  # of a Conv1d
        if self.n_words:
            images = functional.pad(vectors, (0, 0, 0, self.n_words - vectors.shape[1]))
            n_places = torch.full_like(lengths, vectors.shape[2] - width + 1)
        else:
            left = (width - 1) // 2
            images = functional.pad(vectors.transpose(1, 2), (left, width - 1 - left))
            n_places = lengths
        return _largest_of_chunks(torch.relu(layer(images)), n_places, self.n_chunks)

    def start_from(self, start: ConvolutionEncoder) -> None:
        """Copy trained filters."""
        layers = list(zip(self.maps, start.filters, strict=True))
        if self.bottleneck is not None and start.bottleneck is not None:
            layers.append((self.bottleneck, start.bottleneck))
        with torch.no_grad():
            for layer, trained in layers:
                weight, bias = layer.parameters()
                matrix = torch.tensor(trained.matrix)
                if weight.dim() == 3:  # (n_filters, width, channels), as serving reads them
                    matrix = matrix.view(len(weight), weight.shape[2], -1).transpose(1, 2)
                weight.copy_(matrix)
                bias.copy_(torch.tensor(trained.bias))


class ConvolutionNetwork:
    """Word vectors and filters while they are trained, on the words of the training points.

    Parameters
    ----------
    module : Module
        From word vectors and numbers of words to features.
    table : WordTable
    data : TrainingData
    dropout, learning_rate : float

    Examples
    --------
    What is served is what was trained. The second text has no words.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.features.convolutions import KimCNN
    >>> from longtail.training.run import TrainingData, TrainingRun
    >>> rows, words = csr_array(np.eye(2, dtype=np.float32)), np.array([[0, 1], [-1, -1]], np.int32)
    >>> data = TrainingData(rows, rows, words=words)
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> network = KimCNN(dimension=8, dropout=0.0).network(data, data.labels, run)
    >>> features = network.forward(np.array([0, 1])).detach().numpy()
    >>> np.allclose(features, network.frozen().encode(data.bags()), atol=1e-5)
    True
    >>> features.any(axis=1).tolist()
    [True, False]
    """

    def __init__(
        self,
        module: _Convolutions,
        table: WordTable,
        data: TrainingData,
        *,
        dropout: float,
        learning_rate: float,
    ) -> None:
        if data.words is None:
            raise InputError(
                "Convolutions read the words of a text in order, but these points are bags. Pass "
                "texts."
            )
        self.dimension = module.dimension
        self._module = module.to(table.table.device)
        self._table = table
        self._words = torch.from_numpy(data.words)
        self._dropout = dropout
        self._learning_rate = learning_rate
        self._adam = ModuleAdam(self._module)

    def forward(self, points: NDArray[np.int64]) -> Tensor:
        """See `FeatureNetwork.forward`."""
        words = self._words[torch.from_numpy(points)].long()
        lengths = (words >= 0).sum(dim=1)
        words = words[:, : max(int(lengths.max()), 1)].to(self._table.table.device)
        lengths = lengths.to(words.device)
        features = self._module(self._table.read(words), lengths)
        features = features.masked_fill((lengths == 0)[:, None], 0.0)
        return dropped(features, self._dropout)

    def step(self, learning_rate: float, share: float = 1.0) -> None:
        """See `FeatureNetwork.step`."""
        self._table.step(learning_rate)
        self._adam.step(self._learning_rate * share)

    def state(self) -> dict[str, Tensor]:
        """See `FeatureNetwork.state`."""
        parts = {
            "words": self._table.state(),
            "filters": dict(self._module.state_dict()),
            "adam": self._adam.state(),
        }
        return joined_parts(parts, ".")

    def frozen(self) -> ConvolutionEncoder:
        """Return vectors and filters as a trained model keeps them."""
        module = self._module
        return ConvolutionEncoder(
            self._table.table.cpu().numpy(),
            tuple(_frozen(layer) for layer in module.maps),
            module.n_chunks,
            module.n_words,
            None if module.bottleneck is None else _frozen(module.bottleneck),
        )


def _largest_of_chunks(maps: Tensor, n_places: Tensor, n_chunks: int) -> Tensor:
    """Return the maxima of chunks, (n, n_filters * n_chunks), of maps (n, n_filters, length).

    Row i has its first ``n_places[i]`` places cut into chunks, which overlap where there are fewer
    places than chunks. No value is below 0.
    """
    places = torch.arange(maps.shape[2], device=maps.device)
    maxima = []
    for chunk in range(n_chunks):
        first = chunk * n_places // n_chunks
        after = -(-(chunk + 1) * n_places // n_chunks)
        outside = (places < first[:, None]) | (places >= after[:, None])
        maxima.append(maps.masked_fill(outside[:, None], 0.0).amax(dim=2))
    return torch.stack(maxima, dim=2).flatten(1)


def _frozen(layer: nn.Module) -> DenseLayer:
    """Return a layer, a filter as the stretch of numbers that it is multiplied with."""
    weight, bias = (p.detach().cpu() for p in layer.parameters())
    if weight.dim() == 3:  # (n_filters, channels, width): serving reads place after place
        weight = weight.transpose(1, 2).flatten(1)
    return DenseLayer(weight.contiguous().numpy().copy(), bias.numpy().copy())
