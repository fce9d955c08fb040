"""How scores become one: both formulas by hand, and the choice of the mix."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.errors import InputError
from longtail.metrics import inverse_propensities
from longtail.recipes.fusion_learning import choose_fusion, fusion_learnt
from longtail.scorers.fusion import PartialScores, ScoreFusion
from longtail.training.run import TrainingData, TrainingRun


def s(logit):
    return 1 / (1 + exp(-logit))


def parts(labels, nearness, logits, reranker_logits=None):
    n = len(labels)
    reranker = np.empty((n, 0)) if reranker_logits is None else reranker_logits
    scores = (np.array(part, np.float32) for part in (nearness, logits, reranker))
    return PartialScores(np.array(labels, np.int32), *scores)


ONE_POINT = parts([[4, 2, -1]], [[0.9, 0.5, -np.inf]], [[-1, 2, -np.inf]], [[3, 0, -np.inf]])
WITHOUT_RERANKER = parts([[4, 2, -1]], [[0.9, 0.5, -np.inf]], [[-1, 2, -np.inf]])


class TestCombine:
    def test_as_in_the_paper(self):
        scores = ScoreFusion(alpha=0.7, beta=0.4).combine(ONE_POINT)
        expected = [
            0.4 * s(3) + 0.6 * (0.7 * s(-1) + 0.3 * s(0.9)),
            0.4 * s(0) + 0.6 * (0.7 * s(2) + 0.3 * s(0.5)),
            -np.inf,
        ]
        np.testing.assert_allclose(scores, [expected], rtol=1e-6)

    def test_as_in_the_paper_without_a_reranker(self):
        scores = ScoreFusion(alpha=0.7, beta=0.4).combine(WITHOUT_RERANKER)
        expected = [0.7 * s(-1) + 0.3 * s(0.9), 0.7 * s(2) + 0.3 * s(0.5), -np.inf]
        np.testing.assert_allclose(scores, [expected], rtol=1e-6)

    def test_as_in_the_code(self):
        scores = ScoreFusion(alpha=0.7, beta=0.4, as_in_code=True).combine(ONE_POINT)
        # The mixed logits are .4 * 3 - .6 = .6 and .4 * 0 + .6 * 2 = 1.2.
        expected = [0.7 * s(0.6) / s(1.2) + 0.3, 0.7 + 0.3 * s(0.5) / s(0.9), -np.inf]
        np.testing.assert_allclose(scores, [expected], rtol=1e-6)

    def test_as_in_the_code_without_a_reranker(self):
        scores = ScoreFusion(alpha=0.7, as_in_code=True).combine(WITHOUT_RERANKER)
        expected = [0.7 * s(-1) / s(2) + 0.3, 0.7 + 0.3 * s(0.5) / s(0.9), -np.inf]
        np.testing.assert_allclose(scores, [expected], rtol=1e-6)

    @pytest.mark.parametrize("as_in_code", [False, True])
    def test_one_row_is_the_row_of_a_batch_and_threads_do_not_matter(self, as_in_code):
        random = np.random.default_rng(0)
        nearness, logits, reranker_logits = random.standard_normal((3, 600, 7))
        many = parts(np.tile(np.arange(7), (600, 1)), nearness, logits, reranker_logits)
        fusion = ScoreFusion(alpha=0.3, beta=0.6, as_in_code=as_in_code)
        scores = fusion.combine(many)
        assert fusion.combine(many, n_threads=3).tobytes() == scores.tobytes()
        one = parts(many.labels[5:6], nearness[5:6], logits[5:6], reranker_logits[5:6])
        assert fusion.combine(one).tobytes() == scores[5].tobytes()

    def test_a_row_of_padding_only(self):
        nothing = parts([[-1, -1]], [[-np.inf] * 2], [[-np.inf] * 2])
        for as_in_code in (False, True):
            scores = ScoreFusion(as_in_code=as_in_code).combine(nothing)
            assert (scores == -np.inf).all()

    @pytest.mark.parametrize("weight", ["alpha", "beta"])
    @pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
    def test_refuses_weights_out_of_range(self, weight, value):
        with pytest.raises(InputError, match=f"{weight} must be from 0 to 1"):
            ScoreFusion(**{weight: value})

    def test_the_settings_make_it_again(self):
        fusion = ScoreFusion(alpha=0.1, beta=0.2, as_in_code=True)
        assert ScoreFusion(**fusion.config()) == fusion


class TestChooseFusion:
    def planted(self, alpha, beta, n=150, n_labels=12):
        """Parts in which the true label is on top under one mix, on every row."""
        random = np.random.default_rng(1)
        labels = np.tile(np.arange(n_labels), (n, 1))
        nearness, logits, reranker_logits = random.normal(0, 1.5, (3, n, n_labels))
        made = parts(labels, nearness, logits, reranker_logits)
        scores = ScoreFusion(alpha=alpha, beta=beta).combine(made)
        truth = np.zeros((n, n_labels))
        truth[np.arange(n), scores.argmax(axis=1)] = 1
        return made, sp.csr_array(truth)

    @pytest.mark.parametrize(("alpha", "beta"), [(0.2, 0.3), (0.75, 0.1), (0.5, 0.9)])
    def test_finds_a_planted_mix(self, alpha, beta):
        made, truth = self.planted(alpha, beta)
        chosen = choose_fusion(made, truth, np.ones(12))
        # Under the planted mix every true label is in the first place.
        assert (chosen.alpha, chosen.beta) == (alpha, beta)
        assert choose_fusion(made, truth, np.ones(12), n_threads=2) == chosen

    def test_without_a_reranker_beta_is_zero(self):
        made, truth = self.planted(0.2, 0.3)
        without = PartialScores(
            made.labels, made.nearness, made.logits, np.empty((150, 0), np.float32)
        )
        chosen = choose_fusion(without, truth, np.ones(12), as_in_code=True)
        assert chosen.beta == 0
        assert chosen.as_in_code

    def test_propensities_shift_the_choice(self):
        # The classifier finds the frequent label 0 of two points, nearness the rare 1 of the third.
        made = parts([[0, 1]] * 3, [[0, 4]] * 3, [[4, 0]] * 3)
        truth = sp.csr_array([[1, 0], [1, 0], [0, 1]])
        rare = np.array([1.0, 1.0]), np.array([1.0, 50.0])
        grid = (0.1, 0.9)
        vanilla, scored = (choose_fusion(made, truth, weight, grid=grid).alpha for weight in rare)
        assert (vanilla, scored) == (0.9, 0.1)

    def test_of_equal_mixes_the_first_is_taken(self):
        made = parts([[0, 1]], [[1, 0]], [[1, 0]], [[1, 0]])
        chosen = choose_fusion(made, sp.csr_array([[1, 0]]), np.ones(2), grid=(0.3, 0.6))
        assert (chosen.alpha, chosen.beta) == (0.3, 0.3)

    def test_refuses_the_truth_of_other_points(self):
        made, truth = self.planted(0.2, 0.3)
        with pytest.raises(InputError, match="150 rows but `truth` has 149"):
            choose_fusion(made, truth[:149], np.ones(12))


class Fusing:
    """A scorer that says what it was told, in the code's way."""

    fusion = ScoreFusion(alpha=0.1, as_in_code=True)

    def __init__(self, made):
        self.made = made

    def partial_scores(self, bags, n_threads=1):
        assert bags.n_rows == len(self.made.labels)
        return self.made


def test_a_fusion_is_learnt_on_held_out_points_and_stays_where_there_are_none():
    made, truth = TestChooseFusion().planted(0.2, 0.3)
    held_out = TrainingData(sp.csr_array((150, 3), dtype=np.float32), truth)
    none = TrainingData(held_out.features[:0], truth[:0])
    run = TrainingRun(seed=0, n_threads=1)
    scorer = Fusing(made)
    learnt = fusion_learnt(scorer, held_out, held_out, run, grid=(0.2, 0.9))
    worth = inverse_propensities(truth.sum(axis=0), 150)
    assert learnt == choose_fusion(made, truth, worth, as_in_code=True, grid=(0.2, 0.9))
    assert "score fusion" in run.timings
    assert fusion_learnt(scorer, held_out, none, run) is scorer.fusion
