"""Run the cells of a table or figure of the DeepXML paper, and print them as a table.

python -m benchmarks.paper table4 --data FOLDER
python -m benchmarks.paper table6 --data FOLDER --points 15000 --dev --set dimension=256
python -m benchmarks.paper figure3 --data FOLDER --points 15000 --out figure3.svg

FOLDER holds one file each called train.*, test.* and, if there is one, labels.*, in any format that
`longtail train` takes. Published values are those on AmazonTitles-670K (negatives: WikiTitles-500K)
and say how parts compare, not what to reach on other data.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail import Dataset
from longtail.data import InputWarning
from longtail.data.split import held_out_split
from longtail.errors import InputError

from .figures import FIGURES
from .variants import TABLES

if TYPE_CHECKING:
    from longtail.recipes.estimator import LabelEstimator

    from .variants import Variant

COLUMNS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@5", "R@100")
DEV_SHARE = 0.1


def main() -> None:
    """Train and evaluate each row."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=[*TABLES, *FIGURES])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--points", type=int, help="train on a random cut; all by default")
    parser.add_argument("--dev", action="store_true", help="score a tenth of the training points")
    parser.add_argument("--variants", nargs="*", metavar="NAME", help="only these; all by default")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, metavar="SVG", help="where a figure is drawn")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    train, test = data_for(arguments)
    settings: dict[str, Any] = {"random_state": arguments.seed}
    for setting in arguments.settings:
        key, _, value = setting.partition("=")
        settings[key] = json.loads(value)
    print(f"{train.n_points:,} training points, {test.n_points:,} scored points\n")
    if arguments.what in FIGURES:

        def fitted(variant: Variant) -> LabelEstimator:
            return variant.make(settings, train.n_points).fit_dataset(train)

        figure = FIGURES[arguments.what](fitted, train, test)
        print(figure.table)
        if arguments.out is not None:
            arguments.out.write_text(figure.svg, encoding="utf-8")
        return
    print("| varied | variant | " + " | ".join(COLUMNS) + " | training, CPU s | published |")
    print("|---|---|" + "---|" * (len(COLUMNS) + 2))
    for variant in TABLES[arguments.what]:
        if arguments.variants is None or variant.name in arguments.variants:
            print(row_of(variant, settings, train, test), flush=True)


def data_for(arguments: argparse.Namespace) -> tuple[Dataset, Dataset]:
    """Return what is trained on, and what is scored: a part of the training data, or the test."""
    labels_file = file_of(arguments.data, "labels", is_needed=False)
    train = Dataset.read(file_of(arguments.data, "train"), labels_file=labels_file)
    if arguments.points is not None:
        drawn = np.random.default_rng(0).permutation(train.n_points)[: arguments.points]
        train = train.take(np.sort(drawn))
    if arguments.dev:
        points = train.features if train.texts is None else train.texts
        kept, scored = held_out_split(points, DEV_SHARE, 0)
        return train.take(kept), train.take(scored)
    test = Dataset.read(
        file_of(arguments.data, "test"),
        labels_file=labels_file,
        label_space=None if labels_file else train.label_space,
        unknown_labels="extend",
        n_features=None if train.features is None else train.features.shape[1],
    )
    return train, test


def file_of(folder: Path, part: str, *, is_needed: bool = True) -> Any:
    """Return the one file that is called so; None if there is none and none is needed."""
    paths = sorted(path for path in folder.glob(f"{part}.*") if path.is_file())
    if len(paths) > 1 or (is_needed and not paths):
        names = ", ".join(path.name for path in paths) or "none"
        raise InputError(f"{folder} should hold one file {part}.*, but holds {names}.")
    return paths[0] if paths else None


def row_of(variant: Variant, settings: dict[str, Any], train: Dataset, test: Dataset) -> str:
    """Train a variant and return its row of the table."""
    estimator = variant.make(settings, train.n_points)
    started = time.process_time()
    estimator.fit_dataset(train)
    seconds = time.process_time() - started
    metrics = estimator.evaluate(test)
    cells = [f"{metrics[column]:.2f}" for column in COLUMNS]
    columns = [variant.group, variant.name, *cells, f"{seconds:.0f}", variant.published]
    return "| " + " | ".join(columns) + " |"


if __name__ == "__main__":
    main()
