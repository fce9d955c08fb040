"""The closed-form gradients of the label table, against automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from longtail.training import label_table
from longtail.training.batches import Batch
from longtail.training.label_table import LabelTable, product_dtype

N_LABELS, DIMENSION, N_POINTS = 40, 6, 8
CPU = torch.device("cpu")


class PlainSteps:
    """Plain gradient descent, so that a step of 1 shows the gradient itself."""

    def __init__(self, table):
        self.rows = torch.zeros(len(table), 0)

    def step(self, table, rows, gradient, learning_rate):
        table[rows] -= learning_rate * gradient

    def state(self):
        return {}


@pytest.fixture(params=["float32", "bfloat16"])
def tolerance(request, monkeypatch):
    """What the products are computed in, as the tolerance that this needs."""
    monkeypatch.setattr(label_table, "product_dtype", lambda _: getattr(torch, request.param))
    return {"float32": 1e-5, "bfloat16": 0.04}[request.param]


def batch_of(pool, *, masked, seed=0):
    """Points with one to three of the pool's labels."""
    random = np.random.default_rng(seed)
    size = N_LABELS if pool is None else len(pool)
    truth = np.zeros((N_POINTS, size), bool)
    for row in truth:
        row[random.permutation(size)[: random.integers(1, 4)]] = True
    in_loss = (random.random(truth.shape) < 0.5) | truth if masked else None
    return Batch(np.arange(N_POINTS), pool, *np.nonzero(truth), in_loss), truth


def by_autograd(table, features, batch, truth, reduction):
    """The loss and its gradients with respect to features, vectors and bias, by torch."""
    pool = np.arange(N_LABELS) if batch.pool is None else batch.pool
    leaves = [t.detach().clone().requires_grad_() for t in (features, table.vectors, table.bias)]
    x, vectors, bias = leaves
    logits = x @ vectors[pool].T + bias[pool, 0]
    each = binary_cross_entropy_with_logits(
        logits, torch.from_numpy(truth).float(), reduction="none"
    )
    if batch.in_loss is not None:
        each = each * torch.from_numpy(batch.in_loss)
    loss = each.sum() / N_POINTS
    (loss * N_POINTS * reduction).backward()  # gradients are sums over points, the loss is a mean
    return loss.item(), [leaf.grad.numpy() for leaf in leaves]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("pool", [None, np.array([0, 3, 4, 9, 17, 25, 38])])
@pytest.mark.parametrize("reduction", [1.0, 0.25])
def test_gradients_are_those_of_autograd(tolerance, pool, masked, reduction):
    table = LabelTable(
        N_LABELS,
        DIMENSION,
        frequencies=None,
        make_optimiser=PlainSteps,
        reduction=reduction,
        device=CPU,
    )
    features = torch.randn(N_POINTS, DIMENSION, generator=torch.Generator().manual_seed(3))
    batch, truth = batch_of(pool, masked=masked)
    expected_loss, expected = by_autograd(table, features, batch, truth, reduction)
    before = table.vectors.clone(), table.bias.clone()

    loss, gradient = table.learn(features, batch, 1.0, measure=True)

    assert loss == pytest.approx(expected_loss, rel=max(tolerance, 1e-4))
    found = [gradient, before[0] - table.vectors, before[1] - table.bias]
    for ours, theirs in zip(found, expected, strict=True):
        largest = np.abs(theirs).max()
        np.testing.assert_allclose(ours.numpy(), theirs, atol=tolerance * largest, rtol=0)


def test_loss_is_measured_only_when_wanted():
    table = LabelTable(N_LABELS, DIMENSION, frequencies=None, device=CPU)
    batch, _ = batch_of(None, masked=False)
    assert table.learn(torch.ones(N_POINTS, DIMENSION), batch, 0.1, measure=False)[0] is None


def test_bias_starts_at_the_log_odds():
    frequencies = np.array([0.5, 0.01, 0.0, 1.0])
    table = LabelTable(4, 3, frequencies=frequencies, device=CPU)
    assert not table.vectors.any()
    start = torch.sigmoid(table.bias[:, 0]).numpy()
    np.testing.assert_allclose(start, frequencies, atol=1e-5)
    assert torch.isfinite(table.bias).all()


def test_random_start_depends_on_the_seed_alone():
    torch.manual_seed(1)
    first = LabelTable(5, 4, frequencies=None, seed=7, device=CPU)
    torch.manual_seed(2)
    again = LabelTable(5, 4, frequencies=None, seed=7, device=CPU)
    other = LabelTable(5, 4, frequencies=None, seed=8, device=CPU)
    assert torch.equal(first.vectors, again.vectors)
    assert not torch.equal(first.vectors, other.vectors)
    assert first.vectors.abs().max() <= 0.5  # 4 ** -0.5


def test_product_dtype_is_one_of_two():
    assert product_dtype(CPU) in {torch.float32, torch.bfloat16}
