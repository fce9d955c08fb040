"""LibMultiLabel: the linear tree."""
# mypy: disable-error-code="import-not-found, import-untyped"
# (libmultilabel is in the environment that this worker runs in, not in longtail's.)

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
from libmultilabel import linear

from .measuring import Job, Ranked, best_of_dense, labels_with_points, run_worker

CHUNK = 256  # points scored at a time: scores are dense, a column a label


def train(job: Job, points: Any, labels: Any) -> None:
    """Train, save."""
    np.random.seed(job.seed)  # noqa: NPY002 - the generator that its k-means draws from
    seen = labels_with_points(labels)  # its k-means can fail at labels without points
    model = linear.train_tree(labels[:, seen], points, verbose=False)
    job.model.mkdir()
    joblib.dump((model, seen), job.model / "model.pkl")


class Tree:
    """The model."""

    def __init__(self, job: Job) -> None:
        self.model, self.seen = joblib.load(job.model / "model.pkl")

    def batch(self, points: Any, k: int) -> Ranked:
        starts = range(0, points.shape[0], CHUNK)
        parts = [self.one(points[start : start + CHUNK], k) for start in starts]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def ranked(self, answer: Ranked, k: int) -> Ranked:
        del k
        ids, scores = answer
        ids[scores == 0], scores[scores == 0] = -1, -np.inf  # what the beam left out
        return ids, scores

    def query(self, point: Any) -> Any:
        return point

    def one(self, query: Any, k: int) -> Ranked:
        return best_of_dense(self.model.predict_values(query), k, self.seen)


if __name__ == "__main__":
    run_worker(train, Tree)
