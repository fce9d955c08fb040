"""Labels that follow a point's candidates: the kernel against plain numpy, and what users see."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import longtail
from longtail import Dataset, LongtailClassifier
from longtail.compiled.parts import most_frequent
from longtail.kernels.answer_parts import Head
from longtail.kernels.arrays import read_only
from longtail.kernels.code_search import excess_of, log_nodes, node_of, walk_graph
from longtail.kernels.coded_graph import CodedGraph, new_walk
from longtail.kernels.further_labels import LEAST_STEP, largest_biases, write_further
from longtail.kernels.packed_codes import pack_rows
from longtail.kernels.packed_ids import pack_ids
from longtail.kernels.rows import Rows, quantise
from longtail.restriction import Restriction
from small_graphs import random_graph

DIMENSION, N_LABELS, N_NODES = 64, 40, 30
NO_SCALES = read_only(np.zeros(0), np.float32)

# -------------------------------------------------------------------------------------- the kernel


def labels_with_vectors(random, *, is_biased):
    """A graph of the vectors of 30 of 40 labels, which of them each row is, and their head."""
    vectors = read_only(random.standard_normal((N_NODES, DIMENSION)), np.float32)
    codes, step = pack_rows(vectors)
    every = read_only(np.arange(N_NODES + 1), np.int32)
    rows, neighbours = Rows(vectors, NO_SCALES), random_graph(random, N_NODES, 3)
    graph = CodedGraph(
        read_only(codes, np.uint8),
        read_only(step, np.float32),
        rows,
        read_only(pack_ids(neighbours.reshape(-1), N_NODES), np.uint8),
        read_only(random.permutation(N_NODES)[:3], np.int32),
        every,
        read_only(every[:-1], np.int32),
        read_only(random.standard_normal(N_NODES if is_biased else 0), np.float32),
    )
    label_of_row = read_only(random.permutation(N_LABELS)[:N_NODES], np.int32)
    row_of_label = np.full(N_LABELS, -1)
    row_of_label[label_of_row] = np.arange(N_NODES)
    bias = read_only(random.standard_normal(N_LABELS), np.float32)
    head = Head(rows, read_only(row_of_label, np.int32), bias, np.float32(8))
    return graph, label_of_row, head


@njit
def run(*arguments):
    return write_further(*arguments)


@njit
def log_rows(query, scale, graph, rows, walk):
    log_nodes(query, scale, graph, rows, len(rows), walk)


def further_twin(similarities, head, head_scale, votes, frequent, worst, size):
    """Ids and scores of the labels that follow candidates, which have votes below 0."""
    met = [label for label in range(N_LABELS) if votes[label] >= 0]
    met = [label for label in met if votes[label] > 0 or label in similarities]
    own = {
        label: np.float32(head_scale * similarities.get(label, np.float32(0)))
        + head.bias[label]
        + votes[label]
        for label in met
    }
    ids = sorted(own, key=lambda label: (-own[label], label))
    raw = [own[label] for label in ids]
    unmet = [label for label in frequent.tolist() if votes[label] == 0 and label not in own]
    raw += [raw[-1] if raw else np.float32(0)] * len(unmet)
    scores, above, before = [], worst, None
    for value in raw[:size]:
        fall = np.float32(0) if before is None else before - value
        above -= max(fall, LEAST_STEP * (1 + abs(above)))
        scores.append(above)
        before = value
    return [*ids, *unmet][:size], scores


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 45),
    n_starts=st.integers(1, 5),
    share=st.sampled_from([1, 0.5]),
    is_biased=st.booleans(),
)
def test_write_further(seed, size, n_starts, share, is_biased):
    random = np.random.default_rng(seed)
    graph, label_of_row, head = labels_with_vectors(random, is_biased=is_biased)
    head_scale = np.float32(share * head.scale)
    query = np.zeros(DIMENSION, np.int8)
    point = read_only(random.standard_normal(DIMENSION), np.float32)
    scale = np.float32(quantise(point, query))  # else all is compiled for another type
    starts = np.zeros(n_starts, np.int32)
    walk = new_walk(graph, 8, n_starts, n_logged=N_NODES)
    walk_graph(query, scale, graph, starts, 0, walk)
    n_candidates, n_voted = random.integers(1, 6), random.integers(0, 12)
    votes, met = np.zeros(N_LABELS, np.float32), np.zeros(N_LABELS, np.int32)
    met[:n_voted] = random.permutation(N_LABELS)[:n_voted]
    votes[met[:n_voted]] = random.random(n_voted) + 0.1
    candidates = random.permutation(N_LABELS)[:n_candidates]
    votes[candidates] = -1
    frequent = read_only(random.permutation(N_LABELS)[: random.integers(1, N_LABELS)], np.int32)
    was, k = votes.copy(), n_candidates + size
    ids, scores = np.full(k, -1, np.int32), np.full(k, -np.inf, np.float32)
    ids[:n_candidates], scores[:n_candidates] = candidates, -np.sort(random.random(n_candidates))
    node_bias = np.zeros(N_NODES, np.float32)
    largest_biases(graph, label_of_row, head.bias, node_bias)
    np.testing.assert_array_equal(node_bias, head.bias[label_of_row])
    node_bias = read_only(node_bias, np.float32)
    n_met = run(
        *(query, scale, graph, walk, starts, label_of_row, head, head_scale, node_bias, frequent),
        *(votes, met, n_voted, n_candidates, ids, scores),
    )
    rows = head.row_of_label[met[:n_voted]]
    log_rows(query, scale, graph, rows[rows >= 0], walk)  # what was compared without a note
    excess = excess_of(query)
    similarities = {}
    for key in walk.log[1 : 1 + walk.log[0]]:
        node = node_of.py_func(key)
        steps = np.int32(graph.bias[node] / (scale * graph.step[0])) if is_biased else 0
        own = (np.float32((key >> 32) - steps) - excess) * scale * graph.step[0]
        similarities[int(label_of_row[node])] = own
    compared = {*met[:n_voted].tolist(), *frequent.tolist()}
    assert {label for label in compared if head.row_of_label[label] >= 0} <= set(similarities)
    assert len(set(met[:n_met].tolist())) == n_met
    assert (votes[was == 0] != 0).sum() == n_met - n_voted  # all that is to be forgotten is listed
    worst = scores[n_candidates - 1]
    expected, own = further_twin(similarities, head, head_scale, was, frequent, worst, size)
    n = len(expected)
    assert ids[n_candidates:].tolist() == expected + [-1] * (size - n)
    np.testing.assert_allclose(scores[n_candidates : n_candidates + n], own, rtol=1e-4, atol=1e-5)
    assert np.isneginf(scores[n_candidates + n :]).all()
    assert (np.diff(scores[: n_candidates + n][n_candidates - 1 :]) < 0).all()


def test_the_most_frequent_labels():
    commonness = read_only(np.array([0, 2, 1, 2, 0, 3]), np.float32)
    assert most_frequent(commonness).tolist() == [5, 1, 3, 2]  # what has no point is none
    assert most_frequent(commonness[:0]).tolist() == []


# --------------------------------------------------------------------------------------- the model

N_KNOWN, FEW = 120, 5


@pytest.fixture(scope="module", params=["float32", "int8"])
def model(request, tmp_path_factory):
    """A model of 120 labels, of which a point has some 30 candidates; one has no training point."""
    random = np.random.default_rng(0)
    names = [f"word{i}" for i in range(N_KNOWN)]
    own = random.integers(0, N_KNOWN, (600, 3))
    own[:N_KNOWN, 0] = np.arange(N_KNOWN)
    texts = [" ".join(names[i] for i in row) for row in own]
    labels = [sorted({names[i] for i in row}) for row in own]
    settings_ = {"dimension": 16, "epochs": 2, "n_threads": 1, "n_near_labels": FEW, "n_voted": FEW}
    trained = LongtailClassifier(**settings_, storage=request.param).fit(texts, labels).predictor_
    path = tmp_path_factory.mktemp("further") / "model"
    trained.with_labels(["word1 word2"]).save(path)
    return longtail.load(path)


TEXTS = ["word1 word2 word3", "word7", "word11 word90 word90", "nothing of it", ""]


def test_who_asks_for_all_labels_gets_each_once(model):
    ids, probabilities = model.predict_topk(TEXTS, N_KNOWN + 3)
    n_candidates = (model.scorer.candidates(model.bags(TEXTS))[0] >= 0).sum(axis=1)
    assert (n_candidates[:3] < N_KNOWN // 2).all()
    every = np.arange(N_KNOWN + 1)
    np.testing.assert_array_equal(np.sort(ids[:3, :-2], axis=1), [every] * 3)
    assert (ids[:, -2:] == -1).all()
    assert (ids[4] == -1).all()  # nothing is known of this text
    known = probabilities[:3, :-2]
    assert ((known >= 0) & (known <= 1)).all()
    assert (np.diff(known, axis=1) <= 0).all()


def test_candidates_are_what_they_were_and_come_first(model):
    bags = model.bags(TEXTS)
    candidates, scores = model.scorer.candidates(bags)
    ids, all_scores = model.scorer.top_k(bags, N_KNOWN)
    for row in range(3):
        n = (candidates[row] >= 0).sum()
        np.testing.assert_array_equal(ids[row, :n], candidates[row, :n])
        np.testing.assert_array_equal(all_scores[row, :n], scores[row, :n])
        assert (np.diff(all_scores[row, n - 1 :]) < 0).all()
        assert np.isfinite(all_scores[row]).all()


def test_a_short_answer_is_the_beginning_of_a_long_one(model):
    ids, probabilities = model.predict_topk(TEXTS, N_KNOWN)
    for k in (1, 5, 12, 31, 50, 100):
        some, own = model.predict_topk(TEXTS, k)
        np.testing.assert_array_equal(some, ids[:, :k])
        np.testing.assert_array_equal(own, probabilities[:, :k])


def test_one_text_is_its_row_of_a_batch(model):
    ids, probabilities = model.predict_topk(TEXTS * 3, 100, n_threads=2)
    for i, text in enumerate(TEXTS * 3):
        one, own = model.predict_topk([text], 100)
        np.testing.assert_array_equal(one[0], ids[i])
        np.testing.assert_array_equal(own[0], probabilities[i])


N_WORDS, N_ALIKE = 200, 60


@pytest.fixture(scope="module")
def model_of_names():
    """A model of 260 labels, of which a point may have some 50 candidates; 60 have no point."""
    random = np.random.default_rng(0)
    own = random.integers(0, N_WORDS, (600, 2))
    texts = [" ".join(f"word{i}" for i in row) for row in own]
    labels = [sorted({f"word{i}" for i in row}) for row in own]
    names = [f"word{i}" for i in range(N_WORDS)] + [f"gadget {i}" for i in range(N_ALIKE)]
    dataset = Dataset.of(texts, labels, label_texts={name: name for name in names})
    settings_ = {"dimension": 16, "epochs": 2, "n_threads": 1, "n_near_labels": FEW, "n_voted": FEW}
    return LongtailClassifier(**settings_).fit_dataset(dataset).predictor_


def test_labels_without_points_follow_by_their_texts(model_of_names):
    scorer = model_of_names.scorer
    bags = model_of_names.bags(["word1 word2 word3 word4 gadget", "word1 word2"])
    before, after = (scorer.with_further_scales(16.0, scale) for scale in (0.0, 40.0))
    k = (before.candidates(bags)[0][0] >= 0).sum() + N_ALIKE
    first, second = (one.top_k(bags, k)[0] for one in (before, after))
    np.testing.assert_array_equal(first[:, :10], second[:, :10])
    assert (first[0] >= N_WORDS).sum() < (second[0] >= N_WORDS).sum() == N_ALIKE
    ids, scores = after.top_k(bags, 120)
    for row in range(2):  # in a batch as alone, the first ones as those of a shorter answer
        one = after.top_k(bags.rows(row, row + 1), 90)
        np.testing.assert_array_equal(one[0][0], ids[row, :90])
        np.testing.assert_array_equal(one[1][0], scores[row, :90])
        known = ids[row][ids[row] >= 0]
        assert len(set(known.tolist())) == len(known)


def test_labels_that_are_masked_make_room_for_others(model):
    every = model.predict(TEXTS[0], k=100)
    masked = [name for name, _ in every[:80:8]]
    held = model.predict(TEXTS[0], k=90, masked=masked)
    assert held == [pair for pair in every if pair[0] not in masked]
    restriction = Restriction.of(model.label_space, None, masked)
    ids, own = model.predict_topk(TEXTS, 90, restriction=restriction)
    assert [model.label_space.name(i) for i in ids[0].tolist()] == [name for name, _ in held]
    assert own[0].tolist() == [probability for _, probability in held]


def test_allowed_labels_are_weighed_by_the_network_wherever_they_stand(model):
    last = [name for name, _ in model.predict(TEXTS[0], k=100)[-3:]]
    assert {name for name, _ in model.predict(TEXTS[0], k=100, allowed=last)} == set(last)


def test_a_long_answer_is_explained(model):
    explained = model.explain(TEXTS[0], k=60)
    assert len(explained.labels) == 60


def test_a_smaller_model_answers_all_of_its_labels(model):
    smaller = model.without_labels([f"word{i}" for i in range(0, N_KNOWN, 2)])
    ids, _ = smaller.predict_topk(["word1 word3"], smaller.n_labels)
    np.testing.assert_array_equal(np.sort(ids[0]), np.arange(smaller.n_labels))
