"""scikit-learn: one-vs-rest with linear SVMs, or the nearest neighbours."""
# mypy: disable-error-code="import-untyped"

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
from scipy.sparse import csr_matrix
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import LinearSVC

from .measuring import (
    Job,
    Ranked,
    best_of_dense,
    labels_with_points,
    ranked_matrix,
    run_worker,
)

CHUNK = 1024  # points scored at a time: one-vs-rest scores are dense, a column a label


class OneVsRest:
    """A linear SVM a label, on the labels that have points."""

    def __init__(self, job: Job, points: Any, labels: Any) -> None:
        self.seen = labels_with_points(labels)
        classifier = OneVsRestClassifier(LinearSVC(random_state=job.seed), n_jobs=job.n_threads)
        with joblib.parallel_config(backend="threading"):  # liblinear lets go of the lock
            # int64: with int8, scikit-learn 1.9.1 learns nonsense above 127 labels.
            self.classifier = classifier.fit(points, labels[:, self.seen].astype(np.int64))

    def answer(self, points: Any, k: int) -> Ranked:
        starts = range(0, points.shape[0], CHUNK)
        parts = [
            best_of_dense(self.classifier.decision_function(points[i : i + CHUNK]), k, self.seen)
            for i in starts
        ]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


class Neighbours:
    """The labels of the nearest training points, weighted by cosine similarity."""

    def __init__(self, job: Job, points: Any, labels: Any) -> None:
        self.labels = labels
        self.index = NearestNeighbors(
            n_neighbors=min(job.settings["n_neighbours"], points.shape[0]),
            metric="cosine",
            n_jobs=job.n_threads,
        ).fit(points)

    def answer(self, points: Any, k: int) -> Ranked:
        distances, neighbours = self.index.kneighbors(points)
        starts = np.arange(points.shape[0] + 1) * neighbours.shape[1]
        shape = (points.shape[0], self.labels.shape[0])
        similarity = csr_matrix((1 - distances.ravel(), neighbours.ravel(), starts), shape)
        return ranked_matrix(csr_matrix(similarity @ self.labels), k)


def train(job: Job, points: Any, labels: Any) -> None:
    """Train, save."""
    kind = OneVsRest if job.settings["one_vs_rest"] else Neighbours
    job.model.mkdir()
    joblib.dump(kind(job, points, labels), job.model / "model.joblib")


class Loaded:
    """The model."""

    def __init__(self, job: Job) -> None:
        self.model = joblib.load(job.model / "model.joblib")

    def batch(self, points: Any, k: int) -> Ranked:
        answer: Ranked = self.model.answer(points, k)
        return answer

    def ranked(self, answer: Ranked, k: int) -> Ranked:
        del k
        return answer

    def query(self, point: Any) -> Any:
        return point

    def one(self, query: Any, k: int) -> Ranked:
        return self.batch(query, k)


if __name__ == "__main__":
    run_worker(train, Loaded)
