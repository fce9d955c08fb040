"""X-Transformer: index labels, match clusters, rank labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.data.bags import Bags
from longtail.data.csr import check_indices
from longtail.data.point_input import InputKind, PointInput
from longtail.errors import InputError, named
from longtail.matching.bag_training import BagTraining
from longtail.matching.cluster_scores import ClusterMatcher, LinearMatcher, NeuralMatcher
from longtail.matching.learnt_matcher import LearntMatcher
from longtail.matching.transformer_training import ReadOnce, TransformerTraining
from longtail.recipes.learners import averaged
from longtail.recipes.own_parts import check_encoder, check_part
from longtail.recipes.part_words import INDEXERS, MATCHERS, part_of
from longtail.recipes.text_encoders import BAG, OfTextEncoder, kind_of
from longtail.scorers.joined_features import HALF_LENGTH, JoinedFeatures, JoinedTreeScorer
from longtail.scorers.label_tree import LabelTreeScorer
from longtail.scorers.sparse_label_vectors import SparseLabelVectors
from longtail.surrogates.label_clusters import label_centroids, meta_labels
from longtail.surrogates.label_indexing import LabelIndexer, PointFeatures
from longtail.surrogates.label_tree import LabelTree, balanced_tree
from longtail.training.early_stopping import HeldOut
from longtail.training.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from longtail.data.rows import Rows
    from longtail.features.encoder import UnitEncoder
    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["XTransformer"]


@dataclass(kw_only=True, eq=False, repr=False)
class XTransformer(OfTextEncoder):
    """X-Transformer's three stages around any encoder.

    Chang et al., "Taming pretrained transformers for extreme multi-label text classification", KDD
    2020.

    Labels are put into clusters of like ones (semantic label indexing), an encoder learns with the
    squared hinge loss which clusters a point's labels are in (neural matcher g), and linear
    classifiers over TF-IDF joined with the encoder's vector order the labels of the best clusters
    (ranker h). The paper's ``f(x, l) = sigma(g(x, c_l), h(x, l))``, for a label l whose cluster c_l
    is among the b best, is ``exp(-max(0, 1 - g)^2) exp(-max(0, 1 - h)^2)`` here. Scores of several
    indexers, and of several encoders, are averaged.

    Parameters
    ----------
    indexers : tuple of LabelIndexer or str
        One member of the ensemble each; the paper's three are `PointFeatures`, `PointEmbeddings`
        and `LabelTexts`, or as words "features", "embeddings" and "texts".
    matcher : ClusterMatcher, str or None
        What scores clusters once the encoder is trained: `NeuralMatcher`, or as a word "neural",
        the paper's, by the vectors that were trained with the encoder (one that is not trained has
        them solved on its vectors), or `LinearMatcher`, "linear", by machines on TF-IDF joined with
        the encoder's vector. None is "neural" for a bag and "linear" for a transformer.
    leaf_size : int
        Most labels of a cluster.
    further_encoders : tuple of str
        More of the same as `encoder`, each with all the indexers: the paper's ensemble is of three.
    batch_size : int
        Points of a step of an encoder's training.
    epochs : int
        Over the training points, of an encoder's training; a transformer that is not trained on has
        none.
    learning_rate : float
        Of that training, at the first step after the warm-up.
    patience : int or None
        Stop that training after so many epochs without a gain in the share of held-out points'
        clusters that are among the best b, or the best half if these are fewer, and go back to the
        best epoch. None trains for all `epochs`, after which the rate has fallen to almost nothing.
    beam_size : int
        b, the best clusters of a point, whose labels are ranked.
    teacher_forcing, matcher_aware : bool
        Negatives of a label's ranker: points that have another label of its cluster (the paper's
        TFN), and points for which the matcher has the cluster among its best b (MAN).
    cost : float
        C of the ranker's support vector machines: larger fits the training points more closely.
    prune : float
        Weights of the ranker that are smaller than this are dropped.
    **kwargs
        Those of `OfTextEncoder`.

    Examples
    --------
    >>> from longtail.recipes.xtransformer import XTransformer
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = XTransformer(leaf_size=1, dimension=16)
    >>> model = model.fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    indexers: tuple[LabelIndexer | str, ...] = ("features",)
    matcher: ClusterMatcher | str | None = None
    leaf_size: int = 100
    further_encoders: tuple[str, ...] = ()
    batch_size: int = 512
    epochs: int = 10
    learning_rate: float = 0.02
    beam_size: int = 10
    teacher_forcing: bool = True
    matcher_aware: bool = True
    cost: float = 1.0
    prune: float = 0.1

    def reads(self) -> PointInput:
        """Bags, and texts for a transformer; see `LabelEstimator`."""
        all_bags = all(member.is_bag for member in self.of_each_encoder())
        return PointInput() if all_bags else PointInput(InputKind.TEXTS)

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        for name in ("indexers", "further_encoders"):
            if not isinstance(getattr(self, name), tuple | list):
                raise InputError(f"{name} must be a tuple, got {getattr(self, name)!r}.")
        super().check()
        for name in self.further_encoders:
            if not isinstance(name, str):
                raise InputError(
                    f"further_encoders must be names of folders or 'bag', got {name!r}."
                )
        for indexer in self.indexers:
            part = part_of("indexers", indexer, INDEXERS)
            check_part("indexers", part, ["represent"], PointFeatures)
        if not self.indexers or not (self.teacher_forcing or self.matcher_aware):
            raise InputError(
                "X-Transformer needs an indexer, and negatives by teacher forcing, from the "
                "matcher, or both. Set `indexers` and one of the two."
            )
        check_part("matcher", self.cluster_matcher(), ["match", "n_solved"], NeuralMatcher)
        for member in self.of_each_encoder():
            member.check_encoder()

    def transformer_names(self) -> Iterable[str]:
        """See `OfTextEncoder`: those of all encoders."""
        return [name for name in (self.encoder, *self.further_encoders) if name != BAG]

    def identity(self) -> dict[str, Any]:
        """See `OfTextEncoder`."""
        return {**super().identity(), "further_encoders": [*map(kind_of, self.further_encoders)]}

    def of_each_encoder(self) -> list[XTransformer]:
        """Return the same recipe around each of the encoders alone."""
        encoders = (self.encoder, *self.further_encoders)
        return [replace(self, encoder=encoder, further_encoders=()) for encoder in encoders]

    def _learn(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> Scorer:
        """See `LabelEstimator`."""
        used, data = data.of_used_labels()
        held = HeldOut.of(held_out, held_out.labels[:, used], self.patience)
        members: list[JoinedTreeScorer] = []
        for i, one in enumerate(self.of_each_encoder(), start=1):
            own = run if i == 1 else run.within(f"encoder {i}, ")
            members += one._members(data, held, used, own)
        return averaged(members)

    def _members(
        self,
        data: TrainingData,
        held_out: HeldOut | None,
        used: NDArray[np.int32],
        run: TrainingRun,
    ) -> list[JoinedTreeScorer]:
        """Train a member for each way of indexing."""
        first_encoder = cache(lambda: self._first_encoder(data, held_out, run))
        members = []
        for i, indexer in enumerate(self.indexers, start=1):
            part, own = part_of("indexers", indexer, INDEXERS), run.within(f"index {i}: ")
            members.append(self._member(part, data, held_out, used, first_encoder, own))
        return members

    def _first_encoder(
        self, data: TrainingData, held_out: HeldOut | None, run: TrainingRun
    ) -> UnitEncoder:
        """Train an encoder on clusters by features, for indexers that need one."""
        if not self.is_bag and not self.fine_tune:
            return self._transformer.read()
        run = run.within("first ")
        with run.stage("label indexing"):
            rows = label_centroids(data.features, data.labels, n_threads=run.n_threads)
            tree = self._tree(rows, run)
        with run.stage("matcher"):
            return self._match(tree.nodes[1], data, held_out, run).encoder

    def _member(
        self,
        indexer: LabelIndexer,
        data: TrainingData,
        held_out: HeldOut | None,
        used: NDArray[np.int32],
        encoder: Callable[[], UnitEncoder],
        run: TrainingRun,
    ) -> JoinedTreeScorer:
        """Train the three stages for one way of indexing."""
        rows = _checked_rows(indexer.represent(data, encoder, run), data.labels.shape[1])
        with run.stage("label indexing"):
            tree = self._tree(rows, run)
        with run.stage("matcher"):
            matcher = self._match(tree.nodes[1], data, held_out, run)
            _check_matcher(matcher, tree.n_nodes(1), data)
        tree, order = tree.in_leaf_order()
        data = data._replace(labels=data.labels[:, order])
        join = JoinedFeatures(matcher.encoder, data.features.shape[1])
        with run.stage("ranker"):
            ranker = self._rank(tree, matcher, join, data, run)
        scorer = LabelTreeScorer.of(
            tree.child_starts(),
            used[order],
            SparseLabelVectors.joined([_as_nodes(matcher, join.n_tokens), ranker]),
            beam_size=self.beam_size,
            n_threads=run.n_threads,
        )
        return JoinedTreeScorer(join, scorer)

    @cached_property
    def _transformer(self) -> ReadOnce:
        """Return the one around which all members are trained: as it is, it reads points once."""
        return ReadOnce.of(self.transformer(self.batch_size))

    def _tree(self, rows: Rows, run: TrainingRun) -> LabelTree:
        """Cluster labels by halving them again and again; keep the root and the clusters."""
        tree = balanced_tree(
            rows, leaf_size=self.leaf_size, seed=run.seed_for("clusters"), n_threads=run.n_threads
        )
        return LabelTree(np.stack([np.zeros_like(tree.nodes[-1]), tree.nodes[-1]]))

    def _match(
        self,
        clusters: NDArray[np.int32],
        data: TrainingData,
        held_out: HeldOut | None,
        run: TrainingRun,
    ) -> LearntMatcher:
        """Train the encoder and the matcher of the clusters that labels are in."""
        n_clusters = int(clusters.max()) + 1
        targets = meta_labels(data.labels, clusters, n_clusters)
        if held_out is not None:
            found = meta_labels(held_out.targets, clusters, n_clusters)
            held_out = held_out._replace(targets=found)
        encoded = self._encoder_training().learn(data, targets, run, held_out)
        return self.cluster_matcher().match(encoded, data, targets, run)

    def _encoder_training(self) -> BagTraining | TransformerTraining:
        """Return how the encoder is trained."""
        if self.is_bag:
            return BagTraining(
                dimension=self.dimension,
                schedule=self.schedule(),
                batch_size=self.batch_size,
                dropout=self.dropout,
                n_best=self.beam_size,
            )
        return TransformerTraining(
            self._transformer, self.schedule(), self.batch_size, n_best=self.beam_size
        )

    def cluster_matcher(self) -> ClusterMatcher:
        """Return what scores clusters once the encoder is trained."""
        if self.matcher is None:
            return NeuralMatcher() if self.is_bag else LinearMatcher()
        return part_of("matcher", self.matcher, MATCHERS)

    def schedule(self) -> Schedule:
        """Return that of an encoder's training."""
        return Schedule(
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            warm_up=self.warm_up_of_encoder(),
        )

    def _rank(
        self,
        tree: LabelTree,
        matcher: LearntMatcher,
        join: JoinedFeatures,
        data: TrainingData,
        run: TrainingRun,
    ) -> SparseLabelVectors:
        """Train one linear classifier a label on joined features."""
        bags = Bags.of(data.features)
        joined = join.joined(bags, matcher.points)
        features = joined.matrix(join.n_features)
        candidates = csr_array((tree.n_nodes(1), bags.n_rows), dtype=np.float32)
        if self.teacher_forcing:
            candidates += meta_labels(data.labels, tree.nodes[1], tree.n_nodes(1)).T
        if self.matcher_aware:
            best = matcher.best_clusters(data.features, self.beam_size)
            points = np.repeat(np.arange(bags.n_rows), best.shape[1])
            ones = np.ones(best.size, np.float32)
            candidates += csr_array((ones, (best.ravel(), points)), candidates.shape)
        return SparseOneVsRest(cost=self.cost, prune=self.prune).learn_among(
            features,
            data.labels,
            candidates.tocsr(),
            tree.nodes[1],
            seed=run.seed_for("ranker"),
            n_threads=run.n_threads,
        )


def _as_nodes(matcher: LearntMatcher, n_tokens: int) -> SparseLabelVectors:
    """Return the matcher as classifiers over joined features, whose halves are scaled down."""
    tokens = matcher.tokens
    if tokens is None:
        tokens = csr_array((len(matcher.bias), n_tokens), dtype=np.float32)
    weights = hstack([tokens, csr_array(matcher.vectors)]).tocsr() / HALF_LENGTH
    return SparseLabelVectors(
        weights.indptr.astype(np.int64),
        weights.indices.astype(np.int32),
        weights.data.astype(np.float32),
        matcher.bias,
    )


def _checked_rows(found: Any, n_labels: int) -> Rows:
    """Return what `LabelIndexer.represent` found, or raise InputError."""
    if not (issparse(found) or isinstance(found, np.ndarray)) or found.shape[0] != n_labels:
        got = found.shape if hasattr(found, "shape") else named(found)
        raise InputError(
            f"`represent` of an indexer must return a row for each of the {n_labels} labels, an "
            f"array or a csr_array, got {got}."
        )
    if issparse(found):
        check_indices("What `represent` returns", found)
    rows: Rows = found
    return rows


def _check_matcher(found: Any, n_clusters: int, data: TrainingData) -> None:
    """Raise InputError unless `ClusterMatcher.match` returned what scores all clusters."""
    if not isinstance(found, LearntMatcher):
        raise InputError(f"`match` must return a LearntMatcher, got {named(found)}.")
    n_points, n_tokens = data.features.shape
    members = ["encode", "dimension"]
    check_part("the encoder of a LearntMatcher", found.encoder, members, "UnitBagEncoder(...)")
    check_encoder(found.encoder, n_tokens)
    dimension, arrays = found.encoder.dimension, (found.vectors, found.bias, found.points)
    if not all(isinstance(array, np.ndarray) for array in arrays):
        raise InputError(
            "`match` must return a LearntMatcher of numpy's arrays, got "
            f"{', '.join(map(named, arrays))}."
        )
    shapes = found.vectors.shape, found.bias.shape, found.points.shape
    wanted = (n_clusters, dimension), (n_clusters,), (n_points, dimension)
    tokens = None if found.tokens is None else found.tokens.shape
    if shapes != wanted or tokens not in {None, (n_clusters, n_tokens)}:
        raise InputError(
            f"`match` returned vectors, biases and points of {shapes}, and tokens of {tokens}; for "
            f"{n_clusters} clusters, {n_points} points and {n_tokens} tokens they must be of "
            f"{wanted}, and tokens of {(n_clusters, n_tokens)} or None."
        )
    if not (np.isfinite(found.vectors).all() and np.isfinite(found.bias).all()):
        raise InputError("`match` returned NaN, or infinite numbers.")
