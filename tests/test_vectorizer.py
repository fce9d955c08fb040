from __future__ import annotations

import json
import math
import pickle
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data import token_counts
from longtail.data import vectorizer as vectorizer_module
from longtail.data.characters import code_points, joined_code_points
from longtail.data.text_column import TextColumn
from longtail.data.vectorizer import TextVectorizer, TokenKind
from longtail.errors import InputError, LongtailError, ModelFolderError

TITLES = [
    "Schäden durch Pilze an Fachwerkgebäuden",
    "Pilze: Schädlinge im Fachwerk, Pilze im Haus",
    "Wider die Utopie einer umfassenden Kontrolle",
    "Kontrolle und Utopie",
    "C++ für C#-Entwickler",
    "Programmieren in C++",
    "",
    "自然言語処理入門",
    "自然言語の処理",
    "Экономика России и экономика Европы",
    "Экономика труда",
]
# A small vocabulary, so that random texts share words.
WORDS = st.sampled_from(
    ["rot", "Rote", "weiß", "WEISS", "дом", "字", "字典", "ไทย", "c++", "a", ""]
)
RANDOM_TEXTS = st.lists(st.one_of(st.lists(WORDS, max_size=8).map(" ".join), st.text(max_size=12)))


def row_of(vectorizer, text):
    columns, values = vectorizer.encode_one(text)
    kinds = vectorizer.kinds_[columns]
    return {
        (TokenKind(kind), vectorizer.token(column)): value
        for column, kind, value in zip(columns.tolist(), kinds, values.tolist(), strict=True)
    }


def twin_tokens(text, settings):
    """Tokens as strings, for texts of plain words and single characters between spaces."""
    words = re.findall(r"\w[\w+]*", text.casefold())
    for word in words:
        yield TokenKind.WORD, word
        shortest, longest = settings.char_ngrams or (1, 0)
        marked = f"<{word}>"
        for length in range(shortest, min(longest, len(marked) - 1) + 1):
            for start in range(len(marked) - length + 1):
                yield TokenKind.CHARACTERS, marked[start : start + length]
    if settings.word_ngrams > 1:
        for pair in pairwise(words):
            yield TokenKind.PAIR, " ".join(pair)


def twin_rows(texts, settings):
    """TF-IDF by dictionaries."""
    counts = [Counter(twin_tokens(text, settings)) for text in texts]
    frequency = Counter(token for count in counts for token in count)
    for count in counts:
        row = {
            token: (1 + math.log(tf))
            * (math.log((1 + len(texts)) / (1 + frequency[token])) + 1)
            * settings.kind_weights[token[0] - 1]
            for token, tf in count.items()
            if frequency[token] >= settings.min_df
        }
        norm = math.sqrt(sum(value * value for value in row.values()))
        yield {token: value / norm for token, value in row.items()}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["rot", "Rote", "weiß", "WEISS", "дом", "c++", "b"])).map(
            " ".join
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(
        [
            TextVectorizer(),
            TextVectorizer(char_ngrams=None, min_df=1),
            TextVectorizer(word_ngrams=2, char_ngrams=(2, 4), kind_weights=(1.0, 2.0, 0.5)),
        ]
    ),
)
def test_rows_are_those_of_a_dictionary_twin(texts, vectorizer):
    expected = list(twin_rows(texts, vectorizer))
    if not any(expected):
        with pytest.raises(InputError, match="Empty vocabulary"):
            vectorizer.fit(texts)
        return
    vectorizer.fit(texts)
    for text, row in zip(texts, expected, strict=True):
        assert row_of(vectorizer, text) == pytest.approx(row, rel=1e-5)


