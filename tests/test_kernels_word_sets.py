from __future__ import annotations

import re
from hashlib import blake2b

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longtail.data.split import text_group_keys
from longtail.data.text_column import TextColumn
from longtail.kernels.word_sets import write_word_sets

LETTERS = st.text("ab \n,", max_size=40)
TEXTS = st.lists(st.one_of(LETTERS, st.text(max_size=20)), max_size=6)


def twin_words(text):
    return " ".join(sorted(set(re.findall(r"\w+", text))))


def twin_key(text):
    words = twin_words(text.lower()).encode()
    return int.from_bytes(blake2b(words, digest_size=8).digest(), "little")


@settings(deadline=None)
@given(st.lists(LETTERS, max_size=6))
def test_word_sets_are_the_twins(texts):
    joined = "".join(texts)
    codes = np.array([*map(ord, joined)], np.uint32)
    offsets = np.cumsum([0, *map(len, texts)])
    is_word = np.zeros(0x110000, np.bool_)
    is_word[[ord("a"), ord("b")]] = True
    out = np.zeros(len(joined) + len(texts), np.uint32)
    n_written = write_word_sets(codes, offsets, is_word, out)
    written = "".join(map(chr, out[:n_written]))
    assert written == "".join(f"{twin_words(text)}\n" for text in texts)


@settings(deadline=None)
@given(TEXTS)
@example(["ΌΣΟΣ", "Σ", "ΔΣ\nΔ", "İ_1", "naïve e\u0301", "\ud800a"])
def test_keys_of_texts_are_the_twins(texts):
    assert text_group_keys(texts).tolist() == [*map(twin_key, texts)]


def test_keys_of_many_texts_and_of_long_ones_are_the_twins():
    words = np.random.default_rng(0).integers(0, 5000, 30_000).astype(str)
    texts = [" ".join(words), *words[:3000], ""]
    expected = [*map(twin_key, texts)]
    assert text_group_keys(texts).tolist() == expected
    assert text_group_keys(TextColumn.from_strings(texts)).tolist() == expected
