"""The hand-written gradients of unit label vectors, against automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from longtail.training import unit_labels, unit_rows
from longtail.training.batches import Batch
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.unit_labels import UnitLabelTable
from longtail.training.unit_rows import UnitRows

N_LABELS, DIMENSION, N_POINTS = 40, 6, 8
POOL = np.array([0, 3, 4, 9, 17, 25, 38])
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
    """What the products are computed in, as the tolerance that this needs; plain steps."""
    monkeypatch.setattr(unit_labels, "product_dtype", lambda _: getattr(torch, request.param))
    monkeypatch.setattr(unit_labels, "RowwiseAdagrad", PlainSteps)
    monkeypatch.setattr(unit_labels, "pool_rows", unit_rows._RowsOfTensors)
    return {"float32": 1e-5, "bfloat16": 0.04}[request.param]


def a_table(scale=5.0, seed=0):
    random = np.random.default_rng(seed)
    start = random.standard_normal((N_LABELS, DIMENSION)).astype(np.float32)
    return UnitLabelTable(start, random.random(N_LABELS, np.float32), scale=scale, device=CPU)


def some_rows(n, seed):
    return torch.randn(n, DIMENSION, generator=torch.Generator().manual_seed(seed))


def batch_of(pool=POOL, *, most=3, seed=0):
    """Points with none up to `most` of the pool's labels."""
    random = np.random.default_rng(seed)
    truth = np.zeros((N_POINTS, len(pool)), bool)
    for row in truth:
        row[random.permutation(len(pool))[: random.integers(0, most + 1)]] = True
    return Batch(np.arange(N_POINTS), pool, *np.nonzero(truth)), torch.from_numpy(truth)


def plain_loss(points, vectors, bias, texts, truth, pool, scale):
    """The sum over points and true labels of the decoupled softmax, as the paper has it."""
    sums = vectors[pool] if texts is None else vectors[pool] + functional.normalize(texts, dim=1)
    logits = scale * points @ functional.normalize(sums, dim=1).T + bias[pool, 0]
    loss = torch.zeros(())
    for i, label in truth.nonzero().tolist():
        of_negatives = logits[i].exp()[~truth[i]].sum()
        of_true = logits[i, label].exp()
        loss = loss - (of_true / (of_true + of_negatives)).log()
    return loss


@pytest.mark.parametrize("with_texts", [False, True])
@pytest.mark.parametrize("most", [3, len(POOL)])
def test_gradients_are_those_of_autograd(tolerance, with_texts, most):
    table, (batch, truth) = a_table(), batch_of(most=most)
    points = functional.normalize(some_rows(N_POINTS, 1), dim=1)
    texts = some_rows(len(POOL), 2) if with_texts else None
    before = [points, table.vectors.clone(), table.bias.clone()] + ([texts] if with_texts else [])
    leaves = [tensor.clone().requires_grad_() for tensor in before]
    expected = plain_loss(*leaves[:3], leaves[3] if with_texts else None, truth, POOL, 5.0)
    expected.backward()

    rows = UnitRows.of(texts) if with_texts else None
    loss, to_points, to_texts = table.learn(points, rows, batch, 1.0)

    assert loss == pytest.approx(expected.item() / N_POINTS, rel=max(tolerance, 1e-4))
    found = [5.0 * to_points.float(), before[1] - table.vectors, before[2] - table.bias]
    assert (to_texts is not None) == with_texts
    for ours, leaf in zip([*found, to_texts] if with_texts else found, leaves, strict=True):
        theirs = leaf.grad.numpy()
        largest = np.abs(theirs).max()
        np.testing.assert_allclose(ours.numpy(), theirs, atol=tolerance * largest, rtol=0)


def test_labels_outside_the_pool_are_unchanged():
    table, (batch, _) = a_table(), batch_of()
    before = table.vectors.clone(), table.bias.clone()
    outside = np.setdiff1d(np.arange(N_LABELS), POOL)
    table.learn(functional.normalize(some_rows(N_POINTS, 1), dim=1), None, batch, 0.1)
    assert torch.equal(table.vectors[outside], before[0][outside])
    assert torch.equal(table.bias[outside], before[1][outside])
    assert not (table.vectors[POOL] == before[0][POOL]).all(dim=1).any()


