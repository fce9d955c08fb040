"""Entries of sparse text files, read from bytes as numpy reads them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longtail.data.csr import MAX_IDS
from longtail.data.sparse_lines import _parse
from longtail.kernels.entries import read_entries

signs = st.sampled_from(["", "-", "+"])
digits = st.integers(0, 10**9 - 1).map(str)  # and six decimals are fifteen
numbers = st.one_of(
    st.builds("{}{}".format, signs, digits),
    st.builds("{}{}.{}".format, signs, digits, st.sampled_from(["", "0", "05", "84556", "999999"])),
    st.builds("{}.{}".format, signs, digits),
)
blanks = st.text(" \t", min_size=1, max_size=3)
entries = st.builds("{}:{}{}".format, st.integers(0, 10**6), numbers, blanks)
# Nearly half of such texts can be read; of letters drawn one by one, one in a hundred.
odd = st.text("0123456789:.+-eE \tx", min_size=1, max_size=2)
nearly_entries = st.lists(st.one_of(entries, odd), max_size=4).map("".join)


def read(text: bytes) -> tuple[int, np.ndarray, np.ndarray]:
    ids, values = np.empty(len(text) // 4 + 1, np.int64), np.empty(len(text) // 4 + 1, np.float64)
    n = read_entries(np.frombuffer(text, np.uint8), ids, values)
    return n, ids[: max(n, 0)], values[: max(n, 0)]


@settings(max_examples=200, deadline=None)
@given(st.lists(entries, max_size=8), st.sampled_from(["", " ", "\t "]), st.booleans())
def test_usual_entries_are_read_to_the_same_bits(parts, before, is_stripped):
    text = (before + "".join(parts)).encode()
    text = text.rstrip() if is_stripped else text
    n, ids, values = read(text)
    assert n == len(parts)
    if parts:
        expected_ids, expected = _parse(text, "file", 1)
        np.testing.assert_array_equal(ids, expected_ids)
        np.testing.assert_array_equal(values.view(np.uint64), expected.view(np.uint64))


@settings(max_examples=200, deadline=None)
@given(nearly_entries)
@example("2200100000:0 ")  # too large an id for any matrix
def test_what_is_read_is_what_the_grammar_allows(text):
    n, ids, values = read(text.encode())
    if n > 0:  # else the slower reader decides
        expected_ids, expected = _parse(text.encode(), "file", 1)
        np.testing.assert_array_equal(np.minimum(ids, MAX_IDS), expected_ids)
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    "text",
    ["1:1e3", "1:0.1234567890123456", "1234567890123456:1", "1:", "1", ":1", "1:.", "1:1x", "a:1"],
)
def test_the_rest_is_left_to_the_slower_reader(text):
    assert read(text.encode())[0] == -1
