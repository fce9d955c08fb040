"""AttentionXML: each label looks at words of its own, down a shallow and wide tree of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from longtail.classifiers.label_attention import Candidates, HeldOutLevel, LabelAttention
from longtail.clustering.balanced import n_halvings
from longtail.data.point_input import InputKind, PointInput
from longtail.errors import InputError
from longtail.estimators.estimator import LabelEstimator
from longtail.metrics.hits import true_among
from longtail.recipes.learners import averaged_learners
from longtail.scorers.label_attention import AttentionLevel, LabelAttentionScorer
from longtail.scorers.ranking import best_first
from longtail.surrogates.label_clusters import label_centroids, meta_labels
from longtail.surrogates.label_tree import LabelTree, balanced_tree
from longtail.training.clipping import RecentNorms
from longtail.training.early_stopping import HeldOut
from longtail.training.schedule import Schedule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData, TrainingRun

    Ids = NDArray[np.int32]

__all__ = ["AttentionXML"]


TRUE_FIRST = np.float32(2)  # more than any probability


@dataclass(kw_only=True, eq=False, repr=False)
class AttentionXML(LabelEstimator):
    """AttentionXML: BiLSTM, multi-label attention, a label tree.

    You et al., "AttentionXML: label tree-based attention-aware deep model for high-performance
    extreme multi-label text classification", NeurIPS 2019.

    Up to `first_level` labels are scored all. More are put into a balanced tree, whose levels are
    trained from the top on: each starts from the network of the one above, and learns to tell apart
    the children of the nodes that the one above ranks first for a point, and of its true nodes.

    Parameters
    ----------
    dimension : int
        Length of a word's vector; 300, pre-trained, in the paper.
    n_words : int
        Words that are read of a text; 500 in the paper.
    n_hidden : int
        States of each direction of the LSTM.
    hidden_layers : tuple of int, or None
        Widths of the one or two layers that labels share, such as the authors' (512, 256). None for
        one, of `n_hidden`. A second one costs a product a candidate, where the first costs one a
        word.
    dropout : float
        Of words' vectors and states.
    epochs : int
        Over the training points, for each level of the tree.
    learning_rate : float
        Of the tables, of words and labels, at the first step after the warm-up.
    warm_up : float
        Share of a level's steps over which its rates rise to what they are set to.
    patience : int or None
        Stop a level after so many epochs without a gain in P@1 of its nodes on held-out points, and
        go back to its best epoch. None trains for all `epochs`, after which the rate has fallen to
        almost nothing.
    batch_size : int
        Points of a step.
    clip : float or None
        The gradient of LSTM and layers is scaled down to so many times the largest norm of the last
        five steps, where it is longer; the authors' 5 times. None for no limit.
    average_after : int or None
        After so many epochs of a level, the mean of its weights over the steps that follow is kept,
        which takes their place in the end and on held-out points. None for the last weights.
    first_level : int
        Most nodes of the first level, unless that is fewer than a node's children.
    n_children : int
        Children of a node that is no leaf, lowered to a power of two; at least 2.
    leaf_size : int
        Most labels of a leaf.
    beam_size : int
        Nodes of a level that are followed, in training and prediction.
    n_learners : int
        Trees, each with words and networks of its own, from its own random numbers, whose
        probabilities are averaged; the authors have three. Up to `first_level` labels have no tree:
        learners differ in their networks alone.
    **kwargs
        Those of `LabelEstimator`; single words by default: pairs and pieces have no order.

    Examples
    --------
    >>> from longtail.recipes.attentionxml import AttentionXML
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = AttentionXML(dimension=16, n_hidden=16, epochs=30, batch_size=8).fit(texts, labels)
    >>> model.predictor_.predict("wine", k=1)[0][0]
    'drink'
    """

    char_ngrams: tuple[int, int] | str | None = None
    word_ngrams: int = 1
    dimension: int = 128
    n_words: int = 256
    n_hidden: int = 128
    hidden_layers: tuple[int, ...] | None = None
    dropout: float = 0.5
    epochs: int = 5
    learning_rate: float = 0.2
    warm_up: float = 0.0
    patience: int | None = None
    batch_size: int = 64
    clip: float | None = None
    average_after: int | None = None
    first_level: int = 512
    n_children: int = 8
    leaf_size: int = 16
    beam_size: int = 16
    n_learners: int = 1

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        if self.clip is not None:
            RecentNorms(self.clip)
        if self.hidden_layers is not None and not _are_widths(self.hidden_layers):
            raise InputError(
                "hidden_layers are the widths of one or two layers, such as (512, 256), got "
                f"{self.hidden_layers!r}."
            )
        if self.average_after is not None and self.average_after >= max(self.epochs, 1):
            raise InputError(
                f"average_after = {self.average_after} leaves none of the {self.epochs} epochs to "
                "average. Pass a smaller number, or None."
            )

    def reads(self) -> PointInput:
        """Words in order; see `LabelEstimator`."""
        return PointInput(InputKind.WORDS, n_words=self.n_words)

    def shared_widths(self) -> tuple[int, ...]:
        """Return the widths of the layers that labels share."""
        return self.hidden_layers or (self.n_hidden,)

    def halvings_of_levels(self, n_labels: int) -> list[int]:
        """Return which levels of a balanced tree are kept between the root and the labels.

        Each is told by how often labels have been halved there; few labels need no level.

        Examples
        --------
        >>> from longtail.recipes.attentionxml import AttentionXML
        >>> model = AttentionXML(first_level=512, n_children=8, leaf_size=16)
        >>> [model.halvings_of_levels(n) for n in (500, 5_000, 500_000)]
        [[], [9], [9, 12, 15]]
        """
        if n_labels <= self.first_level:
            return []
        step = max(int(self.n_children).bit_length() - 1, 1)
        kept = [n_halvings(n_labels, self.leaf_size)]
        while 2 ** kept[0] > self.first_level and kept[0] > step:
            kept.insert(0, kept[0] - step)
        return kept

    def _learn(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> Scorer:
        """See `LabelEstimator`."""
        used, data = data.of_used_labels()
        held = HeldOut.of(held_out, held_out.labels[:, used], self.patience)
        return averaged_learners(partial(self._learner, data, held, used), self.n_learners, run)

    def _learner(
        self, data: TrainingData, held: HeldOut | None, used: Ids, run: TrainingRun
    ) -> LabelAttentionScorer:
        """Grow a tree over the labels in use, and train its levels."""
        with run.stage("label tree"):
            tree, order = self._tree(data, run).in_leaf_order()
        data = data._replace(labels=data.labels[:, order])
        held = None if held is None else held._replace(targets=held.targets[:, order])
        levels: list[AttentionLevel] = []
        parents, above = np.zeros((1, 1), np.int32), np.ones((1, 1), np.float32)  # the root
        for depth in range(1, tree.depth + 1):
            with run.stage(f"level {depth}"):
                level = self._level(tree, data, held, parents, levels, run)
                if depth < tree.depth:
                    nodes = tree.nodes[depth]
                    parents, above = self._followed(level, nodes, data, parents, above, run)
            levels.append(level)
        return LabelAttentionScorer(tuple(levels), used[order], self.beam_size)

    def _tree(self, data: TrainingData, run: TrainingRun) -> LabelTree:
        """Return a shallow tree: some of the levels of a balanced one, below the root."""
        root = np.zeros(data.labels.shape[1], np.int32)
        kept = self.halvings_of_levels(len(root))
        if not kept:
            return LabelTree(root[np.newaxis])
        rows = label_centroids(data.features, data.labels, n_threads=run.n_threads)
        tree = balanced_tree(
            rows, leaf_size=self.leaf_size, seed=run.seed_for("tree"), n_threads=run.n_threads
        )
        return LabelTree(np.stack([root, *tree.nodes[kept]]))

    def _level(
        self,
        tree: LabelTree,
        data: TrainingData,
        held_out: HeldOut | None,
        parents: Ids,
        levels_above: list[AttentionLevel],
        run: TrainingRun,
    ) -> AttentionLevel:
        """Train the level below `levels_above`."""
        depth = len(levels_above) + 1
        nodes, starts = tree.nodes_of_labels(depth), tree.child_starts_of(depth - 1)
        start = levels_above[-1].weights if levels_above else None
        attention = LabelAttention(
            dimension=self.dimension,
            n_states=self.n_hidden,
            hidden=self.shared_widths(),
            dropout=self.dropout,
            schedule=Schedule(
                epochs=self.epochs, learning_rate=self.learning_rate, warm_up=self.warm_up
            ),
            batch_size=self.batch_size,
            clipping=None if self.clip is None else partial(RecentNorms, self.clip),
            average_after=self.average_after,
        )
        scope = run.within(f"level {depth}: ")
        targets = meta_labels(data.labels, nodes, tree.n_nodes(depth))
        held = None
        if held_out is not None:
            held = self._held_out_level(nodes, held_out, levels_above, run)
        weights = attention.learn(data, targets, Candidates(parents, starts), scope, start, held)
        return AttentionLevel(weights, starts)

    def _held_out_level(
        self, nodes: Ids, held_out: HeldOut, levels_above: list[AttentionLevel], run: TrainingRun
    ) -> HeldOutLevel:
        """Return held-out points with what they follow of the levels above, as in a prediction."""
        n_threads = run.n_threads
        so_far = LabelAttentionScorer(tuple(levels_above), np.zeros(0, np.int32), self.beam_size)
        found, scores = so_far.nodes(held_out.data.bags(), n_threads)
        n_followed = min(self.beam_size, found.shape[1])
        parents, scores = best_first(found, scores, n_followed, n_threads)
        targets = meta_labels(held_out.targets, nodes, int(nodes.max()) + 1)
        return HeldOutLevel(held_out._replace(targets=targets), parents, scores)

    def _followed(
        self,
        level: AttentionLevel,
        nodes: Ids,
        data: TrainingData,
        parents: Ids,
        above: NDArray[np.float32],
        run: TrainingRun,
    ) -> tuple[Ids, NDArray[np.float32]]:
        """Return the nodes of a level that each training point follows, its true ones first.

        Their scores are those of a prediction, so that the others are those that one would follow.
        """
        bags = data.bags()
        shape = (bags.n_rows, parents.shape[1])
        parents, above = np.broadcast_to(parents, shape), np.broadcast_to(above, shape)
        found, scores = level.children(bags, parents, above, run.n_threads)
        targets = meta_labels(data.labels, nodes, int(nodes.max()) + 1)
        first = TRUE_FIRST * true_among(found, targets)
        n_followed = min(self.beam_size, found.shape[1])
        best, ranks = best_first(found, scores + first, n_followed, run.n_threads)
        return best, np.where(ranks >= TRUE_FIRST, ranks - TRUE_FIRST, ranks)


def _are_widths(value: object) -> bool:
    """Tell whether these are the widths of one or two layers."""
    if not isinstance(value, Sequence) or len(value) not in {1, 2}:
        return False
    return all(isinstance(width, Integral) and int(width) >= 1 for width in value)
