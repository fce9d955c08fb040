"""What an energy re-ranker adds to a recipe: P@k and the time of a query, without and with it.

python -m benchmarks.energy_reranker --train TRAIN --test TEST [--labels FILE] [--recipe NAME]

The recipe is trained twice, without the points from which the energies are learnt, and with them;
each energy is then put behind the second, whether or not it gains on the points set aside.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.command import heading, parser_of, positive, run
from longtail import Dataset
from longtail.data import InputWarning
from longtail.data.blocks import points_of
from longtail.data.split import held_out_split
from longtail.energy.reranking import ENERGY_RERANKINGS
from longtail.metrics import precision_at_k
from longtail.recipes.names import recipe
from longtail.scorers.energy_reranker import EnergyReranker

if TYPE_CHECKING:
    from longtail.data.bags import Bags
    from longtail.scorers.protocols import Scorer


def row(name: str, scorer: Scorer, points: Bags, test: Dataset, gain: float) -> str:
    """Return a row of the table: one thread, all points in one call."""
    scorer.top_k(points.rows(0, min(10, points.n_rows)), 5)
    started = time.process_time()
    ids, _ = scorer.top_k(points, 5)
    spent = 1000 * (time.process_time() - started) / points.n_rows
    hits = [100 * precision_at_k(ids, test.labels, k) for k in (1, 3, 5)]
    cells = [f"{value:.2f}" for value in hits]
    return f"| {name} | " + " | ".join([*cells, f"{gain:+.2f}", f"{spent:.3f}"]) + " |"


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--train",
        required=True,
        metavar="TRAIN",
        help="points and their labels, in any format of `longtail train`",
    )
    parser.add_argument(
        "--test", required=True, metavar="TEST", help="points to ask, in any such format"
    )
    parser.add_argument(
        "--labels", metavar="FILE", help="names of labels that are ids: line number = id"
    )
    parser.add_argument(
        "--recipe", default="longtail", metavar="NAME", help="what is re-ranked (longtail)"
    )
    parser.add_argument(
        "--most", type=positive(int), metavar="N", help="train on at most so many points"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (0)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    train = Dataset.read(arguments.train, labels_file=arguments.labels)
    if arguments.most and arguments.most < train.n_points:
        random = np.random.default_rng(arguments.seed)
        train = train.take(np.sort(random.permutation(train.n_points)[: arguments.most]))
    kind, settings = recipe(arguments.recipe), {"random_state": arguments.seed, "n_threads": 1}
    every = points_of(train)
    kept, aside = held_out_split(every, 0.1, arguments.seed)
    first = kind(**settings).fit_dataset(train.take(kept)).predictor_
    model = kind(**settings).fit_dataset(train)
    # Read against the model's label space; test labels that it does not know are misses.
    named = train.label_space.names is not None
    test = Dataset.read(
        arguments.test,
        labels_file=None if named else arguments.labels,
        label_space=train.label_space if named else None,
        unknown_labels="extend",
    )
    predictor, some = model.predictor_, train.take(aside)
    asides = first.bags(points_of(some))
    points = predictor.bags(points_of(test))
    print(heading("", "P@1", "P@3", "P@5", "gain on points set aside", "CPU ms a query"))
    print(row("alone", predictor.scorer, points, test, 0.0))
    for name, training in ENERGY_RERANKINGS.items():
        ids, scores = first.scorer.top_k(asides, min(training.size, train.n_labels))
        always = replace(training, size=ids.shape[1], only_if_better=False)
        energy = always.learn(ids, scores, some.labels, train.labels[kept], model.run_)
        if energy is None:
            print(f"| {name}: too few points |" + " |" * 5)
            continue
        gain = model.run_.history[-1]["quality"]
        print(row(name, EnergyReranker(predictor.scorer, energy), points, test, gain))


if __name__ == "__main__":
    run(main)
