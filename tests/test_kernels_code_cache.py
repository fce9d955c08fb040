"""Compiled code: taken from where it is, put where one may write, never of other sources."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core import registry
from numba.core.bytecode import FunctionIdentity

from command_line import refused, run, write_lines
from longtail.kernels import code_cache, jit
from longtail.kernels.code_cache import code_folders, stamp_of
from longtail.kernels.held_signals import signals_held_back
from longtail.log import heard_by
from small_wordnet import whole_wordnet


@pytest.fixture
def sources(tmp_path):
    """A folder with two sources, and what was compiled of one of them."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    for name in ("sums", "walks"):
        (folder / f"{name}.py").write_text("pass\n")
    code_cache.code_folders.__wrapped__(folder)
    for kind in ("nbi", "1.nbc"):
        (folder / "__pycache__" / f"sums.total-3.py311.{kind}").touch()
    (folder / "__pycache__" / "sums.cpython-311.pyc").touch()
    return folder


@pytest.fixture(autouse=True)
def no_folder_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "platform", "linux")


def folders(sources):
    return code_folders.__wrapped__(sources)


def read_only(monkeypatch, *places):
    writable = code_cache._is_writable
    monkeypatch.setattr(
        code_cache, "_is_writable", lambda place: place not in places and writable(place)
    )


def compiled(sources):
    return sorted(path.name for path in (sources / "__pycache__").glob("*.nb?"))


def test_code_of_the_same_sources_stays(sources):
    for path in sources.glob("*.py"):
        os.utime(path, (1, 1))  # as whoever unpacks an image may leave it
    assert folders(sources).writable == sources / "__pycache__"
    assert len(compiled(sources)) == 2


def test_a_mark_that_is_right_is_not_written_again(sources, monkeypatch):
    mark = sources / "__pycache__" / "sources.stamp"
    before = mark.stat()
    folders(sources)  # while it was written, another process would take the code for stale
    assert (mark.stat().st_ino, mark.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def changed(sources):
    (sources / "walks.py").write_text("fail\n")


def added(sources):
    (sources / "votes.py").touch()


def removed(sources):
    (sources / "walks.py").unlink()


@pytest.mark.parametrize("change", [changed, added, removed])
def test_a_change_of_any_file_removes_it(sources, change):
    change(sources)
    folders(sources)
    assert compiled(sources) == []
    assert (sources / "__pycache__" / "sums.cpython-311.pyc").exists()


def test_code_that_cannot_be_written_beside_is_read_all_the_same(sources, tmp_path, monkeypatch):
    read_only(monkeypatch, sources / "__pycache__")
    found = folders(sources)
    own = tmp_path / "home" / f"longtail-{stamp_of(sources)}"
    assert (found.readable, found.writable) == ((sources / "__pycache__", own), own)
    changed(sources)
    found = folders(sources)
    assert sources / "__pycache__" not in found.readable
    assert found.writable != own


def test_the_folder_that_is_named_comes_first(sources, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "named"))
    named = tmp_path / "named" / f"longtail-{stamp_of(sources)}"
    assert folders(sources).writable == named
    assert named in folders(sources).readable


def test_without_any_folder_code_is_compiled_all_the_same(sources, monkeypatch):
    monkeypatch.setattr(code_cache, "_is_writable", lambda _: False)
    (sources / "__pycache__" / "sources.stamp").unlink()
    none = folders(sources)
    assert (none.readable, none.writable) == ((), None)
    monkeypatch.setattr(jit, "code_folders", lambda _: none)
    assert jit.kernel(twice)(3) == 6


def twice(number):
    return 2 * number


@pytest.fixture
def full(sources, monkeypatch):
    """The folders of a disk that is full."""

    def refuse(*_):
        raise OSError(28, "No space left on device")

    found = folders(sources)
    monkeypatch.setattr(jit, "code_folders", lambda _: found)
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile._save_data", refuse)
    return found


def test_a_full_disk_is_no_reason_to_stop_and_is_told_once(full):
    heard = []
    with heard_by(heard.append):
        twofold = jit.kernel(twice)
        assert (twofold(3), twofold(1.5), jit.kernel(twice)(3)) == (6, 3, 6)
    (line,) = heard
    assert line.startswith(f"Compiled code cannot be kept in {full.writable}: No space left on")


def test_a_second_function_takes_what_the_first_one_kept(sources, tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "code_folders", lambda _: folders(sources))
    first = jit.kernel(twice)
    assert first(3) == 6
    read_only(monkeypatch, sources / "__pycache__")
    second = jit.kernel(twice)
    assert second(3) == 6
    assert (sum(second.stats.cache_hits.values()), sum(second.stats.cache_misses.values())) == (
        1,
        0,
    )
    assert second.stats.cache_path.startswith(str(tmp_path / "home"))


@pytest.fixture
def handled():
    """Numbers of the signals whose handler has run, one that lets the process go on."""
    came = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    yield came
    signal.signal(signal.SIGTERM, before)


