"""Surrogate tasks beside clustering, and transfers beside the bounded residual."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import longtail
from longtail.classifiers.shortlisted import ShortlistedOneVsAll, ShortlistTraining
from longtail.errors import InputError
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.features.convolutions import KimCNN
from longtail.negatives.nearest_labels import NearestLabels
from longtail.recipes.deepxml import DeepXML
from longtail.surrogates.assignments import LabelSelection, RandomHashing
from longtail.surrogates.in_batch import InBatchTask
from longtail.surrogates.low_rank import LowRankProjection, _RegressionTask
from longtail.surrogates.meta_label_task import MetaLabelTask, classification_task
from longtail.surrogates.self_supervised import SelfSupervised
from longtail.training.run import TrainingRun
from longtail.training.schedule import Schedule
from longtail.transfer.bounded_residual import BoundedResidual
from longtail.transfer.plain import FullyConnected, Identity
from longtail.transfer.transform import transform_from

BRIEF = Schedule(epochs=12, learning_rate=0.2)
SURROGATES = {
    "label selection": MetaLabelTask(clusters=LabelSelection(share=0.5), schedule=BRIEF),
    "random hashing": MetaLabelTask(clusters=RandomHashing(n_meta_labels=16), schedule=BRIEF),
    "low-rank projection": LowRankProjection(dimension=32, schedule=BRIEF),
    "self-supervised": SelfSupervised(n_random=20, schedule=BRIEF),
    "in-batch": InBatchTask(schedule=BRIEF, batch_size=32),
}
TRANSFERS = {
    "bounded": BoundedResidual(),
    "unbounded": BoundedResidual(max_norm=None),
    "fully connected": FullyConnected(),
    "identity": Identity(),
}
N_TOPICS = 40


@pytest.fixture(scope="module")
def topics():
    """Texts of three of a topic's five words and two of all; the topic is the label."""
    random = np.random.default_rng(0)
    topic = np.repeat(np.arange(N_TOPICS), 10)
    own = topic[:, None] * 5 + random.random((len(topic), 5)).argsort(axis=1)[:, :3]
    noise = random.integers(0, 5 * N_TOPICS, (len(topic), 2))
    words = np.concatenate([own, noise], axis=1)
    return [" ".join(f"w{word}" for word in row) for row in words], topic


def deepxml(**parts):
    training = ShortlistTraining(schedule=Schedule(epochs=12, learning_rate=0.3), batch_size=64)
    settings = {
        "features": BagOfTokens(dimension=32),
        "surrogate": MetaLabelTask(schedule=BRIEF, batch_size=64),
        "negatives": NearestLabels(n_near_labels=20, n_near_points=10),
        "classifier": ShortlistedOneVsAll(training=training),
        "char_ngrams": None,
        "n_threads": 1,
    }
    return DeepXML(**settings | parts)


@pytest.mark.parametrize("surrogate", SURROGATES.values(), ids=SURROGATES.keys())
def test_features_of_every_surrogate_can_be_classified(topics, surrogate):
    texts, topic = topics
    model = deepxml(surrogate=surrogate).fit(texts, topic)
    assert model.score(texts, topic) > 0.73  # 0.665 untrained
    losses = [e["loss"] for e in model.run_.history if e["stage"] == "module I"]
    assert losses[-1] < 0.95 * losses[0]


def test_the_halves_of_words_in_order_are_not_to_be_had(topics):
    model = deepxml(features=KimCNN(dimension=8), surrogate=SelfSupervised(schedule=BRIEF))
    with pytest.raises(InputError, match="reads words"):
        model.fit(*topics)


def test_a_selection_that_is_no_share():
    labels = sp.csr_array(np.eye(3))
    with pytest.raises(InputError, match="share must be above 0"):
        LabelSelection(share=2).assign(labels, labels, seed=0, n_threads=1)


@pytest.mark.parametrize("transfer", TRANSFERS.values(), ids=TRANSFERS.keys())
def test_what_is_frozen_is_what_was_trained(transfer):
    block = transfer.block(5, torch.device("cpu"))
    block.eval()
    random = partial(torch.randn, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.add_(0.1 * random(parameter.shape))
        features = random((7, 5)).relu()
        for _ in range(50):  # the norm is estimated, a step at a time
            expected = block(features)
    frozen = block.frozen()
    np.testing.assert_allclose(frozen.apply(features.numpy()), expected, rtol=1e-3, atol=1e-4)
    again = transform_from(frozen.config(), frozen.to_arrays())
    np.testing.assert_array_equal(again.apply(features.numpy()), frozen.apply(features.numpy()))
    fresh = transfer.block(5, torch.device("cpu"))
    fresh.start_from(frozen)
    np.testing.assert_allclose(
        fresh.frozen().apply(features.numpy()), frozen.apply(features.numpy()), rtol=1e-4
    )


def test_no_transfer_starts_from_whatever_was_before():
    block = Identity().block(2, torch.device("cpu"))
    block.start_from(BoundedResidual().block(2, torch.device("cpu")).frozen())
    assert block(torch.tensor([1.0, -2.0])).tolist() == [1, -2]


@pytest.mark.parametrize("transfer", [FullyConnected(), Identity()], ids=["connected", "identity"])
def test_every_transfer_learns_and_is_saved(topics, transfer, tmp_path):
    texts, topic = topics
    model = deepxml(transfer=transfer).fit(texts, topic)
    assert model.score(texts, topic) > 0.73  # 0.665 untrained
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    for mine, saved in zip(
        model.predict_topk(texts, 3), loaded.predict_topk(texts, 3), strict=True
    ):
        np.testing.assert_array_equal(saved, mine)


def test_fine_tuning_changes_the_features(topics):
    texts, topic = topics
    frozen, tuned = (deepxml(fine_tune=tune).fit(texts, topic) for tune in (False, True))
    vectors = [m.predictor_.scorer.ranker.encoder.token_vectors for m in (frozen, tuned)]
    assert not np.allclose(*vectors)
    assert tuned.score(texts, topic) > 0.8


@pytest.mark.parametrize("mean_of", [None, 8])
def test_classifiers_start_from_how_often_meta_labels_are_right(mean_of):
    targets = sp.csr_array(np.arange(1, 4) > np.arange(4)[:, np.newaxis])  # 1, 2 and 3 of 4 points
    run = TrainingRun(seed=0, n_threads=1)
    network = SimpleNamespace(dimension=5, forward=Mock(), step=Mock(), state=Mock())
    task = classification_task(network, targets, run, residual=Identity(), mean_of=mean_of)
    if mean_of is None:
        assert torch.sigmoid(task.table.bias[:, 0]).tolist() == pytest.approx([0.25, 0.5, 0.75])
        assert task.table._reduction == 1
    else:
        assert task.table.bias.abs().max() < 1
        assert task.table._reduction == 1 / (3 * 8)


def test_no_bucket_stays_empty():
    labels = sp.csr_array(np.ones((1, 20)))
    buckets = RandomHashing(n_meta_labels=64).assign(labels, labels, seed=0, n_threads=1)
    assert set(buckets.tolist()) == set(range(buckets.max() + 1))


def test_projections_are_of_label_vectors_of_unit_length():
    labels = sp.csr_array(
        (np.random.default_rng(0).random((2, 400)) < [[0.01], [0.9]]).astype("f4")
    )
    run = TrainingRun(seed=0, n_threads=1)
    network = SimpleNamespace(dimension=5)
    task = _RegressionTask(LowRankProjection(dimension=256), network, labels, run)
    lengths = np.linalg.norm(task._targets, axis=1)
    np.testing.assert_allclose(lengths, np.sqrt(256), rtol=0.2)
