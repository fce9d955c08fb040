"""Models in programs of others: stopped by signals, forked, and asked while Python is ending."""

from __future__ import annotations

import copy
import enum
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

from asking import Asked
from longtail import Dataset, LongtailClassifier, load
from longtail.compiled.one_text import MOST_CODES
from longtail.kernels.handle import handle_of
from longtail.kernels.rows import Rows
from longtail.progress import ProgressBar
from longtail.recipes.parabel import Parabel
from longtail.serve import app

TEXTS = ["red wine", "white wine", "fast car", "old car"] * 5
NAMES = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
FORKED = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork here"
)


class OutOfTimeError(Exception):
    """What the handler of a signal raises, as that of a task queue does."""


class Signalled:
    """Raises in the `nth` line of Python that a kernel runs on its way back, as a handler does."""

    def __init__(self, nth, error):
        self.left, self.error = nth, error

    def __call__(self, frame, event, argument):
        if event == "call" and frame.f_code.co_name == "_numba_unpickle":
            self.left -= 1
            if not self.left:
                raise self.error

    def __enter__(self):
        sys.setprofile(self)

    def __exit__(self, *error):
        sys.setprofile(None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    LongtailClassifier(dimension=16, epochs=2, n_threads=1).fit(TEXTS, NAMES).save(path)
    return path


@pytest.mark.parametrize("error", [KeyboardInterrupt, OutOfTimeError])
@pytest.mark.parametrize("nth", [1, 2])
def test_what_a_signal_raises_comes_out_of_making_a_handle(error, nth):
    rows = Rows(np.eye(2, dtype=np.float32), np.ones(2, np.float32))
    assert handle_of(rows)
    with pytest.raises(error), Signalled(nth, error):
        handle_of(rows)
    assert handle_of(rows)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OutOfTimeError])
@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.predict(TEXTS),
        lambda model: model.predict("red wine " * MOST_CODES),
        lambda model: model.explain(TEXTS[0]),
        lambda model: model.with_labels(["red ship"]),
        lambda model: model.without_labels(["drink"]),
    ],
    ids=["several", "a long one", "explain", "with a label", "without one"],
)
def test_what_a_signal_raises_comes_out_of_a_model(folder, ask, error):
    model = load(folder)
    expected = [model.predict(text) for text in TEXTS]
    ask(model)
    with pytest.raises(error), Signalled(1, error):
        ask(model)
    assert [model.predict(text) for text in TEXTS] == expected


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="enums run no such line of Python there")
@pytest.mark.parametrize(
    "ask",
    [lambda model: model.predict(TEXTS), lambda model: model.explain(TEXTS[0])],
    ids=["several", "explain"],
)
def test_what_a_signal_raises_is_not_swallowed_by_numpy(folder, ask):
    """Beside an array, numpy looks for methods of an enum's, and hides what that raises."""
    model = load(folder)
    ask(model)
    lines = []

    def watch(frame, event, argument):
        if event == "call" and frame.f_code.co_filename == enum.__file__:
            lines.append(f"{frame.f_back.f_code.co_name}, {frame.f_back.f_lineno}")

    sys.setprofile(watch)
    try:
        ask(model)
    finally:
        sys.setprofile(None)
    assert not lines


def test_what_a_signal_raises_is_no_damage_of_a_folder(folder):
    load(folder)
    for nth in (1, 2):
        with pytest.raises(OutOfTimeError), Signalled(nth, OutOfTimeError):
            load(folder)


@pytest.mark.parametrize("recipe", [LongtailClassifier, Parabel])
def test_who_has_shown_a_training_can_be_pickled_and_copied(recipe, tmp_path):
    settings = {"dimension": 16, "epochs": 2} if recipe is LongtailClassifier else {}
    with (tmp_path / "log").open("w") as stream:  # as little to be pickled as a terminal
        model = recipe(n_threads=1, **settings).fit_dataset(
            Dataset.of(TEXTS, NAMES),
            callbacks=[ProgressBar(stream)],
            checkpoint_folder=tmp_path / "kept",
        )
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301 - ours
        assert again.predictor_.predict(TEXTS) == model.predictor_.predict(TEXTS)
        assert again.training_report() == model.training_report()


AT_THE_END = """
import atexit, sys, threading
from longtail import LongtailClassifier, load

texts = ["red wine", "fast car"] * 700
names = [["drink"], ["vehicle"]] * 700
model = load(sys.argv[1])

def work():
    threading.main_thread().join()
    print(len(model.predict_topk(texts, n_threads=2)[0]))
    fitted = LongtailClassifier(dimension=16, epochs=1, n_threads=2).fit(texts, names)
    print(fitted.predict(texts[:1]))

atexit.register(lambda: print(len(model.predict_topk(texts, n_threads=2)[0])))
threading.Thread(target=work).start()
"""


@pytest.mark.thorough
def test_threads_that_outlive_the_main_one_are_answered(folder):
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END, folder],
        env={name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "Error" not in done.stderr
    assert done.stdout.split("\n") == ["1400", "[['drink']]", "1400", ""]


def _compile_something(queue):
    queue.put(global_compiler_lock._lock.acquire(timeout=20))


@FORKED
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_waits_for_what_another_thread_compiles():
    has_begun, may_end = threading.Event(), threading.Event()

    def compiles():
        with global_compiler_lock:
            has_begun.set()
            may_end.wait(0.5)

    thread = threading.Thread(target=compiles)
    thread.start()
    has_begun.wait()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_compile_something, args=(queue,))
    child.start()
    assert queue.get(timeout=60)
    child.join()
    thread.join()


def _answered_in_a_child(application, queue):
    queue.put(Asked(application)("POST", "/predict", {"texts": TEXTS, "k": 1})[0])


@FORKED
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_an_application_that_has_answered_answers_in_a_forked_process(folder):
    asked = Asked(app(folder))
    for _ in range(2):
        assert asked("POST", "/predict", {"texts": TEXTS, "k": 1})[0] == 200
    asked.runner.close()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_answered_in_a_child, args=(asked.application, queue))
    child.start()
    assert queue.get(timeout=60) == 200
    child.join()


def test_an_application_finds_its_folder_from_wherever_the_process_works(
    folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(folder.parent)
    asked = Asked(app(folder.name))
    monkeypatch.chdir(tmp_path)
    assert asked("POST", "/predict", {"text": TEXTS[0]})[0] == 200
    asked.close()


def test_checkpoints_are_removed_from_wherever_the_process_works(tmp_path, monkeypatch):
    (tmp_path / "begun").mkdir()
    monkeypatch.chdir(tmp_path / "begun")
    model = LongtailClassifier(dimension=16, epochs=2, n_threads=1)
    model.fit_dataset(Dataset.of(TEXTS, NAMES), checkpoint_folder="kept", checkpoint_seconds=0)
    assert (tmp_path / "begun" / "kept").exists()
    monkeypatch.chdir(tmp_path)
    model.save("model")
    assert not any((tmp_path / "begun").iterdir())
