"""The parts of `benchmarks/peers` that need no peer and no network."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers import environments, running
from benchmarks.peers.__main__ import _chosen, main
from benchmarks.peers.data import files_in, prepare
from benchmarks.peers.overview import main as overview
from benchmarks.peers.picture import Dot, draw, spread
from benchmarks.peers.report import IN_CSV, as_csv, as_markdown, rows_of, time_to_best_peer
from benchmarks.peers.running import Run, Settings, WorkerFailedError, call_worker, run_once
from benchmarks.peers.systems import (
    ENVIRONMENTS,
    SYSTEMS,
    Candidate,
    System,
    candidates,
    refusal,
    with_encoder,
)
from benchmarks.peers.workers import measuring
from scipy.sparse import csr_matrix

import longtail
from longtail.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::longtail.data.InputWarning")


def run(name, accuracy=None, *, seconds=1.0, seed=0, variant=None, failure=None):
    system = name.partition(" (")[0]
    values = {} if accuracy is None else dict.fromkeys(IN_CSV, 1.0)
    values |= {} if accuracy is None else {"P@1": accuracy, "training_seconds": seconds}
    return Run(system, variant, name, seed, failure, values)


@pytest.fixture
def texts(tmp_path):
    rows = [{"text": f"red wine {i % 7}", "labels": [f"l{i % 3}"]} for i in range(30)]
    rows.append({"text": "nobody knows", "labels": []})
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "train.jsonl").write_text(lines)
    (tmp_path / "test.jsonl").write_text(lines + '{"text": "new", "labels": ["l9"]}\n')
    (tmp_path / "work").mkdir()
    return tmp_path


@pytest.fixture
def features(tmp_path):
    (tmp_path / "train.txt").write_text("2 3 2\n0 0:3 1:4\n1 2:2\n")
    (tmp_path / "test.txt").write_text("1 3 2\n0 1:1\n")
    (tmp_path / "work").mkdir()
    return tmp_path


def worker(body, tmp_path, seconds=30.0):
    call_worker([sys.executable, "-c", body], 1, time.monotonic() + seconds, tmp_path)


def wait_until(is_so, seconds=60.0):
    stop = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < stop
        time.sleep(0.02)


def is_running(process):
    status = Path(f"/proc/{process}/status")
    try:
        return "zombie" not in status.read_text()
    except OSError:
        return False


class TestReport:
    def test_a_row_has_the_medians_of_its_runs(self):
        runs = [run("a", 10.0, seconds=s, seed=i) for i, s in enumerate((5.0, 1.0, 2.0))]
        (row,) = rows_of(runs)
        assert (row.n_runs, row.values["training_seconds"], row.failure) == (3, 2.0, None)

    def test_best_first_and_failures_last_whatever_the_order_of_runs(self):
        runs = [run("a", 10.0), run("b", failure="why"), run("c", 30.0)]
        assert [row.name for row in rows_of(runs)] == ["c", "a", "b"]

    def test_a_run_that_fails_later_leaves_the_median_of_the_others_and_a_remark(self):
        (row,) = rows_of([run("a", 10.0), run("a", seed=1, failure="killed")])
        assert (row.n_runs, row.values["P@1"], row.failure) == (1, 10.0, "killed")

    def test_a_run_that_had_no_time_to_predict_keeps_what_training_took(self):
        stopped = replace(run("a", failure="not done"), values={"training_seconds": 7.0})
        rows = rows_of([run("b", 20.0), stopped])
        row = rows[-1]
        assert (row.n_runs, row.values, row.failure) == (0, {"training_seconds": 7.0}, "not done")
        assert "| 7.0 |" in as_markdown(rows)
        assert time_to_best_peer(rows) == ""

    def test_the_best_features_of_each_system_are_marked(self):
        runs = [run("a (x)", 10.0, variant="x"), run("a (y)", 20.0, variant="y"), run("b", 5.0)]
        rows = {row.name: row for row in rows_of(runs)}
        assert [name for name in rows if rows[name].is_best] == ["a (y)", "b"]
        table = as_markdown(list(rows.values()))
        assert "| **a (y)** | 20.00 |" in table
        assert "| b | 5.00 |" in table  # nothing to choose from

    def test_markdown_rows_are_as_wide_as_the_head_and_say_why_there_is_no_result(self):
        lines = as_markdown(rows_of([run("a", 1.0), run("b", failure="x | y")])).splitlines()
        assert len({line.replace(r"\|", "").count("|") for line in lines}) == 1
        assert lines[-1].endswith(r"| 0 | x \| y |")

    def test_how_soon_longtail_is_as_accurate_as_the_best_peer(self):
        ours = [run("longtail", 60.0, seconds=8.0), run("longtail-quick", 51.0, seconds=4.0)]
        peers = [run("a", 50.0, seconds=10.0), run("b", 40.0), run("c", failure="why")]
        assert "a, has 50.00: longtail-quick" in time_to_best_peer(rows_of(ours + peers))
        assert "in 0.40 times" in time_to_best_peer(rows_of(ours + peers))
        better = [run("a", 55.0, seconds=10.0)]
        assert "longtail is as accurate in 0.80" in time_to_best_peer(rows_of(ours + better))
        assert time_to_best_peer(rows_of([*ours, run("a", 70.0)])) == ""
        assert time_to_best_peer(rows_of(ours)) == time_to_best_peer(rows_of(peers)) == ""

    def test_csv_has_every_metric_and_the_reason(self):
        text = as_csv(rows_of([run("a (x)", 12.5, variant="x"), run("b", failure="no, sorry")]))
        first, second = csv.DictReader(text.splitlines())
        assert (first["system"], first["variant"], first["P@1"]) == ("a", "x", "12.5")
        assert (second["P@1"], second["failure"], second["runs"]) == ("", "no, sorry", "0")

    def test_the_picture_names_each_system_once(self):
        dots = [Dot("ours", 10.0, 50.0, True), Dot("ours", 5.0, 40.0, False)]
        assert draw(dots, "P@1").count(">ours<") == 1

    def test_names_in_the_picture_keep_their_order_and_distance_above_the_bottom(self):
        heights = spread([5.0, 5.0, 4.9, 0.2, 0.1], gap=1.0, bottom=0.0)
        assert np.all(-np.diff(heights) >= 1.0 - 1e-9)
        assert heights[-1] >= 0.0
        assert spread([9.0, 5.0], gap=1.0, bottom=0.0) == [9.0, 5.0]

    def test_the_picture_of_nothing_is_still_a_picture(self):
        assert "<svg" in draw([], "P@1")


class TestData:
    def test_texts_come_as_three_kinds_of_features_and_as_texts(self, texts):
        task = prepare(files_in(texts), texts / "work")
        assert list(task.variants) == ["words", "words + pairs", "words + chars"]
        widths = [task.variants[name].facts["n_features"] for name in task.variants]
        assert widths[0] < widths[1] < widths[2]
        assert measuring.read_points(str(task.texts.test_points))[-1] == "new"

    def test_training_points_without_labels_are_left_out_but_counted(self, texts):
        task = prepare(files_in(texts), texts / "work")
        assert task.n_train_points == 31
        assert measuring.read_points(str(task.train_labels)).shape == (30, 3)
        assert measuring.read_points(str(task.variants["words"].train_points)).shape[0] == 30

    def test_a_test_label_that_training_has_not_counts_as_missed(self, texts):
        task = prepare(files_in(texts), texts / "work")
        assert (task.n_labels, task.truth.shape) == (3, (32, 4))

    def test_ready_features_are_used_as_unit_rows(self, features):
        task = prepare(files_in(features), features / "work")
        (variant,) = task.variants.values()
        X = measuring.read_points(str(variant.train_points))
        np.testing.assert_allclose(X.toarray(), [[0.6, 0.8, 0], [0, 0, 1]], rtol=1e-6)

    def test_a_folder_with_two_training_files_is_refused(self, features):
        (features / "train.csv").touch()
        with pytest.raises(InputError, match=r"train\.csv, train\.txt"):
            files_in(features)


class TestSystems:
    def test_each_system_has_an_environment_a_worker_and_its_own_name(self):
        assert len({system.name for system in SYSTEMS}) == len(SYSTEMS)
        for system in SYSTEMS:
            assert system.environment == "longtail" or system.environment in ENVIRONMENTS
            folder = Path(measuring.__file__).parent
            assert (folder / f"{system.worker}.py").is_file()

    def test_every_kind_of_features_is_tried_and_one_if_quick(self, texts):
        task = prepare(files_in(texts), texts / "work")
        trees = System("trees", "omikuji", "omikuji", "features", quick_variant="words")
        reader = System("reader", "fasttext", "fasttext", "text")
        names = [row.name for row in candidates([trees, reader], task, quick=False)]
        assert names == [
            "trees (words)",
            "trees (words + pairs)",
            "trees (words + chars)",
            "reader",
        ]
        quick = [row.name for row in candidates([trees, reader], task, quick=True)]
        assert quick == ["trees (words)", "reader"]

    def test_a_quick_comparison_gives_each_the_features_that_were_best_elsewhere(self, texts):
        task = prepare(files_in(texts), texts / "work")
        for names, best in (
            (["omikuji", "pecos", "libmultilabel"], "words + chars"),
            (["sklearn-knn"], "words + pairs"),
        ):
            rows = candidates(_chosen(names, quick=True), task, quick=True)
            assert {row.variant for row in rows} == {best}

    def test_a_quick_comparison_has_one_recipe_of_longtail_unless_systems_are_named(self):
        quick = [system.name for system in _chosen(None, quick=True)]
        ours = [name for name in quick if name.startswith("longtail")]
        assert ours == ["longtail longtail", "longtail-quick"]
        assert "napkinxc-plt-3" not in quick
        assert [s.name for s in _chosen(["napkinxc-plt-3"], quick=True)] == ["napkinxc-plt-3"]
        assert len(_chosen(None, quick=False)) == len(SYSTEMS)

    def test_quick_kinds_of_features_exist(self, texts):
        task = prepare(files_in(texts), texts / "work")
        wanted = {system.quick_variant for system in SYSTEMS if "features" in system.takes}
        assert wanted <= set(task.variants)

    def test_systems_that_cannot_run_are_refused_with_the_reason(self, features):
        task = prepare(files_in(features), features / "work")
        assert "takes text" in refusal(System("f", "fasttext", "fasttext", "text"), task)
        assert "at most 1" in refusal(System("o", "p", "pecos", "features", max_labels=1), task)
        assert refusal(System("o", "p", "pecos", "features", max_labels=2), task) is None

    def test_a_system_of_texts_and_features_is_tried_on_one_kind_of_these(self, texts):
        task = prepare(files_in(texts), texts / "work")
        both = System("both", "pecos", "pecos", "text and features", quick_variant="words")
        for quick in (False, True):
            rows = candidates([both], task, quick=quick)
            assert [row.name for row in rows] == ["both (words)"]

    def test_a_system_that_needs_a_transformer_says_so_until_it_has_one(self, texts, tmp_path):
        task = prepare(files_in(texts), texts / "work")
        reader = System("r", "pecos", "pecos", "text and features", needs_encoder=True)
        assert "--encoder FOLDER" in refusal(with_encoder(reader, None), task)
        given = with_encoder(reader, tmp_path)
        assert refusal(given, task) is None
        assert given.settings == {"encoder": str(tmp_path.resolve())}
        other = System("o", "pecos", "pecos", "features")
        assert with_encoder(other, tmp_path) is other

    def test_a_system_of_texts_and_features_is_refused_where_there_are_no_texts(self, features):
        task = prepare(files_in(features), features / "work")
        reader = System("r", "pecos", "pecos", "text and features", needs_encoder=True)
        assert "takes text" in refusal(reader, task)


class TestRunning:
    def test_a_system_of_texts_and_features_gets_both_of_the_same_points(self, texts, monkeypatch):
        jobs = []

        def carried_out(job, *_):
            jobs.append(job)
            raise WorkerFailedError("enough")

        monkeypatch.setattr(running, "carried_out", carried_out)
        task = prepare(files_in(texts), texts / "work")
        settings = Settings(n_threads=1, time_limit=30, work_folder=texts / "work")
        both = System("both", "pecos", "pecos", "text and features", {"encoder": "folder"})
        for system, variant in ((both, "words"), (System("f", "p", "p", "features"), "words")):
            run_once(Candidate(system, variant), task, Path(sys.executable), 0, settings)
        job, of_features = jobs
        assert job.settings == {"encoder": "folder"}
        train = measuring.read_points(job.train_points, job.train_features)
        assert (train.texts[8], train.features.shape[0]) == ("red wine 1", 30)
        test = measuring.read_points(job.test_points, job.test_features)
        assert (test.texts[-1], test.features.shape[0]) == ("new", 32)
        assert of_features.train_features is of_features.test_features is None
        assert measuring.read_points(of_features.train_points).shape == train.features.shape

    def test_a_failing_worker_is_its_last_line_of_stderr(self, tmp_path):
        with pytest.raises(WorkerFailedError, match=r"^ValueError: no such tree$"):
            worker("raise ValueError('no such tree')", tmp_path)

    def test_a_crash_is_named(self, tmp_path):
        with pytest.raises(WorkerFailedError, match=r"^killed by SIGSEGV$"):
            worker("import os; os.kill(os.getpid(), 11)", tmp_path)

    def test_a_silent_failure_is_its_code(self, tmp_path):
        with pytest.raises(WorkerFailedError, match=r"^ended with code 3$"):
            worker("raise SystemExit(3)", tmp_path)

    def test_a_worker_over_its_time_is_ended_with_its_children(self, tmp_path):
        file = tmp_path / "child"
        body = (
            "import subprocess, sys, time; "
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
            f"open({str(file)!r}, 'w').write(str(child.pid)); time.sleep(60)"
        )
        with pytest.raises(TimeoutError):
            worker(body, tmp_path, seconds=3)
        wait_until(lambda: not is_running(int(file.read_text())))

    def test_a_python_that_is_not_there_is_told(self, tmp_path):
        gone = str(tmp_path / "python")
        with pytest.raises(WorkerFailedError, match=f"{gone} cannot be run: No such file"):
            call_worker([gone, "-c", "pass"], 1, time.monotonic() + 30, tmp_path)

    def test_only_longtail_s_own_worker_finds_what_this_process_finds(self, tmp_path, monkeypatch):
        peer = tmp_path / "python"
        peer.symlink_to(sys.executable)
        monkeypatch.setenv("PYTHONPATH", "own")
        for python, said in ((sys.executable, "own"), (str(peer), "None")):
            body = "import os, sys; sys.exit(os.environ.get('PYTHONPATH') or 'None')"
            with pytest.raises(WorkerFailedError, match=f"^{said}$"):
                call_worker([python, "-S", "-c", body], 1, time.monotonic() + 30, tmp_path)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_a_comparison_that_is_told_to_stop_takes_its_worker_along(self, number, tmp_path):
        started = tmp_path / "started"
        body = (
            f"import os, pathlib, time; pathlib.Path({str(started)!r}).write_text(str(os.getpid()))"
            "; time.sleep(60)"
        )
        script = (
            "import sys, tempfile, time\n"
            "from pathlib import Path\n"
            "from benchmarks.command import run\n"
            "from benchmarks.peers.running import call_worker\n"
            "def main():\n"
            f"    with tempfile.TemporaryDirectory(dir={str(tmp_path)!r}) as work:\n"
            f"        command = [sys.executable, '-c', {body!r}]\n"
            "        call_worker(command, 1, time.monotonic() + 60, Path(work))\n"
            "run(main)\n"
        )
        process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
        wait_until(lambda: started.exists() and started.read_text())
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (128 + number, b"Stopped.\n")
        assert list(tmp_path.iterdir()) == [started]
        wait_until(lambda: not is_running(int(started.read_text())))

    def test_a_worker_that_cannot_start_becomes_a_run_that_says_why(self, features):
        task = prepare(files_in(features), features / "work")
        candidate = Candidate(System("ghost", "omikuji", "no_such_worker", "features"), None)
        settings = Settings(n_threads=1, time_limit=30, work_folder=features / "work")
        ghost = run_once(candidate, task, Path(sys.executable), 0, settings)
        assert "no_such_worker" in ghost.failure
        assert (ghost.name, ghost.values) == ("ghost", {})

    def test_running_out_of_time_becomes_a_run_that_says_so(self, features):
        task = prepare(files_in(features), features / "work")
        waits = {"one_vs_rest": True}  # long enough to be cut off
        candidate = Candidate(System("slow", "scikit-learn", "sklearn", "features", waits), None)
        settings = Settings(n_threads=1, time_limit=0, work_folder=features / "work")
        slow = run_once(candidate, task, Path(sys.executable), 0, settings)
        assert slow.failure == "not done within 0 s (while it had to train)"

    def test_scores_that_are_no_numbers_are_a_failure(self, features):
        task = prepare(files_in(features), features / "work")
        path = features / "predictions.npz"
        np.savez(path, ids=np.zeros((1, 100), np.int32), scores=np.full((1, 100), np.nan))
        with pytest.raises(WorkerFailedError, match="not numbers"):
            running._metrics(task, path)


class TestMeasuring:
    def test_rankings_agree_from_pairs_matrix_and_dense(self):
        dense = np.array([[0.0, 0.9, 0.2], [0.5, 0.0, 0.0]])
        from_matrix = measuring.ranked_matrix(csr_matrix(dense), 2)
        from_pairs = measuring.ranked_pairs([[(1, 0.9), (2, 0.2)], [(0, 0.5)]], 2, 2)
        np.testing.assert_array_equal(from_matrix[0], [[1, 2], [0, -1]])
        for ours, theirs in zip(from_matrix, from_pairs, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        ids, scores = measuring.best_of_dense(dense, 2, np.array([10, 11, 12]))
        np.testing.assert_array_equal(ids[:, 0], [11, 10])
        np.testing.assert_allclose(scores[:, 0], [0.9, 0.5])

    def test_texts_with_features_are_cut_together(self):
        points = measuring.TextsWithFeatures(["a", "b", "c"], csr_matrix(np.eye(3)))
        first, last = points[:2], points[2]
        assert (len(points), first.texts, last.texts) == (3, ["a", "b"], ["c"])
        np.testing.assert_array_equal(first.features.toarray(), np.eye(3)[:2])
        np.testing.assert_array_equal(last.features.toarray(), np.eye(3)[2:])
        with pytest.raises(ValueError, match="3 texts, 2 rows"):
            measuring.TextsWithFeatures(points.texts, first.features)

    def test_dense_scores_of_few_labels_are_padded(self):
        ids, scores = measuring.best_of_dense(np.array([[0.1, 0.3]]), 4, np.arange(2))
        np.testing.assert_array_equal(ids, [[1, 0, -1, -1]])
        assert np.isneginf(scores[0, 2:]).all()

    def test_memory_and_cpu_time_are_those_of_this_process(self):
        assert 1e6 < measuring.peak_memory() < 1e12
        before = measuring.cpu_seconds()
        sum(i * i for i in range(2_000_000))
        assert measuring.cpu_seconds() > before


class TestEnvironments:
    def test_a_complete_environment_is_used_again(self, tmp_path, monkeypatch):
        home = tmp_path / "napkinxc"
        home.mkdir()
        content = {"requirements": ENVIRONMENTS["napkinxc"].requirements, "packages": ["a==1"]}
        (home / environments.STAMP).write_text(json.dumps(content))
        (home / "bin").mkdir()
        (home / "bin" / "python").touch()
        monkeypatch.setattr(environments, "_build", lambda *_: pytest.fail("built again"))
        assert environments.python_of("napkinxc", tmp_path).is_relative_to(home)
        assert environments.installed_packages("napkinxc", tmp_path) == ["a==1"]

    def test_an_environment_whose_python_has_gone_is_made_again(self, tmp_path, monkeypatch):
        home = tmp_path / "napkinxc"
        home.mkdir()
        content = {"requirements": ENVIRONMENTS["napkinxc"].requirements, "packages": ["a==1"]}
        (home / environments.STAMP).write_text(json.dumps(content))
        built = []
        monkeypatch.setattr(environments, "_build", lambda *given: built.append(given[1]))
        environments.python_of("napkinxc", tmp_path)
        assert built == [home]

    def test_longtail_s_own_says_which_longtail_runs_and_on_what(self, tmp_path):
        own, *others = environments.installed_packages("longtail", tmp_path)
        assert own == f"longtail=={longtail.__version__} in {Path(longtail.__file__).parent}"
        assert f"numpy=={np.__version__}" in others

    def test_an_environment_that_cannot_be_made_says_why(self, tmp_path):
        body = "print('ERROR: No matching distribution'); raise SystemExit(1)"
        with pytest.raises(environments.EnvironmentFailedError, match="No matching distribution"):
            environments._logged([sys.executable, "-c", body], tmp_path / "pip.log")


class TestCommand:
    def test_unknown_systems_and_missing_data_are_told_in_one_line(self, tmp_path, capsys):
        assert main(["--out", str(tmp_path)]) == 2
        files = ["--train", "train.txt", "--test", "test.txt"]
        assert main([*files, "--out", str(tmp_path), "--systems", "x"]) == 2
        first, second = capsys.readouterr().err.splitlines()
        assert "Pass --data FOLDER" in first
        assert "no system 'x'" in second

    def test_data_are_named_in_one_way(self, tmp_path, capsys):
        assert main(["--data", "D", "--train", "train.txt", "--out", str(tmp_path)]) == 2
        assert "--data names all files" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "arguments",
        [("--threads", "0"), ("--threads", "100000"), ("--repeats", "0"), ("--time-limit", "no")],
    )
    def test_numbers_that_cannot_be_are_refused(self, arguments, tmp_path, capsys):
        with pytest.raises(SystemExit):
            main(["--data", "D", "--out", str(tmp_path), *arguments])
        assert f"error: argument {arguments[0]}" in capsys.readouterr().err

    def test_peers_that_cannot_be_installed_are_rows_of_a_whole_report(
        self, features, capsys, monkeypatch
    ):
        def fail(name, folder):
            raise environments.EnvironmentFailedError("cannot be installed: no network")

        monkeypatch.setattr("benchmarks.peers.__main__.python_of", fail)
        out = features / "out"
        arguments = ["--data", str(features), "--out", str(out), "--systems", "omikuji", "fasttext"]
        assert main(arguments) == 0
        assert "cannot be installed: no network" in capsys.readouterr().out
        names = {path.name for path in out.iterdir()}
        assert names == {"table.md", "table.csv", "runs.json", "picture.svg"}
        runs = json.loads((out / "runs.json").read_text())["runs"]
        assert [run["system"] for run in runs][-1] == "fasttext-hs"
        assert "<svg" in (out / "picture.svg").read_text()

    def test_without_a_transformer_the_system_around_one_is_a_row_that_says_so(
        self, texts, capsys, monkeypatch
    ):
        never = "benchmarks.peers.__main__.python_of"
        monkeypatch.setattr(never, lambda *_: pytest.fail("made an environment"))
        out = texts / "out"
        arguments = ["--data", str(texts), "--out", str(out), "--systems", "pecos-xr-transformer"]
        assert main(arguments) == 0
        assert "pass its folder as --encoder FOLDER |" in capsys.readouterr().out
        (row,) = csv.DictReader((out / "table.csv").read_text().splitlines())
        assert (row["name"], row["runs"]) == ("pecos-xr-transformer", "0")
        assert "--encoder FOLDER" in row["failure"]

    def test_a_transformer_that_cannot_be_used_is_a_row_that_says_why(self, texts, monkeypatch):
        """No environment is made: the worker runs where there is no libpecos to import."""
        monkeypatch.setattr("benchmarks.peers.__main__.python_of", lambda *_: sys.executable)
        encoder, out = texts / "encoder", texts / "out"
        encoder.mkdir()
        (encoder / "config.json").write_text("{}")
        arguments = ["--data", str(texts), "--out", str(out), "--encoder", str(encoder)]
        assert main([*arguments, "--systems", "pecos-xr-transformer"]) == 0
        (row,) = csv.DictReader((out / "table.csv").read_text().splitlines())
        assert row["name"] == "pecos-xr-transformer (words + chars)"
        assert row["failure"] == "ModuleNotFoundError: No module named 'pecos'"
        assert row["failure"] in (out / "table.md").read_text()
        settings = json.loads((out / "runs.json").read_text())["settings"]
        assert settings["pecos-xr-transformer"] == {"encoder": str(encoder.resolve())}

    def test_a_folder_without_a_transformer_is_refused_at_once(self, texts, capsys):
        arguments = ["--data", str(texts), "--out", str(texts / "out"), "--encoder", str(texts)]
        assert main(arguments) == 2
        assert "is not a transformer folder: config.json not found" in capsys.readouterr().err
        assert not (texts / "out").exists()


class TestOverview:
    @pytest.fixture
    def folders(self, tmp_path):
        for name, accuracy in (("small", 40.0), ("large", 60.0)):
            runs = [run("omikuji-parabel (words)", 50.0, variant="words", seconds=3.0)]
            runs += [run("longtail longtail", accuracy), run("own-system", failure="no memory")]
            runs += [run("longtail-quick", accuracy + 1)]
            (tmp_path / name).mkdir()
            variants = {"words" if name == "small" else "features": {}}
            content = {"data": {"n_labels": 1234, "variants": variants}}
            content["runs"] = [one.as_json() for one in runs]
            (tmp_path / name / "runs.json").write_text(json.dumps(content))
        return [str(tmp_path / name) for name in ("small", "large")]

    def test_one_table_with_longtail_first_and_the_best_in_bold(self, folders, capsys):
        overview(folders)
        table, _, _ = capsys.readouterr().out.partition("\n\n")
        rows = [line.split("|")[1:4] for line in table.splitlines()[2:]]
        assert [[cell.strip() for cell in row] for row in rows] == [
            ["small", "**longtail**", "40.0"],
            ["1,234 labels", "longtail-quick", "41.0"],
            ["", "omikuji Parabel, words", "**50.0**"],
            ["large", "**longtail**", "60.0"],
            ["1,234 labels, features", "longtail-quick", "**61.0**"],
            ["", "omikuji Parabel, words", "50.0"],
        ]

    def test_what_has_no_result_stands_below_the_table_with_the_reason(self, folders, capsys):
        path = Path(folders[1]) / "runs.json"
        content = json.loads(path.read_text())
        stopped = replace(
            run("omikuji-parabel (chars)", variant="chars", failure="not done within 9 s"),
            values={"training_seconds": 7.0},
        )
        content["runs"].append(stopped.as_json())
        path.write_text(json.dumps(content))
        overview(folders)
        assert capsys.readouterr().out.endswith(
            " |\n\nWithout a result:\n\n"
            "- own-system (small, large): no memory\n"
            "- omikuji Parabel, chars (large): not done within 9 s\n"
        )

    def test_nothing_stands_below_the_table_where_all_have_results(self, tmp_path, capsys):
        content = {"data": {"n_labels": 3, "variants": {}}, "runs": [run("a", 1.0).as_json()]}
        (tmp_path / "runs.json").write_text(json.dumps(content))
        overview([str(tmp_path)])
        assert capsys.readouterr().out.count("\n") == 3

    def test_each_system_has_a_look_of_its_own(self):
        looks = {(system.marker, system.colour) for system in SYSTEMS}
        assert len(looks) == len({system.shown for system in SYSTEMS}) == len(SYSTEMS)

    def test_one_panel_a_data_set_and_each_system_once_in_the_legend(self, folders, tmp_path):
        overview([*folders, "--picture", str(tmp_path / "all.svg")])
        picture = (tmp_path / "all.svg").read_text()
        titles = [picture.count(f">{name}, 1,234 labels<") for name in ("small", "large")]
        assert titles == [1, 1]
        assert picture.count(">omikuji Parabel<") == picture.count(">longtail<") == 1

    def test_a_comparison_without_any_result_is_named(self, tmp_path):
        content = {
            "data": {"n_labels": 3, "variants": {}},
            "runs": [run("a", failure="takes text").as_json()],
        }
        (tmp_path / "runs.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match=r"runs\.json has no system with a result"):
            overview([str(tmp_path)])

    @pytest.mark.parametrize("content", ["{", "[]", '{"runs": [{}], "data": {"n_labels": 1}}'])
    def test_a_file_of_another_kind_is_named(self, content, tmp_path):
        (tmp_path / "runs.json").write_text(content)
        with pytest.raises(InputError, match=r"runs\.json is not what .* Make it again"):
            overview([str(tmp_path)])
