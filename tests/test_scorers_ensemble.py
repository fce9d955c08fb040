"""The mean of several models."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data.bags import Bags
from longtail.restoring import scorer_from
from longtail.scorers.ensemble import EnsembleScorer
from longtail.scorers.one_vs_rest import OneVsRestScorer
from longtail.scorers.sparse_label_vectors import SparseLabelVectors

N_LABELS = 12


@dataclass
class Member:
    """A model whose answers are given."""

    ids: np.ndarray
    scores: np.ndarray

    def top_k(self, bags, k, n_threads=1):
        ids = np.full((len(self.ids), k), -1, np.int32)
        scores = np.full(ids.shape, -np.inf, np.float32)
        n = min(k, self.ids.shape[1])
        ids[:, :n] = self.ids[:, :n]
        scores[:, :n] = self.scores[:, :n]
        return ids, scores


def member(seed, n_rows, size):
    """Distinct labels a row, some rows shorter than others."""
    random = np.random.default_rng(seed)
    ids = np.argsort(random.random((n_rows, N_LABELS)), axis=1)[:, :size].astype(np.int32)
    scores = np.sort(random.integers(1, 99, ids.shape))[:, ::-1].astype(np.float32) / 128
    padding = np.arange(size) >= random.integers(0, size + 1, (n_rows, 1))
    return Member(np.where(padding, -1, ids), np.where(padding, -np.inf, scores))


def bags_of(n_rows):
    return Bags(np.zeros(n_rows + 1, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999), st.integers(0, 6), st.integers(1, 4), st.integers(1, N_LABELS))
def test_is_the_mean_with_zero_for_what_a_member_leaves_out(seed, n_rows, n_members, k):
    members = tuple(member(seed + i, n_rows, 7) for i in range(n_members))
    ids, scores = EnsembleScorer(members, n_candidates=9).top_k(bags_of(n_rows), k)
    for row in range(n_rows):
        totals = {}
        for each in members:
            for label, score in zip(each.ids[row], each.scores[row], strict=True):
                if label >= 0:
                    totals[int(label)] = totals.get(int(label), 0) + float(score)
        best = sorted(totals, key=lambda label: (-totals[label], label))[:k]
        assert ids[row].tolist() == best + [-1] * (k - len(best))
        expected = [totals[label] / n_members for label in best] + [-np.inf] * (k - len(best))
        np.testing.assert_allclose(scores[row], expected, rtol=1e-6)


def test_scores_are_shares_where_those_of_all_members_are():
    plain, share = member(0, 1, 3), member(1, 1, 3)
    share.scores_are_shares = True
    for members, expected in (((share, share), True), ((share, plain), False)):
        assert EnsembleScorer(members).scores_are_shares == expected


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999), st.integers(0, 6), st.integers(1, 4))
def test_who_asks_for_more_labels_gets_them_behind_those_of_fewer(seed, n_rows, n_members):
    members = tuple(member(seed + i, n_rows, 7) for i in range(n_members))
    ensemble = EnsembleScorer(members, n_candidates=3)
    every, scores = ensemble.top_k(bags_of(n_rows), N_LABELS)
    for k in range(1, 4):
        np.testing.assert_array_equal(ensemble.top_k(bags_of(n_rows), k)[0], every[:, :k])
    for row in range(n_rows):
        answered = every[row][every[row] >= 0]
        expected = np.unique(np.concatenate([each.ids[row] for each in members]))
        assert sorted(answered) == expected[expected >= 0].tolist()
        assert (np.diff(scores[row][: len(answered)]) <= 0).all()


def test_what_members_share_is_stored_once_and_shared_again():
    own = SparseLabelVectors(np.arange(3), np.arange(2), np.ones(2), np.zeros(2))
    member = OneVsRestScorer.of(np.array([5, 8], np.int32), own)
    ensemble = EnsembleScorer((member, member))
    assert len(ensemble.to_arrays()) == len(member.to_arrays())
    config = json.loads(json.dumps(ensemble.config()))
    again = scorer_from(config, ensemble.to_arrays())
    bag = Bags.one(np.arange(2, dtype=np.int32), np.array([1, 0.5], np.float32))
    assert again.top_k(bag, 3)[0].tolist() == ensemble.top_k(bag, 3)[0].tolist() == [[5, 8, -1]]