@settings(max_examples=25, deadline=None)
@given(RANDOM_TEXTS)
def test_a_batch_gives_the_bits_of_each_text_alone(texts):
    vectorizer = TextVectorizer(word_ngrams=2, min_df=1).fit([*texts, "rot"])
    X = vectorizer.transform(texts)
    X.check_format(full_check=True)
    assert X.shape == (len(texts), vectorizer.n_features_)
    assert (X.dtype, X.indices.dtype) == (np.float32, np.int32)
    for row, text in enumerate(texts):
        columns, values = vectorizer.encode_one(text)
        start, stop = X.indptr[row], X.indptr[row + 1]
        np.testing.assert_array_equal(X.indices[start:stop], columns)
        np.testing.assert_array_equal(X.data[start:stop], values)
        assert np.all(np.diff(columns) > 0)
        if columns.size:
            assert np.linalg.norm(values) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("Straße der Häuser", "HAUPT STRASSE", "strasse"),
        ("Größe der H\u00e4user", "ha\u0308user", "h\u00e4user"),  # composed and decomposed
        ("История России", "история", "история"),
        ("تاريخ العِلم", "العلم", "العلم"),
        ("हिन्दी भाषा", "भाषा", "भाषा"),
        ("自然语言处理", "语言学", "语言"),
        ("コンピュータ入門", "入門書", "入門"),
        ("ภาษาไทย", "ไทย", "ไท"),
        ("한국어 문법", "문법", "문법"),
        ("I 👍🏽 it", "👍🏽", "👍🏽"),
        ("C++ book", "modern c++", "c++"),
    ],
)
def test_languages_share_words_across_spellings(first, second, shared):
    vectorizer = TextVectorizer(char_ngrams=None).fit([first, second])
    assert shared in list(vectorizer.tokens_)
    assert vectorizer.transform([second]).nnz > 0


def test_fit_is_the_same_for_any_number_of_threads_and_kind_of_sequence(monkeypatch):
    texts = TITLES * 200  # more than one chunk
    results = []
    for n_threads, sequence in [(1, texts), (2, TextColumn.from_strings(texts)), (3, tuple(texts))]:
        for module in (token_counts, vectorizer_module):
            monkeypatch.setattr(module, "n_usable_cores", lambda n=n_threads: n)
        vectorizer = TextVectorizer(word_ngrams=2).fit(sequence)
        X = vectorizer.transform(sequence)
        results.append({**vectorizer.to_arrays(), "data": X.data, "indices": X.indices})
    for other in results[1:]:
        for name, array in results[0].items():
            np.testing.assert_array_equal(other[name], array)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(
    "settings",
    [{}, {"word_ngrams": 2, "min_df": (1, 2, 3)}, {"max_features": 20}, {"char_ngrams": None}],
)
def test_one_reading_learns_and_encodes_the_same(monkeypatch, n_threads, settings):
    for module in (token_counts, vectorizer_module):
        monkeypatch.setattr(module, "n_usable_cores", lambda: n_threads)
    monkeypatch.setattr(token_counts, "CHUNK", 3)
    at_once, learnt = TextVectorizer(**settings), TextVectorizer(**settings).fit(TITLES)
    X, expected = at_once.fit_transform(TITLES), learnt.transform(TITLES)
    assert X.has_canonical_format
    assert X.shape == expected.shape
    for name in ("indptr", "indices", "data"):
        array = getattr(X, name)
        assert array.dtype == getattr(expected, name).dtype
        np.testing.assert_array_equal(array, getattr(expected, name))
    for name, array in learnt.to_arrays().items():
        np.testing.assert_array_equal(at_once.to_arrays()[name], array)


def test_columns_go_from_frequent_to_rare_and_max_features_cuts_the_rare():
    texts = ["a b c", "a b", "a d d d", "e"]
    everything = TextVectorizer(char_ngrams=None, min_df=1).fit(texts)
    assert [everything.token(0), everything.token(1)] == ["a", "b"]
    few = TextVectorizer(char_ngrams=None, min_df=1, max_features=2).fit(texts)
    assert list(few.tokens_) == ["a", "b"]
    assert few.weights_ == pytest.approx([math.log(5 / 4) + 1, math.log(5 / 3) + 1])


