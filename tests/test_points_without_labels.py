"""Training points to which no label applies: they tell how probable it is that one does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from longtail.data.dataset import Dataset
from longtail.data.label_space import LabelSpace
from longtail.data.text_column import TextColumn
from longtail.energy import reranking
from longtail.energy.reranking import EnergyRerankerTraining
from longtail.estimators import splitting
from longtail.estimators.vocabulary import Encoded
from longtail.recipes.dismec import DiSMEC
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.ngame import NGAME
from longtail.recipes.parabel import Parabel
from longtail.scorers.energy_reranker import EnergyReranker
from longtail.training.run import TrainingData

WORDS = [f"thing{number}" for number in range(12)]
SHARE = 0.25  # of points that have the label which their word suggests
RECIPES = {
    "longtail": lambda **more: LongtailClassifier(dimension=16, n_threads=1, **more),
    "longtail, none held out": lambda: RECIPES["longtail"](held_out=0),
    "ngame": lambda: NGAME(dimension=16, encoder_epochs=2, classifier_epochs=2, n_threads=1),
    "parabel": lambda: Parabel(leaf_size=2, held_out=0.4, n_threads=1),
    "dismec": lambda: DiSMEC(held_out=0.4, n_threads=1),
    "dismec, none held out": lambda: DiSMEC(held_out=0, n_threads=1),
}


def points(n, seed):
    """Texts of one thing each, a quarter of which have its label and the rest none."""
    random = np.random.default_rng(seed)
    things, has_label = random.integers(len(WORDS), size=n), random.random(n) < SHARE
    texts = [f"{WORDS[thing]} noise{random.integers(40)}" for thing in things]
    labels = csr_array(np.eye(len(WORDS), dtype=np.float32)[things] * has_label[:, None])
    space = LabelSpace.from_names(WORDS)
    return Dataset(TextColumn.from_strings(texts), None, labels, space)


@pytest.mark.parametrize("make", RECIPES.values(), ids=RECIPES)
def test_probabilities_count_them(make):
    model, test = make().fit_dataset(points(2_000, 0)), points(500, 1)
    ids, probabilities = model.predict_topk(test.texts, 1)
    is_right = test.labels.toarray()[np.arange(500), ids[:, 0]]
    assert probabilities.mean() == pytest.approx(is_right.mean(), abs=0.08)


@pytest.mark.parametrize("held_out", [0.4, 0])
def test_probabilities_behind_a_reranker_count_them(held_out, monkeypatch):
    always = {"spen": EnergyRerankerTraining(size=6, n_updates=4, only_if_better=False)}
    monkeypatch.setattr(reranking, "ENERGY_RERANKINGS", always)
    settings = {"leaf_size": 4, "n_learners": 1, "held_out": held_out, "n_threads": 1}
    model, test = Parabel(energy_reranker="spen", **settings), points(500, 1)
    ids, probabilities = model.fit_dataset(points(4_000, 0)).predict_topk(test.texts, 1)
    assert isinstance(model.predictor_.scorer, EnergyReranker)
    is_right = test.labels.toarray()[np.arange(500), ids[:, 0]]
    assert probabilities.mean() == pytest.approx(is_right.mean(), abs=0.08)


def test_all_are_known_where_those_held_out_have_no_label(monkeypatch):
    def held_out(*_, **__):
        return np.arange(20), np.arange(20, 40)

    monkeypatch.setattr(splitting, "held_out_rows", held_out)
    model = DiSMEC(n_threads=1)
    features = csr_array(np.eye(40, dtype=np.float32))
    labels = csr_array(np.eye(40, 10, dtype=np.float32))
    dataset = Dataset(None, features, labels, LabelSpace(10))
    data, rest = splitting.split_data(model, dataset, Encoded(features), None, 1)
    assert (data.labels.shape[0], rest.labels.shape[0]) == (10, 0)
    assert data.unlabelled.labels.shape[0] == 30


def test_some_points_have_as_large_a_share_of_them_beside_them():
    def data(n, unlabelled=None):
        eye = csr_array(np.eye(max(n, 1), dtype=np.float32)[:n])
        return TrainingData(eye, eye, unlabelled=unlabelled)

    def sizes(some):
        beside = some.unlabelled
        return some.labels.shape[0], 0 if beside is None else beside.labels.shape[0]

    whole = data(20, data(8))
    assert [sizes(data(n).with_unlabelled(whole)) for n in (20, 10, 2)] == [
        (20, 8),
        (10, 4),
        (2, 0),
    ]
    assert sizes(whole.of_points(np.arange(5))) == (5, 0)
    # There are no more than eight for twenty.
    assert sizes(data(40).with_unlabelled(whole)) == (20, 8)
    assert sizes(data(40).with_unlabelled(data(20))) == (40, 0)
