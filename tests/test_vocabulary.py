"""Which tokens of a training set are known, and how long its pieces of words are."""

import weakref

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail import Astec, Dataset, LongtailClassifier, TextVectorizer
from longtail.data.from_python import labels_from
from longtail.data.text_column import TextColumn
from longtail.errors import InputError
from longtail.estimators.vocabulary import (
    are_strings,
    char_ngrams_for,
    char_weight_for,
    feature_kinds,
    known_and_encoded,
    sample_of,
    share_alone,
    share_named,
    share_unknown,
    vectorizer_for,
    vocabulary_texts,
)
from longtail.recipes.parabel import Parabel


def dataset_of(texts, names):
    labels, space, _ = labels_from(names, len(texts))
    return Dataset(TextColumn.from_strings(texts), None, labels, space)


@pytest.mark.parametrize(
    ("text", "n_texts", "expected"),
    [
        ("rosemary", 100, (2, 5)),
        ("rosemary", 99, (3, 5)),  # too few to learn from two characters
        ("rose rose rose rose rose", 100, (2, 5)),  # one word, five times
        ("a rose is fine", 100, (3, 5)),
        ("a rose is fine", 20_001, (4, 5)),
        ("rosemary", 20_001, (2, 5)),
        ("", 100, (2, 5)),
        ("古代戦争のリアルタイム戦略ゲーム", 1, (2, 4)),
        ("古代戦争のリアルタイム戦略ゲーム", 20_001, (2, 4)),
        ("บ้านสวย game", 100, (2, 4)),
        ("real time game 游戏", 100, (3, 5)),
    ],
)
def test_pieces_are_shorter_where_texts_have_few_words(text, n_texts, expected):
    texts = TextColumn.from_strings([text] * n_texts)
    assert char_ngrams_for("auto", texts) == expected
    assert char_ngrams_for((4, 6), texts) == (4, 6)
    assert char_ngrams_for(None, texts) is None


def test_another_word_than_auto_is_refused():
    with pytest.raises(InputError, match=r"'auto', or None for none; got 'some'"):
        LongtailClassifier(char_ngrams="some").fit(["red wine"], [["drink"]])


def test_pairs_may_have_to_be_in_more_texts_than_words():
    texts = ["red wine", "red wine", "red car", "old rope"]
    vectorizer = TextVectorizer(word_ngrams=2, char_ngrams=None, min_df=(1, 2, 1)).fit(texts)
    assert set(vectorizer.tokens_) == {"red", "wine", "car", "old", "rope", "red wine"}
    again = TextVectorizer.from_arrays(vectorizer.config(), vectorizer.to_arrays())
    assert again.min_df == (1, 2, 1)


@pytest.mark.parametrize("min_df", [0, (1, 0, 1), (1, 2)])
def test_numbers_of_texts_that_make_no_sense_are_refused(min_df):
    with pytest.raises(InputError, match="three such numbers"):
        TextVectorizer(min_df=min_df).fit(["red wine"])


def test_words_of_labels_are_known_where_a_recipe_reads_them():
    dataset = dataset_of(["red wine", "old rope"], [["claret"], ["hawser"]])
    known = {
        recipe: vectorizer_for(recipe(), dataset).fit(vocabulary_texts(recipe(), dataset)).tokens_
        for recipe in (LongtailClassifier, Parabel)
    }
    assert "claret" in set(known[LongtailClassifier])
    assert "claret" not in set(known[Parabel])


def test_labels_are_encoded_with_the_points_and_do_not_keep_their_rows():
    dataset = dataset_of(["red wine", "old rope"] * 20, [["red claret"], ["hawser"]] * 20)
    features, vectorizer, of_labels, *_ = known_and_encoded(LongtailClassifier(), dataset)
    for rows, texts in ((features, dataset.texts), (of_labels, dataset.label_space.names)):
        expected = vectorizer.transform(texts)
        assert rows.shape == expected.shape
        assert rows.nnz == expected.nnz > 0
        assert not (rows != expected).nnz
    all_rows = weakref.ref(features.data.base)
    del features, rows, expected
    assert all_rows() is None
    assert known_and_encoded(Parabel(), dataset).label_features is None


def test_a_vocabulary_of_features_is_refused():
    labels, space, _ = labels_from([["drink"]], 1)
    features = Dataset(None, csr_array(np.eye(1, dtype=np.float32)), labels, space)
    with pytest.raises(InputError, match="points have features"):
        vocabulary_texts(Astec(), features)


@pytest.mark.parametrize(
    ("texts", "names", "expected"),
    [
        (["a Red, red car"], ["red car"], 1.0),
        (["a car"], ["red car"], 0.0),
        (["cars"], ["car"], 0.0),
        ([" "], ["\u0301"], None),  # no words at all, as training says
        (["a car"], ["\u0301"], 0.0),
        (["a car", "the tango", "a waltz", "a rope"], ["car", "tango", "dance", "rope"], 0.75),
        (["赤ワイン"], ["ワイン"], 0.0),
    ],
)
def test_a_label_is_named_by_all_of_its_words(texts, names, expected):
    labels, columns = csr_array(np.eye(len(names))), TextColumn.from_strings(names)
    if expected is None:
        with pytest.raises(InputError, match="no word"):
            share_named(TextColumn.from_strings(texts), labels, columns)
    else:
        assert share_named(TextColumn.from_strings(texts), labels, columns) == expected
    nothing = csr_array(labels.shape)
    assert share_named(TextColumn.from_strings(texts), nothing, columns) == 0


