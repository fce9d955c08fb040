"""Points are held out where they teach what holds for others; else parts of points stand in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from longtail.data.dataset import Dataset
from longtail.data.label_space import LabelSpace
from longtail.data.point_input import InputKind, PointInput
from longtail.data.rows import unit_rows
from longtail.data.split import even_split, held_out_split
from longtail.data.text_column import TextColumn
from longtail.data.vectorizer import TextVectorizer
from longtail.estimators.holding_out import (
    LEAST_HELD_OUT,
    are_even,
    asked_in_part,
    can_hold_out,
    held_out_rows,
    in_fragments,
    n_in_part,
    shown_to_blend,
    text_in_part,
    unseen_if_any,
)
from longtail.estimators.splitting import split_data
from longtail.estimators.vocabulary import known_and_encoded
from longtail.recipes.dismec import DiSMEC
from longtail.recipes.longtail import LongtailClassifier
from longtail.training.run import TrainingData
from small_wordnet import whole_wordnet


def one_label_each(labels, n_labels=None):
    """A matrix of one label a point; -1 for none."""
    labels = np.asarray(labels)
    rows = np.flatnonzero(labels >= 0)
    shape = (len(labels), n_labels or labels.max() + 1)
    return csr_array((np.ones(len(rows), np.float32), (rows, labels[rows])), shape=shape)


def texts_of(n_points):
    """No two alike."""
    return TextColumn.from_strings(f"point number{i} of{i}" for i in range(n_points))


@given(st.floats(3, 12), st.integers(0, 10_000))
def test_numbers_by_chance_are_not_even_and_those_that_vary_half_as_much_are(rate, seed):
    numbers = np.random.default_rng(seed).poisson(rate, 20_000)
    assert not are_even(numbers)  # as all labels are equally frequent; less so, they vary more
    half = np.rint(numbers.mean() + (numbers - numbers.mean()) / 2).astype(int)
    assert are_even(np.maximum(half, 1))
    assert not are_even(np.full(50, 20))  # one more or less of so many tells nothing


@settings(deadline=None)  # the first call makes a table of characters
@given(st.lists(st.integers(1, 9), min_size=2, max_size=12), st.floats(0.05, 0.5))
def test_each_label_loses_its_share(numbers, fraction):
    labels = one_label_each(np.repeat(np.arange(len(numbers)), numbers))
    train, held = even_split(texts_of(labels.shape[0]), labels, fraction, seed=1)
    assert sorted([*train, *held]) == list(range(labels.shape[0]))
    expected = [max(round(fraction * n), 1) if n > 1 else 0 for n in numbers]
    assert labels[held].sum(axis=0).tolist() == expected


def test_points_without_labels_lose_their_share_too():
    labels = one_label_each([*(np.arange(30) % 10), *[-1] * 15])
    _, held = even_split(texts_of(45), labels, 0.3, seed=0)
    assert (held >= 30).sum() == 4
    assert labels[held].sum(axis=0).tolist() == [1.0] * 10


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_of_several_labels_none_loses_more_and_twins_stay_together(seed):
    random = np.random.default_rng(seed)
    words = random.integers(0, 25, 60)
    texts = [f"w{word}" for word in words]
    labels = csr_array(random_array((60, 8), density=0.2, rng=random))
    _, held = even_split(texts, labels, 0.3, seed)
    n_points_of = (labels.toarray() > 0).sum(axis=0)
    n_lost = (labels[held].toarray() > 0).sum(axis=0)
    assert (n_lost <= np.where(n_points_of > 1, np.maximum(np.rint(0.3 * n_points_of), 1), 0)).all()
    alike = np.bincount(words, minlength=25)
    alike[alike > 4] = 0  # asked often: split one by one
    lost = np.bincount(words[held], minlength=25)
    assert ((lost == 0) | (lost == alike) | (alike == 0)).all()


@pytest.mark.parametrize("seed", range(9))
def test_twins_that_are_too_many_leave_their_label_its_share(seed):
    texts = [*["one and the same"] * 4, "another", "a third", *texts_of(6)]
    labels = one_label_each([0] * 6 + [1] * 6)
    _, held = even_split(texts, labels, 0.2, seed)
    assert labels[held].sum(axis=0).tolist() == [1, 1]


def test_points_that_come_as_they_may_are_split_at_random():
    random = np.random.default_rng(0)
    labels = one_label_each(np.minimum(random.zipf(1.6, 600), 200) - 1)
    texts = texts_of(600)
    train, held = held_out_rows(texts, labels, 120, seed=3)
    expected = held_out_split(texts, 0.2, seed=3)
    np.testing.assert_array_equal(train, expected[0])
    np.testing.assert_array_equal(held, expected[1])


@pytest.mark.parametrize(
    ("labels", "n_wanted", "n_held_out"),
    [
        (np.arange(300), 60, 0),  # each has its own
        ([*np.arange(300), *range(90)], 78, 0),  # most have
        (np.minimum(np.random.default_rng(0).zipf(1.3, 300), 900), 60, 60),  # few alike, by chance
        (np.arange(300) % 100, 60, 100),  # three each: one goes
        ([*(np.arange(300) % 100), *range(100, 110)], 60, 100),  # of some there is one alone
        ([*(np.arange(200) % 100), *range(100, 140)], 48, 0),  # of too many there is
        (np.arange(300) % 100, 30, 0),  # many more than wanted would have to go
        (np.arange(300) % 100, 19, 0),  # next to none are wanted
        (np.arange(3_000) % 100, 300, 300),  # thirty each, and at random
        ([*np.arange(50), *[-1] * 50], 20, 0),  # unlabelled points share nothing
    ],
)
def test_examples_of_equal_number_lose_equally_or_none(labels, n_wanted, n_held_out):
    matrix = one_label_each(labels)
    train, held = held_out_rows(texts_of(matrix.shape[0]), matrix, n_wanted, seed=0)
    assert len(held) == n_held_out
    assert not set(train) & set(held)
    assert len(train) + len(held) == len(labels)
    if n_held_out == 100:
        assert matrix[held].sum(axis=0).max() == 1


def test_of_points_without_any_label_none_is_held_out():
    assert not can_hold_out(csr_array((100, 3)), 20)


def test_there_is_always_a_label_left_to_learn_from():
    """All points with labels are alike, so they are held out together, or not at all."""
    texts = [*texts_of(100), *["the same"] * 4]
    labels = csr_array(([1.0] * 5, ([100, 101, 102, 103, 103], [0, 0, 0, 0, 1])), (104, 2))
    for seed in range(8):
        train, held = held_out_rows(texts, labels, 52, seed)
        assert labels[train].nnz
        assert len(train) + len(held) == 104


def test_labels_known_by_texts_alone_are_learnt_to_be_found():
    labels = one_label_each(np.arange(300), n_labels=600)
    texts = texts_of(300)
    assert len(held_out_rows(texts, labels, 60, seed=0, reads_label_texts=True)[1]) == 60
    assert not len(held_out_rows(texts, labels, 60, seed=0)[1])
    fewer = one_label_each(np.arange(300), n_labels=400)
    assert not len(held_out_rows(texts, fewer, 60, seed=0, reads_label_texts=True)[1])


@pytest.mark.parametrize(
    ("numbers", "n_without", "n_parts"),
    [
        (np.ones(300), 300, 40),
        (np.ones(300), 9_999, 10),
        (np.full(300, 2), 100, 120),
        (np.full(300, 2), 1, 160),
        (np.full(300, 2), 0, 10),
        (np.random.default_rng(0).geometric(0.05, 500), 500, 0),
    ],
)
def test_parts_are_asked_beside_held_out_examples(numbers, n_without, n_parts):
    labels = np.repeat(np.arange(len(numbers)), numbers.astype(int))
    matrix = one_label_each(labels, n_labels=len(numbers) + n_without)
    assert n_in_part(matrix, 40, reads_label_texts=True) == n_parts
    assert n_in_part(matrix, 0, reads_label_texts=True) == 0
    assert n_in_part(matrix, 40) == (10 if n_parts else 0)
    assert n_in_part(matrix, 10_000, reads_label_texts=True) <= 2_500


@given(st.text(max_size=40), st.integers(0, 10_000), st.booleans())
def test_a_part_of_a_text_says_less_of_the_same(text, seed, few):
    part = text_in_part(text, np.random.default_rng(seed), few=few)
    words = text.split()
    if len(words) > 1:
        left = iter(words)
        assert part.split()
        assert all(word in left for word in part.split())  # in their order
    else:
        assert part in text
        assert bool(part) == bool(text)


def test_parts_are_drawn_again_in_the_same_way():
    parts = [
        [text_in_part("one two three four", np.random.default_rng(s)) for s in range(9)]
        for _ in range(2)
    ]
    assert parts[0] == parts[1]
    assert len(set(parts[0])) > 3


def test_parts_of_bags_are_of_unit_length():
    features = csr_array(random_array((50, 30), density=0.3, rng=np.random.default_rng(0)))
    data = TrainingData(unit_rows(features), one_label_each(np.arange(50)))
    parts = asked_in_part(data, None, None, PointInput(), seed=0, most=50).features
    assert 0.3 < parts.nnz / features.nnz < 0.7
    lengths = np.sqrt(parts.multiply(parts).sum(axis=1))
    np.testing.assert_allclose(lengths[lengths > 0], 1, rtol=1e-5)


@pytest.mark.parametrize("are_texts", [True, False])
def test_of_a_fragment_few_words_are_as_likely_as_many(are_texts):
    words = [f"word{i}" for i in range(100)]
    texts = TextColumn.from_strings([" ".join(words)] * 1_500)
    vectorizer = TextVectorizer(char_ngrams=None, word_ngrams=1, min_df=1).fit(words)
    features = vectorizer.transform(texts)
    data = TrainingData(features, one_label_each(np.arange(1_500)))
    given = (texts, vectorizer) if are_texts else (None, None)
    fragments = in_fragments(data, *given, seed=0)
    assert fragments.labels.shape[0] == 1_000
    n_words = np.diff(fragments.features.indptr)
    assert 0.35 < (n_words < 10).mean() < 0.65
    assert ((n_words > 50).mean() > 0.05) & ((n_words <= 2).mean() > 0.05)
    lengths = np.sqrt(fragments.features.multiply(fragments.features).sum(axis=1))
    np.testing.assert_allclose(lengths[n_words > 0], 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "n_labels", "is_asked"),
    [
        (LongtailClassifier(), 20, True),
        (LongtailClassifier(), 60, False),
        (DiSMEC(held_out=0.2), 20, False),
    ],
)
def test_fragments_are_of_points_that_are_held_out_by_chance(settings, n_labels, is_asked):
    """Of 60 labels each has ten points, which somebody has written."""
    random = np.random.default_rng(0)
    by_chance = np.minimum(random.geometric(0.2, 600) - 1, 19)
    labels = by_chance if n_labels == 20 else np.arange(600) % 60
    names = LabelSpace.from_names(f"label{i}" for i in range(n_labels))
    dataset = Dataset(texts_of(600), None, one_label_each(labels, n_labels), names)
    encoded = known_and_encoded(settings, dataset)
    data, held_out = split_data(settings, dataset, encoded, None, n_threads=1)
    assert held_out.labels.shape[0] > 20
    assert (held_out.in_part is not None) == is_asked
    if is_asked:
        parts = held_out.in_part
        assert (parts.labels != held_out.labels).nnz == 0
        assert 0 < parts.features.nnz < held_out.features.nnz
        assert data.in_part is None


@pytest.mark.parametrize("kind", [InputKind.WORDS, InputKind.TEXTS, InputKind.BAGS])
def test_parts_are_of_the_points_that_have_labels(kind):
    texts = [f"word{i} other{i}" for i in range(60)]
    dataset = Dataset.of(texts, [[], []] * 5 + [[f"label {i}"] for i in range(50)])
    settings, reads = DiSMEC(char_ngrams=None, min_df=1), PointInput(kind, n_words=2)
    settings.reads = lambda: reads
    encoded = known_and_encoded(settings, dataset)
    data, held_out = split_data(settings, dataset, encoded, None, n_threads=1)
    assert (data.labels.shape[0], held_out.labels.shape[0]) == (50, 0)
    parts = data.in_part
    assert not (parts.features.astype(bool) > data.features.astype(bool)).nnz
    assert parts.features.nnz < data.features.nnz
    if kind is InputKind.WORDS:
        assert 0 < np.count_nonzero(parts.words >= 0) < np.count_nonzero(data.words >= 0)
    if kind is InputKind.TEXTS:
        assert all(part in text for part, text in zip(parts.texts, texts[10:], strict=True))
        assert set(parts.texts) - {*texts}


@pytest.mark.parametrize(("settings", "n_held_out"), [(LongtailClassifier(), 60), (DiSMEC(), 0)])
def test_who_reads_no_label_texts_finds_no_label_by_its_text(settings, n_held_out):
    names = LabelSpace.from_names(f"label{i}" for i in range(600))
    labels = one_label_each(np.arange(300), n_labels=600)
    dataset = Dataset(texts_of(300), None, labels, names)
    settings = replace(settings, held_out=0.2)
    encoded = known_and_encoded(settings, dataset)
    parts = split_data(settings, dataset, encoded, None, n_threads=1)
    assert parts[1].labels.shape[0] == n_held_out


def reverse_dictionary(n_entries):
    """Explanations, and the words that they explain."""
    entries = [text.split(" : ", 1) for text in whole_wordnet()[0].texts[: 3 * n_entries]]
    found = {words: explanation for words, explanation in entries if explanation.count(" ") > 8}
    return dict(list(found.items())[:n_entries])


def asked(estimator, entries, n_words=7):
    """The first answers' share that is right, their mean probability, and of words never seen."""
    questions = [" ".join(explanation.split()[:n_words]) for explanation in entries.values()]
    answers = estimator.predictor_.predict(questions, k=1)
    right = [answer[0][0] == word for answer, word in zip(answers, entries, strict=True)]
    probability = [answer[0][1] for answer in answers]
    ((_, of_nothing),) = estimator.predictor_.predict("qwxz vbkj", k=1) or ((None, 0.0),)
    return np.mean(right), np.mean(probability), of_nothing


