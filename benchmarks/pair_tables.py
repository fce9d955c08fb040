"""Cut a data set into a row for each pair of a text and a label, for `benchmarks.peers`.

python -m benchmarks.pair_tables DATA OUT
python -m benchmarks.peers --quick --data OUT/pairs --out RESULT

DATA is a folder with train.jsonl.gz, test.jsonl.gz and labels.txt.gz. Of its points, drawn at
random, 12,000 are trained on and 3,000 asked.

- points: as they are.
- pairs: a row for each label of a training point, as a data base joins them.
- log: each such row as often as a made log might have it, once to about ten times.
- events: nine tenths of these rows, and 5,000 of the others as the test set, of one label each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.set_files import write_parts

if TYPE_CHECKING:
    from benchmarks.set_files import Points

N_TRAIN, N_TEST, N_EVENTS = 12_000, 3_000, 5_000
MEAN_REPEATS = 2


def main() -> None:
    """Write all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("out", type=Path, metavar="OUT")
    arguments = parser.parse_args()
    draw = random.Random(0)  # noqa: S311 - no secret
    train, test = (
        draw.sample(points(arguments.data, part), n)
        for part, n in (("train", N_TRAIN), ("test", N_TEST))
    )
    pairs = [(text, [label]) for text, labels in train for label in labels]
    log = [pair for pair in pairs for _ in range(math.ceil(draw.expovariate(1 / MEAN_REPEATS)))]
    draw.shuffle(pairs)
    draw.shuffle(log)
    n_asked = len(log) // 10
    sets = {
        "points": (train, test),
        "pairs": (pairs, test),
        "log": (log, test),
        "events": (log[n_asked:], log[: min(n_asked, N_EVENTS)]),
    }
    for name, (learnt, asked) in sets.items():
        write_parts(arguments.out / name, {"train": learnt, "test": asked})


def points(folder: Path, part: str) -> Points:
    """Read one part of a set, with names of labels."""
    with gzip.open(folder / "labels.txt.gz", "rt", encoding="utf-8") as file:
        names = [line.rstrip("\n") for line in file]
    with gzip.open(folder / f"{part}.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [(row["text"], [names[label] for label in row["labels"]]) for row in rows]


if __name__ == "__main__":
    main()
