"""The made set: files that the readers take, and labels that the texts tell something of."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import made_titles
from benchmarks.paper.scale import Shape

from longtail import Dataset


@pytest.mark.filterwarnings("ignore::longtail.data.InputWarning")
def test_a_made_set_is_read_and_is_the_same_again(tmp_path):
    for folder in ("one", "two"):
        made_titles.main([str(tmp_path / folder), "--labels", "120", "--points", "90"])
    own = tmp_path / "one"
    train = Dataset.read(own / "train.jsonl.gz", labels_file=own / "labels.txt.gz")
    space = train.label_space
    test = Dataset.read(own / "test.jsonl.gz", label_space=space)
    assert (space.n_labels, train.n_points, test.n_points) == (120, 90, 90)
    assert space.names_are_unique
    words = set(" ".join(train.texts).split())
    shared = [words & set(name.split()[:2]) for name in space.names]
    assert sum(map(bool, shared)) > 100
    again = Dataset.read(tmp_path / "two" / "train.jsonl.gz", label_space=space)
    assert list(again.texts) == list(train.texts)


def test_topics_of_a_field_share_words():
    shape = Shape(100, 5000, 1200, 100, 3.0, 8.0)
    world = made_titles.Fields(shape, np.random.default_rng(0))
    of_topic = [set(own) for own in world.own_tokens.tolist()]
    assert len(of_topic) == 100
    within = [len(of_topic[i] & of_topic[i + 1]) for i in range(0, 100, 10)]  # ten a field
    between = [len(of_topic[i] & of_topic[i + 50]) for i in range(50)]
    assert np.mean(within) > 5 * np.mean(between)
