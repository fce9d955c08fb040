"""PECOS: XR-Linear, with one tree over the labels, or one-vs-all without any."""
# mypy: disable-error-code="import-not-found"
# (pecos is in the environment that this worker runs in, not in longtail's.)

from __future__ import annotations

from typing import Any

from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from .measuring import Job, Ranked, ranked_matrix, run_worker


def train(job: Job, points: Any, labels: Any) -> None:
    """Cluster the labels by their points (PIFA), train, save."""
    tree = None
    if not job.settings["one_vs_all"]:
        embeddings = LabelEmbeddingFactory.create(labels, points, threads=job.n_threads)
        tree = Indexer.gen(embeddings, seed=job.seed, threads=job.n_threads)
    model = XLinearModel.train(points, labels.tocsc(), C=tree, threads=job.n_threads)
    model.save(str(job.model))


class XRLinear:
    """The model, loaded for prediction only, which is its fast form."""

    def __init__(self, job: Job) -> None:
        self.model = XLinearModel.load(str(job.model), is_predict_only=True)
        self.n_threads = job.n_threads

    def batch(self, points: Any, k: int) -> Any:
        return self.model.predict(points, only_topk=k, threads=self.n_threads)

    def ranked(self, answer: Any, k: int) -> Ranked:
        return ranked_matrix(answer, k)

    def query(self, point: Any) -> Any:
        return point

    def one(self, query: Any, k: int) -> Any:
        return self.model.predict(query, only_topk=k, threads=1)


if __name__ == "__main__":
    run_worker(train, XRLinear)
