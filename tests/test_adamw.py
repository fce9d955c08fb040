"""AdamW against torch's."""

import torch

from longtail.training.adamw import AdamW


def test_steps_are_those_of_torch():
    random = torch.Generator().manual_seed(0)
    own = torch.randn(50, generator=random)
    other = torch.nn.Parameter(own.clone())
    ours, theirs = AdamW(own, 0.1), torch.optim.AdamW([other], lr=0.02, weight_decay=0.1)
    for _ in range(20):
        other.grad = torch.randn(50, generator=random)
        theirs.step()
        ours.step(other.grad, 0.02)
    torch.testing.assert_close(own, other.data)