@pytest.mark.parametrize("n_entries", [40, 400])
def test_one_example_a_label_is_found_and_known_to_be_found(n_entries):
    entries = reverse_dictionary(n_entries)
    texts, labels = list(entries.values()), [[word] for word in entries]
    estimator = LongtailClassifier(dimension=64).fit(texts, labels)
    right, probability, of_nothing = asked(estimator, entries)
    assert right > 0.85  # 0.05 where a blend learnt that labels with points are wrong
    assert probability == pytest.approx(right, abs=0.15)
    assert of_nothing < 0.6


def test_one_example_of_ready_made_features_is_found():
    features = csr_array(random_array((300, 900), density=0.02, rng=np.random.default_rng(0)))
    estimator = LongtailClassifier(dimension=64).fit(features, list(range(300)))
    half = csr_array(features.multiply(np.arange(900) % 2))
    ids, probabilities = estimator.predictor_.predict_topk(half, k=1)
    right = (ids[:, 0] == np.arange(300)).mean()
    assert right > 0.85
    assert probabilities.mean() == pytest.approx(right, abs=0.15)


@pytest.mark.parametrize(
    ("period", "least_right", "least_probable"), [(2, 0.2, 0.1), (3, 0.9, 0.7)]
)
def test_two_examples_a_label_are_no_worse_than_one(period, least_right, least_probable):
    # Each lacks every second or third word. Of two that share none, one teaches little about the
    # other: how many answers are right, from .2 to .8, is then chance.
    entries = reverse_dictionary(300)
    texts = [
        " ".join(word for i, word in enumerate(explanation.split()) if i % period != lacking)
        for lacking in (1, 0)
        for explanation in entries.values()
    ]
    estimator = LongtailClassifier(dimension=64).fit(texts, [[word] for word in entries] * 2)
    right, probability, _ = asked(estimator, entries)
    assert right > least_right
    assert probability > least_probable  # 0.03 where labels with both of theirs were thought wrong


