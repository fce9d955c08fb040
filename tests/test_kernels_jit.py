"""How many cores there are to use."""

from __future__ import annotations

import pytest

from longtail.kernels import jit


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
