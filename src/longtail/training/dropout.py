"""Which units a step leaves out.

Random numbers are drawn in main memory, whatever the device, so that a seed drops the same units on
all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from longtail.training.units import factor_of_kept, n_bytes_dropped

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["dropped", "kept_units", "random_bytes_on_device"]


def dropped(rows: Tensor, share: float) -> Tensor:
    """Return `rows` as `torch.nn.functional.dropout` leaves them in main memory, on any device.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.dropout import dropped
    >>> dropped(torch.ones(100, 100), 0.2).unique()
    tensor([0.0000, 1.2500])
    """
    if rows.device.type == "cpu" or share == 0:
        return functional.dropout(rows, share)
    return rows * functional.dropout(torch.ones(rows.shape), share).to(rows.device)


def kept_units(rows: Tensor, share: float) -> Tensor:
    """Return factors for each number of `rows`: 0 for about that share, 1 / (1 - share) elsewhere.

    As `torch.nn.functional.dropout` does it, but to the nearest 256th: a random byte a number is
    enough, drawn eight at a time, for drawing takes longer than the product.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.dropout import kept_units
    >>> kept = kept_units(torch.ones(100, 100), 0.2)
    >>> kept.unique()
    tensor([0.0000, 1.2488])
    >>> 0.95 < kept.mean() < 1.05
    tensor(True)
    """
    drawn, n_dropped = random_bytes_on_device(rows, share)
    return (drawn >= n_dropped).to(rows.dtype).mul_(factor_of_kept(n_dropped))


def random_bytes_on_device(rows: Tensor, share: float) -> tuple[Tensor, int]:
    """Return a random byte for each number of `rows`, and below which it is left out.

    The bytes are where the rows are.

    Examples
    --------
    >>> import torch
    >>> from longtail.training.dropout import random_bytes_on_device
    >>> drawn, n_dropped = random_bytes_on_device(torch.ones(100, 100), 0.25)
    >>> drawn.shape, drawn.dtype, n_dropped
    (torch.Size([100, 100]), torch.uint8, 64)
    """
    n_dropped = n_bytes_dropped(share)
    words = torch.empty(-(-rows.numel() // 8), dtype=torch.int64)
    drawn = words.random_(-(2**63), None).view(torch.uint8)[: rows.numel()].view(rows.shape)
    return drawn.to(rows.device), n_dropped