def test_recipes_that_never_learn_again_learn_every_answer():
    entries = reverse_dictionary(400)
    estimator = DiSMEC(held_out=0.1).fit(list(entries.values()), [[word] for word in entries])
    right, probability, _ = asked(estimator, entries, n_words=100)
    assert right > 0.98  # a tenth was held out, whose words were then never answered
    assert probability > 0.5
    assert 0.1 * len(entries) >= LEAST_HELD_OUT  # so many would have been


def test_points_held_out_come_before_parts_of_others():
    names = LabelSpace.from_names(f"label{i}" for i in range(600))
    texts, labels = texts_of(300), one_label_each(np.arange(300), n_labels=600)
    settings, dataset = LongtailClassifier(held_out=0.2), Dataset(texts, None, labels, names)
    encoded = known_and_encoded(settings, dataset)
    data, held_out = split_data(settings, dataset, encoded, None, n_threads=1)
    assert unseen_if_any(held_out, data).points is held_out
    shown, are_unseen = shown_to_blend(held_out, data)
    assert are_unseen
    assert shown.labels.shape[0] == 120
    assert not (shown.labels[:60] != held_out.labels).nnz
    assert np.isin(shown.labels[60:].indices, data.labels.indices).all()
    assert shown.features[60:].nnz < data.in_part.labels.shape[0] * data.features.nnz / 240
