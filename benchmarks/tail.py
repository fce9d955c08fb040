"""What `tail` of the default recipe trades: precision against propensity-scored precision.

python -m benchmarks.tail train.jsonl.gz --labels labels.txt.gz

A tenth of the training points is kept from the training and measured. One model is trained, since
`tail` is added to finished scores. No test data is read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from benchmarks.command import heading, run
from benchmarks.kept_back import split_as_asked
from longtail import LongtailClassifier
from longtail.compiled.expanded import expanded

if TYPE_CHECKING:
    from longtail.compiled.scorer import CompiledScorer

TAILS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def main() -> None:
    """Train once, and measure each tail."""
    train, points, seed = split_as_asked(__doc__)
    model = LongtailClassifier(tail=1.0, random_state=seed).fit_dataset(train).predictor_
    scorer = expanded(cast("CompiledScorer", model.scorer))
    print(heading("`tail`", *METRICS))
    for tail in TAILS:
        weights = (tail * scorer.tail_weights).astype(np.float32)
        found = model.with_scorer(replace(scorer, tail_weights=weights)).evaluate(points)
        print(f"| {tail} |" + "".join(f" {found[metric]:.2f} |" for metric in METRICS), flush=True)


if __name__ == "__main__":
    run(main)
