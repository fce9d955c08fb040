"""Milliseconds from one text to label names, on one thread, from Python; texts a second of batches.

python -m benchmarks.latency model test.jsonl.gz
"""

from __future__ import annotations

import random
import time
import warnings
from typing import TYPE_CHECKING

import numpy as np

import longtail
from benchmarks.command import parser_of, positive, run
from longtail.data import Dataset, InputWarning
from longtail.errors import InputError
from longtail.kernels.jit import n_usable_cores

if TYPE_CHECKING:
    from longtail.data.label_space import LabelSpace


def main() -> None:
    """Answer texts one by one and print the distribution of times; then all at once."""
    parser = parser_of(__doc__)
    parser.add_argument("model", metavar="MODEL", help="a folder that `longtail train` wrote")
    parser.add_argument("test", metavar="TEST", help="texts, in any format of `longtail train`")
    parser.add_argument(
        "--n-texts",
        type=positive(int),
        default=5000,
        metavar="N",
        help="ask the first so many (5000)",
    )
    parser.add_argument(
        "--k", type=positive(int), default=5, metavar="N", help="labels of a text (5)"
    )
    parser.add_argument(
        "--allowed",
        type=positive(int),
        metavar="N",
        help="hold the answers to one text to so many labels, drawn at random",
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)

    started = time.perf_counter()
    model = longtail.load(arguments.model)
    loaded = time.perf_counter()
    test = Dataset.read(
        arguments.test, label_space=model.label_space, unknown_labels="extend"
    ).texts
    if test is None:
        raise InputError("This benchmark needs points with texts.")
    texts = list(test)[: arguments.n_texts]
    allowed = drawn_names(model.label_space, arguments.allowed)
    model.predict(texts[0])
    print(f"load: {(loaded - started) * 1e3:.0f} ms")
    for text in texts[:500]:
        model.predict(text, allowed=allowed)

    milliseconds = []
    for text in texts:
        before = time.perf_counter()
        model.predict(text, k=arguments.k, allowed=allowed)
        milliseconds.append((time.perf_counter() - before) * 1e3)
    print("| texts | median ms | p95 ms | p99 ms |\n|---|---|---|---|")
    p50, p95, p99 = np.percentile(milliseconds, [50, 95, 99])
    print(f"| {len(texts)} | {p50:.3f} | {p95:.3f} | {p99:.3f} |")
    for n_threads in sorted({1, n_usable_cores()}):
        seconds = []
        for _ in range(3):
            before = time.perf_counter()
            model.predict_topk(texts, arguments.k, n_threads=n_threads)
            seconds.append(time.perf_counter() - before)
        print(f"batch, {n_threads} threads: {len(texts) / np.median(seconds):,.0f} texts a second")


def drawn_names(space: LabelSpace, n: int | None) -> list[str] | None:
    """Return the names of some labels, or None for all.

    Examples
    --------
    >>> from benchmarks.latency import drawn_names
    >>> from longtail.data.label_space import LabelSpace
    >>> drawn_names(LabelSpace.from_names(["wine", "beer"]), 2)
    ['beer', 'wine']
    """
    if n is None:
        return None
    if n > space.n_labels:
        raise InputError(f"The model has {space.n_labels:,} labels. Use no more for --allowed.")
    labels = random.Random(0).sample(range(space.n_labels), n)
    return [space.name(label) for label in labels]


if __name__ == "__main__":
    run(main)
