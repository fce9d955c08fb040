"""A model with a transformer as it is trained, exported to ONNX, and distilled.

python -m benchmarks.transformer_serving --data FOLDER --encoder FOLDER

Trains X-Transformer on --points of the training points in FOLDER and asks --test-points of its
test points, all on one core. `--dev` asks other training points.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from benchmarks.command import heading, parser_of, positive, run
from benchmarks.data_folder import drawn_points
from longtail.data import InputWarning
from longtail.distillation import distilled
from longtail.metrics import precision_at_k
from longtail.recipes.xtransformer import XTransformer
from longtail.scorers.inner_transformers import transformers_of

if TYPE_CHECKING:
    from longtail import Dataset, Predictor

KS = (1, 3, 5)
N_TIMED = 200


def main() -> None:
    """Print a row for each way to serve."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="holds train.*, test.* and perhaps labels.*",
    )
    parser.add_argument(
        "--encoder", required=True, metavar="FOLDER", help="of a pretrained transformer"
    )
    parser.add_argument(
        "--points", type=positive(int), default=20_000, metavar="N", help="to train on (20000)"
    )
    parser.add_argument(
        "--test-points", type=positive(int), default=3000, metavar="N", help="to ask (3000)"
    )
    parser.add_argument("--dev", action="store_true", help="ask other training points")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    n_points = arguments.points, arguments.test_points
    train, test = drawn_points(arguments.data, *n_points, dev=arguments.dev)
    settings: dict[str, Any] = {"held_out": 0.0, "n_threads": 1}
    model = XTransformer(encoder=arguments.encoder, **settings).fit_dataset(train).predictor_
    torch.set_num_threads(1)
    times_and_size = "a text, ms", "a text of a batch, ms", "its size, MB"
    print(heading("served by", "P@1", "P@3", "P@5", *times_and_size))
    print(_row("torch", model, test), flush=True)
    for dtype in ("float32", "int8"):
        print(_row(f"ONNX Runtime, {dtype}", model.compressed(dtype), test), flush=True)
    started = time.process_time()
    student, cosine = distilled(model.compressed("float32"), [*(train.texts or ())], 1)
    seconds = time.process_time() - started
    print(_row("token vectors", student, test), flush=True)
    print(
        f"Cosine of token vectors to the transformer: {cosine:.3f}. Distilled in {seconds:.0f} s."
    )


def _row(name: str, model: Predictor, test: Dataset) -> str:
    """Return what one way to serve gets right, and what it takes."""
    texts = [*(test.texts or ())]
    model.predict_topk(texts[:2], max(KS), n_threads=1)
    started = time.process_time()
    ids, _ = model.predict_topk(texts, max(KS), n_threads=1)
    of_batch = 1000 * (time.process_time() - started) / len(texts)
    times = []
    for text in texts[:N_TIMED]:
        started = time.process_time()
        model.predict_topk([text], max(KS))
        times.append(time.process_time() - started)
    values = [100 * precision_at_k(ids, test.labels, k) for k in KS]
    cells = " | ".join(f"{value:.2f}" for value in values)
    size = sum(array.nbytes for array in _encoder_arrays(model)) / 1e6
    return f"| {name} | {cells} | {1000 * median(times):.2f} | {of_batch:.2f} | {size:.0f} |"


def _encoder_arrays(model: Predictor) -> list[Any]:
    """Return what the encoder is made of."""
    scorer: Any = model.scorer
    encoders: list[Any] = [*transformers_of(scorer)] or [scorer.join.encoder]
    return [array for encoder in encoders for array in encoder.to_arrays().values()]


if __name__ == "__main__":
    run(main)
