"""Parts whose own code no model folder would keep are refused; what one keeps comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from longtail import DeepXML, load
from longtail.errors import InputError
from longtail.features.bag_encoder import BagEncoder, UnitBagEncoder
from longtail.negatives.nearest_labels import NearestLabels, ShortlistSizes
from longtail.recipes.dismec import DiSMEC
from longtail.recipes.slice import Slice
from longtail.scorers.deepxml import DeepXMLScorer, Ranker
from longtail.scorers.label_vectors import LabelVectors
from longtail.scorers.one_vs_rest import OneVsRestScorer
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.transfer.transform import Rectified
from small_parts import (
    BRIEF,
    LABELS,
    TEXTS,
    Learns,
    OwnTransfer,
    encoded,
    fit,
    ranking,
)


class OwnScorer(OneVsRestScorer):
    """A scorer of somebody else's, whose answers are what they are."""

    change = None

    def top_k(self, *args):
        return type(self).change(*super().top_k(*args))

    def config(self):
        return {"kind": "own"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda *_: None, "must return ids and scores .* got a NoneType"),
        (lambda ids, scores: (ids[:1], scores), r"two arrays of \(\d+, 2\), got \[\(1, 2\)"),
        (lambda ids, scores: (ids + 7, scores), "from 0 to 1, or -1 for none, got int32 from"),
        (lambda ids, scores: (ids.astype(float), scores), "got float64 from"),
        (lambda ids, scores: (ids, scores * np.nan), "or NaN"),
    ],
)
def test_answers_of_a_scorer_are_looked_at(change, message):
    class Own(DiSMEC):
        def _learn(self, *args):
            return OwnScorer(**vars(super()._learn(*args)))

    OwnScorer.change = staticmethod(change)
    with pytest.raises(InputError, match=message):
        Own(n_threads=1).fit(TEXTS, LABELS)


def test_a_scorer_that_no_folder_can_hold_is_not_saved(tmp_path):
    class Own(DiSMEC):
        def _learn(self, *args):
            return OwnScorer(**vars(super()._learn(*args)))

    OwnScorer.change = staticmethod(lambda *found: found)
    model = Own(n_threads=1).fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) == 1.0
    with pytest.raises(InputError, match="an OwnScorer, which a model folder could not be opened"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


class OwnAnswers(BagEncoder):
    """An encoder whose vectors are not those of its arrays alone."""

    def encode(self, bags, n_threads=1):
        return 1 + super().encode(bags, n_threads)


class OwnLayer(Rectified):
    """A transform that is not what its arrays say alone."""

    def apply(self, features, n_threads=1):
        return -super().apply(features, n_threads)


class OwnLogits(LabelVectors):
    """Classifiers that score otherwise than by their vectors."""

    def logits(self, features, labels, n_threads=1):
        return -super().logits(features, labels, n_threads)


class OwnRanker(Ranker):
    """A re-ranker that scores otherwise than by its parts."""

    def logits(self, bags, labels, n_threads=1):
        return -super().logits(bags, labels, n_threads)


class OwnUnit(UnitBagEncoder):
    """The same of unit vectors."""

    def encode(self, bags, n_threads=1):
        return -super().encode(bags, n_threads)


def of_own_ranker(data, _):
    return OwnRanker(**vars(ranking()(data, _)))


OWN_LOGITS = OwnLogits(np.ones((2, 4)), np.ones(2))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"surrogate": Learns(encoded(OwnAnswers))}, "OwnAnswers has an `encode` of its own"),
        (
            {"surrogate": Learns(encoded()), "classifier": Learns(OWN_LOGITS)},
            "OwnLogits has a `logits` of its own",
        ),
        (
            {
                "surrogate": Learns(encoded()),
                "classifier": Learns(LabelVectors(np.ones((2, 4)), np.ones(2))),
                "transfer": OwnTransfer(OwnLayer(np.eye(4), np.ones(4))),
            },
            "OwnLayer has an `apply` of its own",
        ),
        (
            {"surrogate": MetaLabelTask(schedule=BRIEF), "reranker": Learns(of_own_ranker)},
            "OwnRanker has a `logits` of its own",
        ),
    ],
)
def test_a_part_whose_code_no_folder_keeps_is_refused(parts, message):
    with pytest.raises(InputError, match=f"{message}, of which a model folder keeps nothing"):
        fit(**parts)


def test_vectors_whose_code_no_folder_keeps_are_refused():
    learnt = Learns(lambda features, _: OwnUnit(np.ones((features.shape[1], 4), np.float32)))
    with pytest.raises(InputError, match="OwnUnit has an `encode` of its own"):
        Slice(vectors=learnt, n_threads=1).fit(TEXTS, LABELS)


def test_a_part_may_have_further_methods(tmp_path):
    class Further(BagEncoder):
        def __post_init__(self):
            super().__post_init__()

        def nearest(self):
            return self.token_vectors

        def to_arrays(self):
            return dict(super().to_arrays())

    model = fit(surrogate=Learns(encoded(Further)))
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict("wine", k=1)


@pytest.mark.parametrize("n_learners", [1, 2])
def test_a_scorer_that_derives_from_another_is_not_saved_as_that(n_learners, tmp_path):
    class Reversed(DeepXMLScorer):
        def top_k(self, bags, k, n_threads=1):
            ids, scores = super().top_k(bags, k, n_threads)
            return ids[:, ::-1].copy(), -scores[:, ::-1]

    class Own(DeepXML):
        def learn_one(self, data, held_out, run):
            return Reversed(**vars(super().learn_one(data, held_out, run)))

    parts = {"surrogate": MetaLabelTask(schedule=BRIEF), "n_learners": n_learners}
    model = Own(**parts, n_threads=1).fit(TEXTS, LABELS)
    assert model.predictor_.predict("wine", k=1)
    with pytest.raises(InputError, match="Reversed has a `top_k` of its own"):
        model.save(tmp_path / "model")


@dataclass(frozen=True, kw_only=True)
class WithSettings(NearestLabels):
    """A sampler with settings of its own, and with one out of an array."""

    size: int = np.int64(5)
    temperature: float = 0.5
    weights: Any = field(default_factory=lambda: np.ones(3))

    def mine(self, shortlister, features, labels, *, seed, n_threads):
        return shortlister.query(features, n_threads)[0]


@pytest.mark.parametrize("sizes", [None, ShortlistSizes(size=4)])
def test_a_sampler_may_have_settings_that_no_folder_knows(sizes, tmp_path):
    brief = MetaLabelTask(schedule=BRIEF)
    model = fit(surrogate=brief, negatives=WithSettings(), prediction_sizes=sizes)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.scorer.shortlister.settings.size == (5 if sizes is None else 4)
    assert loaded.predict(TEXTS, k=2) == model.predictor_.predict(TEXTS, k=2)
