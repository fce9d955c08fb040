"""The training loop and its checkpoints: what a killed training finds when it is started again."""

from __future__ import annotations

import signal
import subprocess
import sys
import tracemalloc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from longtail.array_file import write_arrays
from longtail.data.dataset import Dataset
from longtail.data.from_python import labels_from, texts_from
from longtail.data.text_column import TextColumn
from longtail.errors import TrainingError
from longtail.estimators.splitting import split_data
from longtail.manifest import as_json
from longtail.recipes.astec import Astec, Astec3
from longtail.training import checkpoints
from longtail.training.batches import AllLabels
from longtail.training.checkpoints import CheckpointFolder
from longtail.training.fingerprint import Fingerprint, fingerprint
from longtail.training.label_table import LabelTable
from longtail.training.loop import train
from longtail.training.one_vs_all import FrozenFeatures, OneVsAllTask
from longtail.training.schedule import Schedule
from longtail.training.state import write_state
from longtail.transfer.bounded_residual import BoundedResidual
from small_runs import a_run

CPU = torch.device("cpu")
# The system kills who writes longer files than it may, in the midst of one.
KILLED_IN_SAVE = """
import resource, signal, sys
import numpy as np
from longtail.training.checkpoints import CheckpointFolder
from longtail.training.fingerprint import Fingerprint
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
folder = CheckpointFolder(sys.argv[1], fingerprint=Fingerprint("{}", "f"), every_seconds=0)
folder.save("Module IV", 1, {"a": np.ones(1000)}, [], ends_stage=False)
"""
WORDS = ["wine", "beer", "car", "bus", "rose", "oak"]


class Recorder:
    """Keeps what it is told."""

    def __init__(self):
        self.batches, self.epochs = [], []

    def on_batch(self, stage, done, total, loss):
        self.batches.append((stage, done, total, loss))

    def on_stage(self, stage, seconds):
        pass

    def on_epoch(self, report):
        self.epochs.append(report)


class Killer(Recorder):
    """Kills training in the middle of an epoch of a stage."""

    def __init__(self, stage, done):
        super().__init__()
        self.place = stage, done

    def on_batch(self, stage, done, total, loss):
        if (stage, done) == self.place:
            raise KeyboardInterrupt


def planted_task():
    """Points whose feature tells their label."""
    labels = np.arange(60) % 5
    features = np.eye(5, 8, dtype=np.float32)[labels]
    network = FrozenFeatures(features, dropout=0.0, device=CPU)
    table = LabelTable(5, 8, frequencies=np.full(5, 0.2), device=CPU)
    block = BoundedResidual().block(8, CPU)
    task = OneVsAllTask(network, block, table, block_learning_rate=1e-3)
    return task, AllLabels(sp.csr_array(np.eye(5, dtype=np.float32)[labels]), 16)


class TestLoop:
    def test_loss_falls(self):
        run = a_run()
        train(*planted_task(), Schedule(epochs=8, learning_rate=0.1), run, "stage")
        losses = [entry["loss"] for entry in run.history]
        assert losses[-1] < losses[0] / 2
        assert [entry["epoch"] for entry in run.history] == list(range(1, 9))

    def test_callbacks_hear_of_every_batch_and_epoch(self):
        recorder = Recorder()
        run = a_run(recorder).within("learner 2: ")
        train(*planted_task(), Schedule(epochs=2, learning_rate=0.1), run, "stage")
        assert [b[:3] for b in recorder.batches] == [
            ("learner 2: stage", done, 8) for done in range(1, 9)
        ]
        assert recorder.batches[0][3] is not None
        assert [e[:3] for e in recorder.epochs] == [
            ("learner 2: stage", 1, 2),
            ("learner 2: stage", 2, 2),
        ]

    def test_no_two_epochs_draw_alike_and_each_draws_what_it_drew(self):
        class Drawing:
            def __init__(self):
                self.drawn, self.rates = [], []

            def step(self, batch, learning_rate, share, *, measure):
                self.rates.append(learning_rate)
                self.drawn.append((float(torch.rand(1)), *batch.points.tolist()))

            def state(self):
                return {}

        batches = AllLabels(sp.csr_array(np.ones((9, 1))), 3)
        first, again = Drawing(), Drawing()
        for task, epochs in ((first, 4), (again, 2)):
            train(task, batches, Schedule(epochs=epochs, learning_rate=1), a_run(), "a stage")
        assert again.drawn == first.drawn[:6]
        numbers, points = zip(*((row[0], row[1:]) for row in first.drawn), strict=True)
        assert len(set(numbers)) == 12
        assert len({points[i : i + 3] for i in range(0, 12, 3)}) == 4
        assert first.rates == pytest.approx([1 - step / 12 for step in range(12)])

    @pytest.mark.parametrize("names", [["another"], planted_task()[0].state()])
    def test_a_checkpoint_of_other_tensors_is_ignored(self, names, tmp_path):
        folder, recorder = (
            CheckpointFolder(tmp_path, fingerprint=Fingerprint("{}", "f"), every_seconds=0),
            Recorder(),
        )
        folder.save("stage", 1, {name: torch.zeros(2) for name in names}, [], ends_stage=True)
        run = a_run(recorder, folder=folder)
        train(*planted_task(), Schedule(epochs=2, learning_rate=0.1), run, "stage")
        assert [epoch[1] for epoch in recorder.epochs] == [1, 2]

    def test_no_epochs_change_nothing(self):
        task, batches = planted_task()
        before = task.table.bias.clone()
        train(task, batches, Schedule(epochs=0, learning_rate=0.1), a_run(), "stage")
        assert torch.equal(task.table.bias, before)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_a_loss_that_runs_away_stops_training(self, value):
        task, batches = planted_task()
        task.table.bias[2] = value
        with pytest.raises(TrainingError, match=r"The loss is .* in 'stage', epoch 1. Lower the"):
            train(task, batches, Schedule(epochs=1, learning_rate=0.1), a_run(), "stage")


