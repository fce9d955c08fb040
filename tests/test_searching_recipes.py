"""Few labels and points are scanned; here recipes search them by graphs, as they search many."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import longtail
from longtail import LongtailClassifier
from longtail.cli import main
from longtail.compiled.scorer import CompiledScorer
from longtail.compiled.search_recall import label_recall
from longtail.errors import InputError
from longtail.index import GraphIndex, stored
from longtail.kernels.coded_graph import n_edges
from longtail.row_store import packed_neighbours
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


def made_walker():
    """A model of 150 labels that looks at few of them, and its points."""
    random = np.random.default_rng(0)
    words = [f"word{i}" for i in range(150)] * 2
    texts = [f"{word} word{random.integers(150)}" for word in words]
    sizes = {"n_near_labels": 5, "n_near_points": 1, "n_voted": 1, "beam_size": 8}
    labels = [[word] for word in words]
    return LongtailClassifier(dimension=32, epochs=1, **sizes).fit(texts, labels), texts, labels


def test_the_recall_of_a_walk_is_that_of_answers_which_go_on_where_they_are_unsure():
    own = made_walker()[0].predictor_.scorer
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


@pytest.fixture
def lost():
    """A model whose walk meets next to no label, since all edges lead to one; and its points."""
    fitted, texts, labels = made_walker()
    model = fitted.predictor_
    graph = model.scorer.parts.labels
    edges = packed_neighbours(np.zeros((len(graph.codes), n_edges(graph)), np.int32))
    parts = model.scorer.parts._replace(labels=graph._replace(neighbours=edges))
    scorer = CompiledScorer(parts, model.scorer.sizes, model.scorer.related)
    return model.with_scorer(scorer), texts, labels


def test_exact_search_misses_no_label(lost, tmp_path):
    model, texts, _ = lost
    exact = model.with_exact_search()
    walked, scanned = (label_recall(some.scorer) for some in (model, exact))
    assert walked.of_candidates < 0.9
    assert scanned.of_candidates > 0.995
    assert scanned.of_hundred == 1 > walked.of_hundred
    exact.save(tmp_path / "exact")
    loaded = longtail.load(tmp_path / "exact")
    assert label_recall(loaded.scorer) == scanned
    found = [some.predict_topk(texts, 5) for some in (exact, loaded)]
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert (found[0][0] != model.predict_topk(texts, 5)[0]).any()
    bag = model.bags(texts[:1])
    near = [some.scorer.near_points(bag, 1)[0].tolist() for some in (exact, model)]
    assert near[0] == near[1] != []


def test_commands_search_exactly_where_they_are_told(lost, tmp_path):
    model, texts, labels = lost
    model.save(tmp_path / "model")
    lines = [
        json.dumps({"text": text, "labels": own})
        for text, own in zip(texts[:60], labels, strict=False)
    ]
    (tmp_path / "test.jsonl").write_text("\n".join(lines) + "\n")
    answers = {}
    for option in ([], ["--exact-search"]):
        out = tmp_path / f"answers{len(option)}.jsonl"
        source = [str(tmp_path / "model"), str(tmp_path / "test.jsonl")]
        assert main(["predict", *source, "--output", str(out), *option]) == 0
        answers[len(option)] = [json.loads(line)["labels"] for line in out.read_text().splitlines()]
        measured = tmp_path / f"metrics{len(option)}.json"
        assert main(["evaluate", *source, "--json", str(measured), *option]) == 0
        assert json.loads(measured.read_text()).get("exact_search") == (bool(option) or None)
    exact = model.with_exact_search().predict(texts[:60])
    assert answers[1] == [[name for name, _ in row] for row in exact]
    assert answers[0] != answers[1]


def test_what_walks_no_graph_of_labels_has_no_exact_search():
    model = RECIPES["Astec"]().fit(TEXTS, NAMES).predictor_
    with pytest.raises(InputError, match="graph of labels"):
        model.with_exact_search()
