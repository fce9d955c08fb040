"""The 1-vs-All classifiers on shortlists."""

from __future__ import annotations

import numpy as np

from longtail.kernels.scoring import label_logits
from longtail.scorers.label_vectors import LabelVectors


def drawn(n=700, n_labels=300, dimension=41, size=20):
    random = np.random.default_rng(0)
    vectors = random.standard_normal((n_labels, dimension)).astype(np.float32)
    bias = random.standard_normal(n_labels).astype(np.float32)
    features = random.standard_normal((n, dimension)).astype(np.float32)
    labels = random.integers(-1, n_labels, (n, size)).astype(np.int32)
    return LabelVectors(vectors, bias), features, labels


def test_logits_are_the_formula_and_padding_is_kept():
    classifier, features, labels = drawn()
    logits = classifier.logits(features, labels)
    expected = np.take_along_axis(
        features @ classifier.vectors.T + classifier.bias, np.maximum(labels, 0), axis=1
    )
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits[labels >= 0], expected[labels >= 0], rtol=1e-4, atol=1e-5)
    assert (logits[labels < 0] == -np.inf).all()


def test_one_row_is_the_row_of_a_batch_and_threads_do_not_matter():
    classifier, features, labels = drawn()
    logits = classifier.logits(features, labels)
    assert classifier.logits(features, labels, n_threads=3).tobytes() == logits.tobytes()
    for row in range(0, len(features), 53):
        alone = classifier.logits(features[row : row + 1], labels[row : row + 1])
        assert alone.tobytes() == logits[row].tobytes()


def test_the_place_in_the_shortlist_does_not_matter():
    classifier, features, labels = drawn()
    logits = classifier.logits(features, labels)
    reversed_logits = classifier.logits(features, labels[:, ::-1])
    assert np.array_equal(reversed_logits[:, ::-1], logits)


def test_no_points_and_no_shortlist():
    classifier, features, labels = drawn()
    assert classifier.logits(features[:0], labels[:0]).shape == (0, 20)
    assert classifier.logits(features, labels[:, :0]).shape == (700, 0)


def test_a_read_only_classifier_is_neither_copied_nor_compiled_for_again():
    classifier, features, labels = drawn()
    writable = LabelVectors(classifier.vectors.copy(), classifier.bias.copy())
    expected = writable.logits(features, labels)
    n_compiled = len(label_logits.signatures)
    mapped = {name: array.copy() for name, array in writable.to_arrays().items()}
    for array in (*mapped.values(), features, labels):
        array.flags.writeable = False
    opened = LabelVectors(**mapped)
    assert opened.logits(features, labels).tobytes() == expected.tobytes()
    assert len(label_logits.signatures) == n_compiled
    assert np.shares_memory(opened.vectors, mapped["vectors"])
