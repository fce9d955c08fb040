"""How far the vectors that tokens start from go alone, by what they are made of.

`BagOfTokens` starts from sums of random vectors of the targets that a token's points have, so a
surrogate task acts before its first step. Here nothing is trained: points are encoded by the
starting vectors, and the labels with the nearest centroids of training points are answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, eye_array, vstack

from longtail import TextVectorizer
from longtail.data.bags import Bags
from longtail.errors import InputError
from longtail.features.bag_encoder import BagEncoder
from longtail.features.sketches import sketched_vectors
from longtail.index import ExactIndex
from longtail.metrics import precision_at_k, recall_at_k
from longtail.surrogates.assignments import LabelSelection, RandomHashing
from longtail.surrogates.label_clusters import meta_labels
from longtail.surrogates.rows import binary, unit_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longtail import Dataset

__all__ = ["starts"]

BUCKETS = (4096, 256)


def starts(train: Dataset, test: Dataset, settings: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each kind of targets: P@1 and R@100 of the test points.

    Parameters
    ----------
    train, test : Dataset
        With texts.
    settings : dict
        `dimension` and `random_state`, if they are to be others than 256 and 0.
    """
    if train.texts is None or test.texts is None:
        raise InputError("`starts` needs points with texts.")
    seed, dimension = settings.get("random_state", 0), settings.get("dimension", 256)
    vectorizer = TextVectorizer(char_ngrams=None).fit(train.texts)
    features, of_test = vectorizer.transform(train.texts), vectorizer.transform(test.texts)
    used = np.flatnonzero(train.labels.sum(axis=0))
    labels = train.labels[:, used]
    yield "| targets of the starting vectors | P@1 | R@100 |"
    yield "|---|---|---|"
    for name, (points, targets) in _targets(features, labels, seed).items():
        encoder = BagEncoder(sketched_vectors(points, targets, dimension, seed))
        known, asked = encoder.encode(Bags.of(features)), encoder.encode(Bags.of(of_test))
        centroids = labels.T @ (known / np.maximum(np.linalg.norm(known, axis=1)[:, None], 1e-9))
        centroids /= np.maximum(np.linalg.norm(centroids, axis=1)[:, None], 1e-9)
        found, _ = ExactIndex(np.ascontiguousarray(centroids, np.float32)).query(asked, 100)
        ids = np.append(used, -1)[found].astype(np.int32)  # -1 stays -1
        values = precision_at_k(ids, test.labels, 1), recall_at_k(ids, test.labels, 100)
        yield f"| {name} | " + " | ".join(f"{100 * value:.2f}" for value in values) + " |"


def _targets(
    features: csr_array, labels: csr_array, seed: int
) -> dict[str, tuple[csr_array, csr_array]]:
    """Return points and what tokens start from, by name."""
    one_each = csr_array(eye_array(features.shape[1], dtype=np.float32))
    found = {"none: random vectors": (one_each, one_each)}
    for n_buckets in BUCKETS:
        buckets = RandomHashing(n_meta_labels=n_buckets).assign(
            features, labels, seed=seed, n_threads=1
        )
        targets = meta_labels(labels, buckets, int(buckets.max()) + 1)
        found[f"{n_buckets:,} random buckets"] = (features, targets)
    selected = LabelSelection().assign(features, labels, seed=seed, n_threads=1)
    found["the selected labels"] = (
        features,
        meta_labels(labels, selected, int(selected.max()) + 1),
    )
    found["the labels themselves"] = (features, labels)
    is_first = np.random.default_rng(seed).random(features.nnz) < 0.5
    first, second = (_part(features, kept) for kept in (is_first, ~is_first))
    halves = unit_rows(vstack([first, second]).tocsr())
    others = binary(vstack([second, first]).tocsr()).astype(np.float32)
    return {**found, "self-supervised: the other half of the tokens": (halves, others)}


def _part(features: csr_array, is_kept: np.ndarray[Any, Any]) -> csr_array:
    """Return the entries that are kept."""
    part = features.copy()
    part.data *= is_kept
    part.eliminate_zeros()
    return part