def test_signals_wait_until_code_is_in_its_place(sources, monkeypatch, handled):
    """What a handler raised while LLVM asked for code was lost, and so was the process."""
    monkeypatch.setattr(jit, "code_folders", lambda _: folders(sources))
    jit.kernel(twice)(3)
    engine = registry.cpu_target.target_context.codegen()._engine._ee
    given, code_of = [], engine._object_cache_getbuffer

    def ask(module):
        signal.raise_signal(signal.SIGTERM)
        found = code_of(module)
        if found is not None:
            given.append(len(handled))
        return found

    monkeypatch.setattr(engine, "_object_cache_getbuffer", ask)
    assert jit.kernel(twice)(3) == 6
    assert given == [0]
    assert handled == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM)(signal.SIGTERM, None) is None
    assert len(handled) == 2  # the handler is in its place again


def test_other_threads_hold_no_signals_back(handled):
    def load():
        with signals_held_back():
            seen.append(signal.getsignal(signal.SIGTERM) is own)

    own, seen = signal.getsignal(signal.SIGTERM), []
    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    assert seen == [True]
    assert handled == []


def kept(sources):
    return {path for path in (sources / "__pycache__").glob("*.nbc") if "twice" in path.name}


def test_code_for_other_types_has_a_file_of_its_own(sources, monkeypatch):
    """Also where two processes compile at once: numbers that they take could be the same."""
    monkeypatch.setattr(jit, "code_folders", lambda _: folders(sources))
    assert jit.kernel(twice)(3) == 6
    (of_whole,) = kept(sources)
    (sources / "__pycache__" / "apart").mkdir()
    aside = of_whole.rename(sources / "__pycache__" / "apart" / of_whole.name)
    assert jit.kernel(twice)(1.5) == 3
    (of_broken,) = kept(sources)
    assert of_broken.name != of_whole.name
    aside.rename(of_whole)
    again = jit.kernel(twice)
    assert (again(3), again(1.5), sum(again.stats.cache_hits.values())) == (6, 3, 2)
    of_broken.replace(of_whole)  # a file that says of what it is
    assert jit.kernel(twice)(3) == 6


