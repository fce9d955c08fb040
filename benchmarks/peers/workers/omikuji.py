"""omikuji: Parabel and Bonsai, three trees. Reads its training data from a text file only."""
# mypy: disable-error-code="import-not-found"
# (omikuji is in the environment that this worker runs in, not in longtail's.)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import omikuji

from .measuring import Job, Ranked, ranked_pairs, run_worker

if TYPE_CHECKING:
    from pathlib import Path

Pairs = list[tuple[int, float]]


def write(job: Job, points: Any, labels: Any) -> None:
    """Write the file, without points that have no features, which omikuji cannot read."""
    kept = np.flatnonzero(np.diff(points.indptr))
    with _file(job).open("w", encoding="ascii") as file:
        file.write(f"{kept.size} {points.shape[1]} {labels.shape[1]}\n")
        for row in kept.tolist():
            ids = ",".join(map(str, labels.indices[labels.indptr[row] : labels.indptr[row + 1]]))
            file.write(f"{ids} {' '.join(f'{i}:{value:.7g}' for i, value in pairs(points, row))}\n")


def train(job: Job, points: Any, labels: Any) -> None:
    """Train, save."""
    del points, labels
    parameters = omikuji.Model.default_hyper_param()
    for name, value in job.settings.items():
        setattr(parameters, name, value)
    path = str(_file(job))
    omikuji.Model.train_on_data(path, parameters, n_threads=job.n_threads).save(job.model_folder)


def pairs(points: Any, row: int) -> Pairs:
    """Return one row as (feature, value)."""
    entries = slice(points.indptr[row], points.indptr[row + 1])
    return list(zip(points.indices[entries].tolist(), points.data[entries].tolist(), strict=True))


def _file(job: Job) -> Path:
    """Return where the training data is written."""
    return job.scratch / "train.txt"


class Trees:
    """The model; it answers one point a call, so a batch is a loop."""

    def __init__(self, job: Job) -> None:
        self.model = omikuji.Model.load(str(job.model))
        self.model.init_prediction_thread_pool(job.n_threads)

    def batch(self, points: Any, k: int) -> list[Pairs]:
        return [self.model.predict(pairs(points, i), top_k=k) for i in range(points.shape[0])]

    def ranked(self, answer: list[Pairs], k: int) -> Ranked:
        return ranked_pairs(answer, len(answer), k)

    def query(self, point: Any) -> Pairs:
        return pairs(point, 0)

    def one(self, query: Pairs, k: int) -> Pairs:
        answer: Pairs = self.model.predict(query, top_k=k)
        return answer


if __name__ == "__main__":
    run_worker(train, Trees, write)
