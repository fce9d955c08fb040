"""How many cores there are to use, and how rows are shared among threads."""

from __future__ import annotations

import ast
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import longtail
from longtail.kernels import jit
from longtail.kernels.jit import over_row_chunks


def test_what_forbids_compiled_code_is_named():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "longtail", "compile"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("longtail: error: longtail cannot do without compiled code")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def eight_cores(monkeypatch, tmp_path):
    """A machine with eight cores, and where its control groups are written."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(jit.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    groups = ((tmp_path, "cpu.max"), (tmp_path, "cpu.cfs_quota_us", "cpu.cfs_period_us"))
    monkeypatch.setattr(jit, "_CONTROL_GROUPS", groups)
    return tmp_path


def test_all_that_the_system_shows(eight_cores):
    assert jit.n_usable_cores() == 8


@pytest.mark.parametrize(
    ("wanted", "found"), [("3", 3), ("3,2", 3), ("0", 1), ("12", 8), ("", 8), ("many", 8)]
)
def test_no_more_than_asked_for(eight_cores, monkeypatch, wanted, found):
    monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    assert jit.n_usable_cores() == found


@pytest.mark.parametrize(
    ("limit", "found"),
    [("200000 100000", 2), ("50000 100000", 1), ("max 100000", 8), ("", 8), ("2000000 100000", 8)],
)
def test_no_more_than_a_container_gives(eight_cores, limit, found):
    (eight_cores / "cpu.max").write_text(limit)
    assert jit.n_usable_cores() == found


@pytest.mark.parametrize(("quota", "found"), [("300000", 3), ("-1", 8)])
def test_no_more_than_an_older_container_gives(eight_cores, quota, found):
    (eight_cores / "cpu.cfs_quota_us").write_text(quota)
    (eight_cores / "cpu.cfs_period_us").write_text("100000")
    assert jit.n_usable_cores() == found


@pytest.mark.parametrize(("wanted", "found"), [(None, 8), (1, 1), (20, 20), (1000, 32)])
def test_at_most_four_threads_a_core(eight_cores, wanted, found):
    assert jit.n_usable_threads(wanted) == found


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize(("n_rows", "chunk"), [(0, 4), (3, 4), (100, 7), (8, 1)])
def test_each_row_is_worked_on_once(n_threads, n_rows, chunk):
    counts = np.zeros(n_rows, int)

    def work(start, stop):
        counts[start:stop] += 1

    over_row_chunks(work, n_rows, n_threads=n_threads, chunk=chunk)
    assert (counts == 1).all()


def test_chunks_within_chunks():
    counts = np.zeros((40, 30), int)

    def outer(start, stop):
        for row in range(start, stop):

            def inner(first, last, row=row):
                counts[row, first:last] += 1

            over_row_chunks(inner, 30, n_threads=2, chunk=2)

    over_row_chunks(outer, 40, n_threads=2, chunk=1)
    assert (counts == 1).all()


def test_several_threads_share_the_helpers():
    counts = np.zeros((4, 200), int)

    def caller(row):
        def work(start, stop):
            counts[row, start:stop] += 1

        over_row_chunks(work, 200, n_threads=2, chunk=3)

    callers = [threading.Thread(target=caller, args=(row,)) for row in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(timeout=30)
    assert (counts == 1).all()


@pytest.mark.parametrize("bad_row", [0, 5, 19])
def test_an_error_is_passed_on(bad_row):
    def work(start, stop):
        if start <= bad_row < stop:
            raise ValueError(f"row {bad_row}")

    with pytest.raises(ValueError, match=f"row {bad_row}"):
        over_row_chunks(work, 20, n_threads=2, chunk=1)
    over_row_chunks(lambda start, stop: None, 20, n_threads=2, chunk=1)


def _rows_done_in_a_child(queue):
    done = []
    over_row_chunks(lambda start, stop: done.append(stop - start), 20, n_threads=2, chunk=1)
    queue.put(sum(done))


def test_who_wants_a_result_does_not_wait_for_busy_helpers():
    is_free = threading.Event()
    busy = jit.in_background(is_free.wait, n_threads=2)
    later = jit.in_background(threading.get_ident, n_threads=2)
    assert later.result() == threading.get_ident()
    is_free.set()
    assert busy.result()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own():
    over_row_chunks(lambda start, stop: None, 20, n_threads=2, chunk=1)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_rows_done_in_a_child, args=(queue,))
    child.start()
    assert queue.get(timeout=30) == 20
    child.join(timeout=30)


@pytest.fixture(scope="module")
def trees():
    """Every file of the library as Python reads it, which takes a second."""
    files = Path(longtail.__file__).parent.glob("**/*.py")
    return {path: ast.parse(path.read_text("utf-8")) for path in files}


def _is_compiled(node):
    """Whether a function is a kernel, or what numba takes for one in compiled code."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return any("kernel" in name or name in {"overload", "intrinsic"} for name in names)


