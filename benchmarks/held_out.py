"""What settings of a recipe are worth, on training points that it was not trained on.

python -m benchmarks.held_out train.jsonl.gz --labels labels.txt.gz --set dimension=320 dropout=0.3

A tenth of the training points is kept from the training and measured. No test data is read.
"""

from __future__ import annotations

import time

from benchmarks.command import heading, run
from benchmarks.kept_back import recipe_of, recipe_parser, split_of

METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "R@100")


def main() -> None:
    """Train once, and print one row."""
    arguments = recipe_parser(__doc__).parse_args()
    train, points = split_of(arguments)
    model = recipe_of(arguments)
    started = time.process_time()
    model.fit_dataset(train)
    seconds = time.process_time() - started
    found = model.evaluate(points)
    print(heading("settings", *METRICS, "CPU s"))
    values = "".join(f" {found[metric]:.2f} |" for metric in METRICS)
    print(f"| {' '.join(arguments.set)} |{values} {seconds:.0f} |")


if __name__ == "__main__":
    run(main)