def test_round_trip_through_json_and_memory_mapped_files(tmp_path):
    fitted = TextVectorizer(word_ngrams=2, char_ngrams=(2, 4), min_df=1).fit(TITLES)
    for name, array in fitted.to_arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    config = json.loads(json.dumps(fitted.config()))
    arrays = {path.stem: np.load(path, mmap_mode="r") for path in tmp_path.glob("*.npy")}
    loaded = TextVectorizer.from_arrays(config, arrays)
    assert np.shares_memory(loaded.weights_, arrays["weights"])
    assert loaded.config() == fitted.config()
    assert list(loaded.tokens_) == list(fitted.tokens_)
    for text in TITLES:
        for ours, theirs in zip(loaded.encode_one(text), fitted.encode_one(text), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_several_threads_may_encode_at_once():
    vectorizer = TextVectorizer(min_df=1).fit(TITLES)
    expected = [vectorizer.encode_one(text) for text in TITLES]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(vectorizer.encode_one, TITLES * 50))
    for (columns, values), (ours, theirs) in zip(found, expected * 50, strict=True):
        np.testing.assert_array_equal(columns, ours)
        np.testing.assert_array_equal(values, theirs)


def test_texts_without_a_known_token_are_empty_rows():
    vectorizer = TextVectorizer(char_ngrams=None).fit(["red car", "red wine"])
    X = vectorizer.transform(["", "  ,;\n", "blue", "red"])
    assert np.diff(X.indptr).tolist() == [0, 0, 0, 1]
    assert vectorizer.encode_one("")[0].size == 0
    assert vectorizer.transform([]).shape == (0, 1)


def test_lone_surrogates_and_control_characters_separate_words():
    vectorizer = TextVectorizer(char_ngrams=None, min_df=1).fit(["a\ud800b\x00c\x85d", "\udfff"])
    assert sorted(vectorizer.tokens_) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("text", ["ab " * 400_000, "x" * 1_000_000, "語" * 1_000_000])
def test_a_text_of_a_million_characters_is_quick(text):
    vectorizer = TextVectorizer(min_df=1, max_features=100).fit(["ab xx 語語"])
    vectorizer.encode_one("warm up")
    start = time.perf_counter()
    columns, values = vectorizer.encode_one(text)
    assert time.perf_counter() - start < 5
    assert columns.size > 0
    assert np.linalg.norm(values) == pytest.approx(1, abs=1e-5)
    assert TextVectorizer(min_df=1, char_ngrams=None).fit([text]).n_features_ <= 2


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "0 training texts hold no word"),
        (["", " \t"], "2 training texts hold no word"),
        (["one", "two"], r"none of the .* tokens is in min_df=2 .*Lower min_df"),
        ("one text", "Expected a sequence of texts, got str"),
        (["one", None], "Text 1 is NoneType"),
        (["fine"] * 2000 + [7], r"Text 2000 is int \(7\), not str"),
        ([b"bytes"], "Text 0 is bytes"),
        ((text for text in ["a"]), "Expected a sequence of texts, got generator"),
    ],
)
def test_texts_that_cannot_be_fitted(texts, message):
    with pytest.raises(InputError, match=message):
        TextVectorizer().fit(texts)


def test_what_cannot_be_encoded():
    with pytest.raises(InputError, match="not fitted yet"):
        TextVectorizer().encode_one("text")
    vectorizer = TextVectorizer(min_df=1).fit(["text"])
    with pytest.raises(InputError, match="Text 1 is float"):
        vectorizer.transform(["text", math.nan])
    with pytest.raises(InputError, match="got list"):
        vectorizer.encode_one(["text"])
    with pytest.raises(InputError, match="columns go from 0 to"):
        vectorizer.token(vectorizer.n_features_)


@pytest.mark.parametrize(
    "parameters",
    [
        {"word_ngrams": 3},
        {"char_ngrams": (1, 3)},
        {"char_ngrams": (5, 3)},
        {"min_df": 0},
        {"max_features": 0},
        {"kind_weights": (1.0, 1.0)},
        {"kind_weights": (1.0, 0.0, 1.0)},
        {"kind_weights": (1.0, math.nan, 1.0)},
        {"kind_weights": (1.0, math.inf, 1.0)},
    ],
)
def test_parameters_out_of_range_are_named(parameters):
    (name,) = parameters
    with pytest.raises(InputError, match=name):
        TextVectorizer(**parameters).fit(TITLES)


