"""Symbols as words, and the trial that tells whether they say something."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail
from longtail import Dataset, LongtailClassifier, TextVectorizer
from longtail.data.characters import as_text
from longtail.data.symbol_words import codes_of, joined_codes_of
from longtail.errors import InputError
from longtail.estimators.symbol_trial import symbols_tell

MIXED = st.text(alphabet='aß9 \n\t.,:;_-+#"«»…(){}<>☂🙂字', max_size=12)


def words_of(text):
    """The words that a text has with symbols, beyond those that it has without."""
    with_symbols, without = (
        TextVectorizer(char_ngrams=None, min_df=1, symbols=on).fit([text, "a"])
        for on in (True, False)
    )
    return set(with_symbols.tokens_) - set(without.tokens_)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("red wine", set()),
        ("12:30", {"⁑:⁑"}),
        ("12-30, 12-31", {"⁑-⁑", "⁑,⁅"}),
        ("Who?", {"⁂?⁅"}),
        ("x_train = #include<a>", {"⁂_⁂", "⁅=⁅", "⁅#⁂", "⁂<⁂", "⁂>⁅"}),
        ("a....... b", {"⁂....⁅"}),
        ("a 🙂 b", set()),  # a word already
        ("a (🙂) b", {"⁅()⁅"}),  # of a run with emoji, the rest
    ],
)
def test_each_different_run_is_a_word(text, words):
    assert words_of(text) == words


@settings(max_examples=100, deadline=None)
@given(st.lists(MIXED, max_size=5))
def test_texts_at_once_are_each_as_it_is_alone(texts):
    codes, offsets = joined_codes_of(texts, 0, len(texts))
    assert len(offsets) == len(texts) + 1
    for text, start, stop in zip(texts, offsets[:-1], offsets[1:], strict=True):
        alone = codes_of(text.replace("\n", " "), symbols=True)
        np.testing.assert_array_equal(codes[start : stop - 1], alone)
        assert as_text(codes[stop - 1 : stop]) == "\n"


@settings(max_examples=50, deadline=None)
@given(st.lists(MIXED, min_size=1, max_size=6))
def test_a_row_is_the_same_alone_and_learnt_from(texts):
    vectorizer = TextVectorizer(min_df=1, symbols=True)
    rows = vectorizer.fit_transform([*texts, "one: two"])
    again = vectorizer.transform([*texts, "one: two"])
    np.testing.assert_array_equal(rows.toarray(), again.toarray())
    for place, text in enumerate(texts):
        columns, values = vectorizer.encode_one(text)
        own = again[[place]]
        np.testing.assert_array_equal(columns, own.indices)
        np.testing.assert_array_equal(values, own.data)


def test_what_is_no_text_is_told():
    with pytest.raises(InputError, match=r"Text 3 is int \(7\), not str"):
        joined_codes_of(["a", "b", "c", 7], 2, 4)


def times(n):
    """Times of the day and ranges, which only what is between their numbers tells apart."""
    random = np.random.default_rng(0)
    numbers = random.integers(10, 60, (n, 2)).tolist()
    kinds = random.integers(0, 2, n).tolist()
    texts = [f"{one}{':-'[kind]}{two}" for (one, two), kind in zip(numbers, kinds, strict=True)]
    return texts, [["time"], ["range"]], kinds


def test_the_default_recipe_reads_symbols_where_they_tell(tmp_path):
    texts, names, kinds = times(600)
    labels = [names[kind] for kind in kinds]
    model = LongtailClassifier(n_threads=1).fit(texts[:400], labels[:400])
    assert model.predictor_.vectorizer.symbols
    assert model.score(texts[400:], labels[400:]) > 0.97
    blind = LongtailClassifier(n_threads=1, symbols=False).fit(texts[:400], labels[:400])
    assert blind.score(texts[400:], labels[400:]) < 0.7
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    for text, row in zip(texts[400:420], loaded.predict(texts[400:420], k=1), strict=True):
        assert loaded.predict(text, k=1) == row
    assert loaded.explain(texts[400], k=1).labels[0].label == labels[400][0]


@pytest.mark.parametrize("change", ["few", "many labels", "rare labels", "prose", "features"])
def test_symbols_are_not_tried_where_they_would_hardly_tell(change, monkeypatch):
    monkeypatch.setattr("longtail.estimators.symbol_trial._right", lambda *_, **__: 1 / 0)
    texts, names, kinds = times(400)
    labels = [names[kind] for kind in kinds]
    if change == "few":
        texts, labels = texts[:50], labels[:50]
    if change == "many labels":
        texts, labels = texts * 28, [[str(i % 1100)] for i in range(11_200)]
    if change == "rare labels":
        labels = [[str(i % 100)] for i in range(400)]
    if change == "prose":
        texts = [f"word{i}" for i in range(400)]
    data = Dataset.of(np.eye(400) if change == "features" else texts, labels)
    assert not symbols_tell(data, 1)


def test_symbols_are_tried_of_hundreds_of_labels(monkeypatch):
    monkeypatch.setattr("longtail.estimators.symbol_trial._right", lambda *_, **__: 1 / 0)
    texts = [f"{i}:{i}" for i in range(4000)]
    with pytest.raises(ZeroDivisionError):
        symbols_tell(Dataset.of(texts, [[str(i % 400)] for i in range(4000)]), 1)


def test_symbols_that_few_texts_have_are_tried_on_more_of_these(monkeypatch):
    monkeypatch.setattr("longtail.estimators.symbol_trial.N_TRIED", 100)
    texts, names, kinds = times(120)
    others = [f"word{i % 60}" for i in range(1880)]
    data = Dataset.of(texts + others, [names[kind] for kind in kinds] + [["word"]] * 1880)
    assert symbols_tell(data, 1)


def test_symbols_that_stand_anywhere_are_not_read():
    random = np.random.default_rng(1)
    texts = [f"word{i % 2}{random.choice(list('.,;!'))}" for i in range(400)]
    labels = [["even"], ["odd"]]
    assert not symbols_tell(Dataset.of(texts, [labels[i % 2] for i in range(400)]), 1)
