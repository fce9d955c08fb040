"""DiSMEC beside scikit-learn's `LinearSVC`, one a label: the same points, features, loss and C.

python -m benchmarks.linear_svc --data FOLDER

scikit-learn takes some .3 s a label on eurlex-4k, 20 minutes in all.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.svm import LinearSVC

from longtail.classifiers.fusion import best_first
from longtail.data import InputWarning
from longtail.metrics import precision_at_k
from longtail.predictor import unit_features
from longtail.recipes.dismec import DiSMEC

from .classics import read

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail import Dataset

KS = (1, 3, 5)


def main() -> None:
    """Train both, and print what they reach and how often they agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--cost", type=float, default=1.0, help="C of both")
    given = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    train, test = read(given.data)
    train = train.take(np.diff(train.labels.indptr) > 0)  # as DiSMEC does
    print("| system | " + " | ".join(f"P@{k}" for k in KS) + " | training and scoring, CPU s |")
    print("|---|" + "---|" * (len(KS) + 1))
    first = []
    for name, answer in {"scikit-learn": linear_svc, "DiSMEC": dismec}.items():
        started = time.process_time()
        best = answer(train, test, given.cost)
        seconds = time.process_time() - started
        cells = [f"{100 * precision_at_k(best, test.labels, k):.2f}" for k in KS]
        print(f"| {name} | {' | '.join(cells)} | {seconds:.0f} |", flush=True)
        first.append(best[:, 0])
    agreed = np.mean(np.equal(*first))
    print(f"\nBoth put the same label first for {100 * agreed:.1f} % of the test points.")


def linear_svc(train: Dataset, test: Dataset, cost: float) -> NDArray[np.int32]:
    """Return the best labels of each test point by scikit-learn, (n_test_points, 5)."""
    points, asked = (unit_features(part.features).astype(np.float64) for part in (train, test))
    by_label = train.labels.T.tocsr()
    used = np.flatnonzero(np.diff(by_label.indptr))
    scores = np.empty((asked.shape[0], len(used)), np.float32)
    for place, label in enumerate(used):
        own = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        has_label = np.isin(np.arange(points.shape[0]), own)
        scores[:, place] = LinearSVC(C=cost).fit(points, has_label).decision_function(asked)
    labels = np.tile(used.astype(np.int32), (len(scores), 1))
    return best_first(labels, scores, max(KS))[0]


def dismec(train: Dataset, test: Dataset, cost: float) -> NDArray[np.int32]:
    """Return the best labels of each test point by DiSMEC, (n_test_points, 5)."""
    model = DiSMEC(held_out=0, cost=cost, n_threads=1).fit_dataset(train)
    return model.predict_topk(test.features, max(KS))[0]


if __name__ == "__main__":
    main()
