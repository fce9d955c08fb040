"""Labels with one example each, as somebody writes them, or two, or none but a text."""

from __future__ import annotations

import string

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array, vstack

from longtail.data.dataset import Dataset
from longtail.data.label_space import LabelSpace
from longtail.data.text_column import TextColumn
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.ngame import NGAME

N = 500


def made_up():
    """Texts of labels, two words of 150 and one of its own, and what asks for each label.

    A question has two of the words, and three that are nobody else's.
    """
    random = np.random.default_rng(0)

    def words(n):
        return ["".join(random.choice([*string.ascii_lowercase], 6)) for _ in range(n)]

    shared = words(150)
    texts = [[*random.choice(shared, 2, replace=False), *words(1)] for _ in range(2 * N)]
    return texts, [[*random.permutation(text)[:2], *words(3)] for text in texts]


def labels_of(texts):
    """Labels that are known by their texts, too."""
    return LabelSpace.from_names((f"name{i}" for i in range(len(texts))), map(" ".join, texts))


def found_by(model, questions):
    """Return which labels are found by what asks for them, less its first word."""
    ids, _ = model.predict_topk([" ".join(question[1:]) for question in questions], 1)
    return ids[:, 0] == np.arange(len(questions))


@pytest.mark.parametrize("recipe", [LongtailClassifier(), NGAME(encoder_epochs=4)])
def test_what_has_an_example_and_what_has_a_text_alone_are_both_found(recipe):
    texts, questions = made_up()
    points = TextColumn.from_strings(map(" ".join, questions[:N]))
    labels = eye_array(N, 2 * N, format="csr", dtype=np.float32)
    found = found_by(recipe.fit_dataset(Dataset(points, None, labels, labels_of(texts))), questions)
    assert found[:N].mean() > 0.9
    assert found[N:].mean() > 0.2


@pytest.mark.thorough
def test_what_is_nearly_one_of_two_examples_is_known():
    """Those held out are not: of no label do two examples say the same."""
    texts, questions = made_up()
    own = [[f"{kind}{i}" for kind in ("some", "more", "other", "last")] for i in range(2 * N)]
    points = TextColumn.from_strings(map(" ".join, own + questions))
    labels = csr_array(vstack([eye_array(2 * N, dtype=np.float32)] * 2))
    model = LongtailClassifier().fit_dataset(Dataset(points, None, labels, labels_of(texts)))
    assert found_by(model, own).mean() > 0.9
