"""What is trained below the classifiers: token vectors and the residual block."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from longtail.data.bags import Bags
from longtail.data.rows import unit_vectors
from longtail.errors import InputError
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.training.run import TrainingData, TrainingRun, checked_device
from longtail.transfer.bounded_residual import BoundedResidual

N_POINTS, N_FEATURES, DIMENSION = 12, 20, 5
CPU = torch.device("cpu")
POINTS = np.array([7, 0, 3, 11])
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


class PlainSteps:
    """Plain gradient descent, so that a step of 1 shows the gradient itself."""

    def __init__(self, table):
        pass

    def step(self, table, rows, gradient, learning_rate):
        assert len(set(rows.tolist())) == len(rows)
        table[rows] -= learning_rate * gradient

    def state(self):
        return {}


def points(seed=0):
    """Bags, one of which is empty, and targets."""
    random = np.random.default_rng(seed)
    dense = random.random((N_POINTS, N_FEATURES), np.float32)
    dense[dense < 0.7] = 0
    dense[3] = 0
    targets = sp.csr_array((random.random((N_POINTS, 4)) < 0.4).astype(np.float32))
    return sp.csr_array(dense), targets


def network(device="cpu", **settings):
    settings = {"dimension": DIMENSION, "dropout": 0.0, "make_optimiser": PlainSteps} | settings
    run = TrainingRun(seed=0, n_threads=2, device=device)
    features, targets = points()
    return BagOfTokens(**settings).network(TrainingData(features, targets), targets, run)


class TestBagOfTokens:
    def test_forward_and_gradient_are_those_of_dense_autograd(self):
        start = np.random.default_rng(1).standard_normal((N_FEATURES, DIMENSION), np.float32)
        ours = network(token_vectors=start)
        table = torch.from_numpy(start.copy()).requires_grad_()
        dense = torch.from_numpy(points()[0].toarray())[POINTS]
        expected = torch.relu(dense @ table)
        slope = torch.randn(4, DIMENSION, generator=torch.Generator().manual_seed(0))
        expected.backward(slope)

        found = ours.forward(POINTS)
        found.backward(slope)
        ours.step(1.0)

        np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(start - ours.table.numpy(), table.grad, rtol=1e-4, atol=1e-5)

    def test_given_vectors_are_copied(self):
        start = np.ones((N_FEATURES, DIMENSION), np.float32)
        ours = network(token_vectors=start)
        ours.forward(POINTS).sum().backward()
        ours.step(0.1)
        assert (start == 1).all()

    def test_refuses_vectors_of_another_shape(self):
        with pytest.raises(InputError, match=r"\(3, 5\), but there are 20 features"):
            network(token_vectors=np.ones((3, DIMENSION), np.float32))

    def test_batch_of_empty_bags(self):
        ours = network()
        before = ours.table.clone()
        features = ours.forward(np.array([3]))
        assert not features.any()
        features.sum().backward()
        ours.step(0.1)
        assert torch.equal(ours.table, before)

    def test_dropout_leaves_the_mean(self):
        torch.manual_seed(0)
        start = np.ones((N_FEATURES, DIMENSION), np.float32)
        ours = network(dropout=0.5, token_vectors=start)
        kept = ours.forward(np.zeros(4000, np.int64)).detach().numpy()
        full = network(token_vectors=start).forward(np.array([0])).detach().numpy()
        assert (kept == 0).mean() == pytest.approx(0.5, abs=0.02)
        np.testing.assert_allclose(kept.mean(axis=0), full[0], rtol=0.1)

    def test_start_puts_tokens_of_equal_targets_together(self):
        features = sp.csr_array(np.eye(4, dtype=np.float32))
        targets = sp.csr_array(np.array([[1, 0], [1, 0], [0, 1], [0, 0]], np.float32))
        run = TrainingRun(seed=0, n_threads=1)
        table = (
            BagOfTokens(dimension=64)
            .network(TrainingData(features, targets), targets, run)
            .table.numpy()
        )
        similarity = table @ table.T
        assert similarity[0, 1] == pytest.approx(1, abs=1e-5)
        assert abs(similarity[0, 2]) < 0.5
        assert not table[3].any()  # its point has no target

    def test_frozen_encoder_does_as_the_network(self):
        ours = network()
        encoder = BagOfTokens(dimension=DIMENSION).frozen(ours)
        found = encoder.encode(Bags.of(points()[0][POINTS]))
        np.testing.assert_allclose(found, ours.forward(POINTS).detach(), rtol=1e-5, atol=1e-6)

    @pytest.mark.gpu
    @needs_cuda
    def test_cuda_does_as_the_cpu(self):
        slope = torch.randn(4, DIMENSION, generator=torch.Generator().manual_seed(0))
        tables, outputs = [], []
        for device in ("cpu", "cuda"):
            ours = network(device)
            features = ours.forward(POINTS)
            features.backward(slope.to(device))
            ours.step(1.0)
            outputs.append(features.detach().cpu().numpy())
            tables.append(ours.table.cpu().numpy())
        np.testing.assert_allclose(outputs[1], outputs[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(tables[1], tables[0], rtol=1e-4, atol=1e-5)


def block_of(matrix, **settings):
    """A block whose R is given."""
    block = BoundedResidual(**settings).block(len(matrix), CPU)
    with torch.no_grad():
        block.matrix.copy_(torch.from_numpy(matrix))
    return block


def random_matrix(scale, seed=0):
    return scale * np.random.default_rng(seed).standard_normal((16, 16)).astype(np.float32)


def spectral_norm(matrix):
    return np.linalg.svd(matrix, compute_uv=False)[0]


class TestResidualBlock:
    def test_starts_as_the_identity(self):
        block = BoundedResidual(dropout=0.0).block(6, CPU)
        features = torch.rand(3, 6)
        np.testing.assert_allclose(block(features).detach(), 2 * features, rtol=1e-5)
        np.testing.assert_allclose(block.frozen().matrix, np.eye(6), atol=1e-6)

    @pytest.mark.parametrize("scale", [0.01, 0.1, 1.0, 30.0])
    @pytest.mark.parametrize("max_norm", [0.3, 1.0])
    def test_norm_is_bounded(self, scale, max_norm):
        matrix = random_matrix(scale)
        frozen = block_of(matrix, max_norm=max_norm).frozen().matrix
        assert spectral_norm(frozen) <= max_norm * (1 + 1e-5)
        if spectral_norm(matrix) <= max_norm:
            np.testing.assert_array_equal(frozen, matrix)

    @pytest.mark.parametrize("scale", [0.01, 30.0])
    def test_always_divide_gives_exactly_the_norm(self, scale):
        frozen = block_of(random_matrix(scale), max_norm=0.7, always_divide=True).frozen()
        assert spectral_norm(frozen.matrix) == pytest.approx(0.7, rel=1e-5)

    @pytest.mark.parametrize("max_norm", [0.1, 0.3, 1.0])
    def test_theorem_1_of_the_paper(self, max_norm):
        """Without a bias: how far features move, and how far cosines to means of points do."""
        random = np.random.default_rng(0)
        before = np.maximum(random.standard_normal((40, 16)), 0).astype(np.float32)
        after = block_of(random_matrix(2.0), max_norm=max_norm).frozen().apply(before)
        moved = np.linalg.norm(after - before, axis=1)
        assert (moved <= max_norm * np.linalg.norm(before, axis=1) * (1 + 1e-5)).all()
        for n_points in (1, 5, 20):
            far = (1 + max_norm * n_points**0.5) ** 2 - 1
            cosines = [
                unit_vectors(v) @ unit_vectors(v[:n_points].mean(axis=0)[None])[0]
                for v in (before, after)
            ]
            assert (cosines[1] >= cosines[0] / (1 + far) - 1e-6).all()
            assert (cosines[1] <= cosines[0] + far + 1e-6).all()

    def test_training_comes_to_use_the_same_bound(self):
        """One power iteration a step: the estimate closes in on the norm that is frozen."""
        block = block_of(random_matrix(3.0), dropout=0.0)
        features = torch.rand(4, 16)
        for _ in range(200):
            trained = block(features)
        frozen = block.frozen().apply(features.numpy())
        np.testing.assert_allclose(trained.detach(), frozen, rtol=1e-3, atol=1e-3)

    def test_gradient_flows_through_the_norm(self):
        block = block_of(random_matrix(3.0), dropout=0.0)
        features = torch.rand(4, 16)
        for _ in range(100):  # until the estimate stands still
            block(features).sum().backward()
            gradient, block.matrix.grad = block.matrix.grad, None
        # R / norm(R) does not change when R is scaled: no slope along R itself.
        matrix = block.matrix.detach()
        along = float((gradient * matrix).sum())
        assert abs(along) < 1e-3 * float(gradient.norm() * matrix.norm())

    def test_no_dropout_outside_training(self):
        block = BoundedResidual(dropout=0.5).block(6, CPU).eval()
        features = torch.rand(50, 6)
        assert torch.equal(block(features), block(features))

    def test_is_always_the_same_block(self):
        torch.manual_seed(1)
        first = BoundedResidual().block(6, CPU)
        torch.manual_seed(2)
        second = BoundedResidual().block(6, CPU)
        assert all(torch.equal(v, second.state_dict()[k]) for k, v in first.state_dict().items())


class TestDevice:
    @pytest.mark.parametrize("name", ["gpu", "", "cpu:cpu"])
    def test_refuses_what_is_no_device(self, name):
        with pytest.raises(InputError, match="`device` must be a name such as 'cpu' or 'cuda'"):
            checked_device(name)

    @pytest.mark.parametrize("name", ["mps", "xpu", "meta"])
    def test_refuses_what_is_not_supported(self, name):
        with pytest.raises(InputError, match=f"must be 'cpu' or 'cuda', got '{name}'"):
            checked_device(name)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
    def test_says_that_there_is_no_gpu(self):
        with pytest.raises(InputError, match="no usable CUDA device"):
            checked_device("cuda")
