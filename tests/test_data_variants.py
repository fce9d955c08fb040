"""Variants of a text are told from the variants that catalogues have, and from classes and logs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail.data.rows import unit_rows
from longtail.data.variants import MOST_ALIKE, groups_of_variants
from longtail.estimators.holding_out import held_out_rows

N_TEXTS, N_WORDS, N_KNOWN, N_LABELS = 120, 8, 1_500, 30


def varied(n_variants, seed=0, n_texts=N_TEXTS):
    """Texts of seven words; variants lack one of these, and have one of another text."""
    random = np.random.default_rng(seed)
    text_of = np.repeat(np.arange(n_texts), n_variants)
    words = random.integers(N_KNOWN, size=(n_texts, N_WORDS))[text_of]
    words[:, 0] = random.integers(N_KNOWN, size=len(text_of))
    is_said = np.ones(words.shape, bool)
    is_said[np.arange(len(text_of)), random.integers(1, N_WORDS, len(text_of))] = False
    rows = np.nonzero(is_said)[0]
    counts = csr_array(
        (np.ones(len(rows), np.float32), (rows, words[is_said])), shape=(len(text_of), N_KNOWN)
    )
    return unit_rows(counts), text_of


def labels_of(text_of, seed=1):
    """Two labels for each text, some of which many have."""
    random = np.random.default_rng(seed)
    own = random.zipf(1.5, size=(text_of.max() + 1, 2)) % N_LABELS
    matrix = np.zeros((len(text_of), N_LABELS), np.float32)
    np.put_along_axis(matrix, own[text_of], 1, axis=1)
    return csr_array(matrix)


@pytest.mark.parametrize("n_variants", [3, 10, np.random.default_rng(0).integers(3, 12, N_TEXTS)])
def test_variants_of_a_text_are_a_group_and_are_held_out_together(n_variants):
    points, text_of = varied(n_variants)
    shuffled = np.random.default_rng(2).permutation(len(text_of))
    points, text_of = points[shuffled], text_of[shuffled]
    labels = labels_of(text_of)
    groups = groups_of_variants(points, labels)
    texts_of_groups = {tuple(np.unique(text_of[groups == g])) for g in range(groups.max() + 1)}
    assert len(texts_of_groups) >= 0.95 * N_TEXTS  # two texts may be alike by chance
    train, held = held_out_rows(points, labels, len(text_of) / 5, seed=0, bags=points)
    assert len(held) > len(text_of) / 8
    assert len(np.intersect1d(text_of[train], text_of[held])) <= 0.05 * N_TEXTS
    apart = held_out_rows(points, labels, len(text_of) / 5, seed=0)[1]  # who does not look
    assert len(np.unique(text_of[apart])) > 2 * len(np.unique(text_of[held]))


def test_data_that_is_not_made_of_variants_has_no_groups():
    points, text_of = varied(10)
    labels = labels_of(text_of)
    single, text_of_single = varied(1, n_texts=600)
    assert groups_of_variants(single, labels_of(text_of_single)) is None
    exact = points[text_of * 10]  # the same again and again, as in a log
    assert groups_of_variants(exact, labels) is None
    third = np.flatnonzero((text_of % 3 > 0) | (np.arange(len(text_of)) % 10 == 0))
    more, text_of_more = varied(1, seed=5, n_texts=200)
    some = csr_array(np.concatenate([points[third].toarray(), more.toarray()]))
    of_some = np.concatenate([text_of[third], text_of_more + N_TEXTS])
    assert groups_of_variants(some, labels_of(of_some)) is None  # a fifth stands alone
    other = labels_of(np.arange(len(text_of)))  # near, but with labels of their own
    assert groups_of_variants(points, other) is None
    assert groups_of_variants(points[:300], labels[:300]) is None  # thirty texts
    none = csr_array((len(text_of), N_LABELS), dtype=np.float32)
    assert groups_of_variants(points, none) is None


def test_groups_that_are_what_labels_are_lose_no_label():
    points, text_of = varied(10)
    labels = csr_array(np.eye(N_TEXTS, dtype=np.float32)[text_of])
    assert groups_of_variants(points, labels) is not None
    train, held = held_out_rows(points, labels, 240, seed=0, bags=points)
    assert len(held)
    assert set(text_of[held]) <= set(text_of[train])


def test_points_of_a_large_class_are_left_alone():
    points, text_of = varied(20)
    labels = csr_array(np.ones((len(text_of), 1), np.float32))
    assert len(text_of) > MOST_ALIKE
    assert groups_of_variants(points, labels) is None
    few = slice(None, MOST_ALIKE)
    assert groups_of_variants(points[few], labels[few]) is not None


def test_unlabelled_points_are_groups_of_their_own():
    points, text_of = varied(10)
    labels = labels_of(text_of).toarray()
    labels[:100] = 0
    groups = groups_of_variants(points, csr_array(labels))
    assert len(np.unique(groups[:100])) == 100
    assert not np.intersect1d(groups[:100], groups[100:]).size
