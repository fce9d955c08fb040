"""AdamW against torch's."""

import numpy as np
import torch

from longtail.training.adamw import AdamW


def test_steps_are_those_of_torch():
    random = np.random.default_rng(0)
    own = random.standard_normal(50, np.float32)
    other = torch.nn.Parameter(torch.tensor(own))
    ours, theirs = AdamW(own, 0.1), torch.optim.AdamW([other], lr=0.02, weight_decay=0.1)
    for _ in range(20):
        gradient = random.standard_normal(50, np.float32)
        other.grad = torch.from_numpy(gradient)
        theirs.step()
        ours.step(gradient, 0.02)
    torch.testing.assert_close(torch.from_numpy(own), other.data)
