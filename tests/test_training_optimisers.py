"""Row-wise optimisers: against numpy in float64, and against torch's own Adam."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from longtail.training.optimisers import LazyAdam, RowwiseAdagrad

N_ROWS, DIMENSION = 30, 7
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


def steps(n_steps=5, n_touched=9, seed=0):
    """A table, and the rows and gradients of some steps."""
    random = np.random.default_rng(seed)
    table = random.standard_normal((N_ROWS, DIMENSION), np.float32)
    batches = [
        (
            np.sort(random.permutation(N_ROWS)[:n_touched]),
            random.standard_normal((n_touched, DIMENSION), np.float32),
        )
        for _ in range(n_steps)
    ]
    return table, batches


def trained(make, device="cpu", learning_rate=0.1):
    """The table after all steps, and the optimiser's state."""
    start, batches = steps()
    table = torch.from_numpy(start.copy()).to(device)
    optimiser = make(table)
    for rows, gradient in batches:
        ids, slopes = torch.from_numpy(rows).to(device), torch.from_numpy(gradient).to(device)
        optimiser.step(table, ids, slopes, learning_rate)
    return table.cpu().numpy(), {name: value.cpu() for name, value in optimiser.state().items()}


def test_adagrad_keeps_one_mean_square_a_row():
    expected, batches = steps()
    expected, sums = expected.astype(np.float64), np.zeros(N_ROWS)
    for rows, gradient in batches:
        sums[rows] += (gradient.astype(np.float64) ** 2).mean(axis=1)
        expected[rows] -= 0.1 / (np.sqrt(sums[rows]) + 1e-8)[:, None] * gradient
    table, state = trained(RowwiseAdagrad)
    np.testing.assert_allclose(table, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state["sums"], sums, rtol=1e-5)
    assert state["sums"].shape == (N_ROWS,)


def test_first_step_of_adagrad_has_the_length_of_the_rate():
    table = torch.zeros(2, 4)
    RowwiseAdagrad(table).step(table, torch.tensor([1]), torch.full((1, 4), 1e-3), 0.1)
    np.testing.assert_allclose(table.numpy(), [[0] * 4, [-0.1] * 4], rtol=1e-4)


def test_lazy_adam_is_torchs_sparse_adam():
    start, batches = steps()
    parameter = nn.Parameter(torch.from_numpy(start.copy()))
    reference = torch.optim.SparseAdam([parameter], lr=0.1)
    for rows, gradient in batches:
        parameter.grad = torch.sparse_coo_tensor(
            rows[None, :], torch.from_numpy(gradient), parameter.shape, check_invariants=False
        )
        reference.step()
    np.testing.assert_allclose(trained(LazyAdam)[0], parameter.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_cuda])]
)
def test_lazy_adam_on_all_rows_is_torchs_adam(device):
    random = np.random.default_rng(1)
    start = torch.from_numpy(random.standard_normal((4, 3), np.float32))
    table, other = start.to(device).clone(), start.to(device).clone()
    parameter = nn.Parameter(start.clone())
    optimiser, of_all = LazyAdam(table), LazyAdam(other)
    reference = torch.optim.Adam([parameter], lr=0.05)
    for _ in range(5):
        gradient = torch.from_numpy(random.standard_normal((4, 3), np.float32))
        optimiser.step(table, torch.arange(4).to(device), gradient.to(device), 0.05)
        of_all.step_all(other, gradient.to(device), 0.05)
        parameter.grad = gradient
        reference.step()
    for found in (table, other):
        np.testing.assert_allclose(found.cpu(), parameter.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [RowwiseAdagrad, LazyAdam])
def test_rows_that_are_not_named_stay(make):
    start, _ = steps()
    table = torch.from_numpy(start.copy())
    make(table).step(table, torch.tensor([3, 5]), torch.ones(2, DIMENSION), 0.1)
    changed = np.flatnonzero((table.numpy() != start).any(axis=1))
    assert changed.tolist() == [3, 5]


@pytest.mark.parametrize("make", [RowwiseAdagrad, LazyAdam])
def test_state_goes_on_where_it_was(make):
    """An optimiser that is given another's state does as that one would have done."""
    start, batches = steps()
    table = torch.from_numpy(start.copy())
    first = make(table)
    for number, (rows, gradient) in enumerate(batches):
        if number == 2:
            second = make(table)
            for name, value in second.state().items():
                value.copy_(first.state()[name])
            first = second
        first.step(table, torch.from_numpy(rows), torch.from_numpy(gradient), 0.1)
    np.testing.assert_array_equal(table.numpy(), trained(make)[0])


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("make", [RowwiseAdagrad, LazyAdam])
def test_cuda_does_as_the_cpu(make):
    (on_cpu, cpu_state), (on_gpu, gpu_state) = trained(make), trained(make, "cuda")
    np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-4, atol=1e-5)
    for name, value in cpu_state.items():
        np.testing.assert_allclose(gpu_state[name], value, rtol=1e-4, atol=1e-6)
