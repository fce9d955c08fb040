"""Cut a large set to few training points, for `benchmarks.peers`; no test data is read.

python -m benchmarks.few_points DATA OUT --points 1000 5000
python -m benchmarks.peers --quick --data OUT/1000 --out RESULT

DATA is a folder with train.jsonl.gz and labels.txt.gz. Of its training points, drawn at random, so
many are trained on, and 3,000 others are the test set; all labels stay. With --names, labels are
names in the files of points, so that those are known alone which the training points have:

longtail train OUT/100/train.jsonl.gz --model m && longtail evaluate m OUT/100/test.jsonl.gz
"""

from __future__ import annotations

import gzip
import json
import shutil

import numpy as np

from benchmarks.command import positive, run
from benchmarks.set_files import parser_of_places, read_part

N_TEST = 3_000


def main() -> None:
    """Write a folder for each number of points."""
    parser = parser_of_places(__doc__)
    parser.add_argument(
        "--points",
        type=positive(int),
        nargs="+",
        default=[1_000, 5_000],
        metavar="N",
        help="a set for each of these numbers of training points (1000 5000)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (0)")
    parser.add_argument("--names", action="store_true", help="no file of labels, names instead")
    arguments = parser.parse_args()
    with gzip.open(arguments.data / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    if arguments.names:
        points = read_part(arguments.data, "train")
        lines = [json.dumps({"text": text, "labels": labels}) for text, labels in points]
    order = np.random.default_rng(arguments.seed).permutation(len(lines)).tolist()
    for n in arguments.points:
        if n + N_TEST > len(lines):
            parser.error(f"{n:,} points and {N_TEST:,} for the test are more than {len(lines):,}.")
        folder = arguments.out / str(n)
        folder.mkdir(parents=True, exist_ok=True)
        if not arguments.names:
            shutil.copy(arguments.data / "labels.txt.gz", folder)
        # The test points are the same, however many are trained on.
        for name, rows in (("test", order[:N_TEST]), ("train", order[N_TEST : N_TEST + n])):
            with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
                file.writelines(lines[row] + "\n" for row in rows)


if __name__ == "__main__":
    run(main)
