"""Train the classic recipes with their defaults, and print their accuracy beside published values.

python -m benchmarks.classics --data FOLDER
python -m benchmarks.classics --data FOLDER --recipes slice pfastrexml --one-thread
python -m benchmarks.classics --data FOLDER --recipes pfastrexml --set tolerance=0.1 max_passes=10

`FOLDER` holds a train.* and a test.* file, and perhaps labels.*; a folder that is called as a data
set of the Extreme Classification Repository gets the values of the Repository's table. Nothing is
chosen on the test set: one run, default settings, evaluated once.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

from benchmarks.command import heading, parser_of, run
from benchmarks.data_folder import read_both
from longtail.cli.settings import parse_settings
from longtail.data import InputWarning
from longtail.recipes.names import recipe

RECIPES = (
    "parabel",
    "bonsai",
    "dismec",
    "slice",
    "pfastrexml",
    "extremetext",
    "annexml",
    "one-vs-all",
)
COLUMNS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
# "Benchmarked results" of the Extreme Classification Repository, November 2026.
PUBLISHED = {
    "bibtex": {
        "parabel": (64.53, 38.56, 27.94, 50.88, 52.42, 57.36),
        "pfastrexml": (63.46, 39.22, 29.14, 52.28, 54.36, 60.55),
    },
    "delicious": {
        "parabel": (67.44, 61.83, 56.75, 32.69, 34.00, 34.53),
        "pfastrexml": (67.13, 62.33, 58.62, 34.57, 34.80, 35.86),
    },
    "eurlex-4k": {
        "parabel": (82.25, 68.71, 57.53, 36.44, 44.08, 48.46),
        "bonsai": (82.96, 69.76, 58.31, 37.08, 45.13, 49.57),
        "dismec": (82.40, 68.50, 57.70, 41.20, 45.40, 49.30),
        "pfastrexml": (71.36, 59.90, 50.39, 26.62, 34.16, 38.96),
        "annexml": (79.26, 64.30, 52.33, 34.25, 39.83, 42.76),
        "extremetext": (78.97, 65.64, 54.44, 33.52, 40.35, 44.02),
    },
}


def main() -> None:
    """Train and evaluate each recipe."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="holds train.*, test.* and perhaps labels.*",
    )
    parser.add_argument(
        "--recipes", nargs="+", default=RECIPES, metavar="NAME", help="only these; all by default"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (0)")
    parser.add_argument("--one-thread", action="store_true", help="train on one core")
    parser.add_argument(
        "--set",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="of each recipe that is run",
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    kinds = {name: recipe(name) for name in given.recipes}
    settings = {name: parse_settings(kind, given.settings) for name, kind in kinds.items()}
    common = {"random_state": given.seed, "n_threads": 1 if given.one_thread else None}
    train, test = read_both(given.data)
    print(heading("recipe", *COLUMNS, "training, CPU s"))
    for name, kind in kinds.items():
        started = time.process_time()
        model = kind(**{**common, **settings[name]}).fit_dataset(train)
        seconds = time.process_time() - started
        found = model.evaluate(test)
        row(name, [found[column] for column in COLUMNS], f"{seconds:.0f}")
        published = PUBLISHED.get(given.data.resolve().name, {}).get(name)
        if published:
            row("published", list(published), "")


def row(name: str, values: list[float], seconds: str) -> None:
    """Print one line of the table."""
    print(f"| {name} | " + " | ".join(f"{v:.2f}" for v in values) + f" | {seconds} |", flush=True)


if __name__ == "__main__":
    run(main)
