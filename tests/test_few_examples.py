"""Labels of which half have one example each, as somebody writes them, and the others a text."""

from __future__ import annotations

import string

import numpy as np
import pytest
from scipy.sparse import eye_array

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


@pytest.mark.parametrize("recipe", [LongtailClassifier(), NGAME(encoder_epochs=4)])
def test_what_has_an_example_and_what_has_a_text_alone_are_both_found(recipe):
    texts, questions = made_up()
    names = [f"name{i}" for i in range(2 * N)]
    space = LabelSpace.from_names(names, [" ".join(text) for text in texts])
    points = TextColumn.from_strings(map(" ".join, questions[:N]))
    labels = eye_array(N, 2 * N, format="csr", dtype=np.float32)
    model = recipe.fit_dataset(Dataset(points, None, labels, space))
    ids, _ = model.predict_topk([" ".join(question[1:]) for question in questions], 1)
    is_right = ids[:, 0] == np.arange(2 * N)
    assert is_right[:N].mean() > 0.9
    assert is_right[N:].mean() > 0.2
