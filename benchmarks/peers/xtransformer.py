"""X-Transformer around a pretrained encoder, against XR-Linear on the same points.

python -m benchmarks.peers.xtransformer --data FOLDER --encoder FOLDER --environments FOLDER

--data holds train.*, test.* and perhaps labels.*; --encoder is the folder of a
transformer, or `bag`, or several of them; --environments is where `benchmarks.peers` builds those
of its systems, for XR-Linear (libpecos). All train on the same part of the points and the same
TF-IDF. `--recipes` adds others of this library, each with its own features. `--set matcher=neural`
and the like go to X-Transformer. `--dev` tests on other training points, for choosing settings.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from benchmarks.command import heading, parser_of, positive, run
from benchmarks.data_folder import drawn_points, texts_of
from longtail.cli.settings import parse_settings
from longtail.data import InputWarning
from longtail.estimators.vocabulary import vectorizer_for
from longtail.metrics import precision_at_k
from longtail.recipes.names import recipe
from longtail.recipes.xtransformer import XTransformer

from .environments import python_of
from .running import carried_out
from .workers.measuring import Job

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail import Dataset
    from longtail.data.bags import Bags
    from longtail.estimators.estimator import LabelEstimator
    from longtail.scorers.joined_features import JoinedTreeScorer

KS = (1, 3, 5)
NEGATIVES = {
    "TFN": {"matcher_aware": False},
    "MAN": {"teacher_forcing": False},
    "both": {},
}
TIME_LIMIT = 3600.0


def main() -> None:
    """Train all and print a row each."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="see above")
    parser.add_argument(
        "--encoder",
        nargs="*",
        default=["bag"],
        metavar="FOLDER",
        help="of transformers, or bag (bag)",
    )
    parser.add_argument("--environments", type=Path, metavar="DIR", help="where to find libpecos")
    parser.add_argument(
        "--recipes", nargs="*", default=[], metavar="NAME", help="others, on the same points"
    )
    parser.add_argument(
        "--negatives",
        nargs="*",
        choices=NEGATIVES,
        default=list(NEGATIVES),
        help="which the rankers learn from; all by default",
    )
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings of X-Transformer"
    )
    parser.add_argument(
        "--points",
        type=positive(int),
        default=20_000,
        metavar="N",
        help="train on so many points (20000)",
    )
    parser.add_argument(
        "--test-points", type=positive(int), default=3000, metavar="N", help="to ask (3000)"
    )
    parser.add_argument("--dev", action="store_true", help="ask other training points")
    parser.add_argument("--ensemble", action="store_true", help="of all encoders, too")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    settings = parse_settings(XTransformer, arguments.set)
    n_points = arguments.points, arguments.test_points
    train, test = drawn_points(arguments.data, *n_points, dev=arguments.dev)
    measured = "matcher R@b", "ranker P@1", "P@1", "P@3", "P@5", "CPU s"
    print(heading("system", "negatives", *measured))
    if arguments.environments is not None:
        print(_xr_linear(train, test, arguments.environments), flush=True)
    for name in arguments.recipes:
        print(_other(name, train, test), flush=True)
    for encoder in arguments.encoder:
        for name in arguments.negatives:
            print(_xtransformer(encoder, name, settings, train, test), flush=True)
    if arguments.ensemble:
        for name in arguments.negatives:
            print(_ensemble(arguments.encoder, name, settings, train, test), flush=True)


def _xtransformer(
    encoder: str, name: str, given: dict[str, Any], train: Dataset, test: Dataset
) -> str:
    """Return the row of X-Transformer with one encoder and one kind of negatives."""
    started = time.process_time()
    # As XR-Linear, it trains on all points: none are set aside for the calibration.
    settings: dict[str, Any] = {"encoder": encoder, "held_out": 0.0, "n_threads": 1}
    settings |= NEGATIVES[name] | given
    predictor = XTransformer(**settings).fit_dataset(train).predictor_
    seconds = time.process_time() - started
    bags = predictor.bags(test.texts or ())
    scorer: Any = predictor.scorer
    recall, ranked = _stages(scorer, bags, test)
    ids, _ = scorer.top_k(bags, max(KS))
    kind = "bag" if encoder == "bag" else Path(encoder).name
    values = [100 * recall, 100 * ranked, *(100 * precision_at_k(ids, test.labels, k) for k in KS)]
    cells = " | ".join(f"{value:.2f}" for value in values)
    return f"| X-Transformer ({kind}) | {name} | {cells} | {seconds:.0f} |"


