"""A trained label tree as it serves: beams wider than the tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from longtail import load
from longtail.data.bags import Bags
from longtail.kernels.label_tree import tree_beam_search
from longtail.recipes.parabel import Parabel
from longtail.scorers import label_tree
from longtail.scorers.label_tree import LabelTreeScorer
from longtail.scorers.sparse_label_vectors import SparseLabelVectors

TEXTS = [f"{word} number{i}" for i in range(6) for word in ("wine", "beer", "cars", "oaks", "tea")]
NAMES = [[text.split()[0]] for text in TEXTS]
WIDEST = 1_000_000  # the most that a recipe takes


@pytest.fixture(scope="module")
def model():
    settings = {"beam_size": WIDEST, "n_learners": 1, "leaf_size": 2, "n_threads": 1}
    return Parabel(**settings).fit(TEXTS, NAMES)


def test_the_widest_beam_holds_no_more_than_the_tree(model, monkeypatch):
    scorer, bags = model.predictor_.scorer, model.predictor_.bags(TEXTS)
    expected = replace(scorer, beam_size=5).top_k(bags, 5)
    beam_sizes = set()

    def noted(bags, tree, beam_size, *rest):
        beam_sizes.add(beam_size)
        tree_beam_search(bags, tree, min(beam_size, 1000), *rest)  # more would take all memory

    monkeypatch.setattr(label_tree, "tree_beam_search", noted)
    ids, scores = scorer.top_k(bags, 5)
    assert beam_sizes == {5}
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_array_equal(scores, expected[1])
    assert (ids >= 0).all()  # nothing was left out on the way


def test_neighbouring_nodes_that_look_at_the_same_feature_keep_their_own_weights():
    """Node 1 is above labels 0 and 1, node 2 above 2 and 3; all look at one feature alone."""
    margins = np.array([1.0, 0.5, 0.75, 0.25, 0.5, 0.0], np.float32)
    every = np.arange(7)
    nodes = SparseLabelVectors(every, np.zeros(6, np.int32), margins, np.zeros(6, np.float32))
    scorer = LabelTreeScorer.of(np.array([1, 3, 5, 7]), np.arange(4), nodes, beam_size=4)
    bag = Bags.one(np.zeros(1, np.int32), np.ones(1, np.float32))
    ids, scores = scorer.top_k(bag, 4)
    of_nodes = np.exp(-((1 - margins) ** 2))
    expected = np.repeat(of_nodes[:2], 2) * of_nodes[2:]
    np.testing.assert_array_equal(ids[0], np.argsort(-expected))
    np.testing.assert_allclose(scores[0], -np.sort(-expected), rtol=1e-5)


def test_it_is_saved_as_it_was_asked_for(model, tmp_path):
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").scorer
    assert isinstance(again, LabelTreeScorer)
    assert again.beam_size == WIDEST
    assert again.config() == model.predictor_.scorer.config()
