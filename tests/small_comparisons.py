"""Arrays of two models, or of two answers, compared to the bit."""

from __future__ import annotations

import numpy as np


def assert_same(first, second):
    """Compare arrays one after another, and their types."""
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def assert_rows_are_as_alone(model, texts, k):
    """Compare the answers to a batch with those to each of its texts."""
    ids, probabilities = model.predict_topk(texts, k)
    for text, row, said in zip(texts, ids, probabilities, strict=True):
        names = [model.label_space.name(label) for label in row[row >= 0].tolist()]
        assert model.predict(text, k) == list(zip(names, said[row >= 0].tolist(), strict=True))


def same_arrays(first, second):
    """Tell whether all arrays of two dictionaries are equal; their names have to be."""
    assert first.keys() == second.keys()
    return all(np.array_equal(array, second[name]) for name, array in first.items())