def _called_by_python(tree):
    """Names that the code of a file calls, but for that of compiled functions."""
    called, left = set(), [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef) and any(map(_is_compiled, node.decorator_list)):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called.add(node.func.id)
        left.extend(ast.iter_child_nodes(node))
    return called


@pytest.fixture(scope="module")
def called(trees):
    """What Python calls in each file."""
    return {path: _called_by_python(tree) for path, tree in trees.items()}


def _inner_kernels(tree):
    """Yield names of the kernels of a file that Python must not call."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(map(_is_compiled, node.decorator_list)):
            inner = any(
                part.id == "inner_kernel"
                for part in node.decorator_list
                if isinstance(part, ast.Name)
            )
            if inner or node.name.startswith("_"):
                yield node.name


def test_python_calls_no_inner_kernel(trees, called):
    """It would end the process: nothing is compiled that turns Python's arguments into theirs."""
    folder = Path(longtail.__file__).parent
    inner_kernels = {path: set(_inner_kernels(tree)) for path, tree in trees.items()}
    assert sum(map(len, inner_kernels.values())) > 100
    for path, tree in trees.items():
        imported = {
            alias.name: Path(folder, *node.module.split(".")[1:]).with_suffix(".py")
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("longtail.kernels")
            for alias in node.names
        }
        inner = inner_kernels[path] | {
            name for name, source in imported.items() if name in inner_kernels.get(source, ())
        }
        assert not inner & called[path], path


def _loops_without_loops(node):
    for loop in (part for part in ast.walk(node) if isinstance(part, ast.For)):
        parts = [part for line in loop.body for part in ast.walk(line)]
        if not any(isinstance(part, ast.For) for part in parts):
            yield parts


INTEGERS = {"n_true", "sum_high", "sum_low"}  # whose sums are the same in any order


def _adds_up_while_writing(function):
    """Whether an innermost loop adds up floats that it reads, and writes to another array."""
    for parts in _loops_without_loops(function):
        arrays = [part for part in parts if isinstance(part, ast.Subscript)]
        written = {ast.unparse(part.value) for part in arrays if isinstance(part.ctx, ast.Store)}
        read = {ast.unparse(part.value) for part in arrays if isinstance(part.ctx, ast.Load)}
        added_up = {
            part.target.id
            for part in parts
            if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)
        }
        if written and read - written and added_up - INTEGERS:
            return True
    return False


def test_loops_that_add_up_do_not_write(trees):
    """Else the last bit of a sum depends on where in memory its arrays lie: see `fast_kernel`."""
    functions = (
        node for tree in trees.values() for node in tree.body if isinstance(node, ast.FunctionDef)
    )
    fast = [
        function
        for function in functions
        if any("fast" in ast.unparse(decorator) for decorator in function.decorator_list)
    ]
    assert len(fast) > 50
    # `against` of `_step` begins anew with each label: it is no sum over the loop.
    assert {function.name for function in fast if _adds_up_while_writing(function)} == {"_step"}


def test_no_kernel_hands_python_a_named_tuple(trees, called):
    """Ctrl-C at that moment would end the process: see `kernel`."""
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    named = {
        node.name for node in classes if any("NamedTuple" in ast.unparse(b) for b in node.bases)
    }
    returning = {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and any(map(_is_compiled, node.decorator_list))
        and node.returns
        and any(isinstance(p, ast.Name) and p.id in named for p in ast.walk(node.returns))
    }
    assert "new_scratch" in returning
    for path, tree in trees.items():
        own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and "kernels" in (node.module or "")
            for alias in node.names
        }
        assert not called[path] & (imported | own) & returning, path
