"""How many labels of a point are among those with the nearest vectors, and with the largest logits.

    python -m benchmarks.found_labels train.jsonl.gz --labels labels.txt.gz --known-labels

A tenth of the training points is kept from the training, and 2,000 of these are asked: by exact
search, and all that the default recipe takes for candidates. No test data is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from benchmarks.command import run
from benchmarks.kept_back import split_as_asked
from longtail import LongtailClassifier
from longtail.compiled.expanded import expanded
from longtail.data.blocks import points_of
from longtail.index import ExactIndex
from longtail.kernels.jit import n_usable_cores
from longtail.metrics import recall_at_k

if TYPE_CHECKING:
    from longtail.compiled.scorer import CompiledScorer

MOST_ASKED = 2_000
N_FOUND = (10, 30)


def main() -> None:
    """Train, search, and print a table."""
    train, points, seed = split_as_asked(__doc__)
    model = LongtailClassifier(random_state=seed, storage="float32").fit_dataset(train).predictor_
    points = points.take(np.arange(min(points.n_points, MOST_ASKED)))
    bags = model.bags(points_of(points))
    scorer, n_threads = expanded(cast("CompiledScorer", model.scorer)), n_usable_cores()
    asked, head = scorer.encoder.encode(bags, n_threads), scorer.heads[0]
    known = np.flatnonzero(head.row_of_label >= 0)
    vectors, bias = head.vectors_of_labels()[known], head.bias_of_cosine()[known]
    print("| labels | the nearest vectors | the largest logits |\n|---|---|---|")
    for n in sorted({min(n, len(known)) for n in N_FOUND}):
        found = []
        for own in (None, bias):
            index = ExactIndex(vectors, bias=own, n_threads=n_threads)
            ids = known[index.query(asked, n)[0]]
            found.append(100 * recall_at_k(ids, points.labels, n))
        print(f"| {n} | {found[0]:.1f} | {found[1]:.1f} |", flush=True)
    labels = scorer.evidence(bags, n_threads).labels
    n_candidates = (labels >= 0).sum(axis=1).mean()
    share = 100 * recall_at_k(labels, points.labels, labels.shape[1])
    print(f"| all candidates, {n_candidates:.0f} | | {share:.1f} |")


if __name__ == "__main__":
    run(main)
