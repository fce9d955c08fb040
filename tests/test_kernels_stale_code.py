"""Compiled code of other sources than today's is thrown away."""

from __future__ import annotations

import os

import pytest

from longtail.kernels.stale_code import remove_stale_code


@pytest.fixture
def folder(tmp_path):
    """A folder with two sources, and what was compiled of one of them."""
    for name in ("sums", "walks"):
        (tmp_path / f"{name}.py").write_text("pass\n")
    remove_stale_code(tmp_path)
    for kind in ("nbi", "1.nbc"):
        (tmp_path / "__pycache__" / f"sums.total-3.py311.{kind}").touch()
    (tmp_path / "__pycache__" / "sums.cpython-311.pyc").touch()
    return tmp_path


def compiled(folder):
    return sorted(path.name for path in (folder / "__pycache__").glob("*.nb?"))


def test_what_is_of_the_same_sources_stays(folder):
    remove_stale_code(folder)
    assert len(compiled(folder)) == 2


def changed(folder):
    (folder / "walks.py").write_text("fail\n")


def touched(folder):
    os.utime(folder / "walks.py", (1, 1))


def added(folder):
    (folder / "votes.py").touch()


def removed(folder):
    (folder / "walks.py").unlink()


@pytest.mark.parametrize("change", [changed, touched, added, removed])
def test_a_change_of_any_file_removes_it(folder, change):
    change(folder)
    remove_stale_code(folder)
    assert compiled(folder) == []
    assert (folder / "__pycache__" / "sums.cpython-311.pyc").exists()


def test_a_folder_that_cannot_be_written_is_left_as_it_is(tmp_path):
    (tmp_path / "__pycache__").touch()  # a file where a folder should be
    remove_stale_code(tmp_path)
    assert (tmp_path / "__pycache__").is_file()
