"""Vectors of groups that are added to texts: each kernel held to a plain numpy twin."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.corrections import add_up_groups, shorten_rows
from longtail.siamese.corrections import Corrections
from longtail.training.unit_rows import UnitRows
from longtail.training.units import SMALLEST_LENGTH

few = settings(max_examples=25, deadline=None)
seeds, row_counts = st.integers(0, 2**32 - 1), st.integers(0, 12)
dimensions = st.integers(1, 40)
close = {"rtol": 1e-4, "atol": 1e-5}


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@few
@given(seeds, row_counts, dimensions)
def test_add_up_groups(seed, n_rows, dimension):
    groups = np.random.default_rng(seed).integers(0, 5, n_rows)
    sums, slope = normal(seed, n_rows, dimension), normal(seed + 1, n_rows, dimension)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    unit = sums / lengths
    across = (slope - unit * (unit * slope).sum(axis=1, keepdims=True)) / lengths
    expected = np.zeros((5, dimension), np.float32)
    np.add.at(expected, groups, across)
    order, starts = np.argsort(groups), np.searchsorted(np.sort(groups), np.arange(6))
    totals = np.empty_like(expected)
    add_up_groups(unit, lengths, slope, order, starts, totals, 0, 5)
    atol = 1e-4 / max(lengths.min(initial=1), 1e-3)  # short rows have large slopes
    np.testing.assert_allclose(slope, across, rtol=1e-4, atol=atol)
    np.testing.assert_allclose(totals, expected, rtol=1e-4, atol=atol)


@few
@given(seeds, row_counts, dimensions, st.floats(0.1, 5))
def test_shorten_rows(seed, n_touched, dimension, longest):
    table = normal(seed, 12, dimension)
    rows = np.random.default_rng(seed).permutation(12)[:n_touched]
    expected = table.copy()
    lengths = np.linalg.norm(expected[rows], axis=1, keepdims=True)
    expected[rows] *= np.minimum(1, longest / lengths)
    shorten_rows(table, rows, longest, 0, n_touched)
    np.testing.assert_allclose(table, expected, **close)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_steps_are_those_of_torch(n_threads, monkeypatch):
    """What other devices do by `UnitRows`, compiled loops do on a processor, in any threads."""
    start, clusters = normal(0, 400, 8), np.arange(1200) % 400
    own = Corrections(start, clusters, torch.device("cpu"), speed=3.0, longest=2.0)
    plain = Corrections(start, clusters, torch.device("cpu"), speed=3.0, longest=2.0)
    pool, texts = torch.arange(0, 1200, 2), torch.from_numpy(normal(1, 600, 8))
    monkeypatch.setattr(torch, "get_num_threads", lambda: n_threads)
    labels, slope = own.add(texts, pool), torch.from_numpy(normal(2, 600, 8))
    expected = UnitRows.of(texts + plain.vectors[plain._cluster_of_label[pool]])
    torch.testing.assert_close(labels.unit, expected.unit)
    torch.testing.assert_close(labels.lengths, expected.lengths)
    across = expected.backward(slope)
    found = own.step(pool, labels, slope.clone(), 0.1)
    torch.testing.assert_close(found, across)
    touched, places = torch.unique(plain._cluster_of_label[pool], return_inverse=True)
    summed = torch.zeros(len(touched), 8).index_add_(0, places, across)
    plain._optimiser.step(plain.vectors, touched, summed, 0.3)
    lengths = plain.vectors[touched].norm(dim=1, keepdim=True)
    plain.vectors[touched] *= (2.0 / lengths).clamp_max(1)
    torch.testing.assert_close(own.vectors, plain.vectors)
    assert own.vectors[touched].norm(dim=1).max() <= 2 + 10 * SMALLEST_LENGTH


def test_a_label_without_a_text_goes_on_learning():
    """Its first gradient, of a vector without a direction, must not outweigh all that follow."""
    alone = Corrections(np.zeros((1, 2), np.float32), np.zeros(1, np.int64), torch.device("cpu"))
    pool, no_text = torch.zeros(1, dtype=torch.int64), torch.zeros(1, 2)
    for wanted in ([1.0, 0.0], *[[0.0, 1.0]] * 20):
        labels = alone.add(no_text, pool)
        alone.step(pool, labels, -torch.tensor([wanted]), 0.1)
    found = alone.add(no_text, pool).unit[0]
    assert found[1] > 0.9  # where twenty of twenty-one steps led
