"""Trainings beside each other: in threads, in forked processes, and after a user's own torch."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from longtail import Dataset, LongtailClassifier
from longtail.data.vectorizer import TextVectorizer
from longtail.errors import InputError, interruptible
from longtail.training.threads import one_ahead

TEXTS = ["red wine", "white wine", "fast car", "old car"] * 20
NAMES = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 20
FORKED = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork here"
)


def trained(seed, n_threads=1):
    model = LongtailClassifier(dimension=16, epochs=2, random_state=seed, n_threads=n_threads)
    return model.fit(TEXTS, NAMES).predictor_.scorer.to_arrays()


def same(first, second):
    return all(np.array_equal(first[name], second[name]) for name in first)


def answer_in_child(seed):
    with pytest.warns(
        RuntimeWarning, match=r"forked from one .*on one thread, all else on 2"
    ) as said:
        model = LongtailClassifier(dimension=16, epochs=2, n_threads=2, random_state=seed).fit(
            TEXTS, NAMES
        )
    assert {warning.filename for warning in said} == {__file__}
    return model.predict(TEXTS[:1])


@FORKED
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_trains_without_torchs_threads():
    trained(0, n_threads=2)  # torch's threads have begun
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map_async(answer_in_child, [0]).get(timeout=120) == [[["drink"]]]


def interrupted(*_, **__):
    """Fail as a kernel does during which Ctrl-C was pressed."""
    between = SystemError("_numba_unpickle returned a result with an exception set")
    between.__cause__ = KeyboardInterrupt()
    raise SystemError("a kernel returned a result with an exception set") from between


def test_an_interrupt_in_a_kernel_is_no_failure_of_the_model(monkeypatch):
    model = LongtailClassifier(dimension=16, epochs=2, n_threads=1).fit(TEXTS, NAMES)
    answers = model.predict(TEXTS[:2])
    with monkeypatch.context() as patch:
        patch.setattr(LongtailClassifier, "_learn_calibrated", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(TEXTS, NAMES)
        patch.setattr(TextVectorizer, "transform", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.predict(TEXTS[:2])
    assert model.predict(TEXTS[:2]) == answers


def test_trainings_in_several_threads_are_those_that_would_have_been_alone():
    seeds = [0, 1, 0, 1]
    alone = {seed: trained(seed) for seed in set(seeds)}
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(trained, seeds))
    assert all(same(alone[seed], arrays) for seed, arrays in zip(seeds, together, strict=True))
    assert torch.equal(torch.rand(2), expected)


class Another:
    """A callback that trains another model while a training goes on."""

    seen = ()

    def on_stage(self, stage, seconds):
        if not self.seen:
            self.seen = (stage,)
            trained(1)

    def on_batch(self, stage, done, total, loss):
        pass

    def on_epoch(self, report):
        pass


def test_a_training_within_a_training():
    from longtail import Dataset
    from longtail.data.from_python import labels_from, texts_from

    labels, space, _ = labels_from(NAMES, len(NAMES))
    dataset = Dataset(texts_from(TEXTS), None, labels, space)
    model = LongtailClassifier(dimension=16, epochs=2, n_threads=1)
    model.fit_dataset(dataset, callbacks=[another := Another()])
    assert another.seen
    assert same(trained(0), model.predictor_.scorer.to_arrays())


def test_training_leaves_the_number_of_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        trained(0)
        assert torch.get_num_threads() == 3
        with pytest.raises(InputError):
            LongtailClassifier(n_threads=1).fit(np.full((4, 2), np.nan), [0, 1, 0, 1])
        with pytest.raises(InputError):
            LongtailClassifier(n_threads=1).fit([""] * 4, [["a"]] * 4)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_an_item_is_made_while_the_one_before_it_is_used():
    second_is_made = threading.Event()

    def items():
        yield "first"
        second_is_made.set()
        yield "second"

    ahead = one_ahead(items(), n_threads=2)
    assert next(ahead) == "first"
    assert second_is_made.wait(timeout=60)
    assert list(ahead) == ["second"]
    assert list(one_ahead(iter(()), n_threads=2)) == []


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_of_the_maker_reaches_the_user(n_threads):
    def items():
        yield 1
        raise InputError("no more")

    ahead = one_ahead(items(), n_threads)
    assert next(ahead) == 1
    with pytest.raises(InputError, match="no more"):
        next(ahead)


def test_another_failure_of_the_system_stays():
    with pytest.raises(SystemError, match="bad call") as found, interruptible():
        raise SystemError("bad call") from ValueError()
    assert isinstance(found.value.__cause__, ValueError)
    with pytest.raises(SystemError, match="an exception set"), interruptible():
        raise SystemError("f returned a result with an exception set")


class Stages:
    """A callback that keeps which stages began."""

    def __init__(self):
        self.begun = []

    def on_stage(self, stage, seconds):
        if seconds is None:
            self.begun.append(stage)

    def on_batch(self, stage, done, total, loss):
        pass

    def on_epoch(self, report):
        pass


@pytest.mark.parametrize(("n_threads", "times"), [(1, 2), (2, 1)])
def test_a_blend_that_is_learnt_beside_nothing_is_a_stage_of_its_own(n_threads, times):
    """Else nobody would be told of its time."""
    texts, labels = zip(
        *((f"{what} {i}", [what]) for i in range(40) for what in ("wine", "car")), strict=True
    )
    stages = Stages()
    estimator = LongtailClassifier(dimension=8, epochs=1, held_out=0.5, n_threads=n_threads)
    estimator.fit_dataset(Dataset.of(texts, labels), callbacks=[stages])
    assert stages.begun.count("blend") == times
    assert stages.begun[-1] == "blend"
    assert ("blend" in stages.begun[: stages.begun.index("again: shared space")]) == (times == 2)
