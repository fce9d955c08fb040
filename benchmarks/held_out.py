"""What settings of a recipe are worth, on training points that it was not trained on.

python -m benchmarks.held_out train.jsonl.gz --labels labels.txt.gz --set dimension=320 dropout=0.3

A tenth of the training points is kept from the training and measured. No test data is read.
"""

from __future__ import annotations

import time

from benchmarks.command import heading, run
from benchmarks.kept_back import split_of, training_parser
from longtail.cli.settings import parse_settings
from longtail.recipes.names import recipe

METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "R@100")


def main() -> None:
    """Train once, and print one row."""
    parser = training_parser(__doc__)
    parser.add_argument(
        "--recipe", default="longtail", metavar="NAME", help="what is trained (longtail)"
    )
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of the recipe"
    )
    arguments = parser.parse_args()
    train, points = split_of(arguments)
    kind = recipe(arguments.recipe)
    model = kind(random_state=arguments.seed, **parse_settings(kind, arguments.set))
    started = time.process_time()
    model.fit_dataset(train)
    seconds = time.process_time() - started
    found = model.evaluate(points)
    print(heading("settings", *METRICS, "CPU s"))
    values = "".join(f" {found[metric]:.2f} |" for metric in METRICS)
    print(f"| {' '.join(arguments.set)} |{values} {seconds:.0f} |")


if __name__ == "__main__":
    run(main)
