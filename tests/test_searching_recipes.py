"""Few labels and points are scanned; here recipes search them by graphs, as they search many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import longtail
from longtail import LongtailClassifier
from longtail.compiled.scorer import CompiledScorer
from longtail.compiled.search_recall import label_recall
from longtail.index import GraphIndex, stored
from small_recipes import NAMES, RECIPES, TEXTS

# Those that look for labels, or for training points, by vectors.
SEARCHING = ["Astec", "DeepXML", "LongtailClassifier", "DEXA", "SiameseXML", "Slice", "DeepXMLMACH"]


@pytest.fixture(autouse=True)
def nothing_is_scanned(monkeypatch):
    monkeypatch.setattr(stored, "EXACT_BELOW", 1)


@pytest.mark.parametrize("name", SEARCHING)
def test_graphs_find_what_scans_find(name, monkeypatch, tmp_path):
    built = []
    as_before = GraphIndex.build
    monkeypatch.setattr(
        GraphIndex, "build", lambda *parts, **more: built.append(1) or as_before(*parts, **more)
    )
    model = RECIPES[name]().fit(TEXTS, NAMES)
    assert built
    assert model.score(TEXTS, NAMES) > 0.75
    model.save(tmp_path / "model")
    predictor = longtail.load(tmp_path / "model")
    for text, row in zip(TEXTS[:5], model.predictor_.predict(TEXTS[:5]), strict=True):
        one = predictor.predict(text)
        assert [name for name, _ in one] == [name for name, _ in row]
        np.testing.assert_allclose([p for _, p in one], [p for _, p in row], rtol=1e-4)


def test_the_recall_of_a_walk_is_that_of_answers_which_go_on_where_they_are_unsure():
    random = np.random.default_rng(0)
    words = [f"word{i}" for i in range(150)] * 2
    texts = [f"{word} word{random.integers(150)}" for word in words]
    sizes = {"n_near_labels": 5, "n_near_points": 1, "n_voted": 1, "beam_size": 8}
    model = LongtailClassifier(dimension=32, epochs=1, **sizes).fit(texts, [[w] for w in words])
    own = model.predictor_.scorer
    recalls = []
    for below in (-np.inf, np.inf):
        parts = own.parts._replace(unsure_below=np.full(1, below, np.float32))
        recalls.append(label_recall(CompiledScorer(parts, own.sizes, own.related)).of_candidates)
    assert 0.8 < recalls[0] < recalls[1] <= 1


def test_a_beam_is_as_wide_as_what_is_wanted():
    model = RECIPES["LongtailClassifier"]().fit(TEXTS, NAMES)
    own, bag = model.predictor_.scorer, model.predictor_.bags(TEXTS[:1])
    narrow = CompiledScorer(own.parts, replace(own.sizes, beam_size=1), own.related)
    assert len(narrow.near_points(bag, 10)[0]) == 10
    assert label_recall(narrow).of_candidates > 0.9
    ids, _ = own.candidates(bag)
    np.testing.assert_array_equal(np.sort(narrow.candidates(bag)[0]), np.sort(ids))
