"""The mean of the weights that training goes through."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from longtail.training.weight_average import EVERY, AveragedTask


class Walk:
    """A task whose weights take random steps."""

    def __init__(self):
        self.weights = {"a": torch.zeros(3), "b": torch.zeros(2, 2)}
        self.optimiser = torch.zeros(1)
        self.random = torch.Generator().manual_seed(0)
        self.seen = []

    def step(self, batch, learning_rate, share, *, measure):
        for weight in self.weights.values():
            weight.add_(torch.randn(weight.shape, generator=self.random))
        self.optimiser += 1
        self.seen.append({name: weight.clone() for name, weight in self.weights.items()})
        return 0.5 if measure else None

    def state(self):
        return {**self.weights, "optimiser": self.optimiser}


def walked(n_steps, n_steps_before):
    task = Walk()
    averaged = AveragedTask(task, task.weights, n_steps_before)
    for _ in range(n_steps):
        averaged.step(None, 0.1, 1.0, measure=False)
    return task, averaged


@pytest.mark.parametrize("n_steps_before", [0, 7, 40])
def test_is_the_mean_of_every_twentieth_step_after_some(n_steps_before):
    task, averaged = walked(n_steps_before + 3 * EVERY + 5, n_steps_before)
    last = task.seen[-1]
    chosen = [task.seen[n_steps_before + i * EVERY - 1] for i in (1, 2, 3)]
    with averaged.in_use():
        for name, weight in task.weights.items():
            expected = np.mean([step[name].numpy() for step in chosen], axis=0)
            np.testing.assert_allclose(weight.numpy(), expected, atol=1e-5)
    assert all(torch.equal(task.weights[name], last[name]) for name in last)
    averaged.take_over()
    np.testing.assert_allclose(task.weights["a"], sum(s["a"] for s in chosen) / 3, atol=1e-5)


def test_before_there_is_a_mean_the_weights_stay():
    task, averaged = walked(EVERY + 6, 7)
    with averaged.in_use():
        assert torch.equal(task.weights["a"], task.seen[-1]["a"])
    averaged.take_over()
    assert torch.equal(task.weights["a"], task.seen[-1]["a"])


def test_a_loss_is_passed_on():
    task = Walk()
    averaged = AveragedTask(task, task.weights, 0)
    assert averaged.step(None, 0.1, 1.0, measure=True) == 0.5
    assert averaged.step(None, 0.1, 1.0, measure=False) is None


def test_the_mean_goes_on_from_its_state():
    _, whole = walked(3 * EVERY, 5)
    task, first = walked(40, 5)
    kept = {name: tensor.clone() for name, tensor in first.state().items()}
    again = AveragedTask(task, task.weights, 5)
    for name, tensor in again.state().items():
        tensor.copy_(kept[name])
    for _ in range(20):
        again.step(None, 0.1, 1.0, measure=False)
    for name, tensor in whole.state().items():
        assert torch.equal(tensor, again.state()[name])
