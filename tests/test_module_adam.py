"""Adam for the parameters of a module, with the norm of their gradient held down."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from longtail.errors import InputError
from longtail.training.clipping import ConstantNorm, RecentNorms
from longtail.training.module_adam import ModuleAdam


def a_module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(2, 3, 2), nn.Flatten(), nn.Linear(9, 4))


def trained(module, step, n_steps=6):
    """Some steps on points of very different sizes."""
    generator = torch.Generator().manual_seed(1)
    for i in range(n_steps):
        points = torch.randn(5, 2, 4, generator=generator) * 10.0 ** (i % 3 - 1)
        module(points).square().sum().backward()
        step()
    return [parameter.detach() for parameter in module.parameters()]


@pytest.mark.parametrize("clip", [None, 0.5, 3.0, 1e9])
def test_clips_as_torch_does(clip):
    module = a_module()
    reference = copy.deepcopy(module)
    adam = ModuleAdam(module, None if clip is None else ConstantNorm(clip))
    torchs = torch.optim.Adam(reference.parameters(), lr=0.01)

    def step_of_torch():
        if clip is not None:
            nn.utils.clip_grad_norm_(reference.parameters(), clip)
        torchs.step()
        torchs.zero_grad()

    own = trained(module, lambda: adam.step(0.01))
    for value, expected in zip(own, trained(reference, step_of_torch), strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("clip", "same"), [(0.5, False), (1e9, True)])
def test_only_a_long_gradient_is_changed(clip, same):
    plain, clipped = a_module(), a_module()
    free, held = ModuleAdam(plain), ModuleAdam(clipped, ConstantNorm(clip))
    own, other = trained(plain, lambda: free.step(0.01)), trained(clipped, lambda: held.step(0.01))
    assert all(torch.equal(a, b) for a, b in zip(own, other, strict=True)) is same


def test_no_gradient_is_no_step():
    module = a_module()
    before = copy.deepcopy(module.state_dict())
    ModuleAdam(module, ConstantNorm(1.0)).step(0.1)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


def test_a_parameter_without_numbers_is_left_alone():
    module = a_module()
    module.empty = nn.Parameter(torch.zeros(0, 3, 3))
    adam = ModuleAdam(module, ConstantNorm(1.0))
    (module[2].weight.square().sum() + module.empty.sum()).backward()
    before = module[2].weight.detach().clone()
    adam.step(0.1)
    assert not torch.equal(module[2].weight, before)
    assert {name.split(".")[0] for name in adam.state()} == {"0", "1", "2", "3"}


def test_a_gradient_of_zeros_is_not_divided_by():
    module = a_module()
    module(torch.zeros(1, 2, 4)).mul(0).sum().backward()
    ModuleAdam(module, ConstantNorm(1.0)).step(0.1)
    assert all(torch.isfinite(parameter).all() for parameter in module.parameters())


def test_clips_at_a_multiple_of_the_largest_of_the_last_five_norms():
    module, reference = a_module(), a_module()
    adam = ModuleAdam(module, RecentNorms(1.5))
    torchs = torch.optim.Adam(reference.parameters(), lr=0.01)
    norms, n_clipped = [], 0

    def step_of_torch():
        nonlocal n_clipped
        limit = 1.5 * max(norms[-5:], default=torch.inf)
        norm = float(nn.utils.clip_grad_norm_(reference.parameters(), limit))
        n_clipped += norm > limit
        norms.append(min(norm, limit))
        torchs.step()
        torchs.zero_grad()

    own = trained(module, lambda: adam.step(0.01), n_steps=12)
    for value, expected in zip(own, trained(reference, step_of_torch, n_steps=12), strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5)
    assert 0 < n_clipped < 11


def test_recent_norms_are_a_part_of_the_state():
    clipping = RecentNorms(5.0)
    adam = ModuleAdam(a_module(), clipping)
    for norm in (3.0, 1.0):
        clipping.longest(torch.tensor(norm))
    assert adam.state()["clipping.norms"].tolist() == [0, 0, 0, 3, 1]
    again = RecentNorms(5.0)
    again.state()["norms"].copy_(adam.state()["clipping.norms"])
    assert again.longest(torch.tensor(1.0)) == 15.0


def test_gradients_of_zeros_are_not_what_others_are_measured_by():
    module = a_module()
    adam = ModuleAdam(module, RecentNorms(5.0))
    for factor in (1.0, *[0.0] * 6, 1.0):
        module(torch.ones(1, 2, 4)).mul(factor).sum().backward()
        adam.step(0.1)
    assert all(torch.isfinite(parameter).all() for parameter in module.parameters())
    assert adam.state()["clipping.norms"][-2:].min() > 0


def test_a_factor_below_one_is_refused():
    with pytest.raises(InputError, match=r"each step would be shorter .* for example, 5"):
        RecentNorms(0.5)
