"""Layers of small networks, the words of texts, and hashed labels, against plain numpy."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data.point_input import words_in_table
from longtail.data.vectorizer import TextVectorizer
from longtail.features.dense_layer import DenseLayer
from longtail.kernels.arrays import read_only
from longtail.kernels.hashed_labels import best_hashed_labels
from longtail.kernels.networks import convolve_texts

few = settings(max_examples=25, deadline=None)


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@few
@given(st.integers(0, 10**6), st.integers(0, 9), st.integers(1, 9))
def test_a_dense_layer_is_the_formula(seed, n_rows, n_outputs):
    rows, layer = (
        normal(seed, n_rows, 7),
        DenseLayer(normal(seed, n_outputs, 7), normal(seed, n_outputs)),
    )
    found = layer.apply(rows)
    np.testing.assert_allclose(found, rows @ layer.matrix.T + layer.bias, rtol=1e-5, atol=1e-5)
    for row in range(n_rows):
        assert layer.apply(rows[row : row + 1]).tobytes() == found[row].tobytes()


def maxima_of_chunks(maps, n_chunks):
    """Plain twin: (n_places, n_filters) to (n_filters * n_chunks,)."""
    n_places = len(maps)
    ends = [(c * n_places // n_chunks, -(-(c + 1) * n_places // n_chunks)) for c in range(n_chunks)]
    return np.stack([maps[a:b].max(axis=0) for a, b in ends], axis=1).ravel()


def plain_convolution(words, vectors, filters, bias, n_chunks, n_words):
    """Plain twin of the kernel for one text."""
    known = words[words >= 0]
    n_channels = n_words or vectors.shape[1]
    width = filters.shape[1] // n_channels
    if n_words:
        matrix = np.zeros((vectors.shape[1], n_words), np.float32)
        matrix[:, : len(known)] = vectors[known].T
    else:
        matrix = np.zeros((len(known) + width - 1, n_channels), np.float32)
        matrix[(width - 1) // 2 :][: len(known)] = vectors[known]
    windows = [matrix[i : i + width].ravel() for i in range(len(matrix) - width + 1)]
    maps = np.maximum(np.array(windows) @ filters.T + bias, 0)
    return maxima_of_chunks(maps, n_chunks)


@few
@given(
    seed=st.integers(0, 10**6),
    width=st.integers(1, 4),
    n_filters=st.integers(1, 6),
    n_chunks=st.integers(1, 4),
    along_embedding=st.booleans(),
)
def test_convolutions_are_the_formula(seed, width, n_filters, n_chunks, along_embedding):
    random = np.random.default_rng(seed)
    words = random.integers(0, 9, (5, 6)).astype(np.int32)
    words[np.arange(6) >= random.integers(0, 7, 5)[:, None]] = -1
    vectors, n_words = normal(seed, 9, 5), 6 * along_embedding
    filters, bias = normal(seed, n_filters, width * (n_words or 5)), normal(seed, n_filters)
    pooled = np.full((5, n_filters * n_chunks), np.nan, np.float32)
    arrays = [read_only(words, np.int32)]
    arrays += [read_only(array, np.float32) for array in (vectors, filters, bias)]
    convolve_texts(*arrays, n_chunks, n_words, 0, 5, pooled)
    for row, found in zip(words, pooled, strict=True):
        if row[0] < 0:
            assert not found.any()
        else:
            expected = plain_convolution(row, vectors, filters, bias, n_chunks, n_words)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@few
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 12))
def test_hashed_labels_are_the_mean_of_their_buckets(seed, n_hashes, k):
    random = np.random.default_rng(seed)
    scores = random.integers(0, 4, (n_hashes, 3, 5)).astype(np.float32)  # with ties
    buckets = random.integers(0, 5, (n_hashes, 8)).astype(np.int32)
    ids, found = np.empty((3, k), np.int32), np.empty((3, k), np.float32)
    arrays = read_only(scores, np.float32), read_only(buckets, np.int32)
    best_hashed_labels(*arrays, 0, 3, ids, found)
    for point in range(3):
        means = np.mean([scores[h, point, buckets[h]] for h in range(n_hashes)], axis=0)
        order = np.lexsort((np.arange(8), -means))[:k]
        assert ids[point].tolist() == order.tolist() + [-1] * (k - len(order))
        np.testing.assert_allclose(found[point, : len(order)], means[order], rtol=1e-6)
        assert (found[point, len(order) :] == -np.inf).all()


WORDS = st.sampled_from(["red", "wine", "car", "old", "unheard"])


@few
@given(st.lists(st.lists(WORDS, max_size=8), min_size=1, max_size=5), st.integers(1, 10))
def test_words_come_in_the_order_of_the_text(texts, n_words):
    vectorizer = TextVectorizer(min_df=1).fit(["red wine", "old car"])
    joined = [" ".join(words) for words in texts]
    found = words_in_table(vectorizer.to_arrays()["table"], joined, n_words)
    spelled = [[vectorizer.token(word) for word in row if word >= 0] for row in found]
    assert spelled == [[w for w in words if w != "unheard"][:n_words] for words in texts]
    assert found.shape[1] == max(len(row) for row in spelled)


@pytest.mark.parametrize("char_ngrams", [None, (3, 5)])
def test_other_tokens_are_not_among_the_words(char_ngrams):
    vectorizer = TextVectorizer(word_ngrams=2, char_ngrams=char_ngrams, min_df=1)
    vectorizer.fit(["red wine", "red car"])
    (row,) = words_in_table(vectorizer.to_arrays()["table"], ["Red, red car"], 9)
    assert [vectorizer.token(word) for word in row] == ["red", "red", "car"]


def test_as_many_words_as_there_are_take_no_memory_for_those_that_might_be():
    texts = ["red wine, old car"] * 1499 + ["red " * 50]
    vectorizer = TextVectorizer(min_df=1).fit(texts)
    tracemalloc.start()
    try:
        words = words_in_table(vectorizer.to_arrays()["table"], texts, 2**16)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert words.shape == (1500, 50)
    assert (words >= 0).sum(axis=1).tolist() == [4] * 1499 + [50]
    assert peak < 20e6  # not 400 MB


def test_words_without_spaces_are_all_read_whatever_is_beside_them():
    """Each character is a word, and any two neighbours are one: nearly twice as many as these."""
    vectorizer = TextVectorizer(char_ngrams=None, min_df=1).fit(["東京大学", "red wine"] * 3)
    for beside in ([], ["red"], ["red wine " * 20]):
        row = words_in_table(vectorizer.to_arrays()["table"], ["東京大学", *beside], 500)[0]
        words = [vectorizer.token(i) for i in row if i >= 0]
        assert words == ["東", "京", "東京", "大", "京大", "学", "大学"]
