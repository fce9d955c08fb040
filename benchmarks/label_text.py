"""What auxiliary vectors and free vectors gain where labels have texts, and what texts alone find.

python -m benchmarks.label_text --data FOLDER
python -m benchmarks.label_text --data FOLDER --unseen 1000

FOLDER holds train.*, test.* and labels.*. Each row is one way of scoring: the
label vectors of Module I, those of Module II, the mean of their cosines, and the learned blend,
also with a weight for rare labels, or the answers of a recipe that has no such parts; each once
more with a label that bears the point's own name set aside, as filter files of see-also sets do.
`--reversed-aside` adds a row in which labels are set aside whose own point carries the test point's
own label in training, on the points that have others: what see-also data gives away.
`--dev` trains on 90 % of the training points and tests on the rest, for choosing settings.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.command import heading, parser_of, positive, run
from benchmarks.data_folder import file_in, labels_in, read_test, read_train, texts_of
from longtail import Dataset
from longtail.blend.encoded import EncodedScorer
from longtail.blend.label_head import LabelHead
from longtail.cli.settings import parse_settings
from longtail.compiled.blended import BlendedScorer
from longtail.data import InputWarning
from longtail.data.split import held_out_split
from longtail.errors import InputError
from longtail.metrics import precision_at_k, ps_precision_at_k
from longtail.metrics.propensity import inverse_propensities_in
from longtail.recipes.names import recipe
from longtail.scorers.ranking import padding_last

from .reciprocal_pairs import own_labels, reversed_labels

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    Ids = NDArray[np.int32]

KS = (1, 3, 5)
UNSEEN_KS = (10, 100)
N_BEST = 110  # labels of a point that are looked at
ROWS_AT_ONCE = 256
HEADS = {"Module I": 1, "Module II": 0}  # places in `BlendedScorer.heads`
TAIL = 0.5  # see `NGAME`


def main() -> None:
    """Train each recipe and print its rows."""
    arguments = argument_parser().parse_args()
    warnings.simplefilter("ignore", InputWarning)
    train, test = _read(arguments)
    unseen = np.zeros(train.n_labels, bool)
    if arguments.unseen:
        train, test, unseen = _without_labels(train, test, arguments.unseen)
    if arguments.test_points:
        test = test.take(_some(np.arange(test.n_points), arguments.test_points))
    own, reverse = own_labels(test), reversed_labels(train, test)
    own_or_reversed = [{*labels, *others} for labels, others in zip(own, reverse, strict=True)]
    others = _not_reversed(test, reverse)
    rows = np.flatnonzero(np.diff(others.labels.indptr))
    columns = [f"{metric}@{k}" for metric in ("P", "PSP") for k in KS]
    if unseen.any():
        columns = [f"R@{k} of the unseen" for k in UNSEEN_KS]
        print(f"{test.n_points:,} points, {unseen.sum():,} unseen of {len(unseen):,} labels\n")

    def row_of(ids: Ids, points: Dataset) -> str:
        return _unseen_row(ids, points) if unseen.any() else _row(ids, points, train)

    for name in arguments.recipes:
        settings = parse_settings(recipe(name), arguments.set)
        model = recipe(name)(n_threads=arguments.threads, **settings).fit_dataset(train)
        seconds = {stage: t["cpu_seconds"] for stage, t in model.run_.timings.items()}
        memory = model.training_report()["peak_memory_mb"]
        print(f"{name}: CPU seconds {seconds}, {memory} MB\n", flush=True)
        print(heading("recipe", "scored by", *columns))
        for part, ids in _ranked(model.predictor_, test, train):
            for note, kept in (("", ids), (", own entry aside", _without(ids, own))):
                print(f"| {name} | {part}{note} | {row_of(kept, test)} |", flush=True)
            if arguments.reversed_aside:
                row = row_of(_without(ids, own_or_reversed)[rows], others.take(rows))
                print(f"| {name} | {part}, own and reversed aside | {row} |", flush=True)


def argument_parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="see above")
    parser.add_argument(
        "--recipes",
        nargs="*",
        default=["ngame", "dexa"],
        metavar="NAME",
        help="what is trained (ngame dexa)",
    )
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings of each recipe"
    )
    parser.add_argument(
        "--points", type=positive(int), metavar="N", help="train on so many points only"
    )
    parser.add_argument(
        "--test-points", type=positive(int), metavar="N", help="test on so many points only"
    )
    parser.add_argument("--dev", action="store_true", help="test on a tenth of the training points")
    parser.add_argument(
        "--unseen",
        type=int,
        default=0,
        metavar="N",
        help="keep so many labels out of the training, and tell their recall",
    )
    parser.add_argument(
        "--reversed-aside", action="store_true", help="add the row that is told of above"
    )
    parser.add_argument(
        "--threads", type=positive(int), metavar="N", help="to train with; all cores by default"
    )
    return parser


def _read(arguments: argparse.Namespace) -> tuple[Dataset, Dataset]:
    """Return training and test points, or a split of the training points."""
    train = read_train(arguments.data)
    texts = texts_of(train)
    if arguments.dev:
        rows, others = held_out_split(texts, 0.1, seed=7)
        test = train.take(others)
    else:
        rows = np.arange(train.n_points)
        test = read_test(file_in(arguments.data, "test"), labels_in(arguments.data), train)
    if arguments.points:
        rows = _some(rows, arguments.points)
    return train.take(rows), test


def _some(rows: NDArray[np.int64], n_rows: int) -> NDArray[np.int64]:
    """Return random rows, always the same."""
    return np.random.default_rng(0).permutation(rows)[:n_rows]


def _without_labels(
    train: Dataset, test: Dataset, n_unseen: int
) -> tuple[Dataset, Dataset, NDArray[np.bool_]]:
    """Keep random labels of the test set out of the training, and only those in the test set."""
    has_test = np.flatnonzero(np.bincount(test.labels.indices, minlength=test.n_labels))
    if n_unseen > len(has_test):
        raise InputError(f"The test set has {len(has_test):,} labels. Use fewer for --unseen.")
    unseen = np.zeros(test.n_labels, bool)
    unseen[np.random.default_rng(0).choice(has_test, n_unseen, replace=False)] = True
    kept = (train.labels * ~unseen).tocsr()
    kept.eliminate_zeros()
    wanted = (test.labels * unseen).tocsr()
    wanted.eliminate_zeros()
    rows = np.flatnonzero(np.diff(wanted.indptr))
    train = Dataset(train.texts, None, kept, train.label_space)
    return train, Dataset(test.texts, None, wanted, test.label_space).take(rows), unseen


def _ranked(predictor: Any, test: Dataset, train: Dataset) -> Iterator[tuple[str, Ids]]:
    """Yield the best labels by each part of a model."""
    scorer = predictor.scorer
    if not isinstance(scorer, BlendedScorer | EncodedScorer):  # a recipe that has no such parts
        yield "its answers", predictor.predict_topk(test.texts, N_BEST)[0]
        return
    bags = predictor.bags(test.texts)
    points = scorer.encoder.encode(bags)
    for part, place in HEADS.items():
        yield part, _nearest(points, scorer.heads[place])
    yield "mean of both", _nearest(points, _mean_of(scorer.heads[0], scorer.heads[1]))
    yield "fused", scorer.top_k(bags, N_BEST)[0]
    weights = (TAIL * np.log(inverse_propensities_in(train.labels))).astype(np.float32)
    yield f"fused, tail={TAIL}", replace(scorer, tail_weights=weights).top_k(bags, N_BEST)[0]


def _mean_of(head: LabelHead, other: LabelHead) -> LabelHead:
    """Return a head whose cosines are in the order of the mean of those of two heads."""
    vectors = head.vectors[head.row_of_label] + other.vectors[other.row_of_label]
    is_known = (head.row_of_label >= 0) & (other.row_of_label >= 0)
    return LabelHead.of(vectors * is_known[:, np.newaxis], head.bias, head.scale)


def _nearest(points: NDArray[np.float32], head: LabelHead) -> Ids:
    """Return the labels whose vectors are nearest, by exact search."""
    labels = np.flatnonzero(head.row_of_label >= 0)
    vectors = head.vectors[head.row_of_label[labels]]
    best = np.empty((len(points), min(N_BEST, len(labels))), np.int32)
    for start in range(0, len(points), ROWS_AT_ONCE):
        cosines = points[start : start + ROWS_AT_ONCE] @ vectors.T
        near = np.argpartition(-cosines, best.shape[1] - 1, axis=1)[:, : best.shape[1]]
        order = np.take_along_axis(-cosines, near, axis=1).argsort(axis=1, kind="stable")
        best[start : start + ROWS_AT_ONCE] = labels[np.take_along_axis(near, order, axis=1)]
    return best


def _without(ids: Ids, aside: Sequence[Collection[int]]) -> Ids:
    """Move some labels of each point to the end, as -1."""
    kept = ids.copy()
    for row, labels in zip(kept, aside, strict=True):
        row[np.isin(row, list(labels))] = -1
    return padding_last(kept)[0]


def _not_reversed(test: Dataset, reverse: Sequence[set[int]]) -> Dataset:
    """Return the points that have other labels than those that a training pair gives away."""
    labels = test.labels.tocoo()
    is_other = np.array(
        [j not in reverse[i] for i, j in zip(labels.row.tolist(), labels.col.tolist(), strict=True)]
    )
    kept = csr_array(
        (labels.data[is_other], (labels.row[is_other], labels.col[is_other])), labels.shape
    )
    return Dataset(test.texts, None, kept, test.label_space)


def _row(ids: Ids, test: Dataset, train: Dataset) -> str:
    """Return P@k and PSP@k as cells."""
    weights = inverse_propensities_in(train.labels)
    values = [precision_at_k(ids, test.labels, k) for k in KS]
    values += [ps_precision_at_k(ids, test.labels, k, weights) for k in KS]
    return " | ".join(f"{100 * value:.2f}" for value in values)


def _unseen_row(ids: Ids, test: Dataset) -> str:
    """Return the recall of the unseen labels among all labels, at 10 and 100."""
    n_found = []
    for k in UNSEEN_KS:
        hits = [
            np.isin(test.labels.indices[start:stop], row[:k]).mean()
            for row, start, stop in zip(
                ids, test.labels.indptr[:-1], test.labels.indptr[1:], strict=True
            )
        ]
        n_found.append(100 * np.mean(hits))
    return " | ".join(f"{value:.2f}" for value in n_found)


if __name__ == "__main__":
    run(main)
