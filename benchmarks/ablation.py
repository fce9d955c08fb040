"""What each part of a recipe adds: train with and without it, and print one table.

    python -m benchmarks.ablation train.jsonl.gz --labels labels.txt.gz --known-labels
    python -m benchmarks.ablation train.jsonl.gz test.jsonl.gz --labels labels.txt.gz --recipe astec

A tenth of the training points is kept from the training and asked, by which it can be decided what
pays for its time. With a test set, all are trained on, and that is asked.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

from benchmarks.command import chosen, heading, run
from benchmarks.kept_back import split_of, training_parser
from longtail import Dataset
from longtail.data import InputWarning
from longtail.errors import InputError
from longtail.recipes.names import recipe

if TYPE_CHECKING:
    import argparse

VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "longtail": {
        "default": {},
        "in two epochs": {"epochs": 2},
        "in one epoch": {"epochs": 1},
        "without label texts": {"label_texts": False},
        "without near points": {"n_near_points": 0},
        "without pairs of words": {"word_ngrams": 1},
        "without character n-grams": {"char_ngrams": None},
        "without dropout": {"dropout": 0.0},
        "without the weight of the tail": {"tail": 0.0},
        "with 128 dimensions": {"dimension": 128},
        "twice the candidates": {"n_near_labels": 60, "n_voted": 40},
        "kept in 32 bits": {"storage": "float32"},
    },
    "astec": {
        "default": {},
        "without the re-ranker": {"reranker": False},
        "without the label-correlation walk": {"label_correlation": False, "reranker": False},
        "with 20 representatives for labels of 50 points": {
            "n_representatives": 20,
            "head_frequency": 50,
            "reranker": False,
        },
        "without near points (Slice's shortlist)": {"n_near_points": 0, "reranker": False},
        "as in the published code": {"as_in_code": True},
        "Astec-3": {"n_learners": 3},
    },
}
COLUMNS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "R@100")


def main() -> None:
    """Train and evaluate each variant."""
    parser = training_parser(__doc__)
    parser.add_argument("test", metavar="TEST", nargs="?", help="points to ask, in any such format")
    parser.add_argument(
        "--recipe", choices=VARIANTS, default="longtail", help="whose parts (longtail)"
    )
    parser.add_argument("--variants", nargs="*", metavar="NAME", help="only these; all by default")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    variants = VARIANTS[arguments.recipe]
    names = chosen(arguments.variants, variants, "variant")
    train, asked = split_of(arguments) if arguments.test is None else _with_test(arguments)
    print(heading("variant", *COLUMNS, "training, s", "CPU s"))
    for name in names:
        started, cpu_started = time.perf_counter(), time.process_time()
        estimator = recipe(arguments.recipe)(random_state=arguments.seed, **variants[name])
        model = estimator.fit_dataset(train)
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
        metrics = model.evaluate(asked)
        cells = " | ".join(f"{metrics[column]:.2f}" for column in COLUMNS)
        print(f"| {name} | {cells} | {seconds:.0f} | {cpu_seconds:.0f} |", flush=True)


def _with_test(arguments: argparse.Namespace) -> tuple[Dataset, Dataset]:
    """Return the training set, all of it, and the test set."""
    if arguments.points is not None or arguments.known_labels:
        raise InputError(
            "--points and --known-labels belong to the tenth of the training points that is asked "
            "where there is no TEST. Omit them, or TEST."
        )
    train = Dataset.read(arguments.train, labels_file=arguments.labels)
    test = Dataset.read(
        arguments.test,
        labels_file=arguments.labels,
        label_space=None if arguments.labels else train.label_space,
        unknown_labels="extend",
    )
    return train, test


if __name__ == "__main__":
    run(main)