def dataset(last_label="car"):
    """160 texts of a word and noise, the word is the label; some points are held out."""
    random = np.random.default_rng(0)
    words = [WORDS[i] for i in random.integers(0, len(WORDS), 160)]
    texts = [f"{word} t{random.integers(40)} t{random.integers(40)}" for word in words]
    rows = [[word] for word in words]
    rows[-1] = [last_label]
    labels, space, _ = labels_from(rows, 160)
    return Dataset(texts_from(texts), None, labels, space)


def astec(**settings):
    small = {
        "dimension": 12,
        "surrogate_epochs": 3,
        "extreme_epochs": 3,
        "reranker_epochs": 3,
        "batch_size": 40,
        "n_near_points": 10,
        "held_out": 0.2,
        "n_threads": 1,
    }
    return Astec(**small | settings)


def arrays_of(model):
    return model.predictor_.scorer.to_arrays()


def assert_equal(first, second):
    first, second = arrays_of(first), arrays_of(second)
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def killed(folder, stage, done, **settings):
    """Leave in a folder what a training leaves that is killed at a batch of a stage."""
    with pytest.raises(KeyboardInterrupt):
        astec(**settings).fit_dataset(
            dataset(),
            callbacks=[Killer(stage, done)],
            checkpoint_folder=folder,
            checkpoint_seconds=0,
        )


def stages_run(folder, data=None, **settings):
    """Train in a folder, and return the stage and number of each epoch that was run."""
    recorder = Recorder()
    model = astec(**settings).fit_dataset(
        data or dataset(), callbacks=[recorder], checkpoint_folder=folder, checkpoint_seconds=0
    )
    return model, [epoch[:2] for epoch in recorder.epochs]


@pytest.mark.parametrize("folder", [None, "kept"])
def test_training_does_not_hold_the_features_of_all_points_beside_their_parts(
    tmp_path, monkeypatch, folder
):
    known = []

    def split_and_watched(settings, dataset, encoded, *others):
        known.append(weakref.ref(encoded.features.data))
        return split_data(settings, dataset, encoded, *others)

    def see(stage, done, total, loss):
        known.append(known[0]())

    monkeypatch.setattr("longtail.estimators.estimator.split_data", split_and_watched)
    recorder = Recorder()
    recorder.on_batch = see
    kept = None if folder is None else tmp_path / folder
    astec(held_out=0.2).fit_dataset(dataset(), callbacks=[recorder], checkpoint_folder=kept)
    assert len(known) > 2
    assert known[1:] == [None] * (len(known) - 1)


ALL_EPOCHS = [(s, e) for s in ("module I", "module IV", "re-ranker") for e in (1, 2, 3)]


