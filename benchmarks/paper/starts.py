"""What Astec's vectors know before any training, and what its batches hold before any mining.

`BagOfTokens` starts from sums of random vectors of the targets that a token's points have, so a
surrogate task acts before its first step. Here nothing is trained: points are encoded by the
starting vectors, and the labels with the nearest centroids of training points are answered
(`starts`); or it is counted how many of a point's nearest wrong labels its batch brings (`pools`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, eye_array, vstack

from benchmarks.command import heading
from longtail import TextVectorizer
from longtail.classifiers.shortlisted import ShortlistTraining
from longtail.data.bags import Bags
from longtail.data.rows import binary, unit_rows
from longtail.errors import InputError
from longtail.features.bag_encoder import BagEncoder
from longtail.features.sketches import sketched_vectors
from longtail.index import ExactIndex
from longtail.metrics import precision_at_k, recall_at_k
from longtail.negatives.samplers import UniformLabels
from longtail.scorers.ranking import padding_last
from longtail.surrogates.assignments import LabelSelection, RandomHashing
from longtail.surrogates.label_clusters import meta_labels
from longtail.training.batches import SharedPool
from longtail.training.neighbourhoods import neighbourhoods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from longtail import Dataset

    Floats = NDArray[np.float32]

__all__ = ["pools", "starts"]

BUCKETS = (4096, 256)
N_WRONG = 20


def starts(train: Dataset, test: Dataset, settings: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each kind of targets: P@1 and R@100 of the test points.

    Parameters
    ----------
    train, test : Dataset
        With texts.
    settings : dict
        `dimension` and `random_state`, if they are to be others than 256 and 0.
    """
    seed, dimension = settings.get("random_state", 0), settings.get("dimension", 256)
    features, of_test = _features(train, test)
    used = np.flatnonzero(train.labels.sum(axis=0))
    labels = train.labels[:, used]
    yield from heading("targets of the starting vectors", "P@1", "R@100").splitlines()
    for name, (points, targets) in _targets(features, labels, seed).items():
        encoder = BagEncoder(sketched_vectors(points, targets, dimension, seed))
        index = ExactIndex(_centroids(encoder.encode(Bags.of(features)), labels))
        found, _ = index.query(encoder.encode(Bags.of(of_test)), 100)
        ids = np.append(used, -1)[found].astype(np.int32)  # -1 stays -1
        values = precision_at_k(ids, test.labels, 1), recall_at_k(ids, test.labels, 100)
        yield f"| {name} | " + " | ".join(f"{100 * value:.2f}" for value in values) + " |"


def pools(train: Dataset, test: Dataset, settings: dict[str, Any]) -> Iterator[str]:
    """Yield how many of a point's nearest wrong labels the pool of its batch holds by chance.

    Parameters
    ----------
    train, test : Dataset
        With texts.
    settings : dict
        As for `starts`, and `batch_size`, 128 unless it is there.
    """
    seed, dimension = settings.get("random_state", 0), settings.get("dimension", 256)
    features, _ = _features(train, test)
    labels = train.labels[:, np.flatnonzero(train.labels.sum(axis=0))]
    encoder = BagEncoder(sketched_vectors(features, labels, dimension, seed))
    points = encoder.encode(Bags.of(features))
    wrong = _nearest_wrong(points, labels)
    drawn = UniformLabels(size=20).mine(None, points, labels, seed=seed, n_threads=1)  # type: ignore[arg-type]  # chance asks no shortlister
    in_pool = f"{N_WRONG} nearest wrong labels in the pool, %"
    yield from heading("batches", in_pool, "as true ones of others").splitlines()
    batch_size = settings.get("batch_size", 128)
    for name, size in (("neighbourhoods", 200), ("random points", 0)):
        groups = neighbourhoods(points, size, seed=seed, n_threads=1) if size else None
        batches = SharedPool(
            labels=labels,
            shortlists=drawn,
            batch_size=batch_size,
            n_hard=ShortlistTraining.n_hard,
            n_random=ShortlistTraining.n_random,
            groups=groups,
        )
        n_found = np.zeros(2)
        for batch in batches.epoch(np.random.default_rng(seed)):
            of_batch = wrong[batch.points]
            true = labels[batch.points].indices
            pool = np.zeros(0) if batch.pool is None else batch.pool
            n_found += [np.isin(of_batch, some).sum() for some in (pool, true)]
        shares = 100 * n_found / np.count_nonzero(wrong >= 0)
        yield f"| {name} | " + " | ".join(f"{share:.1f}" for share in shares) + " |"


def _features(train: Dataset, test: Dataset) -> tuple[csr_array, csr_array]:
    """Return bags of words and pairs of words, as Astec of Table 6 reads them."""
    if train.texts is None or test.texts is None:
        raise InputError("`starts` and `pools` need points with texts.")
    vectorizer = TextVectorizer(word_ngrams=2, char_ngrams=None, min_df=2).fit(train.texts)
    return vectorizer.transform(train.texts), vectorizer.transform(test.texts)


def _centroids(points: Floats, labels: csr_array) -> Floats:
    """Return the unit means of the unit points of each label."""
    unit = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9)
    means = labels.T @ unit
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    return np.ascontiguousarray(means, np.float32)


def _nearest_wrong(points: Floats, labels: csr_array) -> NDArray[np.int64]:
    """Return the labels with the nearest centroids that a point does not have, then -1."""
    most = int(np.diff(labels.indptr).max())
    found, _ = ExactIndex(_centroids(points, labels)).query(points, N_WRONG + most)
    n_points, n_labels = labels.shape
    pairs = np.repeat(np.arange(n_points), np.diff(labels.indptr)) * n_labels + labels.indices
    is_true = np.isin(np.arange(n_points)[:, None] * n_labels + found, pairs)
    (wrong,) = padding_last(np.where(is_true, -1, found))
    return wrong[:, :N_WRONG].astype(np.int64)


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
