"""longtail: trained by its command line on the user's own file, served from Python."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from .measuring import Job, Ranked, run_worker


def train(job: Job, points: Any, labels: Any) -> None:
    """Run ``longtail train``, which reads, vectorises, trains and saves."""
    del points, labels
    command = [sys.executable, "-m", "longtail", "train", job.train_file]
    command += ["--model", job.model_folder, "--recipe", job.settings["recipe"]]
    command += ["--seed", str(job.seed)]
    command += ["--labels", job.labels_file] if job.labels_file else []
    command += ["--filter", job.filter_file] if job.filter_file else []
    command += ["--set", *job.settings["set"]] if "set" in job.settings else []
    if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
        sys.exit(1)  # it has said why


class Served:
    """The predictor, from texts where the data set has texts."""

    def __init__(self, job: Job) -> None:
        import longtail  # not at the top: training needs none of it in this process

        self.model = longtail.load(job.model)

    def batch(self, points: Any, k: int) -> Ranked:
        ids, scores = self.model.predict_topk(points, k)
        return ids, scores

    def ranked(self, answer: Ranked, k: int) -> Ranked:
        del k
        return answer

    def query(self, point: Any) -> Any:
        return [point] if isinstance(point, str) else point

    def one(self, query: Any, k: int) -> Ranked:
        return self.batch(query, k)


if __name__ == "__main__":
    run_worker(train, Served)