class TestResuming:
    # Batches: 4 an epoch in module I, 2 an epoch after it.
    @pytest.mark.parametrize(
        ("stage", "done", "epochs_left"),
        [("module I", 6, 8), ("module IV", 3, 5), ("re-ranker", 6, 1)],
    )
    @pytest.mark.parametrize("settings", [{}, {"n_threads": 2}])
    def test_gives_the_very_same_model(self, tmp_path, stage, done, epochs_left, settings):
        whole = astec(**settings).fit_dataset(dataset())
        killed(tmp_path / "kept", stage, done, **settings)
        resumed, epochs = stages_run(tmp_path / "kept", **settings)
        assert epochs == ALL_EPOCHS[-epochs_left:]
        assert_equal(resumed, whole)
        assert resumed.predictor_.calibration == whole.predictor_.calibration
        history = [(h["stage"], h["epoch"]) for h in resumed.training_report()["history"]]
        assert history == ALL_EPOCHS

    def test_as_in_code_too(self, tmp_path):
        whole = astec(as_in_code=True).fit_dataset(dataset())
        killed(tmp_path, "module I", 3, as_in_code=True)
        resumed, epochs = stages_run(tmp_path, as_in_code=True)
        assert epochs[0] == ("module I", 3)
        assert_equal(resumed, whole)

    def test_an_ensemble_goes_on_with_its_learner(self, tmp_path):
        settings = {"n_learners": 2, "reranker": False}
        whole = astec(**settings).fit_dataset(dataset())
        killed(tmp_path, "learner 2: module I", 6, **settings)
        resumed, epochs = stages_run(tmp_path, **settings)
        assert epochs[0] == ("learner 2: module I", 2)
        assert_equal(resumed, whole)

    def test_other_settings_start_anew_and_leave_what_there_was(self, tmp_path, caplog):
        killed(tmp_path, "module IV", 3)
        model, epochs = stages_run(tmp_path, dropout=0.3)
        assert epochs == ALL_EPOCHS
        assert "starts over" in caplog.text
        assert "has dropout=none, not 0.3. It is kept" in caplog.text
        model.save(tmp_path / "model")
        assert stages_run(tmp_path)[1] == ALL_EPOCHS[4:]  # the earlier training goes on

    def test_other_data_start_anew(self, tmp_path, caplog):
        killed(tmp_path, "module IV", 3)
        assert stages_run(tmp_path, dataset("bus"))[1] == ALL_EPOCHS
        assert "has other training data. It is kept" in caplog.text

    def test_another_version_starts_anew(self, tmp_path, caplog, monkeypatch):
        with monkeypatch.context() as earlier:
            earlier.setattr("longtail.estimators.estimator.__version__", "0.0.9")
            killed(tmp_path, "module IV", 3)
        assert stages_run(tmp_path)[1] == ALL_EPOCHS
        assert "has longtail=0.0.9, not " in caplog.text

    def test_another_recipe_starts_anew(self, tmp_path, caplog):
        killed(tmp_path, "module IV", 3)
        data = dataset()
        Astec3(surrogate_epochs=1, extreme_epochs=1).fit_dataset(data, checkpoint_folder=tmp_path)
        assert "has the recipe astec, not astec-3. It is kept" in caplog.text

    def test_another_seed_starts_anew(self, tmp_path):
        killed(tmp_path, "module IV", 3)
        assert stages_run(tmp_path, random_state=1)[1] == ALL_EPOCHS

    @pytest.mark.parametrize("n_bytes", [0, 4, 100, 3000])
    def test_a_checkpoint_cut_short_is_ignored(self, tmp_path, n_bytes, caplog):
        killed(tmp_path, "module I", 6)
        (file,) = tmp_path.glob("*/*")
        file.write_bytes(file.read_bytes()[:n_bytes])
        assert stages_run(tmp_path)[1] == ALL_EPOCHS
        assert "module I starts over" in caplog.text

    def test_checkpoints_stay_until_the_model_is_saved(self, tmp_path):
        stages_run(tmp_path / "kept")
        again, epochs = stages_run(tmp_path / "kept")
        assert epochs == []  # nothing is left to do
        again.save(tmp_path / "model")
        assert not (tmp_path / "kept").exists()

    def test_what_else_is_in_the_folder_stays(self, tmp_path):
        kept = tmp_path / "kept"
        kept.mkdir()
        (kept / "thesis.txt").write_text("years of work")
        (kept / "arrays.safetensors").write_bytes(b"a model")
        stages_run(kept)[0].save(tmp_path / "model")
        left = sorted(file.name for file in kept.iterdir())
        assert left == ["arrays.safetensors", "thesis.txt"]