def test_functions_of_two_processes_have_numbers_of_their_own():
    """Else code of two processes that a third one loads calls functions of the wrong one."""
    number = (
        "from longtail.kernels import code_cache; from numba.core.bytecode import FunctionIdentity;"
        "print(FunctionIdentity.from_function(lambda: 1).unique_id)"
    )
    first, second = (
        int(subprocess.run([sys.executable, "-c", number], capture_output=True, check=True).stdout)
        for _ in range(2)
    )
    assert abs(first - second) > 1_000_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_counts_anew():
    own = FunctionIdentity.from_function(twice).unique_id
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.write(writer, str(FunctionIdentity.from_function(twice).unique_id).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert abs(int(os.read(reader, 100)) - own) > 1_000_000


def test_a_damaged_file_is_compiled_again(sources, monkeypatch):
    monkeypatch.setattr(jit, "code_folders", lambda _: folders(sources))
    assert jit.kernel(twice)(3) == 6
    (file,) = kept(sources)
    whole = file.read_bytes()
    for part in (b"", whole[: len(whole) // 2]):
        file.write_bytes(part)
        assert jit.kernel(twice)(3) == 6
        assert len(file.read_bytes()) > len(whole) // 2


def test_a_function_is_compiled_anew_when_asked_to(sources, monkeypatch):
    monkeypatch.setattr(jit, "code_folders", lambda _: folders(sources))
    first = jit.kernel(twice)
    assert first(3) == 6
    first._cache.flush()
    assert kept(sources) == set()


class TestNotice:
    def lines(self, monkeypatch, *steps, silence=1.0):
        """Return what is said of functions that begin (+1) and end (-1) at some times."""
        notice, heard = code_cache._CompilingNotice(), []
        monkeypatch.setattr(code_cache, "SECONDS_IN_SILENCE", silence)
        for seconds, step, module in steps:
            monkeypatch.setattr(code_cache.time, "perf_counter", lambda at=seconds: at)
            dispatcher = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
            event = SimpleNamespace(data={"dispatcher": dispatcher})
            with heard_by(heard.append):
                (notice.on_start if step > 0 else notice.on_end)(event)
            assert gc.isenabled() == (notice._depth == 0)
        gc.enable()
        return heard

    OURS = "longtail.kernels.text"

    def test_a_moment_is_not_told(self, monkeypatch):
        ours = self.OURS
        assert self.lines(monkeypatch, (0, 1, ours), (0.9, -1, ours), (50, 1, ours)) == []

    def test_what_takes_longer_is_told_once(self, monkeypatch):
        ours = self.OURS
        steps = [(0, 1, ours), (2, 1, ours), (3, -1, ours), (4, -1, ours), (9, 1, ours)]
        (line,) = self.lines(monkeypatch, *steps)
        assert "Compiling code for this machine" in line
        assert "it is kept in" in line

    def test_others_are_not_ours(self, monkeypatch):
        assert self.lines(monkeypatch, (0, 1, "pandas"), (9, 1, "pandas")) == []

    def test_without_a_folder_it_says_what_to_do(self, monkeypatch):
        nowhere = SimpleNamespace(writable=None)
        monkeypatch.setattr(code_cache, "code_folders", lambda _: nowhere)
        ours = self.OURS
        (line,) = self.lines(monkeypatch, (0, 1, ours), (2, 1, ours))
        assert "Set NUMBA_CACHE_DIR" in line

    def test_on_a_full_disk_it_does_not_say_that_code_is_kept(self, monkeypatch, full):
        full.faults.append("No space left on device")
        monkeypatch.setattr(code_cache, "code_folders", lambda _: full)
        ours = self.OURS
        (line,) = self.lines(monkeypatch, (0, 1, ours), (2, 1, ours))
        assert line == "Compiling code for this machine, which can take a minute."


def test_inspect_compiles_what_answers_need(place, capsys):
    for model in ("model", "sparse"):
        code, out, _ = run(capsys, "inspect", place / model, "--compile")
        assert code == 0
        assert out.startswith("The code that this model answers with is in ")


def test_commands_that_compile_fail_where_not_all_can_be_kept(full, place, capsys, monkeypatch):
    monkeypatch.setattr("longtail.cli.compile.code_folders", lambda _: full)
    for name in ("cli.inspect.warm_up", "rehearsal.rehearse"):
        monkeypatch.setattr(f"longtail.{name}", lambda _: jit.kernel(twice)(3))
    for command in (["inspect", place / "model", "--compile"], ["compile"]):
        full.faults.clear()
        message = refused(capsys, *command)
        assert f"could be kept in {full.writable}: No space left on device. Mend that" in message
        assert "set NUMBA_CACHE_DIR to another folder" in message


def test_another_process_compiles_nothing_again_and_needs_no_compiler(place):
    """Also where neither the package nor a home can be written to."""
    code = """
import sys, pathlib, longtail.kernels.code_cache as code_cache
code_cache._is_writable = lambda place: False
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, event): compiled.append(event.data["dispatcher"])
    def on_end(self, event): pass
event.register("numba:compile", Listener())
import longtail
longtail.load(sys.argv[1]).predict("red wine")
sys.stdout.write(f"{len(compiled)} {'numba.np.linalg' in sys.modules}")
"""
    place_of_code = Path(code_cache.__file__).parent / "__pycache__"
    if not os.access(place_of_code, os.W_OK):
        pytest.skip("code is kept elsewhere here")
    done = subprocess.run(
        [sys.executable, "-c", code, str(place / "model")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    # Nor does it load what only compiling needs, for a third of a second.
    assert done.stdout == "0 False"


class _Count:
    """A program that runs a command, and writes how many functions it has compiled."""

    CODE = """
import sys
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, event): compiled.append(event.data["dispatcher"])
    def on_end(self, event): pass
event.register("numba:compile", Listener())
from longtail.cli import main
code = main(sys.argv[1:])
sys.stdout.write(f"\\n{code} {len(compiled)}")
"""

    @classmethod
    def of(cls, *arguments):
        done = subprocess.run(
            [sys.executable, "-c", cls.CODE, *map(str, arguments)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()[-1]


@pytest.mark.thorough
def test_after_compile_neither_training_nor_answers_compile_anything(tmp_path, capsys):
    """On real data that is searched by graphs, with label texts that are read from a file."""
    if not os.access(Path(code_cache.__file__).parent / "__pycache__", os.W_OK):
        pytest.skip("code is kept elsewhere here")
    code, out, err = run(capsys, "compile")
    assert code == 0
    assert out.startswith("The code that the default recipe trains and answers with is in ")
    assert "made-up models" in err
    points, texts = few_of_wordnet(tmp_path)
    model = tmp_path / "model"
    settings = ["--set", "epochs=1", "dimension=32"]
    assert _Count.of("train", points, "--labels", texts, "--model", model, *settings) == "0 0"
    assert _Count.of("predict", model, "--text", "red wine") == "0 0"
    assert _Count.of("evaluate", model, points, "--labels", texts) == "0 0"


def few_of_wordnet(folder, n=4_000):
    """Write the first points of WordNet and the labels that they have, as ids; return both."""
    train, _ = whole_wordnet()
    few = train.take(range(n))
    used = np.unique(few.labels.indices)
    place = {label: row for row, label in enumerate(used.tolist())}
    rows = [
        {"text": text, "labels": [place[label] for label in few.labels[[i]].indices.tolist()]}
        for i, text in enumerate(few.texts)
    ]
    points = write_lines(folder / "points.jsonl", map(json.dumps, rows))
    texts = write_lines(folder / "labels.txt", map(train.label_space.name, used.tolist()))
    return points, texts
