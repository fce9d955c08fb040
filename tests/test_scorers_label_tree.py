"""A trained label tree as it serves: beams wider than the tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from longtail import load
from longtail.kernels.label_tree import beam_search
from longtail.recipes.parabel import Parabel
from longtail.scorers import label_tree
from longtail.scorers.label_tree import LabelTreeScorer

TEXTS = [f"{word} number{i}" for i in range(6) for word in ("wine", "beer", "cars", "oaks", "tea")]
NAMES = [[text.split()[0]] for text in TEXTS]
WIDEST = 2**31 - 1


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
        beam_search(bags, tree, min(beam_size, 1000), *rest)  # more would take all memory

    monkeypatch.setattr(label_tree, "beam_search", noted)
    ids, scores = scorer.top_k(bags, 5)
    assert beam_sizes == {5}
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_array_equal(scores, expected[1])
    assert (ids >= 0).all()  # nothing was left out on the way


def test_it_is_saved_as_it_was_asked_for(model, tmp_path):
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").scorer
    assert isinstance(again, LabelTreeScorer)
    assert again.beam_size == WIDEST
    assert again.config() == model.predictor_.scorer.config()
