"""Data sets, read from what a test writes."""

from __future__ import annotations

import contextlib
import warnings

from longtail.data import Dataset
from longtail.errors import InputError


def read(folder, content, name="a.csv", **keywords):
    """Write a file of text or bytes, and read it."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Dataset.read(path, **keywords)


def damage_each_byte(path, use, step=1):
    """Call `use` with each byte of a file changed, or each `step`-th; it may refuse that."""
    whole = path.read_bytes()
    for place in range(0, len(whole), step):
        for flipped in (1, 64, 255):
            damaged = bytearray(whole)
            damaged[place] ^= flipped
            path.write_bytes(damaged)
            with contextlib.suppress(InputError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                use()
