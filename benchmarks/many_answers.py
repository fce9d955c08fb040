"""What the labels that follow the candidates find, where a hundred are asked for.

python -m benchmarks.many_answers train.jsonl.gz --labels labels.txt.gz

A tenth of the training points is kept from the training and measured. No test data is read.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from benchmarks.command import heading, run
from benchmarks.kept_back import split_as_asked
from longtail import LongtailClassifier
from longtail.data.blocks import points_of
from longtail.data.csr import with_entries
from longtail.metrics import precision_at_k, recall_at_k

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longtail.compiled.scorer import CompiledScorer

K = 100


def main() -> None:
    """Train once, and answer with candidates alone and with what follows them."""
    train, points, seed = split_as_asked(__doc__)
    model = LongtailClassifier(random_state=seed).fit_dataset(train).predictor_
    scorer = cast("CompiledScorer", model.scorer)
    bags = model.bags(points_of(points))
    by_vector = scorer.with_further_scales(float(scorer.parts.further_scale), 0.0)
    has_points = np.bincount(train.labels.indices, minlength=train.n_labels) > 0
    unseen = with_entries(points.labels, ~has_points[points.labels.indices])
    with_unseen = np.flatnonzero(np.diff(unseen.indptr))
    answers: dict[str, Callable[[], NDArray[Any]]] = {
        "candidates alone": lambda: scorer.candidates(bags)[0],
        "and further labels": lambda: by_vector.top_k(bags, K)[0],
        "by their texts, too": lambda: scorer.top_k(bags, K)[0],
    }
    print(f"Texts count {scorer.parts.further_text_scale:.0f}.")
    columns = "P@1", "P@5", f"R@{K}", "R@20 of labels without training points", f"R@{K}"
    print(heading("", "labels a point", *columns, "us of CPU a point, one thread"))
    for name, answer in answers.items():
        answer()  # loads the compiled code, which is not to be timed
        started = time.process_time()
        ids = answer()[:, :K]
        microseconds = 1e6 * (time.process_time() - started) / points.n_points
        n_answers = (ids >= 0).sum(axis=1).mean()
        width = ids.shape[1]  # candidates may be fewer than a hundred
        values = [precision_at_k(ids, points.labels, k) for k in (1, 5)]
        values.append(recall_at_k(ids, points.labels, width))
        if len(with_unseen):
            some = ids[with_unseen], unseen[with_unseen]
            values += [recall_at_k(*some, min(k, width)) for k in (20, K)]
        shown = " | ".join(f"{100 * value:.2f}" for value in values)
        shown += "" if len(with_unseen) else " | |"  # no label is without training points
        print(f"| {name} | {n_answers:.0f} | {shown} | {microseconds:.0f} |", flush=True)


if __name__ == "__main__":
    run(main)
