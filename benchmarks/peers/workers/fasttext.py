"""fastText, supervised, from texts."""
# mypy: disable-error-code="import-not-found"
# (fasttext is in the environment that this worker runs in, not in longtail's.)

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import fasttext

from .measuring import Job, Ranked, ranked_pairs, run_worker

if TYPE_CHECKING:
    from pathlib import Path

LABEL = "__label__"
LEAST_RATE = 0.02
PUNCTUATION = re.compile(r"([^\w\s])")
Answer = tuple[list[list[str]], list[Any]]


def prepared(text: str) -> str:
    """Lower the case and set punctuation off by blanks, as the tutorial does."""
    return " ".join(PUNCTUATION.sub(r" \1 ", text.lower()).split())


def write(job: Job, points: list[str], labels: Any) -> None:
    """Write the file."""
    with _file(job).open("w", encoding="utf-8") as file:
        for row, text in enumerate(points):
            ids = labels.indices[labels.indptr[row] : labels.indptr[row + 1]]
            file.write(f"{' '.join(f'{LABEL}{i}' for i in ids)} {prepared(text)}\n")


def train(job: Job, points: list[str], labels: Any) -> None:
    """Train, save."""
    del points, labels
    job.model.mkdir()
    _trained(job, job.settings["lr"]).save_model(str(job.model / "model.bin"))


def _trained(job: Job, rate: float) -> Any:
    """Train, at half the rate where it diverges, which the tutorial expects of one-vs-all."""
    settings = job.settings | {"lr": rate, "thread": job.n_threads, "seed": job.seed, "verbose": 0}
    try:
        return fasttext.train_supervised(str(_file(job)), **settings)
    except RuntimeError as error:
        if "NaN" not in str(error) or rate < LEAST_RATE:
            raise
    return _trained(job, rate / 2)


def _file(job: Job) -> Path:
    """Return where the training data is written."""
    return job.scratch / "train.txt"


class FastText:
    """The model."""

    def __init__(self, job: Job) -> None:
        self.model = fasttext.load_model(str(job.model / "model.bin"))

    def batch(self, points: list[str], k: int) -> Answer:
        answer: Answer = self.model.predict([prepared(text) for text in points], k=k)
        return answer

    def ranked(self, answer: Answer, k: int) -> Ranked:
        rows = (
            [(int(name.removeprefix(LABEL)), score) for name, score in zip(*row, strict=True)]
            for row in zip(*answer, strict=True)
        )
        return ranked_pairs(rows, len(answer[0]), k)

    def query(self, point: str) -> str:
        return point

    def one(self, query: str, k: int) -> Any:
        return self.model.predict(prepared(query), k=k)


if __name__ == "__main__":
    run_worker(train, FastText, write)
