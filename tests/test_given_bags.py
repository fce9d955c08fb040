"""Texts that are taken apart once and asked about several times."""

from __future__ import annotations

import numpy as np
import pytest

from longtail import load
from longtail.data.bags import Bags
from longtail.data.point_input import InputKind
from longtail.errors import InputError
from longtail.recipes.parabel import Parabel
from longtail.restriction import Restriction

TEXTS = ["a glass of red wine", "an old car", "", "zzz"]


@pytest.fixture(scope="module")
def model(text_model_path):
    return load(text_model_path)


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], []])
def test_bags_are_answered_as_their_texts_are(model, texts):
    bags = model.bags(texts)
    assert model.predict(bags, k=3) == model.predict(texts, k=3)
    restriction = Restriction.of(model.label_space, None, ["drink"])
    for k, held in ((1, None), (4, None), (4, restriction)):
        ids, probabilities = model.predict_topk(bags, k, restriction=held)
        expected = model.predict_topk(texts, k, restriction=held)
        assert ids.tolist() == expected[0].tolist()
        assert probabilities.tolist() == expected[1].tolist()
    joined = Bags.joined([bags, bags])
    assert model.predict(joined, k=3) == model.predict(texts, k=3) * 2
    first = bags.rows(0, min(1, len(texts)))
    assert model.predict(first, k=3) == model.predict(texts[:1], k=3)


def test_bags_of_features_are_taken_as_they_are():
    rows = np.eye(6, dtype=np.float32) * 3 + 1
    model = Parabel().fit(rows, [["a"], ["b"], ["c"]] * 2).predictor_
    assert model.predict(model.bags(rows)) == model.predict(rows)


def test_bags_of_another_model_are_refused(model):
    other = Parabel().fit(["one two", "three four"] * 5, [["a"], ["b"]] * 5).predictor_
    with pytest.raises(InputError, match=r"have \d+ columns, but this model has .* very model"):
        model.predict(other.bags(["one three"]))
    bags = model.bags(TEXTS)
    for broken, sentence in (
        (bags._replace(columns=bags.columns + model.n_features, n_columns=None), "the column"),
        (bags._replace(columns=bags.columns - model.n_features, n_columns=None), "the column -"),
        (bags._replace(row_starts=bags.row_starts[:-3]), "do not rise from 0"),
        (bags._replace(row_starts=bags.row_starts[::-1]), "do not rise from 0"),
        (bags._replace(row_starts=bags.row_starts[:0]), "do not rise from 0"),
        (bags._replace(values=bags.values[1:]), "do not rise from 0"),
    ):
        with pytest.raises(InputError, match=sentence):
            model.predict_topk(broken)


@pytest.mark.parametrize("kind", [InputKind.WORDS, InputKind.TEXTS])
def test_bags_must_have_what_the_model_reads(model, kind):
    reading = model.with_scorer(model.scorer, model.reads.__class__(kind, n_words=8))
    bags = reading.bags(TEXTS)
    assert reading.bags(bags) is bags
    with pytest.raises(InputError, match=f"reads the {kind.value} of each point, which these bags"):
        reading.bags(model.bags(TEXTS))
