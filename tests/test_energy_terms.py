"""Energies of labels: gradients, convexity, inference, training through its steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from longtail.energy.descent import Descent, Entropy, Logit, Projected
from longtail.energy.global_energies import ConvexEnergy, SoftplusEnergy
from longtail.energy.losses import CrossEntropy, SoftF1, SquaredError, StructuredHinge
from longtail.energy.terms import EnergyTerms, energy_gradient, energy_of
from longtail.errors import InputError, TrainingError
from longtail.kernels.energy import EnergyLayers, PointTerms
from longtail.scorers.energy_inference import EnergyInference

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**31 - 1)
PARAMETRISATIONS = {"entropy": Entropy(), "logit": Logit(), "projected": Projected()}
LOSSES = [SquaredError(), CrossEntropy(), SoftF1(), StructuredHinge()]


def arrays(seed, n, size, n_labels, n_hidden, n_layers, *, convex=False, gated=True):
    """Random terms of points with some of the labels each, for kernels."""
    random = np.random.default_rng(seed)

    def normal(*shape):
        return random.normal(size=shape).astype(np.float32)

    labels = np.stack([random.permutation(n_labels)[:size] for _ in range(n)]).astype(np.int32)
    path, couplings = normal(n, n_layers, n_hidden), normal(n_layers - 1, n_hidden, n_hidden)
    if convex:
        path, couplings = abs(path), abs(couplings)
    gates = normal(n, n_layers if gated else 0, size)
    terms = PointTerms(labels, normal(n, size), normal(n, n_layers, n_hidden), path, gates)
    return terms, EnergyLayers(normal(n_layers, n_labels, n_hidden), couplings)


def as_torch(terms, layers):
    """The same energy for torch."""

    def split(array):
        return tuple(torch.from_numpy(array[:, k].copy()) for k in range(array.shape[1]))

    vectors = layers.label_vectors[:, np.maximum(terms.labels, 0)]
    return EnergyTerms(
        torch.from_numpy(terms.unaries),
        tuple(torch.from_numpy(layer.copy()) for layer in vectors),
        split(terms.offsets),
        split(terms.path_gates),
        tuple(torch.from_numpy(matrix.copy()) for matrix in layers.couplings),
        split(terms.label_gates),
    )


@few
@given(seeds, st.integers(1, 3), st.booleans())
def test_the_gradient_by_hand_is_that_of_the_energy(seed, n_layers, gated):
    terms = as_torch(*arrays(seed, 3, 5, 7, 4, n_layers, gated=gated))
    labels = torch.rand(3, 5, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    (expected,) = torch.autograd.grad(energy_of(labels, terms).sum(), labels)
    torch.testing.assert_close(energy_gradient(labels, terms), expected, rtol=1e-4, atol=1e-4)


class TestUnrolledGradients:
    """Training looks through the steps: its gradient is that of the loss after them."""

    @pytest.mark.parametrize("parametrisation", PARAMETRISATIONS.values(), ids=PARAMETRISATIONS)
    @pytest.mark.parametrize("loss", LOSSES[:3], ids=lambda loss: type(loss).__name__)
    @pytest.mark.parametrize("convex", [False, True], ids=["spen", "icnn"])
    def test_agree_with_finite_differences(self, parametrisation, loss, convex):
        torch.manual_seed(0)
        energy = (
            ConvexEnergy(4, 3, 2, 2) if convex else SoftplusEnergy(4, 3, 2, is_conditional=True)
        )
        energy = energy.double()
        unaries = nn.Linear(3, 4).double()
        features = torch.rand(5, 3, dtype=torch.float64)
        truth = (torch.rand(5, 4) < 0.4).double()
        descent = Descent(n_steps=6, step=0.2, momentum=0.3, parametrisation=parametrisation)
        parameters = [*unaries.parameters(), *energy.parameters()]

        def value():
            return loss.value(energy.terms(features, unaries(features)), truth, descent)

        gradients = torch.autograd.grad(value(), parameters)
        h = 1e-6
        for parameter, gradient in zip(parameters, gradients, strict=True):
            for place in range(min(parameter.numel(), 5)):
                flat = parameter.data.view(-1)
                flat[place] += h
                above = value().item()
                flat[place] -= 2 * h
                below = value().item()
                flat[place] += h
                expected = (above - below) / (2 * h)
                assert gradient.view(-1)[place].item() == pytest.approx(expected, abs=1e-6)

    def test_the_hinge_is_zero_where_the_truth_wins_by_the_margin(self):
        truth = torch.tensor([[1.0, 0.0, 1.0]])
        zeros = torch.zeros(3, 1)
        sure = EnergyTerms(20 * (2 * truth - 1), (zeros,), (zeros[0],), (zeros[0],))
        descent = Descent(n_steps=50, parametrisation=Projected())
        assert StructuredHinge().value(sure, truth, descent).item() == pytest.approx(0, abs=1e-5)
        wrong = sure.with_unaries(-sure.unaries)
        # The best other labelling is the truth's complement: 3 labels, each 20 lower, and 3 apart.
        assert StructuredHinge().value(wrong, truth, descent).item() == pytest.approx(63, rel=1e-4)

    def test_a_part_of_ones_own_says_what_steps_start_from_and_whether_they_see_entropy(self):
        class Unclipped(Projected):
            steps_from_labels, sees_entropy = False, True

        zeros = torch.zeros(1, 1)
        terms = EnergyTerms(torch.tensor([[4.0]]), (zeros,), (zeros[0],), (zeros[0],))
        descents = [
            Descent(n_steps=2, step=0.5, momentum=0, parametrisation=part)
            for part in (Projected(), Unclipped())
        ]
        last = [descent.states(terms)[-1].item() for descent in descents]
        start = torch.tensor(4.0).sigmoid().item()
        assert last == pytest.approx([1 + 0.5 * 4, start + 2 * 0.5 * 4])
        first = [descent.objectives(terms)[0].item() for descent in descents]
        entropy = -start * np.log(start) - (1 - start) * np.log(1 - start)
        assert first[0] - first[1] == pytest.approx(entropy, rel=1e-4)

    @pytest.mark.parametrize("name", PARAMETRISATIONS)
    def test_the_hinge_looks_at_corners_however_labels_are_inferred(self, name):
        truth = torch.tensor([[1.0, 1.0, *[0.0] * 157]])
        zeros = torch.zeros(159, 1)
        unaries = torch.tensor([[-1.0, -1.0, *[-3.0] * 157]])
        terms = EnergyTerms(unaries, (zeros,), (zeros[0],), (zeros[0],))
        descent = Descent(parametrisation=PARAMETRISATIONS[name])
        # Worst is to have neither true label: each is 1 lower, and 1 apart.
        assert StructuredHinge().value(terms, truth, descent).item() == pytest.approx(4, rel=1e-5)


class TestConvexEnergy:
    @few
    @given(seeds, st.integers(1, 3))
    def test_is_convex_along_segments(self, seed, n_layers):
        torch.manual_seed(seed)
        energy = ConvexEnergy(6, 4, 5, n_layers)
        with torch.no_grad():
            for parameter in energy.parameters():
                parameter.add_(torch.randn_like(parameter))
        energy.project()
        terms = energy.terms(torch.randn(8, 4), torch.randn(8, 6))
        ends = torch.rand(2, 8, 6)
        at_ends = [energy_of(end, terms) for end in ends]
        for share in (0.1, 0.5, 0.8):
            between = energy_of(share * ends[0] + (1 - share) * ends[1], terms)
            chord = share * at_ends[0] + (1 - share) * at_ends[1]
            assert (between <= chord + 1e-4 * (1 + chord.abs())).all()

    def test_one_of_free_sign_is_not(self):
        # What the projection is for: the same network with a negative weight bends the other way.
        terms, layers = arrays(0, 1, 3, 3, 2, 1, gated=False)
        concave = as_torch(terms._replace(path_gates=-abs(terms.path_gates)), layers)
        ends = torch.tensor([[0.0, 0.0, 0.0]]), torch.tensor([[1.0, 1.0, 1.0]])
        chord = sum(energy_of(end, concave) for end in ends) / 2
        assert (energy_of((ends[0] + ends[1]) / 2, concave) > chord).all()

    def test_weights_of_the_path_stay_non_negative_after_each_step(self):
        torch.manual_seed(0)
        energy = ConvexEnergy(5, 4, 3, 3)
        optimiser = torch.optim.Adam(energy.parameters(), lr=0.3)
        features, truth = torch.randn(16, 4), (torch.rand(16, 5) < 0.3).float()
        unaries = torch.randn(16, 5)
        least = []
        for _ in range(20):
            loss = CrossEntropy().value(energy.terms(features, unaries), truth, Descent())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            least.append(min(energy.weights.min().item(), energy.couplings.min().item()))
            energy.project()
            assert energy.weights.min() >= 0
            assert energy.couplings.min() >= 0
        assert min(least) < 0  # there was something to project


class TestDescent:
    @pytest.mark.parametrize("parametrisation", PARAMETRISATIONS.values(), ids=PARAMETRISATIONS)
    @pytest.mark.parametrize("step", [0.1, 1.0, 100.0])
    def test_labels_stay_within_bounds(self, parametrisation, step):
        terms = as_torch(*arrays(1, 4, 6, 6, 3, 2))
        descent = Descent(n_steps=12, step=step, momentum=0.5, parametrisation=parametrisation)
        for state in descent.states(terms):
            labels = parametrisation.labels(state)
            assert labels.min() >= 0
            assert labels.max() <= 1

    @pytest.mark.parametrize("parametrisation", PARAMETRISATIONS.values(), ids=PARAMETRISATIONS)
    def test_goes_downhill(self, parametrisation):
        terms = as_torch(*arrays(2, 9, 6, 6, 3, 1, gated=False))
        descent = Descent(n_steps=30, step=0.05, parametrisation=parametrisation)
        energies = descent.objectives(terms)
        assert energies.shape == (31, 9)
        assert (energies[-1] <= energies[0] + 1e-4).all()
        assert (energies[-1] < energies[0] - 1e-3).any()

    def test_a_step_to_infinity_is_reported(self):
        terms = as_torch(*arrays(3, 2, 4, 4, 3, 1))
        with pytest.raises(TrainingError, match="Inference diverges: after step"):
            Descent(n_steps=90, step=30.0).labels(terms)

    def test_steps_that_climb_are_reported(self):
        terms = as_torch(*arrays(3, 2, 4, 4, 3, 1, convex=True))
        with pytest.raises(TrainingError, match="climbs"):
            Descent(n_steps=3, step=2.5).check(terms)
        Descent(n_steps=3, step=0.1).check(terms)

    def test_without_steps_the_answer_is_the_feed_forward_networks(self):
        terms = as_torch(*arrays(4, 3, 5, 5, 3, 1))
        torch.testing.assert_close(Descent(n_steps=0).labels(terms), terms.unaries.sigmoid())


class TestInferenceWithoutTorch:
    @few
    @given(seeds, st.sampled_from(list(PARAMETRISATIONS)), st.integers(1, 2), st.booleans())
    def test_takes_the_steps_that_training_takes(self, seed, method, n_layers, gated):
        terms, layers = arrays(seed, 3, 5, 8, 4, n_layers, gated=gated)
        inference = EnergyInference(method=method, n_steps=5, step=0.05, momentum=0.4)
        descent = Descent(
            n_steps=5, step=0.05, momentum=0.4, parametrisation=PARAMETRISATIONS[method]
        )
        expected = descent.states(as_torch(terms, layers))[-1].numpy()
        np.testing.assert_allclose(inference.states(terms, layers), expected, rtol=1e-3, atol=1e-3)
        objectives = descent.objectives(as_torch(terms, layers)).T.numpy()
        np.testing.assert_allclose(
            inference.energies(terms, layers), objectives, rtol=1e-3, atol=1e-3
        )

    @pytest.mark.parametrize("method", [*PARAMETRISATIONS, "bundle"])
    def test_without_steps_the_unaries_answer_and_their_energy_is_told(self, method):
        terms, layers = arrays(3, 3, 5, 8, 4, 2, convex=True)
        terms.labels[1, 3:] = -1
        inference = EnergyInference(method=method, n_steps=0)
        states = inference.states(terms, layers)
        assert (states[1, 3:] == -np.inf).all()
        if method != "projected":
            np.testing.assert_array_equal(states[0], terms.unaries[0])
        like = EnergyInference(method="entropy" if method == "bundle" else method, n_steps=2)
        first = like.energies(terms, layers)[:, :1]
        np.testing.assert_array_equal(inference.energies(terms, layers), first)
        assert first.all()

    @few
    @given(seeds, st.sampled_from([*PARAMETRISATIONS, "bundle"]))
    def test_padding_is_as_if_it_were_not_there(self, seed, method):
        terms, layers = arrays(seed, 2, 6, 8, 3, 2, convex=True)
        padded = terms.labels.copy()
        padded[:, 4:] = -1
        short = PointTerms(
            terms.labels[:, :4], terms.unaries[:, :4], *terms[2:4], terms.label_gates[:, :, :4]
        )
        inference = EnergyInference(method=method, step=0.05)
        states = inference.states(terms._replace(labels=padded), layers)
        assert (states[:, 4:] == -np.inf).all()
        np.testing.assert_array_equal(states[:, :4], inference.states(short, layers))
        relaxed = inference.labels(terms._replace(labels=padded), layers)
        assert (relaxed[:, 4:] == 0).all()
        assert relaxed.min() >= 0
        assert relaxed.max() <= 1

    @pytest.mark.parametrize("method", [*PARAMETRISATIONS, "bundle"])
    def test_rows_do_not_depend_on_each_other(self, method):
        terms, layers = arrays(7, 5, 6, 8, 3, 2, convex=True)
        inference = EnergyInference(method=method, step=0.05)
        together = inference.states(terms, layers, n_threads=2)
        for row in range(5):
            one = PointTerms(*(array[row : row + 1] for array in terms))
            np.testing.assert_array_equal(inference.states(one, layers)[0], together[row])

    def test_stops_early_once_nothing_moves(self):
        terms, layers = arrays(5, 4, 6, 6, 3, 1, convex=True)
        some = EnergyInference(n_steps=2000, step=0.02, tolerance=1e-5)
        energies = some.energies(terms, layers)
        assert (energies[:, -1] == energies[:, 1500]).all()
        every = EnergyInference(n_steps=2000, step=0.02).energies(terms, layers)
        np.testing.assert_allclose(energies[:, -1], every[:, -1], atol=1e-3)

    def test_refuses_a_method_that_is_not_there(self):
        with pytest.raises(InputError, match="'entropy', 'logit', 'projected', 'bundle', got"):
            EnergyInference(method="newton")
        with pytest.raises(InputError, match="between 0 and 10,000, got 1000000000"):
            EnergyInference(n_steps=10**9)


class TestBundle:
    @few
    @given(seeds, st.integers(1, 2))
    def test_finds_the_minimum_that_many_steps_find(self, seed, n_layers):
        terms, layers = arrays(seed, 3, 12, 12, 4, n_layers, convex=True)
        layers = EnergyLayers(layers.label_vectors * np.float32(0.5), layers.couplings)
        bundle = EnergyInference(method="bundle", n_steps=40, tolerance=1e-4)
        slow = EnergyInference(n_steps=6000, step=0.005, momentum=0.5)
        found = bundle.energies(terms, layers)[:, -1]
        expected = slow.energies(terms, layers)[:, -1]
        assert (found <= expected + 0.02 * (1 + abs(expected))).all()

    def test_needs_few_planes(self):
        terms, layers = arrays(1, 3, 30, 30, 8, 1, convex=True)
        ten = EnergyInference(method="bundle", n_steps=10).energies(terms, layers)[:, -1]
        many = EnergyInference(n_steps=6000, step=0.01).energies(terms, layers)[:, -1]
        np.testing.assert_allclose(ten, many, atol=0.01)
