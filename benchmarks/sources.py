"""What each source of scores adds to the default recipe: each alone, all together, all but one.

python -m benchmarks.sources train.jsonl.gz --labels labels.txt.gz

A tenth of the training points is kept from the training. On one half of them the blend is learnt,
anew for each row of the table; on the other half it is measured. No test data is read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from benchmarks.command import run
from benchmarks.kept_back import split_as_asked
from longtail import LongtailClassifier
from longtail.blend.network_training import NetworkTraining
from longtail.compiled.expanded import expanded
from longtail.data.blocks import points_of
from longtail.metrics import inverse_propensities, precision_at_k, ps_precision_at_k
from longtail.scorers.ranking import best_first
from longtail.training.run import TrainingRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.evidence import Evidence
    from longtail.compiled.blended import BlendedScorer
    from longtail.compiled.scorer import CompiledScorer
    from longtail.data import Dataset


def main() -> None:
    """Train once, then learn and measure each blend."""
    train, points, seed = split_as_asked(__doc__)
    model = LongtailClassifier(random_state=seed).fit_dataset(train).predictor_
    scorer = expanded(cast("CompiledScorer", model.scorer))
    bags = model.bags(points_of(points))
    evidence = scorer.evidence(bags, torch.get_num_threads())
    names = source_names(scorer)
    table = Table(evidence, points, scorer, train.n_points, seed)
    everything = list(range(len(names)))
    print("| sources | P@1 | P@3 | P@5 | PSP@1 | PSP@5 |\n|---|---|---|---|---|---|")
    table.print_row("all", everything)
    for source, name in enumerate(names):
        table.print_row(f"without {name}", [other for other in everything if other != source])
    for source, name in enumerate(names):
        table.print_row(f"{name} alone", [source])


def source_names(scorer: BlendedScorer) -> list[str]:
    """Name the sources in the order of the evidence."""
    heads = ["label vectors with texts", "label vectors", "label texts' vectors"]
    names = heads if len(scorer.heads) > 1 else ["label vectors"]
    names += ["linear classifiers", "near points"]
    return names if scorer.relations is None else [*names, "words of label texts", "links"]


class Table:
    """Learns a blend of some sources on one half of the points, and measures it on the other."""

    def __init__(
        self,
        evidence: Evidence,
        points: Dataset,
        scorer: BlendedScorer,
        n_train_points: int,
        seed: int,
    ) -> None:
        halves = np.array_split(np.random.default_rng(seed + 1).permutation(points.n_points), 2)
        self._parts = [self._part(evidence, rows) for rows in halves]
        self._truths = [points.labels[rows] for rows in halves]
        counts = np.rint(np.expm1(scorer.commonness))
        self._inverse_propensities = inverse_propensities(counts, n_train_points)
        self._tail_weights = scorer.tail_weights
        self._run = TrainingRun(seed=seed, n_threads=torch.get_num_threads())

    @staticmethod
    def _part(evidence: Evidence, rows: NDArray[np.int64]) -> Evidence:
        """Return the evidence of some points."""
        per_point = {
            name: getattr(evidence, name)[rows] for name in ("labels", "values", "nearness")
        }
        return replace(evidence, **per_point)

    def print_row(self, name: str, sources: list[int]) -> None:
        """Learn, measure and print."""
        first, second = (_of_sources(part, sources) for part in self._parts)
        network = (
            NetworkTraining()
            .taught(first, self._truths[0], self._inverse_propensities, self._run)
            .network
        )
        scores = network.scores(second, self._run.n_threads)
        scores += self._tail_weights[np.maximum(second.labels, 0)]
        scores[second.labels < 0] = -np.inf
        ids, truth = best_first(second.labels, scores, 5, 1)[0], self._truths[1]
        values = [precision_at_k(ids, truth, k) for k in (1, 3, 5)]
        values += [ps_precision_at_k(ids, truth, k, self._inverse_propensities) for k in (1, 5)]
        print(
            f"| {name} | " + " | ".join(f"{100 * value:.2f}" for value in values) + " |", flush=True
        )


def _of_sources(evidence: Evidence, sources: list[int]) -> Evidence:
    """Return what some of the sources say."""
    of_texts = evidence.source_of_texts
    place = sources.index(of_texts) if of_texts in sources else None
    return replace(evidence, values=evidence.values[:, sources], source_of_texts=place)


if __name__ == "__main__":
    run(main)
