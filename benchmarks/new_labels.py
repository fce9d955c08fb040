"""What labels that are added to a trained model are worth, against training with them.

python -m benchmarks.new_labels --data FOLDER --points 30000
python -m benchmarks.new_labels --data FOLDER --points 8000 --labels 200 --recipe dexa

FOLDER holds train.* and labels.*; test points are not read. Of a random cut of the
training points 15 % are set aside. 500 labels with at least three of the others, and one of those
set aside, are taken out of the label space, and the model is trained on the points with what labels
they have left. Then the labels are added from their texts, from up to three of their points, and
from both; beside that the model is trained with their texts, but none of their points, and with
all. P@1 of the other labels passes over the 500. `--models FOLDER` keeps the trained models, to go
on from there with the same arguments.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

import longtail
from benchmarks.command import chosen, parser_of, positive, run
from benchmarks.data_folder import read_train, texts_of
from longtail import Dataset
from longtail.data import InputWarning
from longtail.data.files import replacing
from longtail.data.label_space import LabelSpace
from longtail.data.split import held_out_split
from longtail.errors import InputError
from longtail.label_changes.changes import VECTORS_OF
from longtail.recipes.names import recipe

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longtail.predictor import Predictor

    Ids = NDArray[np.int64]

WHAT_MAKES_MODELS = ("points", "labels", "examples", "recipe")  # and the data
UNKNOWN = "?"  # a text of which no model knows a word


def main() -> None:
    """Train both models and print a row for each way to know the labels."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="see above")
    parser.add_argument(
        "--points",
        type=positive(int),
        default=30_000,
        metavar="N",
        help="of the random cut (30000)",
    )
    parser.add_argument(
        "--labels", type=positive(int), default=500, metavar="N", help="to be added (500)"
    )
    parser.add_argument(
        "--examples",
        type=positive(int),
        default=3,
        metavar="N",
        help="points of each added label (3)",
    )
    parser.add_argument(
        "--recipe", default="longtail", metavar="NAME", help="what is trained (longtail)"
    )
    parser.add_argument(
        "--models", type=Path, metavar="FOLDER", help="where trained models are kept"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    random = np.random.default_rng(0)
    chosen([arguments.recipe], VECTORS_OF, "recipe for new labels")
    train, dev, new = _cut(arguments, random)
    if arguments.models is not None:
        _check_same(arguments)
    examples = _examples(train, new, arguments.examples, random)
    model = _model(_without(train, new), arguments, "without")
    space = train.label_space
    texts = {space.name(label): (space.texts or {})[label] for label in new.tolist()}
    columns = "R@10 of the labels | R@100 | P@1 of their points | of all points | of other labels"
    print(f"| | {columns} |\n|---|---|---|---|---|---|")
    ways: dict[str, Callable[[], Predictor]] = {
        "not added": lambda: model,
        "from text": lambda: model.with_labels(texts),
        "from examples": lambda: model.with_labels(dict.fromkeys(texts, UNKNOWN), examples),
        "from both": lambda: model.with_labels(texts, examples),
        "trained with their texts": lambda: _model(_only_texts(train, new), arguments, "texts"),
        "trained with them": lambda: _model(train, arguments, "with"),
    }
    for what, changed in ways.items():
        print(f"| {what} | {_row(changed(), dev, new)} |", flush=True)


def _check_same(arguments: argparse.Namespace) -> None:
    """Refuse models that other arguments have made, and write down which make these."""
    asked = {name: getattr(arguments, name) for name in WHAT_MAKES_MODELS}
    asked["data"] = str(arguments.data.resolve())
    path = arguments.models / "arguments.json"
    if not path.exists():
        if arguments.models.is_dir() and any(arguments.models.iterdir()):
            raise InputError(
                f"{arguments.models} is not empty, and does not say by arguments.json what made "
                "its models. Name another folder for --models."
            )
        arguments.models.mkdir(parents=True, exist_ok=True)
        with replacing(path) as stream:
            stream.write(json.dumps(asked).encode())
        return
    made = json.loads(path.read_text(encoding="utf-8"))
    for name, value in asked.items():
        if made.get(name) != value:
            raise InputError(
                f"The models in {arguments.models} were made with --{name} {made.get(name)}, not "
                f"{value}. Ask for the same, or name another folder for --models."
            )


def _cut(
    arguments: argparse.Namespace, random: np.random.Generator
) -> tuple[Dataset, Dataset, Ids]:
    """Return points to train on, points set aside, and the labels to take out."""
    whole = read_train(arguments.data)
    texts_of(whole)
    n_points = min(arguments.points, whole.n_points)
    whole = whole.take(np.sort(random.choice(whole.n_points, n_points, replace=False)))
    train, dev = map(whole.take, held_out_split(whole.texts or [], 0.15, 0))
    names = np.array([whole.label_space.ids_by_name[n] for n in whole.label_space.names or ()])
    is_alone = np.bincount(names)[names] == 1  # a name that two labels share cannot be added
    common = is_alone & (_counts(train) >= arguments.examples) & (_counts(dev) >= 1)
    if arguments.labels > common.sum():
        raise InputError(
            f"{common.sum():,} labels have points enough to be taken out, {arguments.labels:,} are "
            "wanted. Use fewer --labels or more --points."
        )
    new = random.choice(np.flatnonzero(common), arguments.labels, replace=False)
    return train, dev, np.sort(new)


def _counts(dataset: Dataset) -> Ids:
    return np.bincount(dataset.labels.indices, minlength=dataset.n_labels)


def _without(train: Dataset, new: Ids) -> Dataset:
    """Return the points with the labels that they have left."""
    kept = np.setdiff1d(np.arange(train.n_labels), new)
    names, texts = (
        None if column is None else column.take(kept)
        for column in (train.label_space.names, train.label_space.texts)
    )
    return Dataset(train.texts, None, train.labels[:, kept], LabelSpace(len(kept), names, texts))


def _only_texts(train: Dataset, new: Ids) -> Dataset:
    """Return the points with the labels that they have left, and all labels."""
    is_old = np.ones(train.n_labels, np.float32)
    is_old[new] = 0
    labels = csr_array(train.labels * is_old)
    labels.eliminate_zeros()
    return Dataset(train.texts, None, labels, train.label_space)


def _model(train: Dataset, arguments: argparse.Namespace, name: str) -> Predictor:
    """Return a trained model: that of the folder, if there is one."""
    folder = arguments.models
    if folder is not None and (folder / name).exists():
        return longtail.load(folder / name)
    classifier = recipe(arguments.recipe)().fit_dataset(train)
    if folder is not None:
        classifier.save(folder / name)
    return classifier.predictor_


def _examples(
    train: Dataset, new: Ids, n: int, random: np.random.Generator
) -> dict[str, list[str]]:
    """Return some points of each label."""
    texts, by_label, examples = list(train.texts or ()), train.labels.T.tocsr(), {}
    for label in new.tolist():
        rows = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        chosen = random.choice(rows, min(n, len(rows)), replace=False)
        examples[train.label_space.name(label)] = [texts[row] for row in chosen]
    return examples


def _row(model: Predictor, dev: Dataset, new: Ids) -> str:
    """Return how well the labels are found, and whether the best label is right."""
    texts, space = list(dev.texts or ()), dev.label_space
    answers = [[name for name, _ in answer] for answer in model.predict(texts, 100)]
    true = [{space.name(label) for label in labels} for labels in dev.label_lists()]
    names = {space.name(int(label)) for label in new}
    pairs = list(zip(answers, true, strict=True))
    right = np.array([bool(t & {*answer[:1]}) for answer, t in pairs])
    has = np.array([bool(t & names) for t in true])
    n_true = sum(len(t & names) for t in true)
    recalls = [sum(len(t & names & {*a[:k]}) for a, t in pairs) / n_true for k in (10, 100)]
    old = [next((n for n in a if n not in names), "") in t for a, t in pairs if t - names]
    shares = [*recalls, right[has].mean(), right.mean(), np.mean(old)]
    return " | ".join(f"{100 * share:.1f}" for share in shares)


if __name__ == "__main__":
    run(main)