def _ensemble(
    encoders: list[str], name: str, given: dict[str, Any], train: Dataset, test: Dataset
) -> str:
    """Return the row of X-Transformer with several encoders."""
    first, *further = encoders
    settings: dict[str, Any] = {"encoder": first, "further_encoders": tuple(further)}
    settings |= {"held_out": 0.0, "n_threads": 1} | NEGATIVES[name] | given
    return _answers("X-Transformer (all)", name, XTransformer(**settings), train, test)


def _other(name: str, train: Dataset, test: Dataset) -> str:
    """Return the row of another recipe, trained on all points."""
    return _answers(name, "", recipe(name)(held_out=0.0, n_threads=1), train, test)


def _answers(
    title: str, negatives: str, model: LabelEstimator, train: Dataset, test: Dataset
) -> str:
    """Train, and return the row of a model whose stages are not looked at."""
    started = time.process_time()
    model.fit_dataset(train)
    seconds = time.process_time() - started
    ids, _ = model.predict_topk(test.texts, max(KS))
    cells = " | ".join(f"{100 * precision_at_k(ids, test.labels, k):.2f}" for k in KS)
    return f"| {title} | {negatives} | | | {cells} | {seconds:.0f} |"


def _stages(scorer: JoinedTreeScorer, bags: Bags, test: Dataset) -> tuple[float, float]:
    """Return how many true labels are in the matcher's clusters, and P@1 where those are given.

    The second is the ranker's alone: it orders all labels of the clusters of a point's true labels.
    """
    tree = scorer.tree.tree
    n_clusters = len(tree.child_starts) - 2
    joined = scorer.join.of(bags).matrix(scorer.join.n_features)
    weights = _weights(scorer).T.tocsr()  # at once, or each product would turn it anew
    sizes = np.diff(tree.child_starts)[1:]
    cluster_of_place = np.repeat(np.arange(n_clusters), sizes)
    place_of_label = np.full(test.n_labels, -1)
    place_of_label[tree.labels] = np.arange(len(tree.labels))
    n_true = n_found = n_first = 0
    for i, row in enumerate(np.split(test.labels.indices, test.labels.indptr[1:-1])):
        n_true += len(row)
        margins = (joined[i : i + 1] @ weights).toarray()[0] + tree.bias
        best = np.argsort(-margins[:n_clusters])[: scorer.tree.beam_size]
        places = place_of_label[row][place_of_label[row] >= 0]
        true_clusters = cluster_of_place[places]
        n_found += int(np.isin(true_clusters, best).sum())
        if len(places):
            given = np.flatnonzero(np.isin(cluster_of_place, true_clusters))
            n_first += int(given[margins[n_clusters:][given].argmax()] in places)
    return n_found / n_true, n_first / bags.n_rows


def _weights(scorer: JoinedTreeScorer) -> sparse.csr_array:
    """Return the weights of clusters and labels as rows."""
    tree = scorer.tree.tree
    n_inner = len(tree.child_starts) - 1
    node = np.repeat(np.arange(n_inner), np.diff(tree.feature_starts))
    per_place = np.diff(tree.weight_starts)
    rows = np.repeat(tree.child_starts[node], per_place) + tree.children - 1
    columns = np.repeat(tree.features, per_place)
    shape = (len(tree.bias), scorer.join.n_features)
    return sparse.csr_array((tree.weights, (rows, columns)), shape)


def _xr_linear(train: Dataset, test: Dataset, environments: Path) -> str:
    """Return the row of libpecos' XR-Linear, which is trained in an environment of its own."""
    vectorizer = vectorizer_for(XTransformer(), train)
    features = vectorizer.fit_transform(texts_of(train))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        matrices = {
            "train_points": features,
            "train_labels": train.labels,
            "test_points": vectorizer.transform(test.texts or ()),
        }
        for part, matrix in matrices.items():
            sparse.save_npz(folder / f"{part}.npz", sparse.csr_matrix(matrix))
        job = Job(
            **{part: str(folder / f"{part}.npz") for part in matrices},
            train_file="",
            labels_file=None,
            filter_file=None,
            model_folder=str(folder / "model"),
            scratch_folder=name,
            settings={"one_vs_all": False},
            n_threads=1,
            seed=0,
        )
        python = python_of("pecos", environments)
        trained, _ = carried_out(job, "pecos", python, TIME_LIMIT)
        ids: NDArray[np.int32] = np.load(folder / "predictions.npz")["ids"]
    cells = " | ".join(f"{100 * precision_at_k(ids, test.labels, k):.2f}" for k in KS)
    return f"| XR-Linear | | | | {cells} | {trained['training_cpu_seconds']:.0f} |"


if __name__ == "__main__":
    run(main)