@pytest.mark.parametrize(
    ("n_named", "n_points", "expected"), [(90, 100, 0.2), (89, 100, 0.6), (99, 99, 0.6)]
)
def test_pieces_weigh_less_where_nearly_all_labels_are_named(n_named, n_points, expected):
    texts = ["the old car" if i < n_named else "the new rope" for i in range(n_points)]
    dataset = dataset_of(texts, [["car"]] * n_points)
    assert char_weight_for(LongtailClassifier(), dataset) == expected
    assert char_weight_for(LongtailClassifier(char_weight=0.4), dataset) == 0.4
    assert char_weight_for(Astec(), dataset) == 0.6  # does not read what labels are called
    vectorizer = vectorizer_for(LongtailClassifier(), dataset)
    assert vectorizer.kind_weights == (1.0, 1.0, expected)


@pytest.mark.parametrize(("n_words", "expected"), [(1, 10_000), (50, 10_000), (200, 2_500)])
def test_a_sample_has_fewer_of_long_texts(n_words, expected):
    texts = TextColumn.from_strings(["wine " * n_words] * 10_000)
    assert len(sample_of(texts)) == expected


def random_strings(letters, n_strings=200, length=120):
    random = np.random.default_rng(0)
    return ["".join(random.choice(list(letters), length)) for _ in range(n_strings)]


@pytest.mark.parametrize(
    ("text", "n_texts", "expected"),
    [
        ("a" * 20, 100, True),
        ("a" * 20, 99, False),
        ("a" * 19, 100, False),
        (f"{'a' * 30} {'b' * 10}", 100, True),
        (f"{'a' * 30}-{'b' * 9}", 100, False),
        ("-" * 20, 100, False),
        ("", 100, False),
        ("wine wine wine wine wine wine", 100, False),
    ],
)
def test_strings_are_texts_whose_words_are_long(text, n_texts, expected):
    assert are_strings(TextColumn.from_strings([text] * n_texts)) == expected


def test_pieces_of_strings_are_longer_where_nearly_all_are_in_several():
    of_four, of_twenty = random_strings("acgt"), random_strings("acdefghiklmnpqrstvwy")
    known = [char_ngrams_for("auto", TextColumn.from_strings(t)) for t in (of_four, of_twenty)]
    assert known == [(2, 7), (2, 5)]  # of four letters there are 4,096 pieces of six
    assert char_ngrams_for("auto", TextColumn.from_strings(["a" * 20] * 100)) == (2, 8)
    apart = [" ".join(text) for text in of_four]  # the same letters are no strings
    assert char_ngrams_for("auto", TextColumn.from_strings(apart))[1] == 5


def test_pieces_of_strings_must_be_in_two_where_most_are_in_one():
    of_four, of_twenty = random_strings("acgt"), random_strings("acdefghiklmnpqrstvwy")
    names = [["some"]] * 200
    least = [
        vectorizer_for(LongtailClassifier(), dataset_of(t, names)) for t in (of_four, of_twenty)
    ]
    assert [vectorizer.min_df for vectorizer in least] == [(1, 2, 1), (1, 2, 2)]
    assert vectorizer_for(LongtailClassifier(min_df=1), dataset_of(of_twenty, names)).min_df == 1
    astec = vectorizer_for(Astec(min_df=None), dataset_of(of_twenty, names))
    assert astec.min_df == (1, 1, 2)


def test_pieces_that_one_text_has_twice_are_alone():
    assert share_alone(TextColumn.from_strings(["abcabc", "xabcx"]), 3) == 1 - 2 / 10
    assert share_alone(TextColumn.from_strings(["", "?"]), 3) == 0


def test_motifs_of_long_strings_are_found():
    """A motif of seven letters, of four, cannot be told by its pieces of five."""
    random = np.random.default_rng(1)
    motifs = ["".join(random.choice(list("acgt"), 7)) for _ in range(8)]
    texts, labels = random_strings("acgt", 1_200, 200), []
    for i, text in enumerate(texts):
        motif, start = i % len(motifs), random.integers(0, 193)
        texts[i] = text[:start] + motifs[motif] + text[start + 7 :]
        labels.append([f"motif {motif}"])
    model = LongtailClassifier(epochs=2, dimension=64, n_threads=1).fit(
        texts[:1_000], labels[:1_000]
    )
    answers = model.predictor_.predict(texts[1_000:], k=1)
    right = np.mean([a[0][0] in t for a, t in zip(answers, labels[1_000:], strict=True)])
    assert right > 0.8


def test_it_is_told_of_texts_whether_their_script_has_spaces():
    for texts, is_unspaced in ((["赤ワイン"], True), (["red wine"], False)):
        vectorizer = TextVectorizer(char_ngrams=(2, 3), min_df=1).fit(texts)
        assert feature_kinds(vectorizer, TextColumn.from_strings(texts)).is_unspaced == is_unspaced


@pytest.mark.parametrize(("n_unknown", "is_unknown"), [(1, False), (4, True)])
def test_of_words_that_no_other_text_has_all_pieces_are_read(n_unknown, is_unknown):
    """As of texts full of typing errors; with them stand words that all texts have."""
    random = np.random.default_rng(0)
    letters = [chr(code) for code in range(ord("a"), ord("z"))]
    words = [["".join(random.choice(letters, 6)) for _ in range(n_unknown)] for _ in range(2_500)]
    texts = [" ".join(["the", "old", *own]) for own in words]
    assert (share_unknown(TextColumn.from_strings(texts)) > 0.55) == is_unknown
    assert share_unknown(TextColumn.from_strings(texts[:1_999])) == 0.0  # of few, most are unknown
    if not is_unknown:  # else they would have few words
        texts = [f"{text} of a" for text in texts]
    own = char_ngrams_for("auto", TextColumn.from_strings(texts))
    assert own == ((2, 5) if is_unknown else (3, 5))
    kinds = feature_kinds(None, TextColumn.from_strings(texts))
    assert kinds.is_unknown == is_unknown
