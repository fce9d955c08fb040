"""Held-out texts are read as texts to come would be."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from longtail import Dataset, LongtailClassifier
from longtail.data.label_space import LabelSpace
from longtail.estimators.splitting import split_data
from longtail.estimators.to_come import as_to_come
from longtail.estimators.vocabulary import Encoded, known_and_encoded
from longtail.training.run import TrainingData

N_POINTS = 200


def parts_of(texts, **settings):
    """Split texts, every second of which is of a wine; return the parts and their vocabulary."""
    labels = [["drink"] if i % 2 else ["vehicle"] for i in range(len(texts))]
    kinds = {"word_ngrams": 1, "char_ngrams": None, "n_threads": 1, **settings}
    recipe, dataset = LongtailClassifier(**kinds), Dataset.of(texts, labels)
    encoded = known_and_encoded(recipe, dataset)
    return *split_data(recipe, dataset, encoded, None, n_threads=1), encoded


def texts_with_own_words():
    """Each text has a word that no other has."""
    return [f"{'red wine' if i % 2 else 'old car'} own{i}" for i in range(N_POINTS)]


def test_words_of_held_out_texts_alone_are_left_out_until_they_are_learnt_from():
    data, held_out, encoded = parts_of(texts_with_own_words())
    assert len(encoded.vectorizer.tokens_) == N_POINTS + 6  # two are of labels
    n_held_out = held_out.labels.shape[0]
    assert n_held_out > 30
    assert np.diff(held_out.features.indptr).tolist() == [2] * n_held_out
    np.testing.assert_allclose((held_out.features**2).sum(axis=1), 1, rtol=1e-6)
    assert np.diff(held_out.to_learn.indptr).tolist() == [3] * n_held_out
    both = data.with_points_of(held_out)
    assert both.to_learn is None
    assert np.count_nonzero(both.features.sum(axis=0)) == N_POINTS + 4
    few = held_out.of_points(np.array([5]))
    np.testing.assert_array_equal(few.to_learn.toarray(), held_out.to_learn[[5]].toarray())


def test_fragments_have_none_of_these_words_either():
    held_out = parts_of(texts_with_own_words())[1]
    shared = set(held_out.features.indices.tolist())
    fragments = held_out.in_part.features
    of_several = np.diff(fragments.indptr) > 1
    assert of_several.any()
    assert set(fragments[of_several].indices.tolist()) <= shared


def test_points_of_texts_without_labels_are_read_alike():
    seen = TrainingData(csr_array(np.eye(3, dtype=np.float32)[:2]), csr_array(np.eye(2)))
    rows = csr_array(np.float32([[0.6, 0, 0.8]]))
    beside = TrainingData(rows, csr_array((1, 2)))
    found = as_to_come(TrainingData(rows, csr_array((1, 2)), unlabelled=beside), seen)
    for some in (found, found.unlabelled):
        assert some.features.toarray().tolist() == [[1, 0, 0]]


def test_words_of_labels_are_known_and_a_text_of_new_words_alone_stays():
    seen = TrainingData(
        csr_array(np.float32([[1, 0, 0, 0]])),
        csr_array(np.eye(1)),
        label_features=csr_array(np.float32([[0, 1, 0, 0]])),
    )
    rows = np.float32([[0, 0.6, 0.8, 0], [0, 0, 0, 1], [0.6, 0.8, 0, 0], [0, 0, 0, 0]])
    found = as_to_come(TrainingData(csr_array(rows), csr_array((4, 1))), seen).features
    expected = [[0, 1, 0, 0], [0, 0, 0, 1], [0.6, 0.8, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-6)


def test_ready_made_features_are_all_there():
    features = csr_array(np.eye(N_POINTS, dtype=np.float32))
    labels = csr_array(np.eye(2, dtype=np.float32)[np.arange(N_POINTS) % 2])
    recipe = LongtailClassifier(n_threads=1)
    dataset = Dataset(None, features, labels, LabelSpace(2))
    found = split_data(recipe, dataset, Encoded(features, None, None), None, n_threads=1)[1]
    assert found.to_learn is None
    assert found.features.nnz == found.labels.shape[0] > 0
