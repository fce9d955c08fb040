"""A cut of the dictionary that comes with the project: points of its most frequent labels."""

from __future__ import annotations

from functools import cache

import numpy as np

from longtail.data.dataset import Dataset
from longtail.data.label_space import LabelSpace
from longtail.data.text_column import TextColumn
from longtail.demo.data import wordnet

# To read it takes a second: once for all tests of a process, none of which changes it.
whole_wordnet = cache(wordnet)


def cut(dataset, labels, n_points):
    """The first points that have one of some labels, with those labels and their names."""
    matrix = dataset.labels[:, labels]
    rows = np.flatnonzero(np.diff(matrix.indptr))[:n_points]
    texts = TextColumn.from_strings(dataset.texts[int(row)] for row in rows)
    names = LabelSpace.from_names(dataset.label_space.name(int(label)) for label in labels)
    return Dataset(texts, None, matrix[rows], names)


def small_wordnet(n_train, n_test, n_labels=300):
    """Training and test points."""
    train, test = whole_wordnet()
    counts = np.asarray(train.labels.sum(axis=0)).ravel()
    labels = np.sort(np.argsort(-counts, kind="stable")[:n_labels])
    return cut(train, labels, n_train), cut(test, labels, n_test)
