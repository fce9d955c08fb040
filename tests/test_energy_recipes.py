"""SPEN, ICNN and the re-ranker learn what labels say about each other, and say what they learnt."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

import command_line
import longtail
from killing import Batches
from longtail.cli.settings import parse_settings
from longtail.data.bags import Bags
from longtail.data.dataset import Dataset
from longtail.data.label_space import LabelSpace
from longtail.energy.descent import Descent
from longtail.energy.diagnostics import (
    descent_picture,
    inference_energies,
    label_pairs,
    pair_energies,
)
from longtail.energy.global_energies import ConvexEnergy, SoftplusEnergy
from longtail.energy.losses import SquaredError, StructuredHinge
from longtail.energy.reranking import (
    EnergyRerankerTraining,
    _ShortlistNetwork,
    _Shortlists,
    cooccurrence_vectors,
)
from longtail.energy.training import EnergyNetwork, EnergyStages
from longtail.errors import InputError, TrainingError
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.metrics import recall_at_k
from longtail.recipes.icnn import ICNN
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.parabel import Parabel
from longtail.recipes.spen import SPEN
from longtail.scorers.energy_inference import EnergyInference
from longtail.scorers.energy_reranker import EnergyReranker
from longtail.training.run import TrainingData, TrainingRun
from longtail.training.schedule import Schedule

N_PAIRS, N_WORDS = 6, 30


def either_or(n, seed):
    """Points whose words name a pair of labels, of which exactly one is true, by a coin.

    Each label is true in half of its pair's points, so independent labels can do no better than
    one half each; labels that know of each other can be sure that one of them is.
    A third label of each pair is true whenever the first is.
    """
    random = np.random.default_rng(seed)
    pair = random.integers(0, N_PAIRS, n)
    coin = random.integers(0, 2, n)
    noise = 0.2 * (random.random((n, N_WORDS)) < 0.3)
    words = sp.csr_array(np.eye(N_WORDS)[pair] + noise)
    labels = np.zeros((n, 3 * N_PAIRS))
    labels[np.arange(n), 3 * pair + coin] = 1
    labels[np.arange(n), 3 * pair + 2] = coin == 0
    return words, sp.csr_array(labels)


def f1(relaxed, truth):
    predicted = relaxed > 0.5
    return np.mean(2 * (predicted * truth).sum(1) / (predicted.sum(1) + truth.sum(1)))


SMALL = {"dimension": 32, "n_hidden": 8, "batch_size": 64, "held_out": 0.0, "n_threads": 1}


@pytest.fixture(scope="module")
def points():
    return either_or(1200, 0), either_or(400, 1)


@pytest.fixture(scope="module")
def spen(points):
    (X, Y), _ = points
    return SPEN(**SMALL, loss="f1").fit(X, Y)


class TestLearning:
    @pytest.mark.parametrize(
        ("recipe", "loss"),
        [
            (SPEN, "squared-error"),
            pytest.param(ICNN, "squared-error", marks=pytest.mark.thorough),
            (ICNN, "cross-entropy"),
            (SPEN, "hinge"),
        ],
    )
    def test_every_loss_finds_the_pair(self, recipe, loss, points):
        (X, Y), (X_test, Y_test) = points
        few_epochs = {"unary_epochs": 8, "energy_epochs": 3, "joint_epochs": 3}
        model = recipe(**SMALL, **few_epochs, loss=loss).fit(X, Y)
        # Three of eighteen labels are in question; chance is a sixth.
        assert recall_at_k(model.predict_topk(X_test, 3)[0], Y_test, 3) > 0.9

    def test_an_energy_answers_where_each_label_alone_is_in_doubt(self, spen, points):
        (X, Y), (X_test, Y_test) = points
        plain = SPEN(**SMALL, energy_epochs=0, joint_epochs=0, unary_epochs=35).fit(X, Y)
        truth = Y_test.toarray()
        with_energy, without = (
            f1(model.predictor_.scorer.relaxed_labels(Bags.of(X_test)), truth)
            for model in (spen, plain)
        )
        assert with_energy > 0.45
        assert with_energy > without + 0.1

    def test_pairs_that_go_together_are_joined(self, points):
        (X, Y), _ = points
        model = SPEN(**SMALL, loss="hinge", conditional=False).fit(X, Y).predictor_
        labels, energies = pair_energies(model)
        place = np.argsort(labels)
        first, second, third = (place[np.arange(c, 3 * N_PAIRS, 3)] for c in range(3))
        assert energies[first, third].mean() < 0 < energies[second, third].mean()
        assert energies[first, second].mean() > 0
        np.testing.assert_allclose(energies, energies.T, atol=1e-5)
        joined, separated = label_pairs(model, n=12)
        assert joined
        assert all(pair.energy < 0 for pair in joined)
        assert all(pair.energy > 0 for pair in separated)

    @pytest.mark.parametrize("n_layers", [1, 3])
    def test_convex_energies_of_any_depth(self, n_layers, points, tmp_path):
        (X, Y), (X_test, Y_test) = points
        few_epochs = {"unary_epochs": 6, "energy_epochs": 2, "joint_epochs": 2}
        model = ICNN(**SMALL, **few_epochs, n_layers=n_layers).fit(X, Y)
        best, _ = model.predict_topk(X_test, 3)
        assert recall_at_k(best, Y_test, 3) > 0.9
        model.save(tmp_path)
        np.testing.assert_array_equal(longtail.load(tmp_path).predict_topk(X_test, 3)[0], best)


class TestStages:
    def test_the_energy_stage_holds_the_rest_still(self, points):
        (X, Y), _ = points
        plain = SPEN(**SMALL, energy_epochs=0, joint_epochs=0, unary_epochs=2).fit(X, Y)
        energy = SPEN(**SMALL, energy_epochs=2, joint_epochs=0, unary_epochs=2).fit(X, Y)
        first, second = plain.predictor_.scorer, energy.predictor_.scorer
        np.testing.assert_array_equal(first.encoder.token_vectors, second.encoder.token_vectors)
        n_labels = len(first.known)
        np.testing.assert_array_equal(first.maps.matrix[:n_labels], second.maps.matrix[:n_labels])
        assert not np.array_equal(first.layers.label_vectors, second.layers.label_vectors)
        assert [entry["stage"] for entry in energy.run_.history] == ["unaries"] * 2 + ["energy"] * 2

    @pytest.mark.parametrize("convex", [False, True], ids=["spen", "icnn"])
    def test_a_stage_computes_nothing_for_what_it_does_not_train(self, convex, points):
        (X, Y), _ = points
        run = TrainingRun(seed=0, n_threads=1)
        data = TrainingData(features=X.astype(np.float32), labels=Y.astype(np.float32))
        sizes = {"n_labels": Y.shape[1], "dimension": 8, "n_hidden": 4}
        energy = ConvexEnergy(**sizes, n_layers=2) if convex else SoftplusEnergy(**sizes)
        features = BagOfTokens(dimension=8).network(data, data.labels, run)
        network = EnergyNetwork(features, nn.Linear(8, Y.shape[1]), energy)
        none, some = (Schedule(epochs=n, learning_rate=0.01) for n in (0, 1))

        def learn(unaries, energy):
            stages = EnergyStages(
                unaries=unaries,
                energy=energy,
                everything=none,
                loss=SquaredError(),
                descent=Descent(),
                batch_size=64,
                feature_rate=0.05,
            )
            stages.learn(network, data.labels, run)

        energy.terms, terms = None, energy.terms  # whoever asks for the energy fails
        learn(some, none)
        energy.terms, asked = lambda *of: asked.append(of) or terms(*of), []
        learn(none, some)
        *steps, _ = asked  # the last looks at whether inference climbs
        assert len(steps) == 19
        assert not any(tensor.requires_grad for of in steps for tensor in of)

    @pytest.mark.parametrize("loss", ["squared-error", "hinge"])
    def test_the_energy_stage_may_have_no_steps_to_teach(self, loss, points):
        (X, Y), _ = points
        few_epochs = {"unary_epochs": 1, "joint_epochs": 0, "n_steps": 0, "loss": loss}
        answers = [
            SPEN(**SMALL, **few_epochs, energy_epochs=n).fit(X, Y).predict_topk(X, 3)
            for n in (0, 1)
        ]
        np.testing.assert_array_equal(*answers)

    def test_training_that_runs_away_is_reported(self, points):
        (X, Y), _ = points
        with pytest.raises(TrainingError, match=r"diverges|climbs|loss is"):
            SPEN(**SMALL, step=900.0, n_steps=40).fit(X, Y)

    def test_the_steps_are_looked_at_as_they_serve(self, points, monkeypatch):
        (X, Y), _ = points
        seen = []
        monkeypatch.setattr(Descent, "check", lambda _, terms: seen.append(terms))
        few_epochs = {"unary_epochs": 1, "energy_epochs": 1, "joint_epochs": 1}
        model = ICNN(**SMALL, **few_epochs).fit(X, Y).predictor_
        served = model.scorer.terms(model.bags(X[:512]))
        np.testing.assert_allclose(seen[-1].unaries, served.unaries, atol=1e-5)
        np.testing.assert_allclose(seen[-1].offsets[0], served.offsets[:, 0], atol=1e-5)

    def test_steps_that_nothing_takes_are_not_looked_at(self, points):
        (X, Y), _ = points
        plain = {"unary_epochs": 1, "energy_epochs": 0, "joint_epochs": 0}
        answers = [
            SPEN(**SMALL, **plain, step=step).fit(X, Y).predict_topk(X, 3) for step in (0.5, 900.0)
        ]
        np.testing.assert_array_equal(*answers)

    def test_a_cut_off_training_goes_on_to_the_same_model(self, points, tmp_path):
        (X, Y), _ = points
        settings = {**SMALL, "unary_epochs": 2, "energy_epochs": 2, "joint_epochs": 2}
        space = LabelSpace(3 * N_PAIRS)
        data = Dataset(None, X.astype(np.float32), Y.astype(np.float32), space).take(range(500))
        all_batches, left = Batches(), Batches()
        whole = ICNN(**settings).fit_dataset(data, callbacks=[all_batches])

        class CutError(Exception):
            pass

        class Cut:
            def on_stage(self, stage, seconds): ...
            def on_batch(self, stage, done, total, loss): ...
            def on_epoch(self, report):
                if report[:2] == ("everything", 1):
                    raise CutError

        folder = {"checkpoint_folder": tmp_path, "checkpoint_seconds": 0.0}
        with pytest.raises(CutError):
            ICNN(**settings).fit_dataset(data, callbacks=[Cut()], **folder)
        resumed = ICNN(**settings).fit_dataset(data, callbacks=[left], **folder)
        assert left.n < all_batches.n
        for name, array in whole.predictor_.scorer.to_arrays().items():
            np.testing.assert_array_equal(resumed.predictor_.scorer.to_arrays()[name], array)

    @pytest.mark.parametrize(
        "settings",
        [{"loss": "absolute"}, {"inference": "newton"}, {"inference": "bundle"}, {"step": 0.0}],
    )
    def test_refuses_settings_that_are_none(self, settings, points):
        (X, Y), _ = points
        with pytest.raises(InputError):
            SPEN(**{**SMALL, **settings}).fit(X, Y)


def test_a_loss_is_an_object_or_its_word(points):
    (X, Y), (X_test, _) = points
    few_epochs = {"unary_epochs": 2, "energy_epochs": 1, "joint_epochs": 1}
    word, own = (
        SPEN(**SMALL, **few_epochs, loss=loss).fit(X, Y) for loss in ("hinge", StructuredHinge())
    )
    for ids, others in zip(word.predict_topk(X_test), own.predict_topk(X_test), strict=True):
        np.testing.assert_array_equal(ids, others)
    for wrong in (StructuredHinge, 0.5):
        with pytest.raises(InputError, match="loss must be an object"):
            SPEN(**SMALL, loss=wrong).fit(X, Y)
    assert parse_settings(SPEN, ["loss=hinge"]) == {"loss": "hinge"}


def test_a_points_terms_are_linear_maps_of_its_features(points):
    (X, Y), (X_test, _) = points
    few_epochs = {"unary_epochs": 1, "energy_epochs": 1, "joint_epochs": 0}
    model = ICNN(**SMALL, **few_epochs).fit(X, Y).predictor_
    scorer, bags = model.scorer, model.bags(X_test[:70])
    scorer.maps.bias.flags.writeable = True
    scorer.maps.bias[34:50:2] -= 2  # where gates start, none is below 0
    terms = scorer.terms(bags)
    arrays = scorer.to_arrays()  # by the names that saved models have
    features = scorer.encoder.encode(bags).astype(np.float64)
    expected = features @ arrays["heads/vectors"].T + arrays["heads/bias"]
    assert (expected[:, 34:50] < -0.1).any()
    expected[:, 34:50] = np.maximum(expected[:, 34:50], 0)  # the path's gates: it is convex
    own = np.hstack([part.reshape(70, -1) for part in terms[1:]])
    np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)
    assert (terms.labels == np.arange(18)).all()
    for row in (0, 1, 69):
        for one, part in zip(scorer.terms(model.bags(X_test[[row]])), terms, strict=True):
            np.testing.assert_array_equal(one[0], part[row])
    assert scorer.energies(model.bags(X_test[:0])).shape == (0, 6)
    assert (scorer.top_k(model.bags(0 * X_test[:1]), 3)[0] == -1).all()  # of no known word


def test_token_vectors_have_a_learning_rate_of_their_own(points):
    (X, Y), _ = points
    quick = {"unary_epochs": 5, "energy_epochs": 0, "joint_epochs": 0}
    vectors = [
        SPEN(**SMALL, **quick, feature_learning_rate=rate).fit(X[:60], Y[:60])
        for rate in (1e-9, 0.05, 0.1)
    ]
    still, usual, quicker = (one.predictor_.scorer.encoder.token_vectors for one in vectors)
    moved = [np.abs(one - still).mean() for one in (usual, quicker)]
    assert moved[1] > 1.5 * moved[0] > 0


def test_icnn_has_one_answer_whatever_the_method(points):
    (X, Y), (X_test, _) = points
    few_epochs = {"unary_epochs": 5, "energy_epochs": 2, "joint_epochs": 2}
    scorer = ICNN(**SMALL, **few_epochs, inference="bundle").fit(X, Y).predictor_.scorer
    bags = Bags.of(X_test[:50])
    steps = replace(scorer, inference=EnergyInference(n_steps=800, step=0.05))
    answers = [own.relaxed_labels(bags) for own in (steps, scorer)]
    np.testing.assert_allclose(*answers, atol=0.01)


@pytest.fixture(scope="module")
def shortlists():
    """A scorer that cannot tell which of two groups of labels is meant, but for its best one.

    Five labels of a group are true together; the scorer is sure of one of them and blind to
    the others.
    """
    random = np.random.default_rng(0)
    n = 600
    group = random.integers(0, 2, n)
    truth = sp.csr_array(np.repeat(np.eye(2)[group], 5, axis=1))
    scores = random.normal(size=(n, 10)).astype(np.float32)
    scores[np.arange(n), 5 * group] = 4
    ids = np.argsort(-scores, axis=1).astype(np.int32)
    return ids, np.take_along_axis(scores, ids, 1), truth


class TestReranker:
    @pytest.mark.parametrize(
        ("is_convex", "floor"), [(False, 0.9), pytest.param(True, 0.75, marks=pytest.mark.thorough)]
    )
    def test_gains_from_what_goes_together(self, shortlists, is_convex, floor):
        ids, scores, truth = shortlists
        run = TrainingRun(seed=0, n_threads=1)
        training = EnergyRerankerTraining(size=10, rank=2, is_convex=is_convex)
        energy = training.learn(ids[:400], scores[:400], truth[:400], truth, run)
        assert energy is not None
        (entry,) = run.history
        assert 0 < entry["loss"] < 10
        assert entry["seconds"] > 0
        # In P@1, there is nothing to gain; P@3 and P@5 may rise from about 2/3 and 1/2 to 1.
        assert 20 < entry["quality"] < 90
        assert not is_convex or energy.weights.min() >= 0
        order = np.argsort(-energy.states(ids[400:], scores[400:]), axis=1)[:, :5]
        dense = truth.toarray()[400:]

        def precision(best):
            return np.take_along_axis(dense, best, 1).mean()

        assert precision(ids[400:, :5]) < 0.6
        assert precision(np.take_along_axis(ids[400:], order, 1)) > floor

    @pytest.mark.parametrize("is_convex", [False, True])
    def test_serves_the_energy_that_was_trained(self, shortlists, is_convex):
        ids, scores, truth = shortlists
        ids, scores = ids.copy(), scores.copy()
        ids[:20, 8:], scores[:20, 8:] = -1, -np.inf
        lists = _Shortlists.of(ids, scores, truth)
        torch.manual_seed(0)
        vectors = cooccurrence_vectors(truth, 3, seed=0)
        network = _ShortlistNetwork(vectors, lists.evidence, is_convex=is_convex)
        for parameter in network.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
        network.project()
        expected = Descent(n_steps=4).states(network.terms(lists))[-1].detach().numpy()
        states = network.frozen(10, EnergyInference(n_steps=4)).states(ids, scores)
        real = ids >= 0
        np.testing.assert_allclose(states[real], expected[real], rtol=1e-3, atol=1e-3)
        assert (states[~real] == -np.inf).all()

    def test_is_left_out_where_it_does_not_gain(self):
        random = np.random.default_rng(0)
        truth = sp.csr_array((random.random((300, 8)) < 0.3).astype(float))
        scores = truth.toarray().astype(np.float32)  # nothing is left to be gained
        ids = np.argsort(-scores, axis=1, kind="stable").astype(np.int32)
        run = TrainingRun(seed=0, n_threads=1)
        scores = np.take_along_axis(scores, ids, 1)
        assert EnergyRerankerTraining(size=8).learn(ids, scores, truth, truth, run) is None
        (entry,) = run.history
        assert entry["stage"] == "re-ranker"
        assert entry["loss"] > 0
        assert entry["quality"] <= 0

    @pytest.mark.thorough
    def test_each_training_behind_a_recipe_has_checkpoints_of_its_own(self, tmp_path):
        random = np.random.default_rng(0)
        X = sp.csr_array(random.random((1100, 40)) < 0.1).astype(np.float32)
        Y = sp.csr_array((X[:, :12].toarray() > 0).astype(np.float32))
        settings = {"energy_reranker": "spen", "n_threads": 1, "dimension": 16}
        folder = {"checkpoint_folder": tmp_path, "checkpoint_seconds": 0.0}
        data = Dataset(None, X, Y, LabelSpace(12))
        plain = LongtailClassifier(**settings).fit_dataset(data)
        kept = LongtailClassifier(**settings).fit_dataset(data, **folder)
        np.testing.assert_array_equal(kept.predict_topk(X, 3), plain.predict_topk(X, 3))
        assert {"shared space", "to re-rank: again: shared space"} <= set(kept.run_.timings)

    def test_learns_from_so_many_points_at_most(self, points, monkeypatch):
        from longtail.energy import reranking

        shown = []

        class Noted(EnergyRerankerTraining):
            def learn(self, ids, *_):
                shown.append(len(ids))

        monkeypatch.setattr(reranking, "ENERGY_RERANKINGS", {"spen": Noted(size=6)})
        monkeypatch.setattr(reranking, "LEAST_POINTS", 10)
        (X, Y), _ = points
        for most in (10**6, 15):
            monkeypatch.setattr("longtail.recipes.reranked.MOST_UNSEEN", most)
            Parabel(leaf_size=9, n_learners=1, energy_reranker="spen", n_threads=1).fit(
                X[:400], Y[:400]
            )
        assert shown[0] > 30
        assert shown[1] <= 15

    def test_behind_a_recipe(self, points, tmp_path, monkeypatch, capsys):
        from longtail.energy import reranking

        always = {"spen": EnergyRerankerTraining(size=6, n_updates=4, only_if_better=False)}
        monkeypatch.setattr(reranking, "ENERGY_RERANKINGS", always)
        (X, Y), (X_test, _) = points
        model = Parabel(leaf_size=4, n_learners=1, energy_reranker="spen", n_threads=1).fit(X, Y)
        assert isinstance(model.predictor_.scorer, EnergyReranker)
        ids, scores = model.predict_topk(X_test, 12)
        assert (np.diff(scores[:, :12], axis=1) <= 0).all()
        base, _ = model.predictor_.scorer.scorer.top_k(model.predictor_.bags(X_test), 12)
        assert (np.sort(ids, axis=1) == np.sort(base, axis=1)).all()
        np.testing.assert_array_equal(ids[:, 6:], base[:, 6:])  # behind the shortlist
        model.save(tmp_path / "model")
        with pytest.raises(InputError, match="re-orders its answers by an energy"):
            model.predictor_.without_labels([0])
        code = (
            "import sys, longtail, scipy.sparse as sp\n"
            f"model = longtail.load({str(tmp_path / 'model')!r}, verify=True)\n"
            "model.predict_topk(sp.csr_array((2, 30)), 3)\n"
            "sys.exit(bool({'torch', 'sklearn'} & set(sys.modules)))\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)
        loaded = longtail.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict_topk(X_test, 12)[0], ids)
        (entry,) = model.run_.history
        code, out, _ = command_line.run(capsys, "inspect", tmp_path / "model")
        shown = [" ".join(line.split()) for line in out.splitlines()]
        loss, quality, seconds = f"{entry['loss']:.4g}", f"{entry['quality']:.4g}", entry["seconds"]
        assert code == 0
        assert "stage epochs first loss last loss best quality seconds" in shown
        assert f"re-ranker 1 {loss} {loss} {quality} {seconds:.1f}" in shown
        assert inference_energies(loaded, loaded.bags(X_test[:4])).shape == (4, 6)
        label_pairs(loaded)
        assert label_pairs(loaded, loaded.bags(X_test[:4])) != label_pairs(loaded)

    def test_refuses_another_name(self, points):
        (X, Y), _ = points
        with pytest.raises(InputError, match="energy_reranker must be one of None, 'spen', 'icnn'"):
            Parabel(energy_reranker="crf").fit(X, Y)


class TestPictures:
    def test_the_way_down(self, spen, points):
        pytest.importorskip("matplotlib")
        energies = inference_energies(spen.predictor_, spen.predictor_.bags(points[1][0][:30]))
        assert energies.shape == (30, 11)
        assert energies[:, -1].mean() <= energies[:, 0].mean()
        picture = descent_picture(energies)
        assert picture.startswith("<svg")
        assert descent_picture(energies) == picture

    def test_a_model_without_energy(self, points):
        (X, Y), _ = points
        model = Parabel(n_learners=1, n_threads=1).fit(X, Y)
        with pytest.raises(InputError, match=r"^A \w+ has no energy"):
            label_pairs(model.predictor_)
