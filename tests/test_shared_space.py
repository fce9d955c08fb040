"""Points, labels and texts in one space: what is learnt, and that a killed training goes on."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from killing import Batches
from longtail.blend.shared_space import SharedSpace
from longtail.data.bags import Bags
from longtail.training.checkpoints import CheckpointFolder
from longtail.training.fingerprint import Fingerprint
from longtail.training.run import TrainingData, TrainingRun
from longtail.training.schedule import Schedule
from small_comparisons import same_arrays

N_WORDS, N_NOISE, N_POINTS = 6, 30, 200
WITHOUT_POINTS = N_WORDS  # the last label, which has a text of its own word


def unit(dense):
    return csr_array(dense / np.linalg.norm(dense, axis=1, keepdims=True), dtype=np.float32)


def toy(*, texts=True, n_points=N_POINTS):
    """Points of a word, which is the label, and noise; a label's text is the word and one more."""
    random = np.random.default_rng(0)
    words = random.integers(0, N_WORDS, n_points)
    rows = np.arange(n_points)
    features = np.zeros((n_points, 2 * (N_WORDS + 1) + N_NOISE))
    features[rows, words] = 1
    for _ in range(2):
        features[rows, 2 * (N_WORDS + 1) + random.integers(0, N_NOISE, n_points)] = 1
    labels = np.zeros((n_points, N_WORDS + 1), np.float32)
    labels[rows, words] = 1
    own = np.concatenate([np.eye(N_WORDS + 1)] * 2, axis=1)
    label_features = unit(np.pad(own, [(0, 0), (0, N_NOISE)])) if texts else None
    return TrainingData(unit(features), csr_array(labels), label_features)


def a_run(folder=None, callbacks=(), *, n_threads=1, seed=0):
    kept = (
        None
        if folder is None
        else CheckpointFolder(folder, fingerprint=Fingerprint("{}", "f"), every_seconds=0)
    )
    return TrainingRun(seed=seed, n_threads=n_threads, callbacks=callbacks, checkpoints=kept)


def learn(data, run=None, epochs=6, *, dropout=0.2, texts_alone=0.4, **further):
    space = SharedSpace(
        dimension=16,
        schedule=Schedule(epochs=epochs, learning_rate=0.05),
        batch_size=40,
        n_random=4,
        dropout=dropout,
        scale=16.0,
        texts_alone=texts_alone,
    )
    return space.learn(data, run or a_run(), **further)


def arrays_of(learnt):
    arrays = {"tokens": learnt.encoder.token_vectors}
    for i, head in enumerate(learnt.heads):
        arrays |= {f"vectors{i}": head.vectors, f"rows{i}": head.row_of_label}
        arrays[f"bias{i}"] = head.bias
    return arrays


def same(first, second):
    return same_arrays(arrays_of(first), arrays_of(second))


def nearest(learnt, data, head=0):
    """The label whose vector is nearest to each point, and the true one."""
    points = learnt.encoder.encode(Bags.of(data.features))
    similarities = points @ learnt.heads[head].vectors.T
    return similarities.argmax(axis=1), data.labels.toarray().argmax(axis=1)


@pytest.mark.parametrize("texts", [True, False])
class TestLearning:
    def test_loss_falls_and_the_label_comes_nearest(self, texts):
        run = a_run()
        data = toy(texts=texts)
        learnt = learn(data, run)
        losses = [entry["loss"] for entry in run.history]
        assert len(losses) == 6
        assert losses[-1] < 0.5 * losses[0]
        for head in range(len(learnt.heads)):
            found, true = nearest(learnt, data, head)
            assert (found == true).mean() > 0.95, head

    def test_vectors_are_of_length_1(self, texts):
        learnt = learn(toy(texts=texts))
        points = learnt.encoder.encode(Bags.of(toy().features))
        np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, atol=1e-5)
        for head in learnt.heads:
            own = head.vectors[head.row_of_label[head.row_of_label >= 0]]
            np.testing.assert_allclose(np.linalg.norm(own, axis=1), 1, atol=1e-5)

    def test_without_epochs_a_label_is_the_mean_of_its_points(self, texts):
        data = toy(texts=texts)
        learnt = learn(data, epochs=0)
        free = learnt.heads[1 if texts else 0]
        sums = data.labels.T @ learnt.encoder.encode(Bags.of(data.features))
        means = sums[:-1] / np.linalg.norm(sums[:-1], axis=1, keepdims=True)
        np.testing.assert_allclose(free.vectors[:-1], means, atol=5e-3)
        counts = data.labels.sum(axis=0)[:-1]
        np.testing.assert_allclose(free.bias[:-1], np.log(counts), rtol=1e-5)

    def test_the_seed_decides_and_threads_do_not(self, texts):
        data = toy(texts=texts)
        first = learn(data)
        torch.manual_seed(99)
        assert same(learn(data, a_run(n_threads=2)), first)
        assert not same(learn(data, a_run(seed=1)), first)

    def test_does_not_change_the_data(self, texts):
        data, expected = toy(texts=texts), toy(texts=texts)
        learn(data)
        for part, other in zip(data[: 2 + texts], expected[: 2 + texts], strict=True):
            np.testing.assert_array_equal(part.toarray(), other.toarray())


