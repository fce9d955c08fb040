"""Texts in pieces: padded as the library of the tokeniser pads them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.features.transformer import read_transformer
from small_transformer import BERT, WORDS, saved

texts_of_words = st.lists(st.lists(st.sampled_from([*WORDS, "?"]), max_size=9), min_size=1)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    transformers = pytest.importorskip("transformers", reason="needs the extra 'transformers'")
    folder = saved(tmp_path_factory.mktemp("transformer"), transformers.BertConfig(**BERT))
    return read_transformer(folder, 8).pieces


@settings(max_examples=50)
@given(texts_of_words)
def test_are_padded_as_the_library_does(pieces, words):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(pieces.json)
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(pad_id=pieces.padding)
    texts = [" ".join(some) for some in words]
    expected = tokenizer.encode_batch(texts)
    ids, mask = pieces.of(texts)
    np.testing.assert_array_equal(ids, [one.ids for one in expected])
    np.testing.assert_array_equal(mask, [one.attention_mask for one in expected])
    assert ids.dtype == mask.dtype == np.int64


def test_of_others_come_behind(pieces):
    first, second = pieces.cut(["red wine", "car"]), pieces.cut(["a bottle of wine"])
    both = first.followed_by(second)
    assert both.lengths.tolist() == [4, 3, 6]
    for own, other in ((first, 0), (second, 2)):
        one = np.arange(1)
        np.testing.assert_array_equal(own.padded(one), both.padded(one + other))


def test_none_at_all(pieces):
    nothing = pieces.cut([])
    assert [array.shape for array in nothing.padded(np.arange(0))] == [(0, 0), (0, 0)]