def damaged(fitted, damage):
    config = fitted.config()
    arrays = {name: np.array(array) for name, array in fitted.to_arrays().items()}
    damage(config, arrays)
    return config, arrays


@pytest.mark.parametrize(
    "damage",
    [
        lambda config, arrays: config.update(colour="red"),
        lambda config, arrays: config.pop("min_df"),
        lambda config, arrays: arrays.pop("kinds"),
        lambda config, arrays: arrays.update(weights=arrays["weights"].astype(np.float64)),
        lambda config, arrays: arrays.update(weights=arrays["weights"][:-1]),
        lambda config, arrays: arrays.update(table=arrays["table"][:-1]),
        lambda config, arrays: arrays["table"].fill(10**9),
        lambda config, arrays: arrays["table"].fill(1 << 32),
        lambda config, arrays: arrays.update(token_offsets=arrays["token_offsets"] + 1),
    ],
)
def test_damaged_arrays_are_refused(damage):
    fitted = TextVectorizer(min_df=1).fit(TITLES)
    with pytest.raises(LongtailError):
        TextVectorizer.from_arrays(*damaged(fitted, damage))


def test_a_missing_array_is_named():
    fitted = TextVectorizer(min_df=1).fit(TITLES)
    config, arrays = damaged(fitted, lambda _, arrays: arrays.pop("kinds"))
    with pytest.raises(ModelFolderError, match="'kinds' is missing"):
        TextVectorizer.from_arrays(config, arrays)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.one_of(st.characters(), st.sampled_from("\n\r\u2028ßİΣ\u0308 :)")))))
def test_texts_normalised_together_are_as_each_alone(texts):
    codes, offsets = joined_code_points(texts, 0, len(texts))
    assert offsets[0] == 0
    assert offsets[-1] == codes.size
    for text, start, stop in zip(texts, offsets, offsets[1:], strict=False):
        alone = joined_code_points([text], 0, 1)[0]
        np.testing.assert_array_equal(codes[start:stop], alone)
        np.testing.assert_array_equal(alone[:-1], code_points(text.replace("\n", " ")))
    of_column = joined_code_points(TextColumn.from_strings(texts), 0, len(texts))
    np.testing.assert_array_equal(of_column[0], codes)
    np.testing.assert_array_equal(of_column[1], offsets)


def test_a_text_of_symbols_alone_is_known_by_them():
    vectorizer = TextVectorizer(word_ngrams=2, min_df=1).fit([":-) <3", ">:( >_<", "c++ wine"])
    known = row_of(vectorizer, ">:( >_<")
    assert {(TokenKind.WORD, ">:("), (TokenKind.PAIR, ">:( >_<")} <= set(known)
    assert (TokenKind.CHARACTERS, "<>:") in known
    assert set(row_of(vectorizer, "wine >:(")) == set(row_of(vectorizer, "wine"))
    assert row_of(vectorizer, "++") == {}  # no token of a word is one of symbols


def test_a_word_of_symbols_is_no_beginning():
    vectorizer = TextVectorizer(char_ngrams=(3, 3), min_df=1).fit(["<:-)", "ab"])
    tokens = [vectorizer.token(column) for column in range(vectorizer.n_features_)]
    beginnings = dict(zip(tokens, vectorizer.is_beginning().tolist(), strict=True))
    assert not beginnings["<:-)"]
    assert beginnings["<ab"]


def test_settings_that_none_can_have_are_damage():
    vectorizer = TextVectorizer(min_df=1).fit(["ab"])
    with pytest.raises(LongtailError, match="word_ngrams"):
        TextVectorizer.from_arrays(vectorizer.config() | {"word_ngrams": 9}, vectorizer.to_arrays())


def test_one_that_was_used_is_pickled_and_used_again():
    vectorizer = TextVectorizer(min_df=1).fit(["red wine"])
    columns, values = vectorizer.encode_one("wine")
    again = pickle.loads(pickle.dumps(vectorizer))  # noqa: S301  # our own bytes
    assert again.encode_one("wine")[0].tolist() == columns.tolist()
    np.testing.assert_array_equal(again.encode_one("wine")[1], values)
