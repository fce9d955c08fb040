"""The hand-written gradients of unit label vectors, against automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from longtail.training import unit_labels, unit_labels_on_device
from longtail.training.batches import Batch
from longtail.training.state import as_array
from longtail.training.unit_labels import UnitLabels, trained_directions
from longtail.training.unit_labels_on_device import UnitLabelsOnDevice
from longtail.training.unit_rows import UnitRows

N_LABELS, DIMENSION, N_POINTS = 40, 6, 8
POOL = np.array([0, 3, 4, 9, 17, 25, 38])
CPU = torch.device("cpu")


@pytest.fixture(params=["arrays", "tensors"])
def make(request):
    """What makes labels in main memory, or by tensor operations as on a device."""
    if request.param == "arrays":
        return UnitLabels
    return lambda *start, **settings: UnitLabelsOnDevice(*start, device=CPU, **settings)


@pytest.fixture
def all_slopes(monkeypatch):
    """None is so small that it is sampled."""
    for module in (unit_labels, unit_labels_on_device):
        monkeypatch.setattr(module, "LEAST_SLOPE", 1e-8)


@pytest.fixture(params=["float32", "bfloat16"])
def tolerance(request, monkeypatch):
    """What products on a device are computed in, as the tolerance that this needs."""
    narrow = getattr(torch, request.param)
    monkeypatch.setattr(unit_labels_on_device, "product_dtype", lambda _: narrow)
    return {"float32": 1e-5, "bfloat16": 0.04}[request.param]


def some_labels(make, scale=5.0, **settings):
    random = np.random.default_rng(0)
    start = random.standard_normal((N_LABELS, DIMENSION)).astype(np.float32)
    return make(start, random.random(N_LABELS, np.float32), scale=scale, **settings)


def some_rows(n, seed):
    rows = np.random.default_rng(seed).standard_normal((n, DIMENSION))
    return rows.astype(np.float32)


def unit_rows(n, seed):
    rows = some_rows(n, seed)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


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
    x, w = functional.normalize(points, dim=1), functional.normalize(sums, dim=1)
    logits = scale * x @ w.T + bias[pool, 0]
    loss = torch.zeros(())
    for i, label in truth.nonzero().tolist():
        of_negatives = logits[i].exp()[~truth[i]].sum()
        of_true = logits[i, label].exp()
        loss = loss - (of_true / (of_true + of_negatives)).log()
    return loss


def stepped(table, gradient, learning_rate):
    """The table after a first step of Adagrad with one accumulator a row."""
    return table - learning_rate * gradient / (
        gradient.square().mean(1, keepdim=True).sqrt() + 1e-8
    )


@pytest.mark.parametrize("with_texts", [False, True])
@pytest.mark.parametrize("most", [3, len(POOL)])
@pytest.mark.usefixtures("all_slopes")
def test_gradients_are_those_of_autograd(make, tolerance, with_texts, most):
    labels = some_labels(make)
    batch, truth = batch_of(most=most)
    points, texts = some_rows(N_POINTS, 1), some_rows(len(POOL), 2) if with_texts else None
    start = [torch.as_tensor(table).clone() for table in (labels.vectors, labels.bias)]
    given = [torch.from_numpy(points.copy()), *start]
    if with_texts:
        given.append(torch.from_numpy(texts.copy()))
    leaves = [tensor.clone().requires_grad_() for tensor in given]
    expected = plain_loss(*leaves[:3], leaves[3] if with_texts else None, truth, POOL, 5.0)
    expected.backward()

    loss = labels.learn(points, texts, batch, 1.0)

    assert loss == pytest.approx(expected.item() / N_POINTS, rel=max(tolerance, 1e-4))
    sums = [torch.as_tensor(labels.state()[name]) for name in ("vectors.sums", "bias.sums")]
    squares = [leaf.grad.square().mean(dim=1) for leaf in leaves[1:3]]
    found = [torch.from_numpy(points), *(part.sqrt() for part in sums)]
    theirs = [leaves[0].grad, *(part.sqrt() for part in squares)]
    if with_texts:
        found, theirs = [*found, torch.from_numpy(texts)], [*theirs, leaves[3].grad]
    for own, other in zip(found, theirs, strict=True):
        largest = other.abs().max().item()
        torch.testing.assert_close(own, other, atol=tolerance * largest, rtol=0)
    # Of a row that hardly has a gradient, its direction is rounding.
    clear = squares[0].sqrt() > 0.1 * squares[0].sqrt().max()
    after = stepped(start[0], leaves[1].grad, 1.0)
    moved = torch.as_tensor(labels.vectors)
    torch.testing.assert_close(moved[clear], after[clear], atol=20 * tolerance, rtol=0)


def test_a_device_learns_what_main_memory_does(monkeypatch):
    """The same is drawn, left out and sampled, where products have as many bits."""
    monkeypatch.setattr(unit_labels_on_device, "product_dtype", lambda _: torch.float32)
    settings = {"scale": 5.0, "dropout": 0.3, "texts_alone": 0.3}
    here = some_labels(UnitLabels, **settings)
    there = some_labels(UnitLabelsOnDevice, device=CPU, **settings)
    for step in range(5):
        batch, _ = batch_of(seed=step)
        rows = [(some_rows(N_POINTS, step), some_rows(len(POOL), -step % 7)) for _ in range(2)]
        losses = [
            labels.learn(*own, batch, 0.1) for labels, own in zip((here, there), rows, strict=True)
        ]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)
        for own, other in zip(*rows, strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-2, atol=1e-3)
    for name, part in here.state().items():
        np.testing.assert_allclose(part, there.state()[name], rtol=1e-2, atol=1e-3)


@pytest.mark.usefixtures("all_slopes")
def test_labels_outside_the_pool_are_unchanged(make):
    labels, (batch, _) = some_labels(make), batch_of()
    before = [as_array(table).copy() for table in (labels.vectors, labels.bias)]
    outside = np.setdiff1d(np.arange(N_LABELS), POOL)
    labels.learn(some_rows(N_POINTS, 1), None, batch, 0.1)
    after = [as_array(table).copy() for table in (labels.vectors, labels.bias)]
    for own, other in zip(after, before, strict=True):
        np.testing.assert_array_equal(own[outside], other[outside])
    assert not (after[0][POOL] == before[0][POOL]).all(axis=1).any()


def test_a_share_of_the_labels_is_its_text_alone(make):
    start = np.random.default_rng(0).standard_normal((N_LABELS, DIMENSION)).astype(np.float32)
    bias, before = np.zeros(N_LABELS, np.float32), start.copy()
    labels = make(start, bias, scale=5.0, texts_alone=1.0)
    texts = some_rows(len(POOL), 2)
    texts[2] = 0  # a text of no known token: its label keeps the vector that it has
    batch, _ = batch_of()
    labels.learn(some_rows(N_POINTS, 1), texts, batch, 0.1)
    assert texts[[0, 1, 3]].any(axis=1).all()
    is_changed = (as_array(labels.vectors).copy() != before).any(axis=1)
    assert np.flatnonzero(is_changed).tolist() == [POOL[2]]


def test_half_of_the_labels_are_drawn_anew_from_a_seed(make):
    losses = []
    for seed in (1, 2, 1):
        labels = some_labels(make, texts_alone=0.5, dropout=0.3)
        labels.draw_anew(seed)
        losses.append(labels.learn(some_rows(N_POINTS, 1), some_rows(7, 2), batch_of()[0], 0.1))
    assert losses[0] == losses[2] != losses[1]


def test_dropout_leaves_units_out(make):
    labels, points = some_labels(make, dropout=0.25), some_rows(400, 1)
    batch = Batch(np.arange(400), POOL, np.arange(400), np.zeros(400, np.int64))
    labels.learn(points, None, batch, 0.1)
    assert np.mean(points == 0) == pytest.approx(0.25, abs=0.03)


def test_another_true_label_does_not_count_against_a_label(make):
    batch = Batch(np.array([0]), np.array([0, 1]), np.array([0, 0]), np.array([0, 1]))
    labels, point = some_labels(make), some_rows(1, 1)
    before = as_array(labels.vectors).copy()
    assert labels.learn(point, None, batch, 0.1) == pytest.approx(0, abs=1e-6)
    assert not point.any()
    np.testing.assert_array_equal(as_array(labels.vectors).copy(), before)


def test_points_without_a_true_label_teach_nothing(make):
    none = np.empty(0, np.int64)
    labels, points = some_labels(make), some_rows(2, 1)
    before = as_array(labels.vectors).copy()
    assert labels.learn(points, None, Batch(np.arange(2), POOL, none, none), 1) == 0
    assert not points.any()
    np.testing.assert_array_equal(as_array(labels.vectors).copy(), before)


@pytest.mark.parametrize("bias", [-60.0, 60.0])
def test_extreme_logits_stay_finite(make, bias):
    start = np.eye(4, dtype=np.float32)
    labels = make(start, np.array([bias, 0, 0, 0], "f4"), scale=20.0)
    batch = Batch(np.arange(2), np.arange(4), np.array([0, 1]), np.array([0, 1]))
    points = np.array([[0, 1, 0, 0], [-1, 0, 0, 0]], np.float32)
    assert np.isfinite(labels.learn(points, None, batch, 0.1))
    for numbers in (points, labels.vectors, labels.bias):
        assert np.isfinite(as_array(numbers)).all()


def test_training_brings_labels_to_their_points(make):
    random = np.random.default_rng(0)
    directions = np.linalg.qr(random.standard_normal((6, 6)))[0].astype(np.float32)
    start = random.standard_normal((6, 6)).astype(np.float32)
    labels = make(start, np.zeros(6, "f4"), scale=20.0)
    batch = Batch(np.arange(6), np.arange(6), np.arange(6), np.arange(6))
    losses = [labels.learn(directions.copy(), None, batch, 0.3) for _ in range(60)]
    assert losses[-1] < 0.05 < losses[0]
    unit = trained_directions(as_array(labels.vectors).copy(), None, np.ones(6, bool))
    logits = 20 * directions @ unit.T + as_array(labels.bias)[:, 0]
    assert logits.argmax(axis=1).tolist() == list(range(6))


@pytest.mark.parametrize("in_place", [False, True])
def test_directions_of_labels_without_points_are_their_texts(in_place):
    own, texts = some_rows(5, 0), unit_rows(5, 1)
    has_points = np.array([True, False, True, False, True])
    expected = own * has_points[:, np.newaxis] + texts
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = trained_directions(own, texts, has_points, in_place=in_place)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert np.shares_memory(found, own) == in_place


def test_unit_rows_and_their_gradient():
    rows, weights = (torch.from_numpy(some_rows(5, seed)) for seed in (3, 4))
    leaf = rows.clone().requires_grad_()
    (functional.normalize(leaf, dim=1) * weights).sum().backward()
    scaled = UnitRows.of(rows)
    torch.testing.assert_close(scaled.unit.norm(dim=1), torch.ones(5))
    torch.testing.assert_close(scaled.backward(weights), leaf.grad)


def test_rows_of_zeros_stay_so():
    zeros = UnitRows.of(torch.zeros(2, 3))
    assert not zeros.unit.any()
    assert torch.isfinite(zeros.backward(torch.ones(2, 3))).all()


def test_a_checkpoint_holds_what_is_live(make):
    labels, (batch, _) = some_labels(make), batch_of()
    state = labels.state()
    assert set(state) == {"vectors", "bias", "vectors.sums", "bias.sums"}
    before = {name: as_array(part).copy() for name, part in state.items()}
    labels.learn(some_rows(N_POINTS, 1), None, batch, 0.1)
    assert not any(np.array_equal(as_array(state[name]), before[name]) for name in state)
