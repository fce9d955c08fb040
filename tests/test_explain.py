"""Why a model answers as it does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit

from longtail import LongtailClassifier
from longtail.errors import InputError
from longtail.explain import (
    Explanation,
    LabelExplanation,
    NearPoint,
    WordEffect,
    _runs_of,
    _without_word,
    explain,
    words_of,
)
from longtail.recipes.annexml import AnnexML
from longtail.recipes.attentionxml import AttentionXML
from longtail.recipes.end_to_end import KimCNNClassifier
from longtail.recipes.parabel import Parabel
from longtail.scorers.calibration import Calibration
from small_recipes import NAMES, RECIPES, TEXTS


def effects(label):
    return {word.word: word.effect for word in label.words}


def test_the_word_that_a_label_rests_on_moves_it_up(model):
    explanation = model.explain("Old wine", k=11)
    by_name = {label.label: label for label in explanation.labels}
    assert [label.label for label in explanation.labels] == [
        n for n, _ in model.predict("Old wine", 11)
    ]
    on_drink = effects(by_name["drink"])
    assert on_drink["wine"] > max(0, on_drink["old"])
    assert by_name["old"].words[0].word == "old"
    assert effects(by_name["old"])["old"] > 0


def test_the_best_label_of_every_source_rests_on_words_too():
    texts = [
        "how long to knead bread dough",
        "why did my sourdough not rise",
        "tune a guitar by ear",
        "easy guitar chords for beginners",
    ] * 5
    labels = [["bread", "baking"], ["bread", "yeast"], ["guitar", "tuning"], ["guitar", "chords"]]
    model = LongtailClassifier(n_threads=1).fit(texts, labels * 5).predictor_
    first = model.explain("kneading a dough", k=1).labels[0]
    assert first.label == "baking"
    assert (first.words[0].word, first.words[0].effect > 0.1) == ("kneading", True)


@pytest.mark.parametrize("text", ["red wine car", "old wine"])
@pytest.mark.parametrize("first_slope", [0.0, 0.2])
def test_effects_are_of_the_probabilities_that_are_answered(model, text, first_slope):
    curve = Calibration(slope=0.1, first=3.0, first_slope=first_slope)
    model = model.replaced(calibration=curve)
    for label in model.explain(text, k=3).labels:
        for word in label.words:
            without = " ".join(other for other in text.split() if other != word.word)
            rest = dict(model.predict(without, k=11))[label.label]
            assert word.effect == pytest.approx(logit(label.probability) - logit(rest), abs=1e-3)


def test_near_points_tell_their_labels(model):
    explanation = model.explain("an old car", k=1)
    assert len(explanation.near_points) == 5
    similarities = [point.similarity for point in explanation.near_points]
    assert similarities == sorted(similarities, reverse=True)
    for point in explanation.near_points:  # five twins of "old car on a road"
        assert set(point.labels) == {"vehicle", "old"}


def test_words_of_which_the_model_knows_nothing_are_left_out(model):
    assert [word.word for word in model.explain("wine qqq", k=1).labels[0].words] == ["wine"]
    nothing = model.explain("qqq", k=3)
    assert (nothing.labels, nothing.near_points) == ((), ())
    assert model.explain("", k=3).labels == ()


def test_an_effect_does_not_depend_on_how_many_labels_are_explained():
    """Without its word the search finds none of the labels that a text has."""
    letters = np.random.default_rng(0).choice([*"abcdefghijklmnopqrstuvwxyz"], (200, 6))
    words = ["".join(row) for row in letters]
    texts = [f"{word} {words[(7 * i + 3) % 200]}" for i, word in enumerate(words)]
    names = [[f"{word} {i}" for i in range(6)] for word in words]
    model = LongtailClassifier(n_threads=1, epochs=1).fit(texts, names).predictor_
    alone, *_ = model.explain(f"{words[5]} {words[50]}", k=1).labels
    assert alone.words[0].effect > 1
    for k in (3, 10, 90):
        first, *_ = model.explain(f"{words[5]} {words[50]}", k=k).labels
        assert first == alone


def test_explanations_are_shown_in_a_line_each():
    words = tuple(WordEffect(word, 1.25) for word in ("red", "wi" * 50, "of", "a"))
    label = LabelExplanation("drink", 0.5, words)
    shown = f"'red' +1.25, '{'wi' * 40}...' +1.25, 'of' +1.25, ..."
    assert repr(label) == f"<LabelExplanation of 'drink', 0.5000: {shown}>"
    point = NearPoint(0.75, tuple("abcdef"))
    assert repr(point) == "<NearPoint of similarity 0.7500: 'a', 'b', 'c', ...>"
    shown = "<Explanation of 1 label and 5 near points: 'drink'>"
    assert repr(Explanation((label,), (point,) * 5)) == shown


def test_an_explanation_can_be_held_to_labels(model):
    labels = model.explain("old wine", k=5, allowed=["vehicle", "red"]).labels
    assert {label.label for label in labels} == {"vehicle", "red"}


def test_long_texts_are_looked_at_in_part(model):
    text = " ".join(f"wine{i} wine" for i in range(500))
    assert 0 < len(model.explain(text, k=1).labels[0].words) <= 64


def test_what_tells_is_found_wherever_it_stands_in_a_long_text(model):
    text = " ".join([*(f"page{number}" for number in range(200)), "wine"])
    assert "wine" in effects(model.explain(text, k=1).labels[0])


@pytest.mark.parametrize(
    "recipe",
    [
        Parabel(n_learners=1, n_threads=1),
        KimCNNClassifier(dimension=16, n_filters=8, n_threads=1),
        AttentionXML(dimension=16, n_hidden=16, epochs=60, batch_size=8, n_threads=1),
    ],
    ids=["bags", "words in order", "words of labels"],
)
def test_every_recipe_can_be_explained(recipe):
    texts, names = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    model = recipe.fit(texts, names).predictor_
    explanation = explain(model, "Red wine, wine, wine.", 1)
    assert explanation.labels[0].label == "drink"
    on_drink = effects(explanation.labels[0])
    assert on_drink.keys() == {"red", "wine"}
    assert max(on_drink.values()) > 0
    assert explanation.near_points == ()
    assert effects(explain(model, "wine", 1).labels[0]).keys() == {"wine"}  # nothing is left


def test_a_label_that_is_not_found_without_a_word_rests_on_it():
    """Without "wine" only vehicles are near: "drink" is then left out of the answer."""
    texts = ["red wine", "white wine", "fast car", "old car"] * 5
    names = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    model = AnnexML(n_learners=3, n_threads=1).fit(texts, names).predictor_
    by_name = {label.label: effects(label) for label in model.explain("wine car", 2).labels}
    assert by_name["drink"]["wine"] > 0 > by_name["drink"]["car"]
    assert by_name["vehicle"]["car"] > 0 > by_name["vehicle"]["wine"]


def test_words_are_those_that_the_model_reads():
    assert words_of("Straße, STRASSE; e\u0301t\u00e9") == ["strasse", "été"]
    assert words_of("赤いワイン 100%") == ["赤", "い", "ワ", "イ", "ン", "100"]
    assert words_of(" ") == words_of("") == []
    assert (words_of("<3 a ..."), words_of("<< ...")) == (["3", "a"], ["<<", "..."])


@pytest.mark.parametrize(
    ("text", "word", "left"),
    [
        ("Red wine, WINE; winery", "wine", "Red  ,  ; winery"),
        ("neue Straße", "strasse", "neue  "),
        ("cafe\u0301 noir", "café", "  noir"),
        ("\ufb01ne art", "fine", "  art"),
        ("my foo_bar", "foo", "my  _bar"),
        ("C++, C and a+b", "c", "C++,   and a+b"),
        ("C++, C and a+b", "c++", " , C and a+b"),
        ("C++, C and a+b", "a", "C++, C and  +b"),
        ("हिन्दी में", "हिन्दी", "  में"),
        ("红酒 wine", "酒", "红  wine"),
    ],
)
def test_a_word_is_found_however_a_text_spells_it(text, word, left):
    """Else a model that reads texts would be asked for the same one again."""
    assert word in words_of(text)
    assert _without_word(text, _runs_of(text), word) == left


def test_a_script_without_spaces_is_explained_by_character():
    texts, names = ["红酒 杯", "旧车 路"] * 20, [["drink"], ["vehicle"]] * 20
    model = LongtailClassifier(dimension=16, epochs=2, batch_size=64).fit(texts, names).predictor_
    assert effects(model.explain("红酒", k=1).labels[0]).keys() == {"红", "酒"}


def test_models_of_features_are_refused(tmp_path):
    from scipy.sparse import eye_array

    features = eye_array(40, format="csr", dtype="float32")
    model = Parabel(n_learners=1, n_threads=1).fit(features, [["a"], ["b"]] * 20).predictor_
    with pytest.raises(InputError, match="trained on texts"):
        model.explain("red wine")


def test_one_text_is_explained_at_a_time(model):
    with pytest.raises(InputError, match="One text is explained at a time, a string, got a list"):
        model.explain(["red wine", "fast car"])


@pytest.mark.parametrize("make", RECIPES.values(), ids=RECIPES.keys())
def test_the_only_word_speaks_for_the_answer(make):
    """Without it there is no answer at all."""
    model = make().fit(TEXTS, NAMES).predictor_
    for label in explain(model, "rose", k=2).labels:
        assert [word.effect >= 0 for word in label.words] == [True]
