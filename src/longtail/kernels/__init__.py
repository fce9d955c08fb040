"""Compiled inner loops (numba), each held by the tests to a plain numpy twin."""

from pathlib import Path

from longtail.kernels.stale_code import remove_stale_code

__all__ = ["remove_stale_code"]

remove_stale_code(Path(__file__).parent)
