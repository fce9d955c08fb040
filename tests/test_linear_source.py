"""What the linear classifiers of a blend look at."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail import LongtailClassifier, load
from longtail.blend.candidates import CandidateSearch, SearchSizes
from longtail.blend.linear_source import linear_source
from longtail.blend.token_traits import n_pieces_a_word, n_words_known
from longtail.classifiers.listed_points import points_of_lists
from longtail.classifiers.sparse_one_vs_rest import SparseOneVsRest
from longtail.compiled.expanded import expanded
from longtail.training.run import TrainingData, TrainingRun
from small_runs import among

RUN = TrainingRun(seed=0, n_threads=1)
N_LABELS = 3


def some_data(n_points=60):
    """Two words, two beginnings and another piece of words, of points with a label each."""
    random = np.random.default_rng(1)
    features = random.random((n_points, 5), np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = np.eye(N_LABELS, dtype=np.float32)[features[:, :N_LABELS].argmax(axis=1)]
    kinds = np.array(["word", "beginning", "word", "beginning", "piece"])
    return TrainingData(
        csr_array(features),
        csr_array(labels),
        is_word=kinds == "word",
        is_beginning=kinds == "beginning",
    )


def search_of(data):
    points = data.features.toarray()
    sizes = SearchSizes()
    return CandidateSearch.build(
        points[:N_LABELS], points, data.labels, sizes=sizes, seed=0, n_threads=1
    )


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [("no", [1, 0, 1, 0, 0]), ("beginnings", [1, 1, 1, 1, 0])],
)
def test_pieces_are_read_that_are_wanted(pieces, expected):
    data = some_data()
    classifiers, is_read = linear_source(data, search_of(data), 1.0, RUN, pieces=pieces)
    assert is_read.tolist() == expected
    assert set(classifiers.features.tolist()) <= set(np.flatnonzero(expected).tolist())


def test_all_pieces_are_read_if_wanted():
    data = some_data()
    classifiers, is_read = linear_source(data, search_of(data), 1.0, RUN, pieces="all")
    assert is_read is None
    assert set(classifiers.features.tolist()) == set(range(5))


def test_known_words_are_counted_without_pieces():
    data = some_data()
    assert n_words_known(data) == 2
    assert n_words_known(data._replace(is_word=None)) == 5
    assert n_words_known(data._replace(is_unspaced=True)) == 0  # no space tells where they end
    assert n_words_known(data._replace(is_unknown=True)) == 0  # no other text has most of them


def test_what_is_read_is_brought_to_unit_length():
    data = some_data()
    search = search_of(data)
    classifiers, is_read = linear_source(data, search, 1.0, RUN, pieces="beginnings")
    dense = np.where(is_read, data.features.toarray(), 0)
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    candidates = points_of_lists(*search.confused(), data.labels.shape[1])
    expected = among(SparseOneVsRest(), csr_array(dense), data.labels, candidates, RUN)
    np.testing.assert_allclose(classifiers.weights, expected.weights, rtol=1e-4, atol=1e-4)


def test_where_no_feature_is_a_piece_all_are_read():
    data = some_data()._replace(is_word=None, is_beginning=None)
    classifiers, is_read = linear_source(data, search_of(data), 1.0, RUN, pieces="beginnings")
    assert is_read is None
    assert 4 in classifiers.features


def test_a_model_of_texts_reads_words_and_their_beginnings_also_once_saved(tmp_path):
    texts = [
        f"{stem}{ending}" for stem in ("wine", "cars") for ending in ("s", "ry", "list", "ian")
    ]
    labels = [["drink"]] * 4 + [["vehicle"]] * 4
    settings = {"held_out": 0, "min_df": 1, "n_threads": 1, "pieces": "beginnings"}
    model = LongtailClassifier(**settings).fit(texts * 3, labels * 3).predictor_
    reads = model.scorer.parts.is_read
    beginnings = model.vectorizer.is_beginning()
    assert beginnings.any()
    assert reads[beginnings].all()
    assert not reads[~beginnings & ~model.vectorizer.is_word()].any()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.scorer.parts.is_read, reads)
    assert again.predict("carsmith", k=1)[0][0] == "vehicle"
    assert again.predict("winemaker", k=1)[0][0] == "drink"


def test_a_model_of_single_words_reads_all_their_pieces_also_once_saved(tmp_path):
    texts = [f"{start}{end}" for end in ("wine", "cars") for start in ("a", "be", "ku", "or", "y")]
    labels = [["drink"]] * 5 + [["vehicle"]] * 5
    model = LongtailClassifier(held_out=0, n_threads=1).fit(texts * 3, labels * 3).predictor_
    assert not model.scorer.parts.is_read.size  # all of them
    model.save(tmp_path / "model")
    for each in (model, load(tmp_path / "model")):
        assert each.predict("frowine", k=1)[0][0] == "drink"
        assert each.predict("ducars", k=1)[0][0] == "vehicle"


def test_errors_count_as_much_as_is_asked_for():
    texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    settings = {"dimension": 8, "epochs": 1, "n_threads": 1}
    largest = []
    for cost in (1e-4, 1.0):
        model = LongtailClassifier(cost=cost, **settings).fit(texts, labels).predictor_
        largest.append(np.abs(expanded(model.scorer).linear.weights).max(initial=0))
    assert largest[0] < largest[1] / 10


def test_pieces_of_a_word_are_counted():
    data = some_data(10)
    assert n_pieces_a_word(data) == 1.5  # three of five features are no words
    assert n_pieces_a_word(TrainingData(data.features, data.labels)) == 0
    no_words = TrainingData(data.features, data.labels, is_word=np.zeros(5, bool))
    assert n_pieces_a_word(no_words) == 50
