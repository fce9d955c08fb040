"""Compiled inner loops (numba), each held by the tests to a plain numpy twin."""
