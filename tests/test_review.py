"""A second look at labels: places and doubts, what is found on real data, and labels put right."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail import Dataset, LongtailClassifier
from longtail.data.blocks import points_of
from longtail.errors import InputError
from longtail.log import heard_by
from longtail.recipes.parabel import Parabel
from longtail.review import Findings, corrected, findings, review_labels
from longtail.review.doubts import FEW_LABELS, doubts, surprises
from longtail.review.opinions import N_FURTHER, N_PLACES, Opinions
from small_wordnet import small_wordnet

NONE = Findings(np.array([], np.int64), np.array([], np.int32), np.array([], np.float32))
QUICK = {"dimension": 32, "epochs": 2, "n_threads": 1}


def spoilt(dataset, n, seed=0):
    """One label left out of some points, and one put into others; and both kinds of pairs."""
    random = np.random.default_rng(seed)
    labels = dataset.labels.tolil()
    points = random.permutation(dataset.n_points)[: 2 * n].tolist()
    missing, wrong = set(), set()
    for point in points[:n]:
        label = int(dataset.labels[[point]].indices[0])
        labels[point, label] = 0
        missing.add((point, label))
    for point in points[n:]:
        label = int(random.integers(dataset.n_labels))
        if not labels[point, label]:
            labels[point, label] = 1
            wrong.add((point, label))
    spoilt_labels = csr_array(labels.tocsr())
    return Dataset(dataset.texts, None, spoilt_labels, dataset.label_space), missing, wrong


def share_right(findings, pairs):
    found = list(zip(findings.points.tolist(), findings.labels.tolist(), strict=True))
    return sum(pair in pairs for pair in found) / len(found)


def test_spoilt_labels_are_found_in_real_data():
    dataset, missing, wrong = spoilt(small_wordnet(2000, 1)[0], 150)
    review = review_labels(LongtailClassifier(**QUICK), dataset, n_parts=2, most=60)
    assert len(review.missing.points) >= 40
    assert len(review.doubtful.points) >= 40
    # By chance .0003 of the labels that points have not, and .07 of those that they have.
    assert share_right(review.missing, missing) > 0.15
    assert share_right(review.doubtful, wrong) > 0.4


def test_what_is_found_is_not_there_or_is_there():
    dataset, _, _ = spoilt(small_wordnet(800, 1, n_labels=60)[0], 100)
    review = review_labels(Parabel(n_threads=1), dataset, n_parts=2)
    given = dataset.labels.toarray().astype(bool)
    assert len(review.missing.points)
    assert len(review.doubtful.points)
    assert not given[review.missing.points, review.missing.labels].any()
    assert given[review.doubtful.points, review.doubtful.labels].all()
    assert (review.missing.probabilities >= 0.5).all()
    assert review.best.shape == (800, 3)


def test_features_are_reviewed_too():
    random = np.random.default_rng(0)
    classes = random.integers(0, 4, 200)
    features = random.random((200, 4)) * 0.1 + 0.9 * np.eye(4)[classes]
    labels = [[label] for label in classes.tolist()]
    labels[17] = [(labels[17][0] + 1) % 4]
    review = review_labels(LongtailClassifier(**QUICK), Dataset.of(csr_array(features), labels))
    assert (review.missing.points[0], review.missing.labels[0]) == (17, classes[17])


def test_the_same_seed_finds_the_same():
    dataset, _, _ = spoilt(small_wordnet(400, 1, n_labels=60)[0], 50)
    quick = LongtailClassifier(**QUICK)
    first, second = (review_labels(quick, dataset, n_parts=2) for _ in range(2))
    assert len(first.missing.points)
    assert len(first.doubtful.points)
    assert first.missing.points.tolist() == second.missing.points.tolist()
    assert first.doubtful.points.tolist() == second.doubtful.points.tolist()


def test_parts_are_told_and_the_estimator_stays_as_it_was():
    dataset = small_wordnet(200, 1, n_labels=10)[0]
    estimator, lines = LongtailClassifier(**QUICK), []
    with heard_by(lines.append):
        review_labels(estimator, dataset, n_parts=2)
    assert [line for line in lines if line.startswith("part")] == ["part 1 of 2", "part 2 of 2"]
    assert not hasattr(estimator, "predictor_")


@pytest.mark.parametrize("n_parts", [1, 5, 2.0, True])
def test_as_many_parts_as_make_no_sense_are_refused(n_parts):
    dataset = Dataset.of(list("abcda"), [[0]] * 5)
    with pytest.raises(InputError, match="from 2 to the number of different points, 4"):
        review_labels(LongtailClassifier(), dataset, n_parts=n_parts)


def queries():
    """What a log tells: a query as several points, not all of which have all that was bought."""
    texts, labels = [], []
    for number in range(60):
        kind = ("wine", "car", "tree")[number % 3]
        both = [f"{kind}s", f"{kind} shop"]
        texts += 3 * [f"{kind} {number}"]
        labels += [both[:1], both, both]
    return Dataset.of(texts, labels)


def shops_missing_in(dataset):
    """The points where a review says that a shop is missing."""
    missing = review_labels(Parabel(n_threads=1), dataset).missing
    names = map(dataset.label_space.name, missing.labels.tolist())
    return {
        point
        for point, name in zip(missing.points.tolist(), names, strict=True)
        if name.endswith("shop")
    }


def test_what_another_point_of_the_same_text_has_is_not_missing():
    dataset = queries()
    assert not shops_missing_in(dataset)
    labels = dataset.labels.tolil()
    labels[1], labels[2] = labels[0], labels[0]
    bare = Dataset(dataset.texts, None, csr_array(labels.tocsr()), dataset.label_space)
    assert shops_missing_in(bare) == {0, 1, 2}


@pytest.mark.parametrize("as_features", [False, True])
def test_no_model_is_asked_of_a_text_that_it_has_learnt_from(as_features, monkeypatch):
    dataset, learnt = queries(), []
    if as_features:
        numbers = np.repeat(np.arange(60), 3)
        features = csr_array(np.eye(3)[numbers % 3] + numbers[:, np.newaxis] / 1000)
        dataset = Dataset(None, features.astype(np.float32), dataset.labels, dataset.label_space)
    fit = LongtailClassifier.fit_dataset

    def recorded(self, part, **options):
        learnt.append(part)
        return fit(self, part, **options)

    monkeypatch.setattr(LongtailClassifier, "fit_dataset", recorded)
    review_labels(LongtailClassifier(**QUICK), dataset)
    for part in learnt:
        points = points_of(part) if not as_features else map(tuple, points_of(part).toarray())
        counts = Counter(points)
        assert len(counts) == 45  # of 60 texts
        assert set(counts.values()) == {3}


def test_parts_are_the_same_whatever_the_numbers_of_texts(monkeypatch):
    """These are by hashes, which are other ones in each process."""
    dataset = queries()
    first = findings._parts(dataset, 4, random_state=0)
    numbers = findings.numbers_of_points(dataset)
    monkeypatch.setattr(findings, "numbers_of_points", lambda _: numbers.max() - numbers)
    assert findings._parts(dataset, 4, random_state=0).tolist() == first.tolist()
    assert np.bincount(first).tolist() == [45, 45, 45, 45]


def test_no_findings_to_be_returned_are_refused():
    with pytest.raises(InputError, match="most must be a whole number, 1 or more, got 0"):
        review_labels(LongtailClassifier(), Dataset.of(list("abcd"), [[0]] * 4), most=0)


def test_opinions_are_what_the_model_answers():
    """Place by place, as a plain loop over the answers has it."""
    train, test = small_wordnet(300, 150, n_labels=40)
    model = LongtailClassifier(**QUICK).fit_dataset(train).predictor_
    opinions = Opinions.of(test)
    opinions.ask(model, np.arange(test.n_points))
    ids, probabilities = model.predict_topk(list(test.texts), N_PLACES)
    pair = 0
    for point, labels in enumerate(test.label_lists()):
        ranked = ids[point].tolist()
        for label in labels:
            is_found = label in ranked
            place = ranked.index(label) if is_found else N_PLACES
            assert opinions.places[pair] == place
            assert opinions.probabilities[pair] == (probabilities[point, place] if is_found else 0)
            pair += 1
        others = [label for label in ranked if label >= 0 and label not in labels][:N_FURTHER]
        assert opinions.further[point, : len(others)].tolist() == others
        assert opinions.best[point].tolist() == ranked[:3]


def test_labels_that_a_model_cannot_know_are_not_judged():
    dataset = Dataset.of(
        [f"{what} {year}" for year in range(30) for what in ("red wine", "old car")] + ["?"],
        [["drink"], ["vehicle"]] * 29 + [["drink"], ["tractor"], ["drink"]],
    )
    model = LongtailClassifier(**QUICK).fit_dataset(dataset.take(np.arange(58))).predictor_
    opinions = Opinions.of(dataset)
    opinions.ask(model, np.array([58, 59, 60]))
    # "drink" is known; no other point has "tractor"; nothing is known of the last text.
    assert opinions.are_judged[-3:].tolist() == [True, False, False]
    assert not opinions.are_judged[:-3].any()  # nobody was asked of these


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30))
def test_where_all_places_are_alike_nothing_is_doubted(pairs):
    points, labels = np.array(pairs).T
    assert np.allclose(doubts(np.full(len(pairs), 7.0), points, labels), 0)


@given(st.integers(0, 5), st.integers(6, 200))
def test_a_label_is_doubted_more_the_more_surprising_it_is(near, far):
    points, labels = np.arange(20), np.repeat([0, 1], 10)
    by_place = []
    for place in (near, far):
        surprising = np.full(20, 2.0)
        surprising[4] = place
        by_place.append(doubts(surprising, points, labels)[4])
    assert by_place[0] < by_place[1]


@given(
    st.lists(st.tuples(st.integers(0, 300), st.floats(0, 1, width=32)), min_size=2, max_size=9),
    st.sampled_from([2, FEW_LABELS, FEW_LABELS + 1]),
)
def test_places_of_many_labels_surprise_and_probabilities_of_few(pairs, n_labels):
    places, probabilities = (np.array(column) for column in zip(*pairs, strict=True))
    surprising = surprises(places.astype(np.int32), probabilities.astype(np.float32), n_labels)
    by = -probabilities if n_labels <= FEW_LABELS else places
    for one, other in pairwise(np.argsort(by, kind="stable").tolist()):
        assert surprising[one] <= surprising[other]
    assert np.isfinite(surprising).all()


def test_wrong_labels_are_found_among_few():
    """None of ten labels can be ten times as far back as another."""
    dataset, _, wrong = spoilt(small_wordnet(600, 1, n_labels=10)[0], 60)
    review = review_labels(LongtailClassifier(**QUICK), dataset, n_parts=2, most=30)
    assert len(review.doubtful.points) >= 20
    assert share_right(review.doubtful, wrong) > 0.5


def test_a_point_of_which_all_is_far_back_is_doubted_less():
    """Two labels of point 0 are as far back as one of point 1, whose other label is first."""
    points, labels = np.array([0, 0, 1, 1, *range(2, 22)]), np.array([0, 1, 0, 1, *[0, 1] * 10])
    places = np.array([50, 50, 50, 0, *[0] * 20])
    of_pairs = doubts(np.log(1.0 + places), points, labels)
    assert of_pairs[0] < of_pairs[2]
    assert of_pairs[0] > 1  # nor does one excuse the other


class StoppedError(Exception):
    """A training is stopped."""


class StopsAt:
    """A callback that stops the n-th training, and counts them."""

    def __init__(self, n=None):
        self.n, self.begun = n, 0

    def on_stage(self, stage, seconds):
        if stage == "tokens" and seconds is None:
            self.begun += 1
            if self.begun == self.n:
                raise StoppedError

    def on_batch(self, stage, done, total, loss):
        pass

    def on_epoch(self, report):
        pass


def reviewed(dataset, folder, stops, **settings):
    estimator = LongtailClassifier(**QUICK | settings)
    kept = {"checkpoint_folder": folder, "checkpoint_seconds": 0.0}
    return review_labels(estimator, dataset, n_parts=3, callbacks=[stops], **kept)


def test_a_review_that_was_stopped_goes_on_with_the_part_it_was_at(tmp_path):
    dataset, _, _ = spoilt(small_wordnet(180, 1, n_labels=20)[0], 40)
    with pytest.raises(StoppedError):
        reviewed(dataset, tmp_path / "kept", StopsAt(3))
    again, other, anew = StopsAt(), StopsAt(), StopsAt()
    with pytest.raises(StoppedError):  # other settings are another review
        reviewed(dataset, tmp_path / "kept", StopsAt(2), tail=0.0)
    found = reviewed(dataset, tmp_path / "kept", again)
    assert again.begun == 1
    assert not (tmp_path / "kept").exists() or not any((tmp_path / "kept").glob("*/*/*"))
    whole = reviewed(dataset, tmp_path / "others", other)
    assert other.begun == 3
    for kind in ("missing", "doubtful"):
        for one, both in zip(getattr(found, kind), getattr(whole, kind), strict=True):
            assert np.array_equal(one, both)
    assert np.array_equal(found.best, whole.best)
    with pytest.raises(StoppedError):
        reviewed(dataset.take(range(150)), tmp_path / "kept", StopsAt(1))
    reviewed(dataset.take(range(150)), tmp_path / "kept", anew)
    assert anew.begun == 3  # nothing was there to go on from


def test_labels_are_put_in_and_taken_out():
    dataset = Dataset.of(["a", "b", "c"], [[0], [0, 1], []])
    put_in = Findings(np.array([0, 2, 2]), np.array([1, 0, 0]), np.zeros(3))
    taken_out = Findings(np.array([1, 1]), np.array([0, 0]), np.zeros(2))
    right = corrected(dataset, put_in, taken_out)
    assert list(right.label_lists()) == [[0, 1], [1], [0]]
    assert set(right.labels.data.tolist()) == {1}
    assert right.labels.has_canonical_format
    assert list(dataset.label_lists()) == [[0], [0, 1], []]  # stays as it was
    assert list(corrected(dataset, NONE, NONE).label_lists()) == list(dataset.label_lists())
