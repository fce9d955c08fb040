"""``longtail serve`` as a process of its own, asked over the network."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from multiprocessing import Pipe
from pathlib import Path

import pytest
from uvicorn import Config

from longtail import load
from longtail.cli import main
from longtail.errors import InputError
from longtail.recipes.parabel import Parabel
from longtail.serve import Limits, runner
from serving import COMMAND, ask, counted, launched, server, until, wait_for


@pytest.mark.thorough
def test_counts_are_kept_where_the_user_wants_them(text_model_path, tmp_path, monkeypatch):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", f"{tmp_path}/counts")
    with server(text_model_path, "--workers", 2) as (_, port):
        assert ask(port, "GET", "/metrics")[0] == 200
        assert list(tmp_path.glob("counts/*.db"))
    assert (tmp_path / "counts").exists()


@pytest.mark.thorough
def test_counts_that_someone_deletes_are_told_by_each_process(
    text_model_path, tmp_path, monkeypatch
):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", f"{tmp_path}/counts")
    with server(text_model_path) as (process, port):
        assert ask(port, "POST", "/predict", {"text": "red wine"})[0] == 200
        shutil.rmtree(tmp_path / "counts")
        assert counted(port, "longtail_texts_total") == 1
        (tmp_path / "counts").mkdir()  # as a worker does that starts
        assert ask(port, "POST", "/predict", {"text": "red wine"})[0] == 200
        assert counted(port, "longtail_texts_total") == 2
        assert counted(port, "longtail_model_ready") == 1
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert (err.count("the folder of counts"), "Traceback" in err) == (1, False)


def test_workers_share_counts_and_a_new_model_without_a_dropped_request(text_model_path, tmp_path):
    folder = tmp_path / "model"
    load(text_model_path).save(folder)
    failures, answered, first_labels = [], [0], set()
    stop = threading.Event()

    def keep_asking(port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        while not stop.is_set():
            try:
                connection.request("POST", "/predict", '{"text": "red wine", "k": 1}')
                response = connection.getresponse()
                body = json.loads(response.read())
                first_labels.update(body["labels"])
                answered[0] += response.status == 200
            except (OSError, http.client.HTTPException, KeyError) as error:
                failures.append(repr(error))
                connection.close()
        connection.close()

    with server(folder, "--workers", 2) as (process, port):
        threads = [threading.Thread(target=keep_asking, args=[port]) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            # A worker that starts later would load the new folder alone.
            until(lambda: counted(port, "longtail_model_loads_total") == 2)
            texts, names = ["red wine", "old car"] * 10, [["beverage"], ["machine"]] * 10
            Parabel(n_learners=1, n_threads=1).fit(texts, names).save(folder)
            until(lambda: len(first_labels) == 2)
            # A worker that has not seen the new folder yet would load it once for both reasons.
            until(lambda: counted(port, "longtail_model_loads_total") >= 4)
            process.send_signal(signal.SIGHUP)  # every worker loads it once more
            until(lambda: counted(port, "longtail_model_loads_total") >= 6)  # two, three times
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not failures
        assert "beverage" in first_labels
        until(lambda: counted(port, "longtail_texts_total") == answered[0])
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in err


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_stops_finishes_what_is_under_way_and_takes_nothing_new(
    text_model_path, workers
):
    def is_refused():
        try:
            ask(port, "GET", "/healthz")
        except OSError as error:  # who comes while it closes is cut off
            return isinstance(error, ConnectionRefusedError)
        return False

    with server(text_model_path, "--workers", workers) as (process, port):
        connection = socket.create_connection(("127.0.0.1", port), timeout=20)
        body = b'{"text": "red wine"}'
        head = f"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body[:5])
        time.sleep(0.3)
        process.terminate()
        until(is_refused, seconds=10)
        connection.sendall(body[5:])
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.close()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in err


@pytest.mark.parametrize("streams", ["<&-", "<&- >&- 2>&-"])
def test_a_server_whose_streams_are_closed_ends_as_any_other(text_model_path, streams):
    """Its event loop would otherwise have the number of one, and end the process by SIGABRT."""
    with server(text_model_path, streams=streams) as (process, _):
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Assertion" not in err


@pytest.mark.thorough
def test_a_proxy_may_take_its_path_away_or_leave_it(text_model_path):
    with server(text_model_path, "--root-path", "labels/") as (_, port):
        for path in ("/predict", "/labels/predict"):
            assert ask(port, "POST", path, {"text": "red wine"})[0] == 200
        document = json.loads(ask(port, "GET", "/labels/openapi.json")[1])
        assert document["servers"] == [{"url": "/labels"}]
        assert ask(port, "GET", "/labels")[0] == 307
        assert ask(port, "GET", "/other/predict")[0] == 404


def test_workers_end_when_their_server_is_killed(text_model_path, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with server(text_model_path, "--workers", 2) as (process, port):
        assert list(tmp_path.glob("longtail-metrics-*"))
        process.kill()
        _, err = process.communicate(timeout=30)  # which the workers hold open until they end
        assert "The server's process is gone" in err
        assert "Traceback" not in err
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", port))
    assert not list(tmp_path.glob("longtail-metrics-*"))


@contextmanager
def starting_workers(path):
    """Start a server of two workers; yield the process, which starts them, and its port."""
    with launched(path, "--workers", 2) as (process, port):
        while "Started parent process" not in (line := process.stderr.readline()):
            assert line
        time.sleep(0.2)
        yield process, port


def test_code_is_compiled_before_there_are_workers(text_model_path, monkeypatch):
    done = []

    class Workers:
        could_start = True

        def __init__(self, config, sockets):
            for listener in sockets:
                listener.close()

        def run(self):
            done.append("workers")

    monkeypatch.setattr(runner, "_Workers", Workers)
    monkeypatch.setattr(runner, "warm_up", lambda model: done.append(model.n_labels))
    settings = runner.ServerSettings(
        host="127.0.0.1", port=0, workers=2, root_path="", keep_alive=5.0
    )
    assert runner.serve(text_model_path, settings, Limits()) == 0
    assert done == [load(text_model_path).n_labels, "workers"]


@pytest.mark.thorough
def test_a_hang_up_ends_no_worker_that_starts(text_model_path):
    with starting_workers(text_model_path) as (process, port):
        for _ in range(4):
            process.send_signal(signal.SIGHUP)
            time.sleep(0.3)
        wait_for(process, port)
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "has ended" not in err
    assert "Traceback" not in err


@pytest.mark.thorough
def test_workers_may_take_long_to_start_and_one_that_is_killed_is_soon_replaced(
    text_model_path, tmp_path, monkeypatch
):
    """Where others keep the machine busy, six seconds go by before a worker can say anything."""
    slow = "import sys, time\nif '--multiprocessing-fork' in sys.argv: time.sleep(6)\n"
    (tmp_path / "sitecustomize.py").write_text(slow)
    folders = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    with launched(text_model_path, "--workers", 2) as (process, port):
        began = time.monotonic()
        wait_for(process, port)
        assert time.monotonic() - began > 5
        (tmp_path / "sitecustomize.py").write_text("")
        (victim, *_) = workers_of(process)
        os.kill(victim, signal.SIGKILL)
        until(lambda: len({*workers_of(process)} - {victim}) == 2, seconds=20)
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert err.count("has ended") == 1
    assert f"Worker {victim} has ended by SIGKILL, which the system sends where" in err


@pytest.mark.thorough
def test_workers_that_cannot_start_end_the_server(text_model_path, tmp_path, monkeypatch):
    """Each would fail as the one before: of a machine that has no threads left, for example."""
    broken = (
        "import sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        'def submit(*_, **__): raise RuntimeError("can\'t start new thread")\n'
        "if '--multiprocessing-fork' in sys.argv: ThreadPoolExecutor.submit = submit\n"
    )
    (tmp_path / "sitecustomize.py").write_text(broken)
    folders = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    with launched(text_model_path, "--workers", 2) as (process, _):
        _, err = process.communicate(timeout=30)
    assert err.count("could not start, so the server stops") == 1
    assert process.returncode != 0  # as with one worker, or who restarts it on failure does not


def test_how_a_worker_has_ended_is_said():
    assert runner._ended(-signal.SIGUSR1) == "has ended by SIGUSR1"
    assert runner._ended(-9999) == "has ended with exit code -9999"
    assert runner._ended(1) == "has ended with exit code 1"


def test_a_worker_that_says_nothing_for_long_is_given_up(monkeypatch):
    class Worker:
        parent_conn, child_conn = Pipe()

    workers, worker = object.__new__(runner._Workers), Worker()
    workers._asked = {}
    assert workers._answers(worker)
    assert worker.child_conn.recv() == b"ping"
    worker.child_conn.send(True)
    assert workers._answers(worker)
    assert workers._answers(worker)
    assert worker.child_conn.recv() == b"ping"
    assert not worker.child_conn.poll()  # nobody is asked again before the answer
    monkeypatch.setattr(runner, "WORKER_SECONDS", 0)
    assert not workers._answers(worker)


def workers_of(process):
    """Return the ids of the workers that live."""
    told = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not told.exists():
        pytest.skip("only Linux tells which processes a server has started")
    children = told.read_text().split()
    lines = {child: Path(f"/proc/{child}/cmdline") for child in children}
    return [int(child) for child, line in lines.items() if b"spawn_main" in line.read_bytes()]


@pytest.mark.thorough
def test_ctrl_c_while_workers_start_prints_no_traceback(text_model_path):
    with starting_workers(text_model_path) as (process, _):
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, err = process.communicate(timeout=30)
    assert (process.returncode, "Traceback" in err) == (0, False)


@pytest.mark.thorough
def test_workers_that_are_stopped_before_their_server_are_not_replaced(text_model_path):
    with server(text_model_path, "--workers", 2) as (process, _):
        process.send_signal(signal.SIGSTOP)
        os.killpg(process.pid, signal.SIGTERM)  # as systemd does
        until(lambda: not workers_of(process))
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, "WARNING" in err) == (0, False)


def test_a_hang_up_before_the_server_runs_is_kept_for_it(text_model_path, monkeypatch):
    def serve(*_):
        signal.pthread_kill(other.ident, signal.SIGHUP)  # such as a library's thread
        until(lambda: signal.SIGHUP in signal.sigpending())
        return int(signal.sigwait({signal.SIGHUP}) != signal.SIGHUP)

    monkeypatch.setattr("longtail.serve.runner.serve", serve)
    done = threading.Event()
    other = threading.Thread(target=done.wait, daemon=True)
    other.start()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # it is ignored under nohup
    try:
        assert main(["serve", str(text_model_path), "--port", "0"]) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    done.set()
    other.join()


def refused(capsys, *arguments):
    assert main(["serve", *map(str, arguments)]) == 2
    return capsys.readouterr().err


def test_what_cannot_be_served_is_refused_at_once(text_model_path, tmp_path, capsys):
    assert "no model folder" in refused(capsys, tmp_path / "none")
    assert "--port must be" in refused(capsys, text_model_path, "--port", 70000)
    assert "--workers must be above 0" in refused(capsys, text_model_path, "--workers", 0)
    assert "--workers must be at most" in refused(capsys, text_model_path, "--workers", 100_000)
    assert "--max-k must be above 0" in refused(capsys, text_model_path, "--max-k", 0)
    said = refused(capsys, text_model_path, "--max-k", 20_000)
    assert "--max-k must be at most 10,000, got 20,000" in said
    assert "--max-seconds must be above 0" in refused(capsys, text_model_path, "--max-seconds=nan")
    assert "--keep-alive must be above 0" in refused(capsys, text_model_path, "--keep-alive=0")
    assert "--max-seconds must be finite" in refused(capsys, text_model_path, "--max-seconds=inf")
    assert "--root-path must be" in refused(capsys, text_model_path, "--root-path", "http://a/b")
    said = refused(capsys, text_model_path, "--max-body-bytes", -1)
    assert "--max-body-bytes must be above 0" in said
    assert "cannot listen on 999.1.1.1" in refused(capsys, text_model_path, "--host", "999.1.1.1")
    assert "cannot listen on .." in refused(capsys, text_model_path, "--host", "..")


def test_a_port_that_is_taken_is_said(text_model_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        run = subprocess.run(
            [sys.executable, "-c", COMMAND, "serve", text_model_path, "--port", port],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert run.returncode == 2
    assert f"cannot listen on 127.0.0.1, port {port}: Address already in use" in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_port_that_another_server_takes_meanwhile_is_said():
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        config = Config(None, port=port, log_config=None)
        bind_socket = config.bind_socket
        config.bind_socket = lambda: (bind_socket(), other.listen())[0]
        with pytest.raises(InputError, match=f"on 127.0.0.1, port {port}: Address already in use"):
            runner._listener(config)


@pytest.mark.thorough
def test_clients_may_come_before_the_workers_have_started(text_model_path):
    with starting_workers(text_model_path) as (_, port):
        socket.create_connection(("127.0.0.1", port), timeout=20).close()


@pytest.mark.parametrize("module", ["uvicorn", "prometheus_client"])
def test_a_missing_extra_is_said(text_model_path, module):
    code = f"import sys; sys.modules[{module!r}] = None\n{COMMAND}"
    run = subprocess.run(
        [sys.executable, "-c", code, "serve", text_model_path],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert run.returncode == 2
    assert "pip install 'longtail[serve]'" in run.stderr
