"""What `tail` of the default recipe trades: precision against propensity-scored precision.

python -m benchmarks.tail train.jsonl.gz --labels labels.txt.gz

A tenth of the training points is kept from the training and measured. One model is trained, since
`tail` is added to finished scores. No test data is read.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from longtail import Dataset, LongtailClassifier
from longtail.classifiers.expanded import expanded
from longtail.data import InputWarning

if TYPE_CHECKING:
    from longtail.classifiers.compiled import CompiledScorer

TAILS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def main() -> None:
    """Train once, and measure each tail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("--labels")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    data = Dataset.read(arguments.train, labels_file=arguments.labels)
    order = np.random.default_rng(arguments.seed).permutation(data.n_points)
    n_kept = data.n_points // 10
    points, train = data.take(np.sort(order[:n_kept])), data.take(np.sort(order[n_kept:]))

    model = LongtailClassifier(tail=1.0, random_state=arguments.seed).fit_dataset(train).predictor_
    scorer = expanded(cast("CompiledScorer", model.scorer))
    print("| `tail` |" + "".join(f" {metric} |" for metric in METRICS))
    print("|---" * (1 + len(METRICS)) + "|")
    for tail in TAILS:
        weights = (tail * scorer.tail_weights).astype(np.float32)
        found = model.with_scorer(replace(scorer, tail_weights=weights)).evaluate(points)
        print(f"| {tail} |" + "".join(f" {found[metric]:.2f} |" for metric in METRICS), flush=True)


if __name__ == "__main__":
    main()