@pytest.mark.parametrize("kind", ["_RowsOfKernels", "_RowsOfTensors"])
def test_a_share_of_the_labels_is_its_text_alone(monkeypatch, kind):
    monkeypatch.setattr(unit_labels, "pool_rows", getattr(unit_rows, kind))
    start = np.random.default_rng(0).standard_normal((N_LABELS, DIMENSION)).astype(np.float32)
    bias = np.zeros(N_LABELS, np.float32)
    table = UnitLabelTable(start, bias, scale=5.0, device=CPU, texts_alone=1.0)
    texts = some_rows(len(POOL), 2)
    texts[2] = 0  # a text of no known token: its label keeps the vector that it has
    points, (batch, _) = functional.normalize(some_rows(N_POINTS, 1), dim=1), batch_of()
    _, _, to_texts = table.learn(points, UnitRows.of(texts), batch, 0.1)
    assert to_texts[[0, 1, 3]].any(dim=1).all()
    is_changed = (table.vectors.numpy() != start).any(axis=1)
    assert np.flatnonzero(is_changed).tolist() == [POOL[2]]


def test_another_true_label_does_not_count_against_a_label():
    batch = Batch(np.array([0]), np.array([0, 1]), np.array([0, 0]), np.array([0, 1]))
    table = a_table()
    before = table.vectors.clone()
    loss, to_points, _ = table.learn(some_rows(1, 1), None, batch, 0.1)
    assert loss == pytest.approx(0, abs=1e-6)
    assert not to_points.any()
    assert torch.equal(table.vectors, before)


def test_points_without_a_true_label_teach_nothing():
    none = np.empty(0, np.int64)
    table = a_table()
    before = table.vectors.clone()
    loss, to_points, _ = table.learn(
        some_rows(2, 1), None, Batch(np.arange(2), POOL, none, none), 1
    )
    assert loss == 0
    assert not to_points.any()
    assert torch.equal(table.vectors, before)


@pytest.mark.parametrize("bias", [-60.0, 60.0])
def test_extreme_logits_stay_finite(bias):
    start = np.eye(4, dtype=np.float32)
    table = UnitLabelTable(start, np.array([bias, 0, 0, 0], "f4"), scale=20.0, device=CPU)
    batch = Batch(np.arange(2), np.arange(4), np.array([0, 1]), np.array([0, 1]))
    points = torch.tensor([[0.0, 1, 0, 0], [-1.0, 0, 0, 0]])
    loss, to_points, _ = table.learn(points, None, batch, 0.1)
    assert np.isfinite(loss)
    for tensor in (to_points, table.vectors, table.bias):
        assert torch.isfinite(tensor).all()


def test_training_brings_labels_to_their_points():
    random = np.random.default_rng(0)
    directions = torch.from_numpy(np.linalg.qr(random.standard_normal((6, 6)))[0]).float()
    table = UnitLabelTable(
        random.standard_normal((6, 6)).astype(np.float32), np.zeros(6, "f4"), scale=20.0, device=CPU
    )
    batch = Batch(np.arange(6), np.arange(6), np.arange(6), np.arange(6))
    losses = [table.learn(directions, None, batch, 0.3)[0] for _ in range(60)]
    assert losses[-1] < 0.05 < losses[0]
    logits = 20 * directions @ UnitRows.of(table.vectors).unit.T + table.bias[:, 0]
    assert torch.equal(logits.argmax(dim=1), torch.arange(6))


def test_unit_rows_and_their_gradient():
    rows = some_rows(5, 3).requires_grad_()
    weights = some_rows(5, 4)
    (functional.normalize(rows, dim=1) * weights).sum().backward()
    scaled = UnitRows.of(rows.detach())
    torch.testing.assert_close(scaled.unit.norm(dim=1), torch.ones(5))
    torch.testing.assert_close(scaled.backward(weights), rows.grad)


def test_rows_of_zeros_stay_so():
    zeros = UnitRows.of(torch.zeros(2, 3))
    assert not zeros.unit.any()
    assert torch.isfinite(zeros.backward(torch.ones(2, 3))).all()


def test_a_checkpoint_holds_the_live_tensors():
    table, (batch, _) = a_table(), batch_of()
    state = table.state()
    assert isinstance(table.of_vectors, RowwiseAdagrad)
    assert set(state) == {"vectors", "bias", "vectors.sums", "bias.sums"}
    before = {name: tensor.clone() for name, tensor in state.items()}
    table.learn(functional.normalize(some_rows(N_POINTS, 1), dim=1), None, batch, 0.1)
    assert not any(torch.equal(state[name], before[name]) for name in state)
