"""Few labels and points are scanned; here recipes search them by graphs, as they search many."""

from __future__ import annotations

import numpy as np
import pytest

import longtail
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
