"""extremeText: which nodes a point trains, and the search down the tree."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail.data.bags import Bags
from longtail.features.bag_encoder import BagEncoder
from longtail.recipes.extremetext import tree_targets
from longtail.scorers.label_vectors import LabelVectors
from longtail.scorers.probabilistic_tree import ProbabilisticTreeScorer
from small_trees import a_tree


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_a_point_trains_its_paths_and_their_siblings(seed):
    tree, random = a_tree(seed, 20), np.random.default_rng(seed)
    labels = csr_array((random.random((8, 20)) < 0.15).astype(np.float32))
    nodes, asked = tree_targets(tree, labels)
    first = np.cumsum([0, *(tree.n_nodes(level) for level in range(tree.depth + 1))])
    above = [
        [first[level] + n for level, n in enumerate(tree.nodes[:, label])] for label in range(20)
    ]
    starts = tree.child_starts()
    for row, truth in enumerate(labels.toarray()):
        inner = {node for label in np.flatnonzero(truth) for node in above[label]} | {0}
        leaves = {first[-2] + label for label in np.flatnonzero(truth)}
        assert set(nodes.toarray()[row].nonzero()[0] + 1) == (inner - {0}) | leaves
        children = {c for node in inner for c in range(starts[node], starts[node + 1])}
        found = asked[row][asked[row] >= 0] + 1
        assert sorted(found) == sorted(children)


@given(st.integers(0, 10_000), st.integers(1, 25))
@settings(max_examples=25, deadline=None)
def test_a_wide_beam_finds_the_best_labels(seed, k):
    tree, random = a_tree(seed, 20), np.random.default_rng(seed)
    starts = tree.child_starts()
    vectors = random.normal(size=(starts[-1] - 1, 6)).astype(np.float32)
    bias = random.normal(size=starts[-1] - 1).astype(np.float32)
    scorer = ProbabilisticTreeScorer(
        encoder=BagEncoder(np.eye(6, dtype=np.float32)),
        nodes=LabelVectors(vectors, bias),
        child_starts=starts,
        labels=random.permutation(50)[:20].astype(np.int32),
        beam_size=2**31 - 1,  # more than there are nodes, which takes no memory for the rest
    )
    points = random.random((7, 6), np.float32)
    points[3] = 0
    ids, scores = scorer.top_k(Bags.of(csr_array(points)), k)
    gains = -np.log1p(np.exp(-(points @ vectors.T + bias)))
    first = np.cumsum([0, *(tree.n_nodes(level) for level in range(tree.depth))])
    expected = gains[:, first[-1] - 1 :].copy()
    for level in range(1, tree.depth):
        expected += gains[:, first[level] - 1 + tree.nodes[level]]
    assert (ids[3] == -1).all()
    for row in (0, 1, 2, 4, 5, 6):
        best = np.argsort(-expected[row], kind="stable")[:k]
        assert ids[row][: len(best)].tolist() == scorer.labels[best].tolist()
        np.testing.assert_allclose(scores[row][: len(best)], expected[row, best], atol=1e-4)
