"""Module I without labels: the words of a text from its other words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import vstack

from longtail.data.point_input import InputKind
from longtail.data.rows import binary, unit_rows
from longtail.errors import InputError
from longtail.surrogates.meta_label_task import classification_task
from longtail.training.batches import SharedPool
from longtail.training.loop import train
from longtail.training.schedule import Schedule
from longtail.transfer.bounded_residual import BoundedResidual

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.features.architecture import FeatureArchitecture
    from longtail.features.encoder import Encoder
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["SelfSupervised"]


@dataclass(frozen=True, kw_only=True)
class SelfSupervised:
    """Surrogate task: each half of a text's tokens from the other half, drawn at random.

    What word2vec's and fastText's continuous bags of words (CBOW: Mikolov et al., "Efficient
    estimation of word representations in vector space", 2013) do, with the whole of a short text as
    the window. Negatives are the tokens of the other texts of the batch, which have the frequencies
    of the corpus, and some random ones. The labels are not looked at: "Unsupervised" in Table 6(b)
    of the DeepXML paper.

    For bags of words: a character n-gram would give away the word that it is a piece of.

    Parameters
    ----------
    schedule : Schedule
    batch_size : int
    n_random : int
        Random tokens in the pool of a batch.
    residual : BoundedResidual
        R0.

    Examples
    --------
    >>> from longtail import DeepXML
    >>> from longtail.surrogates.self_supervised import SelfSupervised
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = DeepXML(surrogate=SelfSupervised()).fit(texts, labels)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    schedule: Schedule = field(default_factory=lambda: Schedule(epochs=10, learning_rate=0.05))
    batch_size: int = 512
    n_random: int = 500
    residual: BoundedResidual = field(default_factory=BoundedResidual)

    def learn(
        self, architecture: FeatureArchitecture, data: TrainingData, run: TrainingRun
    ) -> tuple[Encoder, NDArray[np.int32]]:
        """Train the architecture; see `Surrogate.learn`. There are no meta-labels.

        Raises
        ------
        InputError
            If the architecture does not read bags, which are what can be halved.
        """
        kind = architecture.reads.kind
        if kind is not InputKind.BAGS:
            raise InputError(
                f"The self-supervised task halves bags, but {type(architecture).__name__} reads "
                f"{kind.value}. Take BagOfTokens or HashedMLP, or another surrogate."
            )
        with run.stage("module I"):
            halves, others = _halved(data.features, run.seed_for("halves"))
            network = architecture.network(data._replace(features=halves), others, run)
            batches = SharedPool.in_batch(
                others, batch_size=self.batch_size, n_random=self.n_random
            )
            task = classification_task(network, others, run, residual=self.residual)
            train(task, batches, self.schedule, run, "module I")
        return architecture.frozen(network), np.full(data.labels.shape[1], -1, np.int32)


def _halved(features: csr_array, seed: int) -> tuple[csr_array, csr_array]:
    """Return both halves of each bag, as unit rows, and the tokens of the half that is missing."""
    is_first = np.random.default_rng(seed).random(features.nnz) < 0.5
    halves = []
    for is_kept in (is_first, ~is_first):
        half = features.copy()
        half.data *= is_kept
        half.eliminate_zeros()
        halves.append(half)
    first, second = halves
    inputs = unit_rows(vstack([first, second]).tocsr())
    return inputs, binary(vstack([second, first]).tocsr()).astype(np.float32)
