"""What `longtail train` announces beside what training then takes, each recipe in a fresh process.

python -m benchmarks.estimates --data FOLDER
python -m benchmarks.estimates --data FOLDER --recipes parabel slice --points 20000
python -m benchmarks.estimates --data FOLDER --recipes mach astec --set epochs=1 extreme_epochs=1

`FOLDER` holds a train.* file, and perhaps labels.*.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.command import heading, parser_of, positive, run
from benchmarks.data_folder import file_in, labels_in, read_train
from longtail.errors import InputError
from longtail.recipes.names import RECIPES, recipe

UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "s": 1.0, "min": 60.0, "h": 3600.0}
QUANTITY = re.compile(r"([\d.,]+) (TB|GB|MB|kB|min|s|h)\b")


def main() -> None:
    """Train each recipe, and print a table."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="holds train.* and perhaps labels.*",
    )
    parser.add_argument(
        "--recipes",
        nargs="+",
        default=list(RECIPES),
        metavar="NAME",
        help="only these; all by default",
    )
    parser.add_argument("--points", type=positive(int), metavar="N", help="only the first so many")
    parser.add_argument(
        "--set",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="of those recipes that have such a setting",
    )
    given = parser.parse_args()
    kinds = [recipe(name) for name in given.recipes]
    for setting in given.settings:
        if not any(hasattr(kind, setting.partition("=")[0]) for kind in kinds):
            raise InputError(f"None of these recipes has the setting of --set {setting}.")
    with tempfile.TemporaryDirectory() as folder:
        options = options_for(given.data, given.points, Path(folder))
        of_each = "announced, s", "measured, s", "announced, MB", "measured, MB", "ratio"
        print(heading("recipe", *of_each))
        for name in given.recipes:
            print(row(name, options, given.settings, Path(folder, name)), flush=True)


def options_for(data: Path, n_points: int | None, folder: Path) -> list[str]:
    """Return the arguments that name the data, of which a cut may be written to `folder`."""
    train, labels = file_in(data, "train"), labels_in(data)
    of_labels = [] if labels is None else ["--labels", str(labels)]
    if n_points is None:
        return [str(train), *of_labels]
    dataset = read_train(data)
    cut = folder / ("train.jsonl" if dataset.texts is not None else "train.txt")
    dataset.take(np.arange(min(n_points, dataset.n_points))).write(
        cut, format="json-lines" if dataset.texts is not None else "repository"
    )
    return [str(cut)]


def row(name: str, options: list[str], settings: list[str], model: Path) -> str:
    """Train one recipe, and return its line of the table."""
    command = [sys.executable, "-m", "longtail", "train", *options]
    command += ["--model", str(model), "--recipe", name]
    known = [setting for setting in settings if hasattr(recipe(name), setting.partition("=")[0])]
    if known:
        command += ["--set", *known]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - started
    if done.returncode:
        return f"| {name} | {done.stderr.splitlines()[-1]} | | | | |"
    announced = next(line for line in done.stderr.splitlines() if "will take about" in line)
    *times, memory = quantities(announced)
    seconds = f"{sum(times):.0f}" if times else ""
    *_, measured, _ = quantities(done.stdout.splitlines()[0])
    return (
        f"| {name} | {seconds} | {wall:.0f} | {memory / 1e6:,.0f} | {measured / 1e6:,.0f} | "
        f"{memory / measured:.2f} |"
    )


def quantities(line: str) -> list[float]:
    """Return the seconds and bytes in a line of output, in order.

    >>> quantities("Training will take about 3 min 20 s and 1.5 GB of memory.")
    [180.0, 20.0, 1500000000.0]
    """
    found = QUANTITY.findall(line)
    return [float(number.replace(",", "")) * UNITS[unit] for number, unit in found]


if __name__ == "__main__":
    run(main)
