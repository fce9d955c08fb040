"""How training time grows with points and with labels.

python -m benchmarks.scaling train.jsonl.gz --labels labels.txt.gz

Trains on a tenth of the points and on all of them, and on the same points with ten times the
labels: each label is split into ten, and each of its points keeps one of the ten, drawn at random.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from benchmarks.command import parser_of, run
from longtail import Dataset
from longtail.data import InputWarning
from longtail.data.label_space import LabelSpace
from longtail.recipes.names import DEFAULT_RECIPE, recipe

if TYPE_CHECKING:
    from numpy.typing import NDArray

N_PARTS = 10
GROWING = ("points", "labels")


def main() -> None:
    """Train on each of the data sets and print one table."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "train", metavar="TRAIN", help="points and their labels, in any format of `longtail train`"
    )
    parser.add_argument(
        "--labels", metavar="FILE", help="names of labels that are ids: line number = id"
    )
    parser.add_argument(
        "--recipe",
        default=DEFAULT_RECIPE,
        metavar="NAME",
        help=f"what is trained ({DEFAULT_RECIPE})",
    )
    parser.add_argument(
        "--only",
        nargs="*",
        choices=GROWING,
        default=GROWING,
        help="what grows, beside the row of all points; both by default",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the tenth and of the split (0)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    recipe(arguments.recipe)  # refuses a name that there is not, before anything is read
    data = Dataset.read(arguments.train, labels_file=arguments.labels)
    random = np.random.default_rng(arguments.seed)
    tenth = np.sort(random.permutation(data.n_points)[: data.n_points // N_PARTS])
    sets = (
        {f"a tenth of {data.n_points:,} points": data.take(tenth)}
        if "points" in arguments.only
        else {}
    )
    sets[f"{data.n_points:,} points, {data.n_labels:,} labels"] = data
    if "labels" in arguments.only:
        sets[f"each label split into {N_PARTS}"] = with_split_labels(data, random)
    print("| data | wall, s | CPU s | memory, MB |\n|---|---|---|---|")
    for name, dataset in sets.items():
        wall, cpu, memory = measured(dataset, arguments.recipe)
        print(f"| {name} | {wall:.0f} | {cpu:.0f} | {memory:,.0f} |", flush=True)


def with_split_labels(data: Dataset, random: np.random.Generator) -> Dataset:
    """Return the same points with ten labels for one, named after it."""
    labels = data.labels
    parts: NDArray[np.int64] = random.integers(0, N_PARTS, labels.nnz)
    split = csr_array(
        (labels.data, labels.indices.astype(np.int64) * N_PARTS + parts, labels.indptr),
        (data.n_points, N_PARTS * data.n_labels),
    )
    space = data.label_space
    names = (space.name(label) for label in range(data.n_labels))
    columns = LabelSpace.from_names(f"{name} {part}" for name in names for part in range(N_PARTS))
    return Dataset(data.texts, data.features, split, columns)


def measured(dataset: Dataset, name: str) -> tuple[float, float, float]:
    """Train in a process of its own; return wall and CPU seconds and peak memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        dataset.save(Path(folder) / "data")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        code = (
            "import sys; from longtail import Dataset; from longtail.recipes.names import recipe;"
            "recipe(sys.argv[2])().fit_dataset(Dataset.open(sys.argv[1]));"
            "from longtail.training.peak_memory import peak_memory; print(peak_memory())"
        )
        command = [sys.executable, "-c", code, str(Path(folder) / "data"), name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, int(done.stdout) / 2**20


if __name__ == "__main__":
    run(main)