class TestHeads:
    def test_without_texts_there_is_one(self):
        (head,) = learn(toy(texts=False)).heads
        assert head.scale == 16

    def test_with_texts_the_last_is_the_texts_alone(self):
        data = toy()
        learnt = learn(data)
        assert len(learnt.heads) == 3
        texts = learnt.encoder.encode(Bags.of(data.label_features))
        np.testing.assert_allclose(learnt.heads[2].vectors, texts, atol=1e-6)
        assert not learnt.heads[2].bias.any()

    def test_a_label_without_points_keeps_nothing_of_its_own(self):
        data = toy()
        learnt = learn(data)
        texts = learnt.encoder.encode(Bags.of(data.label_features))
        with_text, free, _ = learnt.heads
        np.testing.assert_allclose(
            with_text.vectors[WITHOUT_POINTS], texts[WITHOUT_POINTS], atol=1e-5
        )
        assert free.row_of_label[WITHOUT_POINTS] == -1
        assert not free.vectors[WITHOUT_POINTS].any()
        assert (free.row_of_label[:WITHOUT_POINTS] == np.arange(WITHOUT_POINTS)).all()
        assert learn(toy(texts=False)).heads[0].row_of_label[WITHOUT_POINTS] == -1


class Killer:
    """Kills training when so many batches are behind."""

    def __init__(self, done):
        self.done = done

    def on_stage(self, stage, seconds):
        pass

    def on_epoch(self, report):
        pass

    def on_batch(self, stage, done, total, loss):
        if done == self.done:
            raise KeyboardInterrupt


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("done", [3, 13])  # of 5 batches an epoch
def test_a_killed_training_goes_on_to_the_same_bits(tmp_path, texts, done):
    data = toy(texts=texts)
    all_batches, left = Batches(), Batches()
    whole = a_run(None, [all_batches])
    expected = learn(data, whole)
    with pytest.raises(KeyboardInterrupt):
        learn(data, a_run(tmp_path, [Killer(done)]))
    resumed = a_run(tmp_path, [left])
    assert same(learn(data, resumed), expected)
    assert (left.n < all_batches.n) == (done > 5)  # a checkpoint is of the end of an epoch
    losses = [[entry["loss"] for entry in run.history] for run in (whole, resumed)]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 6


def test_texts_alone_teach_labels_nothing_of_their_own():
    """A label whose text alone stands in for it in every batch stays where it started."""
    start, with_own, alone = (
        learn(toy(), epochs=epochs, texts_alone=share, goes_on=True).tables.labels
        for epochs, share in ((0, 0.0), (2, 0.0), (2, 1.0))
    )
    np.testing.assert_array_equal(alone, start)
    assert (with_own != start).any()


@pytest.mark.parametrize("texts", [True, False])
def test_dropout_makes_points_harder_to_place(texts):
    def first_loss(dropout):
        run = a_run()
        learn(toy(texts=texts), run, epochs=1, dropout=dropout)
        return run.history[0]["loss"]

    assert first_loss(0.0) < first_loss(0.2) < first_loss(0.8)


@pytest.mark.parametrize("texts", [True, False])
def test_goes_on_from_the_tables_that_were_learnt(texts):
    """Tokens and labels stay; only a label that had no points yet starts as the mean of its own."""
    every = toy(texts=texts)
    fewer = every._replace(labels=every.labels.copy())
    fewer.labels.data[fewer.labels.indices == N_WORDS - 1] = 0
    fewer.labels.eliminate_zeros()
    first = learn(fewer, goes_on=True)
    again = learn(every, epochs=0, start=deepcopy(first.tables))
    np.testing.assert_array_equal(again.encoder.token_vectors, first.encoder.token_vectors)
    for part in ("vectors", "bias"):
        own, before = (getattr(learnt.heads[0], part) for learnt in (again, first))
        np.testing.assert_allclose(own[: N_WORDS - 1], before[: N_WORDS - 1], atol=1e-6)
    counts = every.labels.sum(axis=0)
    assert again.heads[0].bias[N_WORDS - 1] == pytest.approx(np.log(counts[N_WORDS - 1]))
    own = again.encoder.encode(Bags.of(every.features)).T @ every.labels[:, N_WORDS - 1]
    mean = own / np.linalg.norm(own)
    if texts:
        text = again.encoder.encode(Bags.of(every.label_features))[N_WORDS - 1]
        mean = (mean + text) / np.linalg.norm(mean + text)
    np.testing.assert_allclose(again.heads[0].vectors[N_WORDS - 1], mean, atol=5e-3)


def test_batches_are_of_like_points_from_the_first_epoch_where_it_goes_on(tmp_path):
    data = toy(texts=False)
    first = learn(data, a_run(tmp_path / "first"), epochs=1, goes_on=True)
    learn(data, a_run(tmp_path / "again"), epochs=1, start=first.tables)
    found = [
        a_run(tmp_path / name).checkpoints.load("shared space").arrays["neighbourhoods"]
        for name in ("first", "again")
    ]
    assert [len(np.unique(clusters)) for clusters in found] == [N_POINTS, 64]


def test_points_of_two_data_sets_follow_each_other():
    data, other = toy(), toy(n_points=7)
    data = data._replace(is_word=np.ones(data.features.shape[1], bool))
    joined = data.with_points_of(other)
    for name in ("features", "labels"):
        parts = [getattr(part, name).toarray() for part in (data, other)]
        np.testing.assert_array_equal(getattr(joined, name).toarray(), np.concatenate(parts))
        assert getattr(joined, name).dtype == np.float32
        assert isinstance(getattr(joined, name), csr_array)
    assert joined.label_features is data.label_features
    assert joined.is_word is data.is_word
    assert data.features.shape[0] == N_POINTS


def test_none_may_follow():
    data = toy()
    none = TrainingData(data.features[:0], data.labels[:0], data.label_features)
    joined = data.with_points_of(none)
    np.testing.assert_array_equal(joined.features.toarray(), data.features.toarray())
    np.testing.assert_array_equal(joined.labels.toarray(), data.labels.toarray())
