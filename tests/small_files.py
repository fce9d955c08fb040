"""Data sets, read from what a test writes."""

from __future__ import annotations

from longtail.data import Dataset


def read(folder, content, name="a.csv", **keywords):
    """Write a file of text or bytes, and read it."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Dataset.read(path, **keywords)
