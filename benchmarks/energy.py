"""Energy networks on small label sets: F1 and P@k beside a feed-forward network of the same kind.

python -m benchmarks.energy --data FOLDER [--models feed-forward spen icnn] [--seeds 0 1 2]

FOLDER holds train.* and test.*, such as those of bibtex and delicious. F1 is averaged
over examples (points), as in the papers of SPEN and ICNN; the threshold above which a label counts
as predicted is chosen on held-out rows of the training data, on which nothing is trained. Training
sees the other rows. Test data is read once, at the end.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.command import heading, parser_of, run
from benchmarks.data_folder import features_of, read_both
from longtail.data.damping import unit_rows_of_power
from longtail.data.split import held_out_split
from longtail.metrics import precision_at_k
from longtail.recipes.icnn import ICNN
from longtail.recipes.spen import SPEN
from longtail.scorers.energy import EnergyScorer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail import Dataset
    from longtail.recipes.energy_classifier import EnergyClassifier

MODELS = ("feed-forward", "spen", "icnn")
THRESHOLDS = np.linspace(0.02, 0.9, 89)
COLUMNS = ("F1", "P@1", "P@3", "P@5", "threshold", "train CPU s", "ms a point")


def model_of(name: str, seed: int, settings: dict[str, Any]) -> EnergyClassifier:
    """Return a recipe by the name that the table has for it."""
    both = {**settings, "random_state": seed, "held_out": 0.0}
    if name == "icnn":
        return ICNN(**both)
    if name == "spen":
        return SPEN(**both)
    # As many epochs as the others have in all, and no energy.
    plain = SPEN(**both)
    total = plain.unary_epochs + plain.energy_epochs + plain.joint_epochs
    plain.set_params(unary_epochs=total, energy_epochs=0, joint_epochs=0)
    return plain


def example_f1(relaxed: NDArray[np.float32], truth: csr_array, threshold: float) -> float:
    """Return the mean over points of F1, in percent; 1 where nothing is true nor predicted."""
    predicted = relaxed > threshold
    shared = np.asarray(truth.multiply(predicted).sum(axis=1)).ravel()
    sizes = predicted.sum(axis=1) + np.asarray(truth.sum(axis=1)).ravel()
    return float(100 * np.where(sizes > 0, 2 * shared / np.maximum(sizes, 1), 1).mean())


def relaxed_labels(model: EnergyClassifier, features: csr_array) -> NDArray[np.float32]:
    """Return the relaxed labels of points, (n, n_labels)."""
    scorer, predictor = model.predictor_.scorer, model.predictor_
    if not isinstance(scorer, EnergyScorer):
        raise TypeError(f"expected an EnergyScorer, got {type(scorer).__name__}")
    relaxed = np.zeros((features.shape[0], predictor.n_labels), np.float32)
    relaxed[:, scorer.known] = scorer.relaxed_labels(predictor.bags(features))
    return relaxed


def measured(model: EnergyClassifier, train: Dataset, test: Dataset) -> list[float]:
    """Train on nine tenths, choose the threshold on the tenth, and return a row of the table."""
    features = unit_rows_of_power(features_of(train))
    kept, held = held_out_split(features, 0.1, seed=0)
    started = time.process_time()
    model.fit(features[kept], train.labels[kept])
    trained = time.process_time() - started
    relaxed = relaxed_labels(model, features[held])
    threshold = max(THRESHOLDS, key=lambda t: example_f1(relaxed, train.labels[held], t))
    started = time.process_time()
    relaxed = relaxed_labels(model, unit_rows_of_power(features_of(test)))
    spent = 1000 * (time.process_time() - started) / test.n_points
    best = np.argsort(-relaxed, axis=1, kind="stable")[:, :5].astype(np.int32)
    precisions = [100 * precision_at_k(best, test.labels, k) for k in (1, 3, 5)]
    return [example_f1(relaxed, test.labels, threshold), *precisions, threshold, trained, spent]


def line(name: str, results: list[list[float]]) -> str:
    """Return means over seeds, and the standard deviation of F1, as a row in Markdown."""
    means, spread = np.mean(results, axis=0), np.std(results, axis=0)[0]
    texts = [f"{means[0]:.1f} ± {spread:.1f}", *(f"{value:.2f}" for value in means[1:])]
    return f"| {name} | " + " | ".join(texts) + " |"


def settings_of(pairs: Sequence[str], models: Sequence[str]) -> dict[str, Any]:
    """Return settings that all models share, from key=value."""
    from longtail.cli.settings import parse_settings

    settings, *_ = (parse_settings(ICNN if name == "icnn" else SPEN, pairs) for name in models)
    return settings


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="see above")
    parser.add_argument(
        "--models", nargs="+", default=MODELS, choices=MODELS, help="only these; all by default"
    )
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=int,
        default=[0, 1, 2],
        metavar="SEED",
        help="a run each; means are shown (0 1 2)",
    )
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="of all models")
    arguments = parser.parse_args()
    train, test = read_both(arguments.data)
    settings = settings_of(arguments.set, arguments.models)
    print(heading("model", *COLUMNS))
    for name in arguments.models:
        models = [model_of(name, seed, settings) for seed in arguments.seeds]
        print(line(name, [measured(model, train, test) for model in models]), flush=True)


if __name__ == "__main__":
    run(main)
