"""DiSMEC beside scikit-learn's `LinearSVC`, one a label: the same points, features, loss and C.

python -m benchmarks.linear_svc --data FOLDER
python -m benchmarks.linear_svc --data FOLDER --every 4

scikit-learn takes some .3 s a label on eurlex-4k, 20 minutes in all; `--every 4` takes every fourth
of the labels that have points, trains them on all points, and scores both on these labels alone.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.command import heading, parser_of, positive, run
from benchmarks.data_folder import features_of, read_both
from longtail.data import InputWarning
from longtail.data.bags import Bags
from longtail.data.damping import unit_rows_of_power
from longtail.metrics import precision_at_k
from longtail.recipes.dismec import DiSMEC
from longtail.scorers.ranking import best_first
from longtail.training.run import TrainingRun

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Scores = NDArray[np.float32]

KS = (1, 3, 5)


def main() -> None:
    """Train both, and print what they reach and how often they agree."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="holds train.* and test.*, ready-made features",
    )
    parser.add_argument(
        "--every",
        type=positive(int),
        default=1,
        metavar="N",
        help="take each n-th label; all by default",
    )
    parser.add_argument(
        "--cost", type=positive(float), default=1.0, metavar="C", help="of both (1)"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    train, test = read_both(given.data)
    train = train.take(np.diff(train.labels.indptr) > 0)  # as DiSMEC does
    used = np.unique(train.labels.indices)[:: given.every]
    labels, truth = train.labels[:, used].tocsr(), test.labels[:, used].tocsr()
    scored = np.diff(truth.indptr) > 0
    points, asked = (unit_rows_of_power(features_of(part)) for part in (train, test))
    asked = asked[scored]
    print(f"{len(used):,} labels, {len(points.indptr) - 1:,} training points\n")
    print(heading("system", *(f"P@{k}" for k in KS), "training and scoring, CPU s"))
    all_scores = []
    for name, scores_of in {"scikit-learn": linear_svc, "DiSMEC": dismec}.items():
        started = time.process_time()
        scores = scores_of(points, labels, asked, given.cost)
        seconds = time.process_time() - started
        best = best_labels(scores)
        cells = [f"{100 * precision_at_k(best, truth[scored], k):.2f}" for k in KS]
        print(f"| {name} | {' | '.join(cells)} | {seconds:.0f} |", flush=True)
        all_scores.append(scores)
    first, second = all_scores
    agreed = np.mean(best_labels(first)[:, 0] == best_labels(second)[:, 0])
    print(f"\nBoth put the same label first for {100 * agreed:.1f} % of the test points.")
    print(
        f"Mean difference of scores {abs(first - second).mean():.4f}, size {abs(first).mean():.2f}."
    )


def best_labels(scores: Scores) -> NDArray[np.int32]:
    """Return the places of the best five scores of each row."""
    places = np.tile(np.arange(scores.shape[1], dtype=np.int32), (len(scores), 1))
    return best_first(places, scores, max(KS))[0]


def linear_svc(points: csr_array, labels: csr_array, asked: csr_array, cost: float) -> Scores:
    """Return scikit-learn's scores, float32 (n_asked, n_labels)."""
    rows, queries = points.astype(np.float64), asked.astype(np.float64)
    by_label = labels.T.tocsr()
    scores = np.empty((queries.shape[0], by_label.shape[0]), np.float32)
    for label in range(by_label.shape[0]):
        own = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        has_label = np.isin(np.arange(rows.shape[0]), own)
        scores[:, label] = LinearSVC(C=cost).fit(rows, has_label).decision_function(queries)
    return scores


def dismec(points: csr_array, labels: csr_array, asked: csr_array, cost: float) -> Scores:
    """Return DiSMEC's scores, float32 (n_asked, n_labels)."""
    run = TrainingRun(0, n_threads=1)
    classifiers = DiSMEC(cost=cost).classifiers(points, labels, run)
    places = np.tile(np.arange(labels.shape[1], dtype=np.int32), (asked.shape[0], 1))
    return classifiers.logits(Bags.of(asked), places)


if __name__ == "__main__":
    run(main)
