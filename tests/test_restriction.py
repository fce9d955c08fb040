"""Answers held to some labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail import Dataset, LongtailClassifier
from longtail.compiled.blended import compiled_of
from longtail.compiled.scratch import count_places
from longtail.data.label_space import LabelSpace
from longtail.data.text_column import TextColumn
from longtail.errors import InputError
from longtail.recipes.parabel import Parabel
from longtail.recipes.siamesexml import SiameseXML
from longtail.restriction import Restriction
from small_recipes import BRIEF

TEXTS = ["a glass of red wine", "an old car", "", "zzz"]


def test_a_label_keeps_its_probability_when_others_go(model):
    every = dict(model.predict(TEXTS[0], k=11))
    best = next(iter(every))
    held = dict(model.predict(TEXTS[0], k=11, allowed=list(every)[2:4]))
    assert set(held) == set(list(every)[2:4])
    for name, probability in held.items():
        assert probability == every[name]
    masked = dict(model.predict(TEXTS[0], k=11, masked=[best]))
    assert list(masked) == [name for name in every if name != best]


def test_allowed_labels_are_scored_even_if_the_search_does_not_find_them(model):
    far = ["fast", "vehicle"]
    assert {name for name, _ in model.predict(TEXTS[0], allowed=far)} == set(far)
    assert [name for name, _ in model.predict(TEXTS[0], allowed=far, masked=["fast"])] == [
        "vehicle"
    ]


@pytest.mark.parametrize("recipe", [LongtailClassifier, SiameseXML])
def test_what_the_search_has_not_found_comes_last(recipe):
    topics = [f"topic{i} word{i % 7}" for i in range(60)]
    brief = BRIEF if recipe is SiameseXML else {"n_threads": 1}
    narrow = recipe(n_near_labels=2, n_near_points=2, n_voted=2, **brief)
    model = narrow.fit(topics * 3, [[text.split()[0]] for text in topics] * 3).predictor_
    bags = model.bags(topics[:5])
    found, _ = compiled_of(model.scorer).candidates(bags)
    restriction = Restriction.of(model.label_space, [text.split()[0] for text in topics], ())
    ids, probabilities = model.predict_topk(topics[:5], 60, restriction=restriction)
    for row, own in zip(ids, found, strict=True):
        n_found = int((own >= 0).sum())
        assert 2 <= n_found < 60
        assert row[:n_found].tolist() == own[:n_found].tolist()
        assert sorted(row.tolist()) == list(range(60))
    assert (np.diff(probabilities, axis=1) <= 0).all()


def test_behind_what_the_search_has_found_probabilities_differ_as_the_docs_say():
    topics = [f"topic{i} word{i % 7}" for i in range(60)]
    names = [text.split()[0] for text in topics]
    narrow = LongtailClassifier(n_near_labels=2, n_near_points=2, n_voted=2, n_threads=1)
    model = narrow.fit(topics * 3, [[name] for name in names] * 3).predictor_
    found, _ = compiled_of(model.scorer).candidates(model.bags(topics[:5]))
    n_differing = 0
    for text, own in zip(topics[:5], found, strict=True):
        free, held = dict(model.predict(text, 60)), dict(model.predict(text, 60, allowed=names))
        candidates = {model.label_space.name(int(label)) for label in own if label >= 0}
        assert candidates <= {name for name in free if free[name] == held[name]}
        n_differing += sum(free[name] != held[name] for name in free)
    assert n_differing > 0
    said = (Path(__file__).parents[1] / "docs" / "serving.md").read_text("utf-8")
    assert "have another probability, behind all that the search finds" in said


def test_the_same_labels_are_made_room_for_once_and_others_anew(model):
    scorer, few = (
        compiled_of(model.scorer),
        [["drink", "red"], ["vehicle", "old"], ["drink", "red"]],
    )
    asked = [Restriction.of(model.label_space, names, ()).given for names in few]
    assert scorer.finding_also(asked[0]) is scorer.finding_also(asked[2])
    first, other, again = (scorer.finding_also(labels) for labels in asked)
    assert first is not other is not again
    assert count_places(first.parts) == first._n_places
    told = [model.predict(TEXTS[0], allowed=names) for names in few]
    assert told[0] == told[2]
    for names, answer in zip(few, told, strict=True):
        assert sorted(name for name, _ in answer) == sorted(names)


def test_a_batch_and_its_rows_agree(model):
    restriction = Restriction.of(model.label_space, ["drink", "vehicle", "old"], ())
    ids, probabilities = model.predict_topk(TEXTS, 5, restriction=restriction)
    assert ids.shape == (4, 5)
    assert (ids[2:] == -1).all()  # nothing is known of these texts
    assert np.isneginf(probabilities[ids < 0]).all()
    for i, text in enumerate(TEXTS):
        own_ids, own = model.predict_topk([text], 5, restriction=restriction)
        np.testing.assert_array_equal(own_ids[0], ids[i])
        np.testing.assert_array_equal(own[0], probabilities[i])


def test_what_are_no_names_is_said(model):
    with pytest.raises(InputError, match=r"got None\. Pass \(\)"):
        model.predict("wine", masked=None)
    with pytest.raises(InputError, match="got one string"):
        model.predict("wine", allowed="wine")


def test_many_rows_are_answered_in_blocks(model, monkeypatch):
    whole = model.predict(TEXTS * 3, allowed=["drink", "old"])
    monkeypatch.setattr("longtail.restriction.PAIRS_AT_ONCE", 1)
    assert model.predict(TEXTS * 3, allowed=["drink", "old"]) == whole


def test_other_recipes_leave_out_what_they_do_not_find():
    texts, names = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    model = Parabel(n_learners=1, n_threads=1).fit(texts, names).predictor_
    assert [name for name, _ in model.predict("red wine", masked=["drink"])] in (["vehicle"], [])
    assert [name for name, _ in model.predict("red wine", allowed=["drink"])] == ["drink"]


def test_nothing_is_restricted_by_default(model):
    assert Restriction.of(model.label_space, None, ()) is None
    assert Restriction.of(model.label_space, None, []) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"allowed": []}, "No label is allowed"),
        ({"allowed": ["drinks"]}, "None of the 11 labels is named 'drinks'"),
        ({"masked": ["cars"]}, "None of the 11 labels is named 'cars'"),
        ({"allowed": "drink"}, r"Pass \['drink'\]"),
        ({"allowed": 5}, "Expected a list of label names, got 5"),
        ({"masked": [["drink"]]}, r"strings, got \['drink'\]"),
    ],
)
def test_what_cannot_be_meant_is_refused(model, arguments, message):
    with pytest.raises(InputError, match=message):
        model.predict("red wine", **arguments)


def test_names_may_come_as_an_array():
    space = LabelSpace.from_names(["guitar", "bread", "car"])
    found = Restriction.of(space, allowed=None, masked=np.array(["bread", "car"]))
    assert found.is_allowed.tolist() == [True, False, False]
    assert Restriction.of(space, allowed=None, masked=np.array([])) is None


def test_all_labels_of_a_name_that_several_share_are_meant():
    space = LabelSpace.from_names(["bank", "river", "bank", "boat"])
    names = np.array(["bank", "river", "bank", "boat"])
    texts = [f"{name} {i % 3}" for i in range(30) for name in ("bank", "river", "boat")]
    labels = csr_array(np.array([names == text.split()[0] for text in texts], np.float32))
    data = Dataset(TextColumn.from_strings(texts), None, labels, space)
    model = LongtailClassifier(dimension=16, n_threads=1).fit_dataset(data).predictor_
    assert [name for name, _ in model.predict("bank", 4)].count("bank") == 2
    assert {name for name, _ in model.predict("bank", 4, masked=["bank"])} == {"river", "boat"}
    assert [name for name, _ in model.predict("bank", 4, allowed=["bank"])] == ["bank", "bank"]
    assert "bank" not in [n for n, _ in model.without_labels(["bank"]).predict("bank", 4)]


@pytest.mark.parametrize(
    "recipe", [LongtailClassifier(n_threads=1), Parabel(n_learners=1, beam_size=99, n_threads=1)]
)
def test_as_many_labels_are_answered_as_are_wanted_and_left(recipe):
    names = [f"name{i}" for i in range(1_200)]
    texts = [f"word {name}" for name in names]
    model = recipe.fit(texts, [[name] for name in names]).predictor_
    every = [name for name, _ in model.predict(texts[7], 1_200)]
    n = len(every)
    assert n > 1_100
    for k, n_masked in ((1_000, 1), (5, 900), (900, 150), (n, 10), (n, 1_000)):
        found = [name for name, _ in model.predict(texts[7], k, masked=every[:n_masked])]
        assert found == every[n_masked : n_masked + k]
