"""What each part of a recipe adds: train with and without it, and print one table.

python -m benchmarks.ablation train.jsonl.gz test.jsonl.gz --labels labels.txt.gz
python -m benchmarks.ablation train.jsonl.gz test.jsonl.gz --labels labels.txt.gz --recipe astec
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from benchmarks.command import chosen, heading, parser_of, run
from longtail import Dataset
from longtail.data import InputWarning
from longtail.recipes.names import recipe

VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "longtail": {
        "default": {},
        "in two epochs": {"epochs": 2},
        "in one epoch": {"epochs": 1},
        "without label texts": {"label_texts": False},
        "without near points": {"n_near_points": 0},
        "without pairs of words": {"word_ngrams": 1},
        "without character n-grams": {"char_ngrams": None},
        "without the weight of the tail": {"tail": 0.0},
        "with 128 dimensions": {"dimension": 128},
        "twice the candidates": {"n_near_labels": 60, "n_voted": 40},
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
    parser = parser_of(__doc__)
    parser.add_argument(
        "train", metavar="TRAIN", help="points and their labels, in any format of `longtail train`"
    )
    parser.add_argument("test", metavar="TEST", help="points to ask, in any such format")
    parser.add_argument(
        "--labels", metavar="FILE", help="names of labels that are ids: line number = id"
    )
    parser.add_argument(
        "--recipe", choices=VARIANTS, default="longtail", help="whose parts (longtail)"
    )
    parser.add_argument("--variants", nargs="*", metavar="NAME", help="only these; all by default")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (0)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    variants = VARIANTS[arguments.recipe]
    names = chosen(arguments.variants, variants, "variant")
    train = Dataset.read(arguments.train, labels_file=arguments.labels)
    test = Dataset.read(
        arguments.test,
        labels_file=arguments.labels,
        label_space=None if arguments.labels else train.label_space,
        unknown_labels="extend",
    )
    print(heading("variant", *COLUMNS, "training, s", "CPU s"))
    for name in names:
        started, cpu_started = time.perf_counter(), time.process_time()
        estimator = recipe(arguments.recipe)(random_state=arguments.seed, **variants[name])
        model = estimator.fit_dataset(train)
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
        metrics = model.evaluate(test)
        cells = " | ".join(f"{metrics[column]:.2f}" for column in COLUMNS)
        print(f"| {name} | {cells} | {seconds:.0f} | {cpu_seconds:.0f} |", flush=True)


if __name__ == "__main__":
    run(main)