class TestCheckpointFolder:
    def folder(self, path, **settings):
        return CheckpointFolder(
            path, **{"fingerprint": Fingerprint("{}", "f"), "every_seconds": 0} | settings
        )

    def save(self, folder, epoch=1, *, ends_stage=False):
        folder.save(
            "Module IV", epoch, {"a": torch.ones(3)}, [{"epoch": epoch}], ends_stage=ends_stage
        )

    def test_round_trip(self, tmp_path):
        self.save(self.folder(tmp_path), 4)
        found = self.folder(tmp_path).load("Module IV")
        assert (found.epoch, found.history) == (4, [{"epoch": 4}])
        np.testing.assert_array_equal(found.arrays["a"], np.ones(3, np.float32))
        assert self.folder(tmp_path).load("module I") is None

    def test_one_that_is_loaded_takes_no_memory_beside_what_it_is_written_over(self, tmp_path):
        live = np.zeros(500_000)
        self.folder(tmp_path).save("IV", 1, {"a": live + 1}, [], ends_stage=False)
        tracemalloc.start()
        try:
            write_state({"a": live}, self.folder(tmp_path).load("IV").arrays)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (live == 1).all()
        assert peak < live.nbytes / 4

    @pytest.mark.parametrize(
        "damage",
        [
            lambda content: content[:-1] + bytes([content[-1] ^ 1]),
            lambda content: content.replace(b'"F32"', b'"I32"'),
            lambda content: content.replace(b'epoch\\": 1', b'epoch\\": 2'),
            lambda content: content.replace(b'\\"checksum\\"', b'\\"no_check\\"'),
        ],
    )
    def test_a_damaged_one_is_told_and_not_used(self, tmp_path, caplog, damage):
        folder = self.folder(tmp_path)
        self.save(folder)
        (file,) = tmp_path.glob("*/*")
        content = file.read_bytes()
        file.write_bytes(damage(content))
        assert (file.read_bytes() != content, folder.load("Module IV")) == (True, None)
        assert "cannot be read (its checksum differs): Module IV starts over" in caplog.text

    @pytest.mark.parametrize("note", ["[]", '"a"', "1", '{"fingerprint": 1'])
    def test_one_with_another_note_is_told_and_not_used(self, tmp_path, caplog, note):
        folder = self.folder(tmp_path)
        self.save(folder)
        (file,) = tmp_path.glob("*/*")
        write_arrays(file, {"a": np.ones(1)}, note=note)
        assert folder.load("Module IV") is None
        assert "Module IV starts over" in caplog.text

    def test_not_more_often_than_asked(self, tmp_path):
        folder = self.folder(tmp_path, every_seconds=1000.0)
        self.save(folder, 1)
        assert folder.load("Module IV") is None
        self.save(folder, 2, ends_stage=True)
        assert folder.load("Module IV").epoch == 2

    def test_every_so_many_seconds_also_at_the_end_of_a_large_stage(self, tmp_path, monkeypatch):
        clock = [0.0]
        monkeypatch.setattr(checkpoints.time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(checkpoints, "BYTES_A_SECOND", 1e-6)  # to write it takes very long
        folder, kept = self.folder(tmp_path, every_seconds=60.0), []
        for epoch in range(1, 7):
            clock[0] += 35
            self.save(folder, epoch, ends_stage=epoch == 6)
            found = folder.load("Module IV")
            kept.append(found and found.epoch)
        assert kept == [None, 2, 2, 4, 4, 6]

    def test_what_a_kill_left_half_written_goes_with_the_rest(self, tmp_path):
        folder = self.folder(tmp_path / "own")
        self.save(folder)
        (own_folder,) = (tmp_path / "own").iterdir()
        (own_folder / "module-i.partial").write_bytes(b"half")
        folder.remove()
        assert not (tmp_path / "own").exists()

    def test_who_is_killed_while_one_is_written_leaves_nothing_that_stays(self, tmp_path):
        own = tmp_path / "own"
        killed = subprocess.run([sys.executable, "-c", KILLED_IN_SAVE, own], check=False)
        assert killed.returncode == -signal.SIGXFSZ
        assert [file.suffix for file in own.glob("*/*")] == [".partial"]
        self.folder(own).remove()
        assert not own.exists()

    def test_one_of_another_training_does_not_count_wherever_it_lies(self, tmp_path):
        own = self.folder(tmp_path)
        other = self.folder(tmp_path, fingerprint=Fingerprint("{}", "g"))
        self.save(own)
        (own_folder,) = tmp_path.iterdir()
        self.save(other)
        (other_folder,) = {*tmp_path.iterdir()} - {own_folder}
        for file in own_folder.iterdir():
            file.replace(other_folder / file.name)
        assert other.load("Module IV") is None

    @pytest.mark.parametrize(("seconds", "is_kept"), [(59, False), (61, True)])
    def test_the_end_of_a_stage_is_kept_where_it_saves_more_than_it_takes(
        self, tmp_path, monkeypatch, seconds, is_kept
    ):
        clock = iter([0.0, seconds, seconds])
        monkeypatch.setattr(checkpoints.time, "monotonic", lambda: next(clock))
        monkeypatch.setattr(checkpoints, "BYTES_A_SECOND", 4.0)  # twelve bytes take three seconds
        folder = self.folder(tmp_path, every_seconds=1000.0)
        self.save(folder, 2, ends_stage=True)
        assert (folder.load("Module IV") is not None) == is_kept

    def test_a_full_disk_leaves_the_last_checkpoint(self, tmp_path, monkeypatch, caplog):
        folder = self.folder(tmp_path)
        self.save(folder, 1)

        def half_written(path, arrays, note):
            path.write_bytes(b"half")
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(checkpoints, "write_arrays", half_written)
        self.save(folder, 2)
        assert "No space left on device" in caplog.text
        assert len(list(tmp_path.glob("*/*"))) == 1
        assert folder.load("Module IV").epoch == 1

    def test_a_place_that_is_no_folder_is_told_before_anything_is_trained(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        for place in ("file", "file/kept"):
            with pytest.raises(TrainingError, match=r"Checkpoints cannot be kept in .*file is no"):
                self.folder(tmp_path / place).announce()
        self.folder(tmp_path / "new" / "kept").announce()

    def test_a_folder_that_cannot_be_made(self, tmp_path, caplog):
        (tmp_path / "file").write_text("in the way")
        self.save(self.folder(tmp_path / "file" / "kept"))
        assert "could not be written" in caplog.text

    def test_training_goes_on_when_the_disk_is_full(self, tmp_path, monkeypatch, caplog):
        usual, n_refused = checkpoints.write_arrays, 0

        def refuse_once(*arguments, **keywords):
            nonlocal n_refused
            if n_refused:
                return usual(*arguments, **keywords)
            n_refused += 1
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(checkpoints, "write_arrays", refuse_once)
        stages_run(tmp_path)
        assert caplog.text.count("Free some space") == n_refused == 1
        assert CheckpointFolder.has_any(tmp_path)


def test_fingerprint_changes_with_settings_and_data():
    matrix = sp.csr_array(np.eye(3, dtype=np.float32))
    other = matrix.copy()
    other.data[1] = 2
    empty = sp.csr_array((3, 3), dtype=np.float32)
    marks = [
        fingerprint({"a": 1}, matrix),
        fingerprint({"a": 2}, matrix),
        fingerprint({"a": 1}, other),
        fingerprint({"a": 1}, matrix, matrix),
        fingerprint({"a": 1}, empty),
        fingerprint({"a": 1}, matrix, None),
        fingerprint({"a": 1}, matrix, TextColumn.from_strings(["one", "two"])),
        fingerprint({"a": 1}, matrix, TextColumn.from_strings(["on", "etwo"])),
    ]
    assert len(set(marks)) == len(marks)
    assert fingerprint({"b": 1, "a": 1}, matrix) == fingerprint({"a": 1, "b": 1}, matrix.copy())


class NothingKnown:
    """A task that knows nothing of some batches."""

    def __init__(self, known):
        self.known, self.n = known, -1

    def step(self, batch, learning_rate, share, *, measure):
        self.n += 1
        return 1.0 + self.n if measure and self.n in self.known else None

    def state(self):
        return {}


@pytest.mark.parametrize(("known", "expected"), [({0, 10}, 6.0), ({3, 12}, 8.5), (set(), None)])
def test_a_batch_of_which_nothing_is_known_leaves_the_measuring_to_the_next(known, expected):
    batches, run = (
        AllLabels(sp.csr_array(np.eye(13, dtype=np.float32)), 1),
        a_run(),
    )
    train(NothingKnown(known), batches, Schedule(epochs=1, learning_rate=0.1), run, "stage")
    assert run.history[0]["loss"] == expected
    assert as_json("history", {"history": run.history})


def test_batches_that_are_too_small_for_all_processes_are_told(monkeypatch):
    monkeypatch.setattr("longtail.training.loop.share_of", lambda _: None)
    batches, run = (
        AllLabels(sp.csr_array(np.eye(3, dtype=np.float32)), 1),
        a_run(),
    )
    with pytest.raises(TrainingError, match="No batch of 'stage' has a point for each of the"):
        train(NothingKnown({0}), batches, Schedule(epochs=1, learning_rate=0.1), run, "stage")
