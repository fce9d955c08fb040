"""napkinXC: probabilistic label trees, one or several."""
# mypy: disable-error-code="import-not-found"
# (napkinxc is in the environment that this worker runs in, not in longtail's.)

from __future__ import annotations

from typing import Any

from napkinxc.models import PLT

from .measuring import Job, Ranked, ranked_pairs, run_worker

Rows = list[list[tuple[int, float]]]


def _model(job: Job) -> Any:
    """Return the model object, which wants its folder and its settings both times."""
    return PLT(str(job.model), threads=job.n_threads, seed=job.seed, **job.settings)


def train(job: Job, points: Any, labels: Any) -> None:
    """Train; fitting writes the model folder."""
    _model(job).fit(points, labels)


class Trees:
    """The model.

    An ensemble keeps its default `ens_on_the_trot`, which reads every tree from disk at each call:
    without it the second call crashes (napkinXC 0.7.2). So do not look at its latency alone.
    """

    def __init__(self, job: Job) -> None:
        self.model = _model(job)
        self.model.load()

    def batch(self, points: Any, k: int) -> Rows:
        rows: Rows = self.model.predict_proba(points, top_k=k)
        return rows

    def ranked(self, answer: Rows, k: int) -> Ranked:
        return ranked_pairs(answer, len(answer), k)

    def query(self, point: Any) -> Any:
        return point

    def one(self, query: Any, k: int) -> Rows:
        return self.batch(query, k)


if __name__ == "__main__":
    run_worker(train, Trees)
