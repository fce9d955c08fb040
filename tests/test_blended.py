"""The blended model as it serves: one text and a batch alike, saved and loaded alike."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail import LongtailClassifier
from longtail.blend.brevity import Brevity
from longtail.blend.encoded import EncodedScorer
from longtail.blend.label_head import LabelHead
from longtail.blend.rarity import told_scores
from longtail.compiled.blended import BlendedScorer
from longtail.compiled.expanded import expanded
from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.scoring import angle_logits
from longtail.row_store import AS_THEY_ARE, RowStore
from longtail.scorers.ranking import best_first
from small_comparisons import assert_same
from small_numbers import whole_numbers

# --------------------------------------------------------------------------------------- one head


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 9), st.integers(0, 12), st.integers(1, 40))
def test_angle_logits(seed, n, size, dimension):
    random = np.random.default_rng(seed)
    points, vectors = whole_numbers(seed, n, dimension), whole_numbers(seed + 1, 6, dimension)
    row_of_label = read_only(random.integers(-1, 6, 15), np.int32)
    bias, labels = (
        whole_numbers(seed + 2, 15),
        read_only(random.integers(-1, 15, (n, size)), np.int32),
    )
    logits = np.full((n, size), 77, np.float32)
    own = (AS_THEY_ARE.rows(vectors), row_of_label, bias, np.float32(4))
    angle_logits(points, *own, labels, 0, n, logits)
    of_label = np.where(row_of_label[:, None] >= 0, vectors[row_of_label], 0)
    expected = np.take_along_axis(4 * points @ of_label.T + bias, labels.astype(int), axis=1)
    np.testing.assert_array_equal(logits, np.where(labels >= 0, expected, 77))


def a_head(**changes):
    parts = {
        "rows": AS_THEY_ARE.rows(np.eye(3, 4, dtype=np.float32)),
        "row_of_label": np.array([2, -1, 0, 2]),
        "bias": np.arange(4, dtype=np.float32),
        "scale": 10.0,
    }
    return LabelHead(**parts | changes)


def test_a_head_says_0_of_padding_and_its_bias_of_a_label_without_a_vector():
    points = np.array([[0, 0, 1, 0]], np.float32)
    logits = a_head().logits(points, np.array([[0, 1, 2, 3, -1]], np.int32))
    assert logits.tolist() == [[10, 1, 2, 13, 0]]


@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_a_head_says_what_its_stored_vectors_say(dtype):
    random = np.random.default_rng(0)
    vectors = random.standard_normal((9, 6)).astype(np.float32)
    head = LabelHead.of(vectors, random.standard_normal(9), 16.0, RowStore(dtype))
    assert head.rows.values.nbytes < vectors.nbytes
    points, labels = random.standard_normal((5, 6)), random.integers(0, 9, (5, 4))
    said = 16 * points @ head.vectors.T + head.bias
    found = head.logits(points, labels.astype(np.int32))
    np.testing.assert_allclose(found, np.take_along_axis(said, labels, axis=1), rtol=1e-4)
    np.testing.assert_allclose(head.vectors, vectors, atol=0.02)


def test_a_row_of_zeros_says_nothing():
    vectors = np.eye(3, 4, dtype=np.float32)
    vectors[1] = 0
    assert LabelHead.of(vectors, np.zeros(3), 20.0).row_of_label.tolist() == [0, -1, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {"row_of_label": np.array([2, -1, 3, 2])},
        {"row_of_label": np.array([2, -2, 0, 2])},
        {"row_of_label": np.array([2, -1, 0])},
        {"bias": np.zeros(5)},
        {"rows": AS_THEY_ARE.rows(np.eye(2, 4))},
    ],
)
def test_a_head_refuses_arrays_that_do_not_fit(changes):
    with pytest.raises(InputError, match=r"A label head of \d labels needs the row of each"):
        a_head(**changes)


# -------------------------------------------------------------------------------- the whole model

WORDS = ["wine", "beer", "cars", "buses", "roses", "oaks", "trains", "ferns"]


def texts_and_labels(n=240):
    """Two words a text, noise, and both words as labels; the last words are rare."""
    random = np.random.default_rng(0)
    share = np.arange(len(WORDS), 0, -1)
    pairs = [random.choice(len(WORDS), 2, p=share / share.sum()) for _ in range(n)]
    texts = [f"{WORDS[a]} {WORDS[b]} noise{random.integers(30)}" for a, b in pairs]
    return texts, [sorted({WORDS[a], WORDS[b]}) for a, b in pairs]


TEXTS, NAMES = texts_and_labels()
SETTINGS = {"dimension": 16, "n_threads": 1, "storage": "float32"}


def of_texts():
    model = LongtailClassifier(**SETTINGS).fit(TEXTS, NAMES).predictor_
    ids = [{model.label_space.id_of(name) for name in names} for names in NAMES]
    return expanded(model.scorer), model.bags([*TEXTS[:40], "???"]), ids


def of_features():
    every = {token: i for i, token in enumerate(sorted({t for x in TEXTS for t in x.split()}))}
    features = np.zeros((len(TEXTS), len(every) + 1), np.float32)
    for row, text in zip(features, TEXTS, strict=True):
        row[[every[token] for token in text.split()]] = 1
    ids = [[WORDS.index(name) for name in names] for names in NAMES]
    model = LongtailClassifier(**SETTINGS).fit(csr_array(features), ids).predictor_
    bags = model.bags(csr_array(np.concatenate([features[:40], 0 * features[:1]])))
    return expanded(model.scorer), bags, ids


@pytest.fixture(scope="module", params=[of_texts, of_features])
def served(request):
    """A scorer with relations or without, and bags, the last of which holds nothing."""
    scorer, bags, ids = request.param()
    assert (scorer.relations is not None) == (request.param is of_texts)
    best = scorer.top_k(bags, 1)[0][:40, 0].tolist()
    assert sum(label in own for label, own in zip(best, ids, strict=False)) > 35
    return scorer, bags


def rebuilt(scorer, **changes):
    """The scorer made again from its arrays, some of them changed."""
    arrays = scorer.to_arrays()
    for name, change in changes.items():
        arrays[name] = change(arrays[name])
    return BlendedScorer.from_parts(json.loads(json.dumps(scorer.config())), arrays)


class TestServing:
    def test_one_text_and_a_batch_get_the_same_bits(self, served):
        scorer, bags = served
        whole = scorer.top_k(bags, 5)
        assert_same(scorer.top_k(bags, 5, n_threads=3), whole)
        for row in range(bags.n_rows):
            alone = scorer.top_k(bags.rows(row, row + 1), 5)
            assert_same(alone, [part[[row]] for part in whole])

    def test_the_compiled_call_says_what_the_parts_say(self, served):
        scorer, bags = served
        evidence = scorer.evidence(bags)
        scores = scorer.network.scores(evidence) + scorer.tail_weights[evidence.labels]
        brevity = Brevity(*scorer.network.brevity.tolist())
        assert not brevity.is_none
        ids, ranked = best_first(evidence.labels, scores, 5)
        share = scorer.network.for_order.item()
        expected = told_scores(ids, ranked, scorer.tail_weights, share)
        expected = brevity.lowered(expected, np.diff(bags.row_starts))
        found, answered = scorer.top_k(bags, 5)
        # Points that are equally near but for rounding may change places, and vote in their turn.
        assert np.isclose(answered, expected, rtol=1e-4, atol=1e-4).mean() > 0.95
        np.testing.assert_allclose(answered, expected, atol=0.5)
        assert (found == ids).mean() > 0.98  # equal scores may change places
        around = EncodedScorer(encoder=scorer.encoder, **scorer.parts())
        assert_same(around.top_k(bags, 5), (ids, expected))

    def test_labels_are_searched_by_the_logits_of_the_first_head(self, served):
        scorer, bags = served
        points = scorer.encoder.encode(bags)[:40]
        labels = np.tile(np.arange(len(WORDS), dtype=np.int32), (40, 1))
        logits = scorer.heads[0].logits(points, labels)
        rows, _ = scorer.search.label_index.query(points, 4)
        best = np.take_along_axis(logits, scorer.search.label_of_row[rows], axis=1)
        np.testing.assert_allclose(best, -np.sort(-logits, axis=1)[:, :4], atol=1e-4)

    def test_near_points_of_a_blend_around_any_encoder(self, served):
        scorer, bags = served
        around = EncodedScorer(encoder=scorer.encoder, **scorer.parts())
        near, similarities = around.near_points(bags.rows(0, 1), 3)
        assert len(near) == 3
        np.testing.assert_allclose(
            similarities, scorer.near_points(bags.rows(0, 1), 3)[1], atol=1e-5
        )
        assert not len(around.near_points(bags.rows(40, 41), 3)[0])  # a bag of nothing

    def test_labels_that_are_linked_to_what_a_text_names_are_candidates(self, served):
        scorer, bags = served
        if scorer.relations is None:
            return
        sizes = replace(scorer.search.sizes, n_near_labels=1, n_near_points=0, n_voted=0)
        search = replace(scorer.search, sizes=sizes, popular=scorer.search.popular[:0])
        n = scorer.relations.texts.n_labels  # linked in a ring
        relations = replace(
            scorer.relations,
            link_starts=np.arange(n + 1),
            link_labels=np.roll(np.arange(n), 1),
            link_weights=np.ones(n),
        )
        few = replace(scorer, search=search, relations=relations)
        matches = relations.matches(bags)
        linked = relations.linked(matches)
        found = few.evidence(bags).labels
        for named, own, labels in zip(matches.labels, linked, found, strict=True):
            assert {*named.tolist(), *own.tolist()} <= {*labels.tolist(), -1}
        assert (linked >= 0).any()

    def test_links_of_labels_that_may_be_a_points_own_count_less_once_compiled(self, served):
        scorer, _ = served
        if scorer.relations is None:
            return
        taken = np.linspace(0, 1, scorer.relations.texts.n_labels)
        relations = replace(scorer.relations, taken=taken)
        assert (relations.vote_weights < relations.link_weights).any()
        again = expanded(replace(scorer, relations=relations).compiled).relations
        np.testing.assert_array_equal(again.vote_weights, relations.vote_weights)

    def test_a_pickle_holds_no_more_once_it_has_answered(self, served):
        scorer, bags = served
        fresh = replace(scorer)
        size = len(pickle.dumps(fresh))
        fresh.top_k(bags, 5)
        assert len(pickle.dumps(fresh)) == size

    def test_saved_and_loaded_gives_the_same_bits(self, served, tmp_path):
        scorer, bags = served
        arrays = {}
        for i, (name, array) in enumerate(scorer.to_arrays().items()):
            np.save(tmp_path / f"{i}.npy", array)
            arrays[name] = np.load(tmp_path / f"{i}.npy", mmap_mode="r")
        again = BlendedScorer.from_parts(json.loads(json.dumps(scorer.config())), arrays)
        assert_same(again.top_k(bags, 8), scorer.top_k(bags, 8))
        assert again.config() == scorer.config()
        assert_same(again.to_arrays().values(), scorer.to_arrays().values())

    def test_a_bag_of_nothing_gets_no_labels(self, served):
        scorer, bags = served
        ids, scores = scorer.top_k(bags, 3)
        assert (ids[-1] == -1).all()
        assert np.isneginf(scores[-1]).all()
        assert (ids[:-1] >= 0).any(axis=1).all()

    def test_no_bags(self, served):
        scorer, bags = served
        ids, scores = scorer.top_k(bags.rows(0, 0), 3)
        assert ids.shape == scores.shape == (0, 3)

    def test_evidence_holds_what_each_source_says(self, served):
        scorer, bags = served
        evidence = scorer.evidence(bags)
        points = scorer.encoder.encode(bags)
        real = evidence.labels >= 0
        assert evidence.values.shape == (bags.n_rows, scorer.n_sources, evidence.labels.shape[1])
        n_heads = len(scorer.heads)
        said = [head.logits(points, evidence.labels) for head in scorer.heads]
        read = bags if scorer.is_read is None else bags.kept(scorer.is_read)
        said.append(scorer.linear.logits(read, evidence.labels))
        for source, expected in enumerate(said):
            np.testing.assert_array_equal(evidence.values[:, source][real], expected[real])
        assert (evidence.values[:, n_heads + 1][real] > 0).any()  # votes of near points
        assert not evidence.values.transpose(0, 2, 1)[~real].any()

    def test_tail_weights_lift_labels(self, served):
        scorer, bags = served
        label = int(scorer.commonness.argmin())
        weights = np.zeros(scorer.search.n_labels, np.float32)
        weights[label] = 1000
        lifted = replace(scorer, tail_weights=weights)
        is_candidate = (scorer.evidence(bags).labels == label).any(axis=1)
        ids, scores = lifted.top_k(bags, 8)
        assert is_candidate.any()
        assert (ids[is_candidate, 0] == label).all()
        before = scorer.top_k(bags, 8)[1]
        assert (np.isneginf(scores) == np.isneginf(before)).all()


class TestRefusals:
    @pytest.mark.parametrize(
        "name", ["labels/commonness", "labels/tail_weights", "head0/bias", "linear/bias"]
    )
    def test_parts_of_other_labels(self, served, name):
        scorer, _ = served
        with pytest.raises(InputError, match=r"do not belong|needs the row|need one more start"):
            rebuilt(scorer, **{name: lambda array: array[:-1]})

    def test_parts_of_other_tokens_or_dimensions(self, served):
        scorer, _ = served
        with pytest.raises(InputError, match="parts of a blended model do not belong together"):
            rebuilt(scorer, **{"encoder/token_vectors": lambda table: table[:, :-1]})
        if scorer.relations is not None:
            with pytest.raises(InputError, match="parts of a blended model do not belong"):
                rebuilt(scorer, **{"encoder/token_vectors": lambda table: table[:-1]})

    def test_classifiers_of_negative_features_or_falling_starts(self, served):
        scorer, _ = served
        with pytest.raises(InputError, match="features that are not negative"):
            rebuilt(scorer, **{"linear/features": lambda features: features * 0 - 1})
        with pytest.raises(InputError, match="starts that rise from 0"):
            rebuilt(
                scorer, **{"linear/starts": lambda starts: starts * (np.arange(len(starts)) != 2)}
            )

    def test_a_feature_out_of_its_order_stays_in_bounds(self, served):
        scorer, bags = served
        scorer = rebuilt(scorer, **{"linear/features": lambda features: features[::-1].copy()})
        assert np.isfinite(scorer.evidence(bags).values).all()

    @pytest.mark.parametrize("name", ["centre", "bias1", "matrix1", "matrix2", "last"])
    def test_layers_that_do_not_fit_together(self, served, name):
        scorer, _ = served
        with pytest.raises(InputError, match="layers of a score network do not fit together"):
            rebuilt(scorer, **{f"network/{name}": lambda array: array[:-1]})

    def test_a_network_of_other_sources(self, served):
        scorer, bags = served
        fewer = replace(scorer, network=type(scorer.network).of_source(0, scorer.n_sources - 1))
        with pytest.raises(InputError, match=r"not what \d sources have"):
            fewer.top_k(bags, 3)
