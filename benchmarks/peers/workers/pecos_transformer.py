"""PECOS: XR-Transformer, from texts and their features, around a transformer in a local folder."""
# mypy: disable-error-code="import-not-found"
# (pecos and transformers are in the environment that this worker runs in, not in longtail's.)

from __future__ import annotations

from typing import Any

from pecos.utils.torch_util import set_seed
from pecos.xmc.xtransformer.model import XTransformer
from pecos.xmc.xtransformer.module import MLProblemWithText
from transformers import AutoTokenizer

from .measuring import Job, Ranked, TextsWithFeatures, ranked_matrix, run_worker

LONGEST = 128  # pieces of a text that are read, the default of its command
BATCH_SIZE = 32  # the command's default, too; that of the Python call is 8, four times the steps


def train(job: Job, points: TextsWithFeatures, labels: Any) -> None:
    """Fine-tune the transformer level by level, train the ranker on both kinds of features, save.

    All settings are the defaults of `python -m pecos.xmc.xtransformer.train`, but texts are filled
    up to the longest of them rather than to 128 pieces: what fills them up is not attended to.
    """
    set_seed(job.seed)
    settings = {
        "model_shortcut": job.settings["encoder"],
        "batch_size": BATCH_SIZE,
        "batch_gen_workers": job.n_threads,
        "truncate_length": _longest(job.settings["encoder"], points.texts),
        "seed": job.seed,
        "threads": job.n_threads,
        "use_gpu": False,
    }
    model = XTransformer.train(
        MLProblemWithText(points.texts, labels.tocsr(), X_feat=points.features),
        train_params=XTransformer.TrainParams.from_dict(settings, recursive=True),
        pred_params=XTransformer.PredParams.from_dict(settings, recursive=True),
        threads=job.n_threads,
    )
    model.save(str(job.model))


def _longest(encoder: str, texts: list[str]) -> int:
    """Return how many pieces the longest text has, as far as it is read."""
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    pieces = tokenizer(texts, truncation=True, max_length=LONGEST)["input_ids"]
    return max(map(len, pieces))


class XRTransformer:
    """The model, its ranker loaded for prediction only, which is its fast form."""

    def __init__(self, job: Job) -> None:
        self.model = XTransformer.load(str(job.model), is_predict_only=True)
        self.n_threads = job.n_threads

    def batch(self, points: TextsWithFeatures, k: int) -> Any:
        return self._answer(points, k, BATCH_SIZE)

    def ranked(self, answer: Any, k: int) -> Ranked:
        return ranked_matrix(answer, k)

    def query(self, point: TextsWithFeatures) -> TextsWithFeatures:
        return point

    def one(self, query: TextsWithFeatures, k: int) -> Any:
        return self._answer(query, k, 1)

    def _answer(self, points: TextsWithFeatures, k: int, batch_size: int) -> Any:
        """Answer in this process: to start others for reading takes longer than a text."""
        return self.model.predict(
            points.texts,
            points.features,
            only_topk=k,
            batch_size=batch_size,
            batch_gen_workers=0,
            use_gpu=False,
            threads=self.n_threads,
        )


if __name__ == "__main__":
    run_worker(train, XRTransformer)
