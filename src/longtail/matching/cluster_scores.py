"""What X-Transformer matches clusters by, once its encoder is trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from scipy.sparse import csr_array

from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.matching.learnt_matcher import LearntMatcher
from longtail.scorers.joined_features import HALF_LENGTH, JoinedFeatures

if TYPE_CHECKING:
    from longtail.matching.learnt_matcher import EncodedPoints
    from longtail.scorers.sparse_label_vectors import SparseLabelVectors
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["ClusterMatcher", "LinearMatcher", "NeuralMatcher"]


class ClusterMatcher(Protocol):
    """What scores the clusters of a point."""

    def match(
        self, encoded: EncodedPoints, data: TrainingData, targets: csr_array, run: TrainingRun
    ) -> LearntMatcher:
        """Return the scores, for `targets` (n_points, n_clusters) of the training points."""
        ...

    def n_solved(self, n_tokens: float, dimension: int, *, is_trained: bool) -> float:
        """Return how many entries of a point linear machines are solved on; 0 without any.

        For estimates of the time that it takes. `is_trained` says whether there are vectors of
        clusters from the training of the encoder.
        """
        ...


@dataclass(frozen=True)
class NeuralMatcher:
    """The paper's: ``w_k . E(x) + b_k``, with the vectors that were trained with the encoder.

    Chang et al., "Taming pretrained transformers for extreme multi-label text classification", KDD
    2020, section 3.2. An encoder that is taken as it is has no such vectors: then a linear machine
    a cluster is solved on E(x) alone, with the same squared hinge.

    Parameters
    ----------
    machines : SparseOneVsRest
        For an encoder that is taken as it is.

    Examples
    --------
    >>> from longtail.recipes.xtransformer import XTransformer
    >>> from longtail.matching.cluster_scores import NeuralMatcher
    >>> model = XTransformer(matcher=NeuralMatcher())  # or "neural"
    """

    machines: SparseOneVsRest = field(default_factory=lambda: SparseOneVsRest(prune=0.0))

    def match(
        self,
        encoded: EncodedPoints,
        data: TrainingData,  # noqa: ARG002 - words count in E(x) alone
        targets: csr_array,
        run: TrainingRun,
    ) -> LearntMatcher:
        """See `ClusterMatcher.match`."""
        encoder, points, vectors, bias = encoded
        if vectors is None or bias is None:
            machines = _solved(self.machines, csr_array(points), targets, run)
            vectors = machines.matrix(encoder.dimension).toarray()
            bias = machines.bias
        return LearntMatcher(encoder, vectors, bias, points)

    def n_solved(
        self,
        n_tokens: float,  # noqa: ARG002 - these are dense
        dimension: int,
        *,
        is_trained: bool,
    ) -> float:
        """See `ClusterMatcher.n_solved`."""
        return 0 if is_trained else dimension


@dataclass(frozen=True)
class LinearMatcher:
    """XR-Transformer's: a linear machine a cluster on TF-IDF joined with E(x).

    Zhang et al., "Fast multi-resolution transformer fine-tuning for extreme multi-label text
    classification", NeurIPS 2021, section 3. Vectors that were trained with the encoder are
    dropped; the machines have the same squared hinge.

    Examples
    --------
    >>> from longtail.recipes.xtransformer import XTransformer
    >>> from longtail.matching.cluster_scores import LinearMatcher
    >>> model = XTransformer(matcher=LinearMatcher())  # or "linear"
    """

    machines: SparseOneVsRest = field(default_factory=lambda: SparseOneVsRest(prune=0.02))

    def match(
        self, encoded: EncodedPoints, data: TrainingData, targets: csr_array, run: TrainingRun
    ) -> LearntMatcher:
        """See `ClusterMatcher.match`."""
        encoder, points = encoded.encoder, encoded.points
        join = JoinedFeatures(encoder, data.features.shape[1])
        joined = join.joined(data.bags(), points).matrix(join.n_features)
        machines = _solved(self.machines, joined, targets, run)
        weights = machines.matrix(join.n_features) * HALF_LENGTH
        tokens, vectors = weights[:, : join.n_tokens], weights[:, join.n_tokens :].toarray()
        return LearntMatcher(encoder, vectors, machines.bias, points, tokens)

    def n_solved(
        self,
        n_tokens: float,
        dimension: int,
        *,
        is_trained: bool,  # noqa: ARG002 - what was trained is dropped
    ) -> float:
        """See `ClusterMatcher.n_solved`."""
        return n_tokens + dimension


def _solved(
    machines: SparseOneVsRest, features: csr_array, targets: csr_array, run: TrainingRun
) -> SparseLabelVectors:
    """Return a machine a cluster, of which every point is a positive or a negative."""
    seed = run.seed_for("matcher")
    return machines.learn_among_all(features, targets, seed=seed, n_threads=run.n_threads)
